"""``torch.compile`` of the simulated GPU: fuses pointwise runs, compiles at the first call.

The function itself runs as written, once per call; what is modelled is which kernels a compiler
would have made of it (``fuse``), what the host pays for a compiled call, the time of the first call
for each combination of shapes, and the limit on recompilation, after which calls are eager. A value
asked for inside is a graph break: what was gathered so far runs, then it goes on. The backward pass
of a compiled function runs as in eager.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch

from helpers.simgpu import fuse, state
from helpers.simgpu.runtime import Captured

RECOMPILE_LIMIT = 8
"""Default of ``torch._dynamo.config.recompile_limit``."""

_generation = 0


def compile(model: Any = None, *, mode: str | None = None, disable: bool = False, **options: Any):
    """``torch.compile`` for functions, modules and as a decorator."""
    if model is None:
        return lambda function: compile(function, mode=mode, disable=disable, **options)
    if disable:
        return model
    if isinstance(model, torch.nn.Module):
        return CompiledModule(model, mode)
    return Compiled(model, mode)


def module_compile(self: torch.nn.Module, *args: Any, mode: str | None = None, **_: Any) -> None:
    """``module.compile()``: calls of the module are compiled from now on."""
    self._compiled_call_impl = Compiled(self._call_impl, mode)


def reset() -> None:
    """``torch._dynamo.reset``: everything compiles again."""
    global _generation
    _generation += 1


class Compiled:
    """A compiled function. Outside the simulation it calls the function as it is."""

    def __init__(self, function: Callable, mode: str | None = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self._torchdynamo_orig_callable = self.function = function
        self.mode = mode
        self._seen: set[Any] = set()
        self._generation = _generation

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        gpu = state.active()
        if gpu is None or gpu.recorder is not None or _told_to_run_eagerly():
            return self.function(*args, **kwargs)
        if self._generation != _generation:
            self._seen.clear()
            self._generation = _generation
        key = (_guard(args), _guard(kwargs), torch.is_grad_enabled())
        first = key not in self._seen
        if first and len(self._seen) >= _limit():
            warnings.warn(
                f"torch.compile (simulated) hit recompile_limit ({_limit()}) for "
                f"{getattr(self.function, '__name__', 'a function')}: it runs eagerly from here "
                "on for new shapes. Call torch._dynamo.reset() between sizes.",
                stacklevel=2,
            )
            return self.function(*args, **kwargs)
        session = Session(gpu, self.mode)
        with session:
            if not first:
                gpu.runtime.spend("guards", gpu.host.guard)
            result = self.function(*args, **kwargs)
            if first:
                session.compile()
        if first:
            self._seen.add(key)
        return result


class CompiledModule(torch.nn.Module):
    """What ``torch.compile(module)`` returns: shares the module's parameters."""

    def __init__(self, module: torch.nn.Module, mode: str | None) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module.__call__, mode)
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)


class Session:
    """One call of a compiled function: gathers its kernels and queues them at the end."""

    def __init__(self, gpu: Any, mode: str | None) -> None:
        self.gpu = gpu
        self.graphed = mode in ("reduce-overhead", "max-autotune")
        self.fused = fuse.Recorder(gpu)
        self.assign, self.finished = self.fused.assign, self.fused.finished

    def __enter__(self) -> Session:
        self.gpu.recorder = self
        return self

    def __exit__(self, kind: Any, *rest: object) -> None:
        try:
            if kind is None:
                self.interrupt()
        finally:
            self.gpu.recorder = None

    def compile(self) -> None:
        """Spend the time of the first call."""
        host = self.gpu.host
        seconds = host.compile_base + host.compile_operation * self.fused.operations
        self.gpu.runtime.spend("torch.compile (first call)", seconds)

    def interrupt(self) -> None:
        """Queue what was gathered so far: the end of the function, or a graph break."""
        gpu, host = self.gpu, self.gpu.host
        kernels = self.fused.kernels()
        if self.graphed and gpu.runtime.capture is None:
            if kernels:
                gpu.runtime.replay([Captured(task, operands) for task, operands, _ in kernels])
            return
        for task, operands, generated in kernels:
            launch = host.compiled_launch if generated else host.launch
            gpu.runtime.launch(task, operands, 0.0, launch)


def _limit() -> int:
    return getattr(torch._dynamo.config, "recompile_limit", RECOMPILE_LIMIT)


def _guard(value: Any) -> Any:
    """What a compiled function is specialised to."""
    if isinstance(value, torch.Tensor):
        return (value.shape, value.stride(), value.dtype, value.device.type, value.requires_grad)
    if isinstance(value, list | tuple):
        return tuple(_guard(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _guard(item)) for key, item in value.items())
    if isinstance(value, int | float | str | bool | type(None)):
        return (type(value), value)
    return id(value)


def _told_to_run_eagerly() -> bool:
    """``torch.compiler.set_stance("force_eager")``."""
    return torch._dynamo.eval_frame._stance.stance == "force_eager"
