"""Every grader of notebook 09 in both directions, on the numbers of several learners."""

import random

import numpy as np
import pytest
import torch

from helpers import checks, devices
from helpers.checks import cases, nb09
from helpers.checks.cases import Case
from helpers.checks.engine import Context
from helpers.evidence import Evidence
from helpers.roofline import datasheet, vector_budget
from tests.checks import kit

STEM = "09_self_test"
SEEDS = range(60)
DIAGNOSES = ("09-9", "09-10", "09-11")


def learner(seed=kit.SEED, key="t4"):
    device = devices.get(key) if key else None
    return Context(Evidence(STEM, "test", seed=seed), device, cpu=key is None, seed=seed)


@pytest.fixture(params=[*kit.CARDS, None])
def where(request):
    """On every card, on a CPU: the questions name their own cards."""
    return learner(key=request.param)


@pytest.fixture
def t4():
    return learner()


# ---------------------------------------------------------------- the solution, from the numbers


def solution(context):
    """Worked out from what lab.case prints, by arithmetic of this module's own."""
    case = context.case
    flat, wave, card = case("09-1"), case("09-2"), case("09-3")
    shape, idle, relu = case("09-4"), case("09-5"), case("09-6")
    trip = 2 * wave["elements"] * wave["bytes_each"] / (wave["gb_per_s"] * 1e6)
    side, rows = shape["side"], shape["rows"]
    busy = idle["busy_percent"] / 100
    answers = {
        "09-1": {
            "arithmetic": "excluded",
            "own bytes": "excluded",
            "shared bytes": "possible",
            "launches": "possible",
            "arithmetic_ms": flat["ms_then"] / (flat["more_rows"] / flat["rows"]),
            "test": "graph",
        },
        "09-2": {"once": trip, "twice": 2 * trip, "fused": trip},
        "09-3": {
            "crash": "capacity",
            "context": "capacity",
            "tokens": "bandwidth",
            "twins": "bandwidth",
            "token_ms": 1000 * card["weights_gb"] / card["gb_per_s"],
        },
        "09-4": {
            "square": side / 3,
            "pointwise": 0.25,
            "rows": 1 / (1 / rows + 2 / 4096),
            "square_is": "compute" if side > 3 * shape["ridge"] else "memory",
            "rows_is": "memory",
            "because": "b",
        },
        "09-5": {
            "bucket": "overhead",
            "free kernels": 100 / (100 - idle["busy_percent"]),
            "no gaps": 1 / busy,
            "usd": idle["usd_before"] / idle["speedup"],
        },
        "09-6": {
            "memory_ms": 2000 * relu["gb"] / relu["gb_per_s"],
            "arithmetic_ms": relu["gb"] / 2 / relu["vector_tops"],
            "bucket": "memory",
            "utilisation": "full",
        },
        "09-7": pictures(case("09-7")["picture"]),
        "09-8": kit.calls("09-8", cases.explain, context.seed),
    }
    return answers | {name: diagnosis(case(name)) for name in DIAGNOSES}


def pictures(number):
    rows = {
        "compute": {"bucket": "compute", "halve": "FLOPs", "remedy": "tensor cores"},
        "memory": {"bucket": "memory", "halve": "bytes", "remedy": "fusion"},
        "overhead": {"bucket": "overhead", "halve": "neither", "remedy": "CUDA graph"},
    }
    return {letter: dict(rows[bucket]) for letter, bucket in cases.buckets_of(number).items()}


def diagnosis(step):
    compute = step["tflop"] / step["tflop_per_s"] * 1e3
    memory = step["gb"] / step["gb_per_s"] * 1e3
    host = step["launches"] * step["us_each"] / 1e3
    share = 100 * max(compute, memory, host) / step["ms"]
    if share < 60:
        return {"verdict": "another test", "explains": share, "next": "look at the trace"}
    if share > 110:
        return {"verdict": "another test", "explains": share, "next": "time it again"}
    if host > max(compute, memory):
        return {"verdict": "overhead", "explains": share, "next": "fewer launches"}
    if compute > memory:
        return {"verdict": "compute", "explains": share, "next": "cheaper arithmetic"}
    return {"verdict": "memory", "explains": share, "next": "fewer bytes"}


