"""Every grader of notebook 02 in both directions: stub, solution, other right forms, mistakes."""

import dataclasses

import numpy as np
import pytest
import torch

from helpers import checks, devices
from helpers.checks import nb02, whatifs
from helpers.checks.engine import Context
from helpers.evidence import Record
from helpers.plots import lanes
from helpers.roofline import TOO_FAST, Times, datasheet, verdict
from tests.checks import kit

plain, calls = kit.plain, kit.calls
STEM = "02_three_bottlenecks"
OPERATIONS = 1226
WEIGHTS = 13_214_687_232
STACK = 16 * 4096**2 * 2
HOST = 3.2e-5

STUBS = {
    "02-3": {"A": ..., "B": ..., "C": ...},
    "02-5": {"matmul": ..., "relu": ..., "tiny": ...},
    "02-6": {"bucket": ..., "decided by": ...},
    "02-7": {"us per operation": ..., "here": ...},
    "02-8": {name: ... for name in nb02.CLAIMS},
    "02-9": {name: ... for name in nb02.RECAP},
}


def record(exercise, label, seconds, moved, **more):
    """As lab.measure writes it on a GPU: the wall time beside samples of the GPU's own time."""
    own = more.pop("own", seconds)
    return kit.measurement(exercise, label, own, moved, value={"wall": seconds}, **more)


def evidence_of(device, host=HOST):
    """Times straight from the card's roof: three programs, the stack and its changes, the roof."""
    bandwidth = device.sustained_bandwidth or 0.85 * device.bandwidth
    rate = 0.8 * device.peak["fp16"]
    stack, asked = STACK / bandwidth, 16 * host
    as_it_is = max(stack, asked)
    times = {
        "as it is": as_it_is,
        "half the bytes": max(stack / 2, asked),
        "twice the arithmetic": as_it_is,
        "one launch": stack,
    }
    rows = [
        record("02-5", "matmul", 2 * 4096**3 / rate, 3 * 4096**2 * 2, flops=2 * 4096**3),
        record("02-5", "relu", 2e9 / bandwidth, 2_000_000_000),
        record("02-5", "tiny", 100 * host, 4000, ops=100, own=1.4e-4),
        *(record("02-6", label, s, STACK, own=stack) for label, s in times.items()),
        Record("02-0", "measurement", {"bandwidth": bandwidth, "rates": {"fp16": rate},
                                       "host_per_op": host}, label="ceiling"),
    ]  # fmt: skip
    bucket = "memory" if stack > asked else "overhead"
    said = {
        "bucket": bucket,
        **{name: whatifs.effect(times[name] / as_it_is) for name in whatifs.WHAT_IFS},
    }
    return rows + [Record("02-6", "prediction", word, label=name) for name, word in said.items()]


def context_of(key, **options):
    return kit.context(key, STEM, evidence_of(devices.get(key), **options))


@pytest.fixture(params=kit.CARDS)
def context(request):
    return context_of(request.param)


@pytest.fixture
def t4():
    return context_of("t4")


def waits_for(context):
    """The bucket of the stack, and of the public step, on this learner's machine."""
    roof = nb02._ceiling(context)
    stack = "memory" if STACK / roof["bandwidth"] > 16 * roof["host"] else "overhead"
    step = "memory" if WEIGHTS / roof["bandwidth"] > OPERATIONS * roof["host"] else "overhead"
    return stack, step


def test_the_cards_differ_in_what_they_wait_for():
    found = {key: waits_for(context_of(key)) for key in kit.CARDS}
    assert found["t4"] == found["l4"] == ("memory", "memory")
    assert found["a100_80_sxm"] == found["h100_sxm"] == ("overhead", "overhead")


def test_a_stub_is_not_started(t4):
    kit.assert_stubs("02", STUBS, t4)


def panels(context):
    order = lanes.ORDERS[context.case("02-3")["series"]]
    return dict(zip("ABC", order, strict=True))


def read_ms(context):
    drawn = context.case("02-1")
    return drawn["gigabytes"] / drawn["gb_per_s"] * 1e3


