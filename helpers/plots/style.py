"""What all figures share: size, colours, title with device and origin, units, label placing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from helpers.devices import SIMULATED, is_simulated

ORIGINS = ("measured", "replayed", "simulated", "calculated", "counted", "published")
"""Where the numbers of a figure come from. Nothing was timed for "calculated" (from roofs and
datasheets) and "counted" (operations, bytes); "published" numbers were measured by others."""

# Okabe and Ito, "Color Universal Design" (2008): apart for the common kinds of colour blindness.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
ORANGE, SKY, INK, GREY, PALE, PAPER = (
    "#E69F00", "#56B4E9", "#1A1A1A", "#595959", "#D9D9D9", "#FFFFFF",
)  # fmt: skip
SERIES = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (INK, "v", (0, (5, 1, 1, 1, 1, 1))),
    (ORANGE, "P", (0, (8, 2))),
    (SKY, "X", (0, (1, 1))),
)
"""Colour, marker and line style of the first, second, ... series: no two share any of them."""

WIDTH = 6.4  # inches: 640 px on a page, where a point of type is 1.39 px
TITLE, TEXT, SMALL = 11.5, 10.0, 9.0

_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")),
    "FLOP": ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1.0, "FLOP")),
    "FLOP/s": ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"), (1.0, "FLOP/s")),
}


def figure(height: float = 3.6, columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """Return (figure, axes) of course width on white; ``height`` in inches.

    The figure is not known to pyplot, so that no notebook shows it a second time by itself.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(WIDTH, height), facecolor=PAPER, layout="constrained")
    FigureCanvasAgg(fig)
    fig.get_layout_engine().set(w_pad=0.12, h_pad=0.1, wspace=0.03)
    return fig, fig.subplots(rows, columns)


def axes(ax: Any, height: float = 3.6) -> Any:
    """Return ``ax``, or the Axes of a new figure, dressed in colours that no theme can change."""
    ax = figure(height)[1] if ax is None else ax
    ax.figure.set_facecolor(PAPER)
    ax.set_facecolor(PAPER)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GREY)
    ax.tick_params(which="both", colors=INK, labelsize=SMALL, labelcolor=INK)
    ax.grid(False)
    return ax


def title(ax: Any, headline: str, device: str, origin: str, more: str = "", chars: int = 80) -> str:
    """Write the headline and, below it, device and origin; return the second line.

    ``chars``: characters that fit on one small line; fewer where long row labels take the width.

    Raises ValueError for an unknown origin, an empty device, and a simulated device whose numbers
    are said to be measured.
    """
    line = origin_line(device, origin) + (f" · {more}" if more else "")
    line = _packed(line.split(" · "), chars)
    ax.set_title(line, loc="left", fontsize=9.5, color=GREY, pad=7)
    ax.annotate(
        textwrap.fill(headline, round(0.78 * chars)),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7 + 14 * (line.count("\n") + 1)),
        textcoords="offset points",
        fontsize=TITLE,
        fontweight="bold",
        color=INK,
        va="bottom",
        annotation_clip=False,
        gid="headline",
    )
    return line


def _packed(parts: Sequence[str], chars: int) -> str:
    """Join ``parts`` with dots into lines of at most ``chars``, broken between parts."""
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= chars:
            lines[-1] += f" · {part}"
        else:
            lines += [part]
    return "\n".join(textwrap.fill(line, chars) for line in lines)


def origin_line(device: str, origin: str) -> str:
    """Return "Tesla T4 (simulated) · simulated": the device with the origin of its numbers."""
    if origin not in ORIGINS:
        raise ValueError(f"Unknown origin {origin!r}; use one of {', '.join(ORIGINS)}.")
    if not device.strip():
        raise ValueError("A figure needs the name of its device; the device given is empty.")
    if origin == "measured" and is_simulated(device):
        raise ValueError(f"{device} cannot be the device of a measurement; say simulated.")
    if origin == "simulated" and not is_simulated(device):
        device += SIMULATED
    return f"{device} · {origin}"


def scale(largest: float, unit: str) -> tuple[float, str]:
    """Return (size, name) of the unit in which ``largest`` is at least 1, such as (1e-3, "ms")."""
    steps = _SCALES[unit]
    return next((step for step in steps if abs(largest) >= step[0]), steps[-1])


def number(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits, thousands marked, no exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.2g}"


def quantity(value: float, unit: str, digits: int = 3) -> str:
    """Return ``value`` (s, B, B/s, FLOP or FLOP/s) as people say it: "2.24 ms", "320 GB/s"."""
    size, name = scale(value, unit)
    return f"{number(value / size, digits)} {name}"


def describe(ax: Any, sentence: str) -> None:
    """Remember the figure in words, for readers who cannot see it."""
    ax._in_words = " ".join(sentence.split())


