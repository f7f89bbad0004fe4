"""Graders of notebook 07, the stages of inference."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

from helpers import inference
from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import (
    choice,
    expect_calls,
    expect_choices,
    expect_letter,
    expect_number,
    table,
)
from helpers.checks.records import measured, origin, seconds
from helpers.evidence import Record
from helpers.facts import fact

BUCKETS = ("memory", "compute", "overhead")
LLAMA = inference.model()


def _flop_per_byte(value: float) -> str:
    return f"{value:,.4g} FLOP/byte"


# ---------------------------------------------------------------- retrieval


@exercise("07-1")
def rows_through_a_layer(answer: Any, context: Context) -> Outcome:
    """2BDF FLOP over 2(BD + DF + BF) bytes: 1/(1/B + 1/D + 1/F), 31.5 for 32 rows."""
    exact = 1 / (1 / 32 + 2 / 4096)
    expect_number(
        answer,
        exact,
        unit="FLOP/byte",
        show=_flop_per_byte,
        tolerance=0.03,
        others={
            "one_row": 1.0,
            "square": 4096 / 3,
            "one_flop": exact / 2,
            "per_element": exact * 2,
            "inverted": 1 / exact,
        },
    )
    if context.device is None:
        return right("07-1")
    ridge = context.device.peak["fp16"] / context.device.bandwidth
    variant = "device" if exact < ridge else "beyond"
    return right("07-1", variant, name=context.device.name, ridge=f"{ridge:.0f}")


@exercise("07-2")
def what_a_graph_removes(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "c")
    return right("07-2")


# ---------------------------------------------------------------- a decode step


def decode_intensity(
    batch: int, context: int, parameters: int, weight_bytes: float, kv_bytes: int
) -> float:
    """FLOP per byte of one decode step: weights shared by the batch, caches by nobody."""
    cache = batch * context * kv_bytes
    return (2 * batch * parameters + cache) / (parameters * weight_bytes + cache)


INTENSITY_MISTAKES: dict[str, Callable[..., float]] = {
    "cache_shared": lambda b, c, p, w, k: (2 * b * p + b * c * k) / (p * w + c * k),
    "cache_once": lambda b, c, p, w, k: (2 * b * p + c * k) / (p * w + c * k),
    "weights_each": lambda b, c, p, w, k: (2 * b * p + b * c * k) / (b * (p * w + c * k)),
    "added": lambda b, c, p, w, k: 2 * b / w + 1,
    "averaged": lambda b, c, p, w, k: (2 * b / w + 1) / 2,
    "weights_only": lambda b, c, p, w, k: 2 * b / w,
    "no_attention": lambda b, c, p, w, k: 2 * b * p / (p * w + b * c * k),
    "free_cache": lambda b, c, p, w, k: (2 * b * p + b * c * k) / (p * w),
    "one_flop": lambda b, c, p, w, k: (b * p + b * c * k) / (p * w + b * c * k),
    "two_flop_cache": lambda b, c, p, w, k: (2 * b * p + 2 * b * c * k) / (p * w + b * c * k),
    "one_row": lambda b, c, p, w, k: (2 * p + b * c * k) / (p * w + b * c * k),
    "two_bytes": lambda b, c, p, w, k: decode_intensity(b, c, p, 2, k),
    "ignores_weight_bytes": lambda b, c, p, w, k: decode_intensity(b, c, p, 1, k),
    "ignores_context": lambda b, c, p, w, k: decode_intensity(b, 1, p, w, k),
    "inverted": lambda b, c, p, w, k: 1 / decode_intensity(b, c, p, w, k),
    "flop": lambda b, c, p, w, k: 2 * b * p + b * c * k,
    "bytes": lambda b, c, p, w, k: p * w + b * c * k,
}


def intensity_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"07-3:{seed}")
    return [
        [
            batch,
            rng.randrange(5, 40) * 100,
            rng.randrange(10, 80) * 10**8,
            weight,
            1024 * rng.randrange(256, 640),
        ]
        for batch, weight in (
            (rng.randint(2, 9), 1),
            (rng.randint(20, 90), 0.5),
            (1, 4),
            (rng.randint(3, 40), 2),
        )
    ]


@exercise("07-3", inputs=intensity_inputs, predicts=("batch 32",))
def decode_step(answer: Any, context: Context) -> Outcome:
    expect_calls(
        answer,
        intensity_inputs(context.seed),
        decode_intensity,
        mistakes=INTENSITY_MISTAKES,
        near=lambda got, wanted: math.isclose(got, wanted, rel_tol=5e-4),
    )
    alone, with_cache = (decode_intensity(32, c, LLAMA.matrices, 2, LLAMA.kv_bytes)
                         for c in (0, 2048))  # fmt: skip
    return right("07-3", alone=f"{alone:.0f}", cached=f"{with_cache:.1f}")


# ---------------------------------------------------------------- counted intensities

COUNTED = {
    "prefill weights": 1185.54,
    "prefill attention": 910.22,
    "decode 1 weights": 0.99967,
    "decode 32 weights": 31.652,
    "decode 32 attention": 0.99951,
    "prefill rest": 0.19201,
}
"""FLOP/byte of the decoder at Llama-2-7B's shapes, 2,048 tokens, fp16, unfused; a test recounts."""

