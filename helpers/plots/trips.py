"""The picture of fusion: lorries between the warehouse (device memory) and the factory."""

from __future__ import annotations

from typing import Any

from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SMALL, TEXT, VERMILLION

ELEMENT = {"fp16": 2, "bf16": 2, "fp32": 4}
"""Bytes of one element."""

ROWS = 3  # round trips drawn one by one; the rest is summed up in a line
LEFT, RIGHT, WIDE = 2.1, 7.4, 10.0  # walls of warehouse and factory, and the whole width
SIGN, ROOF, FOOT = 0.85, 0.45, 0.75  # heights: signs above the roads, roofs, sum below
AROUND, UNIT = SIGN + ROOF + FOOT, 0.6  # all that is not road; inches per unit


def draw_trips(
    ax: Any,
    operations: int,
    fused: bool,
    *,
    name: str = "cos",
    elements: int | None = None,
    dtype: str = "fp16",
    device: str = "any GPU",
    origin: str = "calculated",
) -> Any:
    """Draw the lorry trips of a chain of ``operations`` pointwise operations; return the Axes.

    Unfused: each operation sends one lorry to the factory (read) and one back (write). Fused: one
    each way for the whole chain; what lies between stays in registers. With ``elements`` the bytes
    moved are written too, 2 x elements x size of ``dtype`` for each round trip.
    """
    if operations < 1:
        raise ValueError("draw_trips needs at least one operation.")
    rounds = 1 if fused else operations
    rows = min(rounds, ROWS)
    high = _road_height(operations, fused)
    ax = style.axes(ax, UNIT * (high + AROUND) + 0.65)
    _buildings(ax, high)
    for row in range(rows):
        middle = high - row - 0.5
        _lorry(ax, middle + 0.2, "read", loaded=True)
        _lorry(ax, middle - 0.3, "write", loaded=False)
        step = f"{name} {row + 1} of {operations}" if operations > 1 else name
        _machine(ax, middle, _chain(operations, name) if fused else step)
    if fused and operations > 1:
        ax.text((RIGHT + WIDE) / 2, 0.12, "between: registers", ha="center", va="bottom",
                fontsize=SMALL, color=INK)  # fmt: skip
    if rounds > rows:
        ax.text((LEFT + RIGHT) / 2, 0.25, f"... and {rounds - rows} more round trips",
                ha="center", va="center", fontsize=TEXT, color=INK)  # fmt: skip
    ax.set_xlim(-0.05, WIDE + 0.05)
    ax.set_ylim(-FOOT, high + SIGN + ROOF)
    ax.set_aspect("equal")
    ax.axis("off")
    total = _total(rounds, elements, dtype)
    ax.text(WIDE / 2, -0.42, total, ha="center", va="center", fontsize=TEXT, fontweight="bold",
            color=INK, gid="total")  # fmt: skip
    kernels = "1 kernel" if rounds == 1 else f"{rounds} kernels"
    headline = f"{operations} × {name}, {'fused' if fused else 'one by one'}: {kernels}"
    more = "" if elements is None else f"{elements:,} elements, {dtype}"
    line = style.title(ax, headline, device, origin, more)
    style.describe(
        ax,
        f"{headline} ({line}). Lorries run between a warehouse (device memory) and a factory "
        f"(compute units): {total}."
        + (" Between the operations the numbers stay in registers." if fused else ""),
    )
    return ax


def draw_trips_pair(
    operations: int = 3, *, name: str = "cos", elements: int | None = 2**27, dtype: str = "fp16"
) -> Any:
    """Draw the chain one by one above and fused below, the course's picture; return both Axes."""
    ratios = [_road_height(operations, fused) + AROUND for fused in (False, True)]
    fig, _ = style.figure(UNIT * sum(ratios) + 1.4)
    fig.clear()
    pair = fig.subplots(2, 1, height_ratios=ratios)
    for ax, fused in zip(pair, (False, True), strict=True):
        draw_trips(ax, operations, fused, name=name, elements=elements, dtype=dtype)
    return pair


