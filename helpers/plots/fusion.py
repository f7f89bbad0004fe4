"""The figure behind the explorer of notebook 04: when does one more fused operation cost time?"""

from __future__ import annotations

from typing import Any

from helpers.devices import get, slots
from helpers.plots import style
from helpers.plots.style import INK
from helpers.plots.sweep import draw_sweep

FUNCTIONS = {"multiply": "mul", "exp": "exp", "cosine": "cos", "gelu": "gelu"}
"""Functions of the explorer, with the names that the instruction counts go by."""

ELEMENT = {"fp16": 2, "bf16": 2, "fp32": 4}
"""Bytes of one element."""

ROOFS = "datasheet peaks"
FREE = "one more is free"
MOST = 64
ELEMENTS = 2**27


def cost(function: str, device: Any) -> float:
    """Return the lane slots that one ``function`` of FUNCTIONS takes per element on ``device``."""
    if function not in FUNCTIONS:
        raise ValueError(f"Unknown function {function!r}; use {', '.join(FUNCTIONS)}.")
    return slots((FUNCTIONS[function],), device.fp32_lanes_per_sm)


def free_operations(cost_per_op: float, dtype: str, device: Any) -> float:
    """Return how many fused operations of ``cost_per_op`` lane slots ride on one trip.

    One trip moves each element in and out, 2 x its size; the chain stops being free where its
    arithmetic takes as long: (2 x size / bandwidth) x vector rate / cost, from the datasheet peaks.
    May be below 1.
    """
    return 2 * ELEMENT[dtype] / device.bandwidth * device.vector_rate / cost_per_op


def draw_fusion_explorer(
    ax: Any = None,
    operations: int = 3,
    function: str = "cosine",
    dtype: str = "fp16",
    device: Any = "t4",
    *,
    elements: int = ELEMENTS,
) -> Any:
    """Draw time against number of operations, eager and fused, from the peaks of ``device``.

    ``function``: one of FUNCTIONS; its cost is counted for the device, whose units differ.
    ``device``: a Device, or its key or name. Eager pays a trip per operation,
    n x max(trip, cost); fused pays one, max(trip, n x cost). The speed-up at ``operations`` is
    marked. Launch cost is left out: ``elements`` is large. Every device is drawn from its datasheet
    peaks: sustained rates are not published for all, and would compare unlike with unlike.
    """
    device = get(device) if isinstance(device, str) else device
    if dtype not in ELEMENT:
        raise ValueError(f"Unknown dtype {dtype!r}; use {', '.join(ELEMENT)}.")
    if not 1 <= operations <= MOST:
        raise ValueError(f"Need 1 to {MOST} operations, not {operations}.")
    each = cost(function, device)
    trip = 2 * ELEMENT[dtype] * elements / device.bandwidth
    work = each * elements / device.vector_rate
    knee = free_operations(each, dtype, device)
    steps = range(1, MOST + 1)
    eager = [n * max(trip, work) for n in steps]
    fused = [max(trip, n * work) for n in steps]
    at = steps.index(operations)
    gain = eager[at] / fused[at]
    unit = "slot" if each == 1 else "slots"
    slots_here = f"{function}: {style.number(each)} {unit} on this card"
    ax = style.axes(ax, 3.9)
    ax.margins(y=0.13)  # room for the labels above and below the lines
    ax = draw_sweep(
        ax, steps, {"eager": eager, "fused": fused},
        origin="calculated", device=device.name, logx=True, logy=True,
        xlabel="operations in the chain", ylabel="time",
        title=f"{_headline(operations, gain)} ({function}, {dtype})",
        knee=knee if 1 <= knee <= MOST else None, knee_label="no longer free after",
        flat=(1, min(knee, MOST)) if knee > 1.6 else None, flat_label=FREE,
        note=f"{slots_here} · every card at its {ROOFS}, not at sustained rates{_edge_case(knee)}",
    )  # fmt: skip
    _shorten(ax, knee)
    if gain > 1.15:
        _mark_gain(ax, operations, fused[at], eager[at], knee <= operations)
    style.describe(
        ax,
        f"Calculated for {device.name} from its {ROOFS}, {dtype}, {elements:,} elements, "
        f"{slots_here}. "
        f"One trip through memory takes {style.quantity(trip, 's')}. A fused chain is free up to "
        f"{style.number(knee)} operations. At {operations}: eager "
        f"{style.quantity(eager[at], 's')}, fused {style.quantity(fused[at], 's')}, "
        f"{_headline(operations, gain)}. Both axes are logarithmic.",
    )
    return ax


def _shorten(ax: Any, knee: float) -> None:
    """Shorten the label of the free stretch where it would reach across the knee."""
    end = ax.transData.transform((knee, 1))[0]
    for text in ax.texts:
        if text.get_text() == FREE and text.get_window_extent().x1 > end - 4:
            text.set_text("free")


def _mark_gain(ax: Any, operations: int, fused: float, eager: float, rising: bool) -> None:
    """Span the speed-up with an arrow and write it at the lower end, clear of the lines.

    ``rising``: whether the line of the fused chain already rises there.
    """
    size, _ = style.scale(MOST / operations * eager, "s")  # the unit of the axis
    span = [fused / size, eager / size]
    ax.plot([operations] * 2, span, color=INK, linewidth=1.4, gid="span", zorder=2.5)
    for y, tip in zip(span, "v^", strict=True):
        ax.plot([operations], [y], color=INK, marker=tip, markersize=5, gid="span", zorder=2.5)
    text = f"×{style.number(eager / fused, 2)}"
    look = dict(fontweight="bold", gid="gain")
    if rising and operations <= MOST / 2:  # the only side where no line comes near
        ax.annotate(text, (operations, span[0]), xytext=(6, -4), textcoords="offset points",
                    va="top", fontsize=style.SMALL, color=INK, **look)  # fmt: skip
    else:
        style.place_labels(ax, [(operations, span[0], text)], **look)


def _headline(operations: int, gain: float) -> str:
    chain = f"{operations} operation{'s' * (operations > 1)}"
    if gain < 1.05:
        return f"Fusing {chain} gains nothing"
    return f"{chain}, fused: ×{style.number(gain, 2)} faster"


def _edge_case(knee: float) -> str:
    if knee < 1:
        return f" · one operation takes as long as {style.number(1 / knee, 2)} trips: never free"
    if knee > MOST:
        return f" · free up to {style.number(knee)} operations, beyond this figure"
    return ""
