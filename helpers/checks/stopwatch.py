"""Watching a learner's stopwatch at work: kernels of known length, a slow start, odd calls.

`watch` runs in the learner's kernel and only looks: it hands the function one probe after another
and notes what came back as plain data. What that means is judged later, from the data alone. The
kernels spin on the GPU, real or simulated. Where the learner measures the CPU, a simulated card
takes their place for as long as the check lasts: waiting can only be tested where something waits.

On a simulated card the clocks that the function names (``time``, ``perf_counter``, ...) are the
card's own for as long, so that a busy machine changes no verdict. A clock fetched in another
way is the real one; it works as well, since a wait on a simulated card also takes real time, and
what it says is then held against what that clock says here.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

from helpers import clock
from helpers.evidence import plain

KINDS = ("steady", "slow last but one", "slow last", "slow start", "fails")
SLOW = 8.0  # times: each of the first calls in "slow start"
QUICK = 0.3  # times: the odd fast call, data that happened to lie in a cache
LONGEST_ODD = 0.2  # s: an odd slow call; the long blocks of torch.utils.benchmark bear it
MOST_ODD = 8  # slow calls among the last, where one of LONGEST_ODD would be lost in a mean
FEW = 24  # calls: up to here a right stopwatch may rest on the slowest of its normal calls
MOST_SLOW_STARTS = 60
CLOSE = 0.01  # a reading as near as that to the card's own time suffers from no busy machine
ABSORBED = 3  # slow first calls that every stopwatch must bear: the warm-up that is asked for
MOST_CALLS = 5000
FAILURE = "the kernel failed: this error should reach the one who asked for the time"


class TooMany(BaseException):
    """Ends a stopwatch that calls for ever; no Exception, so that nobody catches it by accident."""


def probes(seed: int) -> list[list[Any]]:
    """[kind, kernel length in ms] of each probe for that seed.

    The first is the longest: a number that was not measured cannot fit all of them, and a
    stopwatch with a budget of seconds makes at least as many calls of the others.
    """
    rng = random.Random(f"stopwatch:{seed}")
    spans = {KINDS[0]: (6.0, 7.5)}
    return [[kind, round(rng.uniform(*spans.get(kind, (3.0, 4.5))), 2)] for kind in KINDS]


class Probe:
    """A function without arguments: each call queues one kernel, and says nothing."""

    def __init__(self, spin: Callable[[float], None], length: Callable[[int], float]) -> None:
        self.spin, self.length = spin, length
        self.calls = 0
        self.tool = False  # timeit or torch.utils.benchmark calls it, in blocks of its own choice
        self.found_idle = 0  # calls, after the first, that found the GPU with nothing to do

    def __call__(self) -> None:
        self.calls += 1
        self.tool |= sys._getframe(1).f_code.co_filename == "<timeit-src>"
        if self.calls > MOST_CALLS:
            raise TooMany(f"more than {MOST_CALLS:,} calls")
        if self.calls > 1 and not _busy():
            self.found_idle += 1
        self.spin(self.length(self.calls))


def lengths(
    kind: str, length: float, calls: int, *, fixed: bool = True, tool: bool = False
) -> Callable[[int], float]:
    """Seconds of call 1, 2, ... of a probe; `calls` is how many the function made when steady.

    Slow start: just over half of them. A median is misled if it holds them all, and is not if at
    least three were spent on warming up. A function whose number of calls is not `fixed` stops
    after so many seconds, which slow calls would eat: there only three are slow.
    Odd calls: very slow ones, a twentieth of all or one, and a fast one, at the end. A `tool`
    times blocks of many calls and gets one slow call, which such a block bears.
    """
    extra = (1 + 2 * calls) * length
    slow = 1 if tool else min(max(1, math.ceil(extra / LONGEST_ODD)), MOST_ODD)
    odd = min(extra, LONGEST_ODD)
    starts = calls // 2 + 1
    if not fixed or starts > MOST_SLOW_STARTS:
        starts = ABSORBED

    def at(call: int) -> float:
        left = calls - call  # calls after this one
        if kind == "slow start":
            return length * (SLOW if call <= starts else 1)
        if kind == "slow last but one" and 0 <= left <= slow:
            return odd if left else length * QUICK
        if kind == "slow last" and 0 <= left <= slow:
            return odd if left < slow else length * QUICK
        if kind == "fails":
            raise RuntimeError(FAILURE)
        return length

    return at


def watch(fn: Callable, inputs: list[list[Any]], machine: Any) -> list[dict[str, Any]]:
    """Run `fn(probe)` on every probe of `inputs`, and note what it said and what it did.

    Per probe: kind, value or error, calls made, how many found the GPU idle, whether work was
    still pending when it returned, the true seconds per call, what a right stopwatch `saw` here
    (more on a busy machine), and the origin of the kernels. Ends at the first probe that fails.
    """
    notes: list[dict[str, Any]] = []
    with _device(machine) as origin, _clocks(fn, origin) as stand_in:
        spin = _spinner()
        calls: list[int] = []  # per probe so far
        own = tool = False
        for kind, milliseconds in inputs:
            length = milliseconds / 1e3
            note: dict[str, Any] = {"kind": kind, "origin": origin}
            before = _reference(spin, length)
            fixed = len(set(calls)) < 2
            at = lengths(kind, length, calls[0] if calls else 0, fixed=fixed, tool=tool)
            probe = Probe(spin, at)
            read = stand_in.reads
            note |= _called(fn, probe)
            note |= {"calls": probe.calls, "idle": probe.found_idle, "pending": _busy()}
            _wait()
            after = _reference(spin, length)
            if not calls:
                own = stand_in.reads > read or _near(note.get("value"), before[0])
                tool = probe.tool
            calls.append(probe.calls)
            note["true"] = before[0]
            note["saw"] = max(before[1], after[1]) if own else max(before[2], after[2])
            notes.append(note)
            if "error" in note:
                break
    return notes


def _near(value: Any, true: float) -> bool:
    return isinstance(value, (int, float)) and abs(value / true - 1) < CLOSE


def _called(fn: Callable, probe: Probe) -> dict[str, Any]:
    try:
        return {"value": plain(fn(probe))}
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        try:
            said = str(error)
        except Exception:
            said = "an error that cannot be printed"
        return {"error": f"{type(error).__name__}: {said}"[:300]}


def _device(machine: Any) -> Any:
    """A card to spin on, as a context that says where its times come from."""
    from helpers.simgpu import active

    if not machine.cpu:
        return nullcontext(machine.origin)
    if active():
        return nullcontext("simulated")
    return _Simulated()


class _Simulated:
    def __enter__(self) -> str:
        from helpers.simgpu import SimulatedGPU

        self.card = SimulatedGPU("T4").activate()
        return "simulated"

    def __exit__(self, *exception: object) -> None:
        self.card.deactivate()


class _StandIn:
    """The simulated host's clock, which knows how often it was read."""

    reads = 0

    def seconds(self) -> float:
        self.reads += 1
        return clock.now()

    def nanoseconds(self) -> int:
        return round(self.seconds() * 1e9)


