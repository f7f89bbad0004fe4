"""One or several series against a swept parameter, with knee, levels and flat region."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from helpers.plots import style
from helpers.plots.style import GREY, INK, PALE, SERIES, SMALL, TEXT


def draw_sweep(
    ax: Any,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    origin: str,
    device: str,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
    xunit: str | None = None,
    yunit: str | None = "s",
    logx: bool = False,
    logy: bool = False,
    knee: float | None = None,
    knee_label: str = "predicted knee",
    flat: tuple[float, float] | None = None,
    flat_label: str = "flat",
    levels: Mapping[str, float] | None = None,
    spread: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    note: str = "",
) -> Any:
    """Draw each series against ``x`` and name it at the end of its line; return the Axes.

    ``xunit`` and ``yunit``: unit of the values given ("s", "B", "B/s", "FLOP/s") or None for a bare
    number; the axis chooses ms, MB or GB/s and says so. ``knee``: x of a predicted knee. ``flat``:
    stretch of x to shade. ``levels``: labelled horizontal lines, such as the bandwidth roof.
    ``spread``: for a series, its lower and upper values (p20, p80), drawn as error bars. ``note``
    goes behind device and origin.
    """
    _check(x, series, logx, logy)
    missing = [name for name, ys in series.items() if not any(map(math.isfinite, ys))]
    series = {name: ys for name, ys in series.items() if name not in missing}
    if missing:  # points that could not be measured are NaN
        note = " · ".join(filter(None, (note, f"not measured: {', '.join(missing)}")))
    ax = style.axes(ax, 3.9)
    if not series:
        line = style.title(ax, title or ylabel, device, origin, note)
        style.describe(ax, f"{title or ylabel} ({line}). Nothing to draw: no point was measured.")
        return ax
    levels, spread = levels or {}, spread or {}
    xsize, xname = style.scale(max(x), xunit) if xunit else (1.0, "")
    measured = [v for ys in series.values() for v in ys if math.isfinite(v)]
    largest = max([*measured, *levels.values()])
    ysize, yname = style.scale(largest, yunit) if yunit else (1.0, "")
    across = [v / xsize for v in x]
    marked = _marked(x, logx, 16)
    looks = SERIES[: len(series)]
    for i, (name, ys) in enumerate(series.items()):
        color, marker, line = looks[i]
        values = [v / ysize for v in ys]
        # The first line is the widest, so that one lying on it does not hide it.
        ax.plot(across, values, label=name, color=color, marker=marker, linestyle=line,
                markevery=marked, linewidth=1.6 if i else 2.6,
                markersize=5.5 if i else 8.5)  # fmt: skip
        if name in spread:
            low, high = ([v / ysize for v in side] for side in spread[name])
            ax.vlines(across, low, high, color=color, linewidth=1.2)
    if logx:
        ax.set_xscale("log", base=2)
    if logy:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1.12 * largest / ysize)
    _ticks(ax, logx, logy)
    if logx:
        # Over several decades one unit does not suit all ticks, so each says its own.
        ticks = _marked(x, logx, 6 if xunit else 12)
        ax.set_xticks([across[i] for i in ticks], [_say(x[i], xunit) for i in ticks])
    if flat is not None:
        ax.axvspan(flat[0] / xsize, flat[1] / xsize, color=PALE, alpha=0.55, linewidth=0, zorder=0)
    if knee is not None:
        ax.axvline(knee / xsize, color=INK, linestyle=(0, (1, 2)), linewidth=1.4)
    for name, level in levels.items():
        ax.axhline(level / ysize, color=GREY, linestyle=(0, (6, 3)), linewidth=1.2, gid=name)
    edge = ", log scale"
    ax.set_xlabel(_label(xlabel, "" if logx else xname) + edge * logx, fontsize=TEXT, color=INK)
    ax.set_ylabel(_label(ylabel, yname) + edge * logy, fontsize=TEXT, color=INK)
    headline = title or f"{ylabel} against {xlabel}"
    strokes = "vertical strokes: p20 to p80" if spread else ""
    line = style.title(ax, headline, device, origin, " · ".join(filter(None, (note, strokes))))
    known = {name: [v for v in ys if math.isfinite(v)] for name, ys in series.items()}
    ends = {name: ys[-1] / ysize for name, ys in known.items()}
    ends |= {f"{name} {_say(level, yunit)}": level / ysize for name, level in levels.items()}
    colors = {name: look[0] for name, look in zip(series, looks, strict=True)}
    _name_ends(ax, ends, colors)
    if flat is not None:
        _flat_label(ax, flat[0] / xsize, flat_label)
    said = [
        f"{name}: from {_say(ys[0], yunit)} to {_say(ys[-1], yunit)}" for name, ys in known.items()
    ]
    said += [f"{name}: {_say(level, yunit)}" for name, level in levels.items()]
    if knee is not None:
        where = _say(knee, xunit)
        _knee_label(ax, knee / xsize, f"{knee_label} {where}")
        said.append(f"{knee_label} at {where}")
    span = f"{xlabel} runs from {_say(x[0], xunit)} to {_say(x[-1], xunit)}"
    style.describe(ax, f"{headline} ({line}). {span}. {'; '.join(said)}.")
    return ax


def _check(x: Sequence[float], series: Mapping[str, Sequence[float]], logx: Any, logy: Any) -> None:
    if not series or not x:
        raise ValueError("draw_sweep needs at least one series and one x.")
    for name, ys in series.items():
        if len(ys) != len(x):
            raise ValueError(f"Series {name!r} has {len(ys)} values for {len(x)} values of x.")
    if len(series) > len(SERIES):
        raise ValueError(f"draw_sweep keeps at most {len(SERIES)} series apart; draw fewer.")
    if (logx and min(x) <= 0) or (logy and min(min(ys) for ys in series.values()) <= 0):
        raise ValueError("A log axis needs values above zero.")


def _label(text: str, unit: str) -> str:
    return f"{text} ({unit})" if unit else text


def _say(value: float, unit: str | None) -> str:
    return style.quantity(value, unit) if unit else style.number(value)


def _marked(x: Sequence[float], logx: bool, most: int) -> list[int]:
    """Which values get a marker or tick: all up to ``most``, else powers of two or every nth."""
    if logx and len(x) > most:
        powers = [i for i, v in enumerate(x) if math.log2(v) % 1 < 1e-9]
        if 3 <= len(powers) <= most:
            return powers
    return list(range(0, len(x), -(-len(x) // most)))


def _ticks(ax: Any, logx: bool, logy: bool) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    plain = FuncFormatter(lambda v, _: style.number(v))
    if logx:
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.xaxis.set_major_formatter(plain)
    ax.yaxis.set_major_formatter(plain)
    if logy:
        low, high = ax.get_ylim()
        if high < 30 * low:  # hardly a decade: one labelled tick could not be read
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_minor_formatter(lambda *_: "")
    ax.grid(True, axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)


def _name_ends(ax: Any, ends: Mapping[str, float], colors: Mapping[str, str]) -> None:
    """Write each name to the right of the axes at the height of its line, none on another."""
    ax.figure.draw_without_rendering()
    frame, per_point = ax.get_window_extent(), ax.figure.dpi / 72
    heights = [ax.transData.transform((1, y))[1] for y in ends.values()]
    gap = (SMALL + 4) * per_point
    placed = style.spread_apart(heights, gap, frame.y0, frame.y1)
    for name, y in zip(ends, placed, strict=True):
        ax.annotate(
            name, (1, (y - frame.y0) / frame.height), xycoords="axes fraction", xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=SMALL, color=colors.get(name, INK),
            fontweight="bold" if name in colors else "normal", annotation_clip=False, gid="keep",
        )  # fmt: skip


def _knee_label(ax: Any, x: float, text: str) -> None:
    """Write the label of the knee at the top, on the side of the line that has more room."""
    ax.figure.draw_without_rendering()
    frame = ax.get_window_extent()
    right = ax.transData.transform((x, 1))[0] < (frame.x0 + frame.x1) / 2
    ax.annotate(
        text, (x, 1), xycoords=("data", "axes fraction"), xytext=(4 if right else -4, -3),
        textcoords="offset points", ha="left" if right else "right", va="top", fontsize=SMALL,
        color=INK, annotation_clip=False, gid="keep",
    )  # fmt: skip


def _flat_label(ax: Any, x: float, text: str) -> None:
    """Write the label of the flat stretch at its upper left, a line below the knee's label."""
    ax.annotate(
        text, (x, 1), xycoords=("data", "axes fraction"), xytext=(4, -17), gid="keep",
        textcoords="offset points", va="top", fontsize=SMALL, color=INK,
    )  # fmt: skip
