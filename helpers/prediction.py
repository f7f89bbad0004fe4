"""Predict and lock: the first answer stays, so that the distance to it means something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helpers.evidence import Evidence, Record, plain


class PredictionError(ValueError):
    """A prediction that cannot be locked. The sentence says what to give instead."""


def lock(
    evidence: Evidence,
    exercise: str,
    value: Any,
    *,
    label: str = "",
    unit: str = "",
    options: Sequence[str] | None = None,
    device: Mapping[str, Any] | None = None,
) -> tuple[Record, bool]:
    """Lock a prediction; returns its record and whether it was locked before.

    A positive finite number, or one of `options`. Once locked it stays, whatever is given later,
    until the exercise is reset: a prediction made after the measurement is none. `device` says for
    which machine it was made.
    PredictionError says in one sentence what cannot be a prediction.
    """
    if locked := evidence.latest(exercise, "prediction", label):
        return locked, True
    value = plain(value)
    if options is not None:
        word = value.strip().lower() if isinstance(value, str) else ""
        value = word if word in options else word.removesuffix("bound").rstrip(" -_") or value
        if value not in options:
            raise PredictionError(
                f"{value!r} is not one of the options; choose from: {', '.join(options)}."
            )
    elif isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise PredictionError(
            f"A prediction is one positive number{f' in {unit}' if unit else ''}, not {value!r}."
        )
    record = evidence.add(
        Record(
            exercise,
            "prediction",
            value,
            label=label,
            unit=unit,
            device=device or {},
            seed=evidence.seed,
        )
    )
    return record, False
