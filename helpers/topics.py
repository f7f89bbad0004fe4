"""The self-test's result: by topic, with the notebook to repeat, and right at the first attempt."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from helpers import checks
from helpers.checks import Context, Outcome, nb09
from helpers.checks.catalogue import text
from helpers.evidence import Evidence, attempted

STEMS: Mapping[str, str] = {
    "01": "01_gpu_model",
    "02": "02_three_bottlenecks",
    "03": "03_matmul_vs_pointwise",
    "04": "04_cos_chain_fusion",
    "05": "05_async_timing",
    "06": "06_batch_size",
    "07": "07_inference_stages",
    "08": "08_cost",
}
"""The notebooks by number; a test holds them against course.toml."""

UNTRIED = ("not_started",)


@dataclass(frozen=True)
class Topic:
    """One notebook's part of the self-test: how many of its exercises are right."""

    notebook: str
    right: int
    answered: int
    all: int
    repeat: bool  # the newest answer has a mistake that points to this notebook
    stumbled: bool  # the first attempt had one

    @property
    def name(self) -> str:
        return text(f"topics.{self.notebook}")

    def verdict(self, link: str) -> str:
        """In words; `link` stands for the notebook's link."""
        values = {"right": self.right, "all": self.all, "link": link}
        if self.repeat:
            return text("topics.partly", **values)
        if not self.answered:
            return text("topics.none")
        if self.answered < self.all:
            return text("topics.open", **values)
        return text("topics.later" if self.stumbled else "topics.solid", **values)


def by_topic(evidence: Evidence, context: Context) -> list[Topic]:
    """One row per notebook 01 to 08, from the answers of notebook 09.

    An exercise that is not yet right points to the notebook of its first mistake, or to all that
    it needs where the mistake does not say. Its answers are judged again, so that the mistake is
    known by name. The notebooks before that one in the exercise's list are right; those after it
    are not known yet, and what was not answered points nowhere.
    """
    context = replace(context, evidence=evidence, seed=evidence.seed)
    right: dict[str, int] = dict.fromkeys(STEMS, 0)
    answered, asked = dict(right), dict(right)
    repeat: set[str] = set()
    stumbled: set[str] = set()
    for exercise, notebooks in nb09.TOPICS.items():
        tried = attempts(evidence, exercise)
        outcome = _judged(exercise, tried[-1:], context)
        good, bad = _split(exercise, outcome)
        for notebook in dict.fromkeys((*notebooks, *bad)):
            asked[notebook] += 1
            right[notebook] += notebook in good
            answered[notebook] += notebook in (*good, *bad)
        repeat |= set(bad)
        if tried and tried[0].get("state") != "right":  # as it was judged then
            stumbled |= set(_split(exercise, _judged(exercise, tried[:1], context))[1])
    return [Topic(n, right[n], answered[n], asked[n], n in repeat, n in stumbled) for n in STEMS]


def attempts(evidence: Evidence, exercise: str) -> list[Mapping[str, Any]]:
    """What was answered there, oldest first, without placeholders and slips of form.

    Kept are the first one and the newest few.
    """
    return [r.value for r in evidence.records if r.exercise == exercise and attempted(r)]


def _judged(exercise: str, found: Sequence[Mapping[str, Any]], context: Context) -> Outcome:
    return checks.grade(exercise, found[0]["answer"] if found else ..., context)


def _split(exercise: str, outcome: Outcome) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(notebooks that the outcome shows to hold, notebooks that it points to)."""
    notebooks = nb09.TOPICS[exercise]
    if outcome.state in UNTRIED:
        return (), ()
    if outcome.state == "right":
        return notebooks, ()
    bad = nb09.blamed(exercise, outcome.key)
    first = min((notebooks.index(n) for n in bad if n in notebooks), default=0)
    return notebooks[:first], bad


def first_try(evidence: Evidence, exercises: Sequence[str]) -> tuple[int, int]:
    """(right at the first attempt, attempted)."""
    firsts = [found[0].get("state") for e in exercises if (found := attempts(evidence, e))]
    return firsts.count("right"), len(firsts)


def as_text(topics: Sequence[Topic]) -> str:
    lines = [f"{t.notebook}  {t.name:52} {t.verdict(STEMS[t.notebook])}" for t in topics]
    return "\n".join([text("topics.head"), *lines])


def as_html(topics: Sequence[Topic], base: str) -> str:
    """A table whose links open `base`/<stem>.ipynb; an empty `base` is this folder."""
    rows = "".join(
        f"<tr><td style='text-align:left'>{t.notebook}</td>"
        f"<td style='text-align:left'>{html.escape(t.name)}</td>"
        f"<td style='text-align:left'>{t.verdict(_link(t.notebook, base))}</td></tr>"
        for t in topics
    )
    return f"<b>{html.escape(text('topics.head'))}</b><table>{rows}</table>"


def _link(notebook: str, base: str) -> str:
    address = f"{base.rstrip('/')}/{STEMS[notebook]}.ipynb" if base else f"{STEMS[notebook]}.ipynb"
    return f'<a href="{html.escape(address)}">{STEMS[notebook]}</a>'
