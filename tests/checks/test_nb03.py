"""Every grader of notebook 03 in both directions: stub, solution, other right forms, mistakes."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from helpers import checks, counting, devices, inference, roofline
from helpers.checks import Context, nb03
from helpers.evidence import Evidence, Record
from helpers.simgpu import model
from tests.checks import kit

plain, calls = kit.plain, kit.calls
NAN = float("nan")


def ceiling_of(device, **changes):
    """The roof that lab.roofs records on that simulated card."""
    built = model.build(device)
    value = {
        "label": "simulated ceiling", "device": device.name, "bandwidth": built.bandwidth,
        "rates": {"fp16": built.matmul_rate("fp16"), "fp32": built.matmul_rate("fp32")},
        "vector_rate": built.vector_rate, "origin": "measured", "lanes": 64, "host_per_op": 3e-5,
    } | changes  # fmt: skip
    return Record("03-0", "measurement", value, label="ceiling")


def records_of(device, factors=(1.0, 0.5, 2.0, 1.0)):
    kept = [ceiling_of(device)]
    times = {"few rows": 1e-4, "many rows": 1e-3}
    for side, took in times.items():
        kept.append(kit.measurement("03-9", side, took, 2**27))
    kept += [
        kit.measurement("03-9", label, factor * times[label.partition(",")[0]], 2**27)
        for label, factor in zip(nb03.LABELS, factors, strict=True)
    ]
    kept += [
        Record("03-9", "prediction", nb03.effect(factor), label=label)
        for label, factor in zip(nb03.LABELS, (1.0, 0.5, 2.0, 1.0), strict=True)
    ]
    return kept


def context_on(key):
    return kit.context(key, "03_matmul_vs_pointwise", records_of(devices.get(key)))


@pytest.fixture(params=kit.CARDS)
def context(request):
    return context_on(request.param)


@pytest.fixture
def t4():
    return context_on("t4")


STUBS = {
    "03-5": {"flops": ..., "bytes": ...},
    "03-6": {"normalisation": ..., "element-wise": ...},
    "03-8": dict.fromkeys(nb03.eight(), ...),
    "03-9": {"few rows": ..., "many rows": ...},
    "03-10": {"memory": ..., "compute": ..., "overhead": ...},
}


def test_a_stub_is_not_started(t4):
    kit.assert_stubs("03", STUBS, t4)


def ridge_of(context):
    case = context.case("03-1")
    return case["tflop_per_s"] * 1e3 / case["gb_per_s"]


def shares_of(context):
    b = nb03.block(**context.case("03-5"))
    return {
        "flops": b.relu / (b.relu + b.products),
        "bytes": b.relu_bytes / (b.relu_bytes + b.product_bytes),
    }


def own_ridge(context):
    roof = context.evidence.latest("03-0", "measurement", "ceiling").value
    return roof["rates"]["fp16"] / roof["bandwidth"]


def rows_of(context):
    return 1 / (1 / own_ridge(context) - 2 / nb03.WIDTH)


def verdicts_of(context):
    """What the notebook's own `leans` says."""
    found = {}
    for name, operation in nb03.eight().items():
        low, high = nb03.ridges(context, operation.matrix)
        found[name] = (
            "memory" if operation.intensity < low / 3
            else "compute" if operation.intensity > 3 * high else "near"
        )  # fmt: skip
    return found


def bert_factors():
    return {"normalisation": 245.4, "element-wise": 736.2}


