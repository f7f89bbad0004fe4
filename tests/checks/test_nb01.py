"""Every grader of notebook 01 in both directions: stub, solution, other right forms, mistakes."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from helpers import checks, devices
from helpers.checks import nb01
from helpers.checks.engine import Context
from helpers.evidence import Record
from tests.checks import kit

plain, calls = kit.plain, kit.calls
STEM = "01_gpu_model"
N, SIDE = 2**27, 4096
FLOP = 2 * SIDE**3
HOST = 32e-6


def product(label, rate, exercise="01-5", **more):
    return kit.measurement(exercise, label, FLOP / rate, moved=3 * SIDE**2 * 2, flops=FLOP,
                           elements=SIDE**2, **more)  # fmt: skip


def soak_record(rates, origin="measured"):
    record = product("soak", rates[0], exercise="01-6", origin=origin)
    record.value["samples"] = [FLOP / rate for rate in rates]
    return record


def records_of(card, *, drop=1.0, origin="measured"):
    """A learner whose runs reach what is known of the card; a soak that ends at `drop`."""
    bandwidth = (card.sustained_bandwidth or 0.85 * card.bandwidth) if card else 20e9
    fast = card.sustained.get("fp16", 0.7 * card.peak["fp16"]) if card else 0.0
    slow = card.sustained.get("fp32", 0.7 * card.peak["fp32"]) if card else 1e11
    kept = [kit.measurement("01-5", "copy", 4 * N / bandwidth, moved=4 * N, elements=N)]
    kept += [product("fp32", slow)] + ([product("fp16", fast)] if card else [])
    top = fast or slow
    kept.append(soak_record([top] * 3 + [drop * top] * 9, origin))
    host = {"host": HOST if card else None, "wall": 33e-6}
    kept.append(kit.measurement("01-7", "tiny add", 1.4e-6 if card else 4e-6, value=host))
    for job, wide, narrow in (("copy", 2e-3, 1e-3), ("matmul", 30e-3, 3e-3)):
        kept += [kit.measurement("01-8", f"{job}, wide", wide),
                 kit.measurement("01-8", f"{job}, narrow", narrow)]  # fmt: skip
    for size in ("wide", "narrow"):
        kept.append(kit.measurement("01-8", f"tiny add, {size}", 1.4e-6, value={"wall": 33e-6}))
    for job, said in nb01.SHOWN.items():
        kept.append(Record("01-8", "prediction", said, label=job))
    return kept


def learner(key, **options):
    card = devices.get(key) if key else None
    return kit.context(key, STEM, records_of(card, **options))


@pytest.fixture(params=kit.CARDS)
def context(request):
    return learner(request.param)


@pytest.fixture
def t4():
    return learner("t4")


def own_of(context, **changes):
    copied = nb01._copied(context.measurement("01-5", "copy")) / 1e9
    own = {"bandwidth": copied}
    for name in ("fp16", "fp32"):
        if record := context.measurement("01-5", name):
            own[name] = nb01._rate(record) / 1e12
    own["ridge"] = own.get("fp16", own["fp32"]) * 1e3 / copied
    return own | changes


def lasting(context):
    samples = context.measurement("01-6", "soak").value["samples"]
    return FLOP / samples[-1] / nb01._copied(context.measurement("01-5", "copy"))


def worth(context):
    record = context.measurement("01-7", "tiny add")
    copied = nb01._copied(context.measurement("01-5", "copy"))
    return nb01.launch_cost(record) * copied / 1e6


def link_of(context, **changes):
    case = context.case("01-4")
    one_way = case["pcie_both_ways"] / 2
    seconds, times = case["gigabytes"] / one_way, case["device_memory"] / one_way
    return {"seconds": seconds, "times": times} | changes


STUBS = {
    "01-1": dict.fromkeys(nb01.LIMITS, ...),
    "01-4": {"seconds": ..., "times": ...},
    "01-5": {"bandwidth": ..., "fp16": ..., "fp32": ..., "ridge": ...},
    "01-8": dict.fromkeys(nb01.UPGRADES, ...),
    "01-9": dict.fromkeys(nb01.RECAP, ...),
}


def test_a_stub_is_not_started(t4):
    kit.assert_stubs("01", STUBS, t4)


def right_forms(context):
    own, link, upgrade = own_of(context), link_of(context), dict(nb01.UPGRADES)
    rows = nb01.four_rows
    return [
        ("01-1", dict(nb01.LIMITS)),
        ("01-1", {k: v.upper() for k, v in nb01.LIMITS.items()}),
        ("01-1", {k: f" {v} " for k, v in reversed(nb01.LIMITS.items())}),
        ("01-1", {k: np.str_(v) for k, v in nb01.LIMITS.items()}),
        ("01-2", calls("01-2", nb01.seconds_to_read)),
        ("01-2", calls("01-2", lambda n, w: np.float64(n) / w)),
        ("01-2", calls("01-2", lambda n, w: torch.tensor(n / w))),
        ("01-2", calls("01-2", lambda n, w: float(f"{n / w:.3g}"))),
        ("01-3", calls("01-3", rows)),
        ("01-3", calls("01-3", lambda *a: tuple(rows(*a)))),
        ("01-3", calls("01-3", lambda *a: np.array(rows(*a)))),
        ("01-3", calls("01-3", lambda *a: [float(f"{v:.3g}") for v in rows(*a)])),
        ("01-4", link),
        ("01-4", {k: round(v, 2) for k, v in link.items()}),
        ("01-4", {k: float(f"{v:.2g}") for k, v in link.items()}),
        ("01-4", {k: np.float32(v) for k, v in reversed(link.items())}),
        ("01-4", {k: [v] for k, v in link.items()}),
        ("01-5", own),
        ("01-5", {k: float(f"{v:.3g}") for k, v in own.items()}),
        ("01-5", {k: torch.tensor(v) for k, v in own.items()}),
        ("01-5", {k: np.float64(v) for k, v in reversed(own.items())}),
        ("01-6", lasting(context)),
        ("01-6", round(lasting(context))),
        ("01-6", np.float32(lasting(context))),
        ("01-6", torch.tensor(lasting(context))),
        ("01-7", worth(context)),
        ("01-7", float(f"{worth(context):.2g}")),
        ("01-7", np.float64(worth(context))),
        ("01-7", [worth(context)]),
        ("01-8", upgrade),
        ("01-8", {k: v.title() for k, v in upgrade.items()}),
        ("01-8", {k: f" {v}" for k, v in reversed(upgrade.items())}),
        ("01-8", {k: np.str_(v) for k, v in upgrade.items()}),
        ("01-9", dict(nb01.RECAP)),
        ("01-9", {k: v.upper() for k, v in nb01.RECAP.items()}),
        ("01-9", {k: v.lower() for k, v in reversed(nb01.RECAP.items())}),
        ("01-9", {k: f" {v}\n" for k, v in nb01.RECAP.items()}),
    ]


def changed(table, entry, value):
    return dict(table) | {entry: value}


def row_with(at, mistake):
    """four_rows with one of its values replaced by what `mistake` makes of the arguments."""

    def function(*call):
        values = nb01.four_rows(*call)
        values[at] = mistake(*call)
        return values

    return function


def wrong_forms(context):
    own, link = own_of(context), link_of(context)
    case, card = context.case("01-4"), context.device
    both, one_way = case["pcie_both_ways"], case["pcie_both_ways"] / 2
    nan, ridge, mb = float("nan"), lasting(context), worth(context)
    nominal = card.peak["fp16"] / card.bandwidth
    late = nb01._rate(context.measurement("01-6", "soak")) / 1e12
    rows = [
        ("01-1", changed(nb01.LIMITS, "a", "bandwidth"), "a_as_bandwidth"),
        ("01-1", changed(nb01.LIMITS, "a", "arithmetic"), "a_as_arithmetic"),
        ("01-1", changed(nb01.LIMITS, "b", "capacity"), "b_as_capacity"),
        ("01-1", changed(nb01.LIMITS, "b", "arithmetic"), "b_as_arithmetic"),
        ("01-1", changed(nb01.LIMITS, "c", "capacity"), "c_as_capacity"),
        ("01-1", changed(nb01.LIMITS, "c", "bandwidth"), "c_as_bandwidth"),
        ("01-1", changed(nb01.LIMITS, "d", "bandwidth"), "d_as_bandwidth"),
        ("01-1", changed(nb01.LIMITS, "d", "arithmetic"), "d_as_arithmetic"),
        ("01-1", changed(nb01.LIMITS, "e", "capacity"), "e_as_capacity"),
        ("01-1", changed(nb01.LIMITS, "e", "arithmetic"), "e_as_arithmetic"),
        ("01-1", changed(nb01.LIMITS, "e", "memory"), "not_an_option"),
        ("01-1", changed(nb01.LIMITS, "e", ...), "rows_missing"),
        ("01-1", "capacity", "not_a_table"),
        ("01-4", link | {"seconds": case["gigabytes"] / both}, "both_ways"),
        ("01-4", link | {"seconds": case["gigabytes"] / case["device_memory"]}, "inside"),
        ("01-4", link | {"seconds": 2 * case["gigabytes"] / one_way}, "there_and_back"),
        ("01-4", link | {"seconds": link["seconds"] * 1e3}, "times_1000"),
        ("01-4", link | {"seconds": link["seconds"] / 1e3}, "per_1000"),
        ("01-4", link | {"seconds": link["seconds"] * 1.2}, "off"),
        ("01-4", link | {"seconds": None}, "none"),
        ("01-4", link | {"seconds": -1.0}, "not_positive"),
        ("01-4", link | {"times": case["device_memory"] / both}, "ratio_both_ways"),
        ("01-4", link | {"times": one_way / case["device_memory"]}, "ratio_inverted"),
        ("01-4", link | {"times": 2 * case["device_memory"] / one_way}, "ratio_there_and_back"),
        ("01-4", link | {"times": "20"}, "not_a_number"),
        ("01-4", link["seconds"], "not_a_table"),
        ("01-5", own | {"bandwidth": own["bandwidth"] / 2}, "read_only"),
        ("01-5", own | {"bandwidth": own["bandwidth"] * 1e9}, "times_1e9"),
        ("01-5", own | {"bandwidth": own["bandwidth"] * 1e9 / 2**30}, "gib"),
        ("01-5", own | {"bandwidth": own["bandwidth"] * 8}, "bits"),
        ("01-5", own | {"bandwidth": own["bandwidth"] * 1.5}, "impossible"),
        ("01-5", own | {"bandwidth": own["bandwidth"] * 0.8}, "off"),
        ("01-5", own | {"bandwidth": card.bandwidth / 1e9}, "datasheet"),
        ("01-5", own | {"fp16": own["fp16"] / 2}, "multiply_adds"),
        ("01-5", own | {"fp16": own["fp32"]}, "other_dtype"),
        ("01-5", own | {"fp32": own["fp16"]}, "other_dtype"),
        ("01-5", own | {"fp16": card.peak["fp16"] / 1e12}, "datasheet"),
        ("01-5", own | {"fp16": own["fp16"] * 1e12}, "times_1e12"),
        ("01-5", own | {"fp16": own["fp16"] * 1e3}, "times_1000"),
        ("01-5", own | {"ridge": 1 / own["ridge"]}, "upside_down"),
        ("01-5", own | {"ridge": own["ridge"] / 1e3}, "units"),
        ("01-5", own | {"ridge": own["fp32"] * 1e3 / own["bandwidth"]}, "fp32_ridge"),
        ("01-5", own | {"ridge": own["ridge"] * 1.3}, "off"),
        ("01-5", own | {"ridge": own["bandwidth"] / own["fp16"]}, "upside_down_units"),
        ("01-5", own | {"fp16": own["fp16"] / SIDE}, "squared"),
        ("01-5", own | {"fp16": ...}, "rows_missing"),
        ("01-5", own | {"fp16": nan}, "not_finite"),
        ("01-5", [1, 2, 3, 4], "not_a_table"),
        ("01-6", 1 / ridge, "upside_down"),
        ("01-6", ridge / 1e3, "units"),
        ("01-6", ridge * 1e3, "times_1000"),
        ("01-6", ridge * 1.43, "off"),
        ("01-6", ridge / 2, "multiply_adds"),
        ("01-6", ridge * 2, "read_only"),
        ("01-6", ridge * 1e9, "times_1e9"),
        ("01-6", late * 1e12 / card.bandwidth, "datasheet"),
        ("01-6", nan, "not_finite"),
        ("01-6", "175", "not_a_number"),
        ("01-6", None, "none"),
        ("01-6", -ridge, "not_positive"),
        ("01-6", [ridge, ridge], "not_a_number"),
        ("01-7", mb / HOST * 1.4e-6, "gpu_time"),
        ("01-7", HOST * card.bandwidth / 1e6, "datasheet"),
        ("01-7", mb / 1e3, "gb"),
        ("01-7", mb * 1e6, "bytes"),
        ("01-7", mb * 0.7, "off"),
        ("01-7", mb / 2, "read_only"),
        ("01-7", None, "none"),
        ("01-7", {"MB": mb}, "not_a_number"),
        ("01-8", changed(nb01.UPGRADES, "twice the capacity", ...), "rows_missing"),
        ("01-8", changed(nb01.UPGRADES, "twice the capacity", "all"), "not_an_option"),
        ("01-8", "copy", "not_a_table"),
        ("01-9", {"memory": "bandwidth"}, "rows_missing"),
        ("01-9", changed(nb01.RECAP, "memory", "GB/s"), "not_an_option"),
        ("01-9", 3, "not_a_table"),
    ]
    if not math.isclose(late, ridge, rel_tol=0.05):  # else the mistake is right by accident
        rows.append(("01-6", late, "rate"))
    if not math.isclose(nominal, own["ridge"], rel_tol=0.05):
        rows += [("01-5", own | {"ridge": nominal}, "nominal"), ("01-6", nominal, "nominal")]
    options = dict.fromkeys(nb01.UPGRADES.values())
    rows += [
        ("01-8", changed(nb01.UPGRADES, entry, option), f"{entry} as {option}".replace(" ", "_")
         .lower())
        for entry, wanted in nb01.UPGRADES.items() for option in options if option != wanted
    ]  # fmt: skip
    rows += [
        ("01-9", changed(nb01.RECAP, entry, option), f"{entry}_as_{option.replace(' ', '_')}")
        for entry, wanted in nb01.RECAP.items() for option in nb01.FIGURES
        if option != wanted.lower()
    ]  # fmt: skip
    rows += [
        ("01-2", calls("01-2", mistake), key)
        for key, mistake in (
            nb01.READ_MISTAKES | {"constant": lambda *a: 17.0, "off": lambda n, w: n / w + 1}
        ).items()
    ]
    rows += [
        ("01-3", calls("01-3", row_with(at, mistake)), key)
        for at, name in enumerate(nb01.ROWS)
        for key, mistake in (
            nb01.ROW_MISTAKES[name]
            | {"row_constant": lambda *a: 17.0, "row_off": lambda m, w, f, n: n / w / 3 + m / w}
        ).items()
    ]
    rows += [
        ("01-2", calls("01-2", lambda *a: None), "returned_none"),
        ("01-2", calls("01-2", lambda *a: "12"), "not_a_number"),
        ("01-2", calls("01-2", lambda *a: nan), "not_finite"),
        ("01-2", 12.0, "not_a_function"),
        ("01-2", [{"error": "ZeroDivisionError: division by zero"}] * 3, "raised"),
        ("01-3", calls("01-3", lambda *a: nb01.four_rows(*a)[:3]), "not_four"),
        ("01-3", calls("01-3", lambda *a: 1.0), "shape"),
        ("01-3", calls("01-3", lambda *a: None), "returned_none"),
        ("01-3", calls("01-3", lambda *a: ["a"] * 4), "not_a_number"),
        ("01-3", calls("01-3", lambda *a: [nan] * 4), "not_finite"),
        ("01-3", [{"error": "NameError: name 'memroy' is not defined"}] * 3, "raised"),
        ("01-3", 0.039, "not_a_function"),
    ]
    return rows


def test_every_right_form_gets_full_marks_on_every_device(context):
    kit.assert_right(right_forms(context), context)


def test_every_planted_mistake_gets_its_own_message(context):
    kit.assert_wrong(wrong_forms(context), context)


def test_each_exercise_has_right_forms_and_mistakes(t4):
    kit.assert_covered("01", right_forms(t4), wrong_forms(t4))


def test_entries_count_in_equal_shares(t4):
    two = nb01.LIMITS | {"a": "bandwidth", "b": "capacity"}
    assert checks.grade("01-1", two, t4).fraction == pytest.approx(0.6)
    half = link_of(t4, seconds=1e9)
    assert checks.grade("01-4", half, t4).fraction == 0.5
    three = own_of(t4, ridge=1.0)
    assert checks.grade("01-5", three, t4).fraction == 0.75
    wrong = own_of(t4)  # a wrong bandwidth also breaks the ridge computed from the right one
    wrong["bandwidth"] *= 0.8
    assert checks.grade("01-5", wrong, t4).fraction == 0.5
    one = calls("01-3", lambda *a: [1.0, 2.0, 3.0, nb01.four_rows(*a)[3]])
    assert checks.grade("01-3", plain(one), t4).fraction == 0.25


# ---------------------------------------------------------------- what was measured


def test_without_its_measurement_an_exercise_says_so():
    empty = Context()
    for exercise, answer in [
        ("01-5", {"bandwidth": 240.0, "fp16": 40.0, "fp32": 4.0, "ridge": 170.0}),
        ("01-6", 170.0),
        ("01-7", 7.7),
        ("01-8", dict(nb01.UPGRADES)),
    ]:
        assert checks.grade(exercise, answer, empty).key == "not_measured", exercise


@pytest.mark.parametrize(
    ("exercise", "label", "answer"),
    [("01-5", "copy", own_of), ("01-5", "fp16", own_of), ("01-6", "soak", lasting),
     ("01-7", "tiny add", worth), ("01-8", "copy, wide", lambda c: dict(nb01.UPGRADES))],
)  # fmt: skip
def test_a_record_edited_by_hand_is_named(t4, exercise, label, answer):
    given = answer(t4)
    del t4.evidence.latest(exercise, "measurement", label).value["work"]
    assert checks.grade(exercise, given, t4).key == "damaged"


@pytest.mark.parametrize("host", [-1.0, 0, "soon", True, float("nan"), [1e-5]])
def test_a_damaged_host_time_is_named(t4, host):
    t4.measurement("01-7", "tiny add").value["host"] = host
    assert checks.grade("01-7", 7.7, t4).key == "damaged"


@pytest.mark.parametrize("label", ["copy", "fp16", "fp32"])
def test_an_impossible_rate_is_told(t4, label):
    record = t4.measurement("01-5", label)
    record.value["samples"][:] = [record.value["samples"][0] / 20] * 5
    outcome = checks.grade("01-5", own_of(t4), t4)
    assert outcome.key == "impossible" and "wait" in outcome.likely
    assert "GB/s" in outcome.expected if label == "copy" else "TFLOP/s" in outcome.expected


def test_an_impossible_soak_is_told(t4):
    samples = t4.measurement("01-6", "soak").value["samples"]
    samples[:] = [s / 20 for s in samples]
    assert checks.grade("01-6", lasting(t4), t4).key == "impossible"


# ---------------------------------------------------------------- the insight fits the machine


def test_the_own_ridge_stands_beside_the_datasheet(context):
    card = context.device
    said = checks.grade("01-5", own_of(context), context).insight
    assert f"{card.peak['fp16'] / card.bandwidth:.0f}" in said


def test_a_soak_that_falls_moves_the_ridge_and_the_first_moment_is_named():
    fell = learner("t4", drop=0.57)
    outcome = checks.grade("01-6", lasting(fell), fell)
    assert "57% of the first rate" in outcome.insight and "lower than at first" in outcome.insight
    early = nb01._rate(dataclasses.replace(fell.measurement("01-5", "fp16")))
    first = early / nb01._copied(fell.measurement("01-5", "copy"))
    assert checks.grade("01-6", first, fell).key == "first"


def test_a_soak_that_holds_or_is_a_model_says_so():
    woke = learner("t4", drop=1.4)
    assert "became faster" in checks.grade("01-6", lasting(woke), woke).insight
    steady, model = learner("a100_80_sxm"), learner("a100_80_sxm", origin="simulated")
    assert "keeps it up" in checks.grade("01-6", lasting(steady), steady).insight
    assert "no temperature" in checks.grade("01-6", lasting(model), model).insight


def test_predictions_that_failed_are_told_and_cost_nothing(t4):
    assert "3 of 3 predictions held" in checks.grade("01-8", dict(nb01.UPGRADES), t4).insight
    t4.evidence.add(Record("01-8", "prediction", "about the same", label="matmul"))
    outcome = checks.grade("01-8", dict(nb01.UPGRADES), t4)
    assert outcome.fraction == 1.0 and "2 of 3 predictions held" in outcome.insight


@pytest.mark.parametrize(
    ("job", "size", "seconds"),
    [("matmul", "narrow", 15e-3), ("matmul", "narrow", 29e-3), ("copy", "narrow", 2e-3),
     ("copy", "wide", 9e-3)],
)  # fmt: skip
def test_timings_that_do_not_come_apart_settle_nothing(t4, job, size, seconds):
    t4.measurement("01-8", f"{job}, {size}").value["samples"][:] = [seconds] * 5
    for answer in (dict(nb01.UPGRADES), changed(nb01.UPGRADES, "twice the bandwidth", "none")):
        outcome = checks.grade("01-8", answer, t4)
        assert (outcome.state, outcome.key) == ("cannot_tell", "unclear")
        assert outcome.next_step and outcome.likely


def test_on_a_cpu_fp32_alone_is_asked_and_the_rest_is_right():
    cpu = learner(None)
    own = own_of(cpu)
    assert set(own) == {"bandwidth", "fp32", "ridge"}
    for answer in (own, own | {"fp16": ...}):
        outcome = checks.grade("01-5", plain(answer), cpu)
        assert outcome.state == "right" and "no datasheet" in outcome.insight
    assert checks.grade("01-5", own | {"ridge": own["ridge"] / 1e3}, cpu).key == "units"
    assert checks.grade("01-6", lasting(cpu), cpu).state == "right"
    assert worth(cpu) == pytest.approx(4e-6 * 20e9 / 1e6)
    outcome = checks.grade("01-7", worth(cpu), cpu)
    assert outcome.state == "right" and "no queue" in outcome.insight
    cpu.measurement("01-8", "matmul, narrow").value["samples"][:] = [15e-3] * 5
    assert checks.grade("01-8", dict(nb01.UPGRADES), cpu).state == "cannot_tell"


def test_on_an_unknown_card_nothing_is_compared_with_a_datasheet(t4):
    unknown = dataclasses.replace(t4, device=None)
    for exercise, answer in [("01-5", own_of(t4)), ("01-6", lasting(t4)), ("01-7", worth(t4))]:
        outcome = checks.grade(exercise, answer, unknown)
        assert outcome.state == "right", exercise
    assert "no datasheet" in checks.grade("01-5", own_of(t4), unknown).insight


# ---------------------------------------------------------------- seeds and formulas


def test_inputs_and_cases_differ_between_learners_and_repeat_for_one():
    for exercise in ("01-2", "01-3"):
        assert checks.inputs(exercise, 1) == checks.inputs(exercise, 1)
        assert checks.inputs(exercise, 1) != checks.inputs(exercise, 2)
    assert checks.case("01-4", 1) == checks.case("01-4", 1)
    assert len({str(checks.case("01-4", seed)) for seed in range(20)}) > 15


def test_each_case_is_a_card_that_exists_and_holds_the_data():
    pairs = {(round(2 * c.pcie / 1e9, 2), round(c.bandwidth / 1e9, 1)): c
             for c in devices.all_devices()}  # fmt: skip
    for seed in range(50):
        case = checks.case("01-4", seed)
        card = pairs[case["pcie_both_ways"], case["device_memory"]]
        assert case["gigabytes"] * 1e9 < card.memory


@pytest.mark.parametrize("seed", range(30))
def test_no_two_mistakes_look_alike_on_any_seed(seed):
    """Whatever numbers a learner gets, each planted mistake is told by its own key."""
    context = dataclasses.replace(learner("t4"), seed=seed)
    for key, mistake in nb01.READ_MISTAKES.items():
        outcome = checks.grade("01-2", calls("01-2", mistake, seed), context)
        assert outcome.key == key
    for at, name in enumerate(nb01.ROWS):
        for key, mistake in nb01.ROW_MISTAKES[name].items():
            answer = plain(calls("01-3", row_with(at, mistake), seed))
            assert checks.grade("01-3", answer, context).key == key, (name, key)


def test_the_four_rows_of_an_a100_are_those_of_the_text():
    read_all, read, flop, ridge = nb01.four_rows(80e9, 2039e9, 312e12, 13.5e9)
    assert read_all * 1e3 == pytest.approx(39.2, abs=0.05)
    assert read * 1e3 == pytest.approx(6.6, abs=0.05)
    assert flop == pytest.approx(2.06e12, rel=0.01)
    assert ridge == pytest.approx(153, abs=0.5)
    assert flop / 13.5e9 == pytest.approx(ridge)  # 2 bytes and 2 FLOP per weight


def test_the_ridges_of_a_t4_in_the_text():
    t4 = devices.get("t4")
    assert t4.peak["fp16"] / t4.bandwidth == pytest.approx(203, abs=0.5)
    assert t4.sustained["fp16"] / t4.sustained_bandwidth == pytest.approx(175, abs=0.5)
    assert 24e12 / t4.bandwidth == pytest.approx(75)


@pytest.mark.parametrize("factor", [0.01, 0.34, 0.36, 0.5, 0.74, 0.76, 1.0, 2.0])
def test_the_words_for_a_factor(factor):
    word = nb01.effect(factor)
    assert word == nb01.EFFECTS[0 if factor > 0.75 else 1 if factor > 0.35 else 2]


@pytest.mark.parametrize("seed", range(40))
def test_two_digits_are_enough_for_the_transfer_and_no_near_miss_is_called_gib(seed):
    context = learner("t4")
    context.evidence.seed = seed
    link = link_of(context)
    short = {k: float(f"{v:.2g}") for k, v in link.items()}
    assert checks.grade("01-4", short, context).state == "right", link
    for entry, factor in [("seconds", 0.93), ("seconds", 1.075), ("times", 0.93)]:
        outcome = checks.grade("01-4", link | {entry: link[entry] * factor}, context)
        assert outcome.state == "not_yet" and "GiB" not in outcome.likely
