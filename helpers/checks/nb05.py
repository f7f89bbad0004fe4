"""Graders of notebook 05, the asynchronous timing pitfall."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from helpers.checks import stopwatch
from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import (
    choice,
    expect_choices,
    expect_letter,
    expect_number,
    number,
    table,
)
from helpers.checks.records import measured, origin, peak_rate, possible, seconds
from helpers.evidence import Record


def _ms(value: float) -> str:
    return f"{value:,.3g} ms"


def _thirds(problems: list[Wrong], parts: int) -> None:
    """Raise the first problem, with the share of the parts that had none."""
    if problems:
        first = problems[0]
        first.fraction = 1 - len(problems) / parts
        raise first


# ---------------------------------------------------------------- retrieval


def trip_case(seed: int) -> dict[str, Any]:
    """Size of an fp16 tensor, and what a stopwatch said of one pointwise trip over it."""
    rng = random.Random(f"05-1:{seed}")
    return {"million elements": rng.randrange(40, 200), "microseconds": rng.randrange(6, 25)}


@exercise("05-1", case=trip_case)
def implied_bandwidth(answer: Any, context: Context) -> Outcome:
    """2 bytes read and 2 written per fp16 element, over the seconds, in GB/s (1e9)."""
    case = context.case("05-1")
    took = case["microseconds"] * 1e-6
    rate = 4e6 * case["million elements"] / took / 1e9
    expect_number(
        answer,
        rate,
        unit="GB/s",
        show=lambda v: f"{v:,.0f} GB/s",
        others={"read_only": rate / 2, "elements": rate / 4, "fp32": rate * 2},
    )
    if context.device is None:
        return right("05-1", have=f"{rate:,.0f} GB/s")
    times = rate * 1e9 / context.device.bandwidth
    return right("05-1", "device", have=f"{rate:,.0f} GB/s", name=context.device.name,
                 times=f"{times:,.0f}")  # fmt: skip


@exercise("05-2")
def what_39_ms_wait_for(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "c")
    return right("05-2")


# ---------------------------------------------------------------- three clocks

SIDES = (8192, 16384)  # of the matrices; the second on cards with much memory
LATE = 20  # times the record: no busy machine or other card explains more
CLOCKS = ("naive", "synchronize", "events", "naive TFLOP/s")


@exercise("05-3", predicts=("naive", "waited"))
def three_clocks(answer: Any, context: Context) -> Outcome:
    """Times in ms of one matmul, and the rate that the naive one implies: a quarter each.

    They are held against each other more than against the record: when graded, the same cells run
    on another machine.
    """
    cells = table(answer, CLOCKS)
    record = measured(context, "05-3", "matmul")
    if context.cpu:
        raise Wrong("no_queue", state="cannot_tell", have="a CPU, which works when it is told")
    flops = record.value["work"].get("flops", 0)
    if not isinstance(flops, (int, float)) or not flops > 0:
        raise Wrong("damaged", have="a record of 05-3 without FLOP")
    problems: list[Wrong] = []
    for check in (_waited, _naive, _events, _rate):
        try:
            check(cells, flops, record, context)
        except Wrong as wrong:
            problems.append(wrong)
    _thirds(problems, len(CLOCKS))
    naive, waited = number(cells["naive"]), number(cells["synchronize"])
    peak = peak_rate(record, context)
    rate = flops / naive * 1e3
    variant = "peak" if peak and rate > 1.1 * peak else "unknown"
    said = {} if variant == "unknown" else {"times": f"{rate / peak:,.0f}"}
    return right("05-3", variant, ratio=f"{waited / naive:,.0f}", rate=f"{rate / 1e12:,.0f}",
                 origin=origin(record), **said)  # fmt: skip


def _naive(cells: Mapping[str, Any], flops: float, record: Record, context: Context) -> None:
    naive, waited = number(cells["naive"], unit="ms"), _in_ms(cells, record)[0]
    if naive > 0.6 * waited:
        raise Wrong("naive_waits", have=f"naive {_ms(naive)}, with synchronize {_ms(waited)}")


def _waited(cells: Mapping[str, Any], flops: float, record: Record, context: Context) -> None:
    waited, slip = _in_ms(cells, record)
    if slip:
        raise Wrong(slip, have=f"synchronize: {number(cells['synchronize']):.3g}")
    if waited > LATE * seconds(record) * 1e3:
        raise Wrong("waited_too_long", have=f"synchronize: {_ms(waited)}")
    peak = peak_rate(record, context)
    possible(flops / waited * 1e3, peak, show=lambda rate: f"{rate / 1e12:,.4g} TFLOP/s")


def _in_ms(cells: Mapping[str, Any], record: Record) -> tuple[float, str]:
    """The waited time in ms, and the name of the unit in which it was given instead, or ""."""
    waited, known = number(cells["synchronize"], unit="ms"), seconds(record) * 1e3
    for key, factor in (("in_seconds", 1e-3), ("in_microseconds", 1e3)):
        if 0.5 * factor < waited / known < 2 * factor:
            return waited / factor, key
    return waited, ""


def _events(cells: Mapping[str, Any], flops: float, record: Record, context: Context) -> None:
    events, waited = number(cells["events"], unit="ms"), _in_ms(cells, record)[0]
    values = {"have": f"events {events:.3g}, synchronize {waited:.3g}"}
    if events < 0.1 * waited:
        slipped = 2e-4 < events / waited < 2e-3
        raise Wrong("events_in_seconds" if slipped else "events_around_nothing", **values)
    if events > 1.6 * waited:
        raise Wrong("events_too_long", **values)


def _rate(cells: Mapping[str, Any], flops: float, record: Record, context: Context) -> None:
    naive, waited = number(cells["naive"]), _in_ms(cells, record)[0]
    given = cells["naive TFLOP/s"]
    if context.card(record) is None and isinstance(given, (int, float)) and given > 0:
        # Graded on a stand-in of an unknown card, which may take the other size.
        sizes = [2.0 * side**3 for side in SIDES]
        flops = min(sizes, key=lambda f: abs(math.log(f / naive * 1e3 / 1e12 / given)))
    right_value = flops / naive * 1e3 / 1e12
    expect_number(
        cells["naive TFLOP/s"],
        right_value,
        unit="TFLOP/s",
        show=lambda v: f"{v:,.4g} TFLOP/s",
        tolerance=0.05,
        others={"from_waited": right_value * naive / waited, "one_flop": right_value / 2},
    )


# ---------------------------------------------------------------- what waits

WAITS = {
    "double": "runs on",
    "shape": "runs on",
    "sum": "runs on",
    "item": "waits",
    "print": "waits",
    "cpu": "waits",
    "if": "waits",
    "cast": "runs on",
}


@exercise("05-4")
def what_forces_a_wait(answer: Any, context: Context) -> Outcome:
    expect_choices(answer, WAITS)
    return right("05-4")


# ---------------------------------------------------------------- your own stopwatch

SHORT, LONG = 0.6, 1.8  # times the truth: below and above it a stopwatch is wrong
ODD = 2.0  # times its own steady time: an odd call found its way into the result (a mean: 3)
SLOW_START = 3.5, 6.0
"""Times the truth, for few calls and for many. A median that holds all slow calls says 8; with few
calls, 4.5 where it lies between a slow one and a normal one. A right one rests on normal calls, on
the slowest of few at that, which are late on a busy machine; a trimmed mean of many says 4.5."""
SAME = 1.02  # the same number for kernels of different length was not measured
UNITS = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}


@exercise("05-5", inputs=stopwatch.probes, observe=stopwatch.watch)
def time_gpu(answer: Any, context: Context) -> Outcome:
    """Two fifths for waiting, per call, in seconds; a fifth each for odd calls, warm-up, errors."""
    notes = _notes(answer)
    _steady(notes["steady"])
    _measured(notes)
    problems: list[Wrong] = []
    for check in (_odd_calls, _slow_start, _failure):
        try:
            check(notes)
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        first = problems[0]
        first.fraction = 1 - 0.2 * len(problems)
        raise first
    steady = notes["steady"]
    simulated = " (simulated)" if steady["origin"] == "simulated" else ""
    return right(
        "05-5",
        "cpu" if context.cpu else "card" if context.device else "",
        have=_ms(steady["value"] * 1e3),
        true=_ms(steady["true"] * 1e3),
        origin=simulated,
        calls=steady["calls"],
        **({"name": context.device.name} if context.device and not context.cpu else {}),
    )


def _notes(answer: Any) -> dict[str, dict[str, Any]]:
    """The observer's notes by kind of probe; what stopped the function is told first."""
    kinds = [item.get("kind") if isinstance(item, Mapping) else None for item in _list(answer)]
    if not kinds or tuple(kinds) != stopwatch.KINDS[: len(kinds)]:
        raise Wrong("not_a_function", have=repr(answer)[:40])
    for item in answer:
        numbers = [item.get(key) for key in ("true", "saw", "calls", "idle")]
        if not all(isinstance(n, (int, float)) and n >= 0 for n in numbers) or not numbers[0]:
            raise Wrong("not_a_function", have=repr(item)[:40])
        if "error" in item and item["kind"] != "fails":
            told = str(item["error"])[:200]
            key = "too_many" if told.startswith("TooMany") else "raised"
            raise Wrong(key, state="error", have=told)
        if item.get("kind") == "steady" and item["calls"] == 0:
            raise Wrong("never_called", have="no call of fn")
        if "error" not in item and item["kind"] != "fails":
            if item.get("value") is None:
                raise Wrong("returned_none", have="None")
            number(item["value"], positive=False)
    if len(kinds) < len(stopwatch.KINDS):
        raise Wrong("not_a_function", have=repr(answer)[:40])
    return {item["kind"]: dict(item) for item in answer}


