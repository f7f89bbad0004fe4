"""Explorer of notebook 08: what a token costs and how long it takes, by price, batch, context."""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, Slider, device_of, explorer

BATCHES = (1, 4, 16, 64, 256)
CONTEXTS = (128, 1024, 2048, 4096)


def cost(device: Any = None, price: float = 0.6, limit: float = 0.05) -> None:
    """Explore cost and latency of decoding with a 7B on one card, at its datasheet peaks.

    ``device``: a Device or its key or name, or the machine of a notebook (anything with ``facts``,
    a Device or None). None is a T4. ``price``: USD per hour to start with, from 0.05 to 15.
    ``limit``: seconds per token, drawn as a line. Raises UnknownDevice for an unknown name.
    """
    card = device_of(device)
    start = min(max(0.05, round(float(price), 2)), 15.0)

    def draw(price: float, batch: int, context: int) -> Any:
        return plots.draw_cost_explorer(card, price, batch, context, limit=limit)

    explorer(
        draw,
        price=Slider(start, 0.05, 15.0, 0.05, "USD per hour"),
        batch=Choice(1, BATCHES, "batch"),
        context=Choice(128, CONTEXTS, "context"),
    )
