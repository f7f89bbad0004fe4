"""The learner's front door: setup, predict, measure, reveal, check, hint, progress, summary.

Everything here prints or draws for a person and keeps evidence. The work is done in the rooms
below. `...` is welcome everywhere: it means "not started" and stops nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from helpers import checks, earlier, plots, session
from helpers import evidence as ev
from helpers import prediction as pr
from helpers import topics as by_topics
from helpers.answers import of_function, untouched
from helpers.checks.catalogue import text
from helpers.checks.engine import FORM, NOTEBOOKS
from helpers.checks.feedback import as_html, as_text
from helpers.measuring import (
    SECONDS,
    ceiling,
    compare,
    kernels,
    ledger,
    measure,
    outcome,
    reveal,
    roofs,
    soak,
    sweep,
    tell,
)
from helpers.output import explain_missing_names, publish
from helpers.session import LabError, Machine
from helpers.timing import seconds

__all__ = [
    "LabError", "Machine", "case", "ceiling", "check", "compare", "first_try", "hint", "kernels",
    "ledger", "measure", "outcome", "predict", "predicted", "predictions", "progress", "reset",
    "reveal", "roofs", "setup", "show_table", "soak", "summary", "sweep", "topics",
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
    said = f"{_cell(record.value)} {record.unit}".strip()
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


def predicted(exercise: str, label: str = "") -> Any:
    """The locked prediction, or None."""
    record = session.current(exercise).evidence.latest(exercise, "prediction", label)
    return record.value if record else None


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


def progress() -> None:
    """Where each exercise of this notebook stands."""
    now = session.current()
    states = {}
    for one in checks.exercises(now.number):
        last = now.evidence.latest(one, "answer")
        states[one] = last.value["state"] if last else "not_started"
    done = sum(state == "right" for state in states.values())
    print(f"{done} of {len(states)} exercises are right.")
    for one, state in states.items():
        print(f"  {one}: {text(f'state.{state}')}")


def summary() -> None:
    """The running summary table: the row of each notebook whose evidence lies in this folder."""
    print(earlier.summary_table(_all_evidence()))


def predictions() -> None:
    """Predictions whose evidence lies in this folder, what came out, and how far off they were."""
    found = _all_evidence()
    print(earlier.predictions_table(found))
    missing = [n for n in NOTEBOOKS if n not in found]
    if missing:
        print(f"No evidence file of {', '.join(missing)} lies in this folder.")
    rated = [pair for pair in earlier.pairs(found) if pair.ratio]
    if rated:
        plots.show(plots.draw_predictions(None, rated).figure)


def first_try(exercise: str, label: str) -> None:
    """How many exercises of this notebook were right at the first attempt, beside the prediction.

    `exercise` and `label` name the locked prediction; it is compared once all are answered.
    """
    now = session.current(exercise)
    ids = checks.exercises(now.number)
    right, answered = by_topics.first_try(now.evidence, ids)
    key = "topics.first_try" if answered == len(ids) else "topics.first_try_open"
    print(text(key, right=right, answered=answered, all=len(ids)))
    if answered == len(ids) and right:
        outcome(exercise, label, right, origin="none")
    elif answered == len(ids) and (said := predicted(exercise, label)) is not None:
        print(text("topics.first_try_none", said=_cell(said)))


def topics(base: str = "") -> None:
    """The result of the self-test by topic, with links to the notebooks to repeat.

    `base`: where the notebooks open on Colab; elsewhere the links open those of this folder.
    """
    now = session.current()
    rows = by_topics.by_topic(now.evidence, now.context())
    shown = by_topics.as_html(rows, base if session.where() == "colab" else "")
    publish({"text/html": shown, "text/plain": by_topics.as_text(rows)})


def _all_evidence() -> dict[str, ev.Evidence]:
    now = session.current()
    found = {} if now.replaying else earlier.beside(session.folder())
    return found | {now.number: now.evidence}


def show_table(rows: Any, **columns: Mapping[str, float]) -> None:
    """Print a dict of dicts as a table, with further columns given by row name."""
    if not isinstance(rows, Mapping) or not all(isinstance(r, Mapping) for r in rows.values()):
        print("There is no table yet.")
        return
    names = list(dict.fromkeys([c for row in rows.values() for c in row])) + list(columns)
    print(" " * 12 + "".join(f"{name:>12}" for name in names))
    for label, row in rows.items():
        cells = {**row, **{name: column.get(label, "") for name, column in columns.items()}}
        print(f"{label:12}" + "".join(f"{_cell(cells.get(name, '')):>12}" for name in names))
    now = session.current()
    print(f"({now.origin}, {now.machine.name})")


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
    return ", ".join(f"{key} = {_cell(value)}" for key, value in values.items() if key in keys)


def _cell(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, (int, float)) else str(value)
