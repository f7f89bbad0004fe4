"""Every grader of notebook 05 in both directions: stub, solution, other right forms, mistakes."""

import dataclasses

import numpy as np
import pytest
import torch

from helpers import checks, devices
from helpers.checks import nb05, stopwatch
from helpers.checks.engine import Context
from helpers.evidence import Record
from tests.checks import kit

plain = kit.plain
STEM = "05_async_timing"
SIDE = 8192
FLOPS = 2 * SIDE**3
HOST = 20e-6
NAN = float("nan")


def records(device):
    """What a learner on that card measured who did everything right."""
    rate = device.sustained.get("fp16") or device.peak["fp16"]
    bandwidth = device.sustained_bandwidth or device.bandwidth
    kept = [kit.measurement("05-3", "matmul", FLOPS / rate, 3 * SIDE**2 * 2, flops=FLOPS)]
    for n in nb05.ROWS:
        moved = 4 * n * nb05.WIDTH
        value = {"host": HOST, "wall": max(HOST, moved / bandwidth)}
        kept.append(kit.measurement("05-8", f"{n} rows", moved / bandwidth, moved, value=value))
    for label, factor in {"as it is": 1, "half the elements": 0.98,
                          "ten times the elements": 1.05, "one launch": 0.2}.items():  # fmt: skip
        kept.append(kit.measurement("05-9", label, 5e-5, value={"wall": 3e-4 * factor}))
    for label, word in {"bucket": "overhead", "half the elements": "about the same",
                        "ten times the elements": "about the same",
                        "one launch": "much less"}.items():  # fmt: skip
        kept.append(Record("05-9", "prediction", word, label=label))
    return kept


def learner(key):
    return kit.context(key, STEM, records(devices.get(key)))


@pytest.fixture(params=kit.CARDS)
def context(request):
    return learner(request.param)


@pytest.fixture
def t4():
    return learner("t4")


def implied(context):
    case = context.case("05-1")
    return 4e6 * case["million elements"] / (case["microseconds"] * 1e-6) / 1e9


def clocks(context, **changes):
    waited = context.measurement("05-3", "matmul").value["samples"][0] * 1e3
    naive = 0.02
    return {
        "naive": naive,
        "synchronize": 1.02 * waited,
        "events": waited,
        "naive TFLOP/s": FLOPS / naive * 1e3 / 1e12,
    } | {k.replace("_", " "): v for k, v in changes.items()}


def notes(**changes):
    """What the observer notes of a right stopwatch: 18 calls, every kernel 3.5 ms.

    `changes`: by kind (spaces as underscores), a value in kernel lengths, or keys to replace.
    """
    out = []
    for kind in stopwatch.KINDS:
        note = {"kind": kind, "origin": "measured", "true": 3.5e-3, "saw": 3.6e-3, "value": 3.55e-3,
                "calls": 18, "idle": 15, "pending": False}  # fmt: skip
        if kind == "fails":
            del note["value"]
            note |= {"error": f"RuntimeError: {stopwatch.FAILURE}", "calls": 1, "idle": 0}
        change = changes.get(kind.replace(" ", "_"), {})
        out.append(note | (change if isinstance(change, dict) else {"value": change * 3.5e-3}))
    return out


def honest(context, **changes):
    log = context.case("05-7")
    return {
        "ms per call": (log["total (s)"] - log["first (s)"]) / (log["calls"] - 1) * 1e3,
        "speed-up": log["eager: wall (us)"] / log["fused: wall (us)"],
        "GB/s": log["printed"] * 2**30 / 1e9,
    } | changes


def full(context):
    times = {n: context.measurement("05-8", f"{n} rows").value["samples"][0] for n in nb05.ROWS}
    return next(n for n in nb05.ROWS if times[n] >= HOST)


STUBS = {
    "05-3": {name: ... for name in nb05.CLOCKS},
    "05-4": {name: ... for name in nb05.WAITS},
    "05-6": {name: ... for name in nb05.FAULTS},
    "05-7": {name: ... for name in nb05.HONEST},
    "05-9": {"bucket": ..., "decided by": ...},
    "05-10": {name: ... for name in nb05.RECAP},
}
VERDICT = {"bucket": "overhead", "decided by": "one launch"}


def test_a_stub_is_not_started(t4):
    kit.assert_stubs("05", STUBS, t4)


