"""What a device keeps up: one function in a row for seconds, seen through short windows.

A card that is cool runs fast for a moment; then its power limit or its temperature takes some of
the clock away. `soak` shows the first windows beside the later ones, with the clock where it can
be read. A simulated card has neither power nor temperature, and its windows say so.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from helpers import clock
from helpers.timing.errors import MeasureError, check_callable, name_of, stage

FIRST = 0.05
"""s: what counts as the first moment."""
LONGEST = 30.0
"""s: nobody waits longer in a notebook."""
MOST_CALLS = 200
"""Calls in one window: two windows are queued at a time, and a queue holds about a thousand."""
SMI = ("nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Window:
    """``at``: s from the first window's start to this one's end. ``seconds``: per call.

    ``clock``: of the SMs in Hz, the mean of what was read during the window; None if nothing was.
    """

    at: float
    seconds: float
    clock: float | None


@dataclass(frozen=True)
class Soak:
    """The windows of one `soak`, in order, and where they come from."""

    windows: tuple[Window, ...]
    calls: int
    """Calls per window."""
    origin: str
    device: str
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> float:
        """Seconds per call in the first 50 ms (at least the first window)."""
        early = [w.seconds for w in self.windows if w.at <= 1.5 * FIRST] or [
            self.windows[0].seconds
        ]
        return statistics.median(early)

    @property
    def sustained(self) -> float:
        """Seconds per call in the last third."""
        return statistics.median(w.seconds for w in self.windows[-max(1, len(self.windows) // 3) :])

    @property
    def kept(self) -> float:
        """Share of the first moment's rate that is left in the last third."""
        return self.first / self.sustained

    def clocks(self) -> list[float]:
        """The clocks that were read, in Hz and in order."""
        return [w.clock for w in self.windows if w.clock is not None]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``samples`` are the windows' seconds per call."""
        data = asdict(self)
        data["samples"] = [w.seconds for w in self.windows]
        data["windows"] = [[w.at, w.seconds, w.clock] for w in self.windows]
        return data | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Soak:
        """The inverse of `to_dict`. ValueError when it is not what `to_dict` writes."""
        try:
            windows = tuple(Window(*window) for window in data["windows"])
            for window in windows:
                numbers = [window.at, window.seconds, *([window.clock] if window.clock else [])]
                if not all(math.isfinite(v) and v > 0 for v in numbers):
                    raise ValueError(f"a window of {window} is not above zero")
            if not windows or [w.seconds for w in windows] != data["samples"]:
                raise ValueError("its samples are not those of its windows")
            return cls(windows, data["calls"], data["origin"], data["device"],
                       tuple(data["notes"]))  # fmt: skip
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a soak: {error!r}") from None


def soak(
    fn: Callable[[], object],
    *,
    seconds: float = 5.0,
    window: float = FIRST,
    device: str | None = None,
    reader: Any = None,
) -> Soak:
    """Call ``fn`` in a row for about ``seconds`` and time it in windows of about ``window``.

    One call goes ahead, unrecorded, so that libraries are loaded; a second finds how many calls
    fill a window. The next window is queued before the last one is waited for, so a GPU never
    rests. ``reader``: see `ClockReader`, which is the default on a real GPU.

    Raises MeasureError when ``fn`` cannot be called or fails, or when ``seconds`` or ``window`` is
    no time, or ``seconds`` is above `LONGEST`.
    """
    from helpers import timing

    check_callable(fn, "What you gave")
    if not 0 < window <= seconds <= LONGEST:
        raise MeasureError(
            f"seconds must be at most {LONGEST:g} and window above 0 and at most seconds, not "
            f"{seconds!r} and {window!r}."
        )
    lane = (_Stream if timing._on_gpu(device) else _Wall)(fn)
    with stage(fn, name_of(fn), "a call"):
        lane.run(1)
        once = lane.run(1)
        calls = max(1, min(MOST_CALLS, round(window / max(once, 1e-9))))
        reader = reader if reader is not None else lane.reader()
        reader.start()
        try:
            ends = lane.windows(calls, seconds)
        finally:
            read = reader.stop()
    begin, rows = lane.began, []
    for start, end in zip([0.0, *ends], ends, strict=False):
        seen = [hertz for at, hertz in read if start <= at - begin < end]
        rows.append(Window(end, (end - start) / calls, statistics.fmean(seen) if seen else None))
    notes = list(lane.notes)
    if not read and lane.origin == "measured" and lane.gpu:
        notes.append("the clock cannot be read here: neither NVML nor nvidia-smi answers")
    return Soak(tuple(rows), calls, lane.origin, lane.device, tuple(notes))


