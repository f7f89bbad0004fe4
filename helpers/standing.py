"""Where a learner stands: progress here, and what the notebooks of this folder add up to."""

from __future__ import annotations

from helpers import checks, earlier, plots, session
from helpers import evidence as ev
from helpers import topics as by_topics
from helpers.checks.catalogue import text
from helpers.checks.engine import NOTEBOOKS
from helpers.output import publish
from helpers.showing import outcome, predicted
from helpers.telling import cell


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
        print(text("topics.first_try_none", said=cell(said)))


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
