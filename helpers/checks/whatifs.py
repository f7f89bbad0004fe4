"""What-ifs that put a verdict to the test: half the bytes, twice the arithmetic, one launch.

A bucket is more than a label where it foretells what such a change does to the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from helpers.checks.engine import Context, Outcome, Wrong, right
from helpers.checks.reading import choice, table
from helpers.checks.records import origin, seconds
from helpers.evidence import Record

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


def bucket(cell: Any, entry: str = "") -> str:
    """A bucket's name, also from "memory-bound" or "bandwidth"; Wrong if it is none."""
    if isinstance(cell, str):
        cell = SPELLINGS.get(bare(cell), cell)
    return choice(cell, BUCKETS, entry)


def bare(word: str) -> str:
    """The word in small letters, with spaces, without "bound" behind it."""
    return word.strip().lower().replace("-", " ").replace("_", " ").removesuffix("bound").strip()


SPELLINGS = {
    **{name: name for name in BUCKETS},
    **dict.fromkeys(("bandwidth", "memory bandwidth"), "memory"),
    "host": "overhead",
}


def falsified(
    exercise: str, answer: Any, context: Context, took: Callable[[Record], float] = seconds
) -> Outcome:
    """Judge {"bucket", "decided by"} by the learner's own what-ifs, timed under their names.

    Half for a bucket that they support, half for the what-if that decided it. `took` reads the
    seconds of a record; the unchanged program is "as it is". The predictions are told and cost
    nothing: else it would pay to predict after measuring.
    """
    cells = table(answer, ("bucket", "decided by"))
    picked = bucket(cells["bucket"], "bucket")
    decider = choice(cells["decided by"], WHAT_IFS, "decided by")
    base = context.measurement(exercise, "as it is")
    factors = {
        name: took(record) / took(base)
        for name in WHAT_IFS
        if base and (record := context.measurement(exercise, name))
    }
    if not {"half the bytes", "twice the arithmetic"} <= set(factors):
        raise Wrong("not_measured", have="no what-ifs yet")
    seen = ", ".join(f"{name}: x{factor:.2f}" for name, factor in factors.items())
    left = supported(factors)
    if not left or _busy(factors):
        raise Wrong("unclear", state="cannot_tell", have=seen)
    if picked not in left:
        raise Wrong(f"contradicted_{picked}", have=f"{picked!r}; but {seen}")
    if decider != DECIDES[picked]:
        have = f"{picked!r}, decided by {decider!r}"
        raise Wrong("other_decider", fraction=0.5, have=have, bucket=picked)
    predicted = {name: context.prediction(exercise, name) for name in factors}
    held = sum(bool(p) and p.value == effect(factors[n]) for n, p in predicted.items())
    first = context.prediction(exercise, "bucket")
    named = str(first.value) if first else "nothing"
    variant = "held" if held == len(factors) and named == picked else "missed"
    values = {"held": held, "all": len(factors), "named": named, "origin": origin(base)}
    return right(exercise, variant, seen=seen, **values)


def _busy(factors: Mapping[str, float]) -> bool:
    """No bucket makes half the bytes slower or twice the arithmetic faster: the machine is busy."""
    return (
        effect(factors["half the bytes"]) == EFFECTS[2]
        or effect(factors["twice the arithmetic"]) == EFFECTS[0]
    )