def right_forms(context):
    ridge, shares, rows = ridge_of(context), shares_of(context), rows_of(context)
    buckets = {"few rows": "memory", "many rows": "compute"}
    verdicts, factors = verdicts_of(context), bert_factors()
    return [
        ("03-1", ridge),
        ("03-1", round(ridge)),
        ("03-1", np.float32(ridge)),
        ("03-1", torch.tensor(ridge)),
        ("03-2", "b"),
        ("03-2", "B"),
        ("03-2", " b "),
        ("03-2", np.str_("b")),
        ("03-3", calls("03-3", nb03.matmul_intensity)),
        ("03-3", calls("03-3", lambda m, k, n, s: 2 / (s * (1 / m + 1 / k + 1 / n)))),
        ("03-3", calls("03-3", lambda *a: np.float32(nb03.matmul_intensity(*a)))),
        ("03-3", calls("03-3", lambda *a: torch.tensor(nb03.matmul_intensity(*a)))),
        ("03-3", calls("03-3", lambda *a: round(nb03.matmul_intensity(*a), 3))),
        ("03-4", calls("03-4", nb03.pointwise_intensity)),
        ("03-4", calls("03-4", lambda f, i, s: f / (i * s + s))),
        ("03-4", calls("03-4", lambda f, i, s: np.float64(f) / s / (1 + i))),
        ("03-4", calls("03-4", lambda f, i, s: torch.tensor(f / (s * (i + 1))))),
        ("03-5", shares),
        ("03-5", {k: np.float32(v) for k, v in shares.items()}),
        ("03-5", {k: float(f"{v:.2g}") for k, v in shares.items()}),
        ("03-5", {k: torch.tensor(v) for k, v in reversed(shares.items())}),
        ("03-6", factors),
        ("03-6", {"normalisation": 245, "element-wise": 700}),
        ("03-6", {"normalisation": np.float64(250), "element-wise": 631}),
        ("03-6", {"element-wise": torch.tensor(880.0), "normalisation": 240}),
        ("03-7", rows),
        ("03-7", round(rows)),
        ("03-7", math.ceil(rows)),
        ("03-7", np.float32(rows)),
        ("03-7", [rows * 1.01]),
        ("03-8", verdicts),
        ("03-8", {k: v.title() for k, v in verdicts.items()}),
        ("03-8", {k: np.str_(v) for k, v in reversed(verdicts.items())}),
        ("03-8", verdicts | {"attention scores": "memory"}),
        ("03-8", {k: f" {v}" for k, v in verdicts.items()} | {"attention scores": "near"}),
        ("03-9", buckets),
        ("03-9", {k: v.upper() for k, v in buckets.items()}),
        ("03-9", {k: f" {v} " for k, v in reversed(buckets.items())}),
        ("03-9", {k: np.str_(v) for k, v in buckets.items()}),
        ("03-10", dict(nb03.RECAP)),
        ("03-10", {k: v.upper() for k, v in nb03.RECAP.items()}),
        ("03-10", dict(reversed(nb03.RECAP.items()))),
        ("03-10", {k: f" {v} " for k, v in nb03.RECAP.items()}),
    ]


def test_every_right_form_gets_full_marks_on_every_device(context):
    kit.assert_right(right_forms(context), context)


