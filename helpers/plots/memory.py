"""Where data lie on a card: its picture, the ladder of its memories, and how long moving takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helpers import devices
from helpers.levels import Level, levels
from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, ORANGE, PALE, PAPER, SMALL, TEXT, VERMILLION

_MARKS = {"stated": "o", "published": "^", "estimated": "D"}
_MEANING = {
    "stated": "datasheet or standard",
    "published": "published measurement",
    "estimated": "order of magnitude",
}


_CLEAR = dict(facecolor=PAPER, edgecolor="none", pad=1.0)


def draw_card(ax: Any, device: Any = "t4") -> Any:
    """Draw a card as the course's picture with its own figures: warehouse, lorries, factory.

    ``device``: a Device or its key. All figures are the datasheet's; nothing is measured.
    """
    card = devices.get(device) if isinstance(device, str) else device
    ax = style.axes(ax, 3.6)
    ax.axis("off")
    ax.set_xlim(-0.5, 100.5)
    ax.set_ylim(0, 50)
    link, bus = style.quantity(card.pcie, "B/s", 4), style.quantity(card.bandwidth, "B/s", 4)
    rate = style.quantity(card.peak["fp16"], "FLOP/s")
    holds = f"{card.memory / 1e9:,.0f} GB"
    _house(ax, 0, "dispatcher", "CPU", "with its own\nhost memory")
    _house(ax, 38, "warehouse", "device memory", f"holds\n{holds}")
    _house(ax, 79, "factory", f"{card.sms} SMs", f"computes\n{rate}\nin fp16")
    _road(ax, 22, 37, f"{link}\neach way", "PCIe", width=2.2)
    _road(ax, 60, 78, bus, "lorries", width=9.0)
    ax.plot([10.5, 10.5, 89.5], [12, 7, 7], color=INK, linestyle=":", linewidth=1.4)
    ax.annotate("", (89.5, 12), xytext=(89.5, 6.8), gid="orders",
                arrowprops=dict(arrowstyle="-|>", linestyle=":", color=INK, linewidth=1.4,
                                shrinkA=0, shrinkB=0))  # fmt: skip
    ax.text(50, 3.4, "orders: one for each kernel launch", ha="center", va="center",
            fontsize=SMALL, color=INK)  # fmt: skip
    headline = "Two jobs, two speeds, and one who gives the orders"
    line = style.title(ax, headline, card.name, "calculated", "datasheet figures")
    style.describe(
        ax,
        f"{headline} ({line}). Left the dispatcher, the CPU with its own host memory. A narrow "
        f"road, PCIe at {link} each way, leads to the warehouse, device memory that holds {holds}. "
        f"A wide road at {bus} leads from there to the factory, {card.sms} SMs that compute {rate} "
        "in fp16. Orders, one for each kernel launch, go from the dispatcher to the factory.",
    )
    return ax


def _house(ax: Any, x: float, plain: str, term: str, figure: str) -> None:
    from matplotlib.patches import Rectangle

    y, wide, high = 12, 21, 32
    ax.add_patch(Rectangle((x, y), wide, high, facecolor=PALE, edgecolor=GREY, linewidth=1.2))
    for at, text, look in ((39.5, plain, dict(fontsize=TEXT, fontweight="bold")),
                           (33.5, term, dict(fontsize=SMALL)),
                           (21.5, figure, dict(fontsize=SMALL, linespacing=1.3))):  # fmt: skip
        ax.text(x + wide / 2, at, text, ha="center", va="center", color=INK, **look)


def _road(ax: Any, start: float, end: float, rate: str, name: str, width: float) -> None:
    ax.annotate("", (end, 27), xytext=(start, 27), gid=f"road {name}",
                arrowprops=dict(arrowstyle="<|-|>", color=BLUE, linewidth=width, shrinkA=0,
                                shrinkB=0, mutation_scale=14 + width))  # fmt: skip
    middle = (start + end) / 2
    ax.text(middle, 34.5, name, ha="center", va="bottom", fontsize=TEXT, fontweight="bold",
            color=INK)  # fmt: skip
    ax.text(middle, 20.5, rate, ha="center", va="top", fontsize=SMALL, color=INK, linespacing=1.2)


def draw_memory_ladder(ax: Any, device: Any = "t4", host: float | None = None) -> Any:
    """Draw the memories of a card, fastest first: how much each holds, and how fast it delivers.

    ``device``: a Device or its key. ``host``: bytes of this machine's own memory, if known. Both
    axes are logarithmic; the marker says how a rate is known. ``ax`` None makes a figure of two
    panels; otherwise a pair of Axes. Returns the left Axes, which carries the description.
    """
    card = devices.get(device) if isinstance(device, str) else device
    steps = levels(card, host)
    fig, pair = style.figure(4.4, columns=2) if ax is None else (None, ax)
    left, right = (style.axes(panel) for panel in pair)
    sizes = [step.size for step in steps]
    _rungs(left, sizes, ["s"] * len(steps), "B", "how much fits, log scale", VERMILLION)
    _rungs(right, [s.rate for s in steps], [_MARKS[s.known] for s in steps], "B/s",
           "how fast it delivers, log scale", BLUE)  # fmt: skip
    left.set_yticks(range(len(steps)), [s.name for s in steps], fontsize=TEXT)
    right.set_yticks(range(len(steps)), [""] * len(steps))
    _name_marks(right, steps)
    headline = "The memory ladder: near and fast, far and slow"
    line = style.title(left, headline, card.name, "calculated", chars=70)
    if fig is not None:  # the headline runs over both panels, the legend below them
        next(t for t in left.texts if t.get_gid() == "headline").set_in_layout(False)
        fig.get_layout_engine().set(rect=(0, 0, 1, 0.92))
        _legend_below(fig, right)
    rows = [
        f"{s.name}: {'holds ' + _size(s.size) + ', ' if s.size else ''}"
        f"{style.quantity(s.rate, 'B/s')} ({_MEANING[s.known]}: {s.why})"
        for s in steps
    ]
    style.describe(left, f"{headline} ({line}). Both axes are logarithmic. {'; '.join(rows)}.")
    return left


def _name_marks(ax: Any, steps: Sequence[Level]) -> None:
    for known in dict.fromkeys(s.known for s in steps):
        ax.plot([], [], marker=_MARKS[known], color=BLUE, linestyle="none", label=_MEANING[known])


def _legend_below(fig: Any, ax: Any) -> None:
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower right", ncols=3, fontsize=SMALL,
               labelcolor=INK, frameon=False, handletextpad=0.2, columnspacing=1.0)  # fmt: skip


def _size(value: float) -> str:
    return style.quantity(value, "B")


def _rungs(
    ax: Any, values: Sequence[float | None], marks: Sequence[str], unit: str, label: str, color: str
) -> None:
    """One dot per row on a log axis, its value beside it."""
    known = [v for v in values if v is not None]
    low, high = min(known), max(known)
    ax.set_xscale("log")
    ax.set_xlim(low / 4, high * 1500)
    for row, (value, mark) in enumerate(zip(values, marks, strict=True)):
        ax.axhline(row, color=PALE, linewidth=0.8, zorder=0)
        if value is None:
            ax.text(
                low, row, "not of the card", va="center", fontsize=SMALL, color=GREY, bbox=_CLEAR
            )
            continue
        ax.plot(value, row, marker=mark, color=color, markersize=8)
        ax.annotate(style.quantity(value, unit), (value, row), xytext=(8, 0), va="center",
                    textcoords="offset points", fontsize=SMALL, color=INK, bbox=_CLEAR)  # fmt: skip
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(label, fontsize=TEXT, color=INK)
    _decades(ax, unit)


def _decades(ax: Any, unit: str) -> None:
    """Ticks at every third power of ten, each with its own unit."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.xaxis.set_major_locator(LogLocator(base=1000.0))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: style.quantity(v, unit)))
    ax.xaxis.set_minor_locator(NullLocator())


