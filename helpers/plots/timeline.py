"""Two lanes over time: what the CPU queues, and when the GPU runs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from helpers.plots import style
from helpers.plots.style import BLUE, GREY, INK, ORANGE, PAPER, SMALL, TEXT

MOST = 40  # kernels drawn; more are slivers at 640 px
FEW = 10  # kernels whose launches are joined to them
LANES = ("CPU", "GPU")
WAITS = ("synchronize", "wait", "queue full")


@dataclass(frozen=True)
class Event:
    """One interval of a lane ("CPU" or "GPU"), start and end in seconds on one clock."""

    lane: str
    name: str
    start: float
    end: float

    @property
    def waits(self) -> bool:
        """True where the host stands still for the GPU, by the usual names of such calls."""
        return self.lane == "CPU" and any(word in self.name.lower() for word in WAITS)

    def __post_init__(self) -> None:
        if self.lane not in LANES:
            raise ValueError(f"Unknown lane {self.lane!r} of event {self.name!r}; use CPU or GPU.")
        if self.end < self.start:
            raise ValueError(f"Event {self.name!r} ends before it starts.")


def idle_share(events: Iterable[Event]) -> float | None:
    """Return the share of the time from first to last kernel in which the GPU ran none.

    Overlapping kernels count once. None without a kernel.
    """
    busy = sorted((e.start, e.end) for e in events if e.lane == "GPU")
    if not busy:
        return None
    first, reached, idle = busy[0][0], busy[0][0], 0.0
    for start, end in busy:
        idle += max(0.0, start - reached)
        reached = max(reached, end)
    return idle / (reached - first) if reached > first else 0.0


_LOOKS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (0, "CPU", dict(facecolor=ORANGE, hatch="///", edgecolor=INK)),
    (0, "waits", dict(facecolor=PAPER, hatch="..", edgecolor=GREY)),
    (1, "GPU", dict(facecolor=BLUE, hatch="", edgecolor=PAPER)),
)


def draw_timeline(
    ax: Any,
    events: Sequence[Event],
    origin: str,
    device: str,
    *,
    title: str = "Who waits for whom?",
    most: int = MOST,
    start: float | None = None,
) -> Any:
    """Draw ``events`` in a CPU and a GPU lane and print the idle share of the GPU lane.

    At most ``most`` kernels from ``start`` (seconds; default: the first event) are drawn and the
    crop is noted; the idle share always covers the whole trace.
    """
    if not events:
        raise ValueError("draw_timeline needs at least one event; the trace is empty.")
    ax = style.axes(ax, 2.7)
    begin = min(e.start for e in events) if start is None else start
    whole_end = max(e.end for e in events)
    later = [e for e in events if e.end > begin]
    end, cropped = _crop(later, most, whole_end)
    shown = [e for e in later if e.start < end]
    size, unit = style.scale(end - begin, "s")

    def at(moment: float) -> float:
        return (min(max(moment, begin), end) - begin) / size

    names = []
    for row, label, look in _LOOKS:
        mine = [e for e in shown if (e.lane if not e.waits else "waits") == label]
        spans = [(at(e.start), at(e.end) - at(e.start)) for e in mine]
        ax.broken_barh(spans, (row - 0.3, 0.6), linewidth=0.6, label=label, **look)
        names += [
            (row, x + width / 2, width, _short(e.name))
            for (x, width), e in zip(spans, mine, strict=True)
        ]
    for left, right in _gaps([e for e in shown if e.lane == "GPU"], begin, end):
        ax.broken_barh([(at(left), at(right) - at(left))], (0.7, 0.6), facecolor=PAPER,
                       edgecolor=GREY, hatch="xx", linewidth=0.4, alpha=0.6,
                       gid="idle")  # fmt: skip
    ax.set_xlim(0, (end - begin) / size)
    ax.set_ylim(1.5, -0.5)
    ax.set_yticks((0, 1), ("CPU\nqueues", "GPU\nruns"), fontsize=TEXT)
    ax.tick_params(axis="y", length=0)
    key = f"time ({unit})"
    if any(patch.get_gid() == "idle" for patch in ax.collections):
        key += "; hatched: GPU idle"
    if any(e.waits for e in shown):
        key += "; dotted: CPU waits"
    if _link(ax, shown, at):
        key += "; lines: queued to started"
    ax.set_xlabel(key, fontsize=TEXT, color=INK)
    idle = idle_share(events)
    fact = "no kernel in this trace" if idle is None else f"GPU idle {_percent(idle)} of its time"
    if cropped:
        kernels = sum(e.lane == "GPU" for e in events)
        drawn = sum(e.lane == "GPU" for e in shown)
        part, all_of_it = (style.quantity(t - begin, "s") for t in (end, whole_end))
        fact += f" · cropped: {part} of {all_of_it}, {drawn} of {kernels:,} kernels"
    line = style.title(ax, title, device, origin, fact)
    _write_names(ax, names)
    style.describe(ax, f"{title} ({line}). A CPU lane with "
                       f"{sum(e.lane == 'CPU' for e in shown)} and a GPU lane with "
                       f"{sum(e.lane == 'GPU' for e in shown)} intervals.")  # fmt: skip
    return ax


def _short(name: str) -> str:
    """ "cos" for "aten.cos.default" and "aten::cos": what fits in a bar."""
    if name.startswith("aten"):
        return name.replace("::", ".").split(".")[1]
    return name


def _link(ax: Any, shown: Sequence[Event], at: Any) -> bool:
    """Join each launch to its kernel where there are few: on one stream they keep their order."""
    launches, kernels = (
        sorted((e for e in shown if e.lane == lane and not e.waits), key=lambda e: e.start)
        for lane in LANES
    )
    if len(launches) != len(kernels) or len(kernels) > FEW:
        return False
    for launch, kernel in zip(launches, kernels, strict=True):
        ax.plot([at(launch.end), at(kernel.start)], [0.3, 0.7], color=GREY, linewidth=0.9)
    return True


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else "under 1 %"


def _crop(events: Sequence[Event], most: int, end: float) -> tuple[float, bool]:
    """Return the time at which to stop drawing, and whether that leaves something out."""
    for lane in ("GPU", "CPU"):
        mine = sorted((e for e in events if e.lane == lane), key=lambda e: e.start)
        if len(mine) > most:
            return mine[most].start, True
    return end, False


def _gaps(kernels: Sequence[Event], begin: float, end: float) -> list[tuple[float, float]]:
    """Stretches without a kernel between the first kernel and the end of what is drawn."""
    found, reached = [], None
    for kernel in sorted(kernels, key=lambda e: e.start):
        if reached is not None and kernel.start > reached:
            found.append((reached, kernel.start))
        reached = kernel.end if reached is None else max(reached, kernel.end)
    return [(max(a, begin), min(b, end)) for a, b in found if a < end and b > begin]


def _write_names(ax: Any, names: Sequence[tuple[float, float, float, str]]) -> None:
    """Write a name inside its bar where it fits; a name that does not fit is left out."""
    fig = ax.figure
    fig.draw_without_rendering()
    renderer = fig.canvas.get_renderer()
    per_unit = ax.get_window_extent().width / ax.get_xlim()[1]
    for row, x, width, name in names:
        text = ax.text(x, row, name, ha="center", va="center", fontsize=SMALL, color=INK,
                       bbox=dict(facecolor=PAPER, edgecolor="none", pad=1.2))  # fmt: skip
        if text.get_window_extent(renderer).width + 8 > width * per_unit:
            text.remove()


def events_from_trace(trace: Iterable[Any], host: Iterable[Any] | None = None) -> list[Event]:
    """Return the events of a simulated GPU's trace.

    A kernel has ``name``, ``queued`` (when the host had launched it), ``start``, ``end`` in
    seconds. ``host``: what the host did, each with ``name``, ``start``, ``end``. Without it the CPU
    lane is rebuilt from the ``queued`` times: a launch lasts from the one before, and at most three
    times the shortest, since a longer gap is the host doing something else.
    """
    kernels = sorted(trace, key=lambda k: k.queued)
    events = [Event("GPU", k.name, k.start, k.end) for k in kernels]
    if host is not None:
        return [Event("CPU", h.name, h.start, h.end) for h in host] + events
    steps = [b.queued - a.queued for a, b in pairwise(kernels)]
    least = min((s for s in steps if s > 0), default=0.0)
    for before, kernel in zip([None, *kernels], kernels, strict=False):
        start = kernel.queued - (least if before is None else 3 * least)
        if before is not None:
            start = max(start, before.queued)
        events.append(Event("CPU", kernel.name, start, kernel.queued))
    return events


def events_from_profiler(profile: Any) -> list[Event]:
    """Return the events of a finished ``torch.profiler.profile``: kernels, and top-level CPU ops.

    Profiling adds overhead of its own: read the order and the gaps, not the times.
    """
    events, origin = [], None
    for event in profile.events():
        on_gpu = str(event.device_type).rsplit(".", 1)[-1] == "CUDA"
        # A marked region lies over the kernels inside it and would hide every gap.
        if event.is_user_annotation if on_gpu else event.cpu_parent is not None:
            continue
        start, end = event.time_range.start / 1e6, event.time_range.end / 1e6
        origin = start if origin is None else min(origin, start)
        events.append(Event("GPU" if on_gpu else "CPU", event.name, start, end))
    return [Event(e.lane, e.name, e.start - origin, e.end - origin) for e in events]