def wrong_forms(context):
    ridge, shares, rows = ridge_of(context), shares_of(context), rows_of(context)
    b = nb03.block(**context.case("03-5"))
    verdicts, factors = verdicts_of(context), bert_factors()
    buckets = {"few rows": "memory", "many rows": "compute"}
    paper = roofline.ridge(roofline.datasheet(context.device), "fp16")
    pairs = {"normalisation": (0.0017, 0.255), "element-wise": (0.0003, 0.135)}
    table = [
        ("03-1", 1 / ridge, "inverted"),
        ("03-1", ridge / 1e3, "units"),
        ("03-1", 1e3 / ridge, "units_inverted"),
        ("03-1", 2 * ridge, "per_element"),
        ("03-1", ridge / 2, "halved"),
        ("03-1", ridge * 1e3, "times_1000"),
        ("03-1", ridge * 1.4, "off"),
        ("03-1", None, "none"),
        ("03-1", "150", "not_a_number"),
        ("03-1", NAN, "not_finite"),
        ("03-1", -ridge, "not_positive"),
        ("03-1", [ridge, 1], "not_a_number"),
        ("03-2", "a", "picked_a"),
        ("03-2", "c", "picked_c"),
        ("03-2", "d", "picked_d"),
        ("03-2", "memory", "not_an_option"),
        ("03-5", {k: 100 * v for k, v in shares.items()}, "percent"),
        ("03-5", shares | {"bytes": 100 * shares["bytes"]}, "percent"),
        ("03-5", {"flops": shares["bytes"], "bytes": shares["flops"]}, "swapped"),
        ("03-5", shares | {"flops": 2 * shares["flops"]}, "multiply_add"),
        ("03-5", shares | {"flops": shares["bytes"]}, "bytes_there"),
        ("03-5", shares | {"bytes": shares["flops"]}, "flops_there"),
        ("03-5", shares | {"bytes": b.relu_bytes / b.product_bytes}, "of_the_products"),
        ("03-5", shares | {"bytes": b.relu_bytes / b.ideal_bytes}, "of_the_ideal"),
        ("03-5", shares | {"bytes": shares["bytes"] / 2}, "one_way"),
        ("03-5", shares | {"bytes": 0.9}, "off"),
        ("03-5", shares | {"flops": round(shares["flops"], 4)}, "rounded"),
        ("03-5", shares | {"flops": 0}, "rounded"),
        ("03-5", shares | {"bytes": -0.1}, "not_positive"),
        ("03-5", shares | {"bytes": "a third"}, "not_a_number"),
        ("03-5", {"flops": shares["flops"]}, "rows_missing"),
        ("03-5", shares["flops"], "not_a_table"),
        ("03-6", factors | {"element-wise": 0.998 / 0.0003}, "flops_only"),
        ("03-6", factors | {"normalisation": 0.61 / 0.255}, "time_only"),
        ("03-6", factors | {"normalisation": 0.998 / 0.0017 * 0.61 / 0.255}, "multiplied"),
        ("03-6", {k: 1 / v for k, v in factors.items()}, "inverted"),
        ("03-6", factors | {"normalisation": 2.454}, "percent"),
        ("03-6", factors | {"element-wise": 73620}, "percent"),
        ("03-6", {k: t / f for k, (f, t) in pairs.items()}, "one_of_all"),
        ("03-6", factors | {"element-wise": 600}, "off"),
        ("03-6", factors | {"element-wise": 900}, "off"),
        ("03-6", factors | {"normalisation": 122.7}, "halved"),
        ("03-6", {"normalisation": 736, "element-wise": 245}, "other_kind"),
        ("03-6", factors | {"normalisation": NAN}, "not_finite"),
        ("03-6", 245, "not_a_table"),
        ("03-7", own_ridge(context), "ridge"),
        ("03-7", 1 / (1 / own_ridge(context) - 1 / nb03.WIDTH), "one_width"),
        ("03-7", 2 * rows, "twice"),
        ("03-7", 1 / rows, "inverted"),
        ("03-7", rows / 2, "halved"),
        ("03-7", 1 / (1 / own_ridge(context) - 4 / nb03.WIDTH), "half_the_width"),
        ("03-7", 1 / (1 / own_ridge(context) + 2 / nb03.WIDTH), "sign"),
        ("03-7", rows * 1e3, "times_1000"),
        ("03-7", rows * 3.7, "off"),
        ("03-7", "many", "not_a_number"),
        ("03-7", -rows, "not_positive"),
        ("03-7", 1 / (1 / paper - 2 / nb03.WIDTH), "paper"),
        ("03-7", paper, "paper_ridge"),
        ("03-8", verdicts | {"embedding": "near"}, "no_arithmetic"),
        ("03-8", verdicts | {"embedding": "compute"}, "no_arithmetic"),
        ("03-8", verdicts | {"residual add": "compute"}, "pointwise_computes"),
        ("03-8", verdicts | {"softmax": "compute"}, "pointwise_computes"),
        ("03-8", verdicts | {"one-token linear": "compute"}, "few_rows"),
        ("03-8", verdicts | {"one-token linear": "near"}, "far"),
        ("03-8", verdicts | {"large matmul": "memory"}, "shares_its_trip"),
        ("03-8", dict.fromkeys(verdicts, "memory"), "one_word"),
        ("03-8", dict.fromkeys(verdicts, "near"), "one_word"),
        ("03-8", verdicts | {"gelu": "bandwidth"}, "not_an_option"),
        ("03-8", {"gelu": "memory"}, "rows_missing"),
        ("03-8", ["memory"] * 8, "not_a_table"),
        ("03-9", buckets | {"few rows": "compute"}, "few_as_compute"),
        ("03-9", buckets | {"few rows": "overhead"}, "few_as_overhead"),
        ("03-9", buckets | {"many rows": "memory"}, "many_as_memory"),
        ("03-9", buckets | {"many rows": "overhead"}, "many_as_overhead"),
        ("03-9", buckets | {"many rows": "lorries"}, "not_an_option"),
        ("03-9", "memory", "not_a_table"),
        ("03-9", {"few rows": "memory"}, "rows_missing"),
    ]  # fmt: skip
    short = {v: v.replace(" ", "_") for v in nb03.RECAP.values()}
    for bucket, wanted in nb03.RECAP.items():
        table += [
            ("03-10", nb03.RECAP | {bucket: other}, f"{bucket}_as_{key}")
            for other, key in short.items()
            if other != wanted
        ]
    for exercise, mistakes in (
        ("03-3", nb03.MATMUL_MISTAKES),
        ("03-4", nb03.POINTWISE_MISTAKES),
    ):
        table += [(exercise, calls(exercise, mistake), key) for key, mistake in mistakes.items()]
        table += [
            (exercise, calls(exercise, lambda *a: 17), "constant"),
            (exercise, calls(exercise, lambda *a: 17.5 + a[0]), "off"),
            (exercise, calls(exercise, lambda *a: None), "returned_none"),
            (exercise, calls(exercise, lambda *a: "12"), "not_a_number"),
            (exercise, calls(exercise, lambda *a: NAN), "not_finite"),
            (exercise, 85.3, "not_a_function"),
        ]
    return table


