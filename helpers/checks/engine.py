"""One engine for all graders: five outcomes, unit slips by name, and a fixed shape of feedback.

A grader is a function `(answer, context) -> Outcome` over plain data, registered with
`@exercise("04-4")`. The same grader answers in the notebook and, later, in the judge's process.
Every sentence that a learner reads comes from the catalogue, by key.
"""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.checks.catalogue import has_text, text, texts
from helpers.devices import Device, lookup
from helpers.evidence import PLACEHOLDER, Evidence, Record, unplain

STATES = ("not_started", "not_yet", "right", "cannot_tell", "error")
NOTEBOOKS = tuple(f"{n:02}" for n in range(1, 10))


@dataclass(frozen=True)
class Outcome:
    """What a check found. `fraction` of the points: 1.0 when right, else 0.0 to 1.0."""

    state: str
    fraction: float = 0.0
    have: str = ""
    expected: str = ""
    likely: str = ""
    next_step: str = ""
    insight: str = ""
    key: str = ""  # the catalogue key of the misconception, for tests and statistics

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"{self.state!r} is not one of {', '.join(STATES)}")


@dataclass(frozen=True)
class Context:
    """What a grader may look at besides the answer: all of it plain data.

    `device` is None when the course does not know the card. `cpu` is True when the learner
    measures the CPU itself: some physics is absent there.
    """

    evidence: Evidence | None = None
    device: Device | None = None
    cpu: bool = False
    seed: int = 0

    def measurement(self, exercise: str, label: str | None = None) -> Record | None:
        """The learner's newest measurement record for that exercise, or None.

        Wrong if it does not hold what lab.measure writes: a file edited by hand.
        """
        record = self.evidence and self.evidence.latest(exercise, "measurement", label)
        if record and not _is_measurement(record.value):
            raise Wrong("damaged", have=f"a record of {exercise} without samples and work")
        return record

    def card(self, record: Record) -> Device | None:
        """The card on which that record was made, which need not be the newest; None if unknown."""
        name = record.device.get("name")
        return lookup(name) if name else self.device

    def ceiling(self, notebook: str) -> float | None:
        """Bytes per second of the roof that the learner's machine showed in that notebook."""
        record = self.evidence and self.evidence.latest(f"{notebook}-0", "measurement", "ceiling")
        bandwidth = record.value.get("bandwidth") if record and type(record.value) is dict else None
        return bandwidth if isinstance(bandwidth, float) and bandwidth > 0 else None

    def prediction(self, exercise: str, label: str | None = None) -> Record | None:
        return self.evidence and self.evidence.latest(exercise, "prediction", label)


class Wrong(Exception):
    """Raised inside a grader: the answer is not yet right, for the reason in the catalogue."""

    def __init__(self, key: str, fraction: float = 0.0, state: str = "not_yet", **values: Any):
        super().__init__(key)
        self.key, self.fraction, self.state, self.values = key, fraction, state, values


Grader = Callable[[Any, Context], Outcome]


def _is_measurement(value: Any) -> bool:
    """Samples above zero, and the counted work (zero for a replayed graph: nothing is asked)."""

    def numeric(x: Any) -> bool:
        return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)

    if not isinstance(value, Mapping) or not isinstance(value.get("work"), Mapping):
        return False
    samples, work = value.get("samples"), value["work"]
    return (
        isinstance(samples, list)
        and bool(samples)
        and all(numeric(s) and s > 0 for s in samples)
        and all(numeric(work.get(k)) and work[k] >= 0 for k in WORK)
    )


WORK = ("bytes_ideal", "bytes_unfused", "elements", "itemsize")


@dataclass(frozen=True)
class Exercise:
    """One registered exercise. `inputs` makes the calls of a code exercise from a seed."""

    id: str
    grader: Grader
    inputs: Callable[[int], list[list[Any]]] | None = None
    on_device: bool = False  # the learner's function takes and returns tensors
    predicts: tuple[str, ...] = ()  # labels of the predictions to lock before measuring