def _list(answer: Any) -> list[Any]:
    return answer if isinstance(answer, list) else []


def _steady(note: Mapping[str, Any]) -> None:
    """Right for kernels that all take the same time: it waits, per call, in seconds."""
    value, true = number(note["value"], unit="s", positive=False), note["true"]
    most = max(true, note["saw"])
    values = {
        "have": f"{value:.3g} for a kernel of {true:.3g} s",
        "true": f"{true:.3g}",
        "calls": note["calls"],
    }
    if value <= 0:
        raise Wrong("not_above_zero", **values)
    for key, factor in UNITS.items():
        if SHORT * factor < value / true and value / most < LONG * factor:
            raise Wrong(key, **values)
    if value / true > 0.9e-3 and value / most < 1.1e-3 and not note["pending"]:
        raise Wrong("per_1000", **values)
    if value < SHORT * true:
        if note["pending"]:
            raise Wrong("waits_before" if note["idle"] else "no_wait", **values)
        raise Wrong("stops_too_early", **values)
    if value > LONG * most:
        total = note["calls"] > 1 and value / true < LONG * note["calls"]
        raise Wrong("total" if total else "too_long", **values)


def _measured(notes: Mapping[str, dict[str, Any]]) -> None:
    """Kernels of different length must get different times."""
    timed = [note for kind, note in notes.items() if kind != "fails"]
    values, lengths = ([n[key] for n in timed] for key in ("value", "true"))
    if 0 < max(values) < SAME * min(values) and max(lengths) > 1.2 * min(lengths):
        raise Wrong("constant", have=f"{values[0]:.3g} for each of {len(values)} kernels")