def verdict_on(context):
    bucket = waits_for(context)[0]
    return {"bucket": bucket, "decided by": whatifs.DECIDES[bucket]}


def rest(context, each=31.986, **changes):
    return {"us per operation": each, "here": waits_for(context)[1]} | changes


def right_forms(context):
    ms, seen, done = read_ms(context), panels(context), verdict_on(context)
    return [
        ("02-1", ms),
        ("02-1", np.float32(ms)),
        ("02-1", torch.tensor(ms)),
        ("02-1", round(ms * 1.005, 2)),
        ("02-2", "c"),
        ("02-2", "C"),
        ("02-2", " c "),
        ("02-2", np.str_("c")),
        ("02-3", seen),
        ("02-3", {k: f"{v}-bound" for k, v in seen.items()}),
        ("02-3", {k: f" {v.upper()} " for k, v in reversed(seen.items())}),
        ("02-3", {k: v.replace("memory", "bandwidth") for k, v in seen.items()}),
        ("02-4", calls("02-4", nb02.diagnose)),
        ("02-4", calls("02-4", lambda *a: nb02.diagnose(*a).replace("another", "needs another"))),
        ("02-4", calls("02-4", lambda *a: nb02.diagnose(*a).title() + " ")),
        ("02-4", calls("02-4", lambda *a: nb02.diagnose(*a).replace(" ", "_"))),
        ("02-4", calls("02-4", lambda *a: nb02.diagnose(*a).replace("memory", "memory-bound"))),
        (
            "02-4",
            calls("02-4", lambda *a: nb02.diagnose(*a).replace("another test", "unexplained")),
        ),
        ("02-5", dict(nb02.PROGRAMS)),
        ("02-5", {k: v.upper() for k, v in nb02.PROGRAMS.items()}),
        ("02-5", {k: f"{v}-bound" for k, v in reversed(nb02.PROGRAMS.items())}),
        ("02-5", {k: np.str_(v) for k, v in nb02.PROGRAMS.items()}),
        ("02-6", done),
        ("02-6", {k: v.title() for k, v in done.items()}),
        ("02-6", {k: np.str_(v) for k, v in done.items()}),
        ("02-6", done | {"bucket": done["bucket"] + " bound"}),
        ("02-7", rest(context)),
        ("02-7", rest(context, 32)),
        ("02-7", rest(context, np.float64(31.99))),
        ("02-7", rest(context, torch.tensor(31.97), here=waits_for(context)[1].upper())),
        ("02-8", dict(nb02.CLAIMS)),
        ("02-8", {k: v.upper() for k, v in nb02.CLAIMS.items()}),
        ("02-8", dict(reversed(nb02.CLAIMS.items()))),
        ("02-8", {k: f" {v} " for k, v in nb02.CLAIMS.items()}),
        ("02-9", dict(nb02.RECAP)),
        ("02-9", {k: v.title() for k, v in nb02.RECAP.items()}),
        ("02-9", dict(reversed(nb02.RECAP.items()))),
        ("02-9", {k: f" {v} " for k, v in nb02.RECAP.items()}),
    ]


def test_every_right_form_gets_full_marks_on_every_device(context):
    kit.assert_right(right_forms(context), context)


def test_each_exercise_has_right_forms_and_mistakes(t4):
    kit.assert_covered("02", right_forms(t4), wrong_forms(t4))


def bad_numbers(exercise, wrap):
    return [
        (exercise, wrap(None), "none"),
        (exercise, wrap("12"), "not_a_number"),
        (exercise, wrap(float("nan")), "not_finite"),
        (exercise, wrap(-3.0), "not_positive"),
        (exercise, wrap([1.0, 2.0]), "not_a_number"),
        (exercise, wrap(True), "not_a_number"),
        (exercise, wrap(0.0123), "off"),
    ]


