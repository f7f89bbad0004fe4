"""Graders of notebook 03, matmul and pointwise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helpers import roofline
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
from helpers.checks.records import measured, origin, seconds
from helpers.devices import slots
from helpers.facts import fact

# ---------------------------------------------------------------- retrieval


def ridge_case(seed: int) -> dict[str, Any]:
    """A card that does not exist: bandwidth in GB/s and matmul rate in TFLOP/s."""
    rng = random.Random(f"03-1:{seed}")
    bandwidth = rng.randrange(300, 2000, 20)
    ridge = rng.choice([60, 80, 120, 150, 180, 240, 300])
    return {"gb_per_s": bandwidth, "tflop_per_s": round(bandwidth * ridge / 1e3, 1)}


@exercise("03-1", case=ridge_case)
def ridge_point(answer: Any, context: Context) -> Outcome:
    """Rate over bandwidth, in FLOP per byte."""
    case = context.case("03-1")
    ridge = case["tflop_per_s"] * 1e12 / (case["gb_per_s"] * 1e9)
    expect_number(
        answer,
        ridge,
        unit="FLOP/byte",
        show=_intensity,
        others={
            "inverted": 1 / ridge,
            "units": ridge / 1e3,
            "units_inverted": 1e3 / ridge,
            "per_element": 2 * ridge,
            "halved": ridge / 2,
        },
    )
    return right("03-1", ridge=f"{ridge:.0f}")


@exercise("03-2")
def what_follows(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "b")
    return right("03-2")


# ---------------------------------------------------------------- intensity on paper


def matmul_intensity(m: int, k: int, n: int, itemsize: int) -> float:
    """FLOP per byte of [m, k] x [k, n]: 2mkn over both inputs and the output, moved once each."""
    return 2 * m * k * n / (itemsize * (m * k + k * n + m * n))


MATMUL_MISTAKES: dict[str, Callable[..., float]] = {
    "no_two": lambda m, k, n, s: matmul_intensity(m, k, n, s) / 2,
    "no_output": lambda m, k, n, s: 2 * m * k * n / (s * (m * k + k * n)),
    "no_first": lambda m, k, n, s: 2 * m * k * n / (s * (k * n + m * n)),
    "sides": lambda m, k, n, s: 2 * m * k * n / (s * 2 * (m + k + n)),
    "brackets": lambda m, k, n, s: 2 * m * k * n / s * (m * k + k * n + m * n),
    "floor": lambda m, k, n, s: math.floor(matmul_intensity(m, k, n, s)),
    "output_only": lambda m, k, n, s: 2 * k / s,
    "weights_only": lambda m, k, n, s: 2 * m / s,
    "elements": lambda m, k, n, s: matmul_intensity(m, k, n, 1),
    "two_bytes": lambda m, k, n, s: matmul_intensity(m, k, n, 2),
    "bits": lambda m, k, n, s: matmul_intensity(m, k, n, 8 * s),
    "inverted": lambda m, k, n, s: 1 / matmul_intensity(m, k, n, s),
    "square": lambda m, k, n, s: 2 * n / (3 * s),
    "square_m": lambda m, k, n, s: 2 * m / (3 * s),
    "square_k": lambda m, k, n, s: 2 * k / (3 * s),
    "third": lambda m, k, n, s: n / 3,
    "flops": lambda m, k, n, s: 2 * m * k * n,
    "bytes": lambda m, k, n, s: s * (m * k + k * n + m * n),
}


def matmul_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"03-3:{seed}")
    sizes = [rng.sample(range(64, 4096, 8), 3) for _ in range(3)]
    return [
        [*sizes[0], 4],
        [1, *sizes[1][1:], 2],
        [*sizes[1], 1],
        [rng.randint(2, 32), *sizes[2][1:], 8],
    ]


@exercise("03-3", inputs=matmul_inputs)
def matmul_intensity_function(answer: Any, context: Context) -> Outcome:
    calls = matmul_inputs(context.seed)
    expect_calls(answer, calls, matmul_intensity, mistakes=MATMUL_MISTAKES, near=_near)
    return right("03-3")


def pointwise_intensity(flop_per_element: float, inputs: int, itemsize: int) -> float:
    """FLOP per byte of one pointwise kernel: `inputs` tensors read, one written, all alike."""
    return flop_per_element / (itemsize * (inputs + 1))


POINTWISE_MISTAKES: dict[str, Callable[..., float]] = {
    "no_write": lambda f, i, s: f / (s * i),
    "one_input": lambda f, i, s: f / (2 * s),
    "all_both_ways": lambda f, i, s: f / (2 * s * i),
    "per_input": lambda f, i, s: f * i / (s * (i + 1)),
    "brackets": lambda f, i, s: f / s * (i + 1),
    "loose_write": lambda f, i, s: f / (s * i + 1),
    "floor": lambda f, i, s: f // (s * (i + 1)),
    "no_flops": lambda f, i, s: 1 / (s * (i + 1)),
    "elements": lambda f, i, s: f / (i + 1),
    "two_bytes": lambda f, i, s: f / (2 * (i + 1)),
    "per_element": lambda f, i, s: f,
    "bits": lambda f, i, s: f / (8 * s * (i + 1)),
    "inverted": lambda f, i, s: s * (i + 1) / f,
    "bytes": lambda f, i, s: s * (i + 1),
}


def pointwise_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"03-4:{seed}")
    return [[rng.randint(2, 30), inputs, size] for inputs, size in ((3, 4), (2, 8), (1, 1), (4, 2))]


@exercise("03-4", inputs=pointwise_inputs)
def pointwise_intensity_function(answer: Any, context: Context) -> Outcome:
    calls = pointwise_inputs(context.seed)
    expect_calls(answer, calls, pointwise_intensity, mistakes=POINTWISE_MISTAKES, near=_near)
    return right("03-4")


# ---------------------------------------------------------------- counting a real function


def block_case(seed: int) -> dict[str, Any]:
    """Sizes of a feed-forward block, four times as wide inside."""
    rng = random.Random(f"03-5:{seed}")
    width = rng.choice([1024, 1536, 2048, 3072, 4096])
    return {"rows": rng.choice([384, 512, 768, 1024, 1536]), "width": width}


@dataclass(frozen=True)
class Block:
    """FLOPs and fp16 bytes of relu(x @ up) @ down, operation by operation."""

    products: int
    relu: int
    product_bytes: int
    relu_bytes: int
    ideal_bytes: int


def block(rows: int, width: int) -> Block:
    inner = 4 * width
    moved = 2 * (rows * width + width * inner + rows * inner)
    return Block(
        products=4 * rows * width * inner,
        relu=rows * inner,
        product_bytes=2 * moved,
        relu_bytes=4 * rows * inner,
        ideal_bytes=4 * (rows * width + width * inner),
    )


@exercise("03-5", case=block_case)
def shares_of_the_relu(answer: Any, context: Context) -> Outcome:
    """Half of the points for each share; the first wrong one is explained."""
    b = block(**context.case("03-5"))
    flops = b.relu / (b.products + b.relu)
    total = b.product_bytes + b.relu_bytes
    moved = b.relu_bytes / total
    cells = table(answer, ("flops", "bytes"))
    if _close(cells["flops"], moved) and _close(cells["bytes"], flops):
        raise Wrong("swapped", have="each share in the other's place")
    others = {
        "flops": {"percent": 100 * flops, "multiply_add": 2 * flops, "bytes_there": moved},
        "bytes": {
            "percent": 100 * moved,
            "of_the_products": b.relu_bytes / b.product_bytes,
            "of_the_ideal": b.relu_bytes / b.ideal_bytes,
            "one_way": moved / 2,
            "flops_there": flops,
        },
    }
    problems = []
    for name, share in (("flops", flops), ("bytes", moved)):
        try:
            expect_number(
                cells[name],
                share,
                unit="",
                show=lambda v, name=name: f"{name}: {v:.3g}",
                tolerance=0.03,
                others=others[name],
                entry=repr(name),
            )
        except Wrong as wrong:
            cut = name == "flops" and cells[name] in (0, round(flops, 3), round(flops, 4))
            have = {"have": f"{name}: {cells[name]}", "entry": repr(name)}
            problems.append(Wrong("rounded", **have) if cut else wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / 2
        raise problems[0]
    return right("03-5", flops=f"{flops:.3%}", bytes=f"{moved:.0%}")


# ---------------------------------------------------------------- BERT: shares into rates

BERT = {"normalisation": "normalisation", "element-wise": "elementwise"}
HALF_A_DIGIT = 5e-5
"""Shares of FLOPs are published with two decimals of a percent."""


def bert(kind: str, what: str) -> float:
    return fact(f"result.bert.{kind}_{what}").value


def slower(kind: str, flops: float | None = None) -> float:
    """How many times lower the FLOP rate of that kind is than that of the matrix products."""
    products = bert("contraction", "flops") / bert("contraction", "time")
    return products / ((bert(kind, "flops") if flops is None else flops) / bert(kind, "time"))


def band(kind: str) -> tuple[float, float]:
    """The factors that the rounded share of FLOPs leaves possible."""
    share = bert(kind, "flops")
    return slower(kind, share + HALF_A_DIGIT), slower(kind, share - HALF_A_DIGIT)


@exercise("03-6")
def achieved_rates(answer: Any, context: Context) -> Outcome:
    """Half for each kind; any factor within what the rounded shares allow."""
    cells = table(answer, tuple(BERT))
    problems = []
    for name, kind in BERT.items():
        try:
            _check_factor(name, kind, cells[name])
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / 2
        raise problems[0]
    low, high = band("elementwise")
    return right("03-6", low=f"{math.floor(low / 10) * 10}", high=f"{round(high, -1):.0f}")


def _check_factor(name: str, kind: str, cell: Any) -> None:
    value = number(cell)
    low, high = band(kind)
    if low * 0.995 <= value <= high * 1.005:
        return
    flops = bert("contraction", "flops") / bert(kind, "flops")
    time = bert("contraction", "time") / bert(kind, "time")
    values = {"have": f"{name}: {value:,.4g}", "entry": repr(name)}
    known = {
        "flops_only": flops,
        "time_only": time,
        "multiplied": flops * time,
        "inverted": 1 / slower(kind),
        "halved": slower(kind) / 2,
        "other_kind": slower(next(k for k in BERT.values() if k != kind)),
        "percent": slower(kind) / 100,
        "percent_": slower(kind) * 100,
        "one_of_all": bert(kind, "time") / bert(kind, "flops"),
    }
    for key, mistaken in known.items():
        if math.isclose(value, mistaken, rel_tol=0.02):
            raise Wrong(key.rstrip("_"), **values)
    raise Wrong("off", **values)


# ---------------------------------------------------------------- rows until the ridge

WIDTH, CPU_WIDTH = 8192, 2048
"""Of the square layer whose batch is swept; in fp16 far above every L2."""


def rows_at(ridge: float, width_in: int, width_out: int, itemsize: int) -> float:
    """Rows at which [B, D] x [D, F] has the intensity `ridge`; infinite where it never has.

    Intensity is 2 / (itemsize (1/B + 1/D + 1/F)); solved for B.
    """
    left = 2 / (itemsize * ridge) - 1 / width_in - 1 / width_out
    return 1 / left if left > 0 else math.inf


@exercise("03-7", predicts=("bend", "64 rows"))
def rows_until_the_ridge(answer: Any, context: Context) -> Outcome:
    """Rows at the learner's own ceiling, its activations counted; within 1 %, or a whole row.

    1 %: on an A100 the bytes of the results, left out, change the answer by less than two.
    """
    roof, made = _ceiling(context)
    dtype, itemsize, width = ("fp32", 4, CPU_WIDTH) if context.cpu else ("fp16", 2, WIDTH)
    ridge = roofline.ridge(roof, dtype)
    rows = rows_at(ridge, width, width, itemsize)
    if not math.isfinite(rows):
        raise Wrong("never", state="cannot_tell", have=f"a ridge of {ridge:.0f} FLOP/byte")
    said = {"rows": f"{rows:.3g}", "ridge": f"{ridge:.3g}", "origin": origin(made)}
    variant = "cpu" if context.cpu else ""
    if abs(number(answer, unit="rows") - rows) <= 1:
        return right("03-7", variant, **said)
    others = {
        "ridge": ridge,
        "half_the_bytes": ridge * itemsize / 2,
        "one_width": rows_at(ridge, width, 10**12, itemsize),
        "half_the_width": rows_at(ridge, width // 2, width // 2, itemsize),
        "sign": 1 / (2 / (itemsize * ridge) + 2 / width),
        "twice": 2 * rows,
        "halved": rows / 2,
        "inverted": 1 / rows,
    }
    if context.device and dtype in context.device.peak:
        paper = roofline.ridge(roofline.datasheet(context.device), dtype)
        others["paper"] = rows_at(paper, width, width, itemsize)
        others["paper_ridge"] = paper
    expect_number(
        answer,
        rows,
        unit="rows",
        show=lambda v: f"{v:,.4g} rows",
        tolerance=0.01,
        others=others,
        ridge=said["ridge"],
    )
    return right("03-7", variant, **said)


def _ceiling(context: Context) -> tuple[roofline.Roof, Any]:
    """The roof that the learner's machine showed in this notebook, and its record."""
    record = context.evidence and context.evidence.latest("03-0", "measurement", "ceiling")
    if not record:
        raise Wrong("no_ceiling", have="no ceiling of your machine")
    try:
        roof = roofline.Roof(**record.value)
        rates = [roof.bandwidth, *roof.rates.values()]
        if not all(type(r) is float and r > 0 for r in rates):
            raise ValueError
        roof.rates["fp32" if context.cpu else "fp16"]
    except (TypeError, ValueError, KeyError, AttributeError):
        raise Wrong("damaged", have="a ceiling that is no roof") from None
    return roof, record


