"""The CUDA path end to end on the simulated GPU: exact, repeatable, and called simulated."""

import pytest
import torch

from helpers import devices
from helpers.simgpu import SimulatedGPU
from helpers.timing import MeasureError, Measurement, interleave, measure, ratio

N = 2**27  # elements of notebook 04's tensor


@pytest.fixture
def t4():
    with SimulatedGPU("T4") as gpu:
        yield gpu


@pytest.fixture
def x(t4):
    return torch.rand(N, device="cuda", dtype=torch.float16)


@pytest.mark.parametrize("cache", ["cold", "hot"])
def test_all_samples_are_equal_and_no_more_than_needed(x, cache):
    m = measure(lambda: x.cos(), cache=cache, min_samples=7)
    assert m.n == 7
    assert m.samples == pytest.approx([m.median] * 7, rel=1e-9)
    assert (m.clock, m.cache, m.origin, m.held) == ("cuda-events", cache, "simulated", True)
    assert m.device == "Tesla T4 (simulated)"
    assert not m.noisy and m.notes == ()


def test_the_time_is_that_of_the_kernel_in_the_trace(t4, x):
    m = measure(lambda: x.cos())
    kernel = [k for k in t4.trace if "cos" in k.name][-1]
    assert m.median == pytest.approx(kernel.seconds, rel=0.01)
    assert 4 * N / m.median < devices.get("T4").bandwidth


def test_two_runs_give_the_same_evidence():
    def run():
        with SimulatedGPU("T4"):
            x = torch.rand(N, device="cuda", dtype=torch.float16)
            pair = interleave(lambda: x.cos(), lambda: x.cos().cos().cos())
            return [m.to_dict() for m in pair]

    assert run() == run()


def test_three_trips_take_three_times_as_long(x):
    one, three = interleave(lambda: x.cos(), lambda: x.cos().cos().cos())
    assert ratio(three, one).paired
    assert ratio(three, one).median == pytest.approx(3.0, rel=0.01)


def test_compilation_is_in_the_first_call_only(x):
    fused = torch.compile(lambda t: t.mul(1.0001).mul(0.9999).mul(1.0001))
    eager, compiled = interleave(lambda: x.mul(1.0001).mul(0.9999).mul(1.0001), lambda: fused(x))
    assert compiled.first_call > 10 * compiled.median
    assert ratio(eager, compiled).median == pytest.approx(3.0, rel=0.1)


def test_many_small_kernels_show_the_host_apart(t4):
    y = torch.rand(1000, device="cuda")

    def chain():
        z = y
        for _ in range(30):
            z = z + 1
        return z

    m = measure(chain)
    assert m.held
    assert m.median < m.host / 3
    assert m.wall > 3 * m.median
    hot = measure(chain, cache="hot")
    assert hot.median <= m.median


def test_l2_hot_is_faster_than_cold(t4):
    w = torch.rand(2**18, device="cuda")
    out = torch.empty_like(w)
    cold, hot = (measure(lambda: torch.add(w, 1, out=out), cache=c) for c in ("cold", "hot"))
    assert hot.median < 0.7 * cold.median


def test_a_hidden_wait_is_an_upper_bound(t4):
    y = torch.rand(1000, device="cuda")
    m = measure(lambda: (y + y.sum().item()).sum())
    assert m.held is False
    assert any(note.startswith("upper bound") for note in m.notes)


@pytest.mark.parametrize("cache", ["cold", "hot"])
def test_errors_are_the_same_sentences(t4, cache):
    on_host = torch.rand(1000)
    for fn in (lambda: None, lambda: on_host.cos()):
        with pytest.raises(MeasureError, match="nothing was queued on the GPU"):
            measure(fn, cache=cache)
    with pytest.raises(MeasureError, match=r"ran out of GPU memory in its first call when \d"):
        measure(lambda: torch.empty(2**38, device="cuda"), cache=cache)
    y = torch.rand(1000, device="cuda")
    assert measure(lambda: y + 1, cache=cache).n >= 10


def test_the_flush_buffer_is_given_back(x):
    before = torch.cuda.memory_allocated()
    measure(lambda: x.cos())
    assert torch.cuda.memory_allocated() == before


def test_no_call_is_made_in_vain(t4, x):
    """Simulated waits are slept, so needless calls would be felt by everyone."""
    m = measure(lambda: x.cos())
    calls = [k for k in t4.trace if "cos" in k.name]
    assert m.n <= len(calls) <= m.n + 15  # first call, windows of 5 ms, two pairs to size the hold


def test_json_round_trip(x):
    m = measure(lambda: x.cos())
    assert Measurement.from_dict(m.to_dict()) == m
