"""The self-test's result: by topic, with the notebook to repeat, and right at the first attempt."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helpers import checks
from helpers.checks import Context, nb09
from helpers.checks.catalogue import text
from helpers.evidence import Evidence

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
    repeat: bool  # a mistake points to this notebook

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
        return text("topics.solid", **values)


def by_topic(evidence: Evidence, context: Context) -> list[Topic]:
    """One row per notebook 01 to 08, from the newest answers of notebook 09.

    An exercise that is not yet right points to the notebook of its first mistake, or to all that
    it needs where the mistake does not say. Its answers are judged again, so that the mistake is
    known by name. The notebooks before that one in the exercise's list are right; those after it
    are not known yet, and what was not answered points nowhere.
    """
    right: dict[str, int] = dict.fromkeys(STEMS, 0)
    answered, asked = dict(right), dict(right)
    repeat: set[str] = set()
    for exercise, notebooks in nb09.TOPICS.items():
        last = evidence.latest(exercise, "answer")
        given = last.value.get("answer", ...) if last and isinstance(last.value, dict) else ...
        outcome = checks.grade(exercise, given, context)
        if outcome.state in UNTRIED:
            good, bad = (), ()
        elif outcome.state == "right":
            good, bad = notebooks, ()
        else:
            bad = nb09.blamed(exercise, outcome.key)
            good = notebooks[: min((notebooks.index(n) for n in bad if n in notebooks), default=0)]
        for notebook in dict.fromkeys((*notebooks, *bad)):
            asked[notebook] += 1
            right[notebook] += notebook in good
            answered[notebook] += notebook in (*good, *bad)
        repeat |= set(bad)
    return [Topic(n, right[n], answered[n], asked[n], n in repeat) for n in STEMS]


def first_try(evidence: Evidence, exercises: Sequence[str]) -> tuple[int, int]:
    """(right at the first attempt, attempted), as far as the kept answers tell.

    Of one exercise only the newest few answers are kept.
    """
    firsts = {}
    for record in evidence.records:
        if record.kind == "answer" and isinstance(record.value, dict):
            state = record.value.get("state")
            if record.exercise in exercises and state not in UNTRIED:
                firsts.setdefault(record.exercise, state)
    return sum(state == "right" for state in firsts.values()), len(firsts)


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