# ---------------------------------------------------------------- eight operations

NEAR = 3.0
"""Within this factor of the ridge an operation is near it: roofs of one card differ as much."""
SOFT = 1.25
"""At the edge of that band both answers are taken."""
OPTIONS = ("memory", "compute", "near")


@dataclass(frozen=True)
class Operation:
    """One of the eight. `intensity`: FLOP/B in fp16 on the shapes of the notebook."""

    matrix: bool
    intensity: float
    functions: tuple[str, ...] = ()


def eight(cpu: bool = False) -> dict[str, Operation]:
    """The operations of 03-8: fp16 on a GPU, smaller and fp32 on a CPU."""
    size, wide, heads = (4, 1024, (512, 64)) if cpu else (2, 4096, (2048, 128))
    positions, head = heads
    return {
        "embedding": Operation(False, 0.0),
        "residual add": Operation(False, 1 / (3 * size), ("add",)),
        "gelu": Operation(False, 1 / (2 * size), ("gelu",)),
        "layer norm": Operation(False, 6 / (2 * size), ("rsqrt",)),
        "softmax": Operation(False, 5 / (2 * size), ("exp",)),
        "attention scores": Operation(True, matmul_intensity(positions, head, positions, size)),
        "one-token linear": Operation(True, matmul_intensity(1, wide, wide, size)),
        "large matmul": Operation(True, matmul_intensity(wide, wide, wide, size)),
    }


