"""Explorer of notebook 06: what a larger batch costs and buys, and where the memory ends."""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, device_choice, explorer

BATCH_DEVICES = ("t4", "l4", "a10g", "a100_40_sxm", "a100_80_sxm", "h100_sxm", "h200")
"""Offered by ``batch``: from cards on which a 7B model barely fits to one with room to spare."""

CONTEXTS = (128, 256, 512, 1024, 2048, 4096, 8192)


def batch(device: Any = None, context: int = 1024) -> None:
    """Explore one decode step of a 7B model against the batch: context, weights and device.

    ``device``: the one to start with, a Device or its key or name, or the machine of a notebook
    (anything with ``facts``, a Device or None). None is a T4. Raises UnknownDevice for an unknown
    name, ValueError for a context that is not offered.
    """

    def draw(context: int, weights: str, device: str) -> Any:
        return plots.draw_batch(context, weights, device)[0]

    explorer(
        draw,
        context=Choice(context, CONTEXTS, "context"),
        weights=Choice("fp16", ("fp16", "int8", "int4"), "weights"),
        device=device_choice(device, BATCH_DEVICES),
    )