def place_labels(ax: Any, labels: Sequence[tuple[float, float, str]], **style: Any) -> list[Any]:
    """Write each (x, y, text) beside its point where it covers no earlier label and no edge.

    Tries eight places around the point, then the same further out, and takes the least bad.
    """
    fig = ax.figure
    fig.draw_without_rendering()  # only after layout are the sizes in pixels known
    renderer, frame = fig.canvas.get_renderer(), ax.get_window_extent()
    points = [ax.transData.transform(item[:2]) for item in labels]
    taken: list[Any] = [t.get_window_extent(renderer) for t in ax.texts if t.get_gid() == "keep"]
    points += _along(ax)
    placed = []
    for x, y, text in labels:
        note = ax.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points",
            fontsize=SMALL, color=INK, annotation_clip=False, **style,
        )  # fmt: skip
        best = min(_places(), key=lambda place: _cost(note, place, renderer, taken, points, frame))
        _move(note, best)
        taken.append(note.get_window_extent(renderer))
        placed.append(note)
        if max(abs(best[0]), abs(best[1])) >= 16:
            ax.annotate("", (x, y), xytext=best[:2], textcoords="offset points", gid="leader",
                        arrowprops=dict(arrowstyle="-", color=GREY, linewidth=0.8, shrinkA=0,
                                        shrinkB=4))  # fmt: skip
    return placed


def _places() -> Iterable[tuple[float, float, str, str]]:
    for far in (7.0, 16.0, 28.0):
        for dx, dy in ((1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            yield (far * dx, far * dy, ("right", "center", "left")[dx + 1],
                   ("top", "center", "bottom")[dy + 1])  # fmt: skip


def _move(note: Any, place: tuple[float, float, str, str]) -> None:
    note.set_position(place[:2])
    note.set_horizontalalignment(place[2])
    note.set_verticalalignment(place[3])


def _cost(note: Any, place: Any, renderer: Any, taken: Any, points: Any, frame: Any) -> float:
    _move(note, place)
    box = note.get_window_extent(renderer)
    outside = max(0.0, box.x1 - frame.x1, frame.x0 - box.x0, box.y1 - frame.y1, frame.y0 - box.y0)
    covered = sum(_shared(box, other) for other in taken)
    covered += sum(
        40.0 for x, y in points if box.x0 - 4 < x < box.x1 + 4 and box.y0 - 2 < y < box.y1 + 2
    )
    if max(abs(place[0]), abs(place[1])) >= 16:
        anchor = note.axes.transData.transform(note.xy)
        offset = (place[0] * note.figure.dpi / 72, place[1] * note.figure.dpi / 72)
        for part in (0.3, 0.5, 0.7, 0.9):  # the leader must not cross another label either
            x, y = anchor[0] + part * offset[0], anchor[1] + part * offset[1]
            covered += 150.0 * any(b.x0 < x < b.x1 and b.y0 < y < b.y1 for b in taken)
    return covered + 20.0 * outside + (abs(place[0]) + abs(place[1])) * 0.1


def _along(ax: Any) -> list[Any]:
    """Pixels every few steps along the lines that are drawn, so that labels keep off them."""
    import numpy as np

    found: list[Any] = []
    for line in ax.lines:
        corners = line.get_transform().transform(line.get_xydata())
        for start, end in pairwise(corners):
            steps = int(np.hypot(*(end - start)) // 6) + 1
            found += [*np.linspace(start, end, steps)]
    return found


def _shared(a: Any, b: Any) -> float:
    """Area in square pixels that two boxes share, each with two pixels of air around it."""
    wide = min(a.x1, b.x1) - max(a.x0, b.x0) + 4
    high = min(a.y1, b.y1) - max(a.y0, b.y0) + 4
    return wide * high if wide > 0 and high > 0 else 0.0


def spread_apart(centres: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return ``centres`` moved as little as needed to lie ``gap`` apart within [low, high]."""
    order = sorted(range(len(centres)), key=lambda i: centres[i])
    moved = [min(max(centres[i], low), high) for i in order]
    for i in range(1, len(moved)):
        moved[i] = max(moved[i], moved[i - 1] + gap)
    overrun = max(0.0, moved[-1] - high) if moved else 0.0
    if overrun:
        moved[-1] -= overrun
        for i in range(len(moved) - 2, -1, -1):
            moved[i] = min(moved[i], moved[i + 1] - gap)
    result = [0.0] * len(moved)
    for place, i in enumerate(order):
        result[i] = moved[place]
    return result


def legend(ax: Any, columns: int = 1, order: Iterable[str] = ()) -> Any:
    """Put the legend below the axes, where it covers nothing; labels in ``order`` come first."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0, -38 / 72, ax.figure.dpi_scale_trans)  # ticks and axis label
    known = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    labels = dict.fromkeys([*(label for label in order if label in known), *known])
    return ax.legend(
        [known[label] for label in labels], list(labels), loc="upper left",
        bbox_to_anchor=(0, 0), bbox_transform=ax.transAxes + below,
        ncols=columns, fontsize=SMALL, labelcolor=INK, frameon=False, handlelength=2.6,
        handleheight=1.1, columnspacing=1.4, borderaxespad=0,
    )  # fmt: skip
