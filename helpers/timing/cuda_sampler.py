"""Taking one sample with CUDA events, on a real GPU or on the simulated one."""

import math
import statistics
from collections.abc import Callable
from itertools import repeat

from helpers.timing.errors import returned_at_once, stage
from helpers.timing.host_sampler import HostSampler, nothing
from helpers.timing.measurement import seconds

GPU_BLOCK = 500e-6  # s: hot samples queue calls up to this; an event pair itself reads 1 to 5 us
GPU_CALLS = 50  # most calls between two events: the launch queue holds about a thousand kernels
HOLD_CAP = 0.1  # s: longest hold of the queue
FLUSH_MIN, FLUSH_UNKNOWN = 32 * 2**20, 256 * 2**20  # bytes
FLUSH_SHARE = 0.05  # of the free GPU memory, at most


class CudaSampler(HostSampler):
    """CUDA events around work that is queued behind a hold, so that the GPU never waits for it."""

    kind = "cuda-events"

    def _set_up(self) -> None:
        import torch

        from helpers import devices

        self.cuda = torch.cuda
        self.device = torch.cuda.get_device_name()
        self.origin = "simulated" if devices.is_simulated(self.device) else "measured"
        self.buffer = None
        self.unheld = 0
        self.cycles = 0  # of the hold
        self.growths = 4  # times that it may still grow

    def wait(self) -> None:
        self.cuda.synchronize()

    def _prepare(self) -> None:
        if self.wall < 2e-3:  # cheap enough to see more than the windows' few
            self.queueing = statistics.median(self.block(1)[1] for _ in range(5))
        self.host = self.queueing
        self.begin, self.end = (self.cuda.Event(enable_timing=True) for _ in range(2))
        trial = 1_000_000  # about 1 ms
        self.rate = trial / max(min(self._sleep(trial) for _ in range(2)), 1e-6)  # cycles per s
        flush = self._make_flush() if self.cache == "cold" else 0.0
        if self.cache == "hot":
            self.calls = min(GPU_CALLS, max(1, math.ceil(GPU_BLOCK / max(self.wall, 1e-6))))
        # Twice the host's queueing time, less what the flush itself keeps the GPU busy.
        needed = 2 * self.host * (self.calls + self._warms_itself()) + 50e-6
        self.usual = self.cycles = self._cycles(needed - flush)
        self._check_queued()

    def _cycles(self, hold: float) -> int:
        return int(self.rate * min(max(hold, 0.0), HOLD_CAP))

    def _sleep(self, cycles: int) -> float:
        self.begin.record()
        self.cuda._sleep(cycles)
        return self._read()

    def _read(self) -> float:
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) / 1e3

    def _make_flush(self) -> float:
        """A buffer that pushes everything else out of L2 when it is zeroed; s to zero it."""
        import torch

        properties = self.cuda.get_device_properties(self.cuda.current_device())
        l2 = getattr(properties, "L2_cache_size", 0)
        wanted = max(2 * l2, FLUSH_MIN) if l2 else FLUSH_UNKNOWN
        unused = self.cuda.memory_reserved() - self.cuda.memory_allocated()  # PyTorch's cache
        size = min(wanted, int(FLUSH_SHARE * (self.cuda.mem_get_info()[0] + unused)))
        if size < 2 * l2 or size < FLUSH_MIN:
            self.notes.append(
                f"little GPU memory is free: only {size / 2**20:.0f} MiB were written between "
                f"samples, so part of the data may still have been in L2"
            )
        with stage(self.fn, self.name, "the L2 flush buffer that measure adds"):
            self.buffer = torch.zeros(max(size // 4, 1), dtype=torch.int32, device="cuda")
        times = []
        for _ in range(2):
            self.begin.record()
            self.buffer.zero_()
            times.append(self._read())
        return min(times)

    def _warms_itself(self) -> bool:
        return self.cache == "hot" and self.shared

    def _pair(self, fn: Callable[[], object], calls: int) -> tuple[float, bool]:
        """(s between two events around `calls` calls, whether the GPU was held meanwhile)."""
        if self.cycles:
            self.cuda._sleep(self.cycles)
        if self.buffer is not None:
            self.buffer.zero_()
        if self._warms_itself():
            fn()
        self.begin.record()
        for _ in repeat(None, calls):
            fn()
        self.end.record()
        held = not self.begin.query()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) / 1e3, held

    def _held(self) -> tuple[float, bool]:
        """`_pair` for one sample; where the host is too slow, tried again with a longer hold."""
        took, held = self._pair(self.fn, self.calls)
        while not held and self.growths:
            self.growths -= 1
            self.cycles = self._cycles(3 * (self.cycles / self.rate + 100e-6))
            took, held = self._pair(self.fn, self.calls)
            if not held and not self.growths:
                self.cycles = self.usual  # no hold is long enough: do not waste time on one
        return took, held

    def _check_queued(self) -> None:
        """Make sure that something runs between the events; time an empty pair."""
        once, held = self._pair(self.fn, self.calls)
        while not held and self.calls > 1:  # so many calls may have filled the launch queue
            self.calls = self.calls // 4 or 1
            once, held = self._pair(self.fn, self.calls)
        self.empty, _ = self._pair(nothing, 1)
        if once > 20e-6:
            return
        # One small kernel is hard to tell from none, twenty are not.
        calls = max(self.calls, min(20, int(20e-3 / max(self.host, 1e-6))))
        self.cycles = self._cycles(2 * self.host * calls + 50e-6)
        block, held = self._pair(self.fn, calls)
        self.cycles = self.usual
        if held and block - self.empty <= 0.5e-6 + 0.25 * self.empty:
            raise returned_at_once(self.name, on_gpu=True)

    def take(self) -> None:
        with stage(self.fn, self.name, "a timed call"):
            took, held = self._held()
        self.unheld += not held
        self.samples.append(took / self.calls)

    def finish(self) -> None:
        self.buffer = None
        self.held = self.unheld == 0
        if not self.held:
            self.notes.append(
                f"upper bound: the host was slower than the hold in {self.unheld} of "
                f"{len(self.samples)} samples (queueing one call takes it {seconds(self.host)}), "
                f"or the function waits for the GPU itself"
            )
        once = statistics.median(self.samples) * self.calls
        if self.empty > 0.05 * once:
            self.notes.append(
                f"an empty pair of events already reads {seconds(self.empty)} here, "
                f"{100 * self.empty / once:.0f} % of a sample"
                + ("; cache='hot' times several calls per pair" if self.cache == "cold" else "")
            )
