"""Graders of notebook 06, batch size: what a batch shares, and where that ends."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import (
    choice,
    expect_calls,
    expect_choices,
    expect_letter,
    expect_number,
    number,
    table,
)
from helpers.checks.records import origin, peak_bandwidth, possible, seconds, wall
from helpers.evidence import Record
from helpers.inference import Model, model

# ---------------------------------------------------------------- retrieval

ROWS, WIDTH = 8, 4096  # of the layer in 06-1


@exercise("06-1")
def layer_intensity(answer: Any, context: Context) -> Outcome:
    """2BDF FLOP over 2(BD + DF + BF) bytes: 1 / (1/8 + 1/4096 + 1/4096), a little below 8."""
    exact = 1 / (1 / ROWS + 2 / WIDTH)
    expect_number(
        answer,
        exact,
        unit="FLOP/byte",
        show=lambda v: f"{v:,.4g} FLOP/byte",
        others={
            "square": WIDTH / 3,
            "per_element": 2 * exact,
            "half_rate": exact / 2,
            "inverted": 1 / exact,
            "one_row": 1.0,
            "square_rows": ROWS / 3,
            "no_weights": WIDTH / 2,
        },
    )
    return right("06-1")


@exercise("06-2")
def what_a_graph_saves(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "c")
    return right("06-2")


# ---------------------------------------------------------------- two kinds of bytes


def bytes_per_token(weights: float, kv_per_token: float, batch: int, context: int) -> float:
    """Bytes read for each token of a decode step: its share of the weights, its own cache."""
    return weights / batch + kv_per_token * context


TOKEN_MISTAKES: dict[str, Callable[..., float]] = {
    "per_step": lambda w, k, b, c: w + b * c * k,
    "cache_shared": lambda w, k, b, c: (w + c * k) / b,
    "weights_not_shared": lambda w, k, b, c: w + c * k,
    "weights_per_row": lambda w, k, b, c: w * b + c * k,
    "no_cache": lambda w, k, b, c: w / b,
    "no_context": lambda w, k, b, c: w / b + k,
    "no_weights": lambda w, k, b, c: c * k,
    "both_ways": lambda w, k, b, c: 2 * bytes_per_token(w, k, b, c),
    "cache_twice": lambda w, k, b, c: w / b + 2 * c * k,
    "per_cached": lambda w, k, b, c: w / (b * c) + k,
    "cache_of_all": lambda w, k, b, c: w / b + b * c * k,
    "gigabytes": lambda w, k, b, c: bytes_per_token(w, k, b, c) / 1e9,
}


def token_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"06-3:{seed}")
    return [
        [rng.randrange(10, 400) * 10**8, 2 ** rng.randint(14, 18), batch, 2 ** rng.randint(9, 12)]
        for batch in (1, rng.randint(2, 9), rng.randint(10, 200))
    ]


@exercise("06-3", inputs=token_inputs)
def bytes_per_token_function(answer: Any, context: Context) -> Outcome:
    expect_calls(
        answer,
        token_inputs(context.seed),
        bytes_per_token,
        mistakes=TOKEN_MISTAKES,
        near=lambda got, wanted: math.isclose(got, wanted, rel_tol=1e-6),
    )
    return right("06-3")


# ---------------------------------------------------------------- the knee of one layer


def batch_knee(
    bandwidth: float, rate: float, width_in: int, width_out: int, itemsize: float
) -> float:
    """Rows at which [B, D] x [D, F] computes as long as it moves: 2BDF/rate = s(BD+DF+BF)/bw."""
    weights = itemsize * width_in * width_out / bandwidth
    each = 2 * width_in * width_out / rate - itemsize * (width_in + width_out) / bandwidth
    return weights / each


def _knee(weights: float, computes: float, moves: float) -> float:
    return weights / (computes - moves)


KNEE_MISTAKES: dict[str, Callable[..., float]] = {
    "ridge": lambda w, r, d, f, s: r / w,
    "weights_only": lambda w, r, d, f, s: s * r / (2 * w),
    "multiply_adds": lambda w, r, d, f, s: _knee(s * d * f / w, d * f / r, s * (d + f) / w),
    "no_itemsize": lambda w, r, d, f, s: batch_knee(w, r, d, f, 1),
    "two_bytes": lambda w, r, d, f, s: batch_knee(w, r, d, f, 2),
    "rows_in_only": lambda w, r, d, f, s: _knee(s * d * f / w, 2 * d * f / r, s * d / w),
    "rows_out_only": lambda w, r, d, f, s: _knee(s * d * f / w, 2 * d * f / r, s * f / w),
    "wrong_side": lambda w, r, d, f, s: _knee(s * d * f / w, 2 * d * f / r, -s * (d + f) / w),
    "bits": lambda w, r, d, f, s: batch_knee(w, r, d, f, 8 * s),
    "inverted": lambda w, r, d, f, s: 1 / batch_knee(w, r, d, f, s),
}


def knee_inputs(seed: int) -> list[list[Any]]:
    """Narrow layers, so that the rows themselves count; ridges from 30 to 100 FLOP/byte."""
    rng = random.Random(f"06-4:{seed}")
    calls = []
    for itemsize in (2, 4, 1):
        bandwidth = rng.randrange(200, 2000) * 1e9
        widths = [128 * rng.randint(8, 15), 128 * rng.randint(16, 24)]
        rng.shuffle(widths)
        calls.append([bandwidth, bandwidth * rng.randint(60, 200) / itemsize, *widths, itemsize])
    return calls


@exercise("06-4", inputs=knee_inputs)
def batch_knee_function(answer: Any, context: Context) -> Outcome:
    expect_calls(answer, knee_inputs(context.seed), batch_knee, mistakes=KNEE_MISTAKES, near=_near)
    return right("06-4")


def _near(got: float, wanted: float) -> bool:
    """Within half a percent, or a whole number of rows next to it."""
    whole = got == int(got) and abs(got - wanted) <= 1
    return math.isclose(got, wanted, rel_tol=0.005) or whole


# ---------------------------------------------------------------- the fit

MATRICES = 12  # of the stack, 4096 wide on a GPU
RULES = {
    "flat_ms": "the median of the four smallest batches' times, in ms",
    "per_row_us": "the rise between the two largest batches for each row added, in µs",
    "knee": "where the line through the two largest batches comes down to the flat time, in rows",
}
FIT = tuple(RULES)


def curve(context: Context, exercise_id: str, series: str) -> list[tuple[int, float]]:
    """(batch, median seconds) of the learner's newest sweep, by batch.

    Wrong("not_measured") if fewer than six points were recorded, Wrong("damaged") if one is not
    what lab.sweep writes.
    """
    found: dict[int, float] = {}
    for record in context.evidence.records if context.evidence else []:
        name, _, point = record.label.partition(" @ ")
        if (record.exercise, record.kind, name) == (exercise_id, "measurement", series):
            batch = _point(record, point)
            found[batch] = seconds(record)
    if len(found) < 6:
        raise Wrong("not_measured", have=f"{len(found)} points of the sweep")
    return sorted(found.items())


def _point(record: Record, point: str) -> int:
    samples = record.value.get("samples") if isinstance(record.value, Mapping) else None
    whole = isinstance(samples, list) and all(type(s) in (int, float) and s > 0 for s in samples)
    if not whole or not samples or not point.isdecimal():
        raise Wrong("damaged", have=f"a record of the sweep without samples: {record.label!r}")
    return int(point)


def two_lines(points: list[tuple[int, float]]) -> tuple[float, float, float]:
    """(flat seconds, seconds per added row, batch where both meet) of a swept curve."""
    flat = statistics.median(t for _, t in points[:4])
    (b1, t1), (b2, t2) = points[-2:]
    slope = (t2 - t1) / (b2 - b1)
    return flat, slope, b2 - (t2 - flat) / slope if slope > 0 else math.nan


@exercise("06-5", predicts=("batch 32", "knee"))
def two_line_fit(answer: Any, context: Context) -> Outcome:
    """A third of the points per entry; the first wrong one is explained."""
    cells = table(answer, FIT)
    points = curve(context, "06-5", "weights")
    flat, slope, knee = two_lines(points)
    last = points[-1][0]
    if not context.cpu:
        record = context.evidence.latest("06-5", "measurement", f"weights @ {points[0][0]}")
        moved = MATRICES * WIDTH**2 * 2
        possible(moved / flat, peak_bandwidth(record, context))
    if not 0 < knee < last:
        raise Wrong(
            "no_knee", state="cannot_tell", have=f"a line without a knee below a batch of {last:,}"
        )
    guess = context.prediction("06-5", "knee")
    predicted = {"predicted": guess.value} if guess and type(guess.value) in (int, float) else {}
    others = {
        "flat_ms": (flat * 1e3, "ms", {"seconds": flat, "largest": points[-1][1] * 1e3}),
        "per_row_us": (
            slope * 1e6,
            "us",
            {
                "per_doubling": (points[-1][1] - points[-2][1]) * 1e6,
                "milliseconds": slope * 1e3,
                "seconds": slope,
                "whole_slope": (points[-1][1] - points[0][1]) / (last - points[0][0]) * 1e6,
                "mean_cost": points[-1][1] / last * 1e6,
            },
        ),
        "knee": (knee, "rows", {"ratio": points[-1][1] / flat} | _grid(points, knee) | predicted),
    }
    problems = []
    for name, (value, unit, mistakes) in others.items():
        try:
            got = number(cells[name])
            origin_line = flat / slope  # the steep line taken through zero: as good a reading
            if name == "knee" and math.isclose(got, origin_line, rel_tol=0.05):
                continue
            expect_number(
                got, value, unit=unit, show=_show(unit), others=mistakes,
                tolerance=0.05 if name == "knee" else 0.02,
            )  # fmt: skip
        except Wrong as wrong:
            have = f"{name}: {wrong.values['have']}"
            wrong.values |= {"entry": repr(name), "rule": RULES[name], "have": have}
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / len(FIT)
        raise problems[0]
    return right(
        "06-5",
        knee=f"{knee:,.0f}",
        origin=origin(context.evidence.latest("06-5", "measurement", f"weights @ {last}")),
    )


def _grid(points: list[tuple[int, float]], knee: float) -> dict[str, float]:
    """Batches of the sweep next to the knee: read off the axis, not computed."""
    below = max((b for b, _ in points if b < knee), default=1)
    above = min((b for b, _ in points if b > knee), default=below)
    return {
        f"grid_{side}": float(b)
        for side, b in (("below", below), ("above", above))
        if not math.isclose(b, knee, rel_tol=0.05)
    }


def _show(unit: str) -> Callable[[float], str]:
    return lambda v: f"{v:,.4g} {'µs' if unit == 'us' else unit}"


# ---------------------------------------------------------------- two causes of a flat line

BUCKETS = ("memory", "compute", "overhead")
SETTLES = (
    "launches in a cuda graph",
    "bytes over bandwidth",
    "change the width",
    "gaps in a trace",
)
SETTLES_NOTHING = {
    "batch times four": "larger_batch",
    "gpu utilisation": "utilisation",
    "more samples": "samples",
}


@exercise("06-6")
def suspicion(answer: Any, context: Context) -> Outcome:
    """Either cause of flat latency is right; what counts is a second test that separates them."""
    cells = table(answer, ("could be", "second test"))
    bucket = choice(cells["could be"], BUCKETS, "could be")
    test = choice(cells["second test"], (*SETTLES, *SETTLES_NOTHING), "second test")
    wrong = []
    if bucket == "compute":
        wrong.append(Wrong("compute", have="could be: 'compute'"))
    if test in SETTLES_NOTHING:
        wrong.append(Wrong(SETTLES_NOTHING[test], have=f"second test: {test!r}"))
    if wrong:
        wrong[0].fraction = 1 - len(wrong) / 2
        raise wrong[0]
    return right("06-6", bucket=bucket, other="overhead" if bucket == "memory" else "memory")


EFFECTS = ("far less", "about the same", "far more")
PROGRAMS = ("wide", "narrow")
CHANGES = ("one launch", "half the width")


def effect(factor: float) -> str:
    """The word for a time that changed by `factor`; the bands are wide on purpose."""
    return EFFECTS[0] if factor < 0.6 else EFFECTS[1] if factor < 1.6 else EFFECTS[2]


def supported(factors: Mapping[str, float]) -> set[str]:
    """The buckets that two measured changes leave standing."""
    left = set()
    if effect(factors["half the width"]) == EFFECTS[0]:
        left.add("memory")
    if effect(factors["one launch"]) == EFFECTS[0]:
        left.add("overhead")
    return left


@exercise("06-7", predicts=tuple(f"{p}, {c}" for p in PROGRAMS for c in CHANGES))
def verdicts(answer: Any, context: Context) -> Outcome:
    """Half of the points per program. Predictions are told and cost nothing."""
    cells = table(answer, PROGRAMS)
    picked = {name: choice(cells[name], BUCKETS, name) for name in PROGRAMS}
    factors: dict[str, dict[str, float]] = {}
    for name in PROGRAMS:
        base = context.measurement("06-7", name)
        records = {c: context.measurement("06-7", f"{name}, {c}") for c in CHANGES}
        if base is None or records["half the width"] is None:
            raise Wrong("not_measured", have="no tests yet")
        if records["one launch"] is None:
            if context.cpu:
                raise Wrong("no_graph", state="cannot_tell", have="a machine without CUDA graphs")
            raise Wrong("not_measured", have=f"no CUDA graph of {name!r}")
        factors[name] = {c: wall(r) / wall(base) for c, r in records.items()}
    seen = "; ".join(
        f"{name}: " + ", ".join(f"{c} x{f:.2f}" for c, f in factors[name].items())
        for name in PROGRAMS
    )
    left = {name: supported(factors[name]) for name in PROGRAMS}
    if not all(left.values()):
        raise Wrong("unclear", state="cannot_tell", have=seen)
    wrong = [name for name in PROGRAMS if picked[name] not in left[name]]
    if wrong:
        name = wrong[0]
        key = "compute" if picked[name] == "compute" else f"not_{picked[name]}"
        raise Wrong(key, fraction=1 - len(wrong) / 2, have=f"{name}: {picked[name]!r}; but {seen}",
                    name=repr(name))  # fmt: skip
    guesses = {(p, c): context.prediction("06-7", f"{p}, {c}") for p in PROGRAMS for c in CHANGES}
    held = sum(bool(g) and g.value == effect(factors[p][c]) for (p, c), g in guesses.items())
    base = context.measurement("06-7", "wide")
    variant = "held" if held == len(guesses) else "missed"
    return right("06-7", variant, seen=seen, held=held, all=len(guesses), origin=origin(base))


# ---------------------------------------------------------------- the whole step, and the memory


@exercise("06-8", predicts=("cache, batch 32",))
def whole_step(answer: Any, context: Context) -> Outcome:
    """Intensity tends to 25.6 FLOP/byte at a context of 1,024: below every ridge with tensor cores.

    See `inference.step_crossing`.
    """
    expect_letter(answer, "d")
    return right("06-8")


def largest_batch(
    memory: float, weights: float, kv_per_token: float, context: int, share: float
) -> int:
    """Whole sequences of ``context`` tokens beside the weights in ``share`` of the memory."""
    return max(0, math.floor((share * memory - weights) / (kv_per_token * context)))


def _fit(left: float, kv: float, context: float) -> float:
    return left / (kv * context)


FITS_MISTAKES: dict[str, Callable[..., float]] = {
    "not_whole": lambda m, w, k, c, s: max(0.0, _fit(s * m - w, k, c)),
    "negative": lambda m, w, k, c, s: math.floor(_fit(s * m - w, k, c)),
    "negative_int": lambda m, w, k, c, s: int(_fit(s * m - w, k, c)),
    "negative_fraction": lambda m, w, k, c, s: _fit(s * m - w, k, c),
    "rounded_up": lambda m, w, k, c, s: max(0, math.ceil(_fit(s * m - w, k, c))),
    "rounded": lambda m, w, k, c, s: max(0, round(_fit(s * m - w, k, c))),
    "no_share": lambda m, w, k, c, s: largest_batch(m, w, k, c, 1),
    "share_of_rest": lambda m, w, k, c, s: max(0, math.floor(_fit(s * (m - w), k, c))),
    "no_weights": lambda m, w, k, c, s: largest_batch(m, 0, k, c, s),
    "no_context": lambda m, w, k, c, s: largest_batch(m, w, k, 1, s),
    "at_least_one": lambda m, w, k, c, s: max(1, largest_batch(m, w, k, c, s)),
}


def fits_inputs(seed: int) -> list[list[Any]]:
    """One card with room, one whose weights leave too little for one, one too small, one roomy."""
    rng = random.Random(f"06-9:{seed}")
    kv, context = 2 ** rng.randint(14, 16), 2 ** rng.randint(9, 11)
    weights, share = rng.randrange(60, 160) * 10**8, rng.choice((0.85, 0.9, 0.95))
    one = kv * context
    rooms = (rng.randint(3, 9) + 0.75, 0.6, -rng.randint(2, 4) - 0.3, rng.randint(20, 90) + 0.4)
    return [[round((weights + room * one) / share), weights, kv, context, share] for room in rooms]


@exercise("06-9", inputs=fits_inputs)
def largest_batch_function(answer: Any, context: Context) -> Outcome:
    expect_calls(
        answer,
        fits_inputs(context.seed),
        largest_batch,
        mistakes=FITS_MISTAKES,
        near=lambda got, wanted: math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-9),
    )
    return right("06-9")


MEMORY = {"T4": 16e9, "A100": 80e9}  # as sold


def fits_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"06-10:{seed}")
    return {"context": rng.choice((512, 768, 1024, 1536, 2048, 4096)),
            "share": rng.choice((0.9, 0.92, 0.95))}  # fmt: skip


def fits_of(case: Mapping[str, Any], llama: Model, **changes: Any) -> dict[str, int]:
    """Sequences per card of MEMORY; `changes` replace an argument of `largest_batch`."""
    out = {}
    for name, memory in MEMORY.items():
        given = {"memory": memory, "weights": llama.weights, "kv_per_token": llama.kv_bytes} | case
        given |= {k: v(given[k]) if callable(v) else v for k, v in changes.items()}
        out[name] = largest_batch(**given)
    return out


@exercise("06-10", case=fits_case)
def what_fits(answer: Any, context: Context) -> Outcome:
    """Half of the points per card."""
    cells = table(answer, tuple(MEMORY))
    case, llama = context.case("06-10"), model()
    wanted = fits_of(case, llama)
    known = {
        "no_share": fits_of(case, llama, share=1),
        "no_weights": fits_of(case, llama, weights=0),
        "gib": fits_of(case, llama, memory=lambda m: m / 1e9 * 2**30),
        "one_layer": fits_of(case, llama, kv_per_token=llama.kv_bytes // llama.layers),
        "step_weights": fits_of(case, llama, weights=llama.step_weights),
        "keys_only": fits_of(case, llama, kv_per_token=llama.kv_bytes // 2),
        "rounded_up": {name: count + 1 for name, count in wanted.items()},
    }
    given = {}
    for name in MEMORY:
        try:
            given[name] = number(cells[name], positive=False)
        except Wrong as wrong:
            wrong.values["have"] = f"{name}: {wrong.values['have']}"
            raise
    both = next((k for k, mistaken in known.items() if given == mistaken), None)
    problems = []
    for name, got in given.items():
        if got == wanted[name]:
            continue
        key = both or next((k for k, mistaken in known.items() if got == mistaken[name]), "off")
        if got < 0:
            key = "negative"
        elif got != int(got):
            key = "not_whole"
        problems.append(
            Wrong(key, have=f"{name}: {got:g}", name=name, context=f"{case['context']:,}",
                  share=f"{case['share']:.0%}")
        )  # fmt: skip
    if problems:
        problems[0].fraction = 1 - len(problems) / len(MEMORY)
        raise problems[0]
    return right("06-10", "none" if wanted["T4"] == 0 else "some", t4=wanted["T4"],
                 a100=wanted["A100"], context=f"{case['context']:,}")  # fmt: skip


# ---------------------------------------------------------------- the answer, in parts

CLAIMS = {  # options of each entry; the right one first
    "fixed cost": ("reading the weights", "reading the cache", "computing a row"),
    "shared by": ("all rows of the batch", "all tokens of a sequence", "all layers"),
    "free until": ("arithmetic takes as long as the trip", "the memory is full", "l2 is full"),
    "bends earlier": ("each sequence reads its own cache", "the weights grow", "launches add up"),
    "ends with": ("out of memory", "twice the latency", "a slower clock"),
    "second test": ("one launch", "gpu utilisation", "a still larger batch"),
}


@exercise("06-11")
def claims(answer: Any, context: Context) -> Outcome:
    """A sixth of the points per entry; the first wrong one is explained."""
    cells = table(answer, tuple(CLAIMS))
    picked = {name: choice(cells[name], CLAIMS[name], name) for name in CLAIMS}
    wrong = [name for name, options in CLAIMS.items() if picked[name] != options[0]]
    if wrong:
        name = wrong[0]
        key = f"{name} {CLAIMS[name].index(picked[name])}".replace(" ", "_")
        raise Wrong(key, fraction=1 - len(wrong) / len(CLAIMS),
                    have=f"{name}: {picked[name]!r}", entry=repr(name))  # fmt: skip
    return right("06-11")


RECAP = {"memory": "about the same", "compute": "about double", "overhead": "about the same"}


@exercise("06-12")
def recap(answer: Any, context: Context) -> Outcome:
    """What twice the batch does to the time of each bucket."""
    expect_choices(answer, RECAP)
    return right("06-12")
