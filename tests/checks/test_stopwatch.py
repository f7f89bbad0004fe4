"""The observer of 05-5 with real stopwatches, right and wrong ones, on a simulated card.

Each function runs on kernels that take real time, so nothing here is asserted in seconds: what is
asserted is which mistake the grader names.
"""

import statistics
import time
from types import SimpleNamespace

import pytest
import torch
from torch.utils import benchmark

from helpers import checks, simgpu
from helpers.checks import Context, stopwatch

CPU = SimpleNamespace(cpu=True, origin="measured")
CARD = SimpleNamespace(cpu=False, origin="simulated")


def wait():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def clocked(fn, before=True, after=True):
    if before:
        wait()
    start = time.perf_counter()
    fn()
    if after:
        wait()
    return time.perf_counter() - start


def samples(fn, warm=3, times=7, **how):
    for _ in range(warm):
        fn()
    return [clocked(fn, **how) for _ in range(times)]


def events(fn, warm=3, times=7):
    for _ in range(warm):
        fn()
    pairs = []
    for _ in range(times):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        fn()
        end.record()
        pairs.append((begin, end))
    wait()
    return [begin.elapsed_time(end) for begin, end in pairs]


def block(fn, times=7):
    for _ in range(3):
        fn()
    return clocked(lambda: [fn() for _ in range(times)])


def late(fn):
    """Waits, but only after the clock was read."""
    for _ in range(3):
        fn()
    times = []
    for _ in range(7):
        wait()
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
        wait()
    return statistics.median(times)


def careless(fn):
    try:
        return statistics.median(samples(fn))
    except RuntimeError:
        return 0.0


def endless(fn):
    while True:
        try:
            fn()
        except Exception:
            continue


RIGHT = {
    "synchronize": lambda fn: statistics.median(samples(fn)),
    "many": lambda fn: statistics.median(samples(fn, warm=10, times=15)),
    "without the first wait": lambda fn: statistics.median(samples(fn, before=False)),
    "events": lambda fn: statistics.median(events(fn)) / 1e3,
    "a percentile": lambda fn: sorted(samples(fn))[3],
    "a timer": lambda fn: benchmark.Timer("fn()", globals={"fn": fn}).blocked_autorange().median,
}


def budget(fn, seconds, average=statistics.median):
    """As many timed calls as fit into so many seconds."""
    times = []
    for _ in range(3):
        fn()
    wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        times.append(clocked(fn))
    return average(times)


def trimmed(fn):
    times = sorted(samples(fn, times=60))[15:45]
    return sum(times) / len(times)


RIGHT |= {
    "a budget of seconds": lambda fn: budget(fn, 0.3),
    "a small budget": lambda fn: budget(fn, 0.06),
    "a trimmed mean of many": trimmed,
    "a median of blocks": lambda fn: statistics.median(block(fn, 3) / 3 for _ in range(11)),
    "a tensor": lambda fn: torch.tensor(samples(fn)).median(),
    "nanoseconds divided": lambda fn: statistics.median(events(fn)) * 1e6 / 1e9,
}
WRONG = {
    "no_wait": lambda fn: statistics.median(samples(fn, before=False, after=False)),
    "waits_before": lambda fn: statistics.median(samples(fn, after=False)),
    "stops_too_early": late,
    "mean": lambda fn: statistics.fmean(samples(fn)),
    "minimum": lambda fn: min(samples(fn)),
    "milliseconds": lambda fn: statistics.median(events(fn)),
    "one_repeat": lambda fn: samples(fn, times=1)[0],
    "no_warm_up": lambda fn: statistics.median(samples(fn, warm=0)),
    "total": block,
    "returned_none": lambda fn: print(end="") if samples(fn) else None,
    "swallows": careless,
    "never_called": lambda fn: 0.0035,
    "raised": lambda fn: fn(1),
}
MORE_WRONG = [
    ("mean", lambda fn: statistics.fmean(samples(fn, times=100))),
    ("mean", lambda fn: statistics.fmean(samples(fn, times=300))),
    ("mean", lambda fn: budget(fn, 0.3, statistics.fmean)),
    ("mean", lambda fn: max(samples(fn))),
    ("no_warm_up", lambda fn: statistics.median(samples(fn, warm=0, times=50))),
    ("no_warm_up", lambda fn: statistics.median(samples(fn, warm=0, times=101))),
    ("constant", lambda fn: fn() or wait() or 0.0066),
    ("minimum", lambda fn: min(samples(fn, times=100))),
]


@pytest.fixture
def card():
    with simgpu.SimulatedGPU("T4"):
        yield


def graded(fn, machine, seed=3):
    found = stopwatch.watch(fn, checks.inputs("05-5", seed), machine)
    return checks.grade("05-5", found, Context(seed=seed, cpu=machine.cpu))


SURE = ("synchronize", "events", "a timer", "a budget of seconds", "nanoseconds divided")
WAYS = [w if w in SURE else pytest.param(w, marks=pytest.mark.slow) for w in RIGHT]


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_do_it_right_passes(name, card):
    outcome = graded(RIGHT[name], CARD)
    assert (outcome.state, outcome.fraction) == ("right", 1.0), outcome


