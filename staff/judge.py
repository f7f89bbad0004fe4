"""From the answer that one check cell emitted to a score: pure, and never an exception."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

ANSWER = "application/vnd.brrr.answer+json"
LONGEST = 600  # characters of a reason


@dataclass(frozen=True)
class Verdict:
    """The score of one exercise, 0 to `points`, with the reason in one line."""

    score: float
    points: float
    state: str
    reason: str

    def __str__(self) -> str:
        return f"[judge] {self.score:g} / {self.points:g}: {self.reason}"


class Unusable(Exception):
    """The cell holds no answer that can be judged. The sentence says why."""


def judge(
    cell: Mapping[str, Any],
    grade: Callable[[str, Any, Any], Any],
    context: Any,
    stopped: str = "",
) -> Verdict:
    """Score one executed check cell by the answer that it emitted itself.

    `grade(exercise, answer, context)` gives an outcome with `state` and `fraction`. Whatever
    is wrong with the cell, the answer or the outcome gives 0 with a reason. `stopped` is the error
    that ended the answer cell: then an answer that looks "not started" was begun.
    """
    points = 0.0
    try:
        settings = cell["metadata"]["nbgrader"]
        points = float(settings["points"])
        answer = emitted(cell, settings["grade_id"])
    except Unusable as problem:
        return Verdict(0.0, points, "error", one_line(str(problem)))
    except Exception as error:
        return Verdict(0.0, points, "error", one_line(f"this cell cannot be read ({error!r})"))
    try:
        outcome = grade(settings["grade_id"], answer, context)
        share = fraction(outcome.fraction)
        if outcome.state == "not_started" and stopped:
            raise Unusable(f"the answer cell stopped with {stopped}")
        return Verdict(share * points, points, str(outcome.state), sentence(outcome))
    except Unusable as problem:
        return Verdict(0.0, points, "error", one_line(str(problem)))
    except Exception as error:
        return Verdict(
            0.0,
            points,
            "error",
            one_line(f"the grader could not judge this answer ({type(error).__name__}: {error})"),
        )


def emitted(cell: Mapping[str, Any], exercise: str) -> Any:
    """The answer in the outputs of `cell`. Unusable unless there is exactly one, for `exercise`."""
    answers = list(_answers(cell))
    if not answers:
        raise Unusable(f"no answer was emitted: {_why_none(cell)}")
    if len(answers) > 1:
        raise Unusable(f"{len(answers)} answers were emitted where one is expected")
    answer = answers[0]
    if not isinstance(answer, Mapping) or "value" not in answer:
        raise Unusable("what was emitted is not an answer: it has no value")
    if answer.get("exercise") != exercise:
        raise Unusable(
            f"the answer is for exercise {str(answer.get('exercise'))[:20]!r}, not for {exercise!r}"
        )
    return answer["value"]


def fraction(value: Any) -> float:
    """`value` clamped to 0..1. Unusable if it is no number."""
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
        raise Unusable(f"the grader gave {value!r} where a number from 0 to 1 belongs")
    return min(1.0, max(0.0, float(value)))


def sentence(outcome: Any) -> str:
    """The outcome in one line: the state, then what the catalogue says about it."""
    state = str(outcome.state).replace("_", " ")
    have, expected = getattr(outcome, "have", ""), getattr(outcome, "expected", "")
    further = [
        ("Likely", getattr(outcome, "likely", "")),
        ("Next", getattr(outcome, "next_step", "")),
    ]
    parts = {
        "right": [getattr(outcome, "insight", "")],
        "not_started": [],
    }.get(
        outcome.state,
        [
            have and f"You have: {have}.",
            expected and f"Expected: {expected}",
            *(f"{label}: {said}" for label, said in further if said),
        ],
    )
    said = " ".join(str(part) for part in parts if part)
    return one_line(f"{state}. {said}" if said else state)


def one_line(text: str) -> str:
    """`text` without line breaks and not longer than a feedback page can bear."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _answers(cell: Mapping[str, Any]) -> Iterator[Any]:
    for output in cell.get("outputs") or []:
        data = output.get("data") or {}
        if ANSWER in data:
            yield data[ANSWER]


def _why_none(cell: Mapping[str, Any]) -> str:
    for output in cell.get("outputs") or []:
        if output.get("output_type") == "error":
            name, value = str(output.get("ename")), str(output.get("evalue"))
            if name == "CellTimeoutError":
                return "the cell ran longer than the time limit"
            return f"the cell stopped with {name}: {value}" if value else f"{name} stopped the cell"
    return "the cell ran, and its check gave nothing"