def mapped(answer, number=None, word=None):
    """The answer with each number, and each word, put through a function."""
    if isinstance(answer, dict):
        return {k: mapped(v, number, word) for k, v in answer.items()}
    if isinstance(answer, str):
        return word(answer) if word else answer
    return number(answer) if number else answer


def right_forms(context):
    answers = solution(context)
    rows = list(answers.items())
    for name, answer in answers.items():
        if name == "09-8":
            continue
        rows += [
            (name, mapped(answer, np.float32, str.upper)),
            (name, mapped(answer, torch.tensor, lambda w: f" {w.title()} ")),
            (name, dict(reversed(mapped(answer, lambda v: float(f"{v:.4g}"), np.str_).items()))),
        ]
    forms = [
        lambda *a: list(cases.explain(*a)),
        lambda *a: (cases.explain(*a)[0].upper(), np.float64(cases.explain(*a)[1])),
        lambda *a: (np.str_(cases.explain(*a)[0]), torch.tensor(cases.explain(*a)[1])),
        lambda t, c, m, h: (cases.explain(1e3 * t, 1e3 * c, 1e3 * m, 1e3 * h)[0],
                            t - max((c, m, h))),
    ]  # fmt: skip
    return rows + [("09-8", kit.calls("09-8", form, context.seed)) for form in forms]


# ---------------------------------------------------------------- both directions

STUBS = {
    "09-1": dict.fromkeys((*nb09.LIMITS, "arithmetic_ms", "test"), ...),
    "09-2": {"once": ..., "twice": ..., "fused": ...},
    "09-3": dict.fromkeys((*nb09.PHENOMENA, "token_ms"), ...),
    "09-4": dict.fromkeys(("square", "pointwise", "rows", "square_is", "rows_is", "because"), ...),
    "09-5": {"bucket": ..., "free kernels": ..., "no gaps": ..., "usd": ...},
    "09-6": {"memory_ms": ..., "arithmetic_ms": ..., "bucket": ..., "utilisation": ...},
    "09-7": {letter: {"bucket": ..., "halve": ..., "remedy": ...} for letter in "ABC"},
} | {name: {"verdict": ..., "explains": ..., "next": ...} for name in DIAGNOSES}


def test_a_stub_is_not_started(where):
    kit.assert_stubs("09", STUBS, where)


def test_every_right_form_gets_full_marks_everywhere(where):
    kit.assert_right(right_forms(where), where)


def test_the_solution_is_right_for_every_learner():
    for seed in SEEDS:
        context = learner(seed)
        kit.assert_right(solution(context).items(), context)


def test_each_exercise_has_right_forms_and_mistakes(t4):
    kit.assert_covered("09", right_forms(t4), wrong_forms(t4))