def wrong_forms(context):
    ms, seen, done, drawn = (
        read_ms(context),
        panels(context),
        verdict_on(context),
        context.case("02-1"),
    )
    where = {kind: panel for panel, kind in seen.items()}
    other = {"memory": "overhead", "overhead": "memory"}
    step = 1 / 25.5 * 1e6  # us
    rows = [
        ("02-1", ms / 1e3, "seconds"),
        ("02-1", drawn["gb_per_s"] / drawn["gigabytes"], "inverted"),
        ("02-1", drawn["gb_per_s"] / drawn["gigabytes"] * 1e3, "inverted_ms"),
        ("02-1", drawn["gb_per_s"] * drawn["gigabytes"], "product"),
        ("02-1", ms * 1e3, "times_1000"),
        ("02-1", ms * 8, "bits"),
        ("02-1", ms * 2, "double"),
        *bad_numbers("02-1", lambda v: v),
        *(("02-2", letter, f"picked_{letter}") for letter in "abd"),
        ("02-2", 3, "not_an_option"),
        ("02-2", None, "not_an_option"),
        ("02-3", dict.fromkeys("ABC", "memory"), "every_panel_alike"),
        ("02-3", {"A": "memory"}, "rows_missing"),
        ("02-3", seen | {"A": "slow"}, "not_an_option"),
        ("02-3", "memory", "not_a_table"),
        ("02-5", {"matmul": "compute"}, "rows_missing"),
        ("02-5", nb02.PROGRAMS | {"tiny": 7}, "not_an_option"),
        ("02-5", ["compute", "memory", "overhead"], "not_a_table"),
        ("02-6", done | {"bucket": "compute"}, "contradicted_compute"),
        ("02-6", done | {"bucket": other[done["bucket"]]},
         f"contradicted_{other[done['bucket']]}"),
        ("02-6", done | {"decided by": "twice the arithmetic"}, "other_decider"),
        ("02-6", done | {"bucket": "python"}, "not_an_option"),
        ("02-6", {"bucket": "memory"}, "rows_missing"),
        ("02-6", 0.5, "not_a_table"),
        ("02-7", rest(context, (step - 6481) / OPERATIONS), "took_off"),
        ("02-7", rest(context, step / OPERATIONS - 5), "took_off"),
        ("02-7", rest(context, step / OPERATIONS - 10), "minus_launches"),
        ("02-7", rest(context, (step - 1e6 / 107) / OPERATIONS), "minus_compiled"),
        ("02-7", rest(context, 6481 / OPERATIONS), "memory_only"),
        ("02-7", rest(context, step / 32), "per_layer"),
        ("02-7", rest(context, step / OPERATIONS / 1e3), "milliseconds"),
        ("02-7", rest(context, OPERATIONS / step * 1e3), "operations_per_ms"),
        ("02-7", rest(context, step / OPERATIONS * 1e3), "times_1000"),
        ("02-7", rest(context, here=other[waits_for(context)[1]]),
         f"here_{other[waits_for(context)[1]]}"),
        ("02-7", rest(context, here="both"), "not_an_option"),
        ("02-7", {"here": "memory"}, "rows_missing"),
        ("02-7", 32, "not_a_table"),
        *bad_numbers("02-7", lambda v: rest(context, v)),
        ("02-8", {"A": "fits"}, "rows_missing"),
        ("02-8", nb02.CLAIMS | {"B": "wrong"}, "not_an_option"),
        ("02-8", "fits", "not_a_table"),
        ("02-9", {"memory": "fewer bytes"}, "rows_missing"),
        ("02-9", nb02.RECAP | {"memory": "more money"}, "not_an_option"),
    ]  # fmt: skip
    for is_, said in [(a, b) for a in nb02.BUCKETS for b in nb02.BUCKETS if a != b]:
        rows.append(("02-3", seen | {where[is_]: said}, f"{is_}_as_{said}"))
    rows += [
        ("02-5", nb02.PROGRAMS | {name: said}, f"{name}_as_{said}")
        for name, is_ in nb02.PROGRAMS.items()
        for said in nb02.BUCKETS
        if said != is_
    ]
    for exercise, table, options in [
        ("02-8", nb02.CLAIMS, nb02.LABELS),
        ("02-9", nb02.RECAP, list(nb02.RECAP.values())),
    ]:
        rows += [
            (exercise, table | {name: said}, f"{name}_as_{said}".lower().replace(" ", "_"))
            for name, is_ in table.items()
            for said in options
            if said != is_
        ]
    rows += [("02-4", calls("02-4", rule), key) for key, rule in nb02.DIAGNOSE_MISTAKES.items()]
    rows += [
        ("02-4", calls("02-4", lambda *a: "memory"), "constant"),
        ("02-4", calls("02-4", lambda *a: nb02.ANOTHER), "names_none"),
        ("02-4", calls("02-4", lambda m, *a: nb02.diagnose(100 * m, *a)), "names_none"),
        (
            "02-4",
            calls("02-4", lambda *a: nb02.diagnose(*a).replace("another test", "unclear")),
            "not_an_option",
        ),
        ("02-4", calls("02-4", lambda m, *a: "compute" if m > 0.01 else "memory"), "off"),
        ("02-4", calls("02-4", lambda *a: None), "returned_none"),
        ("02-4", [{"value": None}, *calls("02-4", nb02.diagnose)[1:]], "sometimes_none"),
        ("02-4", calls("02-4", lambda *a: 0.6), "not_a_text"),
        ("02-4", "memory", "not_a_function"),
        ("02-4", [{"error": "TypeError: no"}] * len(checks.inputs("02-4", kit.SEED)), "raised"),
    ]
    return rows


