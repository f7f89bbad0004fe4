"""Graders of notebook 09, the self-test: seven questions, one function, three cases."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helpers.checks import cases
from helpers.checks.cases import ANOTHER, CARDS, KINDS, NEXT, ORDERS, Case, buckets_of
from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import called, choice, expect_number, number, returned, table
from helpers.devices import get

TOPICS: dict[str, tuple[str, ...]] = {
    "09-1": ("06",),
    "09-2": ("04",),
    "09-3": ("01",),
    "09-4": ("03", "07"),
    "09-5": ("05", "08"),
    "09-6": ("02", "03"),
    "09-7": ("02",),
    "09-8": ("02",),
    "09-9": ("02",),
    "09-10": ("02",),
    "09-11": ("02",),
}
"""The notebooks that each exercise needs; the first mistake may single one of them out."""

BLAME: dict[tuple[str, str], str] = {
    ("09-4", "rows"): "07",
    ("09-4", "because"): "07",
    ("09-4", "square"): "03",
    ("09-4", "pointwise"): "03",
    ("09-5", "usd"): "08",
    ("09-5", "bucket"): "05",
    ("09-5", "free"): "05",
    ("09-5", "no_gaps"): "05",
    ("09-6", "memory_ms"): "02",
    ("09-6", "bucket"): "02",
    ("09-6", "utilisation"): "02",
    ("09-6", "arithmetic_ms"): "03",
}
"""(exercise, first word of the mistake's key) -> the notebook to repeat."""


def blamed(exercise_id: str, key: str) -> tuple[str, ...]:
    """The notebooks to repeat for a mistake with that key."""
    if exercise_id in ("09-9", "09-10", "09-11") and key.startswith("case_again"):
        return ("05",)  # a time that cannot be: a stopwatch that did not wait
    found = [n for (e, start), n in BLAME.items() if e == exercise_id and key.startswith(start)]
    return tuple(found) or TOPICS[exercise_id]


# ---------------------------------------------------------------- small readers

Check = Callable[[], None]


def score(checks: Sequence[Check]) -> None:
    """Run every check; raise the first Wrong with the share of the checks that passed."""
    wrong: list[Wrong] = []
    for check in checks:
        try:
            check()
        except Wrong as problem:
            wrong.append(problem)
    if wrong:
        wrong[0].fraction = 1 - len(wrong) / len(checks)
        raise wrong[0]


def pick(cells: Mapping[str, Any], entry: str, wanted: str, options: Sequence[str]) -> Check:
    """A check that the entry is the wanted one of the options; key `<entry>_as_<picked>`."""

    def check() -> None:
        picked = choice(cells[entry], options, entry)
        if picked != wanted:
            key = f"{entry}_as_{picked}".lower().replace(" ", "_").replace("'", "")
            raise Wrong(key, have=f"{entry}: {picked!r}", entry=repr(entry))

    return check


def amount(
    cells: Mapping[str, Any], entry: str, wanted: float, unit: str, **others: float
) -> Check:
    """A check of a number; a named mistake has the key `<entry>_<name>`, others `<entry>_off`.

    The named slips of units keep their own keys and sentences.
    """

    def show(value: float) -> str:
        return f"{value:,.4g} {unit}".rstrip()

    def check() -> None:
        start = entry.replace(" ", "_")
        named = {f"{start}_{name}": value for name, value in others.items()}
        try:
            expect_number(
                cells[entry], wanted, unit=unit, show=show, others=named, entry=repr(entry)
            )
        except Wrong as wrong:
            if wrong.key in ("off", "half", "double"):
                wrong.key = f"{start}_off"
            wrong.values["have"] = f"{entry}: {wrong.values['have']}"
            raise

    return check


def _short(value: float) -> float:
    return float(f"{value:.3g}")


# ---------------------------------------------------------------- 1 flat latency

STATES = ("possible", "excluded")
TESTS = ("graph", "more rows", "more memory", "faster arithmetic")
LIMITS = {
    "arithmetic": "excluded",
    "own bytes": "excluded",
    "shared bytes": "possible",
    "launches": "possible",
}


def flat_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"09-1:{seed}")
    rows, more = rng.choice((4, 8, 16)), rng.choice((4, 8))
    ms = _short(rng.uniform(6, 24))
    return {"rows": rows, "ms": ms, "more_rows": rows * more,
            "ms_then": _short(ms * rng.uniform(1.06, 1.11))}  # fmt: skip