def draw_move_time(
    ax: Any,
    nbytes: float,
    device: Any = "t4",
    beside: str = "device memory",
    host: float | None = None,
) -> Any:
    """Draw how long ``nbytes`` take from each level, and how many times as long as from ``beside``.

    A level that is too small for all of it is hollow and says what it holds: the time is that of
    passing them through. The time axis is logarithmic.
    """
    if not nbytes > 0:
        raise ValueError(f"draw_move_time needs a number of bytes above zero, not {nbytes!r}.")
    card = devices.get(device) if isinstance(device, str) else device
    steps = levels(card, host)
    base = next((s for s in steps if s.name == beside), None)
    if base is None:
        names = ", ".join(s.name for s in steps)
        raise ValueError(f"There is no level {beside!r}; this card has {names}.")
    alone = ax is None
    ax = style.axes(ax, 4.4)
    times = [nbytes / s.rate for s in steps]
    ax.set_xscale("log")
    ax.set_xlim(min(times) / 2.5, max(times) * 3e4)
    said = []
    for row, (step, time) in enumerate(zip(steps, times, strict=True)):
        small = step.size is not None and nbytes > step.size
        ax.axhline(row, color=PALE, linewidth=0.8, zorder=0)
        ax.plot(time, row, marker=_MARKS[step.known], markersize=9, color=ORANGE if small else BLUE,
                markerfacecolor=PAPER if small else BLUE, markeredgewidth=1.8)  # fmt: skip
        text = style.quantity(time, "s")
        if step is not base:
            text += f", {_times(base.rate / step.rate)}"
        if small:
            text += f"; holds only {_size(step.size)}"
        said.append(f"{step.name}: {text}")
        ax.annotate(text, (time, row), xytext=(9, 0), textcoords="offset points", va="center",
                    fontsize=SMALL, color=INK, bbox=_CLEAR)  # fmt: skip
    ax.set_yticks(range(len(steps)), [s.name for s in steps], fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(steps) - 0.5, -0.5)
    ax.set_xlabel("time to deliver all of it, log scale", fontsize=TEXT, color=INK)
    _decades(ax, "s")
    _name_marks(ax, steps)
    if alone:
        _legend_below(ax.figure, ax)
    headline = f"{_size(nbytes)} from each level: how long?"
    more = f"by rate alone · ×: times as long as from {beside}"
    line = style.title(ax, headline, card.name, "calculated", more, chars=70)
    style.describe(ax, f"{headline} ({line}). The axis is logarithmic. {'; '.join(said)}.")
    return ax


def _times(factor: float) -> str:
    """ "×20", and "1/20" where it takes less time. Most rates are known to two digits."""
    said = style.number(float(f"{max(factor, 1 / factor):.2g}"), 2)
    return f"1/{said}" if factor < 1 else f"×{said}"


def level_names() -> tuple[str, ...]:
    """The names of the levels, fastest first."""
    found: tuple[Level, ...] = levels(devices.get("t4"))
    return tuple(level.name for level in found)