def ridges(context: Context, matrix: bool) -> tuple[float, float]:
    """Lowest and highest ridge known for the machine: paper, published, its own ceiling."""
    dtype = "fp32" if context.cpu else "fp16"
    own, _ = _ceiling(context)
    known = [own]
    if context.device:
        known += [roofline.datasheet(context.device), roofline.sustained(context.device)]
    found = []
    for roof in known:
        rate = roof and (roof.rates.get(dtype) if matrix else roof.vector_rate)
        if rate:
            found.append(rate / roof.bandwidth)
    if not found:
        raise Wrong("damaged", have="a ceiling without a vector rate")
    return min(found), max(found)


def accepted(operation: Operation, low: float, high: float, lanes: int, itemsize: int) -> set[str]:
    """The verdicts that hold for an operation between ridges `low` and `high`.

    A pointwise function counts as one FLOP and takes several instructions: from both follows how
    close to its ridge it may come.
    """
    counted = operation.intensity
    real = max(counted, slots(operation.functions, lanes) / (2 * itemsize))
    found = set()
    if counted < 1.5 * high:
        found.add("memory")
    if real > low / 1.5:
        found.add("compute")
    if real > low / (NEAR * SOFT) and counted < high * NEAR * SOFT:
        found.add("near")
    return found


@exercise("03-8", predicts=("matmul over gelu",))
def place_eight(answer: Any, context: Context) -> Outcome:
    """Each operation missed costs a quarter, one word for all of them everything."""
    operations = eight(context.cpu)
    cells = table(answer, tuple(operations))
    picked = {name: choice(cells[name], OPTIONS, name) for name in operations}
    lanes = context.device.fp32_lanes_per_sm if context.device else 64
    size = 4 if context.cpu else 2
    if len(set(picked.values())) == 1:
        raise Wrong("one_word", have=f"{picked['gelu']!r}, eight times")
    wrong = []
    for name, operation in operations.items():
        low, high = ridges(context, operation.matrix)
        if picked[name] not in accepted(operation, low, high, lanes, size):
            wrong.append((name, operation, low, high))
    if wrong:
        name, operation, low, high = wrong[0]
        ridge = f"{low:,.3g}" if high < 1.05 * low else f"{low:,.3g} to {high:,.3g}"
        raise Wrong(
            _misplaced(name, operation, picked[name], low),
            fraction=max(0.0, 1 - len(wrong) / 4),
            have=f"{name}: {picked[name]!r}",
            name=name,
            intensity=_intensity(operation.intensity),
            ridge=ridge,
            unit="the matrix units" if operation.matrix else "the vector units",
        )
    memory = sum(word == "memory" for word in picked.values())
    return right("03-8", "cpu" if context.cpu else "", memory=memory)


