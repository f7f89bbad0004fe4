"""A learner's predictions against what came out, one row per notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SMALL, TEXT, VERMILLION

CLOSE = 1.5
"""Up to this factor a prediction counts as close, and is drawn inside the band."""
RIGHT = 1.02
"""Below this a prediction was right, and its mark points nowhere."""
PLACES = (-0.36, 0.36, -0.26, 0.26)  # above and below the line, so that equal ones stay apart
FAR = 1000.0  # a prediction further off stands at the edge, and says so


def draw_predictions(ax: Any, pairs: Iterable[Any], title: str = "Your predictions") -> Any:
    """Draw each prediction over its outcome on a log axis, by notebook; return the Axes.

    ``pairs``: objects with exercise ("04-6"), ratio (prediction over outcome, above zero), origin
    and device. Filled marks were measured or calculated, hollow ones simulated. The furthest of
    each notebook is named where it is outside the band of x1.5. ValueError without a single pair.
    """
    pairs = [pair for pair in pairs if pair.ratio and pair.ratio > 0]
    if not pairs:
        raise ValueError("draw_predictions needs at least one prediction with an outcome.")
    rows = sorted({pair.exercise[:2] for pair in pairs})
    ax = style.axes(ax, 1.75 + 0.5 * len(rows))
    far = min(FAR, max(3.0, *map(_off, pairs)))
    ax.set_xscale("log")
    ax.set_xlim(1 / far / 1.6, far * 1.6)
    ax.axvspan(1 / CLOSE, CLOSE, facecolor=PALE, zorder=0)
    ax.axvline(1, color=INK, linewidth=1.2, linestyle="--", zorder=1)
    for row, notebook in enumerate(rows):
        here = [pair for pair in pairs if pair.exercise[:2] == notebook]
        worst = max(here, key=_off)
        ax.axhline(row, color=PALE, linewidth=0.8, zorder=0)
        _mark(ax, worst, row, far)  # alone on its line: its name covers no other mark
        for i, pair in enumerate(pair for pair in here if pair is not worst):
            _mark(ax, pair, row + PLACES[i % len(PLACES)], far)
        if _off(worst) > CLOSE:
            _name(ax, worst, row, far)
    ax.set_yticks(range(len(rows)), rows, fontsize=TEXT)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    _ticks(ax, far)
    ax.set_xlabel("prediction over outcome (log scale); left: too low", fontsize=TEXT, color=INK)
    ax.set_ylabel("notebook", fontsize=TEXT, color=INK)
    close = sum(_off(p) <= CLOSE for p in pairs)
    headline = f"{title}: {close} of {len(pairs)} within ×{CLOSE:g}"
    line = style.title(ax, headline, *_whence(pairs))
    said = ", ".join(f"{p.exercise} {style.number(p.ratio)}" for p in pairs)
    style.describe(ax, f"{headline} ({line}). Prediction over outcome, 1 is right: {said}.")
    return ax


def _off(pair: Any) -> float:
    return max(pair.ratio, 1 / pair.ratio)


def _mark(ax: Any, pair: Any, y: float, far: float) -> None:
    low, right = pair.ratio < 1, _off(pair) < RIGHT
    hollow = pair.origin == "simulated"
    colour = INK if right else VERMILLION if low else BLUE
    marker = "o" if right else "<" if low else ">"
    ax.plot([_clamped(pair.ratio, far)], [y], marker=marker, markersize=7,
            markerfacecolor=PAPER if hollow else colour, markeredgecolor=colour,
            linestyle="", gid="simulated" if hollow else "measured", zorder=3)  # fmt: skip


def _name(ax: Any, pair: Any, y: float, far: float) -> None:
    side = 1 if pair.ratio < 1 else -1  # towards the middle, where there is room
    text = f"{pair.exercise}: ×{style.number(_off(pair), 2)} off"
    ax.annotate(text, (_clamped(pair.ratio, far), y),
                xytext=(8 * side, 0), textcoords="offset points", va="center",
                ha="left" if side > 0 else "right", fontsize=SMALL, color=INK, gid="worst",
                bbox=dict(facecolor=PAPER, edgecolor="none", pad=0.8))  # fmt: skip


def _clamped(ratio: float, far: float) -> float:
    return min(max(ratio, 1 / far), far)


def _ticks(ax: Any, far: float) -> None:
    steps = [s for s in (2, 5, 10, 30, 100, 1000) if s <= far * 1.3]
    steps = steps if len(steps) <= 3 else [s for s in steps if s in (10, 100, 1000)]
    places = [*(1 / s for s in reversed(steps)), 1.0, *(float(s) for s in steps)]
    labels = [*(f"÷{s}" for s in reversed(steps)), "right", *(f"×{s}" for s in steps)]
    ax.set_xticks(places, labels, fontsize=SMALL)
    ax.xaxis.set_minor_locator(_none())
    ax.spines["bottom"].set_color(GREY)


def _none() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _whence(pairs: Iterable[Any]) -> tuple[str, str, str]:
    """(device, origin, note) of all pairs; where they differ, hollow marks tell the simulated."""
    names = sorted({pair.device for pair in pairs if pair.device and pair.origin != "none"})
    device = names[0] if len(names) == 1 else "your machines"
    band = f"band: within ×{CLOSE:g}"
    origins = {pair.origin for pair in pairs}
    timed = origins - {"none"}
    if not timed:
        return "no machine", "counted", band
    if timed == {"simulated"}:
        filled = "filled marks: calculated · " if "none" in origins else ""
        return device, "simulated", f"{filled}{band}"
    if "simulated" in timed:
        return "your machines", "measured", f"hollow marks: simulated · {band}"
    return device, "measured", band
