"""Every grader of notebook 07 in both directions: stub, solution, other right forms, mistakes."""

import dataclasses

import numpy as np
import pytest
import torch

from helpers import checks, counting, devices, inference
from helpers.checks import nb07
from helpers.checks.engine import Context
from helpers.decoder import Decoder
from helpers.evidence import Evidence, Record
from tests.checks import kit

plain, calls = kit.plain, kit.calls
STEM = "07_inference_stages"
OPERATIONS, HOST = 163, 20e-6  # operations of the small model's step, s for each
WALL = OPERATIONS * HOST
LLAMA = inference.model()
SHARE = 100 * 107.0 / 2e12  # per cent for each byte of a step

STUBS = {
    "07-4": dict.fromkeys(nb07.COUNTED, ...),
    "07-5": {"us per operation": ..., "bucket": ...},
    "07-6": dict.fromkeys(nb07.STAGES, ...),
    "07-7": dict.fromkeys(nb07.REMOVED, ...),
    "07-9": {"decode": ..., "prefill": ...},
    "07-11": dict.fromkeys(nb07.RECAP, ...),
}


def run(label, wall, gpu=None, ops=OPERATIONS):
    record = kit.measurement("07-5", label, gpu or wall, 32_000_000, ops=ops, value={"wall": wall})
    return record


def trial(label, seconds, moved=90_000_000):
    return kit.measurement("07-9", label, seconds, moved)


def records(device):
    """A learner for whom everything came out as it should, at that device's datasheet."""
    one = 90e6 / (device.bandwidth if device else 2e10)
    much = 184e9 / (device.peak["fp16"] if device else 1e12)
    kept = [
        run("decode", WALL, gpu=WALL / 9),
        run("prompt", 1.02 * WALL, gpu=WALL / 8),
        run("decode, graph", WALL / 9, ops=0),
        trial("decode", one),
        trial("int8 in decode", 0.52 * one),
        trial("eight rows in decode", 1.01 * one),
        trial("prefill", much),
        trial("int8 in prefill", 1.2 * much),
    ]
    held = ("about half", "about the same", "about the same")
    kept += [
        Record("07-9", "prediction", word, label=n) for n, word in zip(nb07.INT8, held, strict=True)
    ]
    return kept


@pytest.fixture(params=kit.CARDS)
def context(request):
    return kit.context(request.param, STEM, records(devices.get(request.param)))


@pytest.fixture
def t4():
    return kit.context("t4", STEM, records(devices.get("t4")))


@pytest.fixture
def cpu():
    return kit.context(None, STEM, records(None))


def test_a_stub_is_not_started(t4):
    kit.assert_stubs("07", STUBS, t4)


US = WALL / OPERATIONS * 1e6
HOST_ANSWER = {"us per operation": US, "bucket": "overhead"}
VERDICT = {"decode": "memory", "prefill": "compute"}
EVEN = LLAMA.layer_matrices / LLAMA.hidden


def spellings(exercise, table):
    """Four right forms of a table of words."""
    return [
        (exercise, dict(table)),
        (exercise, {k: v.upper() for k, v in table.items()}),
        (exercise, {k: f" {v} " for k, v in reversed(table.items())}),
        (exercise, {k: np.str_(v) for k, v in table.items()}),
    ]


def right_forms():
    ref = nb07.decode_intensity
    rows = [
        ("07-1", 1 / (1 / 32 + 2 / 4096)),
        ("07-1", 32),
        ("07-1", np.float32(31.5)),
        ("07-1", torch.tensor(31.0)),
        ("07-2", "c"),
        ("07-2", "C"),
        ("07-2", " c "),
        ("07-2", np.str_("c")),
        ("07-3", calls("07-3", ref)),
        ("07-3", calls("07-3", lambda *a: np.float64(ref(*a)))),
        ("07-3", calls("07-3", lambda *a: torch.tensor(ref(*a)))),
        ("07-3", calls("07-3", lambda *a: round(ref(*a), 4))),
        ("07-4", dict(nb07.COUNTED)),
        ("07-4", {k: float(f"{v:.2g}") for k, v in nb07.COUNTED.items()}),
        ("07-4", {k: np.float32(v) for k, v in reversed(nb07.COUNTED.items())}),
        ("07-4", {k: torch.tensor(1.01 * v) for k, v in nb07.COUNTED.items()}),
        ("07-4", {k: [v] for k, v in nb07.COUNTED.items()}),
        ("07-5", HOST_ANSWER),
        ("07-5", {"bucket": " Overhead", "us per operation": round(US, 1)}),
        ("07-5", {"bucket": "OVERHEAD", "us per operation": np.float64(US)}),
        ("07-5", {"bucket": "overhead", "us per operation": torch.tensor(US * 1.01)}),
        *spellings("07-6", nb07.STAGES),
        *spellings("07-7", nb07.REMOVED),
        ("07-8", LLAMA.weights * SHARE),
        ("07-8", 72),
        ("07-8", 72.1),
        ("07-8", np.float32(72.1)),
        ("07-8", torch.tensor(72.10)),
        *spellings("07-9", VERDICT),
        ("07-10", EVEN),
        ("07-10", 49_000),
        ("07-10", np.int64(49408)),
        ("07-10", torch.tensor(5e4)),
        *spellings("07-11", nb07.RECAP),
    ]
    return rows