def right_forms(context):
    rate, rows = implied(context), full(context)
    good, made = clocks(context), honest(context)
    return [
        ("05-1", rate),
        ("05-1", np.float32(rate)),
        ("05-1", round(rate)),
        ("05-1", [torch.tensor(rate)]),
        ("05-2", "c"),
        ("05-2", "C"),
        ("05-2", " c "),
        ("05-2", np.str_("c")),
        ("05-3", good),
        ("05-3", {k: np.float32(v) for k, v in good.items()}),
        ("05-3", {k: float(f"{v:.3g}") for k, v in good.items()}),
        ("05-3", clocks(context, events=1.1 * good["synchronize"])),
        ("05-4", dict(nb05.WAITS)),
        ("05-4", {k: v.upper() for k, v in nb05.WAITS.items()}),
        ("05-4", dict(reversed(nb05.WAITS.items()))),
        ("05-4", {k: f" {v} " for k, v in nb05.WAITS.items()}),
        ("05-5", notes()),
        ("05-5", notes(steady=0.99, slow_start=0.99, slow_last=0.98)),
        ("05-5", notes(steady={"value": np.float32(3.6e-3)})),
        ("05-5", notes(steady={"idle": 0, "calls": 14})),  # events: everything queued at once
        ("05-5", notes(steady={"calls": 63}, slow_start=4.5)),  # a trimmed mean of many
        ("05-5", notes(steady={"value": 7.1e-3, "true": 7e-3, "saw": 7e-3})),  # a longer kernel
        ("05-5", notes(fails={"error": "ValueError: my stopwatch gave up"})),
        ("05-6", dict(nb05.FAULTS)),
        ("05-6", {k: v.upper() for k, v in nb05.FAULTS.items()}),
        ("05-6", {k: v.lower() for k, v in nb05.FAULTS.items()}),
        ("05-6", {k: np.str_(f" {v}") for k, v in nb05.FAULTS.items()}),
        ("05-7", made),
        ("05-7", {k: np.float64(v) for k, v in made.items()}),
        ("05-7", {k: torch.tensor(v) for k, v in made.items()}),
        ("05-7", {k: float(f"{v:.4g}") for k, v in made.items()}),
        ("05-8", rows),
        ("05-8", float(rows)),
        ("05-8", np.int64(rows)),
        ("05-8", [rows]),
        ("05-9", dict(VERDICT)),
        ("05-9", {k: v.title() for k, v in VERDICT.items()}),
        ("05-9", {k: f" {v} " for k, v in reversed(VERDICT.items())}),
        ("05-9", {k: np.str_(v) for k, v in VERDICT.items()}),
        ("05-10", dict(nb05.RECAP)),
        ("05-10", {k: v.upper() for k, v in nb05.RECAP.items()}),
        ("05-10", dict(reversed(nb05.RECAP.items()))),
        ("05-10", {k: f" {v} " for k, v in nb05.RECAP.items()}),
    ]


def test_every_right_form_gets_full_marks_on_every_device(context):
    kit.assert_right(right_forms(context), context)


def test_each_exercise_has_right_forms_and_mistakes(t4):
    kit.assert_covered("05", right_forms(t4), wrong_forms(t4))


