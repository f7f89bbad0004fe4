"""The learner's front door: setup, predict, measure, reveal, check, hint, progress, summary.

Everything here prints or draws for a person and keeps evidence. The work is done in the rooms
below. `...` is welcome everywhere: it means "not started" and stops nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from helpers import checks, session
from helpers import evidence as ev
from helpers import prediction as pr
from helpers.answers import of_function, untouched
from helpers.checks.engine import FORM
from helpers.checks.feedback import as_html, as_text
from helpers.measuring import as_graph, ceiling, kernels, measure, roofs, soak, sweep
from helpers.output import explain_missing_names, publish
from helpers.session import LabError, Machine
from helpers.showing import compare, ledger, outcome, predicted, reveal, show_table
from helpers.standing import first_try, predictions, progress, summary, topics
from helpers.telling import SECONDS, cell, tell
from helpers.timing import seconds

__all__ = [
    "LabError", "Machine", "as_graph", "case", "ceiling", "check", "compare", "first_try", "hint",
    "kernels", "ledger", "measure", "outcome", "predict", "predicted", "predictions", "progress",
    "reset", "reveal", "roofs", "setup", "show_table", "soak", "summary", "sweep", "topics",
]  # fmt: skip

ANSWER_MIME = "application/vnd.brrr.answer+json"
CHECK_MIME = "application/vnd.brrr.check+json"


def setup(notebook: str, device: str | None = None, simulate: str | None = None) -> Machine:
    """Begin a notebook and say on what it runs. Returns the machine to compute on.

    `notebook` is the file's stem. `device="cpu"` measures the CPU itself. Without a GPU a
    simulated one takes its place: `simulate` chooses which ("T4", "A100-80", "H100", ...).
    """
    begun = session.start(notebook, device, simulate)
    machine = begun.machine
    explain_missing_names()
    if machine.origin == "simulated":
        print(
            f"No GPU in use: this notebook runs on a model of one, {machine.name}. "
            "Every timing and every figure of it says simulated."
        )
    elif machine.cpu:
        print(
            f"This notebook measures the CPU: {machine.name}, in float32. "
            "Where a CPU has no such effect, checks answer: cannot tell."
        )
    else:
        unknown = "" if machine.facts else " The course has no facts on it: its roofs are measured."
        print(f"This notebook measures your GPU: {machine.name}.{unknown}")
    if begun.elsewhere:
        names = sorted({r.device.get("name", "") for r in begun.elsewhere})
        print(
            f"Records made on another machine are kept and not used here: {', '.join(names)}. "
            "Predict and measure anew on this one."
        )
    if begun.evidence.records and not begun.replaying:
        print(
            f"{len(begun.evidence.records)} earlier records were found and kept. "
            'lab.reset("all") forgets them.'
        )
    return machine


def predict(
    exercise: str,
    value: Any = ...,
    *,
    unit: str = "",
    label: str = "",
    options: Sequence[str] | None = None,
) -> None:
    """Commit a number (in `unit`) or one of `options` before measuring. The first one counts."""
    now = session.current(exercise)
    name = f"{exercise} {label}".strip()
    if value is ...:
        wanted = f"one of: {', '.join(options)}" if options else f"a number ({unit})"
        print(f"{name}: no prediction yet. Assign {wanted}, then run this cell again.")
        return
    try:
        record, locked = pr.lock(
            now.evidence,
            exercise,
            value,
            label=label,
            unit=unit,
            options=options,
            device=session.device_data(now.machine),
        )
    except (pr.PredictionError, TypeError) as error:
        print(f"{name}: {error}")
        return
    now.save()
    said = f"{cell(record.value)} {record.unit}".strip()
    if record.unit in SECONDS and not record.value >= 0.1:  # a slip shows in another unit
        said += f", that is {seconds(record.value * SECONDS[record.unit])}"
    late = f" (it was locked before; lab.reset({exercise!r}) opens it)" if locked else ""
    tell(record, f"{name}: your prediction is locked: {said}{late}")


def check(exercise: str, answer: Any = ...) -> None:
    """Judge an answer. Never raises: it says one of five things, and why."""
    now = session.current(exercise)
    given = _plain_answer(answer, checks.find(exercise), now)
    if now.replaying:
        value = {"exercise": exercise, "value": given}
        publish({ANSWER_MIME: value, "text/plain": f"{exercise}: answer taken"})
        return
    outcome = checks.grade(exercise, given, now.context())
    kept = {"answer": given, "state": outcome.state, "fraction": outcome.fraction}
    slip = {"form": True} if outcome.key in FORM else {}
    now.record(exercise, "answer", kept | slip)
    said = as_text(exercise, outcome)
    verdict = {
        "exercise": exercise,
        "state": outcome.state,
        "fraction": outcome.fraction,
        "key": outcome.key,
        "message": said,
    }
    publish({CHECK_MIME: verdict, "text/html": as_html(exercise, outcome), "text/plain": said})
    if session.where() == "validate" and outcome.state not in ("right", "cannot_tell"):
        raise LabError(said)  # else nbgrader's Validate button would report success


def case(exercise: str) -> dict[str, Any]:
    """The numbers of this exercise: yours alone, and the same each time you run the cell."""
    now = session.current(exercise)
    drawn = checks.case(exercise, now.evidence.seed)
    rows = {k: v for k, v in drawn.items() if isinstance(v, Mapping)}
    print(f"{exercise}, your numbers: {_named(drawn.keys() - rows.keys(), drawn)}".rstrip())
    for name, row in rows.items():
        print(f"  {name}: {_named(row, row)}")
    return drawn


def hint(exercise: str) -> None:
    """The next step of the hint; the last one stays."""
    now = session.current(exercise)
    steps = checks.hints(exercise)
    shown = min(now.hints_shown.get(exercise, 0) + 1, len(steps))
    now.hints_shown[exercise] = shown
    more = f"  (lab.hint({exercise!r}) once more for the next step)" if shown < len(steps) else ""
    print(f"Hint {shown} of {len(steps)}: {steps[shown - 1]}{more}")


def reset(exercise: str) -> None:
    """Forget predictions, measurements and answers of one exercise, or of "all"."""
    now = session.current(None if exercise == "all" else exercise)
    ids = checks.exercises(now.number) if exercise == "all" else [exercise]
    for one in ids:
        now.evidence.drop(one)
        now.hints_shown.pop(one, None)
    now.save()
    what = "Everything" if exercise == "all" else f"All of {exercise}"
    print(
        f"{what} is forgotten: predictions, measurements and answers. Predictions are open again."
    )


def _plain_answer(answer: Any, exercise: checks.Exercise, now: session.Session) -> Any:
    """What a grader may see of the answer: plain data, or why it is none."""
    if untouched(answer):
        return dict(ev.PLACEHOLDER)
    if callable(answer) and exercise.inputs:
        return of_function(answer, exercise, now.machine, now.seed)
    try:
        return ev.plain(answer)
    except TypeError as error:
        return {"unusable": str(error), "type": type(answer).__name__}


def _named(keys: Collection[str], values: Mapping[str, Any]) -> str:
    """The `keys` of `values` in words: a = 1, b = 2."""
    return ", ".join(f"{key} = {cell(value)}" for key, value in values.items() if key in keys)