class _Wall:
    """Windows on the host clock, for a CPU."""

    gpu, origin = False, "measured"

    def __init__(self, fn: Callable[[], object]) -> None:
        import platform

        import torch

        self.fn, self.notes, self.began = fn, [], 0.0
        self.device = f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"

    def reader(self) -> Any:
        return _Silent()

    def run(self, calls: int) -> float:
        begin = clock.now()
        for _ in range(calls):
            self.fn()
        return clock.now() - begin

    def windows(self, calls: int, seconds: float) -> list[float]:
        """Ends of the windows, in s from the start of the first."""
        self.began, ends = clock.now(), []
        while not ends or ends[-1] < seconds:
            self.run(calls)
            ends.append(clock.now() - self.began)
        return ends


class _Stream(_Wall):
    """Windows between CUDA events, one window queued ahead of the one that is waited for."""

    gpu = True

    def __init__(self, fn: Callable[[], object]) -> None:
        import torch

        from helpers import devices

        self.fn, self.cuda, self.began = fn, torch.cuda, 0.0
        self.device = torch.cuda.get_device_name()
        simulated = devices.is_simulated(self.device)
        self.origin = "simulated" if simulated else "measured"
        self.notes = ["a modelled card has no temperature and no power limit"] if simulated else []

    def reader(self) -> Any:
        return _Silent() if self.origin == "simulated" else ClockReader()

    def _mark(self) -> Any:
        event = self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def run(self, calls: int) -> float:
        begin = self._mark()
        for _ in range(calls):
            self.fn()
        end = self._mark()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def windows(self, calls: int, seconds: float) -> list[float]:
        self.cuda.synchronize()
        self.began, ends = clock.now(), []
        marks = [self._mark()]
        while not ends or ends[-1] < seconds:
            for _ in range(calls):
                self.fn()
            marks.append(self._mark())
            if len(marks) > 2:
                marks[-2].synchronize()
                ends.append(marks[0].elapsed_time(marks[-2]) / 1e3)
        marks[-1].synchronize()
        return [*ends, marks[0].elapsed_time(marks[-1]) / 1e3]


class _Silent:
    """Reads no clock."""

    def start(self) -> None:
        pass

    def stop(self) -> list[tuple[float, float]]:
        return []


class ClockReader:
    """Reads a clock beside the work, in a thread of its own, so that the work never waits for it.

    ``read``: returns Hz or None. NVML and nvidia-smi refresh every 0.2 to 1 s, so reading more
    often would repeat itself. The first None ends the reading.
    """

    def __init__(self, read: Callable[[], float | None] | None = None, pause: float = 0.1) -> None:
        self.read, self.pause = read or sm_clock, pause
        self.seen: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> list[tuple[float, float]]:
        """(host clock in s, Hz) of each reading."""
        self._over.set()
        self._thread.join(timeout=3.0)
        return list(self.seen)

    def _run(self) -> None:
        while not self._over.is_set():
            hertz = self.read()
            if hertz is None:
                return
            self.seen.append((clock.now(), hertz))
            self._over.wait(self.pause)


def sm_clock(run: Callable[..., Any] = subprocess.run) -> float | None:
    """The clock of the SMs in Hz now; None where neither NVML nor nvidia-smi tells it."""
    import torch

    try:
        return torch.cuda.clock_rate() * 1e6
    except Exception:  # no pynvml, no driver, a card that does not tell: all mean "ask elsewhere"
        pass
    try:
        said = run(SMI, capture_output=True, text=True, timeout=2.0, check=True).stdout
        return _first_number(said.split()) * 1e6
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _first_number(words: Sequence[str]) -> float:
    """The first word as a number; ValueError if there is none ("[N/A]")."""
    if not words:
        raise ValueError("nothing was said")
    return float(words[0])
