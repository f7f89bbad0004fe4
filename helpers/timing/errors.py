"""Why a measurement could not be made, in one sentence each.

Private: `MeasureError` is imported from `helpers.timing`.
"""

import functools
import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from helpers.output import NotebookError

_ASKED_CUDA = re.compile(r"Tried to allocate ([\d.]+ [KMGT]?i?B)")
_ASKED_CPU = re.compile(r"tried to allocate (\d+) bytes")


class MeasureError(NotebookError):
    """A measurement that could not be made; one sentence: what, where, what to do."""


def check_callable(fn: object, position: str) -> None:
    """Raise MeasureError unless `fn` can be called without arguments as far as one can see."""
    if not callable(fn):
        raise MeasureError(
            f"{position} is {_a(fn)}, not a function: measure needs something to call again and "
            f"again, so write measure(lambda: ...), without calling it yourself."
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return  # built-in callables may have none; calling them will tell
    try:
        signature.bind()
    except TypeError as error:
        raise MeasureError(
            f"{name_of(fn)} cannot be called without arguments ({error}): bind them, as in "
            f"measure(lambda: f(x))."
        ) from None


def check_result(result: object, name: str) -> None:
    """Raise MeasureError when what `name` handed back is a function: its work was never done."""
    if inspect.isroutine(result) or isinstance(result, functools.partial):
        raise MeasureError(
            f"{name} returned a function ({name_of(result)}) instead of doing the work: "
            f"did you forget to call it? Add the ()."
        )


def returned_at_once(name: str, on_gpu: bool) -> MeasureError:
    """The error for a function that did no work that the clock can see."""
    if on_gpu:
        return MeasureError(
            f"{name} returned at once: nothing was queued on the GPU between the two "
            f"events, so check that it does its work when called, on the current stream, and "
            f"that its tensors are on the GPU."
        )
    return MeasureError(
        f"{name} returned at once: its time cannot be told from that of an empty "
        f"function, so check that it does its work when called."
    )


@contextmanager
def stage(fn: Callable[[], object], name: str, which: str) -> Iterator[None]:
    """Turn what `fn`, called `name`, raises inside into a MeasureError that says in which call."""
    try:
        yield
    except MeasureError:
        raise
    except Exception as error:
        if _is_out_of_memory(error):
            sentence = _out_of_memory(error, name, which)
            # The stack of the failed call still holds its tensors: let go, then give them back.
            traceback.clear_frames(error.__traceback__)
            error.__traceback__ = None
            _free_gpu_cache()
            raise MeasureError(sentence) from None
        message = str(error).strip().split("\n")[0].rstrip(".") or "no message"
        raise MeasureError(
            f"{name} raised {type(error).__name__} in {which}{_line(error, fn)}: "
            f"{message}; run it once by itself and make that work first."
        ) from error


def name_of(fn: object) -> str:
    """What to call `fn` in a sentence."""
    if isinstance(fn, functools.partial):
        return f"partial({name_of(fn.func)})"
    name = getattr(fn, "__name__", type(fn).__name__)
    return "Your lambda" if name == "<lambda>" else str(name)


def _a(value: object) -> str:
    kind = type(value).__name__
    return "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _line(error: BaseException, fn: Callable[[], object]) -> str:
    """Where in the learner's own file it went wrong, when that can be told."""
    code = getattr(fn, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if code is not None and f.filename == code.co_filename]
    if not own:
        return ""
    text = f" `{own[-1].line}`" if own[-1].line else ""
    return f", line {own[-1].lineno}{text}"


def _is_out_of_memory(error: Exception) -> bool:
    import torch

    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def _out_of_memory(error: Exception, name: str, which: str) -> str:
    import torch

    on_gpu = isinstance(error, torch.cuda.OutOfMemoryError)
    asked = ""
    if match := _ASKED_CUDA.search(str(error)):
        asked = f" when {match[1]} more were asked for"
    elif match := _ASKED_CPU.search(str(error)):
        asked = f" when {int(match[1]) / 2**30:.4g} GiB more were asked for"
    freed = " (its cache has been freed)" if on_gpu else ""
    return (
        f"{name} ran out of {'GPU' if on_gpu else 'host'} memory in {which}{asked}: try a "
        f"smaller size, say half, or del the tensors you no longer need{freed}."
    )


def _free_gpu_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