def wrong_forms(context):
    a, case = solution(context), context.case
    flat, card = case("09-1"), case("09-3")
    idle, relu = case("09-5"), case("09-6")
    share = flat["rows"] / flat["more_rows"]
    trip = a["09-2"]["once"]
    usd = idle["usd_before"]
    nan = float("nan")

    def but(name, **changes):
        return a[name] | {k.replace("__", " "): v for k, v in changes.items()}

    rows = [
        ("09-1", but("09-1", arithmetic="possible"), "arithmetic_as_possible"),
        ("09-1", but("09-1", own__bytes="possible"), "own_bytes_as_possible"),
        ("09-1", but("09-1", shared__bytes="excluded"), "shared_bytes_as_excluded"),
        ("09-1", but("09-1", launches="excluded"), "launches_as_excluded"),
        ("09-1", but("09-1", arithmetic_ms=flat["ms"] * share), "arithmetic_ms_first"),
        ("09-1", but("09-1", arithmetic_ms=flat["ms_then"]), "arithmetic_ms_unscaled"),
        ("09-1", but("09-1", arithmetic_ms=flat["ms"]), "arithmetic_ms_whole"),
        (
            "09-1",
            but("09-1", arithmetic_ms=flat["ms_then"] - flat["ms"]),
            "arithmetic_ms_difference",
        ),
        ("09-1", but("09-1", arithmetic_ms=flat["ms_then"] * 0.77), "arithmetic_ms_off"),
        ("09-1", but("09-1", arithmetic_ms=flat["ms_then"] * share / 1e3), "per_1000"),
        ("09-1", but("09-1", arithmetic_ms=None), "none"),
        ("09-1", but("09-1", arithmetic_ms="1 ms"), "not_a_number"),
        ("09-1", but("09-1", arithmetic_ms=nan), "not_finite"),
        ("09-1", but("09-1", arithmetic_ms=-1), "not_positive"),
        ("09-1", but("09-1", test="more rows"), "test_as_more_rows"),
        ("09-1", but("09-1", test="more memory"), "test_as_more_memory"),
        ("09-1", but("09-1", test="faster arithmetic"), "test_as_faster_arithmetic"),
        ("09-1", but("09-1", test="trace"), "not_an_option"),
        ("09-1", but("09-1", launches=...), "rows_missing"),
        ("09-1", [1, 2], "not_a_table"),
        ("09-2", mapped(a["09-2"], lambda v: v / 2), "once_read_only"),
        ("09-2", but("09-2", once=trip * 1.3), "once_off"),
        ("09-2", but("09-2", twice=trip), "twice_as_once"),
        ("09-2", but("09-2", twice=1.5 * trip), "twice_reads_once"),
        ("09-2", but("09-2", twice=3 * trip), "twice_off"),
        ("09-2", but("09-2", fused=2 * trip), "fused_as_twice"),
        ("09-2", but("09-2", fused=trip / 2), "fused_read_only"),
        ("09-2", but("09-2", fused=trip * 0.8), "fused_off"),
        ("09-2", mapped(a["09-2"], lambda v: v / 1e3), "per_1000"),
        ("09-2", mapped(a["09-2"], lambda v: v * 1e9 / 2**30), "gib"),
        ("09-2", mapped(a["09-2"], lambda v: v * 8), "bits"),
        ("09-2", {"once": trip}, "rows_missing"),
        ("09-3", but("09-3", crash="bandwidth"), "crash_as_bandwidth"),
        ("09-3", but("09-3", context="bandwidth"), "context_as_bandwidth"),
        ("09-3", but("09-3", tokens="capacity"), "tokens_as_capacity"),
        ("09-3", but("09-3", twins="capacity"), "twins_as_capacity"),
        (
            "09-3",
            but("09-3", token_ms=1e3 * card["memory_gb"] / card["gb_per_s"]),
            "token_ms_whole",
        ),
        ("09-3", but("09-3", token_ms=2 * a["09-3"]["token_ms"]), "token_ms_written"),
        ("09-3", but("09-3", token_ms=1e3 / a["09-3"]["token_ms"]), "token_ms_inverted"),
        ("09-3", but("09-3", token_ms=0.9 * a["09-3"]["token_ms"]), "token_ms_off"),
        ("09-3", but("09-3", twins="speed"), "not_an_option"),
        ("09-4", but("09-4", square=a["09-4"]["square"] / 2), "square_fp32"),
        ("09-4", but("09-4", square=a["09-4"]["square"] * 2), "square_elements"),
        ("09-4", but("09-4", square=a["09-4"]["square"] * 3), "square_side"),
        ("09-4", but("09-4", square=a["09-4"]["square"] * 1.2), "square_off"),
        ("09-4", but("09-4", pointwise=0.5), "pointwise_read_only"),
        ("09-4", but("09-4", pointwise=4), "pointwise_inverted"),
        ("09-4", but("09-4", pointwise=1), "pointwise_elements"),
        ("09-4", but("09-4", pointwise=0.125), "pointwise_off"),
        ("09-4", but("09-4", rows=4096 / 3), "rows_as_square"),
        ("09-4", but("09-4", rows=4096), "rows_weights_side"),
        ("09-4", but("09-4", rows=a["09-4"]["rows"] / 2), "rows_fp32"),
        ("09-4", but("09-4", rows=a["09-4"]["rows"] * 2), "rows_elements"),
        ("09-4", but("09-4", rows=a["09-4"]["rows"] * 1.3), "rows_off"),
        ("09-4", but("09-4", rows_is="compute"), "rows_is_as_compute"),
        ("09-4", but("09-4", because="a"), "because_as_a"),
        ("09-4", but("09-4", because="c"), "because_as_c"),
        ("09-4", but("09-4", because="d"), "because_as_d"),
        ("09-4", but("09-4", square=[1, 2]), "not_a_number"),
        ("09-5", but("09-5", bucket="memory"), "bucket_as_memory"),
        ("09-5", but("09-5", bucket="compute"), "bucket_as_compute"),
        ("09-5", but("09-5", free__kernels=a["09-5"]["no gaps"]), "free_kernels_swapped"),
        ("09-5", but("09-5", free__kernels=idle["speedup"]), "free_kernels_speedup"),
        ("09-5", but("09-5", free__kernels=1 - idle["busy_percent"] / 100),
         "free_kernels_share"),
        ("09-5", but("09-5", free__kernels=1.07), "free_kernels_off"),
        ("09-5", but("09-5", no__gaps=a["09-5"]["free kernels"]), "no_gaps_swapped"),
        ("09-5", but("09-5", no__gaps=idle["speedup"]), "no_gaps_speedup"),
        ("09-5", but("09-5", no__gaps=idle["busy_percent"] / 100), "no_gaps_share"),
        ("09-5", but("09-5", no__gaps=9.4), "no_gaps_off"),
        ("09-5", but("09-5", usd=usd), "usd_same"),
        ("09-5", but("09-5", usd=usd * idle["speedup"]), "usd_times"),
        ("09-5", but("09-5", usd=usd * (1 - idle["busy_percent"] / 100)), "usd_minus"),
        ("09-5", but("09-5", usd=usd / 5.5), "usd_off"),
        ("09-6", but("09-6", memory_ms=a["09-6"]["memory_ms"] / 2), "memory_ms_read_only"),
        ("09-6", but("09-6", memory_ms=a["09-6"]["memory_ms"] * 1.4), "memory_ms_off"),
        ("09-6", but("09-6", memory_ms=a["09-6"]["memory_ms"] / 1e3), "per_1000"),
        ("09-6", but("09-6", arithmetic_ms=relu["gb"] / 2 / relu["tensor_tflops"]),
         "arithmetic_ms_tensor"),
        ("09-6", but("09-6", arithmetic_ms=a["09-6"]["arithmetic_ms"] / 2), "arithmetic_ms_half"),
        ("09-6", but("09-6", arithmetic_ms=a["09-6"]["arithmetic_ms"] * 2), "arithmetic_ms_bytes"),
        ("09-6", but("09-6", arithmetic_ms=a["09-6"]["arithmetic_ms"] * 3), "arithmetic_ms_off"),
        ("09-6", but("09-6", bucket="compute"), "bucket_as_compute"),
        ("09-6", but("09-6", bucket="overhead"), "bucket_as_overhead"),
        ("09-6", but("09-6", utilisation="low"), "utilisation_as_low"),
        ("09-6", but("09-6", utilisation="half"), "utilisation_as_half"),
        ("09-7", {"A": 1, "B": 2, "C": 3}, "not_a_table"),
        ("09-7", {"A": a["09-7"]["A"]}, "rows_missing"),
        ("09-8", 12, "not_a_function"),
        ("09-8", kit.calls("09-8", lambda *_: None), "returned_none"),
        ("09-8", kit.calls("09-8", lambda *_: "memory"), "not_a_pair"),
        ("09-8", kit.calls("09-8", lambda *_: ("memory", 1.0, 2.0)), "not_a_pair"),
        ("09-8", kit.calls("09-8", lambda *v: cases.explain(*v)[::-1]), "pair_swapped"),
        ("09-8", kit.calls("09-8", lambda *v: ("bandwidth", 1.0)), "not_an_option"),
        ("09-8", kit.calls("09-8", lambda *v: ("memory", None)), "none"),
        ("09-8", kit.calls("09-8", lambda *v: ("memory", "1 ms")), "not_a_number"),
        ("09-8", kit.calls("09-8", lambda *v: ("memory", 1.0)), "constant"),
        ("09-8", kit.calls("09-8", lambda t, *v: (cases.explain(t, *v)[0], t)), "left_off"),
        ("09-8", kit.calls("09-8", lambda t, *v: ("memory", t)), "off"),
        ("09-8", [{"error": "NameError: no"}] * 10, "raised"),
    ]  # fmt: skip
    square_is = "memory" if a["09-4"]["square_is"] == "compute" else "compute"
    rows.append(("09-4", but("09-4", square_is=square_is), f"square_is_as_{square_is}"))
    for key, mistake in nb09.EXPLAIN_MISTAKES.items():
        rows.append(("09-8", kit.calls("09-8", mistake, context.seed), key))
    for letter, bucket in cases.buckets_of(case("09-7")["picture"]).items():
        for entry, options in (
            ("bucket", nb09.BUCKETS),
            ("halve", tuple(nb09.HALVES.values())),
            ("remedy", tuple(nb09.REMEDIES.values())),
        ):
            for option in options:
                if option == a["09-7"][letter][entry].lower():
                    continue
                row = a["09-7"] | {letter: a["09-7"][letter] | {entry: option}}
                key = f"{bucket}_as_{option}" if entry == "bucket" else f"{bucket}_{entry}"
                rows.append(("09-7", row, key))
    for name in DIAGNOSES:
        rows += wrong_diagnoses(name, Case.of(case(name)), a[name])
    return rows


