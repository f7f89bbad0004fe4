"""``torch.compile`` of the simulated GPU: fuses pointwise runs, compiles at the first call.

The function itself runs as written, once per call; what is modelled is which kernels a compiler
would have made of it (``fuse``), what the host pays for a compiled call, the time of the first call
for each combination of shapes, and the limit on recompilation, after which calls are eager. A value
asked for inside is a graph break: what was gathered so far runs, then it goes on. The backward pass
of a compiled function runs as in eager.

Only the default backend, "inductor", makes kernels of its own. "cudagraphs" starts the kernels of
eager mode with one launch; every other backend runs them one by one.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from helpers.simgpu import fuse, state
from helpers.simgpu.runtime import Captured

RECOMPILE_LIMIT = 8
"""Default of ``torch._dynamo.config.recompile_limit``."""

TRACE_SECONDS = 0.1
"""First call with a backend that generates no code; an assumption."""

_generation = 0
_unfused_calls = 0


def compile(
    model: Any = None, *, mode: str | None = None, disable: bool = False, backend: Any = None,
    **_: Any,
):  # fmt: skip
    """``torch.compile`` for functions, modules and as a decorator.

    Raises TypeError for what cannot be called and ``torch._dynamo.exc.InvalidBackend`` for the name
    of a backend that PyTorch does not know. A backend of your own is not called, and a warning says
    so: nothing is traced here that could be handed to it.
    """
    if model is None:
        return functools.partial(compile, mode=mode, disable=disable, backend=backend)
    if not callable(model):
        kind = "Tensor" if isinstance(model, torch.Tensor) else type(model).__name__
        raise TypeError(
            f"torch.compile needs a function or module, not a {kind}: hand over the function "
            "itself without calling it, torch.compile(f) instead of torch.compile(f(x))."
        )
    backend = _backend(backend)
    if disable:
        return model
    if isinstance(model, torch.nn.Module):
        return CompiledModule(model, mode, backend)
    return Compiled(model, mode, backend)


def module_compile(
    self: torch.nn.Module, *args: Any, mode: str | None = None, backend: Any = None, **_: Any
) -> None:
    """``module.compile()``: calls of the module are compiled from now on."""
    self._compiled_call_impl = Compiled(self._call_impl, mode, _backend(backend))


def _backend(backend: Any) -> str:
    """Return "inductor", "cudagraphs" or, for every other backend, "eager"."""
    if backend is None:
        return "inductor"
    if callable(backend):
        warnings.warn(
            f"The simulated GPU does not call the backend {getattr(backend, '__name__', backend)}: "
            "each operation runs as a kernel of its own.",
            stacklevel=3,
        )
        return "eager"
    if backend in ("inductor", "cudagraphs"):
        return backend
    torch._dynamo.lookup_backend(backend)  # raises InvalidBackend
    return "eager"


def reset() -> None:
    """``torch._dynamo.reset``: everything compiles again."""
    global _generation
    _generation += 1


class Compiled:
    """A compiled function. Outside the simulation it calls the function as it is."""

    def __init__(
        self, function: Callable, mode: str | None = None, backend: str = "inductor"
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self._torchdynamo_orig_callable = self.function = function
        self.mode, self.backend = mode, backend
        self._seen: set[Any] = set()
        self._generation = _generation

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        gpu = state.active()
        inside = gpu is not None and (gpu.recorder is not None or _unfused_calls)
        if gpu is None or inside or _told_to_run_eagerly():
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
        if not first:
            gpu.runtime.spend("guards", gpu.host.guard)
        if self.backend == "eager":
            if first:
                gpu.runtime.spend("torch.compile (first call)", TRACE_SECONDS)
            with _unfused():
                result = self.function(*args, **kwargs)
        else:
            session = Session(gpu, self.mode, self.backend)
            with session:
                result = self.function(*args, **kwargs)
                if first:
                    session.compile()
        if first:
            self._seen.add(key)
        return result


class CompiledModule(torch.nn.Module):
    """What ``torch.compile(module)`` returns: shares the module's parameters."""

    def __init__(
        self, module: torch.nn.Module, mode: str | None, backend: str = "inductor"
    ) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled"] = Compiled(module.__call__, mode, backend)
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)


class Unfused(fuse.Recorder):
    """A kernel for each operation, rounded as in eager mode."""

    def _choose(self, plan: Any, reads: list[int], before: list[fuse.Group]) -> fuse.Group:
        group = fuse.Group(len(self.groups), plan.op.elements, fusable=False)
        self.groups.append(group)
        return group

    def assign(self, plan: Any, reads: list[Any], writes: list[Any]) -> None:
        super().assign(plan, reads, writes)  # no group to keep fp32 values for


@contextlib.contextmanager
def _unfused() -> Iterator[None]:
    """Compiled functions called inside belong to the outer one: they do not fuse either."""
    global _unfused_calls
    _unfused_calls += 1
    try:
        yield
    finally:
        _unfused_calls -= 1


class Session:
    """One call of a compiled function: gathers its kernels and queues them at the end."""

    def __init__(self, gpu: Any, mode: str | None, backend: str) -> None:
        self.gpu = gpu
        self.generates = backend == "inductor"
        self.graphed = mode in ("reduce-overhead", "max-autotune") or not self.generates
        self.fused = fuse.Recorder(gpu) if self.generates else Unfused(gpu)
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
        seconds = TRACE_SECONDS
        if self.generates:
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