def wrong_forms(context):
    rate, rows = implied(context), full(context)
    log, good = context.case("05-7"), clocks(context)
    waited = good["synchronize"]
    naive_rate = good["naive TFLOP/s"]
    total, first, calls = log["total (s)"], log["first (s)"], log["calls"]
    wall, fused_wall = log["eager: wall (us)"], log["fused: wall (us)"]
    gpu, fused_gpu = log["eager: GPU (us)"], log["fused: GPU (us)"]
    gone = {"pending": True, "idle": 0}
    rows_wrong = [
        ("05-1", rate / 2, "read_only"),
        ("05-1", rate / 4, "elements"),
        ("05-1", rate * 2, "fp32"),
        ("05-1", rate * 1e3, "times_1000"),
        ("05-1", rate / 1e3, "per_1000"),
        ("05-1", rate * 1e9, "times_1e9"),
        ("05-1", rate * 1.3, "off"),
        ("05-1", None, "none"),
        ("05-1", "12", "not_a_number"),
        ("05-1", NAN, "not_finite"),
        ("05-1", -rate, "not_positive"),
        ("05-1", [rate, rate], "not_a_number"),
        ("05-2", "a", "picked_a"),
        ("05-2", "b", "picked_b"),
        ("05-2", "d", "picked_d"),
        ("05-2", "overhead", "not_an_option"),
        ("05-3", clocks(context, naive=waited), "naive_waits"),
        ("05-3", clocks(context, synchronize=waited / 1e3), "in_seconds"),
        ("05-3", clocks(context, synchronize=waited * 1e3), "in_microseconds"),
        ("05-3", clocks(context, synchronize=30 * waited), "waited_too_long"),
        ("05-3", clocks(context, events=good["events"] / 1e3), "events_in_seconds"),
        ("05-3", clocks(context, events=0.02 * waited), "events_around_nothing"),
        ("05-3", clocks(context, events=3 * waited), "events_too_long"),
        ("05-3", good | {"naive TFLOP/s": FLOPS / waited * 1e3 / 1e12}, "from_waited"),
        ("05-3", good | {"naive TFLOP/s": naive_rate / 2}, "one_flop"),
        ("05-3", good | {"naive TFLOP/s": naive_rate * 1e3}, "times_1000"),
        ("05-3", good | {"naive TFLOP/s": naive_rate / 1e3}, "per_1000"),
        ("05-3", good | {"naive TFLOP/s": naive_rate / 1e6}, "per_1e6"),
        ("05-3", good | {"naive TFLOP/s": naive_rate * 1.4}, "off"),
        ("05-3", good | {"events": "26 ms"}, "not_a_number"),
        ("05-3", {"naive": 1.0}, "rows_missing"),
        ("05-3", [1, 2, 3, 4], "not_a_table"),
        ("05-6", nb05.FAULTS | {"A": "slow"}, "not_an_option"),
        ("05-6", "A", "not_a_table"),
        ("05-5", notes(steady={"value": 5e-6} | gone), "no_wait"),
        ("05-5", notes(steady={"value": 5e-6, "pending": True}), "waits_before"),
        ("05-5", notes(steady={"value": 5e-6}), "stops_too_early"),
        ("05-5", notes(steady=1000), "milliseconds"),
        ("05-5", notes(steady=1.02e6), "microseconds"),
        ("05-5", notes(steady=1e9), "nanoseconds"),
        ("05-5", notes(steady=1.02e-3), "per_1000"),
        ("05-5", notes(steady=15.1), "total"),
        ("05-5", notes(steady=70), "too_long"),
        ("05-5", notes(steady=-1), "not_above_zero"),
        ("05-5", notes(steady=0), "not_above_zero"),
        ("05-5", notes(slow_last_but_one=3.4, slow_last=3.4), "mean"),
        ("05-5", notes(slow_last_but_one=0.31, slow_last=0.3), "minimum"),
        ("05-5", notes(slow_last_but_one=0.3, slow_last=37), "one_repeat"),
        ("05-5", notes(slow_last=0.4), "unsteady"),
        ("05-5", notes(slow_start=4.1), "no_warm_up"),
        ("05-5", notes(steady={"calls": 50}, slow_start=8), "no_warm_up"),
        ("05-5", notes(steady=1.01, slow_last_but_one={"value": 3.54e-3, "true": 2.6e-3},
                       slow_last=1.01, slow_start=1.01), "constant"),
        ("05-5", notes(fails={"value": 0.0, "error": ...} | {"kind": "fails"}), "swallows"),
        ("05-5", notes(steady={"calls": 0, "value": 0.003}), "never_called"),
        ("05-5", notes(steady={"value": None}), "returned_none"),
        ("05-5", notes(steady={"value": [1, 2]}), "not_a_number"),
        ("05-5", notes(steady={"value": "3 ms"}), "not_a_number"),
        ("05-5", notes(steady={"error": "NameError: name 'tme' is not defined"})[:1], "raised"),
        ("05-5", notes(steady={"error": "TooMany: more than 5,000 calls"})[:1], "too_many"),
        ("05-5", 0.0035, "not_a_function"),
        ("05-5", notes()[:2], "not_a_function"),
        ("05-7", honest(context, **{"ms per call": total / calls * 1e3}), "compiler_in"),
        ("05-7", honest(context, **{"ms per call": total / (calls - 1) * 1e3}), "only_the_count"),
        ("05-7", honest(context, **{"ms per call": (total - first) / calls * 1e3}),
         "one_call_too_many"),
        ("05-7", honest(context, **{"ms per call": (total - first) / (calls - 1)}), "seconds"),
        ("05-7", honest(context, **{"speed-up": wall / fused_gpu}), "mixed"),
        ("05-7", honest(context, **{"speed-up": gpu / fused_gpu}), "gpu_only"),
        ("05-7", honest(context, **{"speed-up": fused_wall / wall}), "upside_down"),
        ("05-7", honest(context, **{"speed-up": None}), "none"),
        ("05-7", honest(context, **{"GB/s": log["printed"]}), "unchanged"),
        ("05-7", honest(context, **{"GB/s": log["printed"] * 1e9 / 2**30}), "wrong_way"),
        ("05-7", honest(context, **{"GB/s": log["printed"] * 2}), "off"),
        ("05-7", {"GB/s": 1.0}, "rows_missing"),
        ("05-8", nb05.ROWS[-1], "last_one"),
        ("05-8", 700, "not_in_the_sweep"),
        ("05-8", -128, "not_positive"),
        ("05-8", "512", "not_a_number"),
        ("05-9", VERDICT | {"bucket": "memory"}, "contradicted"),
        ("05-9", VERDICT | {"bucket": "compute"}, "contradicted"),
        ("05-9", VERDICT | {"decided by": "half the elements"}, "other_decider"),
        ("05-9", VERDICT | {"bucket": "launches"}, "not_an_option"),
        ("05-9", "overhead", "not_a_table"),
        ("05-10", {"memory": "far too little"}, "rows_missing"),
    ]  # fmt: skip
    if rows > nb05.ROWS[0]:
        rows_wrong.append(("05-8", nb05.ROWS[0], "still_dry"))
    if rows * 4 < nb05.ROWS[-1]:
        rows_wrong.append(("05-8", rows * 4, "not_the_first"))
    for exercise, key, options in (
        ("05-4", nb05.WAITS, ("waits", "runs on")),
        ("05-6", {k: v.lower() for k, v in nb05.FAULTS.items()}, tuple(nb05.FAULTS.values())),
        ("05-10", nb05.RECAP, nb05.SHOWS),
    ):
        for name, wanted in key.items():
            for other in {o.lower() for o in options} - {wanted}:
                label = "_".join(f"{name} as {other}".lower().replace("-", " ").split())
                rows_wrong.append((exercise, key | {name: other}, label))
    return rows_wrong