def _misplaced(name: str, operation: Operation, picked: str, low: float) -> str:
    if name == "embedding":
        return "no_arithmetic"
    if picked == "near":
        return "far"
    if name == "attention scores":
        return "thin" if picked == "compute" else "above_the_ridge"
    if picked == "memory":
        return "shares_its_trip"
    return "few_rows" if operation.matrix else "pointwise_computes"


# ---------------------------------------------------------------- falsify

SIDES = ("few rows", "many rows")
WHAT_IFS = ("twice the arithmetic", "half the weights")
EFFECTS = ("about half", "about the same", "about double")
BUCKETS = ("memory", "compute", "overhead")
LABELS = tuple(f"{side}, {what}" for side in SIDES for what in WHAT_IFS)


def effect(factor: float) -> str:
    """The word for a time that changed by `factor`; the bands are wide on purpose."""
    return EFFECTS[0] if factor < 0.75 else EFFECTS[1] if factor < 1.4 else EFFECTS[2]


def supported(twice: float, half: float) -> set[str]:
    """The buckets that two measured what-ifs leave standing."""
    left = set()
    if effect(half) == EFFECTS[0]:
        left.add("memory")
    if effect(twice) == EFFECTS[2]:
        left.add("compute")
    if effect(half) == effect(twice) == EFFECTS[1]:
        left.add("overhead")
    return left


