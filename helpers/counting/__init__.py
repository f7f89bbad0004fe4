"""Counting: the FLOPs, bytes and kernels that a PyTorch function asks for, without timing it.

Nothing here is measured. `count` runs the function once and adds up what each operation asks for;
what the hardware then does (caches, kernels that split or merge operations) is for the profiler.

* FLOPs: torch.utils.flop_counter's formulas for matrix products, convolutions and attention, with
  our own for what it leaves at zero (matrix-vector products, attention on the CPU, recurrent
  layers); one FLOP per element and function for pointwise operations, so cos counts as one; the
  conventions for reductions stand in helpers/counting/conventions.py.
* Bytes, unfused: every operation reads its inputs from memory and writes its result. Views are
  free, an expanded tensor has the bytes that it stores, a tensor passed twice is read once, a
  gather reads the gathered rows, an in-place result is written once.
* Bytes, ideal: every tensor from outside is read once, every tensor that is returned or changed
  outside, and every fresh gradient, is written once; what lies between is free.
* `scaled_dot_product_attention` and `rms_norm` are one operation each, as on a GPU, although on
  the CPU and the meta device they are made of several.
* A compiled function is run uncompiled: the count is what it asks for, and `bytes_ideal` is what
  the compiler can at best get down to. `kernels` says what it really got down to.

Not seen: kernels that do not go through PyTorch's dispatcher (a Triton or CUDA kernel of your own,
or NumPy), work in other threads than the backward pass, casts that autocast adds inside attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from helpers.counting.op import Op, itemsize, op_work
from helpers.output import NotebookError

__all__ = ["CountError", "Kernels", "Op", "Work", "count", "itemsize", "kernels", "op_work"]


class CountError(NotebookError):
    """The function could not be counted; one sentence: what, where, what to do."""


@dataclass(frozen=True)
class Work:
    """What one run of a function asks for. FLOP and bytes."""

    ops: tuple[Op, ...]
    """Every dispatched operation in order, views included (they cost host time)."""
    bytes_ideal: int
    """Outside tensors once, results once: the least any fusion can reach."""

    @property
    def flops(self) -> int:
        return sum(op.flops for op in self.ops)

    @property
    def matmul_flops(self) -> int:
        """Matrix products, convolutions and attention: what FlopCounterMode counts, and the
        products that it leaves out."""
        return sum(op.flops for op in self.ops if op.kind in ("matmul", "attention"))

    @property
    def bytes_unfused(self) -> int:
        return sum(op.bytes for op in self.ops)

    @property
    def kernels(self) -> int:
        """Operations that are not views. In eager mode each is at least one kernel."""
        return sum(op.calls for op in self.ops if op.kind != "view")

    @property
    def intensity(self) -> float:
        """FLOP per byte, unfused."""
        return _ratio(self.flops, self.bytes_unfused)

    @property
    def ideal_intensity(self) -> float:
        """FLOP per byte, with every outside tensor moved once."""
        return _ratio(self.flops, self.bytes_ideal)

    def by_name(self) -> list[Op]:
        """One Op per operation name and dtype with calls, FLOPs and bytes added up, most bytes
        first; `shapes` are those of the call that moved most."""
        groups: dict[tuple[str, str, str], list[Op]] = {}
        for op in self.ops:
            groups.setdefault((op.name, op.dtype, op.kind), []).append(op)
        merged = [
            replace(
                max(group, key=lambda op: op.bytes),
                calls=sum(op.calls for op in group),
                flops=sum(op.flops for op in group),
                bytes_read=sum(op.bytes_read for op in group),
                bytes_written=sum(op.bytes_written for op in group),
                elements=sum(op.elements for op in group),
            )
            for group in groups.values()
        ]
        return sorted(merged, key=lambda op: (op.bytes, op.flops), reverse=True)

    def __str__(self) -> str:
        from helpers.counting.table import table

        return table(self)


def _ratio(flops: int, count: int) -> float:
    return flops / count if count else (float("inf") if flops else 0.0)


def count(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Work:
    """Run fn(*args, **kwargs) once and return the work that it asked for.

    The tensors may be on any device; on "meta" nothing is computed and no memory is needed.
    Inference mode, no_grad and the backward pass are seen alike. Raises CountError, naming the
    operation, when fn raises.
    """
    from helpers.counting.recorder import recording

    check_callable(fn, "count")
    with recording() as recorder:
        try:
            result = fn(*args, **kwargs)
        except CountError:
            raise
        except Exception as error:
            raise _failed(error, fn, recorder) from error
    return Work(tuple(recorder.ops), recorder.ledger.total(result))


@dataclass(frozen=True)
class Kernels:
    """How many kernels one call of a function started, and how that is known.

    how: "profiler" (kernels, and copies and fills of device memory, that torch.profiler saw run),
    "modelled" (by the simulated GPU), "eager operations" (dispatched operations that are not
    views: a lower bound) or "cannot tell" (then n is None and `note` says why).
    """

    n: int | None
    names: tuple[str, ...]
    how: str
    note: str = ""

    def __str__(self) -> str:
        number = "unknown" if self.n is None else f"{self.n} kernel{'s' * (self.n != 1)}"
        names = ": " + ", ".join(self.names) if self.names else ""
        return f"{number} ({self.how}){names}" + (f"\n{self.note}" if self.note else "")


def kernels(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Kernels:
    """Run fn(*args, **kwargs) a few times and return the kernels of one warm call.

    A GPU is asked by its profiler, a simulated one by its trace. On the CPU a compiled function is
    compiled once more with named kernels, which the profiler then sees; other functions are
    counted in eager operations. Raises CountError when fn raises.
    """
    from helpers.counting import kernel_count

    check_callable(fn, "kernels")
    return kernel_count.kernels(lambda: fn(*args, **kwargs), fn)


def check_callable(fn: object, caller: str) -> None:
    """CountError unless fn can be called."""
    if not callable(fn):
        raise CountError(
            f"{caller} needs a function to run and got {type(fn).__name__}: write "
            f"{caller}(lambda: ...), or {caller}(f, x) for f(x), without calling it yourself."
        )


def _failed(error: Exception, fn: object, recorder: Any) -> CountError:
    name = getattr(fn, "__name__", type(fn).__name__)
    name = "your lambda" if name == "<lambda>" else name
    last = recorder.ops[-1].name if recorder.ops else None
    where = recorder.failed or (f"Python after {last}" if last else "Python before any operation")
    message = str(error).strip().split("\n")[0].rstrip(".") or "no message"
    return CountError(
        f"{name} raised {type(error).__name__} in {where}: {message}; run it once by itself and "
        f"make that work first."
    )