def test_every_planted_mistake_gets_its_own_message(context):
    kit.assert_wrong(wrong_forms(context), context)


@pytest.mark.parametrize("seed", range(60))
def test_each_wrong_rule_is_told_apart_for_every_learner(seed):
    context = Context(seed=seed)
    for key, rule in nb02.DIAGNOSE_MISTAKES.items():
        assert checks.grade("02-4", calls("02-4", rule, seed), context).key == key
    wanted = {nb02.diagnose(*call) for call in nb02.diagnose_inputs(seed)}
    assert wanted == {"compute", "memory", "overhead", nb02.ANOTHER}


def test_one_rule_for_the_chart_the_code_and_the_verdict():
    """On a grid of shares: the grader's reference and helpers.roofline say the same."""
    shares = [i / 20 for i in range(0, 23)]
    roof = dataclasses.replace(datasheet(devices.get("t4")), label="measured ceiling")
    seen = set()
    for compute in shares:
        for memory in shares:
            for host in (*shares, 1.05, 1.3):
                kernels = compute + memory
                if kernels > TOO_FAST:
                    continue  # faster than the roof: a question about the measurement
                times = Times(
                    compute, memory, host, max(kernels, host), kernels, compute, memory, roof
                )
                found = verdict(1.0, times).bucket
                said = nb02.diagnose(1.0, compute, memory, host)
                assert said == {"unexplained": nb02.ANOTHER}.get(found, found), (
                    compute,
                    memory,
                    host,
                )
                seen.add(said)
    assert len(seen) == 4


def test_the_timelines_and_their_grader_share_one_order():
    assert nb02.ORDERS == lanes.ORDERS


def test_a_third_for_each_panel_and_program_a_sixth_for_each_claim(t4):
    seen = panels(t4)
    turned = dict(zip("ABC", [seen["B"], seen["A"], seen["C"]], strict=True))
    assert checks.grade("02-3", turned, t4).fraction == pytest.approx(1 / 3)
    one = nb02.PROGRAMS | {"relu": "compute"}
    assert checks.grade("02-5", one, t4).fraction == pytest.approx(2 / 3)
    two = nb02.CLAIMS | {"A": "fits", "C": "fits"}
    assert checks.grade("02-8", two, t4).fraction == pytest.approx(4 / 6)


def test_without_its_measurement_an_exercise_says_so(t4):
    empty = Context(device=devices.get("t4"))
    for exercise, answer in [("02-5", nb02.PROGRAMS), ("02-6", verdict_on(t4)), ("02-7", rest(t4))]:
        assert checks.grade(exercise, answer, empty).key == "not_measured"
    t4.evidence.records = [r for r in t4.evidence.records if r.label != "half the bytes"
                           or r.kind == "prediction"]  # fmt: skip
    assert checks.grade("02-6", verdict_on(t4), t4).key == "not_measured"