_registered: dict[str, Exercise] = {}


def exercise(exercise_id: str, **options: Any) -> Callable[[Grader], Grader]:
    """Register a grader for `exercise_id`, for example "04-4"."""

    def register(grader: Grader) -> Grader:
        if exercise_id in _registered:
            raise ValueError(f"exercise {exercise_id} has two graders")
        _registered[exercise_id] = Exercise(exercise_id, grader, **options)
        return grader

    return register


def find(exercise_id: str) -> Exercise:
    """The exercise of that id. KeyError with one sentence if the course has none."""
    number = str(exercise_id).partition("-")[0]
    _load(number)
    if exercise_id not in _registered and f"0{exercise_id}"[:2] in NOTEBOOKS:
        raise KeyError(f"Exercise ids have two digits in front: write {f'0{exercise_id}'!r}.")
    if exercise_id not in _registered:
        known = ", ".join(exercises(number)) or "none for that notebook"
        raise KeyError(f"There is no exercise {exercise_id!r}; this course has {known}.")
    return _registered[exercise_id]


def _load(number: str) -> None:
    if number not in NOTEBOOKS:
        return
    try:
        importlib.import_module(f"helpers.checks.nb{number}")
    except ModuleNotFoundError as error:
        if error.name != f"helpers.checks.nb{number}":
            raise


def exercises(number: str) -> list[str]:
    """The ids of one notebook's exercises in order, for example of "04"."""
    _load(number)
    return sorted(
        (i for i in _registered if i.startswith(f"{number}-")),
        key=lambda i: int(i.partition("-")[2]),
    )


def inputs(exercise_id: str, seed: int) -> list[list[Any]]:
    """The argument lists on which a code exercise is called for that seed; [] if it has none."""
    found = find(exercise_id)
    return found.inputs(seed) if found.inputs else []


def hints(exercise_id: str) -> list[str]:
    """The steps of the hint, gentlest first."""
    find(exercise_id)
    return texts(f"{exercise_id}.hints")


def grade(exercise_id: str, answer: Any, context: Context) -> Outcome:
    """Judge one plain answer. Never raises for anything a learner can hand in."""
    found = find(exercise_id)
    if not_started(answer):
        return Outcome("not_started", next_step=text(f"{exercise_id}.start"), key="not_started")
    try:
        if isinstance(answer, Mapping) and set(answer) == {"unusable", "type"}:
            have = f"a {answer['type']}"
            if found.inputs:
                raise Wrong("not_a_function", have=have)
            raise Wrong("not_plain", have=have, why=answer["unusable"])
        return found.grader(answer, context)
    except Wrong as wrong:
        return _outcome(exercise_id, wrong)


def not_started(answer: Any) -> bool:
    """True for a placeholder, and for a table or a set of calls that is all placeholders."""
    if answer is ... or answer == PLACEHOLDER:
        return True
    if isinstance(answer, Mapping) and answer:
        return all(not_started(item) for item in answer.values())
    return isinstance(answer, list) and bool(answer) and all(map(not_started, answer))


def right(exercise_id: str, variant: str = "", **values: Any) -> Outcome:
    """Full marks, with the one insight that the catalogue holds for that exercise.

    `variant` picks one of several insights, where the learner's device decides which is true.
    """
    key = f"{exercise_id}.right" + (f"_{variant}" if variant else "")
    return Outcome("right", 1.0, insight=text(key, **values), key="right")


def _outcome(exercise_id: str, wrong: Wrong) -> Outcome:
    """The catalogue's words for a wrong answer: the exercise's own, else the general ones."""

    def say(part: str) -> str:
        for base in (f"{exercise_id}.{wrong.key}", f"general.{wrong.key}"):
            if has_text(f"{base}.{part}"):
                return text(f"{base}.{part}", **wrong.values)
        return text(f"{exercise_id}.{part}", **wrong.values) if part != "likely" else ""

    return Outcome(
        wrong.state,
        wrong.fraction,
        have=str(wrong.values.get("have", "")),
        expected=say("expected"),
        likely=say("likely"),
        next_step=say("next"),
        key=wrong.key,
    )


