"""``torch.cuda`` of the simulated GPU: events, streams, graphs, properties, memory, seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from helpers.simgpu import model, state
from helpers.simgpu.factories import is_cuda
from helpers.simgpu.runtime import Captured, StreamState
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
        _check(device)
        self.idx = 0

    def __enter__(self) -> device:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class CUDAGraph:
    """``torch.cuda.CUDAGraph``: kernels recorded once, started together by ``replay``."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._kernels: list[Captured] | None = None
        self._jobs: list[Any] = []

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record from here on instead of running."""
        gpu = state.require()
        if gpu.runtime.capture is not None:
            raise RuntimeError("CUDA error: a graph is being captured already (simulated).")
        gpu.runtime.capture, gpu.jobs, gpu.undo = [], [], []

    def capture_end(self) -> None:
        """End of the recording; what it changed in place is as it was before."""
        gpu = state.require()
        gpu.flush()
        self._kernels, self._jobs = gpu.runtime.capture, gpu.jobs or []
        gpu.runtime.capture = gpu.jobs = None
        for inner, before in reversed(gpu.undo):
            inner.copy_(before)
        gpu.undo = []

    def replay(self) -> None:
        """Run everything again, on what the static tensors hold now, for one launch."""
        if self._kernels is None:
            raise RuntimeError("CUDAGraph.replay() before capture: there is nothing to replay.")
        gpu = state.require()
        with torch.utils._mode_utils.no_dispatch():
            for job, buffers in self._jobs:
                refill(job(), buffers)
        gpu.runtime.replay(self._kernels)

    def reset(self) -> None:
        """Forget the recording."""
        self._kernels, self._jobs = None, []

    def pool(self) -> tuple[int, int]:
        """A handle that may be passed to another capture."""
        return (0, 1)

    def enable_debug_mode(self) -> None:
        """Nothing to do."""

    def debug_dump(self, debug_path: str) -> None:
        """Nothing to dump."""


def refill(result: Any, buffers: list) -> None:
    """Copy what a replayed operation gave into the tensors that the capture handed out."""
    values = result if isinstance(result, tuple | list) else (result,)
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    for new, (old, twin) in zip(tensors, buffers, strict=True):
        if new is not old:
            old.copy_(new)
        if twin is not None:
            twin.copy_(new.fp32_twin[1])


class graph:
    """``torch.cuda.graph(g)``: what runs inside is captured into ``g``."""

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, **_: Any):
        self.cuda_graph = cuda_graph

    def __enter__(self) -> None:
        synchronize()
        self.cuda_graph.capture_begin()

    def __exit__(self, kind: Any, *rest: object) -> None:
        self.cuda_graph.capture_end()
        if kind is not None:
            self.cuda_graph.reset()


def synchronize(device: Any = None) -> None:
    """``torch.cuda.synchronize``."""
    _check(device)
    gpu = state.require()
    gpu.flush()
    gpu.runtime.synchronize()


def _sleep(cycles: int) -> None:
    gpu = state.require()
    runtime = gpu.runtime
    runtime.spend("sleep kernel", gpu.host.operation)
    runtime.occupy("spin_kernel", model.Timing(cycles / model.SLEEP_CLOCK, "compute"))


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """``torch.cuda.get_device_properties``."""
    _check(device)
    gpu = state.require()
    about = gpu.device
    threads = {(7, 5): 1024, (8, 6): 1536, (8, 9): 1536}.get(about.capability, 2048)
    return SimpleNamespace(
        name=gpu.name, major=about.capability[0], minor=about.capability[1],
        total_memory=about.memory, multi_processor_count=about.sms, L2_cache_size=about.l2,
        warp_size=32, max_threads_per_multi_processor=threads, max_threads_per_block=1024,
        regs_per_multiprocessor=65536, is_integrated=0, is_multi_gpu_board=0,
    )  # fmt: skip


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes."""
    _check(device)
    gpu = state.require()
    return gpu.runtime.memory.capacity - gpu.runtime.memory.reserved, gpu.device.memory