def edit(context, exercise, label, **changes):
    context.evidence.latest(exercise, "measurement", label).value.update(changes)


def test_a_record_edited_by_hand_is_named(t4):
    del t4.measurement("02-5", "relu").value["samples"]
    assert checks.grade("02-5", nb02.PROGRAMS, t4).key == "damaged"
    edit(t4, "02-6", "as it is", samples=[])
    assert checks.grade("02-6", verdict_on(t4), t4).key == "damaged"


def test_a_roof_edited_by_hand_is_no_roof(t4):
    for damage in ({"host_per_op": "fast"}, {"host_per_op": -1.0}, {"bandwidth": None}):
        context = context_of("t4")
        edit(context, "02-0", "ceiling", **damage)
        outcome = checks.grade("02-7", rest(t4), context)
        assert (outcome.key, outcome.fraction) == ("not_measured", 0.5)
    edit(t4, "02-0", "ceiling", rates="all", host_per_op=None, bandwidth=None)
    assert checks.grade("02-5", nb02.PROGRAMS, t4).state == "right"


@pytest.mark.parametrize("label", ["relu", "matmul"])
def test_an_impossible_time_is_told(t4, label):
    edit(t4, "02-5", label, wall=1e-5, samples=[1e-5] * 5)
    outcome = checks.grade("02-5", nb02.PROGRAMS, t4)
    assert outcome.key == "impossible" and "wait" in outcome.likely
    assert ("TFLOP/s" in outcome.have) == (label == "matmul")


def test_an_impossible_stack_is_told(t4):
    edit(t4, "02-6", "as it is", wall=1e-5, samples=[1e-5] * 5)
    assert checks.grade("02-6", verdict_on(t4), t4).key == "impossible"


def test_the_wall_time_is_judged_and_the_gpus_own_where_there_is_none(t4):
    """On an A100 the GPU's own times halve with the bytes; what one waits for does not."""
    a100 = context_of("a100_80_sxm")
    assert checks.grade("02-6", verdict_on(a100), a100).state == "right"
    base = a100.measurement("02-6", "as it is").value["samples"][0]
    for label, factor in [("half the bytes", 0.5), ("twice the arithmetic", 1), ("one launch", 1)]:
        edit(a100, "02-6", label, wall=None, samples=[factor * base] * 5)
    edit(a100, "02-6", "as it is", wall=True)
    memory = {"bucket": "memory", "decided by": "half the bytes"}
    assert checks.grade("02-6", memory, a100).state == "right"


def test_a_tie_on_the_own_machine_takes_either_answer(t4):
    t4 = context_of("t4", host=WEIGHTS / 239.2e9 / OPERATIONS * 1.1)
    for here in ("memory", "overhead"):
        outcome = checks.grade("02-7", rest(t4, here=here), t4)
        assert outcome.state == "right" and "too close" in outcome.insight


def test_changes_that_move_nothing_settle_nothing(t4):
    for label in ("as it is", *whatifs.WHAT_IFS):
        edit(t4, "02-6", label, wall=0.01)
    outcome = checks.grade("02-6", verdict_on(t4), t4)
    assert (outcome.state, outcome.fraction) == ("cannot_tell", 0.0)
    assert outcome.next_step and outcome.expected


@pytest.mark.parametrize(("bytes_", "arithmetic"), [(1.69, 2.62), (0.5, 0.6)])
def test_factors_that_no_bucket_foretells_settle_nothing(t4, bytes_, arithmetic):
    base = t4.measurement("02-6", "as it is").value["wall"]
    edit(t4, "02-6", "half the bytes", wall=bytes_ * base)
    edit(t4, "02-6", "twice the arithmetic", wall=arithmetic * base)
    for bucket, change in whatifs.DECIDES.items():
        outcome = checks.grade("02-6", {"bucket": bucket, "decided by": change}, t4)
        assert outcome.state == "cannot_tell"