def _odd_calls(notes: Mapping[str, dict[str, Any]]) -> None:
    """A few very slow calls and one fast one, the last ones, in both orders."""
    steady = notes["steady"]["value"] / notes["steady"]["true"]
    low, high = [], []
    for kind in ("slow last but one", "slow last"):
        note = notes[kind]
        low.append(note["value"] < SHORT * note["true"])
        high.append(note["value"] > ODD * max(steady * note["true"], note["saw"]))
    shown = notes["slow last but one" if high == [True, False] or low == [True, False]
                  else "slow last"]  # fmt: skip
    values = {"have": f"{shown['value']:.3g} where nearly all calls take {shown['true']:.3g} s"}
    if all(low):
        raise Wrong("minimum", **values)
    if (low[0] and high[1]) or (high[0] and low[1]):
        raise Wrong("one_repeat", **values)
    if any(high):
        raise Wrong("mean", **values)
    if any(low):
        raise Wrong("unsteady", **values)


def _slow_start(notes: Mapping[str, dict[str, Any]]) -> None:
    note = notes["slow start"]
    most = SLOW_START[notes["steady"]["calls"] > stopwatch.FEW]
    if note["value"] > most * max(note["true"], note["saw"]):
        have = f"{note['value']:.3g} where all but the first calls take {note['true']:.3g} s"
        raise Wrong("no_warm_up", have=have)


def _failure(notes: Mapping[str, dict[str, Any]]) -> None:
    if "error" not in notes["fails"]:
        raise Wrong("swallows", have=f"{notes['fails'].get('value')!r:.30} for a kernel that fails")