def test_every_planted_mistake_gets_its_own_message(context):
    rows = [
        (exercise, [{k: v for k, v in n.items() if v is not ...} for n in answer], key)
        if exercise == "05-5" and isinstance(answer, list)
        else (exercise, answer, key)
        for exercise, answer, key in wrong_forms(context)
    ]
    kit.assert_wrong(rows, context, kit.SILENT | {"not_above_zero"})


def test_parts_of_an_answer_earn_parts_of_the_points(t4):
    good = clocks(t4)
    assert checks.grade("05-3", good | {"naive TFLOP/s": 1.0}, t4).fraction == 0.75
    assert checks.grade("05-3", good | {"naive TFLOP/s": 1, "events": 1e9}, t4).fraction == 0.5
    assert checks.grade("05-5", notes(slow_start=4.1), t4).fraction == 0.8
    both = notes(slow_start=4.1, slow_last=3.4, slow_last_but_one=3.4)
    outcome = checks.grade("05-5", both, t4)
    assert (outcome.key, outcome.fraction) == ("mean", pytest.approx(0.6))
    assert checks.grade("05-5", notes(steady=1000), t4).fraction == 0
    assert checks.grade("05-7", honest(t4, **{"GB/s": 1.0}), t4).fraction == pytest.approx(2 / 3)
    other = VERDICT | {"decided by": "half the elements"}
    assert checks.grade("05-9", other, t4).fraction == 0.5


def test_one_unit_slip_costs_one_entry(t4):
    good = clocks(t4)
    slipped = good | {"synchronize": good["synchronize"] / 1e3}
    assert checks.grade("05-3", slipped, t4).fraction == 0.75


