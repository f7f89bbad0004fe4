"""What a token costs: curves against the batch, with the memory wall and a latency limit."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helpers import inference, roofline
from helpers.devices import get
from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, PALE, PAPER, SERIES, SMALL, TEXT, VERMILLION

ROOFS = "every card at its datasheet peaks: costs are lower bounds"
MOST_BATCH = 4096


@dataclass(frozen=True)
class Offer:
    """A card at a price: one line of a figure. ``price`` in USD per hour, ``context`` in tokens."""

    label: str
    device: Any
    price: float
    context: int

    def at(self, model: inference.Model, batch: int) -> tuple[float, float]:
        """Return (USD per million tokens, seconds per step) of ``batch`` sequences."""
        step = inference.decode(model, roofline.datasheet(_device(self.device)), batch,
                                self.context).seconds  # fmt: skip
        return inference.cost_per_million(self.price, batch / step), step

    def wall(self, model: inference.Model) -> int:
        """Return the largest batch that fits into the card's memory; 0 where not one does."""
        return inference.largest_batch(model, _device(self.device).memory, self.context)

    def usable(self, model: inference.Model, limit: float) -> int:
        """Return the largest batch that fits and whose step takes at most ``limit`` seconds."""
        batches = range(1, self.wall(model) + 1)  # a step takes longer with every sequence
        return bisect_right(batches, limit, key=lambda batch: self.at(model, batch)[1])


def draw_cost_curves(
    ax: Any,
    offers: Sequence[Offer],
    *,
    limit: float | None = None,
    model: inference.Model | None = None,
    title: str = "A token gets cheaper with the batch, until a wall",
    device: str = "",
) -> Any:
    """Draw USD per million tokens against the batch, one line per offer; return the Axes.

    Each line ends in a cross where the card's memory is full. With ``limit`` (seconds per token of
    one sequence) the part that is too slow is thin and dotted, and a ring marks the largest batch
    within the limit. An offer of which not one sequence fits, or that costs nothing, is named and
    not drawn. ``device`` names the card in the title, where it is the same for all.
    """
    model = model or inference.model()
    ax = style.axes(ax, 4.3)
    said, labels, absent = [], [], []
    for (color, marker, _), offer in zip(SERIES, _few(offers), strict=False):
        wall = offer.wall(model)
        if wall < 1 or not _priced(offer.price):
            absent.append(offer.label)
            said.append(f"{offer.label}: not drawn, no sequence fits or no price.")
            continue
        usable = wall if limit is None else offer.usable(model, limit)
        _curve(ax, offer, model, usable, wall, color, marker)
        where = usable or wall
        cost = offer.at(model, where)[0]
        said.append(_said(offer, model, usable, wall, limit))
        there = f"batch {where}: {style.number(cost, 2)} USD" if usable else "too slow at any batch"
        labels.append((where, cost, f"{offer.label}\n{there}"))
    _dress(ax, "USD per million tokens")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    _log_ticks(ax)
    ax.set_xlabel("batch, sequences at once, log scale", fontsize=TEXT, color=INK)
    marks = "cross: memory full"
    if limit is not None:
        marks += f" · ring: last batch within {style.quantity(limit, 's')} per token"
        marks += " · dotted: slower"
    none = f"not drawn: {', '.join(absent)}" if absent else ""
    more = " · ".join(filter(None, (marks, none)))
    line = style.title(
        ax, title, device or "cards at their datasheet peaks", "calculated", more, 74
    )
    if labels:
        ax.margins(x=0.12, y=0.26)
        style.legend(ax, columns=3)
        style.place_labels(ax, labels, linespacing=1.1, zorder=1.5,  # over the grid alone
                           bbox=dict(facecolor=PAPER, edgecolor="none", pad=0.6))  # fmt: skip
    style.describe(ax, f"{title} ({line}). Both axes are logarithmic. {' '.join(said)}")
    return ax