def too_close(row, context):
    """On some cards two wrong answers, or a wrong and the right one, are the same number."""
    exercise, answer, key = row
    own, paper = own_ridge(context), roofline.ridge(roofline.datasheet(context.device), "fp16")
    taken = {
        "right": rows_of(context),
        "ridge": own,
        "one_width": 1 / (1 / own - 1 / nb03.WIDTH),
        "half_the_width": 1 / (1 / own - 4 / nb03.WIDTH),
        "sign": 1 / (1 / own + 2 / nb03.WIDTH),
        "paper": 1 / (1 / paper - 2 / nb03.WIDTH),
        "paper_ridge": paper,
    }
    if exercise != "03-7" or key not in taken:
        return False
    return any(math.isclose(answer, v, rel_tol=0.0105) for k, v in taken.items() if k != key)


def test_every_planted_mistake_gets_its_own_message(context):
    rows = [row for row in wrong_forms(context) if not too_close(row, context)]
    assert len(rows) > 80
    kit.assert_wrong(rows, context)


def test_each_planted_mistake_is_seen_on_some_card():
    seen = {row[:1] + row[2:] for card in kit.CARDS for row in wrong_forms(context_on(card))
            if not too_close(row, context_on(card))}  # fmt: skip
    keys = ("ridge", "one_width", "paper", "paper_ridge")
    assert {("03-7", key) for key in keys} <= seen


def test_each_exercise_has_right_forms_and_mistakes(t4):
    kit.assert_covered("03", right_forms(t4), wrong_forms(t4))


def test_a_side_left_out_is_seen_also_where_it_weighs_least():
    a100 = context_on("a100_80_sxm")
    answer = 1 / (1 / own_ridge(a100) - 1 / nb03.WIDTH)
    assert answer == pytest.approx(rows_of(a100), rel=0.02)
    assert checks.grade("03-7", answer, a100).key == "one_width"


def test_no_feedback_asks_for_a_write_where_nothing_is_written(context):
    for exercise, half in (
        ("03-1", ridge_of(context) / 2),
        ("03-6", {"normalisation": 122.7, "element-wise": 368}),
        ("03-7", rows_of(context) / 2),
    ):
        outcome = checks.grade(exercise, half, context)
        assert outcome.likely and "write" not in outcome.likely, exercise


