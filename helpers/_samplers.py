"""Taking one sample: the two modes of the timing core.

A sampler holds one function and knows how to call it the first time, warm it up, size a sample,
and take one. `timing` decides in which order samples are taken and when there are enough.
"""

import math
import statistics
from collections.abc import Callable
from itertools import repeat

from helpers import clock
from helpers._measure_errors import check_result, returned_at_once, stage
from helpers._measurement import seconds

BLOCK = 1e-3  # s: shortest timed block on the host clock, ten thousand of its 0.1 us ticks
AGREE = 0.05  # two warm-up windows are the same when they differ by less
GPU_BLOCK = 500e-6  # s: hot samples queue calls up to this; an event pair itself reads 1 to 5 us
GPU_CALLS = 50  # most calls between two events: the launch queue holds about a thousand kernels
HOLD_CAP = 0.1  # s: longest hold of the queue
FLUSH_MIN, FLUSH_UNKNOWN = 32 * 2**20, 256 * 2**20  # bytes
FLUSH_SHARE = 0.05  # of the free GPU memory, at most


class HostSampler:
    """Wall clock, blocks of calls, caches left as they are."""

    kind, origin, held = "wall", "measured", None

    def __init__(self, fn: Callable[[], object], cache: str, warmup: float, shared: bool) -> None:
        self.fn, self.warmup, self.shared = fn, warmup, shared
        self.cache = cache
        self.notes: list[str] = []
        self.samples: list[float] = []
        self.host: float | None = None
        self.calls = 1
        self._set_up()

    def _set_up(self) -> None:
        import platform

        import torch

        self.device = f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"
        if self.cache == "cold":
            self.cache = "hot"
            self.notes.append("cold was asked for, but a CPU's caches are not flushed: this is hot")

    def wait(self) -> None:
        """Wait for the device. A CPU call is over when it returns."""

    def start(self) -> None:
        """The first call, timed apart, then warm-up, then the size of a sample."""
        with stage(self.fn, "its first call"):
            self.wait()
            begin = clock.now()
            result = self.fn()
            self.wait()
            self.first_call = clock.now() - begin
        check_result(result, self.fn)
        del result  # its memory belongs to the next call
        with stage(self.fn, "a warm-up call"):
            self._warm_up()
            self._prepare()

    def block(self, calls: int) -> tuple[float, float]:
        """(s per call of a loop that waits at its end, s until its first call came back)."""
        self.wait()
        begin = clock.now()
        self.fn()
        queued = clock.now()
        for _ in repeat(None, calls - 1):
            self.fn()
        self.wait()
        return (clock.now() - begin) / calls, queued - begin

    def _warm_up(self) -> None:
        """Windows of calls until two in a row agree, or the time is up; at least one call."""
        window, calls, before = self.warmup / 10, 1, None
        deadline = clock.now() + self.warmup
        queueing = []
        while True:
            self.wall, queued = self.block(calls)
            queueing.append(queued)
            took = self.wall * calls
            if took >= window:
                if before is not None and abs(self.wall - before) <= AGREE * before:
                    break
                before = self.wall
            elif calls >= 100_000:
                break  # too fast to fill a window with any number of calls
            else:
                before = None
                calls = min(10 * calls, math.ceil(1.1 * window / max(self.wall, 1e-9)))
            if clock.now() >= deadline or len(queueing) >= 100:
                break
        self.queueing = statistics.median(queueing)

    def _prepare(self) -> None:
        self.calls = max(1, math.ceil(BLOCK / max(self.wall, 1e-8)))
        if self.wall < 1e-6 and self._is_empty():
            raise returned_at_once(self.fn, on_gpu=False)

    def _is_empty(self) -> bool:
        """Compare the fastest blocks of `fn` and of a function without a body, taken in turn."""
        pairs = [(_loop(self.fn, 10_000), _loop(_nothing, 10_000)) for _ in range(5)]
        return min(mine for mine, _ in pairs) <= 2 * min(empty for _, empty in pairs)

    def take(self) -> None:
        """Append one sample (s per call)."""
        with stage(self.fn, "a timed call"):
            if self.shared and self.wall < 0.01:
                self.fn()  # the other functions had the caches since this one's last turn
            self.samples.append(_loop(self.fn, self.calls) / self.calls)

    def finish(self) -> None:
        """Drop what was only needed while sampling, and say what must be said."""


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
        self.cycles = 0

    def wait(self) -> None:
        self.cuda.synchronize()

    def _prepare(self) -> None:
        self.host = self.queueing
        self.begin, self.end = (self.cuda.Event(enable_timing=True) for _ in range(2))
        trial = 100_000
        self.rate = trial / max(min(self._sleep(trial) for _ in range(2)), 1e-6)  # cycles per s
        flush = self._make_flush() if self.cache == "cold" else 0.0
        if self.cache == "hot":
            self.calls = min(GPU_CALLS, max(1, math.ceil(GPU_BLOCK / max(self.wall, 1e-6))))
        # Twice the host's queueing time, less what the flush itself keeps the GPU busy.
        needed = 2 * self.host * (self.calls + self._warms_itself()) + 50e-6
        self.cycles = self._cycles(needed - flush)
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
        size = min(wanted, int(FLUSH_SHARE * self.cuda.mem_get_info()[0]))
        if size < 2 * l2 or size < FLUSH_MIN:
            self.notes.append(
                f"little GPU memory is free: only {size / 2**20:.0f} MiB were written between "
                f"samples, so part of the data may still have been in L2"
            )
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

    def _check_queued(self) -> None:
        """Find the hold that holds, then make sure that something runs behind it."""
        once, held = self._pair(self.fn, self.calls)
        for factor in (2, 4, 8):
            if held:
                break
            self.calls = max(1, self.calls // 4)
            start = self.cycles
            self.cycles = self._cycles(factor * (self.cycles / self.rate + 100e-6))
            once, held = self._pair(self.fn, self.calls)
            if self.cycles == start:
                break
        self.empty, _ = self._pair(_nothing, 1)
        if once > 20e-6:
            return
        # One small kernel is hard to tell from none, twenty are not.
        calls = max(self.calls, min(20, int(20e-3 / max(self.host, 1e-6))), 1)
        block, _ = self._pair(self.fn, calls)
        if block - self.empty <= 0.5e-6 + 0.25 * self.empty:
            raise returned_at_once(self.fn, on_gpu=True)

    def take(self) -> None:
        with stage(self.fn, "a timed call"):
            took, held = self._pair(self.fn, self.calls)
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


def _nothing() -> None:
    pass


def _loop(fn: Callable[[], object], calls: int) -> float:
    """Seconds for `calls` calls in a row."""
    begin = clock.now()
    for _ in repeat(None, calls):
        fn()
    return clock.now() - begin
