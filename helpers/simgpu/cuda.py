"""``torch.cuda`` of the simulated GPU: waiting, properties, memory, seeds, and the whole list."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from helpers.simgpu import model, state
from helpers.simgpu.factories import check_device
from helpers.simgpu.graphs import CUDAGraph, graph
from helpers.simgpu.streams import Event, Stream, device, stream


def synchronize(device: Any = None) -> None:
    """``torch.cuda.synchronize``."""
    check_device(device)
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
    check_device(device)
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
    check_device(device)
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
        "set_device": check_device, "device": device, "_DeviceGuard": device,
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
        "get_device_name": lambda device=None: (check_device(device), current().name)[1],
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