def wrong_diagnoses(name, case, good):
    parts = {part: ms / case.ms * 100 for part, ms in case.parts.items()}
    ranked = sorted(parts.values())
    rows = [
        (name, good | {"explains": good["explains"] / 100}, "case_fraction"),
        (name, good | {"explains": sum(ranked)}, "case_sum"),
        (name, good | {"explains": abs(100 - good["explains"])}, "case_left_over"),
        (name, good | {"explains": ranked[1]}, "case_other_part"),
        (name, good | {"explains": ranked[0]}, "case_smallest_part"),
        (name, good | {"explains": 1e4 / good["explains"]}, "case_upside_down"),
        (name, good | {"explains": 3.3}, "case_off"),
        (name, good | {"explains": "80 %"}, "not_a_number"),
        (name, good | {"verdict": "bandwidth"}, "not_an_option"),
        (name, good | {"next": ...}, "rows_missing"),
        (name, "memory", "not_a_table"),
    ]
    for verdict in ("memory", "compute", "overhead", "another test"):
        if verdict != case.verdict:
            said = "test" if verdict == "another test" else verdict
            rows.append((name, good | {"verdict": verdict}, f"case_{case.kind}_as_{said}"))
    for kind, after in cases.NEXT.items():
        if kind != case.kind:
            rows.append((name, good | {"next": after}, f"case_{case.kind}_next"))
    return rows