def wrong_forms():
    exact, nan = 1 / (1 / 32 + 2 / 4096), float("nan")
    mbu = LLAMA.weights * SHARE
    cells = dict(nb07.COUNTED)
    rows = [
        ("07-1", 1, "one_row"),
        ("07-1", 1365, "square"),
        ("07-1", 15.75, "one_flop"),
        ("07-1", 63, "per_element"),
        ("07-1", 1 / exact, "inverted"),
        ("07-1", 20, "off"),
        ("07-1", exact * 1000, "times_1000"),
        ("07-1", None, "none"),
        ("07-1", "32", "not_a_number"),
        ("07-1", nan, "not_finite"),
        ("07-1", -32, "not_positive"),
        ("07-1", [32, 32], "not_a_number"),
        ("07-2", "a", "picked_a"),
        ("07-2", "b", "picked_b"),
        ("07-2", "d", "picked_d"),
        ("07-2", 3, "not_an_option"),
        ("07-3", calls("07-3", lambda *a: 17.0), "constant"),
        ("07-3", calls("07-3", lambda b, *a: 17.0 + b), "off"),
        ("07-3", calls("07-3", lambda *a: None), "returned_none"),
        ("07-3", [{"value": None}, *calls("07-3", lambda *a: 1.0)[1:]], "sometimes_none"),
        ("07-3", calls("07-3", lambda *a: "9"), "not_a_number"),
        ("07-3", 9.6, "not_a_function"),
        ("07-3", [{"error": "ZeroDivisionError: division by zero"}] * 4, "raised"),
        ("07-4", cells | {"prefill weights": 2048}, "no_activations"),
        ("07-4", cells | {"prefill weights": 1 / 1185.54}, "inverted"),
        ("07-4", cells | {"prefill weights": 525.5}, "whole_step"),
        ("07-4", cells | {"decode 32 attention": 32}, "cache_batched"),
        ("07-4", cells | {"decode 32 weights": 1.0}, "one_row"),
        ("07-4", cells | {"decode 32 weights": 9.49}, "whole_step"),
        ("07-4", cells | {"prefill rest": 0.4}, "off"),
        ("07-4", cells | {"prefill rest": "0.19"}, "not_a_number"),
        ("07-4", cells | {"prefill attention": ...}, "rows_missing"),
        ("07-4", 9.6, "not_a_table"),
        ("07-5", HOST_ANSWER | {"us per operation": WALL * 1e6}, "whole"),
        ("07-5", HOST_ANSWER | {"us per operation": US / 9}, "gpu_time"),
        ("07-5", HOST_ANSWER | {"us per operation": US / 1e3}, "milliseconds"),
        ("07-5", HOST_ANSWER | {"us per operation": US / 1e6}, "in_seconds"),
        ("07-5", HOST_ANSWER | {"us per operation": 1e6 / US}, "per_second"),
        ("07-5", HOST_ANSWER | {"us per operation": US * 1.3}, "off"),
        ("07-5", HOST_ANSWER | {"us per operation": nan}, "not_finite"),
        ("07-5", HOST_ANSWER | {"bucket": "memory"}, "contradicted"),
        ("07-5", HOST_ANSWER | {"bucket": "compute"}, "contradicted"),
        ("07-5", HOST_ANSWER | {"bucket": "launch"}, "not_an_option"),
        ("07-5", {"bucket": "overhead"}, "rows_missing"),
        ("07-6", nb07.STAGES | {"prefill": "fast"}, "not_an_option"),
        ("07-6", {"prefill": "compute"}, "rows_missing"),
        ("07-6", "memory", "not_a_table"),
        ("07-7", nb07.REMOVED | {"int8": "time"}, "not_an_option"),
        ("07-8", 14e9 * SHARE, "seven"),
        ("07-8", 71, "other_inputs"),
        ("07-8", LLAMA.step_weights * 107 / 2.039e12 * 100, "both_other"),
        ("07-8", mbu / 100, "fraction"),
        ("07-8", mbu * 25.5 / 107, "eager"),
        ("07-8", mbu / 2, "half"),
        ("07-8", mbu * 2, "double"),
        ("07-8", mbu * 1000, "times_1000"),
        ("07-8", 60, "off"),
        ("07-8", -72, "not_positive"),
        ("07-9", VERDICT | {"decode": "compute"}, "decode_contradicted"),
        ("07-9", VERDICT | {"decode": "overhead"}, "decode_contradicted"),
        ("07-9", VERDICT | {"prefill": "memory"}, "prefill_contradicted"),
        ("07-9", VERDICT | {"prefill": "link"}, "not_an_option"),
        ("07-10", EVEN / 2, "no_mask"),
        ("07-10", EVEN * 2, "one_product"),
        ("07-10", LLAMA.layer_matrices / 128, "other_level"),
        ("07-10", LLAMA.matrices / 4096, "other_level"),
        ("07-10", 4096, "off"),
        ("07-10", 0, "not_positive"),
        ("07-11", {"memory": "decode"}, "rows_missing"),
    ]
    for name, mistake in nb07.INTENSITY_MISTAKES.items():
        rows.append(("07-3", calls("07-3", mistake), name))
    options = {
        "07-6": (nb07.STAGES, ("memory", "compute", "overhead", "link")),
        "07-7": (nb07.REMOVED, ("launches", "bytes", "trips", "arithmetic")),
        "07-11": (nb07.RECAP, tuple(nb07.RECAP.values())),
    }
    for exercise, (truth, words) in options.items():
        for entry, true in truth.items():
            for word in words:
                if word != true:
                    key = f"{entry} as {word}".replace(" ", "_")
                    rows.append((exercise, truth | {entry: word}, key))
    return rows


