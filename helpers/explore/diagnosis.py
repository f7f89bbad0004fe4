"""Explorer of notebook 09: mystery cases, numbers first and the verdict on demand."""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.checks.cases import numbered
from helpers.explore.controls import Choice, Slider, explorer

CASES = 30
HIDDEN, SHOWN = "the numbers", "the verdict too"


def diagnosis() -> None:
    """Practise naming what limits a step: the same thirty cases for everybody.

    Cases 1 to 5, 6 to 10 and so on hold one of each kind.
    """

    def draw(case: int, show: str) -> Any:
        return plots.draw_diagnosis(None, numbered(case), case, show == SHOWN)

    explorer(
        draw,
        case=Slider(1, 1, CASES, label="case"),
        show=Choice(HIDDEN, (HIDDEN, SHOWN), "show"),
    )
