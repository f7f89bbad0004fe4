"""Events and streams of the simulated GPU."""

from __future__ import annotations

import time
from typing import Any

from helpers.simgpu import state
from helpers.simgpu.factories import check_device
from helpers.simgpu.runtime import StreamState
from helpers.simgpu.tensor import CUDA


class Event:
    """``torch.cuda.Event``: a moment on a stream."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
        **_: Any,
    ) -> None:  # fmt: skip
        self.enable_timing = enable_timing
        self._time: float | None = None
        self._real = 0.0

    def record(self, stream: Stream | None = None) -> None:
        """Note when the stream gets here."""
        gpu = state.require()
        gpu.flush()
        runtime = gpu.runtime
        runtime.spend("event record", gpu.host.event)
        queue = stream.state if stream is not None else runtime.stream
        self._time = max(runtime.clock, queue.free_at)
        self._real = max(time.perf_counter(), queue.real_free_at)

    def query(self) -> bool:
        """Whether the device has got here. Costs host time, so a polling loop ends."""
        gpu = state.require()
        gpu.runtime.spend("event query", gpu.host.query)
        return self._time is None or self._time <= gpu.runtime.clock

    def synchronize(self) -> None:
        """Let the host wait for it."""
        gpu = state.require()
        gpu.flush()
        if self._time is not None:
            gpu.runtime.wait_until(self._time, self._real, "event synchronize")

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for it."""
        queue = stream.state if stream is not None else state.require().runtime.stream
        queue.free_at = max(queue.free_at, self._time or 0.0)
        queue.real_free_at = max(queue.real_free_at, self._real)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from here to ``end_event``; both must have been reached."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if max(self._time, end_event._time) > state.require().runtime.clock:
            raise RuntimeError(
                "CUDA error: device not ready (simulated): call torch.cuda.synchronize() or "
                "end.synchronize() before elapsed_time()."
            )
        return (end_event._time - self._time) * 1e3


class Stream:
    """``torch.cuda.Stream``: a queue of kernels; copies overlap kernels of another stream."""

    device = CUDA

    def __init__(self, device: Any = None, priority: int = 0, *, of: Any = None, **_: Any) -> None:
        runtime = state.require().runtime
        self.priority = priority
        if of is not None:
            self.state = of
        else:
            self.state = StreamState(len(runtime.streams))
            runtime.streams.append(self.state)

    @property
    def stream_id(self) -> int:
        return self.state.number

    @property
    def cuda_stream(self) -> int:
        return self.state.number

    def synchronize(self) -> None:
        """Let the host wait until the stream is empty."""
        gpu = state.require()
        gpu.flush()
        gpu.runtime.synchronize(self.state, "stream synchronize")

    def query(self) -> bool:
        """Whether all its work is done."""
        gpu = state.require()
        gpu.runtime.spend("stream query", gpu.host.query)
        return self.state.free_at <= gpu.runtime.clock

    def is_capturing(self) -> bool:
        """Whether a graph is being captured."""
        return state.require().runtime.capture is not None

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event at its end."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work wait for what ``stream`` holds now."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._context = stream(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.state is self.state

    def __hash__(self) -> int:
        return hash(id(self.state))


class stream:
    """``torch.cuda.stream(s)``: work queued inside goes to ``s``."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> stream:
        runtime = state.require().runtime
        self._before = runtime.stream
        if self.stream is not None:
            runtime.stream = self.stream.state
        return self

    def __exit__(self, *exception: object) -> None:
        state.require().runtime.stream = self._before


class device:
    """``torch.cuda.device(0)``: there is one device, so nothing to switch."""

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self.idx = 0

    def __enter__(self) -> device:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
