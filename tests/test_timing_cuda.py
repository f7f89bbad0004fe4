"""The CUDA path against a stand-in whose every launch has a known cost."""

import pytest
import torch

from helpers.timing import MeasureError, interleave, measure, ratio
from tests.fake_cuda import MISSING, FakeGPU

MIB = 2**20


@pytest.fixture
def gpu(monkeypatch):
    fake = FakeGPU().install(monkeypatch)
    yield fake
    fake.uninstall()


def kernels(gpu, n, gpu_time, host=5e-6):
    def fn():
        for _ in range(n):
            gpu.launch(gpu_time, host)

    return fn


def test_gpu_time_is_that_of_the_kernel(gpu):
    m = measure(kernels(gpu, 1, 2e-3))
    assert m.median == pytest.approx(2e-3, rel=1e-2)
    assert (m.clock, m.cache, m.origin, m.held) == ("cuda-events", "cold", "measured", True)
    assert m.device == "Tesla T4"
    assert m.n == 10  # no spread, so no more than asked for
    assert m.notes == ()
    assert m.wall == pytest.approx(2e-3, rel=1e-2)


def test_a_held_queue_hides_a_slow_host(gpu):
    m = measure(kernels(gpu, 20, 10e-6, host=100e-6))
    assert m.median == pytest.approx(200e-6, rel=0.05)
    assert m.host == pytest.approx(2e-3, rel=0.05)
    assert m.wall == pytest.approx(2e-3, rel=0.05)
    assert m.held


def test_the_flush_counts_as_part_of_the_hold(gpu):
    gpu.bytes_per_second = 25e9  # a flush of 1.3 ms outlasts the queueing by far
    gpu.slept.clear()
    assert measure(kernels(gpu, 1, 1e-3)).held
    trials = 2  # the sleeps that find out how long a cycle lasts
    assert len(gpu.slept) == trials


def test_a_host_slower_than_any_hold_is_an_upper_bound(gpu):
    m = measure(kernels(gpu, 1, 1e-3, host=0.3), budget=20.0)
    assert m.held is False
    assert m.median > 1e-3
    assert any(n.startswith("upper bound: the host was slower than the hold") for n in m.notes)
    assert max(gpu.slept) <= 0.11


def test_a_function_that_waits_for_the_gpu_is_an_upper_bound(gpu):
    def waits():
        gpu.launch(1e-3)
        gpu.synchronize()
        gpu.launch(1e-3)

    m = measure(waits)
    assert m.held is False
    assert m.median >= 2e-3


def test_a_host_that_grows_slower_makes_the_hold_grow(gpu):
    calls = [0]

    def fn():
        calls[0] += 1
        gpu.launch(1e-3, host=5e-3 if calls[0] > 40 else 1e-3)

    m = measure(fn, min_samples=50, budget=10.0)
    assert m.median < 2e-3


@pytest.mark.parametrize(
    ("l2", "free", "size"),
    [
        (4 * MIB, 14 * 2**30, 32 * MIB),
        (40 * MIB, 79 * 2**30, 80 * MIB),
        (MISSING, 14 * 2**30, 256 * MIB),
        (4 * MIB, 100 * MIB, 5 * MIB),
    ],
)
def test_the_flush_is_twice_l2_and_never_much_of_free_memory(gpu, l2, free, size):
    gpu.l2, gpu.free = l2, free
    m = measure(kernels(gpu, 1, 1e-3))
    assert set(gpu.flushed) == {size}
    assert len(gpu.flushed) >= m.n
    assert any("free" in note for note in m.notes) == (size < 32 * MIB)


def test_what_pytorch_keeps_but_does_not_use_counts_as_free(gpu):
    gpu.free, gpu.reserved, gpu.allocated = 100 * MIB, 13 * 2**30, 2**30
    assert measure(kernels(gpu, 1, 1e-3)).notes == ()
    assert set(gpu.flushed) == {32 * MIB}


def test_hot_has_no_flush_and_several_short_calls_per_pair(gpu):
    launched = [0]

    def fn():
        launched[0] += 1
        gpu.launch(4e-6)

    m = measure(fn, cache="hot")
    assert m.cache == "hot" and gpu.flushed == []
    assert m.median == pytest.approx(4e-6, rel=0.02)
    assert launched[0] > 20 * m.n
    assert m.held


def test_a_cold_short_kernel_says_what_the_events_cost(gpu):
    m = measure(kernels(gpu, 1, 4e-6))
    assert m.median == pytest.approx(5e-6)
    assert any("empty pair" in note and "hot" in note for note in m.notes)


@pytest.mark.parametrize("cache", ["cold", "hot"])
@pytest.mark.parametrize("host", [1e-7, 2e-6, 5e-3])
def test_nothing_queued_is_an_error(gpu, cache, host):
    def busy_on_the_host():
        gpu.host += host

    with pytest.raises(MeasureError, match=r"nothing was queued on the GPU") as caught:
        measure(busy_on_the_host, cache=cache)
    assert "busy_on_the_host returned at once" in str(caught.value)


@pytest.mark.parametrize("cache", ["cold", "hot"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_shortest_kernel_is_not_taken_for_nothing(gpu, cache, noise):
    gpu.record_cost = 2e-6
    assert measure(kernels(gpu, 1, 1.2e-6 * (1 + noise)), cache=cache).n >= 10


def test_interleaved_on_the_gpu(gpu):
    def drifting(base):
        def fn():
            gpu.launch(base * (1 + 2 * gpu.stream))

        return fn

    a, b = interleave(drifting(1e-3), drifting(3e-3), min_samples=50, budget=5.0)
    assert a.held and b.held and a.group == b.group
    assert ratio(b, a).median == pytest.approx(3.0, rel=0.01)
    hot = interleave(kernels(gpu, 1, 1e-5), kernels(gpu, 2, 1e-5), cache="hot")
    assert ratio(hot[1], hot[0]).median == pytest.approx(2.0, rel=0.01)


def test_a_simulated_card_is_called_simulated(gpu):
    gpu.name = "Tesla T4 (simulated)"
    m = measure(kernels(gpu, 1, 1e-3))
    assert (m.origin, m.device) == ("simulated", "Tesla T4 (simulated)")
    assert "simulated" in str(m)


def test_out_of_memory_gives_the_cache_back(gpu):
    def fn():
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 30.00 GiB.")

    with pytest.raises(MeasureError, match=r"30\.00 GiB"):
        measure(fn)
    assert gpu.emptied == 1


def test_out_of_memory_in_the_flush_buffer_is_not_blamed_on_a_call(gpu, monkeypatch):
    def zeros(*args, **kwargs):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 32.00 MiB.")

    monkeypatch.setattr(torch, "zeros", zeros)
    with pytest.raises(MeasureError, match="in the L2 flush buffer that measure adds"):
        measure(kernels(gpu, 1, 1e-3))


def test_the_cpu_can_be_chosen_beside_a_gpu(gpu):
    def fn():
        gpu.host += 0.01

    assert measure(fn, device="cpu").clock == "wall"
