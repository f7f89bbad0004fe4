"""Clocks, streams and the trace of the simulated GPU. No torch here.

Two clocks, both virtual: the host's, which pays for each call, and each stream's, which runs the
kernels one after another. The host runs ahead of the streams until the launch queue is full or
something waits. Beside them runs a ledger in real seconds, only so that a wait can also sleep:
then an ordinary ``time.perf_counter()`` around GPU code sees what it would see on a card.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from helpers.simgpu.memory import Cache, Memory
from helpers.simgpu.model import GPUModel, HostModel, Task, Timing, kernel_time

TRACE_LIMIT = 100_000
"""Entries kept in the trace; beyond it the older half is dropped."""
CLOCK_READ = 1e-7
"""Seconds that reading the host clock costs, so that a loop which only reads it ends."""


@dataclass(frozen=True)
class Kernel:
    """One kernel or copy on the device. Seconds on the virtual clocks."""

    name: str
    queued: float
    start: float
    end: float
    bytes: float
    flops: float
    bound_by: str
    """"memory", "L2", "compute", "vector", "startup" or "link" (copies between host and device)."""
    stream: int = 0
    graph: bool = False
    lane: str = "GPU"

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return self.end - self.start


@dataclass(frozen=True)
class HostInterval:
    """What the host did: queue a kernel, wait, compile. Seconds on the virtual host clock."""

    name: str
    start: float
    end: float
    lane: str = "CPU"


@dataclass(eq=False)
class StreamState:
    """A queue of kernels: when its last one ends, on the virtual and on the real clock."""

    number: int = 0
    free_at: float = 0.0
    real_free_at: float = 0.0
    outstanding: deque[tuple[float, float]] = field(default_factory=deque)


@dataclass
class Captured:
    """A kernel that a CUDA graph holds: what it does, and the memory it touches."""

    task: Task
    operands: tuple[tuple[int, int], ...]


class Runtime:
    """The state of one simulated device in time."""

    def __init__(self, gpu: GPUModel, host: HostModel, capacity: int, sleep: bool) -> None:
        self.gpu, self.host, self.sleep = gpu, host, sleep
        self.memory = Memory(capacity)
        self.cache = Cache(gpu.l2)
        self.clock = 0.0
        self.default_stream = StreamState()
        self.stream = self.default_stream
        self.streams = [self.default_stream]
        self.trace: list[Kernel] = []
        self.host_trace: list[HostInterval] = []
        self.engines: dict[str, list[float]] = {}
        """When each part of the device is free, virtual and real: "compute" runs one kernel at a
        time, whatever its stream (each fills the card); copies have an engine per direction."""
        self.capture: list[Captured] | None = None
        self._mark = 0

    # The host

    def now(self) -> float:
        """Read the virtual host clock, in seconds."""
        self.clock += CLOCK_READ
        return self.clock

    def spend(self, name: str, seconds: float) -> None:
        """Let the host work for ``seconds``."""
        start, self.clock = self.clock, self.clock + seconds
        _append(self.host_trace, HostInterval(name, start, self.clock))

    # Kernels

    def launch(
        self, task: Task, operands: Iterable[tuple[int, int]], dispatch: float, launch: float
    ) -> None:
        """Queue a kernel; ``operands`` are (address, bytes) of the memory it touches."""
        operands = tuple(operands)
        if self.capture is not None:
            self.capture.append(Captured(task, operands))
            self.spend(task.name, dispatch + launch)
            return
        start = self.clock
        self.clock += dispatch
        self._wait_for_room()
        self.clock += launch
        _append(self.host_trace, HostInterval(task.name, start, self.clock))
        self.enqueue(task, operands)

    def replay(self, kernels: Iterable[Captured], name: str = "graph launch") -> None:
        """Queue all kernels of a graph with one launch."""
        self._wait_for_room()
        self.spend(name, self.host.graph_launch)
        for captured in kernels:
            self.enqueue(captured.task, captured.operands, graph=True)

    def enqueue(
        self, task: Task, operands: Iterable[tuple[int, int]] = (), graph: bool = False
    ) -> None:
        """Put a kernel at the end of the current stream, at the host's present."""
        resident = touched = 0
        for address, nbytes in operands:
            resident += self.cache.touch(address, nbytes)
            touched += nbytes
        timing = kernel_time(task, self.gpu, resident / touched if touched else 0.0)
        self.occupy(task.name, timing, task.bytes, task.flops, graph)

    def occupy(
        self, name: str, timing: Timing, nbytes: float = 0.0, flops: float = 0.0,
        graph: bool = False,
    ) -> None:  # fmt: skip
        """Keep the current stream busy for a time that is already known."""
        stream = self.stream
        part = name if timing.bound_by == "link" else "compute"
        engine = self.engines.setdefault(part, [0.0, 0.0])
        start = max(self.clock, stream.free_at, engine[0])
        end = stream.free_at = engine[0] = start + timing.seconds
        real = max(time.perf_counter(), stream.real_free_at, engine[1]) + timing.seconds
        stream.real_free_at = engine[1] = real
        # A graph takes one place in the launch queue, whatever it holds.
        if graph and stream.outstanding:
            stream.outstanding.pop()
        stream.outstanding.append((end, real))
        _append(self.trace, Kernel(
            name, self.clock, start, end, nbytes, flops, timing.bound_by, stream.number, graph
        ), self._trimmed)  # fmt: skip

    # Waiting

    def wait_until(self, moment: float, real: float, name: str = "wait") -> None:
        """Let the host wait for a moment of a stream; in real time too, if ``sleep`` is on."""
        if self.capture is not None:
            raise RuntimeError(
                "CUDA error: operation not permitted when stream is capturing (simulated): take "
                "synchronize, .item(), .cpu() and print out of the captured part."
            )
        start = self.clock
        self.clock = max(self.clock, moment) + self.host.sync
        _append(self.host_trace, HostInterval(name, start, self.clock))
        if self.sleep:
            pause = real - time.perf_counter()
            if pause > 0:
                time.sleep(pause)

    def synchronize(self, stream: StreamState | None = None, name: str = "synchronize") -> None:
        """Wait until a stream, or every stream, has run dry."""
        streams = [stream] if stream else self.streams
        latest = max(streams, key=lambda s: s.free_at)
        self.wait_until(latest.free_at, max(s.real_free_at for s in streams), name)
        for done in streams:
            done.outstanding.clear()

    def forget_real_time(self) -> None:
        """Let all that is queued be done by now on the real clock; the virtual one keeps it."""
        now = time.perf_counter()
        for stream in self.streams:
            stream.real_free_at = min(stream.real_free_at, now)
            stream.outstanding = deque((end, min(real, now)) for end, real in stream.outstanding)
        for free in self.engines.values():
            free[1] = min(free[1], now)

    def _wait_for_room(self) -> None:
        queue = self.stream.outstanding
        while queue and queue[0][0] <= self.clock:
            queue.popleft()
        if len(queue) >= self.host.queue_limit:
            end, real = queue.popleft()
            start, self.clock = self.clock, end
            _append(self.host_trace, HostInterval("launch queue full", start, end))
            if self.sleep and (pause := real - time.perf_counter()) > 0:
                time.sleep(pause)

    # The trace

    def mark(self) -> None:
        """Let ``since_mark`` start here."""
        self._mark = len(self.trace)

    def since_mark(self) -> list[Kernel]:
        """Kernels queued since the last mark."""
        return self.trace[self._mark :]

    def _trimmed(self, dropped: int) -> None:
        self._mark = max(0, self._mark - dropped)


def _append(entries: list, entry: object, on_trim=None) -> None:
    entries.append(entry)
    if len(entries) > TRACE_LIMIT:
        dropped = len(entries) // 2
        del entries[:dropped]
        if on_trim:
            on_trim(dropped)
