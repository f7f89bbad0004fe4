"""The figures of notebook 05: a queue between two lanes, and a table of broken benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helpers.plots import style
from helpers.plots.style import GREY, INK, PALE, PAPER, SMALL, TEXT
from helpers.plots.timeline import Event, draw_timeline, idle_share

KERNELS = 6
WAITS = ("at the end", "after each kernel", "never")
GRAPH = "at the end, one graph"
ENDINGS = (*WAITS, GRAPH)
LINE = 0.155  # inches per line of code
MONO = "DejaVu Sans Mono"


def queue_events(
    kernel: float, launch: float, ending: str = WAITS[0], kernels: int = KERNELS
) -> list[Event]:
    """Return the events of `kernels` kernels of `kernel` seconds, queued at `launch` seconds each.

    A kernel starts when its launch has ended and the one before it has. ``ending``: when the host
    waits, one of ENDINGS; a graph queues all of its kernels with one launch. What a wait itself
    costs, and gaps between kernels of one stream, are left out.
    """
    if not (kernel > 0 and launch > 0 and kernels >= 1):
        raise ValueError("A kernel and a launch take more than zero seconds; draw one or more.")
    if ending not in ENDINGS:
        raise ValueError(f"Unknown ending {ending!r}; use {', '.join(ENDINGS)}.")
    events, host, free = [], 0.0, 0.0
    for i in range(1, kernels + 1):
        if ending != GRAPH or i == 1:
            name = "graph" if ending == GRAPH else f"launch {i}"
            events.append(Event("CPU", name, host, host + launch))
            host += launch
        start = max(host, free)
        free = start + kernel
        events.append(Event("GPU", f"kernel {i}", start, free))
        last = i == kernels
        if free > host and (ending == WAITS[1] or (last and ending != WAITS[2])):
            events.append(Event("CPU", "wait", host, free))
            host = free
    return events


def draw_queue(
    ax: Any, kernel: float, launch: float, ending: str = WAITS[0], kernels: int = KERNELS
) -> Any:
    """Draw what the CPU queues and the GPU runs, and where a stopwatch on the CPU stops.

    ``kernel``, ``launch``: seconds of one kernel, and of one launch; ``ending``: see
    :func:`queue_events`. The headline says what the stopwatch shows and what the work takes.
    """
    events = queue_events(kernel, launch, ending, kernels)
    shown = max(e.end for e in events if e.lane == "CPU")
    done = max(e.end for e in events if e.lane == "GPU")
    said = style.quantity(shown, "s")
    true = style.quantity(done, "s")
    title = f"The stopwatch shows {said}"
    title += ", the truth" if shown >= done else f"; the work takes {true}"
    ax = draw_timeline(
        ax, events, "calculated", "any GPU with such times", title=title, most=4 * kernels
    )
    size, _ = style.scale(done, "s")
    ax.set_xlim(0, 1.02 * done / size)
    ax.axvline(shown / size, color=INK, linestyle=(0, (1, 2)), linewidth=1.6, gid="stop")
    ax.set_ylim(1.85, -0.5)  # room below the lanes: between them run the lines
    left = shown > 0.6 * done
    ax.annotate(
        "stopwatch stops", (shown / size, 1.62), xytext=(-5 if left else 5, 0),
        textcoords="offset points", ha="right" if left else "left", va="center",
        fontsize=SMALL, color=INK, bbox=dict(facecolor=PAPER, edgecolor="none", pad=1.0),
    )  # fmt: skip
    idle = idle_share(events) or 0.0
    style.describe(
        ax,
        f"Calculated: {kernels} kernels of {style.quantity(kernel, 's')}, a launch costs the CPU "
        f"{style.quantity(launch, 's')}; the CPU waits: {ending}. The last kernel ends after "
        f"{true}, a stopwatch on the CPU shows {said}. Between the first kernel and the last the "
        f"GPU is idle {100 * idle:.0f} % of the time.",
    )
    return ax


@dataclass(frozen=True)
class Benchmark:
    """One row of the table: its letter, its code, and what it prints."""

    letter: str
    code: str
    prints: str


def draw_benchmarks(
    ax: Any, rows: Sequence[Benchmark], origin: str, device: str, *, title: str
) -> Any:
    """Draw a table of small programs and what they print; return the Axes.

    ``origin`` and ``device`` are those of the printed numbers.
    """
    if not rows:
        raise ValueError("draw_benchmarks needs at least one row.")
    heights = [len(row.code.splitlines()) + 1.0 for row in rows]
    total = sum(heights)
    ax = style.axes(ax, LINE * total + 0.75)
    ax.set_xlim(0, 1)
    ax.set_ylim(total, 0)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    top = 0.0
    for i, (row, height) in enumerate(zip(rows, heights, strict=True)):
        if i % 2 == 0:
            ax.axhspan(top, top + height, facecolor=PALE, alpha=0.35, linewidth=0)
        ax.plot([0, 1], [top, top], color=GREY, linewidth=0.7)
        middle = top + height / 2
        ax.text(0.025, middle, row.letter, ha="center", va="center", fontsize=TEXT + 3,
                fontweight="bold", color=INK)  # fmt: skip
        ax.text(0.06, middle, row.code, ha="left", va="center", fontsize=SMALL, family=MONO,
                color=INK, linespacing=1.25)  # fmt: skip
        ax.text(0.985, middle, row.prints, ha="right", va="center", fontsize=TEXT,
                fontweight="bold", color=INK)  # fmt: skip
        top += height
    line = style.title(ax, title, device, origin)
    said = " ".join(
        f"{row.letter}: {' / '.join(map(str.strip, row.code.splitlines()))} prints {row.prints}."
        for row in rows
    )
    style.describe(ax, f"{title} ({line}). {said}")
    return ax
