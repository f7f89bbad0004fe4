"""Figures of notebook 03: work against time by kind of operation, and intensity against rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helpers.plots import style
from helpers.plots.roofline import Point, draw_roofline
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SMALL, TEXT, VERMILLION
from helpers.plots.sweep import draw_sweep

ELEMENT = {"fp16": 2, "bf16": 2, "fp32": 4}
"""Bytes of one element."""

TRAIL = tuple(2**k for k in range(13))
"""Rows that the explorer marks along the way: 1 to 4096."""


def linear_intensity(rows: float, width_in: float, width_out: float, itemsize: int) -> float:
    """Return FLOP per byte of [rows, width_in] x [width_in, width_out], each tensor moved once.

    2BDF FLOP over itemsize x (BD + DF + BF) bytes; two FLOP per multiply-add.
    """
    moved = itemsize * (rows * width_in + width_in * width_out + rows * width_out)
    return 2 * rows * width_in * width_out / moved


def draw_shares(
    ax: Any,
    shares: Mapping[str, tuple[float, float]],
    *,
    device: str,
    origin: str,
    title: str = "Share of the arithmetic, share of the time",
    more: str = "",
) -> Any:
    """Draw for each kind of operation its share of the FLOPs above that of the time.

    ``shares``: kind -> (share of FLOPs, share of time), each 0 to 1. Returns the Axes.
    """
    if not shares or any(not 0 <= s <= 1 for pair in shares.values() for s in pair):
        raise ValueError("draw_shares needs at least one kind, and every share between 0 and 1.")
    ax = style.axes(ax, 1.7 + 0.75 * len(shares))
    looks = (
        ("share of the FLOPs", dict(facecolor=PAPER, edgecolor=VERMILLION, hatch="///")),
        ("share of the time", dict(facecolor=BLUE, edgecolor=BLUE)),
    )
    said = []
    for row, (kind, pair) in enumerate(shares.items()):
        for half, (share, (label, look)) in enumerate(zip(pair, looks, strict=True)):
            y = row - 0.2 + 0.4 * half
            ax.barh(y, 100 * share, height=0.34, linewidth=1.4, label=None if row else label,
                    **look)  # fmt: skip
            ax.text(100 * share + 1.2, y, _percent(share), va="center", fontsize=TEXT, color=INK)
        said.append(f"{kind}: {_percent(pair[0])} of the FLOPs, {_percent(pair[1])} of the time")
    ax.set_yticks(range(len(shares)), list(shares), fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(shares) - 0.45, -0.55)
    ax.set_xlim(0, 114)
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("share (%)", fontsize=TEXT, color=INK)
    style.legend(ax, columns=2)
    line = style.title(ax, title, device, origin, more, 70)
    style.describe(ax, f"{title} ({line}). {'; '.join(said)}.")
    return ax


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share < 0.01 else f"{100 * share:.1f} %"


def draw_intensity(
    ax: Any,
    rows: Sequence[int],
    widths: Sequence[int],
    roofs: Sequence[Any],
    dtype: str = "fp16",
    *,
    title: str = "Rows decide, not the size of the matrix",
) -> Any:
    """Draw intensity against rows for square layers of several widths, and where ridges lie.

    ``roofs`` as in `draw_roofline`, all of one device; the band between the lowest and the highest
    of their ridges is shaded. The figure is calculated: nothing in it was timed. Returns the Axes.
    """
    known = [roof for roof in roofs if dtype in roof.rates]
    if not known:
        raise ValueError(f"draw_intensity needs at least one roof with a rate for {dtype}.")
    size = ELEMENT[dtype]
    curves = {
        f"width {width:,}": [linear_intensity(b, width, width, size) for b in rows]
        for width in widths
    }
    ridges = [roof.rates[dtype] / roof.bandwidth for roof in known]
    ax = draw_sweep(
        ax, rows, curves, logx=True, logy=True, yunit=None, levels=_levels(known, ridges),
        origin="calculated", device=known[-1].device, title=title,
        xlabel="rows that share one trip of the weights", ylabel="intensity (FLOP/B)", note=dtype,
    )  # fmt: skip
    low, high = min(ridges), max(ridges)
    ax.axhspan(low, max(high, low * 1.04), color=PALE, alpha=0.7, linewidth=0, zorder=0)
    late = low < rows[len(rows) // 2]  # the curves cross early: write where they are far away
    look = dict(fontsize=SMALL, color=INK, ha="right" if late else "left")
    at = max(rows) if late else min(rows) * 1.1
    ax.text(at, high * 1.25, "above: compute-bound", va="bottom", **look)
    ax.text(at, low / 1.25, "below: memory-bound", va="top", **look)
    return ax


_SHORT = {"datasheet peak": "paper", "published sustained": "published"}


def _levels(roofs: Sequence[Any], ridges: Sequence[float]) -> dict[str, float]:
    """A level per ridge, named shortly; of two less than 4 % apart the later one."""
    kept: dict[str, float] = {}
    for roof, ridge in zip(roofs, ridges, strict=True):
        kept = {name: value for name, value in kept.items() if abs(value / ridge - 1) >= 0.04}
        kept[f"ridge, {_SHORT.get(roof.label, 'yours')}"] = ridge
    return kept


def draw_roofline_explorer(
    ax: Any,
    roofs: Sequence[Any],
    batch: int = 64,
    width: int = 8192,
    dtype: str = "fp16",
    points: Sequence[Point] = (),
) -> Any:
    """Draw where ``batch`` rows through a ``width`` x ``width`` layer stand under ``roofs``.

    ``roofs`` as in `draw_roofline`; the layer is placed under the last of them that has a rate for
    ``dtype``. ``points``: the learner's own, drawn filled. Small grey dots mark 1 to 4096 rows.
    Calculated. Returns the Axes.
    """
    if dtype not in ELEMENT:
        raise ValueError(f"Unknown dtype {dtype!r}; use {', '.join(ELEMENT)}.")
    if batch < 1 or width < 1:
        raise ValueError(f"Need at least one row and one column, not {batch} and {width}.")
    known = [roof for roof in roofs if dtype in roof.rates]
    if not known:
        raise ValueError(f"None of the roofs has a rate for {dtype}.")
    roof = known[-1]

    def place(rows: int) -> tuple[float, float]:
        intensity = linear_intensity(rows, width, width, ELEMENT[dtype])
        return intensity, min(roof.rates[dtype], roof.bandwidth * intensity)

    intensity, rate = place(batch)
    leaning = _leaning(intensity, [r.rates[dtype] / r.bandwidth for r in known])
    seconds = 2 * batch * width**2 / rate
    many = f"{batch:,} row{'s' * (batch > 1)}"
    ax = draw_roofline(
        ax, known, [Point(many, intensity, rate, "predicted"), *points], dtype,
        origin="calculated",
        title=f"{many}, {width:,} wide, {dtype}: {leaning}",
    )  # fmt: skip
    trail = [place(rows) for rows in TRAIL]
    ax.plot([x for x, _ in trail], [y for _, y in trail], linestyle="none", marker=".",
            markersize=4, color=GREY, zorder=4, gid="trail")  # fmt: skip
    more = f"{style.number(intensity)} FLOP/B, at best {style.quantity(seconds, 's')} per call"
    ax.set_xlabel(f"{ax.get_xlabel()}\nhere: {more}", fontsize=TEXT, color=INK)
    _lower_legend(ax)
    style.describe(
        ax,
        f"{ax._in_words} The layer with {many} has {more} under the {roof.label} of {roof.device}, "
        f"and is {leaning}.",
    )
    return ax


NEAR = 3.0
"""Within this factor of a ridge a layer is near it: ridges of one card differ as much."""


def _leaning(intensity: float, ridges: Sequence[float]) -> str:
    """Which way ``intensity`` leans under roofs with these ``ridges``, in words."""
    if intensity < min(ridges) / NEAR:
        return "leaning to memory"
    if intensity > max(ridges) * NEAR:
        return "leaning to compute"
    return "near the ridge"


def _lower_legend(ax: Any) -> None:
    """Make room for the second line of the label below the axis."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0, -54 / 72, ax.figure.dpi_scale_trans)
    ax.get_legend().set_bbox_to_anchor((0, 0), transform=ax.transAxes + below)
