"""Explorer of notebook 05: two lanes, and where a stopwatch stops."""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, Slider, explorer


def queue(machine: Any = None) -> None:
    """Explore the queue: length of a kernel, cost of a launch, and when the CPU waits.

    ``machine`` is accepted for likeness with the other explorers and not used: the times are the
    controls.
    """

    def draw(kernel: int, launch: int, ending: str) -> Any:
        return plots.draw_queue(None, kernel * 1e-6, launch * 1e-6, ending)

    explorer(
        draw,
        kernel=Slider(60, 2, 200, 2, "one kernel takes (µs)"),
        launch=Slider(20, 2, 100, 2, "one launch costs (µs)"),
        ending=Choice("never", plots.QUEUE_ENDINGS, "the CPU waits"),
    )
