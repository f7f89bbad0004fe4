"""Reading the learner's own measurements: seconds, what the card can do, what cannot be."""

from __future__ import annotations

from helpers.checks.engine import Context, Wrong
from helpers.evidence import Record


def measured(context: Context, exercise: str, label: str = "") -> Record:
    """The newest measurement of that exercise and label; Wrong("not_measured") if there is none."""
    record = context.measurement(exercise, label)
    if record is None:
        raise Wrong("not_measured", have=f"no measurement of {label or exercise!r}")
    return record


def seconds(record: Record) -> float:
    """The median of the samples of a measurement, in seconds."""
    samples = sorted(record.value["samples"])
    middle = len(samples) // 2
    return samples[middle] if len(samples) % 2 else sum(samples[middle - 1 : middle + 1]) / 2


def wall(record: Record) -> float:
    """Seconds per call of a loop that waits at its end, the host included; else the median.

    What a person waits for. The samples on a GPU are its own time, with everything queued before.
    """
    value = record.value.get("wall")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if number and 0 < value < float("inf") else seconds(record)


def origin(record: Record) -> str:
    """Behind a number in feedback: where it comes from, if not from a real measurement."""
    return " (simulated)" if record.origin == "simulated" else ""


def peak_bandwidth(record: Record, context: Context) -> float | None:
    """Bytes per second that the card of this record can move at most, None where unknown."""
    card = context.card(record)
    return None if card is None or context.cpu else card.bandwidth


def peak_rate(record: Record, context: Context, dtype: str = "fp16") -> float | None:
    """FLOP/s that the card of this record can do at most in that dtype, None where unknown."""
    card = context.card(record)
    return None if card is None or context.cpu else card.peak.get(dtype)


def gb_per_s(value: float) -> str:
    return f"{value:,.4g} GB/s"


def possible(rate: float, peak: float | None, show: object = None) -> None:
    """Wrong if `rate` is above 1.1 times `peak`: boost clocks and rounding explain less.

    Both in bytes per second, or in another unit with its own `show`.
    """
    say = show if callable(show) else lambda v: gb_per_s(v / 1e9)
    if peak and rate > 1.1 * peak:
        raise Wrong("impossible", have=say(rate), peak=say(peak))
