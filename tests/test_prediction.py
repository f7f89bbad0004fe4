"""Predictions: the first one counts."""

import pytest

from helpers import evidence
from helpers.prediction import PredictionError, lock


def test_the_first_prediction_stays():
    kept = evidence.fresh("04_x", "0.1")
    first, locked = lock(kept, "04-4", 2.0, unit="ms")
    assert (first.value, locked) == (2.0, False)
    again, locked = lock(kept, "04-4", 9.0, unit="ms")
    assert (again.value, locked) == (2.0, True)
    kept.drop("04-4")
    assert lock(kept, "04-4", 9.0)[0].value == 9.0


def test_labels_are_locked_apart():
    kept = evidence.fresh("04_x", "0.1")
    lock(kept, "04-10", "about half", label="a", options=["about half", "same"])
    record, locked = lock(kept, "04-10", " Same ", label="b", options=["about half", "same"])
    assert (record.value, locked) == ("same", False)


@pytest.mark.parametrize("value", [0, -1, float("nan"), "fast", None, True, [1, 2]])
def test_what_cannot_be_a_number(value):
    with pytest.raises(PredictionError, match="one positive number in ms"):
        lock(evidence.fresh("04_x", "0.1"), "04-4", value, unit="ms")


def test_what_is_no_option():
    with pytest.raises(PredictionError, match="choose from: a, b"):
        lock(evidence.fresh("04_x", "0.1"), "04-10", "c", options=["a", "b"])


def test_a_bucket_may_be_called_bound():
    options = ["memory", "compute", "overhead"]
    for said in ("memory", "memory-bound", "Memory bound", "memory_bound"):
        record, _ = lock(evidence.fresh("02_topic", "test"), "02-6", said, options=options)
        assert record.value == "memory"
    with pytest.raises(PredictionError, match="bound"):
        lock(evidence.fresh("02_topic", "test"), "02-6", "bound", options=options)