@contextmanager
def _clocks(fn: Callable, origin: str) -> Iterator[_StandIn]:
    """Give `fn` the simulated host's clock under every name by which it knows a real one."""
    names = getattr(fn, "__globals__", {}) if origin == "simulated" else {}
    own = _StandIn()
    seconds = {f: own.seconds for f in (time.perf_counter, time.time, time.monotonic)}
    whole = {f: own.nanoseconds for f in (time.perf_counter_ns, time.time_ns, time.monotonic_ns)}
    stand_ins = seconds | whole
    module = SimpleNamespace(**vars(time) | {f.__name__: s for f, s in stand_ins.items()})
    before = {}
    for name, value in list(names.items()):
        stand_in = module if value is time else None
        if stand_in is None and type(value) is type(time.time):
            stand_in = stand_ins.get(value)
        if stand_in is not None:
            before[name] = value
            names[name] = stand_in
    try:
        yield own
    finally:
        names.update(before)


def _busy() -> bool:
    import torch

    return not torch.cuda.current_stream().query()


def _wait() -> None:
    import torch

    torch.cuda.synchronize()


def _spinner() -> Callable[[float], None]:
    """A function that queues a kernel of so many seconds: it spins for so many clock cycles."""
    import torch

    _wait()
    trial = 5_000_000
    rate = 0.0
    for _ in range(4):  # the clock of an idle card is slow at first
        rate = trial / _event_seconds(lambda: torch.cuda._sleep(trial))

    def spin(seconds: float) -> None:
        torch.cuda._sleep(max(1, int(rate * seconds)))

    return spin


def _event_seconds(call: Callable[[], object]) -> float:
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return max(begin.elapsed_time(end) / 1e3, 1e-6)


def _reference(spin: Callable[[float], None], length: float) -> tuple[float, float, float]:
    """Medians of (seconds of the kernel by events, by a clock that waits on both sides, simulated
    where the card is, and by the real one)."""
    rows = []
    for _ in range(3):
        _wait()
        start, real = clock.now(), time.perf_counter()
        kernel = _event_seconds(lambda: spin(length))
        rows.append((kernel, clock.now() - start, time.perf_counter() - real))
    kernel, simulated, real = (statistics.median(column) for column in zip(*rows, strict=True))
    return kernel, simulated, real