@pytest.mark.parametrize("key", ["t4", "l4", "h100_sxm"])
def test_attention_scores_are_not_said_to_have_few_rows(key):
    where = context_on(key)
    filled = verdicts_of(where) | {"attention scores": "compute"}
    outcome = checks.grade("03-8", filled, where)
    assert outcome.key == "thin" and "few rows" not in outcome.likely
    cpu = cpu_context()
    filled = dict.fromkeys(filled, "memory") | {"large matmul": "compute"}
    assert checks.grade("03-8", filled, cpu).key == "above_the_ridge"


@pytest.mark.parametrize("key", kit.CARDS)
def test_the_table_of_eight_is_told_as_it_was_filled(key):
    where = context_on(key)
    for word, count in (("near", 6), ("memory", 7)):
        outcome = checks.grade("03-8", verdicts_of(where) | {"attention scores": word}, where)
        assert f"By your table {count} of the eight" in outcome.insight, outcome


# ---------------------------------------------------------------- the physics behind the answers


def test_the_formulas_are_those_of_the_counter():
    a, b = torch.empty(96, 64, dtype=torch.float16), torch.empty(64, 200, dtype=torch.float16)
    counted = counting.count(torch.mm, a.to("meta"), b.to("meta"))
    assert counted.intensity == pytest.approx(nb03.matmul_intensity(96, 64, 200, 2))
    x, y = torch.empty(64, 64, device="meta"), torch.empty(64, 64, device="meta")
    assert counting.count(torch.add, x, y).intensity == nb03.pointwise_intensity(1, 2, 4)
    assert counting.count(torch.relu, x).intensity == nb03.pointwise_intensity(1, 1, 4)


@pytest.mark.parametrize("seed", [1, 5, 11])
def test_the_block_is_counted_as_the_counter_does(seed):
    case = nb03.block_case(seed)
    rows, width = case["rows"], case["width"]
    x, up, down = (
        torch.empty(*shape, dtype=torch.float16, device="meta")
        for shape in ((rows, width), (width, 4 * width), (4 * width, width))
    )
    work = counting.count(lambda x: torch.relu(x @ up) @ down, x)
    relu = next(op for op in work.ops if "relu" in op.name)
    b = nb03.block(**case)
    assert (relu.flops, relu.bytes) == (b.relu, b.relu_bytes)
    assert (work.flops, work.bytes_unfused) == (b.relu + b.products, b.relu_bytes + b.product_bytes)
    assert work.bytes_ideal == b.ideal_bytes


@pytest.mark.parametrize("cpu", [False, True])
def test_the_eight_are_counted_on_the_shapes_of_the_notebook(cpu):
    from torch.nn import functional as F

    tokens, hidden, heads, positions, head = (
        (2048, 1024, 8, 512, 64) if cpu else (16384, 4096, 32, 2048, 128)
    )

    def empty(*shape):
        return torch.empty(*shape, device="meta", dtype=torch.float32 if cpu else torch.float16)

    a, weight = empty(tokens, hidden), empty(hidden, hidden)
    queries, scores = empty(heads, positions, head), empty(heads, positions, positions)
    ids = torch.empty(tokens, dtype=torch.int64, device="meta")
    found = {
        "embedding": counting.count(F.embedding, ids, empty(32000, hidden)),
        "residual add": counting.count(torch.add, a, empty(tokens, hidden)),
        "gelu": counting.count(F.gelu, a),
        "layer norm": counting.count(F.layer_norm, a, (hidden,)),
        "softmax": counting.count(torch.softmax, scores, -1),
        "attention scores": counting.count(
            torch.bmm, queries, empty(heads, positions, head).transpose(1, 2)
        ),
        "one-token linear": counting.count(torch.mm, a[:1], weight),
        "large matmul": counting.count(torch.mm, a[:hidden], weight),
    }
    wanted = nb03.eight(cpu)
    assert list(found) == list(wanted)
    for name, work in found.items():
        assert work.intensity == pytest.approx(wanted[name].intensity, rel=0.01), name


