"""Graders: pure functions over plain data, one engine and one module per notebook."""

from helpers.checks.engine import (
    Context,
    Exercise,
    Outcome,
    case,
    exercises,
    find,
    grade,
    hints,
    inputs,
    not_started,
)

__all__ = [
    "Context", "Exercise", "Outcome", "case", "exercises", "find", "grade", "hints", "inputs",
    "not_started",
]  # fmt: skip