@pytest.mark.parametrize("key", WRONG)
def test_every_wrong_stopwatch_is_named(key, card):
    outcome = graded(WRONG[key], CARD)
    assert outcome.key == key, outcome
    assert outcome.fraction < 1 and outcome.next_step


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(MORE_WRONG)))
def test_many_calls_hide_no_mistake(row, card):
    key, stopwatch_of_a_learner = MORE_WRONG[row]
    outcome = graded(stopwatch_of_a_learner, CARD)
    assert outcome.key == key, outcome
    assert outcome.fraction < 1 and outcome.next_step


def test_every_clock_by_name_is_the_cards_own_and_comes_back(card):
    from time import perf_counter, time_ns

    def fresh(source):
        names = {"time": time, "perf_counter": perf_counter, "time_ns": time_ns, "wait": wait,
                 "statistics": statistics}  # fmt: skip
        exec(source, names)
        return names

    body = """
def time_gpu(fn):
    for _ in range(3): fn()
    times = []
    for _ in range(7):
        wait(); start = {}; fn(); wait()
        times.append(({} - start) {})
    return statistics.median(times)
"""
    for read, unit in (("time.time()", ""), ("perf_counter()", ""), ("time.perf_counter()", ""),
                       ("time_ns()", "/ 1e9"), ("time.monotonic_ns()", "/ 1e9")):  # fmt: skip
        names = fresh(body.format(read, read, unit))
        found = stopwatch.watch(names["time_gpu"], checks.inputs("05-5", 3), CARD)
        assert checks.grade("05-5", found, Context(seed=3)).state == "right", read
        assert found[0]["value"] == pytest.approx(found[0]["true"], rel=0.05), read
        assert names["time"] is time and names["perf_counter"] is perf_counter


def test_a_block_divided_by_its_calls_is_a_mean(card):
    assert graded(lambda fn: block(fn) / 7, CARD).key == "mean"


def test_one_warm_up_call_is_too_few(card):
    assert graded(lambda fn: statistics.median(samples(fn, warm=1)), CARD).key == "no_warm_up"


def test_a_stopwatch_that_never_ends_is_ended(card, monkeypatch):
    monkeypatch.setattr(stopwatch, "MOST_CALLS", 50)
    outcome = graded(endless, CARD)
    assert (outcome.key, outcome.state) == ("too_many", "error")


def test_where_the_cpu_is_measured_a_card_is_lent_and_taken_back():
    assert simgpu.active() is None
    assert graded(RIGHT["events"], CPU).state == "right"
    assert graded(WRONG["no_wait"], CPU).key == "no_wait"
    assert simgpu.active() is None and not torch.cuda.is_available()


def test_a_card_that_is_there_is_used_and_stays(card):
    graded(RIGHT["events"], CPU)
    assert simgpu.active() is not None


def test_what_is_no_stopwatch_is_noted_and_not_raised(card):
    for odd in (print, type, lambda *a: a, lambda fn: fn, lambda fn: {"s": 1}):
        outcome = graded(odd, CARD)
        assert outcome.state in ("not_yet", "error") and outcome.fraction == 0, outcome


def test_the_odd_calls_are_the_last_two_and_the_slow_ones_the_first_half():
    at = stopwatch.lengths("slow last", 1e-3, 12)
    assert [round(at(i) * 1e3, 3) for i in (1, 10, 11, 12, 13)] == [1, 1, 0.3, 25, 1]
    at = stopwatch.lengths("slow last but one", 1e-3, 12)
    assert [round(at(i) * 1e3, 3) for i in (10, 11, 12)] == [1, 25, 0.3]
    at = stopwatch.lengths("slow start", 1e-3, 12)
    assert [at(i) for i in (7, 8)] == [8e-3, 1e-3]
    odd = stopwatch.LONGEST_ODD
    at = stopwatch.lengths("slow last", 4e-3, 100)  # one slow call would be lost in a mean of 100
    assert [at(i) for i in (94, 95, 96, 100, 101)] == [4e-3, 1.2e-3, odd, odd, 4e-3]
    at = stopwatch.lengths("slow last", 4e-3, 100, tool=True)
    assert [at(i) for i in (98, 99, 100)] == [4e-3, 1.2e-3, odd]
    at = stopwatch.lengths("slow start", 1e-3, 12, fixed=False)
    assert [at(i) for i in (3, 4)] == [8e-3, 1e-3]


def test_no_one_number_fits_all_kernels():
    for seed in range(50):
        first, *others = (length for _, length in stopwatch.probes(seed))
        assert first > 1.3 * max(others)


def test_kernels_differ_between_learners():
    assert stopwatch.probes(1) == stopwatch.probes(1) != stopwatch.probes(2)
    assert [kind for kind, _ in stopwatch.probes(1)] == list(stopwatch.KINDS)
