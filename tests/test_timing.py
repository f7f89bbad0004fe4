"""The timing core against clocks whose every tick is known: statistics, stop rule, bounds."""

import json
import math
import random
import statistics
import time

import numpy as np
import pytest
import torch

from helpers import clock, timing
from helpers.timing import MeasureError, Measurement, interleave, measure, ratio


class Costs:
    """A host clock, and functions that move it by a cost chosen call by call."""

    def __init__(self):
        self.at = 0.0
        self.calls = 0

    def read(self):
        return self.at

    def function(self, costs):
        """A function whose calls cost `costs` in turn, then the last of them for ever."""
        left = list(costs)

        def fn():
            self.calls += 1
            self.at += left.pop(0) if len(left) > 1 else left[0]

        return fn


@pytest.fixture
def costs():
    source = Costs()
    with clock.using(source.read):
        yield source


def on_cpu(fn, **options):
    return measure(fn, device="cpu", **options)


def sequences():
    rng = random.Random(4)
    yield [0.005] * 30
    yield [0.002 + 0.001 * (i % 2) for i in range(60)]
    yield [0.010, 0.013, 0.011] + [0.010] * 60
    for width in (0.005, 0.1, 0.3):
        yield [0.004 * (1 + width * rng.random()) for _ in range(80)]
    yield [0.004 * rng.lognormvariate(0, 0.5) for _ in range(80)]


@pytest.mark.parametrize("values", list(sequences()))
def test_samples_statistics_and_stop_rule(costs, values):
    # warmup=0 means exactly two warm-up calls here, since the first call is so different.
    m = on_cpu(costs.function([1.0, 0.5, 0.5, *values]), warmup=0.0, budget=1e6, max_samples=50)
    expected = 50
    for n in range(10, 50):
        p20, p50, p80 = np.percentile(values[:n], [20, 50, 80])
        if (p80 - p20) / p50 <= timing.STEADY:
            expected = n
            break
    assert m.n == expected
    assert m.samples == pytest.approx(values[:expected])
    p20, p50, p80 = np.percentile(values[:expected], [20, 50, 80])
    assert (m.p20, m.median, m.p80) == pytest.approx((p20, p50, p80))
    assert m.spread == pytest.approx((p80 - p20) / p50)
    assert m.noisy == ((p80 - p20) / p50 > 0.10)
    assert m.first_call == pytest.approx(1.0)
    assert (m.clock, m.origin, m.host, m.held) == ("wall", "measured", None, None)


def test_the_sequences_reach_both_sides_of_each_rule():
    """Guards the test above: some sequence stops early, some never, some is noisy."""
    spreads = [timing.spread(values[:50]) for values in sequences()]
    assert min(spreads) <= timing.STEADY < max(spreads)
    assert any(s > 0.10 for s in spreads)
    assert any(timing.STEADY < s < 0.10 for s in spreads)


def test_short_calls_are_timed_in_blocks(costs):
    m = on_cpu(costs.function([1e-6]))
    assert m.median == pytest.approx(1e-6)
    assert costs.calls > 1000 * m.n


def test_warm_up_ends_when_two_windows_agree(costs):
    falling = [0.1 * 0.7**i for i in range(8)]
    m = on_cpu(costs.function([3.0, *falling, 0.005]), warmup=10.0, budget=20.0)
    assert m.samples == pytest.approx([0.005] * 10)
    assert m.wall == pytest.approx(0.005)


def test_warm_up_stops_at_its_cap(costs):
    restless = [0.01 * (1 + i % 2) for i in range(1000)]
    on_cpu(costs.function([0.5, *restless]), warmup=0.1, budget=1e6, max_samples=10)
    assert costs.calls <= 1 + 8 + 10  # 0.1 s of calls that take 15 ms on average, then samples


def test_a_call_longer_than_the_budget_is_sampled_once(costs):
    m = on_cpu(costs.function([5.0]), budget=1.0)
    assert m.n == 1
    assert m.median == pytest.approx(5.0)
    assert costs.calls == 3
    assert any("one sample only" in note for note in m.notes)


def test_the_budget_bounds_the_whole_measurement(costs):
    m = on_cpu(costs.function([0.2]), budget=1.0)
    assert costs.at - m.first_call <= 1.0 + 1e-9
    assert 1 < m.n < 10
    assert any(f"{m.n} samples only" in note for note in m.notes)


def test_a_slow_compile_leaves_the_budget_alone(costs):
    m = on_cpu(costs.function([30.0, 0.01]), budget=1.0)
    assert m.first_call == pytest.approx(30.0)
    assert m.samples == pytest.approx([0.01] * 10)
    assert not any("only" in note for note in m.notes)


def test_a_cpu_is_never_called_cold(costs):
    assert on_cpu(costs.function([0.01]), cache="hot").notes == ()
    asked_cold = on_cpu(costs.function([0.01]), cache="cold")
    assert asked_cold.cache == "hot"
    assert any("cold was asked for" in note for note in asked_cold.notes)