# ---------------------------------------------------------------- the hunt

FAULTS = {
    "A": "does not wait",
    "B": "no warm-up",
    "C": "counts the compiler",
    "D": "mixes two clocks",
    "E": "data in the cache",
    "F": "GiB called GB",
}


@exercise("05-6")
def broken_benchmarks(answer: Any, context: Context) -> Outcome:
    folded = {k: v.lower() for k, v in FAULTS.items()}
    expect_choices(answer, folded)
    return right("05-6")


def honest_case(seed: int) -> dict[str, Any]:
    """Three logs: a compiled loop, two versions on two clocks, a bandwidth divided by 2^30."""
    rng = random.Random(f"05-7:{seed}")
    later = rng.randrange(20, 60) / 10
    first, calls = rng.randrange(15, 40) / 10, rng.choice((20, 25, 40, 50))
    kernels = rng.randrange(4, 9)
    gpu_eager = kernels * rng.randrange(20, 35) / 10
    return {
        "calls": calls,
        "first (s)": first,
        "total (s)": round(first + (calls - 1) * later / 1e3, 4),
        "eager: wall (us)": kernels * rng.randrange(9, 14),
        "eager: GPU (us)": round(gpu_eager, 1),
        "fused: wall (us)": rng.randrange(24, 31),
        "fused: GPU (us)": round(gpu_eager / kernels * 1.2, 1),
        "printed": rng.randrange(150, 280),
    }


HONEST = ("ms per call", "speed-up", "GB/s")


@exercise("05-7", case=honest_case)
def honest_numbers(answer: Any, context: Context) -> Outcome:
    """A third of the point per number."""
    cells = table(answer, HONEST)
    case = context.case("05-7")
    calls, first, total = case["calls"], case["first (s)"], case["total (s)"]
    wall, fused_wall = case["eager: wall (us)"], case["fused: wall (us)"]
    gpu, fused_gpu = case["eager: GPU (us)"], case["fused: GPU (us)"]
    each = (total - first) / (calls - 1) * 1e3
    gain = wall / fused_wall
    rate = case["printed"] * 2**30 / 1e9
    expected: dict[str, tuple[float, str, Mapping[str, float]]] = {
        "ms per call": (each, "ms", {
            "compiler_in": total / calls * 1e3,
            "only_the_count": total / (calls - 1) * 1e3,
            "one_call_too_many": (total - first) / calls * 1e3,
            "seconds": each / 1e3,
        }),
        "speed-up": (gain, "times", {
            "mixed": wall / fused_gpu, "gpu_only": gpu / fused_gpu, "upside_down": 1 / gain,
            "mixed_the_other_way": gpu / fused_wall,
        }),
        "GB/s": (rate, "GB/s", {
            "unchanged": float(case["printed"]), "wrong_way": case["printed"] * 1e9 / 2**30,
        }),
    }  # fmt: skip
    problems: list[Wrong] = []
    for name, (wanted, unit, others) in expected.items():
        try:
            expect_number(cells[name], wanted, unit=unit, tolerance=0.01, others=others,
                          show=lambda v, u=unit: f"{v:,.4g} {u}", entry=repr(name))  # fmt: skip
        except Wrong as wrong:
            wrong.values["have"] = f"{name}: {wrong.values.get('have', '')}"
            wrong.values.setdefault("entry", repr(name))
            problems.append(wrong)
    _thirds(problems, len(HONEST))
    return right("05-7", printed=f"{wall / fused_gpu:.1f}", gain=f"{gain:.1f}")


# ---------------------------------------------------------------- the queue runs dry

ROWS = tuple(2**k for k in range(7, 15))
WIDTH = 4096  # fp16 elements in a row
CLEAR = 0.25  # measured GPU and host times that differ by less are a draw