def draw_cost_explorer(
    device: Any = "t4",
    price: float = 0.59,
    batch: int = 1,
    context: int = 1024,
    *,
    limit: float = 0.05,
    model: inference.Model | None = None,
) -> Any:
    """Draw cost above and latency below against the batch, with ``batch`` marked; return the Axes.

    ``price`` in USD per hour, ``limit`` in seconds per token, drawn as a line. A batch that does
    not fit is moved to the memory wall, and the headline says so. Calculated from the datasheet.
    """
    model, card = model or inference.model(), _device(device)
    offer = Offer(card.name, card, price, context)
    wall = offer.wall(model)
    _, (top, low) = style.figure(5.8, rows=2)
    for ax in (top, low):
        style.axes(ax)
    if wall < 1 or not _priced(price):
        if wall < 1:
            why = f"Not one sequence of {context:,} tokens fits"
            return _nothing(top, low, card, why, "The memory wall comes before batch 1")
        return _nothing(top, low, card, "No price", "Choose another price")
    chosen = min(max(1, batch), wall)
    batches = _batches(wall, 6)
    points = [offer.at(model, b) for b in batches]
    cost, step = offer.at(model, chosen)
    usable = offer.usable(model, limit)
    size, unit = style.scale(max(limit, points[-1][1]), "s")
    top.plot(batches, [c for c, _ in points], color=BLUE, linewidth=2.2)
    low.plot(batches, [s / size for _, s in points], color=BLUE, linewidth=2.2)
    low.axhline(limit / size, color=VERMILLION, linewidth=1.4, linestyle=(0, (6, 3)), gid="limit")
    for ax, y in ((top, cost), (low, step / size)):
        ax.plot([chosen], [y], marker="o", markersize=9, color=INK, linestyle="", gid="chosen")
        ax.axvline(wall, color=GREY, linestyle=(0, (1, 2)), linewidth=1.4, gid="wall")
        if usable < wall:
            ax.axvspan(max(usable, 0.8), wall, color=PALE, alpha=0.6, linewidth=0, zorder=0)
    _dress(top, "USD per million tokens")
    _dress(low, f"time per token ({unit})")
    for ax in (top, low):
        ax.set_xscale("log", base=2)
        ax.set_xlim(0.8, max(1400, wall * 1.3))  # the same for all settings: the wall should move
    top.set_yscale("log")
    _log_ticks(top, (1,))
    top.set_ylim(min(0.01, points[-1][0] / 2), max(100, points[0][0] * 2))
    _log_ticks(low)
    low.set_ylim(0, 1.25 * max(limit, points[-1][1]) / size)
    low.set_xlabel("batch, sequences at once, log scale", fontsize=TEXT, color=INK)
    fits = "fits the limit" if step <= limit else "slower than the limit"
    full = f"only {wall} fit: " if batch > wall else ""
    head = f"{full}batch {chosen}, {style.number(cost, 3)} USD per million tokens"
    more = f"{style.number(price, 3)} USD per hour · context {context:,} · {ROOFS}"
    line = style.title(top, head[0].upper() + head[1:], card.name, "calculated", more, 74)
    style.title(low, f"One token takes {style.quantity(step, 's')}: {fits}", card.name,
                "calculated", "grey: too slow · dotted: memory full", 74)  # fmt: skip
    under = points[0][1] > limit  # on the left the line is at its lowest
    low.annotate(
        f"limit {style.quantity(limit, 's')}",
        (0, limit / size),
        xycoords=("axes fraction", "data"),
        xytext=(6, -4 if under else 4),
        textcoords="offset points",
        ha="left",
        va="top" if under else "bottom",
        fontsize=SMALL,
        color=INK,
        bbox=dict(facecolor=PAPER, edgecolor="none", pad=1.0),
    )
    style.describe(
        top,
        f"{head} ({line}). A token takes {style.quantity(step, 's')}, {fits} of "
        f"{style.quantity(limit, 's')}. Memory is full at {wall} sequences; within the limit are "
        f"{usable}. From batch 1 to {wall} the cost falls from {style.number(points[0][0], 3)} to "
        f"{style.number(points[-1][0], 3)} USD and the time rises from "
        f"{style.quantity(points[0][1], 's')} to {style.quantity(points[-1][1], 's')}.",
    )
    return top


