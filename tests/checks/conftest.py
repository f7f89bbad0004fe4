"""Evidence of a learner who did everything right, on any device: what graders may look at."""

import pytest

from helpers import devices
from helpers.checks import Context
from helpers.evidence import Evidence, Record

N = 2**27


def measurement(exercise, label, seconds, moved, ops=1, elements=N, itemsize=2):
    work = {
        "bytes_unfused": moved * ops,
        "bytes_ideal": moved,
        "flops": elements * ops,
        "kernels": ops,
        "elements": elements,
        "itemsize": itemsize,
    }
    return Record(
        exercise, "measurement", {"samples": [seconds] * 5, "work": work}, label=label, unit="s"
    )


def evidence_of(device):
    """Times straight from the device's memory roof; a fused cosine chain somewhat above it."""
    trip = 2 * N * 2
    one = trip / (device.sustained_bandwidth or device.bandwidth)
    kept = Evidence("04_cos_chain_fusion", "test", seed=11)
    kept.add(measurement("04-4", "cos x1", one, trip))
    kept.add(measurement("04-6", "cos x1", one, trip))
    kept.add(measurement("04-6", "cos x3", 3 * one, trip, ops=3))
    kept.add(measurement("04-6", "fused", 1.3 * one, trip, ops=3))
    for label, factor in [
        ("as it is", 20),
        ("half the bytes", 10),
        ("twice the arithmetic", 21),
        ("one launch", 19.8),
    ]:
        kept.add(measurement("04-10", label, factor * one, trip))
    for label, effect in [
        ("bucket", "memory"),
        ("half the bytes", "about half"),
        ("twice the arithmetic", "about the same"),
        ("one launch", "about the same"),
    ]:
        kept.add(Record("04-10", "prediction", effect, label=label))
    return kept


@pytest.fixture(params=["t4", "l4", "a100_80_sxm", "h100_sxm"])
def context(request):
    device = devices.get(request.param)
    return Context(evidence_of(device), device, seed=11)


@pytest.fixture
def t4():
    device = devices.get("t4")
    return Context(evidence_of(device), device, seed=11)
