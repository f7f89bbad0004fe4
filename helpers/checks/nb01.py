"""Graders of notebook 01, the GPU model: two jobs, two speeds."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping
from typing import Any

from helpers import devices
from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import (
    called,
    expect_calls,
    expect_choices,
    expect_number,
    number,
    returned,
    table,
)
from helpers.checks.records import (
    gb_per_s,
    measured,
    origin,
    peak_bandwidth,
    peak_rate,
    possible,
    seconds,
    wall,
)
from helpers.evidence import Record

# ---------------------------------------------------------------- does not fit, or is slow

LIMITS = {"a": "capacity", "b": "bandwidth", "c": "arithmetic", "d": "capacity", "e": "bandwidth"}


@exercise("01-1")
def which_limit(answer: Any, context: Context) -> Outcome:
    """Five reports: what does not fit, what is slow to move, what is slow to compute."""
    expect_choices(answer, LIMITS)
    return right("01-1")


# ---------------------------------------------------------------- time to read


def seconds_to_read(nbytes: float, bandwidth: float) -> float:
    """Seconds that `nbytes` take at `bandwidth` bytes/s."""
    return nbytes / bandwidth


READ_MISTAKES: dict[str, Callable[..., float]] = {
    "inverted": lambda n, w: w / n,
    "product": lambda n, w: n * w,
    "round_trip": lambda n, w: 2 * n / w,
    "bits": lambda n, w: 8 * n / w,
    "milliseconds": lambda n, w: n / w * 1e3,
    "gigabytes": lambda n, w: n / 1e9 / w,
    "gib": lambda n, w: n / 2**30 / (w / 1e9),
    "floor": lambda n, w: float(n // w),
    "rounded": lambda n, w: round(n / w, 3),
}


def read_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"01-2:{seed}")
    return [
        [rng.randrange(10**6, 10**9), rng.randrange(200, 4000) * 1e9],
        [rng.randrange(10**10, 10**11), rng.randrange(200, 4000) * 1e9],
        [rng.randrange(3 * 10**10, 10**11), rng.randrange(10, 30) * 1e9],
    ]


@exercise("01-2", inputs=read_inputs)
def time_to_read(answer: Any, context: Context) -> Outcome:
    calls = read_inputs(context.seed)
    expect_calls(answer, calls, seconds_to_read, mistakes=READ_MISTAKES, near=_near)
    return right("01-2")


# ---------------------------------------------------------------- four rows

ROWS = ("read_all", "read", "flop_meanwhile", "ridge")


def four_rows(memory: float, bandwidth: float, rate: float, nbytes: float) -> list[float]:
    """[s to read all memory, s to read `nbytes`, FLOP possible meanwhile, ridge in FLOP/byte]."""
    return [memory / bandwidth, nbytes / bandwidth, rate * nbytes / bandwidth, rate / bandwidth]


ROW_MISTAKES: dict[str, dict[str, Callable[..., float]]] = {
    "read_all": {
        "inverted": lambda m, w, f, n: w / m,
        "round_trip": lambda m, w, f, n: 2 * m / w,
        "milliseconds": lambda m, w, f, n: m / w * 1e3,
        "swapped": lambda m, w, f, n: n / w,
    },
    "read": {
        "inverted": lambda m, w, f, n: w / n,
        "round_trip": lambda m, w, f, n: 2 * n / w,
        "milliseconds": lambda m, w, f, n: n / w * 1e3,
        "swapped": lambda m, w, f, n: m / w,
    },
    "flop_meanwhile": {
        "all_memory": lambda m, w, f, n: f * m / w,
        "divided": lambda m, w, f, n: f / (n / w),
        "one_second": lambda m, w, f, n: f,
        "tera": lambda m, w, f, n: f * n / w / 1e12,
    },
    "ridge": {
        "upside_down": lambda m, w, f, n: w / f,
        "capacity": lambda m, w, f, n: f / m,
        "per_weights": lambda m, w, f, n: f * n / w,
        "tera_giga": lambda m, w, f, n: f / w * 1e-3,
    },
}


def rows_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"01-3:{seed}")
    return [
        [
            rng.randrange(20, 200) * 1e9,
            rng.randrange(300, 4000) * 1e9,
            rng.randrange(40, 900) * 1e12,
            rng.randrange(10**9, 19 * 10**9),
        ]
        for _ in range(3)
    ]


@exercise("01-3", inputs=rows_inputs)
def the_four_rows(answer: Any, context: Context) -> Outcome:
    """A quarter of the points per row; the first wrong one is explained."""
    calls = rows_inputs(context.seed)
    got = returned(answer, calls, kind="list")
    for row in got:
        if len(row) != len(ROWS):
            raise Wrong("not_four", have=f"{len(row)} values")
    problems = []
    for i, name in enumerate(ROWS):
        try:
            _check_row(name, [row[i] for row in got], calls, i)
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / len(ROWS)
        raise problems[0]
    return right("01-3")


def _check_row(name: str, got: list[float], calls: list[list[Any]], at: int) -> None:
    wanted = [four_rows(*call)[at] for call in calls]
    if all(_near(g, w) for g, w in zip(got, wanted, strict=True)):
        return
    values = {
        "row": name,
        "have": f"{name} = {got[0]:,.5g}",
        "right": f"{wanted[0]:,.5g}",
        "call": called("four_rows", calls[0]),
    }
    if len(set(got)) == 1:
        raise Wrong("row_constant", **values)
    for key, mistake in ROW_MISTAKES[name].items():
        if all(_near(g, mistake(*call)) for g, call in zip(got, calls, strict=True)):
            raise Wrong(key, **values)
    raise Wrong("row_off", **values)


# ---------------------------------------------------------------- the narrow road


CARDS = ("t4", "a10", "a100_80_sxm", "h100_sxm", "rtx_4090")


def link_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"01-4:{seed}")
    card = devices.get(rng.choice(CARDS))
    return {
        "gigabytes": rng.randrange(40, 140) / 10,
        "pcie_both_ways": round(2 * card.pcie / 1e9, 2),
        "device_memory": round(card.bandwidth / 1e9, 1),
    }


@exercise("01-4", case=link_case, predicts=("slower",))
def over_the_link(answer: Any, context: Context) -> Outcome:
    """Half for the seconds one way, half for how much faster device memory delivers the same."""
    numbers = context.case("01-4")
    size, both, memory = (numbers[k] for k in ("gigabytes", "pcie_both_ways", "device_memory"))
    one_way = both / 2
    cells = table(answer, ("seconds", "times"))
    problems = []
    for name, value, unit, others in (
        (
            "seconds",
            size / one_way,
            "s",
            {
                "both_ways": size / both,
                "inside": size / memory,
                "inverted": one_way / size,
                "there_and_back": 2 * size / one_way,
            },
        ),
        (
            "times",
            memory / one_way,
            "times",
            {
                "ratio_both_ways": memory / both,
                "ratio_inverted": one_way / memory,
                "ratio_there_and_back": 2 * memory / one_way,
            },
        ),
    ):
        try:
            expect_number(cells[name], value, unit=unit, others=others, tolerance=0.05,
                          show=lambda v, n=name: f"{n} = {v:,.4g}")  # fmt: skip
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / 2
        raise problems[0]
    return right("01-4", seconds=f"{size / one_way:.2g} s", times=f"{memory / one_way:.0f}",
                 inside=f"{size / memory * 1e3:.2g} ms")  # fmt: skip


# ---------------------------------------------------------------- own roofs


def _rate(record: Record) -> float:
    """FLOP/s of a measured matrix product."""
    return record.value["work"]["flops"] / seconds(record)


def _copied(record: Record) -> float:
    """Bytes/s of a measured copy, read plus written."""
    return record.value["work"]["bytes_ideal"] / seconds(record)


def _tflops(value: float) -> str:
    return f"{value:,.4g} TFLOP/s"


def _ridge(value: float) -> str:
    return f"{value:,.4g} FLOP/byte"


@exercise("01-5", predicts=("copy", "matmul"))
def own_roofs(answer: Any, context: Context) -> Outcome:
    """Equal shares for the entries: copy bandwidth, one matmul rate per dtype, and the ridge."""
    dtypes = ("fp32",) if context.cpu else ("fp16", "fp32")
    cells = table(answer, ("bandwidth", *dtypes, "ridge"))
    copy = measured(context, "01-5", "copy")
    products = {name: measured(context, "01-5", name) for name in dtypes}
    problems: list[Wrong] = []

    def judge(check: Callable[[], Any]) -> None:
        try:
            check()
        except Wrong as wrong:
            problems.append(wrong)

    judge(lambda: _check_copy(cells["bandwidth"], copy, context))
    for name, record in products.items():
        other = next((r for n, r in products.items() if n != name), None)
        judge(lambda n=name, r=record, o=other: _check_product(cells[n], n, r, o, context))
    judge(lambda: _check_ridge(cells, dtypes[0], context.card(copy)))
    if problems:
        problems[0].fraction = 1 - len(problems) / len(cells)
        raise problems[0]
    ridge = _rate(products[dtypes[0]]) / _copied(copy)
    card = None if context.cpu else context.card(copy)
    values = {"ridge": _ridge(ridge), "origin": origin(copy)}
    if card is None:
        return right("01-5", "alone", **values)
    nominal = card.peak["fp16"] / card.bandwidth
    return right("01-5", nominal=f"{nominal:.0f}", **values)


def _check_copy(cell: Any, record: Record, context: Context) -> None:
    peak = peak_bandwidth(record, context)
    copied = _copied(record)
    possible(copied, peak)
    expect_number(
        cell,
        copied / 1e9,
        unit="GB/s",
        show=lambda v: f"bandwidth = {gb_per_s(v)}",
        tolerance=0.03,
        others={"read_only": copied / 2e9} | ({"datasheet": peak / 1e9} if peak else {}),
        peak=peak and peak / 1e9,
    )


def _check_product(
    cell: Any, name: str, record: Record, other: Record | None, context: Context
) -> None:
    peak = peak_rate(record, context, name)
    rate = _rate(record)
    possible(rate, peak, lambda v: _tflops(v / 1e12))
    side = (record.value["work"]["flops"] / 2) ** (1 / 3)
    known = {"multiply_adds": rate / 2e12, "squared": rate / side / 1e12}
    if other is not None:
        known["other_dtype"] = _rate(other) / 1e12
    if peak:
        known["datasheet"] = peak / 1e12
    expect_number(
        cell,
        rate / 1e12,
        unit="TFLOP/s",
        show=lambda v: f"{name} = {_tflops(v)}",
        tolerance=0.03,
        others=known,
        peak=peak and peak / 1e12,
    )


def _check_ridge(cells: Mapping[str, Any], dtype: str, card: devices.Device | None) -> None:
    bandwidth, rate = number(cells["bandwidth"]), number(cells[dtype])
    others = {
        "upside_down": bandwidth / rate / 1e3,
        "upside_down_units": bandwidth / rate,
        "units": rate / bandwidth,
    }
    if dtype != "fp32":
        others["fp32_ridge"] = number(cells["fp32"]) / bandwidth * 1e3
    if card is not None:
        others["nominal"] = card.peak["fp16"] / card.bandwidth
    expect_number(
        cells["ridge"],
        rate / bandwidth * 1e3,
        unit="FLOP/byte",
        show=lambda v: f"ridge = {_ridge(v)}",
        tolerance=0.03,
        others=others,
    )


# ---------------------------------------------------------------- the roof that moves


@exercise("01-6", predicts=("kept",))
def ridge_that_lasts(answer: Any, context: Context) -> Outcome:
    """The ridge of the last third of the soak, over the copy bandwidth of 01-5."""
    record = measured(context, "01-6", "soak")
    copied = _copied(measured(context, "01-5", "copy"))
    samples, flops = record.value["samples"], record.value["work"]["flops"]
    late = flops / statistics.median(samples[-max(1, len(samples) // 3) :])
    early = flops / samples[0]
    peak = peak_rate(record, context, "fp16")
    possible(late, peak, lambda v: _tflops(v / 1e12))
    others = {
        "upside_down": copied / late,
        "units": late / copied * 1e-3,
        "rate": late / 1e12,
        "multiply_adds": late / copied / 2,
        "read_only": late / copied * 2,
    }
    card = None if context.cpu else context.card(record)
    if card is not None:
        others["nominal"] = card.peak["fp16"] / card.bandwidth
        others["datasheet"] = late / card.bandwidth
    others["first"] = early / copied
    expect_number(answer, late / copied, unit="FLOP/byte", show=_ridge, tolerance=0.04,
                  others=others)  # fmt: skip
    if record.origin == "simulated":
        variant = "model"
    else:
        variant = "fell" if late < 0.93 * early else "rose" if late > 1.07 * early else "steady"
    return right("01-6", variant, ridge=_ridge(late / copied), kept=f"{late / early:.0%}")


# ---------------------------------------------------------------- the price of an order


def launch_cost(record: Record) -> float:
    """Seconds that the host needs to queue one call; on a CPU the call itself."""
    host = record.value.get("host")
    if host is None:
        return seconds(record)
    if isinstance(host, bool) or not isinstance(host, (int, float)) or not 0 < host < math.inf:
        raise Wrong("damaged", have="a record of 01-7 without the time to queue a call")
    return float(host)


@exercise("01-7", predicts=("launch",))
def bytes_per_launch(answer: Any, context: Context) -> Outcome:
    """MB that the memory moves, at the copy's rate, while the host queues one kernel."""
    record = measured(context, "01-7", "tiny add")
    copy = measured(context, "01-5", "copy")
    host, copied = launch_cost(record), _copied(copy)
    others = {"gb": host * copied / 1e9, "bytes": host * copied, "read_only": host * copied / 2e6}
    if record.value.get("host") is not None:
        others["gpu_time"] = seconds(record) * copied / 1e6
    if peak := peak_bandwidth(copy, context):
        others["datasheet"] = host * peak / 1e6
    expect_number(answer, host * copied / 1e6, unit="MB", show=lambda v: f"{v:,.4g} MB",
                  tolerance=0.05, others=others)  # fmt: skip
    return right("01-7", "cpu" if context.cpu else "", have=f"{host * copied / 1e6:,.2g} MB",
                 host=f"{host * 1e6:,.2g} us", origin=origin(record))  # fmt: skip