def _curve(
    ax: Any, offer: Offer, model: inference.Model, usable: int, wall: int, color: str, marker: str
) -> None:
    """The line of one offer: full within the limit, thin and dotted beyond, a cross at the wall."""
    good = _batches(usable) if usable else []
    slow = [b for b in _batches(wall) if b > usable]
    look = dict(color=color, label=offer.label)
    if good:
        ax.plot(good, [offer.at(model, b)[0] for b in good], linewidth=2.2, marker=marker,
                markersize=5, **look)  # fmt: skip
    if slow:
        path = good[-1:] + slow
        ax.plot(path, [offer.at(model, b)[0] for b in path], linewidth=1.3, linestyle=(0, (1, 2)),
                **(look if not good else look | {"label": None}))  # fmt: skip
    if good and usable < wall:
        ax.plot([usable], [offer.at(model, usable)[0]], marker="o", markersize=11, color=color,
                markerfacecolor="none", markeredgewidth=1.8, linestyle="", gid="ring")  # fmt: skip
    ax.plot([wall], [offer.at(model, wall)[0]], marker="X", markersize=10, color=color,
            markeredgecolor=INK, linestyle="", gid="wall")  # fmt: skip


def _said(offer: Offer, model: inference.Model, usable: int, wall: int, limit: float | None) -> str:
    first, last = offer.at(model, 1), offer.at(model, wall)
    text = (
        f"{offer.label}: from {style.number(first[0])} USD at batch 1 to {style.number(last[0])} "
        f"USD at batch {wall}, where memory is full."
    )
    if limit is None:
        return text
    if not usable:
        return f"{text} Too slow for the limit at any batch."
    within = style.number(offer.at(model, usable)[0])
    return f"{text} Within {style.quantity(limit, 's')} up to batch {usable}: {within} USD."


def _nothing(top: Any, low: Any, card: Any, why: str, more: str) -> Any:
    for ax in (top, low):
        ax.axis("off")
    line = style.title(top, f"{why}: nothing to draw", card.name, "calculated")
    style.title(low, more, card.name, "calculated")
    style.describe(top, f"{why} ({line}). Nothing to draw.")
    return top


def _batches(last: int, per_octave: int = 1) -> list[int]:
    """1, 2, 4, ... and ``last``; with ``per_octave`` steps on the way from each to its double."""
    last = min(last, MOST_BATCH)
    if not last:
        return []
    steps = range(per_octave * last.bit_length())
    return sorted({b for k in steps if (b := round(2 ** (k / per_octave))) <= last} | {last})


def _few(offers: Sequence[Offer]) -> Sequence[Offer]:
    if not 1 <= len(offers) <= len(SERIES):
        raise ValueError(f"draw_cost_curves keeps 1 to {len(SERIES)} offers apart.")
    return offers


def _priced(price: Any) -> bool:
    return isinstance(price, int | float) and math.isfinite(price) and price > 0


def _device(device: Any) -> Any:
    return get(device) if isinstance(device, str) else device


def _dress(ax: Any, ylabel: str) -> None:
    ax.grid(True, axis="y", color=PALE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_ylabel(ylabel, fontsize=TEXT, color=INK)


def _log_ticks(ax: Any, subs: Sequence[int] = (1, 2, 5)) -> None:
    """Plain numbers on the ticks; upwards, on a log axis, at ``subs`` times powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    plain = FuncFormatter(lambda v, _: style.number(v))
    ax.xaxis.set_major_formatter(plain)
    ax.xaxis.set_minor_locator(NullLocator())
    if ax.get_yscale() == "log":
        ax.yaxis.set_major_locator(LogLocator(subs=subs))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ax.set_ylabel(f"{ax.get_ylabel()},\nlog scale", fontsize=TEXT, color=INK)
    ax.yaxis.set_major_formatter(plain)