def test_the_rates_of_bert_come_out_as_published():
    assert nb03.slower("normalisation") == pytest.approx(245, abs=1)
    assert nb03.slower("elementwise") == pytest.approx(736, abs=1)
    low, high = nb03.band("elementwise")
    assert (round(low, -1), round(high, -1)) == (630, 880)


def test_rows_at_the_ridge_agree_with_the_crossing_of_a_layer():
    a100, t4 = (roofline.datasheet(devices.get(k)) for k in ("a100_80_sxm", "t4"))
    for roof, width, known in ((a100, 4096, 165), (t4, 4096, 225)):
        rows = nb03.rows_at(roofline.ridge(roof, "fp16"), width, width, 2)
        assert rows == pytest.approx(inference.crossing(roof, width, width))
        assert round(rows, 0) == pytest.approx(known, abs=1)
    fp32 = nb03.rows_at(20, 2048, 2048, 4)
    assert nb03.matmul_intensity(fp32, 2048, 2048, 4) == pytest.approx(20)
    assert nb03.rows_at(400, 512, 512, 2) == math.inf


def test_the_swept_weights_exceed_every_l2():
    assert max(device.l2 for device in devices.all_devices()) < 2 * nb03.WIDTH**2


@pytest.mark.parametrize(("key", "n256"), [("t4", "near"), ("h100_sxm", "memory")])
def test_near_the_ridge_either_is_taken(key, n256):
    low, high = nb03.ridges(context_on(key), matrix=True)
    square = nb03.Operation(True, nb03.matmul_intensity(256, 256, 256, 2))
    found = nb03.accepted(square, low, high, 64, 2)
    assert n256 in found and "memory" in found


def test_what_is_far_from_the_ridge_has_one_answer(context):
    for name in ("embedding", "residual add", "one-token linear"):
        operation = nb03.eight()[name]
        low, high = nb03.ridges(context, operation.matrix)
        assert nb03.accepted(operation, low, high, 64, 2) == {"memory"}, name
    low, high = nb03.ridges(context, True)
    found = nb03.accepted(nb03.eight()["large matmul"], low, high, 64, 2)
    assert "compute" in found and "memory" not in found


# ---------------------------------------------------------------- circumstances


def test_parts_earn_parts(t4):
    shares = shares_of(t4)
    assert checks.grade("03-5", plain(shares | {"bytes": 0.9}), t4).fraction == 0.5
    assert checks.grade("03-6", {"normalisation": 245, "element-wise": 9}, t4).fraction == 0.5
    wrong = verdicts_of(t4) | {"large matmul": "memory", "embedding": "compute"}
    assert checks.grade("03-8", wrong, t4).fraction == 0.5
    assert checks.grade("03-8", dict.fromkeys(wrong, "memory"), t4).fraction == 0
    half = {"few rows": "memory", "many rows": "memory"}
    assert checks.grade("03-9", half, t4).fraction == 0.5


def test_without_its_measurement_an_exercise_says_so():
    empty = Context(Evidence("03_matmul_vs_pointwise", "test", seed=11), devices.get("t4"), seed=11)
    buckets = {"few rows": "memory", "many rows": "compute"}
    assert checks.grade("03-9", buckets, empty).key == "not_measured"
    verdicts = dict.fromkeys(nb03.eight(), "memory") | {"large matmul": "compute"}
    for exercise, answer in (("03-7", 180), ("03-8", verdicts)):
        outcome = checks.grade(exercise, answer, empty)
        assert outcome.key == "no_ceiling" and "section 4" in outcome.next_step
        assert checks.grade(exercise, answer, Context(seed=11)).key == "no_ceiling"