@exercise("09-1", case=flat_case)
def flat_latency(answer: Any, context: Context) -> Outcome:
    """Arithmetic grows with the rows, so at `rows` it is at most ms_then * rows / more_rows."""
    case = context.case("09-1")
    cells = table(answer, (*LIMITS, "arithmetic_ms", "test"))
    share = case["rows"] / case["more_rows"]
    most = case["ms_then"] * share
    score([
        *(pick(cells, name, wanted, STATES) for name, wanted in LIMITS.items()),
        amount(cells, "arithmetic_ms", most, "ms", first=case["ms"] * share,
               unscaled=case["ms_then"], whole=case["ms"],
               difference=case["ms_then"] - case["ms"], line=share * (case["ms_then"] - case["ms"])
               / (1 - share)),
        pick(cells, "test", "graph", TESTS),
    ])  # fmt: skip
    return right("09-1", most=f"{most:.3g} ms", ms=f"{case['ms']:g} ms")


# ---------------------------------------------------------------- 2 cos once, twice, fused

COS_ON = (("t4", 4), ("t4", 2), ("l4", 4), ("l4", 2), ("a100_80_sxm", 4), ("h100_sxm", 4))
"""Card and bytes per element where two fused cosines still hide behind one trip (a test)."""


def cos_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"09-2:{seed}")
    key, size = rng.choice(COS_ON)
    return {"card": get(key).name, "gb_per_s": get(key).bandwidth / 1e9,
            "elements": rng.randrange(100, 1000, 50) * 10**6, "bytes_each": size}  # fmt: skip


@exercise("09-2", case=cos_case)
def cos_times(answer: Any, context: Context) -> Outcome:
    """One trip is 2 x elements x bytes over the bandwidth; eager makes one per cosine."""
    case = context.case("09-2")
    cells = table(answer, ("once", "twice", "fused"))
    trip = 2 * case["elements"] * case["bytes_each"] / case["gb_per_s"] / 1e6  # ms
    score([
        amount(cells, "once", trip, "ms", read_only=trip / 2),
        amount(cells, "twice", 2 * trip, "ms", as_once=trip, reads_once=1.5 * trip),
        amount(cells, "fused", trip, "ms", as_twice=2 * trip, read_only=trip / 2),
    ])  # fmt: skip
    return right("09-2", trip=f"{trip:.3g} ms")


# ---------------------------------------------------------------- 3 capacity, bandwidth

PHENOMENA = {
    "crash": "capacity",
    "context": "capacity",
    "tokens": "bandwidth",
    "twins": "bandwidth",
}


def weights_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"09-3:{seed}")
    card = get(rng.choice(CARDS))
    memory = float(round(card.memory / 1e9))
    return {"card": card.name, "memory_gb": memory, "gb_per_s": card.bandwidth / 1e9,
            "weights_gb": _short(memory * rng.uniform(0.4, 0.8))}  # fmt: skip


@exercise("09-3", case=weights_case)
def two_figures(answer: Any, context: Context) -> Outcome:
    """Four phenomena, and the least time of a token: all weights through the bus once."""
    case = context.case("09-3")
    cells = table(answer, (*PHENOMENA, "token_ms"))
    token = case["weights_gb"] / case["gb_per_s"] * 1e3
    score([
        *(pick(cells, name, wanted, ("capacity", "bandwidth"))
          for name, wanted in PHENOMENA.items()),
        amount(cells, "token_ms", token, "ms", whole=case["memory_gb"] / case["gb_per_s"] * 1e3,
               written=2 * token, inverted=1e3 / token),
    ])  # fmt: skip
    return right("09-3", token=f"{token:.3g} ms", rate=f"{1e3 / token:.3g}")


# ---------------------------------------------------------------- 4 matmul, pointwise, decode

WIDTH = 4096
BOUNDS = ("memory", "compute")
REASONS = "abcd"


def intensity_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"09-4:{seed}")
    card = get(rng.choice(CARDS))
    ridge = card.peak["fp16"] / card.bandwidth
    return {"card": card.name, "ridge": _short(ridge), "side": rng.choice((128, 4096, 8192)),
            "rows": rng.choice((1, 2, 4))}  # fmt: skip


def matmul_intensity(m: int, k: int, n: int, itemsize: int = 2) -> float:
    """FLOP per byte of [m, k] x [k, n]: two per product, each matrix moved once."""
    return 2 * m * k * n / (itemsize * (m * k + k * n + m * n))