def _road_height(operations: int, fused: bool) -> float:
    if fused:
        return 1.25
    return min(operations, ROWS) + 0.5 * (operations > ROWS)


def _total(rounds: int, elements: int | None, dtype: str) -> str:
    many = "s" * (rounds > 1)
    text = f"{rounds} round trip{many} = {rounds} read{many} + {rounds} write{many}"
    if elements is None:
        return text
    moved = 2 * rounds * elements * ELEMENT[dtype]
    # MB as far as possible: the sums of two pictures are there to be compared.
    return f"{text}, {moved / 1e6:,.0f} MB moved" if moved >= 1e6 else f"{text}, {moved:,} B moved"


def _chain(operations: int, name: str) -> str:
    if operations <= 3:
        return " → ".join([name] * operations)
    return f"{name} → ... → {name} ({operations}×)"


def _buildings(ax: Any, high: float) -> None:
    """A warehouse with a gable at the left, a factory with a saw-tooth roof at the right."""
    from matplotlib.patches import Polygon

    top = high + SIGN
    gable = [(0, 0), (0, top), (LEFT / 2, top + 0.4), (LEFT, top), (LEFT, 0)]
    tooth = (WIDE - RIGHT) / 3
    saw = [(RIGHT, 0), (RIGHT, top)]
    for i in range(3):
        saw += [(RIGHT + (i + 1) * tooth, top + 0.35), (RIGHT + (i + 1) * tooth, top)]
    saw += [(WIDE, 0)]
    for outline in (gable, saw):
        ax.add_patch(Polygon(outline, closed=True, facecolor=PALE, edgecolor=GREY, linewidth=1.2))
    signs = ((LEFT / 2, "warehouse", "device memory"),
             ((RIGHT + WIDE) / 2, "factory", "compute units"))  # fmt: skip
    for x, plain, term in signs:
        ax.text(x, top - 0.2, plain, ha="center", va="center", fontsize=TEXT, fontweight="bold",
                color=INK)  # fmt: skip
        ax.text(x, top - 0.55, term, ha="center", va="center", fontsize=SMALL, color=INK)


def _lorry(ax: Any, road: float, word: str, *, loaded: bool) -> None:
    """One lorry on its road: to the factory (loaded) or back; the cab is in front."""
    from matplotlib.patches import Circle, Rectangle

    color = BLUE if loaded else VERMILLION
    ends = (LEFT + 0.08, RIGHT - 0.08) if loaded else (RIGHT - 0.08, LEFT + 0.08)
    ax.annotate("", (ends[1], road), xytext=(ends[0], road), gid=f"trip {word}",
                arrowprops=dict(arrowstyle="-|>", color=color, linewidth=1.4,
                                linestyle="-" if loaded else "--", shrinkA=0,
                                shrinkB=0))  # fmt: skip
    x, low = (LEFT + RIGHT) / 2 - 0.4, road + 0.07
    cab = x + 0.74 if loaded else x - 0.19
    ax.add_patch(Rectangle((x, low), 0.72, 0.26, facecolor=color if loaded else PAPER,
                           edgecolor=color, hatch="" if loaded else "////",
                           linewidth=1.0, zorder=3))  # fmt: skip
    ax.add_patch(Rectangle((cab, low), 0.17, 0.19, facecolor=color, edgecolor=color, zorder=3))
    for wheel in (x + 0.12, x + 0.56, cab + 0.09):
        ax.add_patch(Circle((wheel, low - 0.01), 0.05, facecolor=INK, edgecolor=PAPER,
                            linewidth=0.5, zorder=4))  # fmt: skip
    ax.text(LEFT + 0.35 if loaded else RIGHT - 0.35, road + 0.19, word, fontsize=SMALL, color=INK,
            ha="left" if loaded else "right", va="center")  # fmt: skip


def _machine(ax: Any, middle: float, text: str) -> None:
    ax.text((RIGHT + WIDE) / 2, middle, text, ha="center", va="center", fontsize=SMALL, color=INK,
            bbox=dict(facecolor=PAPER, edgecolor=GREY, boxstyle="round,pad=0.3"))  # fmt: skip