ACTIVATIONS = 4_545_024
"""Bytes that one more row adds to the weights' products of a decode step; a test recounts."""


def weights_crossing(ridge: float) -> float:
    """Rows at which the weights' products of a decode step reach `ridge` FLOP/byte.

    2BM / (2M + aB) = ridge for M weights in fp16 and a bytes of activations per row.
    """
    return ridge / (1 - ridge * ACTIVATIONS / (2 * LLAMA.matrices))


@exercise("07-4")
def counted_intensities(answer: Any, context: Context) -> Outcome:
    """A sixth of the points per entry; the first wrong one is explained."""
    cells = table(answer, list(COUNTED))
    problems: list[Wrong] = []
    for name, value in COUNTED.items():
        others = {"inverted": 1 / value}
        if name == "prefill weights":
            others |= {"no_activations": 2048.0, "whole_step": 525.48}
        if name == "decode 32 attention":
            others["cache_batched"] = 32.0
        if name == "decode 32 weights":
            others |= {"one_row": 1.0, "whole_step": 9.486}
        try:
            expect_number(
                cells[name],
                value,
                unit="FLOP/byte",
                show=lambda v, name=name: f"{name}: {_flop_per_byte(v)}",
                tolerance=0.03,
                others=others,
                entry=repr(name),
            )
        except Wrong as wrong:
            wrong.values.setdefault("entry", repr(name))
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / len(COUNTED)
        raise problems[0]
    if context.device is None:
        return right("07-4")
    ridge = context.device.peak["fp16"] / context.device.bandwidth
    return right("07-4", "device", name=context.device.name, ridge=f"{ridge:.0f}",
                 rows=f"{weights_crossing(ridge):.0f}")  # fmt: skip


# ---------------------------------------------------------------- a small model


def _wall(record: Record) -> float:
    """Seconds of a loop of calls, the host included."""
    wall = record.value.get("wall")
    fine = isinstance(wall, (int, float)) and not isinstance(wall, bool) and math.isfinite(wall)
    if not fine or wall <= 0:
        raise Wrong("damaged", have="a measurement without a wall time")
    return wall


@exercise("07-5", predicts=("graph", "prompt"))
def small_model(answer: Any, context: Context) -> Outcome:
    """Half for microseconds per operation, half for a bucket that the measured what-ifs support."""
    cells = table(answer, ("us per operation", "bucket"))
    picked = choice(cells["bucket"], BUCKETS, "bucket")
    eager = measured(context, "07-5", "decode")
    wall, operations = _wall(eager), eager.value["work"].get("kernels")
    if not isinstance(operations, int) or operations < 1:
        raise Wrong("damaged", have="a measurement without a count of operations")
    problem = None
    try:
        expect_number(
            cells["us per operation"],
            wall / operations * 1e6,
            unit="us",
            show=lambda v: f"{v:,.4g} microseconds",
            tolerance=0.04,
            others={
                "whole": wall * 1e6,
                "gpu_time": seconds(eager) / operations * 1e6,
                "milliseconds": wall / operations * 1e3,
                "in_seconds": wall / operations,
                "per_second": operations / wall,
            },
        )
    except Wrong as wrong:
        problem = wrong
    if context.cpu:
        if problem:
            raise problem
        raise Wrong("no_queue", state="cannot_tell", have="a CPU, which works when it is told")
    graph, prompt = (_wall(measured(context, "07-5", n)) for n in ("decode, graph", "prompt"))
    seen = (
        f"the graph is {wall / graph:.1f} times faster, 128 tokens take x{prompt / wall:.2f} of one"
    )
    if problem and wall / graph < 1.33:
        raise problem
    if wall / graph < 1.33:
        raise Wrong("unclear", state="cannot_tell", have=seen)
    if picked != "overhead":
        raise Wrong(
            "contradicted", fraction=0.0 if problem else 0.5, have=f"{picked!r}; but {seen}"
        )
    if problem:
        problem.fraction = 0.5
        raise problem
    variant = "twice" if prompt / wall < 1.4 else "once"
    return right(
        "07-5", variant, us=f"{wall / operations * 1e6:.3g}", seen=seen, origin=origin(eager)
    )


# ---------------------------------------------------------------- the stage table

STAGES = {
    "prefill": "compute",
    "decode batch 1": "memory",
    "decode batch 32": "memory",
    "attention in prefill": "compute",
    "attention in decode": "memory",
    "norms and residuals": "memory",
    "small model in eager": "overhead",
    "sampling": "overhead",
    "loading": "link",
}