def test_every_right_form_gets_full_marks_on_every_card(context):
    kit.assert_right(right_forms(), context)


def test_every_planted_mistake_gets_its_own_message(context):
    kit.assert_wrong(wrong_forms(), context)


def test_each_exercise_has_right_forms_and_mistakes():
    kit.assert_covered("07", right_forms(), wrong_forms())


def test_no_two_mistakes_of_the_formula_look_alike_for_any_seed():
    for seed in range(30):
        for name, mistake in nb07.INTENSITY_MISTAKES.items():
            where = Context(Evidence(STEM, "test", seed=seed), devices.get("t4"), seed=seed)
            answer = plain(calls("07-3", mistake, seed))
            assert checks.grade("07-3", answer, where).key == name, (seed, name)


def test_the_formula_is_that_of_the_inference_room():
    from helpers import roofline

    roof = roofline.datasheet(devices.get("t4"))
    for batch, context in [(1, 1), (32, 2048), (200, 100)]:
        step = inference.decode(LLAMA, roof, batch, context)
        mine = nb07.decode_intensity(batch, context, LLAMA.matrices, 2, LLAMA.kv_bytes)
        assert mine == pytest.approx(step.intensity, rel=1e-3)  # it leaves the norms' weights out


def test_the_table_is_what_the_real_shapes_are_counted_at():
    paper = Decoder(device="meta").eval()
    for stage, batch, rows in [("prefill", 1, 2048), ("decode 1", 1, 1), ("decode 32", 32, 1)]:
        paper.start(batch, 2048)
        tokens = torch.empty(batch, rows, dtype=torch.long, device="meta")
        with torch.no_grad():
            work = counting.count(paper, tokens, tokens[0])
        for kind, part in (("matmul", "weights"), ("attention", "attention"), (None, "rest")):
            mine = [
                op
                for op in work.ops
                if (op.kind == kind if kind else op.kind not in ("matmul", "attention"))
            ]
            name = f"{stage} {part}"
            if stage == "prefill":
                assert pytest.approx(work.flops / work.bytes_unfused, rel=1e-4) == 525.48
            if name in nb07.COUNTED:
                got = sum(op.flops for op in mine) / sum(op.bytes for op in mine)
                assert nb07.COUNTED[name] == pytest.approx(got, rel=1e-4), name


