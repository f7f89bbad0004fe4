"""What a card reaches beside what its datasheet says, and how long it keeps it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SMALL, TEXT, VERMILLION

_LOOKS: dict[str, dict[str, Any]] = {
    "datasheet": dict(facecolor=PAPER, edgecolor=GREY, hatch="", linewidth=1.4, linestyle="--"),
    "published": dict(facecolor="#F2C9B0", edgecolor=VERMILLION, hatch="////", linewidth=1.2),
    "yours": dict(facecolor=BLUE, edgecolor=BLUE, hatch="", linewidth=1.2),
}


def draw_achieved(
    ax: Any, rows: Mapping[str, Mapping[str, float | None]], units: Mapping[str, str],
    origin: str, device: str,
) -> Any:  # fmt: skip
    """Draw each quantity's datasheet, published and own value as bars, in shares of the datasheet.

    ``rows``: quantity -> {"datasheet": ..., "published": ..., "yours": ...}, in ``units[quantity]``
    ("B/s" or "FLOP/s"); None where there is none. A quantity without a datasheet figure is drawn in
    shares of its own largest value, and its label says so.
    """
    if not rows or not any(v for values in rows.values() for v in values.values()):
        raise ValueError("draw_achieved needs at least one quantity with a value.")
    ax = style.axes(ax, 1.5 + 0.95 * len(rows))
    said, ticks, longest, seen = [], [], 1.0, set()
    for group, (name, values) in enumerate(rows.items()):
        known = {kind: v for kind, v in values.items() if v}
        if not known:
            continue
        whole = known.get("datasheet") or max(known.values())
        ticks.append((4 * group + 1, name if "datasheet" in known else f"{name}\n(no datasheet)"))
        for i, kind in enumerate(_LOOKS):
            y, value = 4 * group + i, known.get(kind)
            if value is None:
                continue
            share = value / whole
            longest = max(longest, share)
            ax.barh(y, share, height=0.82, **_LOOKS[kind])
            seen.add(kind)
            text = style.quantity(value, units[name])
            if kind != "datasheet" and "datasheet" in known:
                text += f", {100 * share:.0f} %"
            ax.text(share + 0.014, y, text, va="center", fontsize=SMALL, color=INK,
                    bbox=dict(facecolor=PAPER, edgecolor="none", pad=0.8))  # fmt: skip
            said.append(f"{name}, {kind}: {text}")
    ax.set_yticks([y for y, _ in ticks], [text for _, text in ticks], fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(4 * len(rows) - 1.2, -0.8)
    ax.set_xlim(0, longest * 1.32)
    ax.axvline(1.0, color=GREY, linestyle=(0, (6, 3)), linewidth=1.0, zorder=0)
    known_sheet = "datasheet" in seen
    what = "the datasheet's figure" if known_sheet else "the largest value"
    ax.set_xlabel(f"share of {what}", fontsize=TEXT, color=INK)
    ax.xaxis.set_major_formatter(lambda v, _: f"{100 * v:.0f} %")
    for kind in [kind for kind in _LOOKS if kind in seen]:
        nowhere = [float("nan")]  # only for the legend, in the same order in every figure
        ax.barh(nowhere, nowhere, label=kind, **_LOOKS[kind])
    style.legend(ax, columns=3)
    headline = "Your roofs beside the datasheet" if known_sheet else "Your roofs"
    line = style.title(ax, headline, device, origin, chars=70)
    style.describe(ax, f"{headline} ({line}). {'; '.join(said)}.")
    return ax


def draw_soak(
    ax: Any,
    at: Sequence[float],
    rates: Sequence[float],
    clocks: Sequence[float | None],
    origin: str,
    device: str,
    *,
    levels: Mapping[str, float] | None = None,
    note: str = "",
) -> Any:
    """Draw the rate (FLOP/s) of each window against its end (s), and below it the clock (Hz).

    ``clocks``: None where none was read; without any reading there is no lower panel. ``levels``:
    labelled lines, such as the datasheet. ``ax``: None or the one Axes for the rate, then without
    a clock. Returns the Axes of the rate.
    """
    if not at or not len(at) == len(rates) == len(clocks):
        raise ValueError("draw_soak needs windows, each with an end, a rate and a clock or None.")
    read = [(t, c) for t, c in zip(at, clocks, strict=True) if c]
    below = None
    if ax is None and read:
        fig, _ = style.figure(4.6)
        fig.clear()
        ax, below = fig.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    ax, levels = style.axes(ax, 3.6), levels or {}
    size, unit = style.scale(max([*rates, *levels.values()]), "FLOP/s")
    ax.plot(at, [r / size for r in rates], color=BLUE, marker="o", markersize=4, linewidth=1.4)
    top = 1.15 * max([*rates, *levels.values()]) / size
    ax.set_ylim(0, top)
    ax.set_xlim(0, at[-1] * 1.03)
    for name, level in levels.items():
        ax.axhline(level / size, color=GREY, linestyle=(0, (6, 3)), linewidth=1.2, gid=name)
    heights = [level / size for level in levels.values()]
    placed = style.spread_apart(heights, 0.075 * top, 0, top)
    for (name, level), y in zip(levels.items(), placed, strict=True):
        ax.annotate(f"{name} {style.number(level / size)}", (1, y / top), xycoords="axes fraction",
                    xytext=(4, 0), textcoords="offset points", va="center", fontsize=SMALL,
                    color=INK, annotation_clip=False)  # fmt: skip
    ax.yaxis.set_major_formatter(lambda v, _: style.number(v))
    ax.set_ylabel(f"rate ({unit})", fontsize=TEXT, color=INK)
    ax.grid(True, axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    if below is not None:
        below = style.axes(below)
        below.plot([t for t, _ in read], [c / 1e6 for _, c in read], color=VERMILLION, marker="s",
                   markersize=4, linewidth=1.4, linestyle="--")  # fmt: skip
        below.set_ylim(0, 1.2 * max(c for _, c in read) / 1e6)
        below.yaxis.set_major_formatter(lambda v, _: style.number(v))
        below.set_ylabel("clock (MHz)", fontsize=TEXT, color=INK)
    (below or ax).set_xlabel("time since the start (s)", fontsize=TEXT, color=INK)
    more = note or ("" if read else "no clock to read")
    headline = "The same product again and again: does it last?"
    line = style.title(ax, headline, device, origin, more, chars=70)
    said = (f"The rate begins at {style.quantity(rates[0], 'FLOP/s')} and ends at "
            f"{style.quantity(rates[-1], 'FLOP/s')} after {at[-1]:.2g} s")  # fmt: skip
    if read:
        said += f"; the clock goes from {read[0][1] / 1e6:,.0f} to {read[-1][1] / 1e6:,.0f} MHz"
    said += "".join(f"; {n}: {style.quantity(v, 'FLOP/s')}" for n, v in levels.items())
    style.describe(ax, f"{headline} ({line}). {said}.")
    return ax