@exercise("05-8", predicts=("rows",))
def full_queue(answer: Any, context: Context) -> Outcome:
    """The smallest measured batch whose GPU time is not below the host's time to queue it."""
    if context.cpu:
        raise Wrong("no_queue", state="cannot_tell", have="a CPU, which has no queue")
    records = {n: context.measurement("05-8", f"{n} rows") for n in ROWS}
    if not all(records.values()):
        raise Wrong("not_measured", have="no sweep over the batches")
    full = {}
    for n, record in records.items():
        host = record.value.get("host")
        if not isinstance(host, (int, float)) or not host > 0:
            raise Wrong("damaged", have=f"a record of {n} rows without host time")
        full[n] = seconds(record) / host
    clear = 0.0 if record.origin == "simulated" else CLEAR  # a model repeats itself exactly
    picked = number(answer, unit="rows")
    have = f"{picked:,.0f} rows"
    if picked not in full:
        raise Wrong("not_in_the_sweep", have=have, low=ROWS[0], high=f"{ROWS[-1]:,}")
    if max(full.values()) < 1:
        raise Wrong("always_dry", state="cannot_tell", have="a queue that is dry at every batch")
    smaller = [n for n in ROWS if n < picked]
    values = {"have": have, "share": f"{full[picked]:.2g}"}
    if full[picked] < 1 - clear:
        raise Wrong("still_dry", **values)
    if smaller and full[smaller[-1]] >= 1 + clear:
        raise Wrong("not_the_first" if picked < ROWS[-1] else "last_one", **values)
    record = records[int(picked)]
    host = record.value["host"] * 1e6
    return right("05-8", rows=f"{picked:,.0f}", host=f"{host:,.3g}", origin=origin(record))


# ---------------------------------------------------------------- one submission

WHAT_IFS = ("half the elements", "ten times the elements", "one launch")
EFFECTS = ("much less", "about the same", "much more")
DECIDES = {"memory": WHAT_IFS[1], "overhead": WHAT_IFS[2]}
BUCKETS = ("memory", "compute", "overhead")


def effect(factor: float) -> str:
    """The word for a time that changed by `factor`; the bands are wide on purpose."""
    return EFFECTS[0] if factor < 0.75 else EFFECTS[1] if factor < 1.5 else EFFECTS[2]


def _wall(record: Record | None) -> float | None:
    wall = record.value.get("wall") if record else None
    return wall if isinstance(wall, (int, float)) and wall > 0 else None


@exercise("05-9", predicts=("bucket", *WHAT_IFS))
def graph(answer: Any, context: Context) -> Outcome:
    """Half for a bucket that the loop times support, half for the change that decided it."""
    cells = table(answer, ("bucket", "decided by"))
    picked = choice(cells["bucket"], BUCKETS, "bucket")
    decider = choice(cells["decided by"], WHAT_IFS, "decided by")
    base = context.measurement("05-9", "as it is")
    walls = {name: _wall(context.measurement("05-9", name)) for name in WHAT_IFS}
    started = _wall(base)
    if started is None or not all(walls[name] for name in WHAT_IFS[:2]):
        raise Wrong("not_measured", have="no what-ifs yet")
    if context.cpu or not walls["one launch"]:
        raise Wrong("no_graph", state="cannot_tell", have="a machine without CUDA graphs")
    factors = {name: wall / started for name, wall in walls.items() if wall}
    seen = ", ".join(f"{name}: x{factor:.2f}" for name, factor in factors.items())
    left = set()
    if factors["one launch"] < 0.75:
        left.add("overhead")
    if effect(factors["ten times the elements"]) == EFFECTS[2]:
        left |= {"memory", "compute"} if not left else set()
    if not left:
        raise Wrong("unclear", state="cannot_tell", have=seen)
    if picked not in left:
        raise Wrong("contradicted", have=f"{picked!r}; but {seen}")
    if decider != DECIDES.get(picked, WHAT_IFS[1]):
        raise Wrong("other_decider", fraction=0.5, have=f"{picked!r}, decided by {decider!r}")
    predicted = {name: context.prediction("05-9", name) for name in factors}
    held = sum(bool(p) and p.value == effect(factors[n]) for n, p in predicted.items())
    first = context.prediction("05-9", "bucket")
    named = str(first.value) if first else "nothing"
    variant = "held" if held == len(factors) and named == picked else "missed"
    return right("05-9", variant, seen=seen, held=held, all=len(factors), named=named,
                 gain=f"{1 / factors['one launch']:.1f}", origin=origin(base))  # fmt: skip


RECAP = {
    "memory": "far too little",
    "compute": "far too little",
    "overhead": "nearly the truth",
}
SHOWS = ("far too little", "nearly the truth", "far too much")


@exercise("05-10")
def recap(answer: Any, context: Context) -> Outcome:
    """What a stopwatch that does not wait shows of a program in each bucket."""
    expect_choices(answer, RECAP, SHOWS)
    return right("05-10")
