"""Private: how many kernels a function really starts, from whoever knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from helpers import counting
from helpers.counting.rules import rule_of


def kernels(call: Callable[[], Any], fn: object) -> counting.Kernels:
    """`counting.kernels` for a function that needs no arguments; `fn` is named in errors."""
    import torch

    trace = getattr(torch.cuda, "_brrr_trace", None)
    try:
        if trace is not None:
            return _modelled(call, trace)
        if torch.cuda.is_available():
            return _profiled(call)
        return _on_cpu(call)
    except counting.CountError:
        raise
    except Exception as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        message = str(error).strip().split("\n")[0].rstrip(".") or "no message"
        raise counting.CountError(
            f"{'your lambda' if name == '<lambda>' else name} raised {type(error).__name__} while "
            f"its kernels were counted: {message}; run it once by itself and make that work first."
        ) from error


def _modelled(call: Callable[[], Any], trace: Callable[[], list[str]]) -> counting.Kernels:
    call()  # compiles
    trace()
    before = len(trace())  # 0 if reading clears it, else what came before
    call()
    names = tuple(trace())[before:]
    return counting.Kernels(len(names), names, "modelled")


def _profiled(call: Callable[[], Any]) -> counting.Kernels:
    import torch
    from torch.profiler import ProfilerActivity, profile

    _quiet()
    call()
    torch.cuda.synchronize()
    for _ in range(2):  # the first trace of a process may come back empty
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            call()
            torch.cuda.synchronize()
        names = tuple(
            event.name
            for event in prof.events()
            if event.device_type == torch.autograd.DeviceType.CUDA
            and not getattr(event, "is_user_annotation", False)
        )
        if names:
            return counting.Kernels(len(names), names, "profiler")
    note = "the profiler reported no kernels on the GPU, so eager operations were counted instead"
    return _eager(call, f"{note}; is the function's work on the GPU?")


def _eager(call: Callable[[], Any], note: str = "") -> counting.Kernels:
    work = counting.count(call)
    names = tuple(op.name for op in work.ops if op.kind != "view")
    return counting.Kernels(len(names), names, "eager operations", note)


def _on_cpu(call: Callable[[], Any]) -> counting.Kernels:
    import torch

    with torch.compiler.set_stance("default", force_backend=_inductor_with_names):
        ran, names = _compiled_names(call)
    if not ran:
        return _eager(call)
    if names is None:
        note = "the function is compiled, and this PyTorch does not show into how many kernels"
        return counting.Kernels(None, (), "cannot tell", note)
    note = "C++ kernels as Inductor makes them, and library calls between them, seen on the CPU"
    return counting.Kernels(len(names), names, "profiler", note)


_runs = 0
_generated = 0


def _inductor_with_names(graph: Any, example_inputs: list[Any], **_: Any) -> Callable[..., Any]:
    """Inductor with kernels that the profiler can see, and a note of each compiled call.

    One function for good: TorchDynamo keeps compiled code apart by backend, so that the learner's
    own compiled code stays as it is.
    """
    from torch._inductor import metrics
    from torch._inductor.compile_fx import compile_fx

    visible = {"cpp.enable_kernel_profile": True, "fx_graph_cache": False}
    before = metrics.generated_kernel_count
    compiled = compile_fx(graph, example_inputs, config_patches=visible)
    generated = metrics.generated_kernel_count > before

    def run(*inputs: Any) -> Any:
        global _runs, _generated
        _runs += 1
        _generated += generated
        return compiled(*inputs)

    return run


def _compiled_names(call: Callable[[], Any]) -> tuple[bool, tuple[str, ...] | None]:
    """Whether compiled code ran, and the kernels seen, or None if generated ones stay unseen."""
    from torch.profiler import ProfilerActivity, profile

    _quiet()
    runs, generated = _runs, _generated
    call()
    if _runs == runs:
        return False, None
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        call()
    roots = [event for event in prof.events() if event.cpu_parent is None]
    names = tuple(_walk(roots))
    seen = any("cpp_fused" in name for name in names)
    return True, names if seen or _generated == generated else None


def _walk(events: list[Any]) -> Iterator[str]:
    """The events that are kernels: generated code, and the outermost calls that do work."""
    for event in events:
        if "cpp_fused" in event.name:
            yield event.name
            continue
        verdict = _is_work(event.name)
        if verdict:
            yield event.name
        elif verdict is None:
            yield from _walk(event.cpu_children)


def _is_work(name: str) -> bool | None:
    """True for one kernel, False for a view, None for something made of other operations."""
    import torch

    namespace, _, operation = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace, None), operation, None) if operation else None
    if packet is None or not hasattr(packet, "overloads"):
        return None
    overload = getattr(packet, packet.overloads()[0])
    rule = rule_of(overload)
    if rule.whole or not rule.composite:
        return rule.kind != "view"
    return None


def _quiet() -> None:
    """Keep the profiler's own log lines out of notebooks; it reads the level at its first use."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
