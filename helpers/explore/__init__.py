"""Explorers: a figure with at most three controls, or its static twin where nothing can move.

One module per explorer, a thin wrapper around a ``plots.draw_*`` function each; ``controls`` holds
what they share.
"""

from helpers.explore.batch import BATCH_DEVICES, batch
from helpers.explore.buckets import buckets
from helpers.explore.controls import (
    MOST_CONTROLS,
    Choice,
    Slider,
    explorer,
    static_reason,
    static_twin,
)
from helpers.explore.cost import cost
from helpers.explore.diagnosis import diagnosis
from helpers.explore.fusion import FUSION_DEVICES, fusion
from helpers.explore.ladder import LADDER_DEVICES, ladder
from helpers.explore.queue import queue
from helpers.explore.roofline import roofline
from helpers.explore.stages import stages

__all__ = [
    "BATCH_DEVICES",
    "FUSION_DEVICES",
    "LADDER_DEVICES",
    "MOST_CONTROLS",
    "Choice",
    "Slider",
    "batch",
    "buckets",
    "cost",
    "diagnosis",
    "explorer",
    "fusion",
    "ladder",
    "queue",
    "roofline",
    "stages",
    "static_reason",
    "static_twin",
]
