"""A learner's function as plain data: called on the judge's inputs, its results kept."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

from helpers import counting
from helpers.checks.engine import Exercise
from helpers.evidence import PLACEHOLDER, plain
from helpers.session import Machine

_EMPTY = {
    "RESUME",
    "NOP",
    "POP_TOP",
    "LOAD_CONST",
    "RETURN_CONST",
    "RETURN_VALUE",
    "COPY_FREE_VARS",
    "CACHE",
    "LOAD_SMALL_INT",
}


def untouched(answer: Any) -> bool:
    """True for `...` and for a function whose body is a docstring, `pass` or `...`."""
    code = getattr(answer, "__code__", None)
    if code is None:
        return answer is ...
    steps = list(dis.get_instructions(code))
    constants = {step.argval for step in steps if step.opname in ("LOAD_CONST", "RETURN_CONST")}
    return all(step.opname in _EMPTY for step in steps) and constants <= {None, ...}


def of_function(fn: Callable, exercise: Exercise, machine: Machine, seed: int) -> Any:
    """What `fn` returns on the inputs that this learner's seed makes, as plain data.

    One {"value": ...} or {"error": "Type: sentence"} per call. For an exercise on the device the
    lists become tensors there, and the number of kernels is counted as well. An exercise that
    observes runs the function itself.
    """
    if untouched(fn):
        return dict(PLACEHOLDER)
    calls = exercise.inputs(seed)
    if exercise.observe:
        return exercise.observe(fn, calls, machine)
    if not exercise.on_device:
        return [_returned(fn, call) for call in calls]
    import torch

    tensors = [
        [torch.tensor(part, dtype=machine.dtype, device=machine.device) for part in call]
        for call in calls
    ]
    results = [_returned(fn, call, machine.device) for call in tensors]
    counted = None
    if all("value" in result for result in results):
        try:
            counted = counting.kernels(fn, *tensors[0]).n
        except counting.CountError as error:  # it ran once and fails when it is run again
            results[0] = {"error": str(error)[:300]}
    return {"calls": results, "kernels": counted}


def _returned(fn: Callable, arguments: list[Any], device: str | None = None) -> dict[str, Any]:
    """The value that one call returned, and whether it left the device; or its error in words."""
    try:
        result = fn(*arguments)
        left = device is not None and getattr(getattr(result, "device", None), "type", "") != device
        return {"value": plain(result)} | ({"left": True} if left else {})
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit: whatever a function does becomes feedback
        try:
            said = str(error)
        except Exception:
            said = "an error that cannot be printed"
        return {"error": f"{type(error).__name__}: {said}"[:300]}