def test_the_weights_cross_a_little_above_the_ridge():
    paper = Decoder(device="meta").eval()
    moved = {}
    for batch in (1, 32, 218):
        paper.start(batch, 16)
        tokens = torch.empty(batch, 1, dtype=torch.long, device="meta")
        with torch.no_grad():
            work = counting.count(paper, tokens, tokens[0])
        mine = [op for op in work.ops if op.kind == "matmul"]
        moved[batch] = sum(op.bytes for op in mine)
        intensity = sum(op.flops for op in mine) / moved[batch]
        assert nb07.weights_crossing(intensity) == pytest.approx(batch, rel=1e-6)
    assert (moved[32] - moved[1]) / 31 == nb07.ACTIVATIONS
    assert nb07.weights_crossing(65e12 / 320e9) == pytest.approx(218, abs=1)


def test_a_wrong_entry_costs_its_share(t4):
    one = nb07.COUNTED | {"prefill weights": 2048}
    two = one | {"decode 32 weights": 1.0}
    assert checks.grade("07-4", one, t4).fraction == pytest.approx(5 / 6)
    assert checks.grade("07-4", two, t4).fraction == pytest.approx(4 / 6)
    assert checks.grade("07-5", HOST_ANSWER | {"bucket": "memory"}, t4).fraction == 0.5
    assert checks.grade("07-5", HOST_ANSWER | {"us per operation": 1.0}, t4).fraction == 0.5
    both = {"us per operation": 1.0, "bucket": "memory"}
    assert checks.grade("07-5", both, t4).fraction == 0.0
    assert checks.grade("07-9", VERDICT | {"decode": "compute"}, t4).fraction == 0.5
    stages = nb07.STAGES | {"prefill": "memory", "loading": "memory", "sampling": "memory"}
    assert checks.grade("07-6", stages, t4).fraction == pytest.approx(6 / 9)


def test_without_its_measurement_an_exercise_says_so():
    for exercise, answer in [("07-5", HOST_ANSWER), ("07-9", VERDICT)]:
        assert checks.grade(exercise, answer, Context()).key == "not_measured"


def test_a_record_edited_by_hand_is_named(t4):
    for change in ({"wall": None}, {"wall": "1"}, {"wall": True}, {"wall": 0.0}, {"wall": -1.0}):
        t4.evidence.records[0].value.update(change)
        assert checks.grade("07-5", HOST_ANSWER, t4).key == "damaged"
    t4.evidence.records[0].value["wall"] = WALL
    t4.evidence.records[0].value["work"]["kernels"] = 0
    assert checks.grade("07-5", HOST_ANSWER, t4).key == "damaged"
    t4.evidence.records[3].value["samples"] = []
    assert checks.grade("07-9", VERDICT, t4).key == "damaged"


def test_on_a_cpu_what_is_absent_cannot_be_told(cpu):
    outcome = checks.grade("07-5", HOST_ANSWER, cpu)
    assert (outcome.state, outcome.key, outcome.fraction) == ("cannot_tell", "no_queue", 0.0)
    wrong = HOST_ANSWER | {"us per operation": 1.0}
    assert checks.grade("07-5", wrong, cpu).state == "not_yet"
    assert checks.grade("07-9", VERDICT, cpu).state == "right"
    drifted = VERDICT | {"decode": "compute"}
    assert checks.grade("07-9", drifted, cpu).state == "cannot_tell"
    paper = [row for row in right_forms() if row[0] not in ("07-5", "07-9")]
    kit.assert_right(paper, cpu)


def test_an_unknown_card_is_judged_by_its_own_times():
    unknown = dataclasses.replace(kit.context("t4", STEM, records(devices.get("t4"))), device=None)
    kit.assert_right(right_forms(), unknown)
    assert "of this card" not in checks.grade("07-4", dict(nb07.COUNTED), unknown).insight


def change(context, exercise, label, **value):
    context.measurement(exercise, label).value.update(value)