@exercise("09-4", case=intensity_case)
def temperaments(answer: Any, context: Context) -> Outcome:
    case = context.case("09-4")
    names = ("square", "pointwise", "rows", "square_is", "rows_is", "because")
    cells = table(answer, names)
    side, rows = case["side"], case["rows"]
    square = matmul_intensity(side, side, side)
    few = matmul_intensity(rows, WIDTH, WIDTH)
    square_is = "compute" if square > case["ridge"] else "memory"
    unit = "FLOP/byte"
    score([
        amount(cells, "square", square, unit, fp32=square / 2, elements=2 * square,
               side=float(side)),
        amount(cells, "pointwise", 0.25, unit, read_only=0.5, inverted=4.0, elements=1.0),
        pick(cells, "square_is", square_is, BOUNDS),
        amount(cells, "rows", few, unit, as_square=WIDTH / 3, weights_side=float(WIDTH),
               fp32=few / 2, elements=2 * few),
        pick(cells, "rows_is", "memory", BOUNDS),
        pick(cells, "because", "b", REASONS),
    ])  # fmt: skip
    return right("09-4", "big" if square_is == "compute" else "small",
                 square=f"{square:,.0f}", rows=f"{few:.3g}", ridge=f"{case['ridge']:g}",
                 card=case["card"])  # fmt: skip


# ---------------------------------------------------------------- 5 an idle card

BUCKETS = ("memory", "compute", "overhead")


def idle_case(seed: int) -> dict[str, Any]:
    """Between what faster kernels could give, 1/(1 - u), and what filled gaps could, 1/u."""
    rng = random.Random(f"09-5:{seed}")
    busy = rng.randrange(15, 31)
    speedup = round(rng.uniform(2.2, min(3.6, 80 / busy)), 1)
    return {"busy_percent": busy, "speedup": speedup, "usd_before": round(rng.uniform(0.4, 3), 2)}


@exercise("09-5", case=idle_case)
def idle_card(answer: Any, context: Context) -> Outcome:
    """If kernels run for the share u: free kernels give at most 1/(1 - u), no gaps at most 1/u."""
    case = context.case("09-5")
    cells = table(answer, ("bucket", "free kernels", "no gaps", "usd"))
    busy, speedup, usd = case["busy_percent"] / 100, case["speedup"], case["usd_before"]
    kernels, gaps = 1 / (1 - busy), 1 / busy
    score([
        pick(cells, "bucket", "overhead", BUCKETS),
        amount(cells, "free kernels", kernels, "", swapped=gaps, speedup=speedup,
               share=1 - busy),
        amount(cells, "no gaps", gaps, "", swapped=kernels, speedup=speedup, share=busy),
        amount(cells, "usd", usd / speedup, "USD", same=usd, times=usd * speedup,
               minus=usd * (1 - busy)),
    ])  # fmt: skip
    return right("09-5", kernels=f"{kernels:.3g}", gaps=f"{gaps:.3g}", speedup=f"{speedup:g}")


# ---------------------------------------------------------------- 6 a large relu


def relu_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"09-6:{seed}")
    card = get(rng.choice(CARDS))
    return {"card": card.name, "gb": rng.choice((0.5, 1.0, 2.0, 3.0)),
            "gb_per_s": card.bandwidth / 1e9, "vector_tops": card.vector_rate / 1e12,
            "tensor_tflops": card.peak["fp16"] / 1e12}  # fmt: skip


@exercise("09-6", case=relu_case)
def large_relu(answer: Any, context: Context) -> Outcome:
    """In and out: twice the bytes; one operation per fp16 element, on the vector units."""
    case = context.case("09-6")
    cells = table(answer, ("memory_ms", "arithmetic_ms", "bucket", "utilisation"))
    memory = 2 * case["gb"] / case["gb_per_s"] * 1e3
    elements = case["gb"] / 2  # 1e9 elements, fp16
    arithmetic = elements / case["vector_tops"]  # 1e9 over 1e12 per second is ms
    score([
        amount(cells, "memory_ms", memory, "ms", read_only=memory / 2),
        pick(cells, "bucket", "memory", BUCKETS),
        pick(cells, "utilisation", "full", ("low", "half", "full")),
        amount(cells, "arithmetic_ms", arithmetic, "ms",
               tensor=elements / case["tensor_tflops"], half=arithmetic / 2,
               bytes=2 * arithmetic),
    ])  # fmt: skip
    return right("09-6", times=f"{memory / arithmetic:.0f}", memory=f"{memory:.3g} ms",
                 naive=f"{memory / (elements / case['tensor_tflops']):.0f}",
                 arithmetic=f"{arithmetic:.3g} ms", card=case["card"])  # fmt: skip


# ---------------------------------------------------------------- 7 three pictures

HALVES = {"memory": "bytes", "compute": "flops", "overhead": "neither"}
REMEDIES = {"memory": "fusion", "compute": "tensor cores", "overhead": "cuda graph"}


