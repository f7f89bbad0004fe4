"""Graders of notebook 04, the cos-chain fusion lab."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import (
    called,
    expect_calls,
    expect_choices,
    expect_letter,
    expect_number,
    number,
    returned,
    table,
)
from helpers.checks.records import gb_per_s, origin, peak_bandwidth, possible, seconds
from helpers.checks.whatifs import WHAT_IFS, falsified

CHAIN = 3  # cosines in the lab's chain


def _ms(value: float) -> str:
    return f"{value:,.3g} ms"


# ---------------------------------------------------------------- retrieval


@exercise("04-1")
def pointwise_intensity(answer: Any, context: Context) -> Outcome:
    """One FLOP per fp16 element that is read (2 bytes) and written (2 bytes)."""
    expect_number(
        answer,
        0.25,
        unit="FLOP/byte",
        show=lambda v: f"{v:g} FLOP/byte",
        others={"read_only": 0.5, "inverted": 4.0, "fp32": 0.125, "per_element": 1.0},
    )
    if context.device is None:
        return right("04-1")
    operations = context.device.vector_rate / context.device.bandwidth
    return right("04-1", "device", name=context.device.name, operations=f"{operations:.0f}")


@exercise("04-2")
def unit_of_the_cosine(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "b")
    return right("04-2")


# ---------------------------------------------------------------- bytes moved


def bytes_moved(elements: int, bytes_per_element: int, operations: int, fused: bool) -> int:
    """Bytes of a pointwise chain: one read and one write per trip, one trip in all when fused."""
    return 2 * elements * bytes_per_element * (1 if fused else operations)


BYTES_MISTAKES: dict[str, Callable[..., float]] = {
    "half": lambda n, b, k, f: bytes_moved(n, b, k, f) / 2,
    "half_unfused": lambda n, b, k, f: n * b * k,
    "ignores_fused": lambda n, b, k, f: bytes_moved(n, b, k, False),
    "always_fused": lambda n, b, k, f: bytes_moved(n, b, k, True),
    "swapped": lambda n, b, k, f: bytes_moved(n, b, k, not f),
    "two_bytes": lambda n, b, k, f: bytes_moved(n, 2, k, f),
    "reads_once": lambda n, b, k, f: n * b * (2 if f else k + 1),
    "elements": lambda n, b, k, f: bytes_moved(n, 1, k, f),
    "gigabytes": lambda n, b, k, f: bytes_moved(n, b, k, f) / 1e9,
    "megabytes": lambda n, b, k, f: bytes_moved(n, b, k, f) / 1e6,
    "gib": lambda n, b, k, f: bytes_moved(n, b, k, f) / 2**30,
    "bits": lambda n, b, k, f: bytes_moved(n, b, k, f) * 8,
}


def bytes_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"04-3:{seed}")
    calls = [
        [2 ** rng.randint(10, 28), size, rng.randint(2, 9), fused]
        for fused, size in ((False, 4), (True, 8), (False, 1), (True, 4))
    ]
    return [*calls, [2 ** rng.randint(10, 28), 2, 1, False]]


@exercise("04-3", inputs=bytes_inputs)
def bytes_moved_function(answer: Any, context: Context) -> Outcome:
    calls = bytes_inputs(context.seed)
    per_trip = {
        got / bytes_moved(1, 1, *call[2:])
        for got, call in zip(returned(answer, calls), calls, strict=True)
    }
    if len(per_trip) == 1 and 0 not in per_trip:
        raise Wrong(
            "globals",
            have=f"{2 * per_trip.pop():,.0f} bytes per trip, whatever the size",
            call=called("bytes_moved", calls[0]),
            right=f"{bytes_moved(*calls[0]):,}",
        )
    expect_calls(
        answer,
        calls,
        bytes_moved,
        mistakes=BYTES_MISTAKES,
        near=lambda got, wanted: math.isclose(got, wanted, rel_tol=1e-6),
    )
    return right("04-3")


# ---------------------------------------------------------------- cos x1


@exercise("04-4", predicts=("",))
def achieved_bandwidth(answer: Any, context: Context) -> Outcome:
    """GB/s (1e9 bytes) of one cosine: the bytes it must move over the measured median."""
    record = context.measurement("04-4", "cos x1")
    if record is None:
        raise Wrong("not_measured", have="no measurement")
    took, moved = seconds(record), record.value["work"]["bytes_ideal"]
    achieved = moved / took / 1e9
    values = {"ms": _ms(took * 1e3), "gb": f"{moved / 1e9:.3f} GB"}
    peak = peak_bandwidth(record, context)
    possible(achieved * 1e9, peak)
    expect_number(
        answer,
        achieved,
        unit="GB/s",
        show=gb_per_s,
        tolerance=0.03,
        others={"read_only": achieved / 2, "three_trips": achieved * CHAIN},
        peak=peak and peak / 1e9,
        **values,
    )
    share = f", {achieved * 1e9 / peak:.0%} of the datasheet" if peak else ""
    ceiling = context.ceiling("04")
    far = ceiling is not None and achieved * 1e9 < ceiling / 2
    return right(
        "04-4",
        "far" if far else "near",
        have=gb_per_s(achieved),
        share=share,
        origin=origin(record),
    )


# ---------------------------------------------------------------- your own fused chain


def chain_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"04-5:{seed}")
    return [[[round(rng.uniform(-3, 3), 3) for _ in range(64)]] for _ in range(2)]


def cos_chain(value: float, times: int = CHAIN) -> float:
    for _ in range(times):
        value = math.cos(value)
    return value


@exercise("04-5", inputs=chain_inputs, on_device=True)
def fused_chain(answer: Any, context: Context) -> Outcome:
    """Half of the points for right values (atol 5e-3, fp16), half for one kernel."""
    calls = chain_inputs(context.seed)
    if not isinstance(answer, Mapping) or "calls" not in answer:
        raise Wrong("not_a_function", have=repr(answer)[:40])
    got = returned(answer["calls"], calls, kind="list")
    if any(item.get("left") for item in answer["calls"]):
        raise Wrong("left_device", have="a result that is no longer on the device")
    for row, (values,) in zip(got, calls, strict=True):
        if len(row) != len(values):
            raise Wrong("shape", have=f"{len(row)} values")
        for times in (1, 2, 4, 6):
            if _close(row, [cos_chain(v, times) for v in values]):
                raise Wrong("wrong_count", have=f"{times} cosines" if times > 1 else "1 cosine")
        if not _close(row, [cos_chain(v) for v in values]):
            worst = max(abs(g - cos_chain(v)) for g, v in zip(row, values, strict=True))
            raise Wrong("wrong_values", have=f"values that are off by up to {worst:.3g}")
    kernels = answer.get("kernels")
    if kernels is None:
        return right("04-5", kernels="a number of kernels that this machine cannot count")
    if kernels != 1:
        raise Wrong("not_fused", fraction=0.5, have=f"right values, {kernels} kernels")
    return right("04-5", kernels="one kernel")


# ---------------------------------------------------------------- the result table

ROWS = {"cos x1": (1, False), "cos x3": (CHAIN, False), "fused": (CHAIN, True)}
COLUMNS = ("kernels", "gb", "ms", "gb_per_s")


@exercise("04-6", predicts=("speed-up",))
def result_table(answer: Any, context: Context) -> Outcome:
    """A quarter of the points per column; the first wrong one is explained."""
    rows = table(answer, list(ROWS))
    problems: list[Wrong] = []
    for column in COLUMNS:
        try:
            for name in ROWS:
                cells = table(rows[name], COLUMNS)
                _check_cell(name, column, cells, context)
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        first = problems[0]
        first.fraction = 1 - len(problems) / len(COLUMNS)
        raise first
    ratio = _table_seconds("cos x3", context) / _table_seconds("fused", context)
    fused = context.measurement("04-6", "fused")
    work = fused.value["work"]
    rate = work["bytes_ideal"] / _table_seconds("fused", context)
    ceiling = context.ceiling("04")
    variant = "less" if ratio <= 2.8 else "puzzle" if ceiling and rate < 0.6 * ceiling else "full"
    return right("04-6", variant, ratio=f"{ratio:.2f}", origin=origin(fused))


def _check_cell(name: str, column: str, cells: Mapping[str, Any], context: Context) -> None:
    operations, fused = ROWS[name]
    record = context.measurement("04-6", name)
    if record is None:
        raise Wrong("not_measured", have=f"no measurement of {name!r}")
    values = {"row": repr(name)}
    if column == "kernels":
        counted = number(cells[column])
        if counted != (1 if fused else operations) and not (fused and context.cpu):
            raise Wrong(
                "kernels_fused" if fused else "kernels_eager",
                have=f"{counted:g} kernels in the row {name!r}",
                **values,
            )
        return
    work = record.value["work"]
    moved = bytes_moved(work["elements"], work["itemsize"], operations, fused)
    took = seconds(record)
    possible(moved / took, peak_bandwidth(record, context))
    if column == "gb":
        expect_number(
            cells[column],
            moved / 1e9,
            unit="GB",
            show=lambda v: f"{v:,.4g} GB",
            others={
                "read_only": moved / 2e9,
                "trips": moved / 1e9 * (operations if fused else 1 / operations),
            },
            **values,
        )
    elif column == "ms":
        expect_number(
            cells[column], took * 1e3, unit="ms", show=_ms, others={"seconds": took}, **values
        )
    else:
        got, mine = number(cells["gb"]), number(cells["ms"])
        expect_number(
            cells[column],
            got / mine * 1e3,
            unit="GB/s",
            show=gb_per_s,
            others={"gb_per_ms": got / mine},
            **values,
        )


def _table_seconds(name: str, context: Context) -> float:
    return seconds(context.measurement("04-6", name))


# ---------------------------------------------------------------- same result?


STEP = 2.0**-11  # between neighbours in fp16 from 0.5 to 1, where the chain's values lie


@exercise("04-7")
def tolerance(answer: Any, context: Context) -> Outcome:
    """The largest difference, and an atol above it but at most twenty times as wide.

    In fp16 a difference of two of the chain's values is zero or at least one step.
    """
    cells = table(answer, ("difference", "tolerance"))
    difference = number(cells["difference"], positive=False)
    chosen = number(cells["tolerance"])
    if difference < 0:
        raise Wrong("negative", have=f"{difference:.3g}")
    if difference > 0.05:
        raise Wrong("difference_off", have=f"{difference:.3g}")
    if not context.cpu and difference == 0:
        raise Wrong("zero", have="a difference of 0")
    if not context.cpu and difference < 0.99 * STEP:
        raise Wrong("below_a_step", have=f"{difference:.2g}", step=f"{STEP:.2g}")
    widest = 20 * max(difference, 2.0**-23 if context.cpu else STEP)
    if chosen < 0.99 * difference:  # copied from a print, it may be rounded
        raise Wrong("too_tight", have=f"{chosen:g}", difference=f"{difference:.2g}")
    if chosen > widest:
        times = chosen / (widest / 20)
        raise Wrong("too_loose", have=f"{chosen:g}", widest=f"{widest:.1g}", times=f"{times:,.0f}")
    variant = "fp16" if not context.cpu else "fp32" if difference else "equal"
    return right("04-7", variant, difference=f"{difference:.2g}")


@exercise("04-8")
def the_clue(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "c")
    return right("04-8")


# ---------------------------------------------------------------- second sitting


def knee(
    bandwidth: float, vector_rate: float, bytes_per_element: int, instructions: float
) -> float:
    """Repeats at which the arithmetic takes as long as one trip in and out.

    Balance n·2b/bandwidth = n·r·i/vector_rate, solved for r.
    """
    return 2 * bytes_per_element * vector_rate / (bandwidth * instructions)


KNEE_MISTAKES: dict[str, Callable[..., float]] = {
    "read_only": lambda w, v, b, i: knee(w, v, b, i) / 2,
    "inverted": lambda w, v, b, i: 1 / knee(w, v, b, i),
    "ignores_cost": lambda w, v, b, i: knee(w, v, b, 1),
    "multiplies_cost": lambda w, v, b, i: knee(w, v, b, 1 / i),
    "bits": lambda w, v, b, i: knee(w, v, 8 * b, i),
    "four_bytes": lambda w, v, b, i: knee(w, v, 4, i),
    "fma": lambda w, v, b, i: knee(w, 2 * v, b, i),
    "ignores_bytes": lambda w, v, b, i: knee(w, v, 1, i),
}


def knee_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"04-9:{seed}")
    costs = (1, rng.randint(2, 9), rng.randint(10, 40))
    return [
        [rng.randrange(200, 1000) * 1e9, rng.randrange(10, 30) * 1e12, size, cost]
        for size, cost in zip((4, 2, 2), costs, strict=True)
    ]


@exercise("04-9", inputs=knee_inputs, predicts=("cosine",))
def knee_function(answer: Any, context: Context) -> Outcome:
    expect_calls(answer, knee_inputs(context.seed), knee, mistakes=KNEE_MISTAKES, near=_near)
    return right("04-9")


def _near(got: float, wanted: float) -> bool:
    """Within 1 %, or a whole number of repeats next to it."""
    whole = got == int(got) and abs(got - wanted) <= 1
    return math.isclose(got, wanted, rel_tol=0.01) or whole


@exercise("04-10", predicts=("bucket", *WHAT_IFS))
def falsify(answer: Any, context: Context) -> Outcome:
    return falsified("04-10", answer, context)


@exercise("04-11")
def honest_size(answer: Any, context: Context) -> Outcome:
    """Smallest power of two of fp16 elements that move ten times L2: 4 bytes each, in and out."""
    if context.cpu or context.device is None:
        raise Wrong(
            "no_l2", state="cannot_tell", have="a machine whose L2 the course does not know"
        )
    chosen = number(answer, unit="elements")
    l2 = context.device.l2
    right_value = power_of_two(10 * l2 / 4)
    values = {"have": f"{chosen:,.0f} elements", "l2": f"{l2 / 2**20:g} MiB",
              "moved": f"{chosen * 4 / l2:,.1f}"}  # fmt: skip
    if chosen == right_value:
        return right("04-11", l2=values["l2"])
    known = {
        power_of_two(10 * l2 / 2): "one_way",
        power_of_two(10 * l2): "bytes",
        power_of_two(l2 / 4): "once",
        right_value / 2: "one_step_short",
    }
    if chosen in known:
        raise Wrong(known[chosen], **values)
    if 10 * l2 / 4 <= chosen < right_value:
        raise Wrong("no_power", **values)
    raise Wrong("inside" if chosen * 4 <= l2 else "too_small" if chosen < right_value
                else "too_large", **values)  # fmt: skip


def power_of_two(value: float) -> int:
    """The smallest power of two that is not below `value`."""
    return 2 ** math.ceil(math.log2(value))


@exercise("04-12", predicts=("speed-up",))
def gate_trips(answer: Any, context: Context) -> Outcome:
    """SiLU reads g and writes s; the product reads s and u and writes y: 5. Fused: 3."""
    cells = table(answer, ("before", "after"))
    before, after = number(cells["before"]), number(cells["after"])
    values = {"have": f"{before:g} before, {after:g} after"}
    if (before, after) == (5, 3):
        return right("04-12")
    known = {
        (2, 1): "kernels",
        (4, 3): "one_operand",
        (4, 2): "one_operand",
        (5, 2): "two_inputs",
        (3, 2): "no_intermediate",
        (3, 3): "no_intermediate",
        (6, 3): "gate_is_free",
        (3, 5): "swapped",
        (2.5, 1.5): "half",
        (5, 1): "one_trip",
        (5, 5): "same",
    }
    raise Wrong(known.get((before, after), "off"), **values)


@exercise("04-13", predicts=("speed-up",))
def where_it_does_not_pay(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "d")
    return right("04-13")


RECAP = {"memory": "cures", "compute": "nothing", "overhead": "helps"}


@exercise("04-14")
def recap(answer: Any, context: Context) -> Outcome:
    """What fusion does for each bucket."""
    expect_choices(answer, RECAP)
    return right("04-14")


# ---------------------------------------------------------------- small things


def _close(got: list[float], wanted: list[float], atol: float = 5e-3) -> bool:
    return all(abs(g - w) <= atol for g, w in zip(got, wanted, strict=True))