def test_every_planted_mistake_gets_its_own_message(where):
    kit.assert_wrong(wrong_forms(where), where)


def test_mistakes_of_every_kind_of_case_have_their_words():
    """Learners with other numbers: all five kinds of case, all six pictures."""
    kinds, shown = set(), set()
    for seed in SEEDS:
        context = learner(seed)
        kit.assert_wrong(
            [row for row in wrong_forms(context) if row[0] in ("09-7", *DIAGNOSES)
             and row[2] not in ("case_other_part", "case_smallest_part", "case_left_over")
             and row[2] != "case_upside_down"], context,
        )  # fmt: skip
        kinds |= {Case.of(context.case(name)).kind for name in DIAGNOSES}
        shown.add(context.case("09-7")["picture"])
    assert kinds == set(cases.KINDS) and shown == set(range(1, 7))


@pytest.mark.parametrize(
    ("low", "high"), [(0.5, 1.1), (0.6, 1.0), (0.7, 1.1), (0.6, 1.2), (0.5, 1.0), (0.55, 1.25)]
)
def test_other_limits_than_those_of_the_rule_are_seen(low, high):
    """Cases far from a limit cannot tell 50 from 60 %: some of the calls stand close to one."""

    def other(t, c, m, h):
        left = cases.explain(t, c, m, h)[1]
        longest = max(c, m, h)
        if not low * t <= longest <= high * t:
            return "another test", left
        return nb09._largest(c, m, h), left

    for seed in range(8):
        context = learner(seed)
        outcome = checks.grade("09-8", kit.plain(kit.calls("09-8", other, seed)), context)
        assert (outcome.state, outcome.key, outcome.fraction) == ("not_yet", "limits", 0.5), seed
        assert "may be named" in outcome.likely


