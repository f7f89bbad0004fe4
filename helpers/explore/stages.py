"""Explorer of notebook 07: where a stage of inference stands on the roofline."""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, device_of, explorer
from helpers.plots.stages import BATCHES, STAGES

CONTEXTS = (128, 512, 1024, 2048, 8192, 32768)


def stages(device: Any = None) -> None:
    """Explore a stage of Llama-2-7B: stage, batch, context (the prompt's length in prefill).

    ``device``: the card whose roof is drawn, a Device or its key or name, or the machine of a
    notebook. None, and a machine without a known card, is a T4. Raises UnknownDevice for an
    unknown name.
    """
    card = device_of(device)

    def draw(stage: str, batch: int, context: int) -> Any:
        return plots.draw_stage_explorer(None, stage, batch, context, card)

    explorer(
        draw,
        stage=Choice("decode", STAGES, "stage"),
        batch=Choice(16, BATCHES, "batch"),
        context=Choice(128, CONTEXTS, "context"),
    )