@pytest.mark.parametrize("growth", [0.5, 1.0])
def test_interleaved_ratios_survive_drift(costs, growth):
    def drifting(base):
        def fn():
            costs.at += base * (1 + growth * costs.at)

        return fn

    a, b = drifting(0.003), drifting(0.006)
    options = {"device": "cpu", "warmup": 0.0, "budget": 10.0, "min_samples": 100}
    turns = ratio(*reversed(interleave(a, b, **options)))
    assert turns.paired
    assert turns.median == pytest.approx(2.0, rel=0.01)
    apart = [measure(f, **options) for f in (a, b)]
    one_by_one = ratio(apart[1], apart[0])
    assert not one_by_one.paired
    assert abs(one_by_one.median - 2.0) > 5 * abs(turns.median - 2.0)
    assert one_by_one.median > 2.05


def test_interleave_rotates_who_goes_first(costs):
    order = []

    def named(name):
        def fn():
            costs.at += 0.02  # long enough to need no call that only warms the cache
            order.append(name)

        return fn

    interleave(*(named(n) for n in "abc"), device="cpu", warmup=0.0, min_samples=3, max_samples=3)
    assert "".join(order[-9:]) == "abcbcacab"


def test_ratio_of_separate_measurements_is_of_medians(costs):
    a = on_cpu(
        costs.function([1.0, 0.5, 0.5, *[0.002, 0.004] * 9]), warmup=0.0, budget=9, max_samples=18
    )
    b = on_cpu(costs.function([0.001]))
    r = ratio(a, b)
    assert (r.median, r.paired) == (pytest.approx(3.0), False)
    assert r.p20 <= r.median <= r.p80
    assert "not paired" in str(r)


def test_json_round_trip(costs):
    m, other = interleave(
        costs.function([0.002, 0.003] * 40), costs.function([0.01]), device="cpu", max_samples=12
    )
    data = json.loads(json.dumps(m.to_dict()))
    assert Measurement.from_dict(data) == m
    assert data["summary"]["median"] == m.median
    assert ratio(Measurement.from_dict(data), other).paired


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"samples": []}, "samples"),
        ({"samples": [0.1, -0.1]}, r"samples\[1\]"),
        ({"samples": [0.1, math.nan]}, r"samples\[1\]"),
        ({"samples": [True]}, r"samples\[0\]"),
        ({"samples": ["0.1"]}, r"samples\[0\]"),
        ({"samples": 0.1}, "samples must be a list"),
        ({"first_call": None}, "first_call"),
        ({"host": math.inf}, "host"),
        ({"wall": "1"}, "wall"),
        ({"clock": "sundial"}, "clock"),
        ({"cache": "warm"}, "cache"),
        ({"origin": "guessed"}, "origin"),
        ({"device": ""}, "device"),
        ({"held": 1}, "held"),
        ({"notes": [1]}, "notes"),
        ({"group": 7}, "group"),
        ({"surprise": 1}, "surprise"),
        ({"summary": {"median": 1.0}}, "summary says median"),
        ({"summary": {"median": "0.01"}}, "summary says median"),
        ({"summary": {"mode": 1.0}}, "unknown entry"),
    ],
)
def test_damaged_data_is_refused(costs, change, words):
    data = {**on_cpu(costs.function([0.01])).to_dict(), **change}
    with pytest.raises(ValueError, match=words):
        Measurement.from_dict(data)


def test_missing_data_is_refused(costs):
    data = on_cpu(costs.function([0.01])).to_dict()
    del data["host"]
    with pytest.raises(ValueError, match="host"):
        Measurement.from_dict(data)
    with pytest.raises(ValueError, match="mapping"):
        Measurement.from_dict([1.0])


def test_print_says_what_kind_of_number_it_is(costs):
    text = str(on_cpu(costs.function([0.00219])))
    for word in ("2.19 ms", "wall time", "hot", "measured", "CPU", "n = 10", "first call"):
        assert word in text


def test_seconds_has_a_unit_people_read():
    shown = [timing.seconds(v) for v in (2.0, 0.00219, 4.2e-6, 3e-8)]
    assert shown == ["2 s", "2.19 ms", "4.2 us", "30 ns"]


def test_on_the_real_clock_samples_are_plausible():
    x = torch.randn(1 << 14)
    m = measure(x.cos, device="cpu", budget=0.2)
    assert statistics.median(m.samples) == m.median > 0
    assert m.first_call > 0


def test_the_budget_holds_on_the_real_clock():
    m = measure(lambda: time.sleep(0.2), device="cpu", budget=0.7)
    assert 1 <= m.n <= 3  # 0.7 s hold three such calls and the one that warms up at most


def test_no_gpu_asked_for_where_there_is_none(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MeasureError, match="no CUDA GPU here"):
        measure(lambda: None, device="cuda")
