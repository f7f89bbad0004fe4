"""One engine for all graders: five outcomes, unit slips by name, and a fixed shape of feedback.

A grader is a function `(answer, context) -> Outcome` over plain data, registered with
`@exercise("04-4")`. The same grader answers in the notebook and, later, in the judge's process.
Every sentence that a learner reads comes from the catalogue, by key.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from helpers.checks.catalogue import has_text, text, texts
from helpers.devices import Device, lookup
from helpers.evidence import PLACEHOLDER, Evidence, Record

STATES = ("not_started", "not_yet", "right", "cannot_tell", "error")
NOTEBOOKS = tuple(f"{n:02}" for n in range(1, 10))


FORM = frozenset({
    "none", "not_a_function", "not_a_number", "not_a_pair", "not_a_table", "not_a_text",
    "not_an_option", "not_plain", "pair_swapped", "rows_missing",
})  # fmt: skip
"""Keys of answers that have the wrong form: they say nothing yet of what was understood."""


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

    def case(self, exercise: str) -> dict[str, Any]:
        """The numbers that `lab.case` drew for this learner, from their own seed."""
        return case(exercise, self.evidence.seed if self.evidence else self.seed)

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
    case: Callable[[int], dict[str, Any]] | None = None  # this learner's numbers, from a seed
    observe: Callable[[Callable, list[list[Any]], Any], Any] | None = None
    """Runs the learner's function (function, inputs, machine) and returns plain data to judge."""


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


def case(exercise_id: str, seed: int) -> dict[str, Any]:
    """The numbers of a question that differ from learner to learner; {} if it has none."""
    found = find(exercise_id)
    return found.case(seed) if found.case else {}


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