def pictures_case(seed: int) -> dict[str, Any]:
    return {"picture": random.Random(f"09-7:{seed}").randint(1, len(ORDERS))}


@exercise("09-7", case=pictures_case)
def three_pictures(answer: Any, context: Context) -> Outcome:
    """Per picture its bucket, what must be halved to halve the time, and the remedy."""
    wanted = buckets_of(context.case("09-7")["picture"])
    rows = table(answer, list(wanted))
    checks: list[Check] = []
    for letter, bucket in wanted.items():
        cells = table(rows[letter], ("bucket", "halve", "remedy"))
        for entry, value, options in (
            ("bucket", bucket, BUCKETS),
            ("halve", HALVES[bucket], tuple(HALVES.values())),
            ("remedy", REMEDIES[bucket], tuple(REMEDIES.values())),
        ):
            checks.append(_picture(cells, letter, bucket, entry, value, options))
    score(checks)
    return right("09-7")


def _picture(
    cells: Mapping[str, Any], letter: str, bucket: str, entry: str, wanted: str, options: Any
) -> Check:
    def check() -> None:
        picked = choice(cells[entry], options, f"{letter} {entry}")
        if picked != wanted:
            key = f"{bucket}_{entry}" if entry != "bucket" else f"{bucket}_as_{picked}"
            raise Wrong(key, have=f"{letter}, {entry}: {cells[entry]!r}", letter=letter)

    return check


# ---------------------------------------------------------------- 8 the rule as code

EXPLAIN_MISTAKES: dict[str, Callable[..., tuple[str, float]]] = {
    "no_limits": lambda t, c, m, h: (_largest(c, m, h), t - max(c, m, h)),
    "no_upper": lambda t, c, m, h: (
        _largest(c, m, h) if max(c, m, h) >= 0.6 * t else ANOTHER,
        t - max(c, m, h),
    ),
    "no_lower": lambda t, c, m, h: (
        _largest(c, m, h) if max(c, m, h) <= 1.1 * t else ANOTHER,
        t - max(c, m, h),
    ),
    "summed": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], t - c - m - h),
    "no_host": lambda t, c, m, h: cases.explain(t, c, m, 0),
    "host_added": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], t - max(c, m) - h),
    "absolute": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], abs(t - max(c, m, h))),
    "cut_off": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], max(0, t - max(c, m, h))),
    "share": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], 1 - max(c, m, h) / t),
    "explained": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], max(c, m, h)),
    "milliseconds": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], 1e3 * (t - max(c, m, h))),
    "limits": lambda t, c, m, h: (
        _largest(c, m, h) if 0.5 * t <= max(c, m, h) <= t else ANOTHER,
        t - max(c, m, h),
    ),
    "sign": lambda t, c, m, h: (cases.explain(t, c, m, h)[0], max(c, m, h) - t),
    "shortest": lambda t, c, m, h: (
        min({"compute": c, "memory": m, "overhead": h}.items(), key=lambda i: i[1])[0]
        if 0.6 * t <= min(c, m, h) <= 1.1 * t
        else ANOTHER,
        t - min(c, m, h),
    ),
    "smallest": lambda t, c, m, h: (
        min({"compute": c, "memory": m, "overhead": h}.items(), key=lambda i: i[1])[0],
        t - min(c, m, h),
    ),
}


def _largest(c: float, m: float, h: float) -> str:
    return max({"compute": c, "memory": m, "overhead": h}.items(), key=lambda item: item[1])[0]


NEAR = 4
"""So many of the calls, the last ones, stand near a limit."""


def explain_inputs(seed: int) -> list[list[float]]:
    """One call per kind of case, one whose parts exceed it in sum, four near a limit.

    A part may be named at 63 and 107 % of the measured time, and not at 57 and 114 %.
    """
    rng = random.Random(f"09-8:{seed}")
    calls = []
    for kind in KINDS:
        case = Case.of(cases.draw(rng, kind))
        part = case.parts
        calls.append([v / 1e3 for v in (case.ms, part["compute"], part["memory"],
                                        part["overhead"])])  # fmt: skip
    t = calls[0][0]
    calls.append([t, 0.5 * t, 0.55 * t, 0.85 * t])
    calls += [[t, 0.2 * t, share * t, 0.3 * t] for share in (0.63, 0.57, 1.07, 1.14)]
    return [[float(f"{v:.4g}") for v in call] for call in calls]