def test_a_host_that_keeps_up_settles_nothing(t4):
    change(t4, "07-5", "decode, graph", wall=WALL * 0.9)
    outcome = checks.grade("07-5", HOST_ANSWER, t4)
    assert (outcome.state, outcome.key) == ("cannot_tell", "unclear")
    assert outcome.expected and outcome.next_step


def test_a_wrong_number_is_told_even_where_the_bucket_is_unclear(t4):
    change(t4, "07-5", "decode, graph", wall=WALL * 0.9)
    outcome = checks.grade("07-5", HOST_ANSWER | {"us per operation": WALL * 1e6}, t4)
    assert (outcome.state, outcome.key) == ("not_yet", "whole")


def test_a_card_with_a_low_ridge_is_told_no_falsehood():
    old = kit.context("p100_pcie", STEM)
    said = checks.grade("07-1", 32, old).insight
    assert "still wait" not in said and "already past" in said
    step = nb07.decode_intensity(32, 2048, LLAMA.matrices, 2, LLAMA.kv_bytes)
    for device in devices.all_devices():  # as the message of 07-6 says
        assert step < device.peak["fp16"] / device.bandwidth, device.name


def test_a_prompt_that_costs_something_is_told(t4):
    assert "shown twice" in checks.grade("07-5", HOST_ANSWER, t4).insight
    change(t4, "07-5", "prompt", wall=WALL * 2)
    assert "shown twice" not in checks.grade("07-5", HOST_ANSWER, t4).insight


def test_the_verdicts_follow_the_measured_times(t4):
    one = t4.measurement("07-9", "decode").value["samples"][0]
    change(t4, "07-9", "int8 in decode", samples=[one] * 5)
    assert checks.grade("07-9", VERDICT, t4).state == "cannot_tell"
    change(t4, "07-9", "int8 in decode", samples=[one / 2] * 5)
    much = t4.measurement("07-9", "prefill").value["samples"][0]
    change(t4, "07-9", "int8 in prefill", samples=[much / 2] * 5)
    assert checks.grade("07-9", VERDICT, t4).key == "prefill_contradicted"
    assert checks.grade("07-9", VERDICT | {"prefill": "memory"}, t4).state == "right"


def test_a_prediction_that_failed_is_told_and_costs_nothing(t4):
    assert "All your predictions held" in checks.grade("07-9", VERDICT, t4).insight
    t4.evidence.add(Record("07-9", "prediction", "about double", label="int8 in prefill"))
    outcome = checks.grade("07-9", VERDICT, t4)
    assert outcome.fraction == 1.0 and "2 of 3 predictions held" in outcome.insight


def test_a_simulated_number_says_so_in_feedback(t4):
    answers = {"07-5": HOST_ANSWER, "07-9": VERDICT}
    for exercise, answer in answers.items():
        assert "simulated" not in checks.grade(exercise, answer, t4).insight
    t4.evidence.records = [dataclasses.replace(r, origin="simulated") for r in t4.evidence.records]
    for exercise, answer in answers.items():
        assert "(simulated)" in checks.grade(exercise, answer, t4).insight


def test_the_insights_speak_of_the_card_at_hand():
    said = {
        key: checks.grade("07-6", nb07.STAGES, kit.context(key, STEM)).insight for key in kit.CARDS
    }
    assert len(set(said.values())) == len(kit.CARDS)
    assert "41.3 ms" in said["t4"] and "0.86 s" in said["t4"]
    assert "6.48 ms" in said["a100_80_sxm"] and "0.43 s" in said["a100_80_sxm"]


def test_effects_have_wide_bands():
    words = {0.5: 0, 0.74: 0, 0.8: 1, 1.0: 1, 1.3: 1, 1.5: 2, 2.0: 2}
    assert {f: nb07.effect(f) for f in words} == {f: nb07.EFFECTS[i] for f, i in words.items()}


def test_inputs_differ_between_learners_and_repeat_for_one():
    assert checks.inputs("07-3", 1) == checks.inputs("07-3", 1)
    assert checks.inputs("07-3", 1) != checks.inputs("07-3", 2)


def test_the_published_utilisations():
    # 6.74e9 parameters over 2.0 TB/s give 72 %, 7 billion 75 %, the datasheet's 2.039 TB/s 71 %
    assert round(LLAMA.weights * SHARE) == 72
    assert round(14e9 * SHARE) == 75
    assert round(LLAMA.weights * 107 / 2.039e12 * 100) == 71
