"""What the tests of all graders share: both directions of every exercise, from tables.

A notebook's test module gives rows: right ones (exercise, answer), wrong ones (exercise, answer,
key of the message). The functions here put them through the engine.
"""

from __future__ import annotations

from helpers import checks, devices, evidence
from helpers.checks import Context
from helpers.evidence import Evidence, Record

CARDS = ("t4", "l4", "a100_80_sxm", "h100_sxm")
SEED = 11
SILENT = {"off", "not_positive", "not_an_option", "not_a_table", "rows_missing", "shape"}
"""Keys of mistakes too general to name a misconception."""


def plain(value):
    return evidence.plain(value)


def calls(exercise, function, seed=SEED):
    """What a learner's `function` returns on the judge's inputs, as the kernel hands it over."""
    return [{"value": plain(function(*c))} for c in checks.inputs(exercise, seed)]


def measurement(exercise, label, seconds, moved=0, ops=1, elements=1, itemsize=2, **more):
    """A record as lab.measure writes it: `seconds` per call, `moved` bytes per operation."""
    work = {
        "bytes_unfused": moved * ops,
        "bytes_ideal": moved,
        "flops": more.pop("flops", elements * ops),
        "kernels": ops,
        "elements": elements,
        "itemsize": itemsize,
    }
    value = {"samples": [seconds] * 5, "work": work} | more.pop("value", {})
    return Record(exercise, "measurement", value, label=label, unit="s", **more)


def context(key, stem, records=(), **options):
    """A learner on that card with these records; `key` None is a CPU."""
    kept = Evidence(stem, "test", seed=SEED)
    for record in records:
        kept.add(record)
    device = devices.get(key) if key else None
    return Context(kept, device, cpu=key is None, seed=SEED, **options)


def assert_stubs(number, stubs, where):
    """`...`, and each exercise's own stub of placeholders, is not started and costs all points."""
    for exercise in checks.exercises(number):
        for stub in (..., stubs.get(exercise, ...)):
            outcome = checks.grade(exercise, plain(stub), where)
            assert (outcome.state, outcome.fraction) == ("not_started", 0.0), exercise
            assert outcome.next_step, exercise
        steps = checks.hints(exercise)
        assert len(steps) == 2 and all(steps), exercise


def assert_right(rows, where):
    for exercise, answer in rows:
        outcome = checks.grade(exercise, plain(answer), where)
        assert (outcome.state, outcome.fraction) == ("right", 1.0), (exercise, answer, outcome)
        assert outcome.insight and "{" not in outcome.insight, exercise


def assert_wrong(rows, where, silent=SILENT):
    """Every planted mistake gets its own message, names a misconception, and costs something."""
    for exercise, answer, key in rows:
        outcome = checks.grade(exercise, plain(answer), where)
        assert outcome.key == key, (exercise, answer, outcome)
        assert outcome.state in ("not_yet", "error"), (exercise, key)
        assert 0 <= outcome.fraction < 1, (exercise, key)
        assert outcome.expected and outcome.next_step and outcome.have, (exercise, key)
        said = f"{outcome.expected}{outcome.likely}{outcome.next_step}"
        assert "{" not in said, (exercise, said)
        assert outcome.likely or key in silent, (exercise, key)


def assert_covered(number, right_rows, wrong_rows, forms=4, mistakes=1):
    """Every exercise has the solution and three other right forms, and a planted mistake."""
    ids = checks.exercises(number)
    right_ids = [row[0] for row in right_rows]
    wrong_ids = [row[0] for row in wrong_rows]
    assert {e: right_ids.count(e) for e in ids if right_ids.count(e) < forms} == {}
    assert {e: wrong_ids.count(e) for e in ids if wrong_ids.count(e) < mistakes} == {}
    assert set(right_ids) | set(wrong_ids) == set(ids)
    assert len({(row[0], row[2]) for row in wrong_rows}) >= 5