def test_a_straight_line_through_both_times_is_no_bound(t4):
    case, good = t4.case("09-1"), solution(t4)["09-1"]
    per_row = (case["ms_then"] - case["ms"]) / (case["more_rows"] - case["rows"])
    outcome = checks.grade("09-1", good | {"arithmetic_ms": per_row * case["rows"]}, t4)
    assert outcome.key == "arithmetic_ms_line"


def test_the_time_of_a_part_is_not_its_share():
    for seed in SEEDS:
        context = learner(seed)
        case = Case.of(context.case("09-9"))
        said = solution(context)["09-9"] | {"explains": max(case.parts.values())}
        outcome = checks.grade("09-9", said, context)
        assert outcome.state == "not_yet" and outcome.likely
        assert outcome.have.startswith("explains: ")


def test_a_first_miss_has_an_action_of_its_own_and_no_formula(t4):
    good = solution(t4)
    for name, entry, formula in (
        ("09-1", "arithmetic_ms", "ratio"),
        ("09-3", "token_ms", "weights over"),
        ("09-4", "square", "**"),
        ("09-4", "rows", "**"),
        ("09-5", "usd", "price per hour over"),
        ("09-6", "memory_ms", "Twice"),
    ):
        outcome = checks.grade(name, good[name] | {entry: good[name][entry] * 1.37}, t4)
        assert outcome.key == f"{entry}_off" and formula not in outcome.likely
    test = checks.grade("09-1", good["09-1"] | {"test": "more rows"}, t4).next_step
    bound = checks.grade("09-1", good["09-1"] | {"arithmetic_ms": 99.0}, t4).next_step
    other = checks.grade("09-1", good["09-1"] | {"launches": "excluded"}, t4).next_step
    assert len({test, bound, other}) == 3


def test_a_picture_is_told_as_it_was_answered(t4):
    good = solution(t4)["09-7"]
    letter = next(k for k, row in good.items() if row["bucket"] != "compute")
    outcome = checks.grade("09-7", good | {letter: good[letter] | {"halve": "FLOPs"}}, t4)
    assert outcome.have == f"{letter}, halve: 'FLOPs'"


# ---------------------------------------------------------------- fractions


def test_each_wrong_entry_costs_its_share(t4):
    good = solution(t4)
    one = good["09-1"] | {"test": "more rows"}
    two = one | {"arithmetic": "possible"}
    assert checks.grade("09-1", one, t4).fraction == pytest.approx(5 / 6)
    outcome = checks.grade("09-1", two, t4)
    assert outcome.fraction == pytest.approx(4 / 6) and outcome.key == "arithmetic_as_possible"
    half = good["09-9"] | {"next": "look at the trace", "verdict": "another test"}
    if Case.of(t4.case("09-9")).kind in nb09.BUCKETS:
        assert checks.grade("09-9", half, t4).fraction == pytest.approx(1 / 3)


def test_right_verdicts_with_wrong_left_overs_earn_half(t4):
    summed = kit.calls("09-8", nb09.EXPLAIN_MISTAKES["summed"])
    assert checks.grade("09-8", summed, t4).fraction == 0.5
    named = kit.calls("09-8", nb09.EXPLAIN_MISTAKES["no_limits"])
    assert checks.grade("09-8", named, t4).fraction == 0.5
    neither = kit.calls("09-8", lambda t, *_: ("memory", t))
    assert checks.grade("09-8", neither, t4).fraction == 0.0