@exercise("07-6")
def stage_table(answer: Any, context: Context) -> Outcome:
    expect_choices(answer, STAGES, ("memory", "compute", "overhead", "link"))
    device = context.device
    if device is None:
        return right("07-6")
    read, link = LLAMA.step_weights / device.bandwidth, LLAMA.weights / device.pcie
    return right("07-6", "device", name=device.name, read=f"{read * 1e3:.3g}", link=f"{link:.2g}")


# ---------------------------------------------------------------- the ladder

REMOVED = {"compile": "launches", "int8": "bytes", "int4": "bytes", "speculative": "trips"}


@exercise("07-7")
def ladder(answer: Any, context: Context) -> Outcome:
    expect_choices(answer, REMOVED, ("launches", "bytes", "trips", "arithmetic"))
    return right("07-7")


# ---------------------------------------------------------------- second sitting


@exercise("07-8")
def utilisation(answer: Any, context: Context) -> Outcome:
    """MBU of the compiled rung in per cent: 6.74e9 x 2 bytes x 107/s over 2.0 TB/s."""
    rate = fact("result.gpt_fast.compiled").value
    share = 100 * rate / fact("result.gpt_fast.mbu_bandwidth").value
    value = LLAMA.weights * share
    expect_number(
        answer,
        value,
        unit="%",
        show=lambda v: f"{v:,.4g} %",
        tolerance=0.006,
        others={
            "seven": 14e9 * share,
            "other_inputs": LLAMA.step_weights * share,
            "both_other": LLAMA.step_weights * 100 * rate / 2.039e12,
            "fraction": value / 100,
            "eager": value * fact("result.gpt_fast.eager").value / rate,
        },
    )
    return right("07-8")


INT8 = ("int8 in decode", "int8 in prefill", "eight rows in decode")
EFFECTS = ("about half", "about the same", "about double")


def effect(factor: float) -> str:
    """The word for a time that changed by `factor`; the bands are wide on purpose."""
    return EFFECTS[0] if factor < 0.75 else EFFECTS[1] if factor < 1.4 else EFFECTS[2]


def supported(factors: Mapping[str, float]) -> dict[str, str | None]:
    """The bucket that the measured factors leave standing for each stage; None: unclear."""
    half = effect(factors["int8 in decode"]) == EFFECTS[0]
    free = effect(factors["eight rows in decode"]) == EFFECTS[1]
    return {
        "decode": "memory" if half and free else None,
        "prefill": "memory" if factors["int8 in prefill"] < 0.75 else "compute",
    }


@exercise("07-9", predicts=INT8)
def falsify(answer: Any, context: Context) -> Outcome:
    """Half for each stage's bucket, as the measured what-ifs leave it standing.

    The predictions are told and cost nothing: else it would pay to predict after measuring.
    """
    cells = table(answer, ("decode", "prefill"))
    picked = {name: choice(cell, BUCKETS, name) for name, cell in cells.items()}
    times = {n: seconds(measured(context, "07-9", n)) for n in ("decode", "prefill", *INT8)}
    factors = {n: times[n] / times["prefill" if n == INT8[1] else "decode"] for n in INT8}
    seen = ", ".join(f"{name} x{factor:.2f}" for name, factor in factors.items())
    left = supported(factors)
    if left["decode"] is None:
        raise Wrong("unclear", state="cannot_tell", have=seen)
    wrong = [name for name in picked if picked[name] != left[name]]
    if wrong and context.cpu:
        raise Wrong("unclear", state="cannot_tell", have=seen)
    if wrong:
        have = f"{wrong[0]}: {picked[wrong[0]]!r}; but {seen}"
        raise Wrong(f"{wrong[0]}_contradicted", fraction=1 - len(wrong) / 2, have=have)
    said = {name: context.prediction("07-9", name) for name in INT8}
    held = sum(bool(p) and p.value == effect(factors[n]) for n, p in said.items())
    base = measured(context, "07-9", "decode")
    variant = "held" if held == len(INT8) else "missed"
    return right("07-9", variant, seen=seen, held=held, origin=origin(base))


@exercise("07-10")
def attention_takes_over(answer: Any, context: Context) -> Outcome:
    """2nW = 2n²·width, so n = W / width: 49,408 tokens."""
    even = LLAMA.layer_matrices / LLAMA.hidden
    expect_number(
        answer,
        even,
        unit="tokens",
        show=lambda v: f"{v:,.0f} tokens",
        tolerance=0.05,
        others={
            "no_mask": even / 2,
            "one_product": even * 2,
            "other_level": LLAMA.matrices / LLAMA.hidden,
        },
    )
    return right("07-10")


RECAP = {"memory": "decode", "compute": "prefill", "overhead": "a small model in eager"}


@exercise("07-11")
def recap(answer: Any, context: Context) -> Outcome:
    """Where inference meets each bucket most plainly."""
    expect_choices(answer, RECAP)
    return right("07-11")
