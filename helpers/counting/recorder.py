"""Private: run a function and note each ATen operation that it asks for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from helpers.counting.conventions import ONE_KERNEL
from helpers.counting.ledger import Ledger
from helpers.counting.op import Op, account
from helpers.counting.rules import rule_of


class Recorder:
    """The operations of one run, in order, and the ledger of its least traffic."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.ledger = Ledger()
        self.failed: str | None = None  # the innermost operation that raised
        self.paused = False

    def record(self, func: Any, args: tuple, kwargs: dict, out: Any) -> None:
        entry = account(func, args, kwargs, out)
        self.ops.append(entry.op)
        self.ledger.add(entry, out)

    def whole(self, overload: Any, call: Callable, args: tuple, kwargs: dict) -> Any:
        """Run a composite operation and note it as one, whatever it is made of here."""
        if self.paused:
            return call(*args, **kwargs)
        self.paused = True
        try:
            out = call(*args, **kwargs)
            if "attention" in overload.name():
                out = _laid_out_as_on_a_gpu(kwargs["query"] if "query" in kwargs else args[0], out)
        finally:
            self.paused = False
        self.record(overload, args, kwargs, out)
        return out

    @contextmanager
    def blame(self, name: Callable[[], str]) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.failed = self.failed or name()
            raise


def _laid_out_as_on_a_gpu(query: Any, out: Any) -> Any:
    """The meta device forgets that fused attention keeps the query's order of dimensions.

    Without this, the usual transpose and reshape after it would be counted as a copy.
    """
    if out.is_meta and out.dim() == 4 and query.transpose(1, 2).is_contiguous():
        return out.transpose(1, 2).contiguous().transpose(1, 2)
    return out


@contextmanager
def recording() -> Iterator[Recorder]:
    """Note what runs inside, on this thread and in the backward passes it starts."""
    import torch
    from torch.nn import functional

    recorder = Recorder()
    dispatch, function = _modes()
    with ExitStack() as stack:
        stack.enter_context(eager())
        stack.enter_context(dispatch(recorder))
        stack.enter_context(function(recorder))
        # A function mode is off inside the Python functions of torch.nn.functional, so attention
        # inside multi_head_attention_forward would pass it by; and a simulated GPU has its own.
        for module, name in (
            (functional, "scaled_dot_product_attention"), (functional, "rms_norm"),
            (torch, "rms_norm"),
        ):  # fmt: skip
            original = getattr(module, name)
            stack.callback(setattr, module, name, original)
            setattr(module, name, _noting(recorder, original, _overload(name)))
        yield recorder


def _noting(recorder: Recorder, original: Callable, overload: Any) -> Callable:
    @functools.wraps(original)
    def noting(*args: Any, **kwargs: Any) -> Any:
        return recorder.whole(overload, original, args, kwargs)

    return noting


def _overload(name: str) -> Any:
    import torch

    return getattr(torch.ops.aten, name).default


@contextmanager
def eager() -> Iterator[None]:
    """Let compiled functions run uncompiled.

    Without this, TorchDynamo meets our dispatch mode, gives the function up, and never compiles
    it again. A simulated GPU models torch.compile itself and needs no TorchDynamo.
    """
    import torch

    if hasattr(torch.cuda, "_brrr_trace") and "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@functools.cache
def _modes() -> tuple[type, type]:
    from torch.overrides import TorchFunctionMode, resolve_name
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatch(TorchDispatchMode):
        def __init__(self, recorder: Recorder) -> None:
            super().__init__()
            self.recorder = recorder

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            kwargs = kwargs or {}
            if self.recorder.paused:
                return func(*args, **kwargs)
            if rule_of(func).composite:  # in inference mode only: see what it is made of
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
            if rule_of(func).whole:
                with self.recorder.blame(lambda: str(func)):
                    return self.recorder.whole(func, func, args, kwargs)
            with self.recorder.blame(lambda: str(func)):
                out = func(*args, **kwargs)
            self.recorder.record(func, args, kwargs, out)
            return out

    class Function(TorchFunctionMode):
        def __init__(self, recorder: Recorder) -> None:
            super().__init__()
            self.recorder = recorder

        def __torch_function__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
        ) -> Any:
            with self.recorder.blame(lambda: resolve_name(func) or str(func)):
                name = getattr(func, "__name__", "")
                if name in ONE_KERNEL:
                    return self.recorder.whole(_overload(name), func, args, kwargs or {})
                return func(*args, **(kwargs or {}))

    return Dispatch, Function
