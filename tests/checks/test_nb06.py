"""Every grader of notebook 06 in both directions: stub, solution, other right forms, mistakes."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from helpers import checks, devices, evidence, inference, roofline
from helpers.checks import nb06
from helpers.evidence import Record
from tests.checks import kit

plain, calls = kit.plain, kit.calls
STEM = "06_batch_size"
BATCHES = [2**k for k in range(11)]
LAYER = nb06.MATRICES * nb06.WIDTH**2  # parameters of the swept stack


def swept(device, batches=BATCHES):
    """The stack of layers on that card: the longer of moving and computing."""
    bandwidth = device.sustained_bandwidth or 0.85 * device.bandwidth
    rate = device.sustained["fp16"]
    records = []
    for rows in batches:
        moved = 2 * (LAYER + nb06.MATRICES * 2 * rows * nb06.WIDTH)
        seconds = max(moved / bandwidth, 2 * rows * LAYER / rate)
        value = {"samples": [seconds] * 5}  # a sweep counts no work
        records.append(Record("06-5", "measurement", value, label=f"weights @ {rows}", unit="s"))
    return records


FACTORS = {"wide": (1.0, 0.26), "narrow": (0.1, 1.0)}
GUESSES = {
    "wide, one launch": "about the same",
    "wide, half the width": "far less",
    "narrow, one launch": "far less",
    "narrow, half the width": "about the same",
}


def trials(factors=None):
    """Two programs, each as it is, as a graph, and at half the width, with their wall times."""
    records = []
    for name, (graph, half) in (factors or FACTORS).items():
        runs = {name: 1.0, f"{name}, one launch": graph, f"{name}, half the width": half}
        for label, factor in runs.items():
            if factor is not None:
                record = kit.measurement("06-7", label, 4e-5, value={"wall": 1e-3 * factor})
                records.append(record)
    return records


def guesses():
    return [Record("06-7", "prediction", word, label=name) for name, word in GUESSES.items()]


def learner(key, records=None):
    device = devices.get(key) if key else None
    if records is None:
        records = [*swept(device or devices.get("t4")), *trials(), *guesses()]
    return kit.context(key, STEM, records)


@pytest.fixture(params=kit.CARDS)
def context(request):
    return learner(request.param)


@pytest.fixture
def t4():
    return learner("t4")


def fit_of(context, **changes):
    flat, slope, knee = nb06.two_lines(nb06.curve(context, "06-5", "weights"))
    return {"flat_ms": flat * 1e3, "per_row_us": slope * 1e6, "knee": knee} | changes


def fits(context, **changes):
    return nb06.fits_of(context.case("06-10"), inference.model(), **changes)


RIGHT_CLAIMS = {name: options[0] for name, options in nb06.CLAIMS.items()}
VERDICT = {"wide": "memory", "narrow": "overhead"}
SUSPICION = {"could be": "memory", "second test": "launches in a CUDA graph"}

STUBS = {
    "06-5": dict.fromkeys(nb06.FIT, ...),
    "06-6": {"could be": ..., "second test": ...},
    "06-7": {"wide": ..., "narrow": ...},
    "06-10": {"T4": ..., "A100": ...},
    "06-11": dict.fromkeys(nb06.CLAIMS, ...),
    "06-12": {"memory": ..., "compute": ..., "overhead": ...},
}


def test_a_stub_is_not_started(t4):
    kit.assert_stubs("06", STUBS, t4)


def right_forms(context):
    fit, mine = fit_of(context), fits(context)
    flat, slope, _ = nb06.two_lines(nb06.curve(context, "06-5", "weights"))
    letters = [
        (exercise, form)
        for exercise, letter in (("06-2", "c"), ("06-8", "d"))
        for form in (letter, letter.upper(), f" {letter}\n", np.str_(letter))
    ]
    return [
        *letters,
        ("06-1", 7.97),
        ("06-1", 8),
        ("06-1", np.float32(7.969)),
        ("06-1", torch.tensor(8.0)),
        ("06-3", calls("06-3", nb06.bytes_per_token)),
        ("06-3", calls("06-3", lambda w, k, b, c: (w + b * c * k) / b)),
        ("06-3", calls("06-3", lambda *a: np.float64(nb06.bytes_per_token(*a)))),
        ("06-3", calls("06-3", lambda *a: torch.tensor(nb06.bytes_per_token(*a)).double())),
        ("06-4", calls("06-4", nb06.batch_knee)),
        ("06-4", calls("06-4", lambda *a: round(nb06.batch_knee(*a)))),
        ("06-4", calls("06-4", lambda *a: math.ceil(nb06.batch_knee(*a)))),
        ("06-4", calls("06-4", lambda *a: np.float32(nb06.batch_knee(*a)))),
        ("06-4", calls("06-4", lambda *a: nb06.batch_knee(*a) * 1.003)),
        ("06-5", fit),
        ("06-5", {k: np.float64(v) for k, v in fit.items()}),
        ("06-5", {k: float(f"{v:.3g}") for k, v in fit.items()}),
        ("06-5", fit | {"knee": flat / slope}),  # the steep line through zero
        ("06-5", fit | {"knee": round(fit["knee"])}),
        ("06-6", SUSPICION),
        ("06-6", SUSPICION | {"could be": "overhead"}),
        ("06-6", {"could be": "Overhead ", "second test": "gaps in a trace"}),
        ("06-6", {"second test": "CHANGE THE WIDTH", "could be": "memory"}),
        ("06-6", {"could be": np.str_("memory"), "second test": "bytes over bandwidth"}),
        ("06-7", VERDICT),
        ("06-7", {k: v.upper() for k, v in VERDICT.items()}),
        ("06-7", dict(reversed(VERDICT.items()))),
        ("06-7", {k: np.str_(f" {v} ") for k, v in VERDICT.items()}),
        ("06-9", calls("06-9", nb06.largest_batch)),
        ("06-9", calls("06-9", lambda *a: float(nb06.largest_batch(*a)))),
        ("06-9", calls("06-9", lambda *a: np.int64(nb06.largest_batch(*a)))),
        (
            "06-9",
            calls("06-9", lambda m, w, k, c, s: max((s * m - w) / k // c, 0)),
        ),
        ("06-10", mine),
        ("06-10", {k: float(v) for k, v in mine.items()}),
        ("06-10", {k: np.int32(v) for k, v in mine.items()}),
        ("06-10", {k: torch.tensor([v]) for k, v in reversed(mine.items())}),
        ("06-11", RIGHT_CLAIMS),
        ("06-11", {k: v.upper() for k, v in RIGHT_CLAIMS.items()}),
        ("06-11", {k: f" {v} " for k, v in RIGHT_CLAIMS.items()}),
        ("06-11", {k: np.str_(v) for k, v in reversed(RIGHT_CLAIMS.items())}),
        ("06-12", dict(nb06.RECAP)),
        ("06-12", {k: v.title() for k, v in nb06.RECAP.items()}),
        ("06-12", dict(reversed(nb06.RECAP.items()))),
        ("06-12", {k: f" {v}" for k, v in nb06.RECAP.items()}),
    ]


def test_every_right_form_is_right(context):
    kit.assert_right(right_forms(context), context)


def wrong_forms(context):
    fit, mine = fit_of(context), fits(context)
    points = nb06.curve(context, "06-5", "weights")
    rows = [
        ("06-1", 4096 / 3, "square"),
        ("06-1", 15.94, "per_element"),
        ("06-1", 3.98, "half_rate"),
        ("06-1", 1 / 7.97, "inverted"),
        ("06-1", 1, "one_row"),
        ("06-1", 8 / 3, "square_rows"),
        ("06-1", 2048, "no_weights"),
        ("06-1", 7969, "times_1000"),
        ("06-1", 100, "off"),
        ("06-1", None, "none"),
        ("06-1", "8", "not_a_number"),
        ("06-1", float("nan"), "not_finite"),
        ("06-1", -8, "not_positive"),
        ("06-1", [8, 8], "not_a_number"),
        *(("06-2", letter, f"picked_{letter}") for letter in "abd"),
        ("06-2", 3, "not_an_option"),
        *(("06-8", letter, f"picked_{letter}") for letter in "abc"),
        ("06-8", "never", "not_an_option"),
        ("06-5", fit | {"flat_ms": fit["flat_ms"] / 1e3}, "seconds"),
        ("06-5", fit | {"flat_ms": points[-1][1] * 1e3}, "largest"),
        ("06-5", fit | {"per_row_us": fit["per_row_us"] / 1e3}, "milliseconds"),
        ("06-5", fit | {"per_row_us": fit["per_row_us"] / 1e6}, "seconds"),
        ("06-5", fit | {"per_row_us": (points[-1][1] - points[-2][1]) * 1e6}, "per_doubling"),
        ("06-5", fit | {"knee": 256.0 if fit["knee"] < 240 else 512.0}, "grid_above"),
        ("06-5", fit | {"knee": points[-1][1] / points[0][1]}, "ratio"),
        ("06-5", fit | {"knee": fit["knee"] * 1.3}, "off"),
        ("06-5", fit | {"knee": fit["knee"] * 1000}, "times_1000"),
        ("06-5", fit | {"knee": None}, "none"),
        ("06-5", fit | {"flat_ms": "fast"}, "not_a_number"),
        ("06-5", {"flat_ms": 1.0}, "rows_missing"),
        ("06-5", [1, 2, 3], "not_a_table"),
        ("06-6", SUSPICION | {"could be": "compute"}, "compute"),
        ("06-6", SUSPICION | {"second test": "batch times four"}, "larger_batch"),
        ("06-6", SUSPICION | {"second test": "GPU utilisation"}, "utilisation"),
        ("06-6", SUSPICION | {"second test": "more samples"}, "samples"),
        ("06-6", SUSPICION | {"second test": "ask a colleague"}, "not_an_option"),
        ("06-6", "memory", "not_a_table"),
        ("06-7", {"wide": "memory", "narrow": "memory"}, "not_memory"),
        ("06-7", {"wide": "overhead", "narrow": "overhead"}, "not_overhead"),
        ("06-7", {"wide": "compute", "narrow": "overhead"}, "compute"),
        ("06-7", {"wide": "bandwidth", "narrow": "overhead"}, "not_an_option"),
        ("06-7", {"wide": "memory"}, "rows_missing"),
        ("06-10", mine | {"A100": fits(context, share=1)["A100"]}, "no_share"),
        ("06-10", mine | {"A100": fits(context, weights=0)["A100"]}, "no_weights"),
        ("06-10", {k: v + 1 for k, v in mine.items()}, "rounded_up"),
        ("06-10", fits(context, weights=inference.model().step_weights), "step_weights"),
        ("06-10", fits(context, memory=lambda m: m / 1e9 * 2**30), "gib"),
        ("06-10", fits(context, kv_per_token=2**14), "one_layer"),
        ("06-10", mine | {"A100": fits(context, kv_per_token=2**18)["A100"]}, "keys_only"),
        ("06-10", mine | {"T4": -2}, "negative"),
        ("06-10", mine | {"T4": mine["T4"] + 0.4}, "not_whole"),
        ("06-10", mine | {"A100": 9999}, "off"),
        ("06-10", mine | {"A100": "many"}, "not_a_number"),
        ("06-10", mine | {"A100": float("inf")}, "not_finite"),
        ("06-10", 2, "not_a_table"),
        ("06-11", RIGHT_CLAIMS | {"fixed cost": "weights"}, "not_an_option"),
        ("06-11", {"fixed cost": "reading the weights"}, "rows_missing"),
        ("06-12", nb06.RECAP | {"memory": "about double"}, "memory_as_about_double"),
        ("06-12", nb06.RECAP | {"compute": "about the same"}, "compute_as_about_the_same"),
        ("06-12", nb06.RECAP | {"overhead": "about double"}, "overhead_as_about_double"),
        ("06-12", {"memory": "about the same"}, "rows_missing"),
        ("06-12", nb06.RECAP | {"memory": 2}, "not_an_option"),
    ]
    rows += [
        ("06-11", RIGHT_CLAIMS | {name: options[i]}, f"{name.replace(' ', '_')}_{i}")
        for name, options in nb06.CLAIMS.items()
        for i in (1, 2)
    ]
    for exercise, mistakes in (
        ("06-3", nb06.TOKEN_MISTAKES | {"off": lambda w, k, b, c: w / b + c * k + 17e6}),
        ("06-4", nb06.KNEE_MISTAKES | {"off": lambda *a: nb06.batch_knee(*a) * 1.2}),
        ("06-9", nb06.FITS_MISTAKES | {"off": lambda *a: nb06.largest_batch(*a) + 7}),
    ):
        rows += [(exercise, calls(exercise, mistake), key) for key, mistake in mistakes.items()]
        rows += [
            (exercise, calls(exercise, lambda *a: 17.5), "constant"),
            (exercise, calls(exercise, lambda *a: None), "returned_none"),
            (exercise, calls(exercise, lambda *a: "12"), "not_a_number"),
            (exercise, calls(exercise, lambda *a: float("nan")), "not_finite"),
            (exercise, 12, "not_a_function"),
            (exercise, [{"error": "ZeroDivisionError: division by zero"}]
             * len(checks.inputs(exercise, kit.SEED)), "raised"),
        ]  # fmt: skip
    return rows


def test_every_planted_mistake_gets_its_own_message(context):
    kit.assert_wrong(wrong_forms(context), context)


def test_every_exercise_is_covered(t4):
    kit.assert_covered("06", right_forms(t4), wrong_forms(t4))


@pytest.mark.parametrize("seed", range(40))
def test_no_mistake_passes_for_any_learner(seed):
    """Whatever numbers a learner draws, the planted mistakes differ from the right values."""
    for exercise, right, mistakes in (
        ("06-3", nb06.bytes_per_token, nb06.TOKEN_MISTAKES),
        ("06-4", nb06.batch_knee, nb06.KNEE_MISTAKES),
        ("06-9", nb06.largest_batch, nb06.FITS_MISTAKES),
    ):
        where = dataclasses.replace(learner("t4", []), seed=seed)
        assert checks.grade(exercise, calls(exercise, right, seed), where).state == "right"
        for key, mistake in mistakes.items():
            outcome = checks.grade(exercise, calls(exercise, mistake, seed), where)
            assert (outcome.state, outcome.key) == ("not_yet", key), exercise


@pytest.mark.parametrize("seed", range(40))
def test_the_case_has_no_answer_on_the_edge(seed):
    case = checks.case("06-10", seed)
    llama = inference.model()
    for memory in nb06.MEMORY.values():
        left = case["share"] * memory - llama.weights
        exact = left / (llama.kv_bytes * case["context"])
        assert abs(exact - round(exact)) > 1e-3 or exact < 0, (case, exact)


def test_one_too_many_asks_for_the_embedding_only_where_it_explains_the_count():
    llama, keys = inference.model(), set()
    for seed in range(40):
        where = learner("t4", [])
        where.evidence.seed = seed
        mine = fits(where)
        read = fits(where, weights=llama.step_weights)
        outcome = checks.grade("06-10", plain(read), where)
        assert outcome.key == ("right" if read == mine else "step_weights")
        more = {"T4": mine["T4"], "A100": mine["A100"] + 1}
        keys.add(checks.grade("06-10", plain(more), where).key)
    assert keys >= {"rounded_up", "step_weights"}  # and, at long contexts, no_share


def test_some_learners_find_that_nothing_fits():
    answers = [
        nb06.fits_of(checks.case("06-10", seed), inference.model())["T4"] for seed in range(60)
    ]
    assert 0 in answers and max(answers) >= 4


def test_inputs_and_cases_differ_between_learners_and_repeat_for_one():
    for exercise in ("06-3", "06-4", "06-9"):
        assert checks.inputs(exercise, 1) == checks.inputs(exercise, 1)
        assert checks.inputs(exercise, 1) != checks.inputs(exercise, 2)
    assert checks.case("06-10", 3) == checks.case("06-10", 3)
    assert len({str(checks.case("06-10", seed)) for seed in range(20)}) > 5


def test_the_judges_memory_holds_a_card_with_nothing_left():
    for seed in range(20):
        answers = [nb06.largest_batch(*call) for call in checks.inputs("06-9", seed)]
        assert answers.count(0) == 2 and max(answers) >= 20


def test_the_knee_agrees_with_the_courses_own_arithmetic():
    for key, rows in (("a100_80_sxm", 165), ("t4", 225)):
        card = devices.get(key)
        knee = nb06.batch_knee(card.bandwidth, card.peak["fp16"], 4096, 4096, 2)
        assert round(knee) == rows
        assert knee == pytest.approx(inference.crossing(roofline.datasheet(card), 4096, 4096))


def test_no_card_makes_a_whole_step_compute_bound_within_its_memory():
    llama = inference.model()
    for card in devices.all_devices():
        for tokens in (256, 512, 1024, 2048, 4096):
            fits_here = inference.largest_batch(llama, card.memory, tokens)
            assert inference.step_crossing(llama, roofline.datasheet(card), tokens) > fits_here


def test_the_answer_of_the_whole_step_is_never_on_the_card_asked_about():
    paper = roofline.datasheet(devices.get("a100_80_sxm"))
    assert inference.step_crossing(inference.model(), paper, 1024) == math.inf
    assert inference.step_crossing(inference.model(), paper, 128) == pytest.approx(671, abs=2)


def test_each_wrong_entry_costs_its_share(t4):
    fit = fit_of(t4)
    one, two = fit | {"knee": 1.0}, fit | {"knee": 1.0, "per_row_us": 1.0}
    assert checks.grade("06-5", plain(one), t4).fraction == pytest.approx(2 / 3)
    assert checks.grade("06-5", plain(two), t4).fraction == pytest.approx(1 / 3)
    mine = fits(t4)
    assert checks.grade("06-10", plain(mine | {"A100": 1}), t4).fraction == 0.5
    wrong = RIGHT_CLAIMS | {"fixed cost": "computing a row", "ends with": "a slower clock"}
    outcome = checks.grade("06-11", wrong, t4)
    assert outcome.fraction == pytest.approx(4 / 6) and outcome.key == "fixed_cost_2"
    both = {"could be": "compute", "second test": "more samples"}
    assert checks.grade("06-6", both, t4).fraction == 0.0
    assert checks.grade("06-7", VERDICT | {"narrow": "memory"}, t4).fraction == 0.5


def test_either_cause_is_accepted_and_the_other_is_told(t4):
    for bucket, other in (("memory", "overhead"), ("overhead", "memory")):
        outcome = checks.grade("06-6", SUSPICION | {"could be": bucket}, t4)
        assert outcome.state == "right" and f"just as well {other}" in outcome.insight


def test_a_prediction_that_failed_is_told_and_costs_nothing(t4):
    assert "All 4 of your predictions held" in checks.grade("06-7", VERDICT, t4).insight
    t4.evidence.add(Record("06-7", "prediction", "far more", label="narrow, one launch"))
    outcome = checks.grade("06-7", VERDICT, t4)
    assert outcome.fraction == 1.0 and "3 of 4 predictions held" in outcome.insight


def test_the_verdict_follows_the_learners_own_times():
    """On another machine the narrow program may feel the bytes as well: then either is right."""
    both = learner("t4", trials(FACTORS | {"narrow": (0.5, 0.5)}))
    for bucket in ("memory", "overhead"):
        assert checks.grade("06-7", VERDICT | {"narrow": bucket}, both).state == "right"
    turned = learner("h100_sxm", trials({"wide": (0.2, 0.9), "narrow": (0.1, 1.0)}))
    assert checks.grade("06-7", VERDICT, turned).key == "not_memory"


def test_the_first_miss_does_not_give_the_answer_away(t4):
    """A fit or a verdict is the learner's own: feedback says what it is, not how much."""
    fit = fit_of(t4)
    for name in nb06.FIT:
        said = checks.grade("06-5", plain(fit | {name: fit[name] * 1.3}), t4)
        assert f"{fit[name]:,.4g}" not in f"{said.expected} {said.likely} {said.next_step}"
        assert repr(name) in said.expected and nb06.RULES[name] in said.expected
    for wrong in ("compute", "overhead"):
        said = checks.grade("06-7", VERDICT | {"wide": wrong}, t4)
        assert "memory" not in f"{said.expected} {said.likely} {said.next_step}"


