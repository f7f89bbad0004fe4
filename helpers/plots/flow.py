"""The decision flow chart of the three buckets: the picture of the rule in helpers.roofline."""

from __future__ import annotations

from typing import Any

from helpers.plots import style
from helpers.plots.bars import _PARTS as LEDGER
from helpers.plots.style import GREY, INK, PALE, PAPER, SMALL, TEXT

QUESTIONS = (
    (
        "Gaps in the GPU's timeline?",
        "queueing takes longer than all kernels,\nand explains",
    ),
    ("Is the rate near the roof?", "FLOPs / FLOP rate of the compute-bound\nkernels explain"),
    ("Do the bytes explain the time?", "bytes / bandwidth of the memory-bound\nkernels explain"),
)
LEAVES = (
    ("overhead-bound", "fewer launches", "host"),
    ("compute-bound", "a faster unit,\nless arithmetic", "compute"),
    ("memory-bound", "fewer bytes", "memory"),
)
LAST = ("needs another test", "no bucket is named:\nlook at the trace")
LEFT, WIDE = 0.1, 5.5  # questions: left edge and width
LEAF, LEAF_WIDE = 7.0, 2.9  # leaves
HIGH, STEP = 1.5, 2.05


def draw_flow_chart(ax: Any = None, share: float = 0.6) -> Any:
    """Draw the questions in their order, each with the leaf it leads to; return the Axes.

    ``share``: what a bucket must explain of the measured time to be named.
    """
    ax = style.axes(ax, 5.3)
    count = len(QUESTIONS)
    for row, (question, leaf) in enumerate(zip(QUESTIONS, LEAVES, strict=True)):
        y = (count - row) * STEP
        plain, how = question
        _box(
            ax,
            LEFT,
            y,
            WIDE,
            f"{row + 1}  {plain}",
            f"{how} {100 * share:.0f} % of the time or more",
        )
        _leaf(ax, y, leaf)
        _arrow(ax, (LEFT + WIDE, y + HIGH / 2), (LEAF - 0.28, y + HIGH / 2))
        ax.text(LEFT + WIDE + 0.5, y + HIGH / 2 + 0.08, "yes", fontsize=TEXT, color=INK,
                ha="center", va="bottom")  # fmt: skip
        _arrow(ax, (LEFT + WIDE / 2, y), (LEFT + WIDE / 2, y - STEP + HIGH))
        ax.text(LEFT + WIDE / 2 + 0.15, y - (STEP - HIGH) / 2, "no", fontsize=TEXT, color=INK,
                va="center")  # fmt: skip
    _box(ax, LEFT, 0, WIDE, LAST[0], LAST[1].replace("\n", " "), thick=True)
    ax.set_xlim(0, 10)
    ax.set_ylim(-0.1, count * STEP + HIGH + 0.1)
    ax.axis("off")
    line = style.title(ax, "Three questions, then a name", "any GPU", "calculated", "per program")
    said = [f"{i}: {q[0]} If yes: {leaf[0]}, remedy {leaf[1]}"
            for i, (q, leaf) in enumerate(zip(QUESTIONS, LEAVES, strict=True), 1)]  # fmt: skip
    words = " ".join(f"{s.replace(chr(10), ' ')}." for s in said)
    style.describe(ax, f"Flow chart ({line}). {words} If no three times: {LAST[0]}. A yes needs "
                       f"{100 * share:.0f} % of the measured time.")  # fmt: skip
    return ax


def _box(
    ax: Any, x: float, y: float, width: float, head: str, small: str, *, thick: bool = False
) -> None:
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(FancyBboxPatch((x, y), width, HIGH, boxstyle="round,pad=0,rounding_size=0.12",
                                facecolor=PAPER, edgecolor=INK,
                                linewidth=2.0 if thick else 1.1))  # fmt: skip
    lines = 1 + small.count("\n")
    ax.text(x + 0.2, y + HIGH / 2 + 0.2 * lines, head, fontsize=TEXT, fontweight="bold", color=INK,
            va="center")  # fmt: skip
    ax.text(x + 0.2, y + HIGH / 2 - 0.26, small, fontsize=SMALL, color=INK, va="center")


def _leaf(ax: Any, y: float, leaf: tuple[str, str, str]) -> None:
    from matplotlib.patches import Rectangle

    name, remedy, part = leaf
    ax.add_patch(Rectangle((LEAF, y), LEAF_WIDE, HIGH, facecolor=PALE, edgecolor=INK,
                           linewidth=2.0))  # fmt: skip
    ax.add_patch(Rectangle((LEAF - 0.24, y), 0.24, HIGH, edgecolor=INK, linewidth=1.0,
                           **LEDGER[part]))  # fmt: skip
    lines = 1 + remedy.count("\n")
    ax.text(LEAF + 0.15, y + HIGH / 2 + 0.18 * lines, name, fontsize=TEXT, fontweight="bold",
            color=INK, va="center")  # fmt: skip
    ax.text(LEAF + 0.15, y + HIGH / 2 - 0.28, remedy, fontsize=SMALL, color=INK, va="center")


def _arrow(ax: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.annotate("", end, xytext=start,
                arrowprops=dict(arrowstyle="-|>", color=GREY, linewidth=1.4, shrinkA=0,
                                shrinkB=0))  # fmt: skip
