"""Graders: pure functions over plain data, one engine and one module per notebook."""

from helpers.checks.engine import (
    Context,
    Outcome,
    exercises,
    find,
    grade,
    hints,
    inputs,
    not_started,
)

__all__ = ["Context", "Outcome", "exercises", "find", "grade", "hints", "inputs", "not_started"]