# ---------------------------------------------------------------- reading answers


def number(answer: Any, *, unit: str = "", positive: bool = True) -> float:
    """A finite number from a plain answer, or Wrong with the kind of thing it is instead."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    answer = unplain(answer)
    if answer is None:
        raise Wrong("none", have="None")
    if isinstance(answer, bool) or not isinstance(answer, numbers.Real):
        kind = {str: "text", list: "a list", dict: "a dict", bool: "True or False"}
        raise Wrong(
            "not_a_number",
            have=f"{str(answer)[:40]!r}",
            kind=kind.get(type(answer), type(answer).__name__),
        )
    try:
        value = float(answer)
    except OverflowError:  # a whole number beyond 1e308
        value = math.inf
    if not math.isfinite(value):
        raise Wrong("not_finite", have=str(value))
    if positive and value <= 0:
        raise Wrong("not_positive", have=f"{value:g} {unit}".strip())
    return value


def choice(answer: Any, options: Sequence[str]) -> str:
    """One of `options`, whatever its case; Wrong if the answer is none of them."""
    if isinstance(answer, str) and answer.strip().lower() in options:
        return answer.strip().lower()
    raise Wrong("not_an_option", have=repr(answer)[:40], options=", ".join(options))


def table(answer: Any, keys: Sequence[str]) -> dict[str, Any]:
    """A dict that holds every one of `keys`; Wrong names those that are missing."""
    if not isinstance(answer, Mapping):
        raise Wrong("not_a_table", have=repr(answer)[:60], keys=", ".join(map(repr, keys)))
    if missing := [k for k in keys if k not in answer or not_started(answer[k])]:
        raise Wrong(
            "rows_missing",
            have=f"{len(keys) - len(missing)} of {len(keys)} entries",
            keys=", ".join(map(repr, missing)),
        )
    return {k: answer[k] for k in keys}


SLIPS = {  # factor (answer / right value) -> catalogue key
    1e3: "times_1000",
    1e-3: "per_1000",
    1e6: "times_1e6",
    1e-6: "per_1e6",
    1e9: "times_1e9",
    1e-9: "per_1e9",
    1e12: "times_1e12",
    1e-12: "per_1e12",
    8.0: "bits",
    0.125: "bits",
    0.5: "half",
    2.0: "double",
    1e9 / 2**30: "gib",
    2**30 / 1e9: "gib",
    1e6 / 2**20: "gib",
    2**20 / 1e6: "gib",
}


def slip(value: float, right_value: float, tolerance: float = 0.01) -> str | None:
    """The name of the unit slip that turns `right_value` into `value`, or None."""
    for factor, key in SLIPS.items():
        if math.isclose(value, right_value * factor, rel_tol=tolerance):
            return key
    return None


def expect_number(
    answer: Any,
    right_value: float,
    *,
    unit: str,
    show: Callable[[float], str],
    tolerance: float = 0.02,
    others: Mapping[str, float] | None = None,
    peak: float | None = None,
    **values: Any,
) -> float:
    """The answer if it is within `tolerance` of `right_value`, else Wrong.

    `others` maps a catalogue key to the value that this particular mistake leads to; they are
    looked at before the general unit slips. `peak` is what the device can do at most, in the
    same unit: an answer above 1.1 times it asks whether the learner waited for the GPU.
    """
    value = number(answer, unit=unit)
    if math.isclose(value, right_value, rel_tol=tolerance):
        return value
    values |= {"have": show(value), "right": show(right_value)}
    for key, mistaken in (others or {}).items():
        if math.isclose(value, mistaken, rel_tol=max(tolerance, 0.01)):
            raise Wrong(key, **values)
    if named := slip(value, right_value):
        raise Wrong(named, **values)
    if peak and value > 1.1 * peak:
        raise Wrong("impossible", **values | {"peak": show(peak)})
    raise Wrong("off", **values)