def test_a_wrong_number_does_not_betray_the_right_one(t4):
    good = solution(t4)
    for name, entry in (("09-1", "arithmetic_ms"), ("09-2", "once"), ("09-6", "memory_ms")):
        wrong = good[name] | {entry: good[name][entry] * 1.37}
        outcome = checks.grade(name, wrong, t4)
        said = f"{outcome.expected}{outcome.likely}{outcome.next_step}"
        assert f"{good[name][entry]:.3g}" not in said


# ---------------------------------------------------------------- the numbers drawn


def test_numbers_differ_between_learners_and_repeat_for_one():
    for name in [f"09-{n}" for n in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11)]:
        drawn = [checks.case(name, seed) for seed in SEEDS]
        assert drawn == [checks.case(name, seed) for seed in SEEDS]
        assert len({str(d) for d in drawn}) > 5, name
    assert checks.inputs("09-8", 1) == checks.inputs("09-8", 1) != checks.inputs("09-8", 2)


def test_the_flat_step_says_what_the_question_says():
    for seed in SEEDS:
        case = checks.case("09-1", seed)
        assert 1.04 < case["ms_then"] / case["ms"] < 1.13  # hardly longer
        assert case["more_rows"] >= 4 * case["rows"]
        most = case["ms_then"] * case["rows"] / case["more_rows"]
        assert most < 0.3 * case["ms"]  # arithmetic is excluded, and by far
        assert abs((case["ms_then"] - case["ms"]) / most - 1) > 0.03  # a mistake stays one


def test_two_fused_cosines_hide_behind_the_trip_where_it_is_said():
    for key, size in nb09.COS_ON:
        device = devices.get(key)
        slots = 2 * devices.slots(["cos"], device.fp32_lanes_per_sm)
        assert slots < vector_budget(datasheet(device), size), (key, size)
    a100 = devices.get("a100_80_sxm")  # and there, in fp16, they do not
    assert 2 * devices.slots(["cos"], 64) > vector_budget(datasheet(a100), 2)


def test_weights_fit_their_card():
    for seed in SEEDS:
        case = checks.case("09-3", seed)
        assert 0.35 < case["weights_gb"] / case["memory_gb"] < 0.85
        assert case["gb_per_s"] == devices.get(case["card"]).bandwidth / 1e9


def test_no_intensity_stands_near_a_ridge():
    for seed in SEEDS:
        case = checks.case("09-4", seed)
        factor = case["side"] / 3 / case["ridge"]
        assert factor < 0.4 or factor > 2.5
    for key, ridge in (("t4", 203), ("l4", 403), ("a100_80_sxm", 153), ("h100_sxm", 295)):
        card = devices.get(key)
        assert card.peak["fp16"] / card.bandwidth == pytest.approx(ridge, rel=0.01)


def test_a_speed_up_lies_between_what_kernels_and_what_gaps_can_give():
    for seed in SEEDS:
        case = checks.case("09-5", seed)
        busy = case["busy_percent"] / 100
        assert 1.4 / (1 - busy) < case["speedup"] < 0.9 / busy


def test_the_large_relu_gives_the_published_times_on_an_a100():
    """1 GB in fp16: 0.98 ms for 2 GB at 2,039 GB/s, 0.051 ms on the vector units: 19 times."""
    seed = next(
        s for s in range(999)
        if (c := checks.case("09-6", s))["card"] == "A100 80 GB SXM" and c["gb"] == 1.0
    )  # fmt: skip
    context = learner(seed)
    good = solution(context)["09-6"]
    assert good["memory_ms"] == pytest.approx(0.98, rel=0.01)
    assert good["arithmetic_ms"] == pytest.approx(0.0513, rel=0.01)
    said = checks.grade("09-6", good, context).insight
    assert "x19," in said and "x612" in said


def test_relu_is_memory_bound_on_every_card_drawn():
    for seed in SEEDS:
        good = solution(learner(seed))["09-6"]
        assert good["memory_ms"] > 5 * good["arithmetic_ms"]