@exercise("03-9", predicts=LABELS)
def falsify(answer: Any, context: Context) -> Outcome:
    """Half of the points per side, for the bucket that its what-ifs leave standing."""
    cells = table(answer, SIDES)
    picked = {side: choice(cells[side], BUCKETS, side) for side in SIDES}
    factors, base = {}, None
    for side in SIDES:
        base = measured(context, "03-9", side)
        for what in WHAT_IFS:
            changed = measured(context, "03-9", f"{side}, {what}")
            factors[f"{side}, {what}"] = seconds(changed) / seconds(base)
    seen = "; ".join(f"{label}: x{factor:.2f}" for label, factor in factors.items())
    left = {side: supported(*(factors[f"{side}, {w}"] for w in WHAT_IFS)) for side in SIDES}
    if not all(left.values()) or (context.cpu and any(picked[s] not in left[s] for s in SIDES)):
        raise Wrong("unclear", state="cannot_tell", have=seen)
    missed = [side for side in SIDES if picked[side] not in left[side]]
    if missed:
        side = missed[0]
        raise Wrong(
            f"{side.split()[0]}_as_{picked[side]}",
            fraction=1 - len(missed) / 2,
            have=f"{side}: {picked[side]!r}",
            seen="; ".join(f"{w}: x{factors[f'{side}, {w}']:.2f}" for w in WHAT_IFS),
            side=side,
        )
    guesses = {label: context.prediction("03-9", label) for label in factors}
    held = sum(bool(g) and g.value == effect(factors[label]) for label, g in guesses.items())
    variant = "held" if held == len(factors) else "missed"
    return right("03-9", variant, seen=seen, held=held, all=len(factors), origin=origin(base))


RECAP = {
    "memory": "pointwise and few rows",
    "compute": "matmul with many rows",
    "overhead": "tiny operations",
}


@exercise("03-10")
def recap(answer: Any, context: Context) -> Outcome:
    """Which operation leans to which bucket."""
    expect_choices(answer, RECAP)
    return right("03-10")


# ---------------------------------------------------------------- small things


def _intensity(value: float) -> str:
    return f"{value:,.4g} FLOP/byte"


def _near(got: float, wanted: float) -> bool:
    return math.isclose(got, wanted, rel_tol=2e-3)


def _close(cell: Any, wanted: float) -> bool:
    try:
        return math.isclose(number(cell), wanted, rel_tol=0.03)
    except Wrong:
        return False
