"""Figures that carry the teaching: pure drawing on matplotlib Axes, no measuring, no torch.

Every ``draw_*`` function takes an Axes (or None for a fresh figure) and returns the Axes. It names
the device and the origin of its numbers in the title, keeps apart by marker, line style or hatch
what it also keeps apart by colour, and leaves a description in words behind for :func:`alt_text`.
Values are seconds, bytes, FLOP and their rates; the figure chooses ms, GB/s or TFLOP/s.
"""

from helpers.plots.bars import Bars, draw_bars, draw_ledger, off_by
from helpers.plots.batch import draw_batch, draw_decode_primer
from helpers.plots.bottlenecks import draw_buckets, draw_public_case
from helpers.plots.cost import Offer, draw_cost_curves, draw_cost_explorer
from helpers.plots.diagnosis import draw_diagnosis
from helpers.plots.display import alt_text, png, show
from helpers.plots.factories import draw_factories
from helpers.plots.flow import draw_flow_chart
from helpers.plots.fusion import draw_fusion_explorer, free_operations
from helpers.plots.intensity import (
    draw_intensity,
    draw_roofline_explorer,
    draw_shares,
    linear_intensity,
)
from helpers.plots.lanes import draw_lanes, draw_unlabelled_lanes
from helpers.plots.memory import draw_card, draw_memory_ladder, draw_move_time, level_names
from helpers.plots.predictions import draw_predictions
from helpers.plots.queue import ENDINGS as QUEUE_ENDINGS
from helpers.plots.queue import Benchmark, draw_benchmarks, draw_queue, queue_events
from helpers.plots.remedies import draw_remedies
from helpers.plots.roofline import Point, draw_roofline
from helpers.plots.roofs import draw_achieved, draw_soak
from helpers.plots.stages import Stage, draw_ladder, draw_stage_explorer, draw_stage_map
from helpers.plots.style import ORIGINS, figure
from helpers.plots.sweep import draw_sweep
from helpers.plots.timeline import (
    Event,
    draw_timeline,
    events_from_profiler,
    events_from_trace,
    idle_share,
)
from helpers.plots.trips import draw_trips, draw_trips_pair

__all__ = [
    "ORIGINS",
    "QUEUE_ENDINGS",
    "Bars",
    "Benchmark",
    "Event",
    "Offer",
    "Point",
    "Stage",
    "alt_text",
    "draw_achieved",
    "draw_bars",
    "draw_batch",
    "draw_benchmarks",
    "draw_buckets",
    "draw_card",
    "draw_cost_curves",
    "draw_cost_explorer",
    "draw_decode_primer",
    "draw_diagnosis",
    "draw_factories",
    "draw_flow_chart",
    "draw_fusion_explorer",
    "draw_intensity",
    "draw_ladder",
    "draw_lanes",
    "draw_ledger",
    "draw_memory_ladder",
    "draw_move_time",
    "draw_predictions",
    "draw_public_case",
    "draw_queue",
    "draw_remedies",
    "draw_roofline",
    "draw_roofline_explorer",
    "draw_shares",
    "draw_soak",
    "draw_stage_explorer",
    "draw_stage_map",
    "draw_sweep",
    "draw_timeline",
    "draw_trips",
    "draw_trips_pair",
    "draw_unlabelled_lanes",
    "events_from_profiler",
    "events_from_trace",
    "figure",
    "free_operations",
    "idle_share",
    "level_names",
    "linear_intensity",
    "off_by",
    "png",
    "queue_events",
    "show",
]
