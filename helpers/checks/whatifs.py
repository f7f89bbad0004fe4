"""What-ifs that put a verdict to the test: half the bytes, twice the arithmetic, one launch.

A bucket is more than a label where it foretells what such a change does to the time.
"""

from __future__ import annotations

from collections.abc import Mapping

WHAT_IFS = ("half the bytes", "twice the arithmetic", "one launch")
EFFECTS = ("about half", "about the same", "about double")
DECIDES = {"memory": WHAT_IFS[0], "compute": WHAT_IFS[1], "overhead": WHAT_IFS[2]}
"""The change that a bucket, and no other, must feel."""
BUCKETS = tuple(DECIDES)

SHORTER, LONGER = 0.75, 1.4
"""Factors of the time below and above which it counts as changed; wide on purpose."""


def effect(factor: float) -> str:
    """The word for a time that changed by `factor`."""
    return EFFECTS[0] if factor < SHORTER else EFFECTS[1] if factor < LONGER else EFFECTS[2]


def supported(factors: Mapping[str, float]) -> set[str]:
    """The buckets that the measured factors, by what-if, leave standing."""
    left = set()
    if effect(factors.get("half the bytes", 1.0)) == EFFECTS[0]:
        left.add("memory")
    if effect(factors.get("twice the arithmetic", 1.0)) == EFFECTS[2]:
        left.add("compute")
    if factors.get("one launch", 1.0) < SHORTER:
        left.add("overhead")
    return left