def test_feedback_names_the_entry_that_it_is_about(t4):
    for value in (None, math.nan, "fast", [1, 2], 1e-9):
        outcome = checks.grade("06-5", plain(fit_of(t4, flat_ms=value)), t4)
        assert outcome.have.startswith("flat_ms: "), value
        outcome = checks.grade("06-10", plain(fits(t4) | {"A100": value}), t4)
        assert outcome.have.startswith("A100: "), value


def test_the_median_of_other_points_is_not_the_flat_part(t4):
    """On a T4 the batches from 16 on have a median only 4 % above that of the first four."""
    times = [t for _, t in nb06.curve(t4, "06-5", "weights")]
    flat = sorted(times[4:])[len(times[4:]) // 2] * 1e3
    assert checks.grade("06-5", plain(fit_of(t4, flat_ms=flat)), t4).fraction == pytest.approx(
        2 / 3
    )


@pytest.mark.parametrize("value", [64, 64.0, "64", None])
def test_a_prediction_in_place_of_the_fit_is_named(t4, value):
    t4.evidence.add(Record("06-5", "prediction", value, label="knee"))
    outcome = checks.grade("06-5", plain(fit_of(t4, knee=65)), t4)
    assert (outcome.key == "predicted") == isinstance(value, (int, float))
    outcome = checks.grade("06-5", plain(fit_of(t4)), t4)
    assert outcome.state == "right"


def test_the_slope_over_the_whole_curve_is_named(t4):
    """Seen where the flat part is a large share of the largest batch's time."""
    records = swept(devices.get("l4"), BATCHES[:10])
    where = learner("l4", records)
    points = nb06.curve(where, "06-5", "weights")
    (b1, t1), (b2, t2) = points[0], points[-1]
    slopes = {"whole_slope": (t2 - t1) / (b2 - b1), "mean_cost": t2 / b2}
    for key, slope in slopes.items():
        answer = plain(fit_of(where, per_row_us=slope * 1e6))
        assert checks.grade("06-5", answer, where).key in (key, "right"), key
    assert checks.grade("06-5", plain(fit_of(where, per_row_us=slopes["whole_slope"] * 1e6)),
                        where).key == "whole_slope"  # fmt: skip


def test_tests_that_move_nothing_settle_nothing():
    quiet = learner("t4", trials(FACTORS | {"narrow": (0.9, 1.0)}))
    outcome = checks.grade("06-7", VERDICT, quiet)
    assert (outcome.state, outcome.key, outcome.fraction) == ("cannot_tell", "unclear", 0.0)
    assert outcome.expected and outcome.next_step


def test_effects_have_wide_bands():
    words = {0.05: 0, 0.59: 0, 0.61: 1, 1.0: 1, 1.5: 1, 1.7: 2, 4.0: 2}
    assert {f: nb06.effect(f) for f in words} == {f: nb06.EFFECTS[i] for f, i in words.items()}


def test_wall_time_is_what_counts_and_gpu_time_its_stand_in():
    record = kit.measurement("06-7", "x", 4e-5, value={"wall": 1e-3})
    assert nb06.wall(record) == 1e-3
    for absent in (None, 0.0, "soon"):
        record = kit.measurement("06-7", "x", 4e-5, value={"wall": absent})
        assert nb06.wall(record) == 4e-5


def test_without_its_measurement_an_exercise_says_so():
    empty = learner("t4", [])
    assert checks.grade("06-5", {"flat_ms": 1.0, "per_row_us": 1.0, "knee": 1.0}, empty).key == (
        "not_measured"
    )
    assert checks.grade("06-7", VERDICT, empty).key == "not_measured"
    few = learner("t4", swept(devices.get("t4"), BATCHES[:4]))
    outcome = checks.grade("06-5", {"flat_ms": 1.0, "per_row_us": 1.0, "knee": 1.0}, few)
    assert outcome.key == "not_measured" and "4 points" in outcome.have
    ungraphed = learner("t4", trials({"wide": (None, 0.3), "narrow": (0.1, 1.0)}))
    assert checks.grade("06-7", VERDICT, ungraphed).key == "not_measured"


@pytest.mark.parametrize("value", [{"samples": []}, {"samples": [0.0]}, {"samples": ["1"]}, 7, {}])
def test_a_sweep_edited_by_hand_is_named(value):
    records = swept(devices.get("t4"))
    records[3] = dataclasses.replace(records[3], value=value)
    broken = learner("t4", records)
    answer = {"flat_ms": 1.0, "per_row_us": 1.0, "knee": 1.0}
    assert checks.grade("06-5", answer, broken).key == "damaged"


def test_a_label_that_names_no_batch_is_damage():
    records = swept(devices.get("t4"))
    records[3] = dataclasses.replace(records[3], label="weights @ many")
    answer = {"flat_ms": 1.0, "per_row_us": 1.0, "knee": 1.0}
    assert checks.grade("06-5", answer, learner("t4", records)).key == "damaged"


def test_a_test_edited_by_hand_is_named():
    records = trials()
    del records[0].value["work"]
    assert checks.grade("06-7", VERDICT, learner("t4", records)).key == "damaged"


def test_a_flat_part_faster_than_the_card_is_impossible():
    """The weights never left the cache, or nobody waited."""
    records = [
        dataclasses.replace(r, value={"samples": [s / 3 for s in r.value["samples"]]})
        for r in swept(devices.get("t4"))
    ]
    hasty = learner("t4", records)
    outcome = checks.grade("06-5", plain(fit_of(hasty)), hasty)
    assert (outcome.key, outcome.fraction) == ("impossible", 0.0)
    assert checks.grade("06-5", plain(fit_of(hasty)), learner(None, records)).state == "right"


def test_a_point_of_the_sweep_is_not_where_the_lines_meet(t4):
    outcome = checks.grade("06-5", plain(fit_of(t4, knee=128.0)), t4)
    assert outcome.key == "grid_below" and "last one on the flat part" in outcome.likely


def test_the_newest_sweep_counts(t4):
    old = fit_of(t4)
    for record in swept(devices.get("l4")):
        t4.evidence.add(record)
    assert checks.grade("06-5", plain(fit_of(t4)), t4).state == "right"
    assert checks.grade("06-5", plain(old), t4).state == "not_yet"


@pytest.mark.parametrize("shape", [lambda b: 1e-3, lambda b: 1e-3 / b])
def test_a_line_without_a_knee_cannot_be_told(shape):
    records = [
        dataclasses.replace(r, value={"samples": [shape(b) + 2e-3] * 3})
        for r, b in zip(swept(devices.get("t4")), BATCHES, strict=True)
    ]
    answer = {"flat_ms": 3.0, "per_row_us": 1.0, "knee": 100.0}
    outcome = checks.grade("06-5", answer, learner("t4", records))
    assert (outcome.state, outcome.key) == ("cannot_tell", "no_knee")
    assert outcome.expected and outcome.next_step


def test_on_a_cpu_what_is_absent_cannot_be_told():
    line = [1e-3 * max(1, b / 20) for b in BATCHES[:8]]
    records = [
        dataclasses.replace(r, value={"samples": [seconds] * 3})
        for r, seconds in zip(swept(devices.get("t4"), BATCHES[:8]), line, strict=True)
    ]
    records += trials({"wide": (None, 0.2), "narrow": (None, 0.9)})
    cpu = learner(None, records)
    outcome = checks.grade("06-7", VERDICT, cpu)
    assert (outcome.state, outcome.key) == ("cannot_tell", "no_graph")
    assert checks.grade("06-5", plain(fit_of(cpu)), cpu).state == "right"
    for exercise, answer in (("06-10", fits(cpu)), ("06-11", RIGHT_CLAIMS), ("06-8", "d")):
        assert checks.grade(exercise, plain(answer), cpu).state == "right"


def test_a_card_the_course_does_not_know_is_judged_by_its_own_times():
    known = learner("t4")
    stranger = dataclasses.replace(known, device=None)
    records = [
        dataclasses.replace(r, device={"name": "NVIDIA X9"}) for r in stranger.evidence.records
    ]
    stranger.evidence.records = records
    kit.assert_right([("06-5", fit_of(stranger)), ("06-7", VERDICT)], stranger)


def test_the_fit_is_judged_on_the_card_of_its_record(t4):
    """Swept on an H100, and the newest record of the session comes from a T4."""
    name = devices.get("h100_sxm").torch_names[0]
    for record in swept(devices.get("h100_sxm")):
        t4.evidence.add(dataclasses.replace(record, device={"name": name}))
    assert checks.grade("06-5", plain(fit_of(t4)), t4).state == "right"


def test_a_simulated_number_says_so_in_feedback(t4):
    answers = {"06-5": plain(fit_of(t4)), "06-7": VERDICT}
    for exercise, answer in answers.items():
        assert "simulated" not in checks.grade(exercise, answer, t4).insight
    t4.evidence.records = [dataclasses.replace(r, origin="simulated") for r in t4.evidence.records]
    for exercise, answer in answers.items():
        assert "(simulated)" in checks.grade(exercise, answer, t4).insight


def test_where_nothing_fits_the_message_is_about_memory(t4):
    seeds = {nb06.fits_of(checks.case("06-10", s), inference.model())["T4"] == 0: s
             for s in range(60)}  # fmt: skip
    for empty, seed in seeds.items():
        where = learner("t4", [])
        where.evidence.seed = seed
        said = checks.grade("06-10", plain(fits(where)), where).insight
        assert ("out-of-memory" in said) == empty


def test_every_answer_a_learner_could_hand_in_is_plain_data():
    for exercise in checks.exercises("06"):
        assert checks.grade(exercise, evidence.plain(float("inf")), learner("t4", [])).state in (
            "not_yet", "error",
        )  # fmt: skip