def memory_stats(device: Any = None) -> dict[str, int]:
    """The counters that are modelled, by their usual names."""
    memory = state.require().runtime.memory
    return {
        "allocated_bytes.all.current": memory.allocated, "allocated_bytes.all.peak": memory.peak,
        "reserved_bytes.all.current": memory.reserved,
        "reserved_bytes.all.peak": memory.peak_reserved,
    }  # fmt: skip


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The same as text."""
    lines = [f"{name}: {value:,}" for name, value in memory_stats().items()]
    return "\n".join([f"Memory of {state.require().name}, bytes", *lines])


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True by default even where bf16 is emulated, as in PyTorch."""
    return including_emulation or state.require().device.has_bf16


def manual_seed(seed: int) -> None:
    """Seed the device's random numbers."""
    state.require().generator.manual_seed(int(seed))


def _check(device: Any) -> None:
    if device is None or (isinstance(device, int) and device == -1):
        return
    if not is_cuda(device):
        raise ValueError(f"Expected a cuda device, but got: {device}")


def _not_simulated(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"torch.cuda.{name} is not simulated: {instead}.")

    return refuse


def _memory(read: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda device=None: read(state.require().runtime.memory)


def functions() -> dict[str, Any]:
    """What stands in for each attribute of ``torch.cuda``, by name."""

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    def constant(value: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: value

    def current() -> Any:
        return state.require()

    return {
        "is_available": constant(True), "is_initialized": constant(True),
        "device_count": constant(1), "current_device": constant(0),
        "_lazy_init": nothing, "init": nothing, "ipc_collect": nothing,
        "set_device": _check, "device": device, "_DeviceGuard": device,
        "synchronize": synchronize, "Event": Event, "Stream": Stream, "stream": stream,
        "StreamContext": stream, "CUDAGraph": CUDAGraph, "graph": graph,
        "make_graphed_callables": _not_simulated(
            "make_graphed_callables",
            "capture with torch.cuda.graph, or use torch.compile(mode='reduce-overhead')",
        ),
        **{name: _not_simulated(name, "a modelled card has no clock, power or temperature to read")
           for name in ("utilization", "clock_rate", "temperature", "power_draw", "memory_usage")},
        "graph_pool_handle": constant((0, 1)),
        "is_current_stream_capturing": lambda: current().runtime.capture is not None,
        "current_stream": lambda device=None: Stream(of=current().runtime.stream),
        "default_stream": lambda device=None: Stream(of=current().runtime.default_stream),
        "set_stream": lambda s: setattr(current().runtime, "stream", s.state),
        "get_device_name": lambda device=None: (_check(device), current().name)[1],
        "get_device_capability": lambda device=None: current().device.capability,
        "get_device_properties": get_device_properties,
        "get_arch_list": lambda: ["sm_{}{}".format(*current().device.capability)],
        "mem_get_info": mem_get_info, "memory_stats": memory_stats,
        "memory_summary": memory_summary,
        "memory_allocated": _memory(lambda m: m.allocated),
        "max_memory_allocated": _memory(lambda m: m.peak),
        "memory_reserved": _memory(lambda m: m.reserved),
        "max_memory_reserved": _memory(lambda m: m.peak_reserved),
        "reset_peak_memory_stats": _memory(lambda m: m.reset_peak()),
        "reset_max_memory_allocated": _memory(lambda m: m.reset_peak()),
        "reset_accumulated_memory_stats": nothing,
        "empty_cache": lambda: current().runtime.memory.release_cached(),
        "is_bf16_supported": is_bf16_supported,
        "is_tf32_supported": lambda: current().device.capability >= (8, 0),
        "manual_seed": manual_seed, "manual_seed_all": manual_seed,
        "seed": lambda: current().generator.seed(), "seed_all": lambda: current().generator.seed(),
        "initial_seed": lambda: current().generator.initial_seed(),
        "get_rng_state": lambda device="cuda": current().generator.get_state(),
        "set_rng_state": lambda s, device="cuda": current().generator.set_state(s),
        "get_rng_state_all": lambda: [current().generator.get_state()],
        "set_rng_state_all": lambda states: current().generator.set_state(states[0]),
        "_sleep": _sleep,
        "_brrr_trace": lambda: [kernel.name for kernel in current().trace],
        "_brrr_mark": lambda: current().mark(),
    }  # fmt: skip
