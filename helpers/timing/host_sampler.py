"""Taking one sample on the host clock.

A sampler holds one function and knows how to call it the first time, warm it up, size a sample,
and take one. `timing` decides in which order samples are taken and when there are enough.
"""

import math
import statistics
from collections.abc import Callable
from itertools import repeat

from helpers import clock
from helpers.timing.errors import check_result, returned_at_once, stage

BLOCK = 1e-3  # s: shortest timed block on the host clock, ten thousand of its 0.1 us ticks
AGREE = 0.05  # two warm-up windows are the same when they differ by less


class HostSampler:
    """Wall clock, blocks of calls, caches left as they are."""

    kind, origin, held = "wall", "measured", None

    def __init__(
        self, fn: Callable[[], object], name: str, cache: str, warmup: float, shared: bool
    ) -> None:
        self.fn, self.name = fn, name
        self.cache, self.warmup, self.shared = cache, warmup, shared
        self.notes: list[str] = []
        self.samples: list[float] = []
        self.host: float | None = None
        self.calls = 1
        self._set_up()

    def _set_up(self) -> None:
        import platform

        import torch

        self.device = f"CPU ({platform.machine()}, {torch.get_num_threads()} threads)"
        if self.cache == "cold":
            self.cache = "hot"
            self.notes.append("cold was asked for, but a CPU's caches are not flushed: this is hot")

    def wait(self) -> None:
        """Wait for the device. A CPU call is over when it returns."""

    def start(self) -> None:
        """The first call, timed apart, then warm-up, then the size of a sample."""
        with stage(self.fn, self.name, "its first call"):
            self.wait()
            begin = clock.now()
            result = self.fn()
            self.wait()
            self.first_call = clock.now() - begin
        check_result(result, self.name)
        del result  # its memory belongs to the next call
        with stage(self.fn, self.name, "a warm-up call"):
            self._warm_up()
            self._prepare()

    def block(self, calls: int) -> tuple[float, float]:
        """(s per call of a loop that waits at its end, s until its first call came back)."""
        self.wait()
        begin = clock.now()
        self.fn()
        queued = clock.now()
        for _ in repeat(None, calls - 1):
            self.fn()
        self.wait()
        return (clock.now() - begin) / calls, queued - begin

    def _warm_up(self) -> None:
        """Windows of calls until two in a row agree, or the time is up; at least one call.

        The first call counts as the window before the first, so a function that has nothing to
        warm up and takes longer than a window is called once here, any other at least twice.
        """
        window, calls, before = self.warmup / 20, 1, self.first_call
        deadline = clock.now() + self.warmup
        queueing = []
        while len(queueing) < 100:
            self.wall, queued = self.block(calls)
            queueing.append(queued)
            took = self.wall * calls
            if took >= window:
                if abs(self.wall - before) <= AGREE * before:
                    break
                before = self.wall
            elif calls >= 100_000:
                break  # too fast to fill a window with any number of calls
            else:
                before = 0.0
                calls = min(10 * calls, math.ceil(1.1 * window / max(self.wall, 1e-9)))
            if clock.now() >= deadline and len(queueing) >= 2:
                break
        self.queueing = statistics.median_low(queueing)

    def _prepare(self) -> None:
        self.calls = max(1, math.ceil(BLOCK / max(self.wall, 1e-8)))
        if self.wall < 1e-6 and self._is_empty():
            raise returned_at_once(self.name, on_gpu=False)

    def _is_empty(self) -> bool:
        """Compare the fastest blocks of `fn` and of a function without a body, taken in turn."""
        pairs = [(loop(self.fn, 10_000), loop(nothing, 10_000)) for _ in range(5)]
        return min(mine for mine, _ in pairs) <= 2 * min(empty for _, empty in pairs)

    def take(self) -> None:
        """Append one sample (s per call)."""
        with stage(self.fn, self.name, "a timed call"):
            if self.shared and self.wall < 0.01:
                self.fn()  # the other functions had the caches since this one's last turn
            self.samples.append(loop(self.fn, self.calls) / self.calls)

    def finish(self) -> None:
        """Drop what was only needed while sampling, and say what must be said."""


def nothing() -> None:
    pass


def loop(fn: Callable[[], object], calls: int) -> float:
    """Seconds for `calls` calls in a row."""
    begin = clock.now()
    for _ in repeat(None, calls):
        fn()
    return clock.now() - begin