def test_the_first_miss_does_not_tell_the_answer(context):
    """Neither the right number nor the right bucket stands in the feedback of a wrong one."""
    made, rows = honest(context), full(context)
    told = {
        "05-1": (implied(context) / 2, f"{implied(context):,.0f}"),
        "05-7": (made | {"GB/s": 1.0}, f"{made['GB/s']:,.4g}"),
        "05-8": (nb05.ROWS[-1], f"{rows:,}"),
        "05-9": (VERDICT | {"bucket": "memory"}, "overhead"),
    }
    for exercise, (answer, secret) in told.items():
        outcome = checks.grade(exercise, plain(answer), context)
        said = f"{outcome.expected} {outcome.likely} {outcome.next_step}"
        assert outcome.state == "not_yet" and secret not in said, (exercise, said)


def test_without_its_measurement_an_exercise_says_so(t4):
    empty = Context(device=t4.device)
    answers = {"05-3": clocks(t4), "05-8": 512, "05-9": VERDICT}
    for exercise, answer in answers.items():
        assert checks.grade(exercise, answer, empty).key == "not_measured", exercise


def test_a_record_edited_by_hand_is_named(t4):
    del t4.measurement("05-3", "matmul").value["work"]
    assert checks.grade("05-3", {k: 1.0 for k in nb05.CLOCKS}, t4).key == "damaged"
    del t4.measurement("05-8", "512 rows").value["host"]
    assert checks.grade("05-8", 512, t4).key == "damaged"


def test_a_record_without_flop_is_damaged(t4):
    t4.measurement("05-3", "matmul").value["work"]["flops"] = 0
    assert checks.grade("05-3", {k: 1.0 for k in nb05.CLOCKS}, t4).key == "damaged"


def test_a_waiting_clock_faster_than_the_card_is_impossible(context):
    peak = context.device.peak["fp16"]
    shown = {}
    for times, key in ((1.05, "right"), (1.3, "impossible")):
        waited = FLOPS / (times * peak) * 1e3
        answer = clocks(context, naive=0.02, synchronize=waited, events=waited)
        shown[key] = checks.grade("05-3", answer, context).key
    assert shown == {"right": "right", "impossible": "impossible"}


def test_on_a_cpu_what_is_absent_cannot_be_told(t4):
    cpu = Context(t4.evidence, None, cpu=True, seed=kit.SEED)
    for exercise, answer in {"05-3": clocks(t4), "05-8": 512, "05-9": VERDICT}.items():
        outcome = checks.grade(exercise, plain(answer), cpu)
        assert (outcome.state, outcome.fraction) == ("cannot_tell", 0.0), exercise
        assert outcome.next_step and "{" not in outcome.expected
    assert "lent you a simulated card" in checks.grade("05-5", notes(), cpu).insight


def test_on_an_unknown_card_nothing_is_compared_with_a_datasheet(t4):
    unknown = Context(t4.evidence, None, seed=kit.SEED)
    assert "datasheet" not in checks.grade("05-1", implied(t4), unknown).insight
    for record in t4.evidence.records:
        record.device["name"] = "NVIDIA GB999"
    said = checks.grade("05-3", clocks(t4), unknown)
    assert said.state == "right" and "datasheet" not in said.insight
    kit.assert_right([("05-5", notes()), ("05-8", full(t4)), ("05-9", VERDICT)], unknown)


def test_an_unknown_card_may_be_graded_with_the_other_size(t4):
    """Its stand-in when graded is a T4, which takes smaller matrices than a large card did."""
    record = t4.measurement("05-3", "matmul")
    record.device["name"] = "NVIDIA GB999"
    record.value["work"]["flops"] = 2 * 16384**3
    unknown = Context(t4.evidence, None, seed=kit.SEED)
    good = clocks(t4)  # computed with the side of 8192
    assert checks.grade("05-3", good, unknown).state == "right"
    other = good | {"naive TFLOP/s": good["naive TFLOP/s"] * 1.4}
    assert checks.grade("05-3", other, unknown).state == "not_yet"


def test_what_ifs_that_move_nothing_settle_nothing(t4):
    t4.measurement("05-9", "one launch").value["wall"] = 3e-4
    outcome = checks.grade("05-9", VERDICT, t4)
    assert (outcome.key, outcome.state) == ("unclear", "cannot_tell")


def test_a_machine_without_graphs_cannot_be_told(t4):
    t4.evidence.records = [r for r in t4.evidence.records if r.label != "one launch"]
    assert checks.grade("05-9", VERDICT, t4).key == "no_graph"