def test_the_first_miss_does_not_give_the_answer_away(t4):
    miss = checks.grade("02-6", verdict_on(t4) | {"bucket": "overhead"}, t4)
    assert "memory" not in f"{miss.expected}{miss.likely}{miss.next_step}"
    miss = checks.grade("02-7", rest(t4, 12.0), t4)
    assert "whole step" not in f"{miss.expected}{miss.likely}"


def test_a_compute_bound_stack_is_a_right_answer_too(t4):
    base = t4.measurement("02-6", "as it is").value["wall"]
    for label, factor in [("half the bytes", 1), ("twice the arithmetic", 2), ("one launch", 1)]:
        edit(t4, "02-6", label, wall=factor * base)
    answer = {"bucket": "compute", "decided by": "twice the arithmetic"}
    assert checks.grade("02-6", answer, t4).state == "right"
    assert "named memory" in checks.grade("02-6", answer, t4).insight


def test_a_prediction_that_failed_is_told_and_costs_nothing(t4):
    assert "all held" in checks.grade("02-6", verdict_on(t4), t4).insight
    t4.evidence.add(Record("02-6", "prediction", "about double", label="one launch"))
    outcome = checks.grade("02-6", verdict_on(t4), t4)
    assert outcome.fraction == 1.0 and "2 of 3 predictions held" in outcome.insight
    other = checks.grade("02-6", verdict_on(t4) | {"decided by": "one launch"}, t4)
    assert other.fraction == 0.5


def test_a_time_that_its_bucket_does_not_explain_is_right_and_a_question(t4):
    wall = t4.measurement("02-5", "matmul").value["wall"]
    edit(t4, "02-5", "matmul", wall=2 * wall)
    outcome = checks.grade("02-5", nb02.PROGRAMS, t4)
    assert outcome.fraction == 1.0 and "only 50%" in outcome.insight and "matmul" in outcome.insight


def test_on_a_cpu_and_on_an_unknown_card_the_learner_is_judged_by_the_own_numbers():
    rows = evidence_of(devices.get("t4"))
    cpu = kit.context(None, STEM, [r for r in rows if r.label != "one launch"
                                   or r.kind == "prediction"])  # fmt: skip
    unknown = dataclasses.replace(kit.context(None, STEM, rows), cpu=False)
    for context in (cpu, unknown):
        edit(context, "02-5", "relu", wall=1e-4)  # nothing is known that it could break
        kit.assert_right([r for r in right_forms(context) if r[0] not in ("02-6",)], context)
        memory = {"bucket": "memory", "decided by": "half the bytes"}
        assert checks.grade("02-6", memory, context).state == "right"
    assert "its 2 predictions" in checks.grade("02-6", memory, cpu).insight


def test_inputs_and_cases_differ_between_learners_and_repeat_for_one():
    assert checks.inputs("02-4", 1) == checks.inputs("02-4", 1) != checks.inputs("02-4", 2)
    for exercise in ("02-1", "02-3"):
        drawn = [tuple(checks.case(exercise, seed).values()) for seed in range(40)]
        assert drawn == [tuple(checks.case(exercise, seed).values()) for seed in range(40)]
        assert len(set(drawn)) >= 5


def test_a_simulated_number_says_so_in_feedback(t4):
    answers = {"02-5": nb02.PROGRAMS, "02-6": verdict_on(t4), "02-7": rest(t4)}
    for exercise, answer in answers.items():
        assert "simulated" not in checks.grade(exercise, answer, t4).insight
    t4.evidence.records = [dataclasses.replace(r, origin="simulated") for r in t4.evidence.records]
    for exercise, answer in answers.items():
        assert "(simulated)" in checks.grade(exercise, answer, t4).insight


@pytest.mark.parametrize(
    ("factors", "left"),
    [
        ({"half the bytes": 0.51}, {"memory"}),
        ({"half the bytes": 0.8, "twice the arithmetic": 1.9}, {"compute"}),
        ({"half the bytes": 1.0, "one launch": 0.65}, {"overhead"}),
        ({"half the bytes": 1.0, "twice the arithmetic": 1.0}, set()),
        ({}, set()),
    ],
)
def test_what_each_change_leaves_standing(factors, left):
    assert whatifs.supported(factors) == left
