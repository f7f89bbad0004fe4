"""Private: run a function and note each ATen operation that it asks for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from helpers._ledger import Ledger
from helpers._op import Op, account
from helpers._rules import rule_of


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
    sdpa = functional.scaled_dot_product_attention
    overload = torch.ops.aten.scaled_dot_product_attention.default

    @functools.wraps(sdpa)
    def attention(*args: Any, **kwargs: Any) -> Any:
        return recorder.whole(overload, sdpa, args, kwargs)

    with ExitStack() as stack:
        stack.enter_context(eager())
        stack.enter_context(dispatch(recorder))
        stack.enter_context(function(recorder))
        # A function mode is off inside the Python functions of torch.nn.functional, so that
        # attention inside multi_head_attention_forward would pass it by.
        stack.callback(setattr, functional, "scaled_dot_product_attention", sdpa)
        functional.scaled_dot_product_attention = attention
        yield recorder


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
    import torch
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode, resolve_name
    from torch.utils._python_dispatch import TorchDispatchMode

    aten = torch.ops.aten
    wholes = {
        torch._C._nn.scaled_dot_product_attention: aten.scaled_dot_product_attention.default,
        functional.rms_norm: aten.rms_norm.default,
        torch.rms_norm: aten.rms_norm.default,
    }

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
                if func in wholes:
                    return self.recorder.whole(wholes[func], func, args, kwargs or {})
                return func(*args, **(kwargs or {}))

    return Dispatch, Function
