"""Three pictures of time: what queues, what moves and what computes, in each of the buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from helpers.plots import style
from helpers.plots.bars import _PARTS as LEDGER
from helpers.plots.style import GREY, INK, PALE, PAPER, SMALL, TEXT

KINDS = ("compute", "memory", "overhead")
ORDERS = tuple(permutations(KINDS))
"""The orders in which three unlabelled pictures can stand."""

SPAN = 24.0  # drawn time, in units of one launch
LATE = 1.2  # the gap that a late launch leaves
ROOM = 17.0  # points above the first panel for its own headline


@dataclass(frozen=True)
class Lane:
    """One program as it is drawn. Lengths in units of one launch, shares from 0 to 1.

    ``launch``: what the host needs for each of ``kernels``; ``kernel``: how long each runs;
    ``moves`` and ``computes``: the share of a kernel's time in which either is busy. ``hiccup``:
    the launch after this kernel comes ``LATE`` too late. ``copy``: the host waits this long for a
    copy before each kernel.
    """

    headline: str
    launch: float
    kernels: int
    kernel: float
    moves: float
    computes: float
    hiccup: int = 0
    copy: float = 0.0


LANES = {
    "compute": Lane("compute-bound: the units never rest", 1.0, 4, 5.6, 0.2, 1.0),
    "memory": Lane("memory-bound: the lorries never rest, the units do", 1.0, 4, 5.6, 1.0, 0.12),
    "overhead": Lane("overhead-bound: gaps, while the host never rests", 2.0, 11, 0.5, 1.0, 0.3),
    "copies": Lane("none of the three: everyone waits for a copy", 0.6, 3, 1.6, 1.0, 0.3, 0, 5.4),
}
# To be read without a headline. One late launch makes no overhead-bound program, and inside its
# short kernels an overhead-bound one may keep the lorries busy.
_UNLABELLED = {
    "compute": Lane("", 0.8, 5, 4.2, 0.45, 1.0, 2),
    "memory": Lane("", 0.8, 5, 4.2, 1.0, 0.2, 3),
    "overhead": Lane("", 1.6, 14, 0.6, 1.0, 0.55),
}
_PARTS = (
    ("CPU queues", dict(LEDGER["host"], edgecolor=INK, linewidth=0.6)),
    ("memory moves", dict(LEDGER["memory"], edgecolor=INK, linewidth=0.4)),
    ("units compute", dict(LEDGER["compute"], edgecolor=INK, linewidth=0.4)),
)
_WAITS = dict(facecolor=PAPER, edgecolor=GREY, linestyle="--", linewidth=1.1)


def draw_lanes(kinds: Sequence[str] = KINDS) -> Any:
    """Draw one panel per kind of ``LANES``, with its headline; return the list of Axes."""
    return _panels([LANES[kind] for kind in kinds], [""] * len(kinds), "Who is busy, who waits?")


def draw_unlabelled_lanes(series: int = 0) -> Any:
    """Draw the three buckets as A, B and C in the order ``ORDERS[series]``; return the Axes."""
    if not 0 <= series < len(ORDERS):
        raise ValueError(f"There are {len(ORDERS)} series, 0 to {len(ORDERS) - 1}, not {series}.")
    lanes = [_UNLABELLED[kind] for kind in ORDERS[series]]
    return _panels(lanes, ["A", "B", "C"], "Which bucket is which?")


def _panels(lanes: Sequence[Lane], names: Sequence[str], title: str) -> list[Any]:
    count = len(lanes)
    fig, _ = style.figure(1.28 * count + 0.95)
    fig.clear()
    panels = list(fig.subplots(count, 1, squeeze=False)[:, 0])
    for at, (ax, lane, name) in enumerate(zip(panels, lanes, names, strict=True)):
        style.axes(ax)
        events = _draw(ax, lane)
        said = " ".join(filter(None, (name, lane.headline)))
        if at:
            ax.set_title(said, loc="left", fontsize=TEXT, fontweight="bold", color=INK, pad=3)
        elif count == 1:
            style.title(ax, said, "any GPU", "calculated", "a sketch")
        else:
            line = style.title(ax, title, "any GPU", "calculated", "a sketch, not to scale")
            ax.set_title(line, loc="left", fontsize=9.5, color=GREY, pad=7 + ROOM)
            headline = next(text for text in ax.texts if text.get_gid() == "headline")
            headline.set_position((0, 21 + ROOM))
            ax.annotate(said, (0, 1), xycoords="axes fraction", xytext=(0, 3), fontsize=TEXT,
                        textcoords="offset points", fontweight="bold", color=INK)  # fmt: skip
        whole = "" if at else f"{title} (any GPU · calculated · a sketch). "
        style.describe(ax, whole + _words(name, lane, events))
        ax.spines["bottom"].set_visible(at == count - 1)
    boxes = "framed: one kernel"
    waits = "; dashed: CPU waits" if any(lane.copy for lane in lanes) else ""
    panels[-1].set_xlabel(f"time →   {boxes}{waits}", fontsize=TEXT, color=INK)
    return panels


def _draw(ax: Any, lane: Lane) -> list[tuple[float, float]]:
    """Draw one program; return start and end of its kernels."""
    host = free = 0.0
    launches, waits, kernels = [], [], []
    for number in range(1, lane.kernels + 1):
        if lane.copy:
            waits.append((max(host, free), max(host, free) + lane.copy))
            host = waits[-1][1]
        if number == lane.hiccup + 1 and lane.hiccup:
            host = free + LATE - lane.launch
        launches.append((host, host + lane.launch))
        host += lane.launch
        start = max(host, free)
        free = start + lane.kernel
        kernels.append((start, free))
    for row, (_, look) in enumerate(_PARTS):
        share = (1.0, lane.moves, lane.computes)[row]
        spans = launches if row == 0 else [p for k in kernels for p in _pulses(*k, share)]
        ax.broken_barh([(a, b - a) for a, b in spans], (row - 0.36, 0.72), **look)
    ax.broken_barh([(a, b - a) for a, b in waits], (-0.36, 0.72), **_WAITS)
    for start, end in kernels:
        ax.broken_barh([(start, end - start)], (0.54, 1.92), facecolor="none", edgecolor=INK,
                       linewidth=1.1, gid="kernel")  # fmt: skip
    ax.set_ylim(2.62, -0.55)
    ax.set_xlim(0, SPAN + 0.4)
    ax.set_yticks(range(3), [name for name, _ in _PARTS], fontsize=SMALL)
    ax.set_xticks([])
    ax.tick_params(axis="y", length=0)
    ax.axhline(0.5, color=PALE, linewidth=0.8, zorder=0)
    return kernels


def _pulses(start: float, end: float, share: float) -> list[tuple[float, float]]:
    """Busy stretches of one kernel: ``share`` of its time, spread over it."""
    if share >= 1:
        return [(start, end)]
    count = max(1, round((end - start) / 1.4))
    step = (end - start) / count
    return [(start + i * step, start + (i + share) * step) for i in range(count)]


def _words(name: str, lane: Lane, kernels: Sequence[tuple[float, float]]) -> str:
    busy = sum(b - a for a, b in kernels)
    whole = kernels[-1][1] - kernels[0][0]
    gaps = f"{1 - busy / whole:.0%} of the time no kernel runs"
    return (
        f"{name or lane.headline}: {len(kernels)} kernels; {gaps}. Inside a kernel the memory "
        f"moves {lane.moves:.0%} of the time and the units compute {lane.computes:.0%}. "
        f"The CPU queues for {lane.kernels * lane.launch / kernels[-1][1]:.0%} of the time."
    )