def test_predictions_that_failed_are_told_and_cost_nothing(t4):
    assert "all 3 predictions held" in checks.grade("05-9", VERDICT, t4).insight
    t4.evidence.add(Record("05-9", "prediction", "much more", label="ten times the elements"))
    t4.evidence.add(Record("05-9", "prediction", "memory", label="bucket"))
    outcome = checks.grade("05-9", VERDICT, t4)
    assert outcome.fraction == 1.0
    assert "you named memory" in outcome.insight and "2 of 3" in outcome.insight


def test_two_batches_may_be_right_where_both_times_nearly_agree(t4):
    near = full(t4)
    t4.measurement("05-8", f"{near} rows").value["samples"][:] = [0.97 * HOST] * 5
    t4.measurement("05-8", f"{2 * near} rows").value["samples"][:] = [1.9 * HOST] * 5
    for n in (near, 2 * near):
        assert checks.grade("05-8", n, t4).state == "right"
    assert checks.grade("05-8", 4 * near, t4).key == "not_the_first"


def test_on_a_model_that_repeats_itself_one_batch_is_right(t4):
    t4.evidence.records = [dataclasses.replace(r, origin="simulated") for r in t4.evidence.records]
    near = full(t4)
    t4.measurement("05-8", f"{near} rows").value["samples"][:] = [1.14 * HOST] * 5
    assert checks.grade("05-8", near, t4).state == "right"
    assert checks.grade("05-8", 2 * near, t4).key == "not_the_first"
    assert checks.grade("05-8", near // 2, t4).key == "still_dry"


def test_a_queue_that_is_always_dry_cannot_be_told(t4):
    for n in nb05.ROWS:
        t4.measurement("05-8", f"{n} rows").value["samples"][:] = [HOST / 10] * 5
    outcome = checks.grade("05-8", nb05.ROWS[-1], t4)
    assert (outcome.key, outcome.state) == ("always_dry", "cannot_tell")


def test_a_simulated_number_says_so_in_feedback(t4):
    t4.evidence.records = [dataclasses.replace(r, origin="simulated") for r in t4.evidence.records]
    for exercise, answer in {"05-3": clocks(t4), "05-8": full(t4), "05-9": VERDICT}.items():
        assert "(simulated)" in checks.grade(exercise, plain(answer), t4).insight, exercise
    simulated = [n | {"origin": "simulated"} for n in notes()]
    assert "(simulated)" in checks.grade("05-5", simulated, t4).insight
    assert "(simulated)" not in checks.grade("05-5", notes(), t4).insight


def test_inputs_and_cases_differ_between_learners_and_repeat_for_one():
    assert checks.inputs("05-5", 1) == checks.inputs("05-5", 1) != checks.inputs("05-5", 2)
    for exercise in ("05-1", "05-7"):
        assert checks.case(exercise, 1) == checks.case(exercise, 1) != checks.case(exercise, 2)


@pytest.mark.parametrize("seed", range(40))
def test_every_case_keeps_its_mistakes_apart(seed):
    """No planted mistake leads to the right number, and the implied bandwidth is impossible."""
    here = Context(kit.context("t4", STEM).evidence, seed=seed)
    here.evidence.seed = seed
    assert implied(here) * 1e9 > 1.1 * devices.get("h200").bandwidth
    log, made = here.case("05-7"), honest(here)
    assert made["speed-up"] > 1.2 and 1.9 < made["ms per call"] < 6.1
    others = (log["eager: wall (us)"] / log["fused: GPU (us)"],
              log["eager: GPU (us)"] / log["fused: GPU (us)"],
              log["eager: GPU (us)"] / log["fused: wall (us)"])  # fmt: skip
    assert all(abs(o / made["speed-up"] - 1) > 0.1 for o in others)
    assert log["total (s)"] / log["calls"] * 1e3 > 2 * made["ms per call"]
    assert log["eager: GPU (us)"] < log["eager: wall (us)"]
    assert log["fused: GPU (us)"] < log["fused: wall (us)"]


def test_the_median_of_a_record_counts(t4):
    rows = full(t4)
    samples = t4.measurement("05-8", f"{rows} rows").value["samples"]
    samples[:] = [HOST / 9, HOST / 9, *samples[2:]]
    assert checks.grade("05-8", rows, t4).state == "right"
    samples[:] = [HOST / 9] * 3 + samples[3:]
    assert checks.grade("05-8", rows, t4).key == "still_dry"