@exercise("09-8", inputs=explain_inputs)
def explain_function(answer: Any, context: Context) -> Outcome:
    """Half for the verdicts, half for the left-overs, when the mistake is no known one."""
    calls = explain_inputs(context.seed)
    got = [_pair(value) for value in returned(answer, calls, kind="any")]
    wanted = [cases.explain(*call) for call in calls]
    if _agree(got, wanted):
        return right("09-8")
    named = [g[0] == w[0] for g, w in zip(got, wanted, strict=True)]
    left = [_same(g[1], w[1]) for g, w in zip(got, wanted, strict=True)]
    at = (left if all(named) else named).index(False)  # a call that shows the mistake
    values = {
        "fraction": 0.5 if all(named) or all(left) else 0.0,
        "have": f"{got[at][0]!r}, {got[at][1]:.4g}",
        "call": called("explain", calls[at]),
        "right": f"({wanted[at][0]!r}, {wanted[at][1]:.4g})",
    }
    for key, mistake in EXPLAIN_MISTAKES.items():
        if _agree(got, [mistake(*call) for call in calls]):
            raise Wrong(key, **values)
    if all(g == got[0] for g in got):
        raise Wrong("constant", **values)
    if all(left) and all(named[:-NEAR]):
        raise Wrong("limits", **values)
    raise Wrong("off" if not all(named) else "left_off", **values)


def _pair(value: Any) -> tuple[str, float]:
    """(verdict, left-over) from what one call returned."""
    if not isinstance(value, list) or len(value) != 2:
        raise Wrong("not_a_pair", have=repr(value)[:50])
    if isinstance(value[1], str) and not isinstance(value[0], str):
        raise Wrong("pair_swapped", have=repr(value)[:50])
    verdict = choice(value[0], (*BUCKETS, ANOTHER), "verdict")
    return verdict, number(value[1], positive=False)


def _same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-9)


def _agree(got: Sequence[tuple[str, float]], wanted: Sequence[tuple[str, float]]) -> bool:
    return all(g[0] == w[0] and _same(g[1], w[1]) for g, w in zip(got, wanted, strict=True))


# ---------------------------------------------------------------- 9 to 11 three cases


def _drawer(place: int) -> Callable[[int], dict[str, Any]]:
    def drawn(seed: int) -> dict[str, Any]:
        return cases.draw(random.Random(f"09-{9 + place}:{seed}"), cases.three(seed)[place])

    return drawn


def diagnose(exercise_id: str, answer: Any, context: Context) -> Outcome:
    """A third each for the verdict, the share in percent, and what to do next."""
    case = Case.of(context.case(exercise_id))
    cells = table(answer, ("verdict", "explains", "next"))
    parts = {name: ms / case.ms * 100 for name, ms in case.parts.items()}
    share = case.share * 100
    others = sorted((v for n, v in parts.items() if n != case.largest), reverse=True)

    def verdict() -> None:
        picked = choice(cells["verdict"], (*BUCKETS, ANOTHER), "verdict")
        if picked != case.verdict:
            key = f"case_{case.kind}_as_{'test' if picked == ANOTHER else picked}"
            raise Wrong(key, have=f"verdict: {picked!r}")

    def explains() -> None:
        try:
            value = number(cells["explains"], unit="%")
        except Wrong as problem:
            problem.values["have"] = f"explains: {problem.values['have']}"
            raise
        wrong = {"case_fraction": case.share, "case_sum": sum(parts.values()),
                 "case_left_over": abs(100 - share), "case_other_part": others[0],
                 "case_smallest_part": others[1], "case_upside_down": 1e4 / share,
                 "case_in_ms": case.parts[case.largest]}  # fmt: skip
        try:
            expect_number(value, share, unit="%", show=lambda v: f"explains: {v:,.3g} %",
                          tolerance=0.03, others=wrong)  # fmt: skip
        except Wrong as problem:
            if problem.key in ("off", "half", "double"):
                problem.key = "case_off"
            raise

    def after() -> None:
        picked = choice(cells["next"], tuple(NEXT.values()), "next")
        if picked != NEXT[case.kind]:
            raise Wrong(f"case_{case.kind}_next", have=f"next: {picked!r}")

    score([verdict, explains, after])
    said = {n: f"{v:.0f} %" for n, v in parts.items()}
    return right("09-9", case.kind, share=f"{share:.0f} %", measured=f"{case.ms:g} ms", **said)


@exercise("09-9", case=_drawer(0))
def first_case(answer: Any, context: Context) -> Outcome:
    return diagnose("09-9", answer, context)


@exercise("09-10", case=_drawer(1))
def second_case(answer: Any, context: Context) -> Outcome:
    return diagnose("09-10", answer, context)


@exercise("09-11", case=_drawer(2))
def third_case(answer: Any, context: Context) -> Outcome:
    return diagnose("09-11", answer, context)
