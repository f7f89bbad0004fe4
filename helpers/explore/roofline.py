"""Explorer of notebook 03: where does a linear layer stand on the roofline?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, device_of, explorer
from helpers.roofline import datasheet

BATCHES = tuple(2**k for k in range(13))
WIDTHS = (256, 1024, 4096, 8192, 16384)


def roofline(
    device: Any = None,
    roofs: Sequence[Any] | None = None,
    points: Mapping[tuple[int, str], Sequence[Any]] | None = None,
    width: int = 8192,
) -> None:
    """Explore where a square linear layer stands: rows, width and dtype.

    ``device``: a Device, its key or name, or the machine of a notebook; None is a T4. ``roofs``:
    those to draw, all of one device; by default the datasheet of ``device``. ``points``: the
    learner's own `plots.Point`s by (width, dtype), shown where both are chosen. ``width``: to start
    with.
    """
    drawn = list(roofs) if roofs else [datasheet(device_of(device))]
    dtypes = tuple(d for d in ("fp16", "bf16", "fp32") if d in drawn[-1].rates)

    def draw(batch: int, width: int, dtype: str) -> Any:
        own = (points or {}).get((width, dtype), ())
        return plots.draw_roofline_explorer(None, drawn, batch, width, dtype, own)

    explorer(
        draw,
        batch=Choice(64, BATCHES, "rows"),
        width=Choice(width, tuple(sorted({*WIDTHS, width})), "width"),
        dtype=Choice(dtypes[0], dtypes, "dtype"),
    )