# ---------------------------------------------------------------- the cases


def test_every_learner_gets_two_buckets_and_one_open_case():
    places = set()
    for seed in SEEDS:
        kinds = [Case.of(checks.case(name, seed)).kind for name in DIAGNOSES]
        open_at = [i for i, kind in enumerate(kinds) if kind in ("trace", "again")]
        assert len(open_at) == 1 and len(set(kinds)) == 3
        places.add(open_at[0])
    assert places == {0, 1, 2}


def test_no_case_stands_near_a_borderline():
    for seed in range(300):
        for kind in cases.KINDS:
            case = Case.of(cases.draw(random.Random(f"{kind}{seed}"), kind))
            low, high = {"trace": (0.25, 0.5), "again": (1.3, 2.6)}.get(kind, (0.75, 0.97))
            assert case.kind == kind and low < case.share < high
            if kind != "trace":
                assert sorted(case.parts.values())[1] < 0.45 * case.ms


def test_what_is_printed_is_what_is_judged():
    for seed in SEEDS:
        for name in DIAGNOSES:
            case = checks.case(name, seed)
            shown = {k: float(f"{v:.4g}") for k, v in case.items() if k != "card"}
            assert shown == {k: v for k, v in case.items() if k != "card"}


def test_explain_is_the_rule_of_the_roofline():
    """The same verdict as helpers.roofline, for one kernel at a datasheet's rates."""
    from helpers.roofline import Times, verdict

    roof = datasheet(devices.get("t4"))
    for seed in SEEDS:
        for measured, compute, memory, host in checks.inputs("09-8", seed):
            kernels = max(compute, memory)
            times = Times(
                compute=compute, memory=memory, host=host, program=max(kernels, host),
                kernels=kernels, compute_bound=compute if compute > memory else 0.0,
                memory_bound=memory if memory >= compute else 0.0, roof=roof,
            )  # fmt: skip
            expected = verdict(measured, times).bucket
            got = cases.explain(measured, compute, memory, host)[0]
            assert got == ("another test" if expected == "unexplained" else expected)


def test_every_mistake_of_explain_differs_from_the_rule_for_every_learner():
    for seed in SEEDS:
        calls = checks.inputs("09-8", seed)
        wanted = [cases.explain(*call) for call in calls]
        for key, mistake in nb09.EXPLAIN_MISTAKES.items():
            assert not nb09._agree([mistake(*call) for call in calls], wanted), (seed, key)


def test_numbered_cases_show_every_kind_in_five():
    for block in range(6):
        numbers = range(5 * block + 1, 5 * block + 6)
        assert {cases.numbered(n).kind for n in numbers} == set(cases.KINDS)


def test_an_intensity_is_that_of_the_counted_product():
    from helpers.counting import count

    a = torch.empty(4, 4096, dtype=torch.float16, device="meta")
    w = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    work = count(torch.matmul, a, w)
    assert work.flops / work.bytes_ideal == pytest.approx(nb09.matmul_intensity(4, 4096, 4096))


# ---------------------------------------------------------------- what to repeat


def test_a_mistake_points_to_its_notebook():
    assert nb09.blamed("09-1", "arithmetic_as_possible") == ("06",)
    assert nb09.blamed("09-4", "rows_as_square") == ("07",)
    assert nb09.blamed("09-4", "square_is_as_memory") == ("03",)
    assert nb09.blamed("09-4", "none") == ("03", "07")
    assert nb09.blamed("09-5", "usd_same") == ("08",)
    assert nb09.blamed("09-6", "arithmetic_ms_tensor") == ("03",)
    assert nb09.blamed("09-10", "case_again_as_memory") == ("05",)
    assert nb09.blamed("09-10", "case_memory_as_compute") == ("02",)


def test_every_exercise_belongs_to_a_topic_and_every_notebook_is_asked():
    assert list(nb09.TOPICS) == checks.exercises("09")
    assert {n for notebooks in nb09.TOPICS.values() for n in notebooks} == {
        f"0{n}" for n in range(1, 9)
    }