@pytest.mark.parametrize(
    "value",
    [
        7,
        {},
        {"bandwidth": 1.0},
        {"bandwidth": -1.0, "rates": {"fp16": 1.0}, "vector_rate": 1.0},
        {"bandwidth": 1e11, "rates": {"fp32": 1e12}, "vector_rate": 1e12},
        {"bandwidth": 1e11, "rates": {"fp16": "fast"}, "vector_rate": 1e12},
    ],
)
def test_a_ceiling_edited_by_hand_is_named(t4, value):
    if isinstance(value, dict) and value:
        value = {"label": "x", "device": "x", "origin": "x"} | value
    t4.evidence.add(Record("03-0", "measurement", value, label="ceiling"))
    verdicts = dict.fromkeys(nb03.eight(), "memory") | {"large matmul": "compute"}
    for exercise, answer in (("03-7", 180), ("03-8", verdicts)):
        outcome = checks.grade(exercise, answer, t4)
        assert (outcome.state, outcome.key) == ("not_yet", "damaged")
        assert outcome.expected and outcome.next_step


def test_a_measurement_edited_by_hand_is_named(t4):
    bad = kit.measurement("03-9", "few rows", 1e-4)
    del bad.value["work"]
    t4.evidence.add(bad)
    buckets = {"few rows": "memory", "many rows": "compute"}
    assert checks.grade("03-9", buckets, t4).key == "damaged"


def cpu_context(factors=(1.0, 0.5, 2.0, 1.0)):
    made = ceiling_of(devices.get("t4"), bandwidth=2e10, rates={"fp32": 2e11}, vector_rate=1e11)
    records = [made, *records_of(devices.get("t4"), factors)[1:]]
    return kit.context(None, "03_matmul_vs_pointwise", records)


def test_on_a_cpu_the_expectations_are_its_own():
    cpu = cpu_context()
    rows = nb03.rows_at(10, nb03.CPU_WIDTH, nb03.CPU_WIDTH, 4)  # about 20: fp32 needs twice
    assert 20 < rows < 21
    assert checks.grade("03-7", rows, cpu).state == "right"
    assert "free" not in checks.grade("03-7", rows, cpu).insight
    assert checks.grade("03-7", 10.0, cpu).key == "ridge"
    assert checks.grade("03-7", 183, cpu).key == "off"
    verdicts = dict.fromkeys(nb03.eight(), "memory")
    verdicts |= {"attention scores": "near", "large matmul": "compute"}
    assert "CPU" in checks.grade("03-8", verdicts, cpu).insight
    assert checks.grade("03-8", verdicts | {"gelu": "compute"}, cpu).state == "not_yet"
    buckets = {"few rows": "memory", "many rows": "compute"}
    assert checks.grade("03-9", buckets, cpu).state == "right"


@pytest.mark.parametrize("factors", [(2.1, 1.3, 2.0, 1.0), (1.0, 0.9, 1.0, 1.0)])
def test_a_cpu_that_shows_something_else_cannot_tell(factors):
    outcome = checks.grade(
        "03-9", {"few rows": "memory", "many rows": "compute"}, cpu_context(factors)
    )
    assert (outcome.state, outcome.fraction) == ("cannot_tell", 0.0)
    assert outcome.expected and outcome.next_step


def test_what_ifs_that_settle_nothing_cannot_tell(t4):
    t4.evidence.add(kit.measurement("03-9", nb03.LABELS[1], 2e-4))  # slower with half
    outcome = checks.grade("03-9", {"few rows": "memory", "many rows": "compute"}, t4)
    assert (outcome.key, outcome.state) == ("unclear", "cannot_tell")


def test_times_that_nothing_moves_leave_overhead(t4):
    t4.evidence.add(kit.measurement("03-9", nb03.LABELS[1], 1e-4))
    answer = {"few rows": "overhead", "many rows": "compute"}
    assert checks.grade("03-9", answer, t4).state == "right"
    answer = {"few rows": "memory", "many rows": "compute"}
    assert checks.grade("03-9", answer, t4).key == "few_as_memory"


