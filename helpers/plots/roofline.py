"""The roofline: attainable rate against arithmetic intensity, with up to three roofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helpers.plots import style
from helpers.plots.style import GREY, INK, PAPER, SERIES, SMALL, TEXT

# The same kind of roof always has the same line: paper is dashed, published dotted, own solid.
_LOOKS = {
    "datasheet peak": dict(linestyle="--", marker="s", color=GREY, linewidth=1.5),
    "published sustained": dict(linestyle=":", marker="^", color=style.VERMILLION, linewidth=2.2),
    "measured ceiling": dict(linestyle="-", marker="o", color=style.BLUE, linewidth=2.2),
}
_LOOKS["simulated ceiling"] = _LOOKS["measured ceiling"]

_MARKERS = (*(marker for _, marker, _ in SERIES), "<", ">", "p", "*", "h")


@dataclass(frozen=True)
class Point:
    """One operation: ``intensity`` in FLOP/B, ``rate`` in FLOP/s.

    ``origin`` is one of the four origins, or "predicted": then the marker is hollow.
    """

    label: str
    intensity: float
    rate: float
    origin: str = "measured"


def draw_roofline(
    ax: Any,
    roofs: Sequence[Any],
    points: Sequence[Point] = (),
    dtype: str = "fp16",
    *,
    origin: str | None = None,
    title: str | None = None,
) -> Any:
    """Draw roofs (Williams, Waterman, Patterson 2009) and points on two log axes; return the Axes.

    ``roofs``: objects with ``label`` (one of the three kinds), ``device``, ``bandwidth`` in B/s,
    ``rates[dtype]`` in FLOP/s, ``vector_rate`` in operations/s or None, ``origin``. The vector roof
    drawn is that of the last roof, so give them in the order datasheet, sustained, measured. All
    must be of one device. ``origin`` of the figure: by default that of the points, or of the roofs.
    """
    _check(roofs, points, dtype)
    ax = style.axes(ax, 5.0)
    last, ridges = roofs[-1], [roof.rates[dtype] / roof.bandwidth for roof in roofs]
    top = max(roof.rates[dtype] for roof in roofs)
    low = min([0.1, *(p.intensity / 2 for p in points)])
    high = max([10 * max(ridges), *(p.intensity * 3 for p in points)])
    said = []
    for roof, ridge in zip(roofs, ridges, strict=True):
        rate, look = roof.rates[dtype], dict(_LOOKS[roof.label])
        marker = look.pop("marker")
        text = (
            f"{roof.label}: {style.quantity(rate, 'FLOP/s')} {dtype}, "
            f"{style.quantity(roof.bandwidth, 'B/s')}, ridge {style.number(ridge)} FLOP/B"
        )
        said.append(text)
        ax.plot([low, ridge, high], [low * roof.bandwidth, rate, rate], label=text, marker=marker,
                markevery=[1], markersize=8, markerfacecolor=PAPER, markeredgewidth=1.8,
                **look)  # fmt: skip
    if last.vector_rate:
        knee = last.vector_rate / last.bandwidth
        text = f"vector units: {style.quantity(last.vector_rate, 'FLOP/s')}"
        ax.plot([knee, high], [last.vector_rate] * 2, linestyle="-.", color=style.GREEN,
                linewidth=1.8, label=f"{text}, ridge {style.number(knee)} FLOP/B")  # fmt: skip
        said.append(text)
    ax.set_xscale("log")
    ax.set_yscale("log")
    lowest = min([low * last.bandwidth, *(p.rate / 3 for p in points)])
    ax.set_xlim(low, high)
    ax.set_ylim(lowest, max([top * 2.5, *(2.5 * p.rate for p in points)]))
    down = (0, (1, 2))
    ax.plot([ridges[-1]] * 2, [lowest, last.rates[dtype]], color=INK, linewidth=0.8,
            linestyle=down)  # fmt: skip
    ax.annotate(
        f"ridge {style.number(ridges[-1])} FLOP/B", (ridges[-1], lowest), xytext=(5, 5),
        textcoords="offset points", fontsize=SMALL, color=INK, gid="keep",
    )  # fmt: skip
    _edges(ax)
    for i, point in enumerate(points):
        color, marker = SERIES[i % len(SERIES)][0], _MARKERS[i % len(_MARKERS)]
        hollow = point.origin == "predicted"
        ax.plot(point.intensity, point.rate, marker=marker, linestyle="none",
                markersize=max(6.0, 9.5 - 0.7 * i),  # so that points in one place stay visible
               
                color=color, markerfacecolor=PAPER if hollow else color, markeredgewidth=1.6,
                zorder=5, gid=f"point {point.label}")  # fmt: skip
    style.legend(ax)
    where = origin or next(
        (p.origin for p in points if p.origin != "predicted"),
        "calculated" if last.origin == "published" else last.origin,
    )
    headline = title or f"Roofline, {dtype}: how fast could it be?"
    line = style.title(ax, headline, last.device, where)
    labels = [p.label + (" (predicted)" if p.origin == "predicted" else "") for p in points]
    style.place_labels(
        ax, [(p.intensity, p.rate, label) for p, label in zip(points, labels, strict=True)]
    )
    said += [
        f"{label}: {style.quantity(p.rate, 'FLOP/s')} at {style.number(p.intensity)} FLOP/B"
        for p, label in zip(points, labels, strict=True)
    ]
    style.describe(ax, f"{headline} ({line}). {'; '.join(said)}. Both axes are logarithmic.")
    return ax


def _check(roofs: Sequence[Any], points: Sequence[Point], dtype: str) -> None:
    if not roofs:
        raise ValueError("draw_roofline needs at least one roof.")
    for roof in roofs:
        if roof.label not in _LOOKS:
            raise ValueError(f"Unknown kind of roof {roof.label!r}; use {', '.join(_LOOKS)}.")
        if dtype not in roof.rates:
            raise ValueError(f"The roof {roof.label!r} of {roof.device} has no rate for {dtype}.")
    for point in points:
        if point.intensity <= 0 or point.rate <= 0:
            raise ValueError(f"Point {point.label!r}: log axes need values above zero.")


def _edges(ax: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    ax.set_xlabel("arithmetic intensity (FLOP/B), log scale", fontsize=TEXT, color=INK)
    ax.set_ylabel("rate (TFLOP/s), log scale", fontsize=TEXT, color=INK)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 1e12:g}"))
    ax.grid(True, which="major", color=style.PALE, linewidth=0.6)
    ax.set_axisbelow(True)