# ---------------------------------------------------------------- second sitting

JOBS = ("copy", "matmul", "tiny add")
EFFECTS = ("about the same", "about half", "far less than half")
UPGRADES = {
    "twice the bandwidth": "copy",
    "twice the FLOP rate": "matmul",
    "half the launch cost": "tiny add",
    "twice the capacity": "none",
}


def effect(factor: float) -> str:
    """The word for a time that changed by `factor`; the bands are wide on purpose."""
    return EFFECTS[0] if factor > 0.75 else EFFECTS[1] if factor > 0.35 else EFFECTS[2]


SHOWN = dict(zip(JOBS, (EFFECTS[1], EFFECTS[2], EFFECTS[0]), strict=True))
"""What half the bytes must do to each job's time, if each is bound as the notebook says."""


@exercise("01-8", predicts=JOBS)
def which_upgrade(answer: Any, context: Context) -> Outcome:
    """Which job each better card speeds up: a quarter each, where the timings tell jobs apart.

    The predictions are told and cost nothing: else it would pay to predict after measuring.
    """
    cells = table(answer, tuple(UPGRADES))
    factors = {}
    for job in JOBS:
        wide = measured(context, "01-8", f"{job}, wide")
        narrow = measured(context, "01-8", f"{job}, narrow")
        factors[job] = wall(narrow) / wall(wide) if job == "tiny add" else (
            seconds(narrow) / seconds(wide))  # fmt: skip
    seen = ", ".join(f"{job}: x{factor:.2f}" for job, factor in factors.items())
    if {job: effect(factor) for job, factor in factors.items()} != SHOWN:
        raise Wrong("unclear", state="cannot_tell", have=seen)
    expect_choices(cells, UPGRADES)
    guesses = {job: context.prediction("01-8", job) for job in JOBS}
    held = sum(bool(g) and g.value == effect(factors[job]) for job, g in guesses.items())
    return right("01-8", seen=seen, held=held, all=len(JOBS), origin=origin(wide))


RECAP = {"memory": "bandwidth", "compute": "FLOP rate", "overhead": "launch cost"}
FIGURES = ("bandwidth", "flop rate", "launch cost", "capacity")


@exercise("01-9")
def recap(answer: Any, context: Context) -> Outcome:
    """Which figure of a card sets the speed of each kind of program."""
    expect_choices(answer, {k: v.lower() for k, v in RECAP.items()}, FIGURES)
    return right("01-9")


# ---------------------------------------------------------------- small things


def _near(got: float, wanted: float) -> bool:
    return math.isclose(got, wanted, rel_tol=0.01)