def test_many_rows_that_do_not_double_are_not_compute_bound(t4):
    t4.evidence.add(kit.measurement("03-9", nb03.LABELS[2], 1e-3))
    answer = {"few rows": "memory", "many rows": "compute"}
    assert checks.grade("03-9", answer, t4).key == "many_as_compute"


def test_a_card_the_course_does_not_know_is_judged_by_its_own_ceiling():
    t4 = devices.get("t4")
    known = context_on("t4")
    unknown = Context(known.evidence, None, cpu=False, seed=11)
    assert checks.grade("03-7", rows_of(known), unknown).state == "right"
    paper = nb03.rows_at(roofline.ridge(roofline.datasheet(t4), "fp16"), 8192, 8192, 2)
    assert checks.grade("03-7", paper, unknown).key == "off"
    assert checks.grade("03-8", verdicts_of(unknown), unknown).state == "right"


def test_a_layer_that_never_reaches_the_ridge_cannot_be_told(t4):
    t4.evidence.add(ceiling_of(t4.device, bandwidth=1e9))  # a ridge of 41,910
    assert checks.grade("03-7", 183, t4).state == "cannot_tell"


def test_a_prediction_that_failed_is_told_and_costs_nothing(t4):
    buckets = {"few rows": "memory", "many rows": "compute"}
    assert "All 4 predictions held" in checks.grade("03-9", buckets, t4).insight
    t4.evidence.add(Record("03-9", "prediction", "about half", label=nb03.LABELS[0]))
    outcome = checks.grade("03-9", buckets, t4)
    assert outcome.fraction == 1.0 and "3 of 4 predictions held" in outcome.insight


def test_a_simulated_number_says_so_in_feedback(t4):
    answers = {"03-7": rows_of(t4), "03-9": {"few rows": "memory", "many rows": "compute"}}
    for exercise, answer in answers.items():
        assert "simulated" not in checks.grade(exercise, answer, t4).insight
    t4.evidence.records = [dataclasses.replace(r, origin="simulated") for r in t4.evidence.records]
    for exercise, answer in answers.items():
        assert "(simulated)" in checks.grade(exercise, answer, t4).insight


def test_inputs_and_cases_differ_between_learners_and_repeat_for_one():
    for exercise in ("03-3", "03-4"):
        assert checks.inputs(exercise, 1) == checks.inputs(exercise, 1)
        assert checks.inputs(exercise, 1) != checks.inputs(exercise, 2)
    for exercise in ("03-1", "03-5"):
        assert checks.case(exercise, 1) == checks.case(exercise, 1)
        assert len({str(checks.case(exercise, seed)) for seed in range(20)}) > 5


@pytest.mark.parametrize("seed", range(40))
def test_for_every_learner_right_is_right_and_each_mistake_is_named(seed):
    """Numbers drawn by chance must not make two answers the same."""
    context = Context(Evidence("03_x", "test", seed=seed), devices.get("t4"), seed=seed)
    ridge, shares = ridge_of(context), shares_of(context)
    assert checks.grade("03-1", ridge, context).state == "right"
    assert checks.grade("03-1", round(ridge), context).state == "right"
    assert checks.grade("03-5", shares, context).state == "right"
    b = nb03.block(**context.case("03-5"))
    for key, value in {"of_the_products": b.relu_bytes / b.product_bytes,
                       "of_the_ideal": b.relu_bytes / b.ideal_bytes,
                       "one_way": shares["bytes"] / 2}.items():  # fmt: skip
        assert checks.grade("03-5", shares | {"bytes": value}, context).key == key
    for exercise, mistakes in (("03-3", nb03.MATMUL_MISTAKES), ("03-4", nb03.POINTWISE_MISTAKES)):
        for key, mistake in mistakes.items():
            assert checks.grade(exercise, calls(exercise, mistake, seed), context).key == key


def test_effects_have_wide_bands():
    words = {0.5: 0, 0.74: 0, 0.8: 1, 1.0: 1, 1.3: 1, 1.5: 2, 2.0: 2}
    assert {f: nb03.effect(f) for f in words} == {f: nb03.EFFECTS[i] for f, i in words.items()}
