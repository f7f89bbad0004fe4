"""Graders of notebook 02, the three bottlenecks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

from helpers.checks.engine import Context, Outcome, Wrong, exercise, right
from helpers.checks.reading import (
    expect_calls,
    expect_choices,
    expect_letter,
    expect_number,
    returned,
    table,
)
from helpers.checks.records import (
    measured,
    origin,
    peak_bandwidth,
    peak_rate,
    possible,
    wall,
)
from helpers.checks.whatifs import BUCKETS, SPELLINGS, WHAT_IFS, bare, bucket, falsified
from helpers.facts import fact

NOTEBOOK = "02"
EXPLAINS = 0.6
"""Share of the measured time that a bucket must explain: the rule of helpers.roofline."""


def _ms(value: float) -> str:
    return f"{value:,.4g} ms"


# ---------------------------------------------------------------- retrieval


def reading_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"02-1:{seed}")
    return {"gigabytes": rng.choice((6, 9, 12, 18, 24)),
            "gb_per_s": rng.choice((240, 300, 600, 900, 1800))}  # fmt: skip


@exercise("02-1", case=reading_case)
def time_to_read(answer: Any, context: Context) -> Outcome:
    """Bytes over bandwidth, in ms."""
    drawn = context.case("02-1")
    took = drawn["gigabytes"] / drawn["gb_per_s"]
    expect_number(
        answer,
        took * 1e3,
        unit="ms",
        show=_ms,
        others={
            "seconds": took,
            "inverted": drawn["gb_per_s"] / drawn["gigabytes"],
            "inverted_ms": drawn["gb_per_s"] / drawn["gigabytes"] * 1e3,
            "product": drawn["gb_per_s"] * drawn["gigabytes"],
        },
        gigabytes=drawn["gigabytes"],
        gb_per_s=drawn["gb_per_s"],
    )
    return right("02-1", took=_ms(took * 1e3))


@exercise("02-2")
def capacity_is_not_bandwidth(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "c")
    return right("02-2")


# ---------------------------------------------------------------- three timelines

PANELS = ("A", "B", "C")
ORDERS = tuple(permutations(("compute", "memory", "overhead")))
"""As in helpers.plots.lanes, which draws them; a test holds both together."""


def series_case(seed: int) -> dict[str, Any]:
    return {"series": random.Random(f"02-3:{seed}").randrange(len(ORDERS))}


@exercise("02-3", case=series_case)
def three_timelines(answer: Any, context: Context) -> Outcome:
    """A third of the points per panel; the first wrong one is explained."""
    wanted = dict(zip(PANELS, ORDERS[context.case("02-3")["series"]], strict=True))
    cells = table(answer, PANELS)
    picked = {name: bucket(cells[name], name) for name in PANELS}
    wrong = [name for name in PANELS if picked[name] != wanted[name]]
    if not wrong:
        return right("02-3")
    first = wrong[0]
    raise Wrong(
        "every_panel_alike" if len(set(picked.values())) == 1 else
        f"{wanted[first]}_as_{picked[first]}",
        fraction=1 - len(wrong) / len(PANELS),
        have=f"{first}: {picked[first]!r}",
        panel=first,
    )  # fmt: skip


# ---------------------------------------------------------------- the rule as code

ANOTHER = "another test"
_ANOTHER = (ANOTHER, "needs another test", "unexplained", "look at the trace", "unknown")


def diagnose(measured: float, compute: float, memory: float, host: float) -> str:
    """The rule of the course, in the order of the flow chart.

    All in seconds: the measured time, the kernels bound by compute and by memory, the queueing.
    Equal to helpers.roofline.verdict (a test compares the two).
    """
    enough = EXPLAINS * measured
    if host > compute + memory and host >= enough:
        return "overhead"
    if compute >= enough:
        return "compute"
    return "memory" if memory >= enough else ANOTHER


def _largest(measured: float, compute: float, memory: float, host: float) -> str:
    parts = {"compute": compute, "memory": memory, "overhead": host}
    return max(parts, key=parts.__getitem__)


def _threshold(share: float) -> Callable[..., str]:
    def rule(measured: float, *parts: float) -> str:
        return diagnose(measured * share / EXPLAINS, *parts)

    return rule


def _of_sum(measured: float, compute: float, memory: float, host: float) -> str:
    return diagnose(compute + memory + host, compute, memory, host)


def _of_the_longest(measured: float, compute: float, memory: float, host: float) -> str:
    return diagnose(max(compute + memory, host), compute, memory, host)


def _host_unmeasured(measured: float, compute: float, memory: float, host: float) -> str:
    return "overhead" if host > compute + memory else diagnose(measured, compute, memory, 0)


def _host_first(measured: float, compute: float, memory: float, host: float) -> str:
    if host >= EXPLAINS * measured:
        return "overhead"
    return diagnose(measured, compute, memory, 0)


def _host_largest(measured: float, compute: float, memory: float, host: float) -> str:
    if host > max(compute, memory) and host >= EXPLAINS * measured:
        return "overhead"
    return diagnose(measured, compute, memory, 0)


def _kernels_together(measured: float, compute: float, memory: float, host: float) -> str:
    kernels = compute + memory
    if host > kernels and host >= EXPLAINS * measured:
        return "overhead"
    if kernels < EXPLAINS * measured:
        return ANOTHER
    return "compute" if compute > memory else "memory"


def _swapped(measured: float, compute: float, memory: float, host: float) -> str:
    return diagnose(measured, memory, compute, host)


DIAGNOSE_MISTAKES: dict[str, Callable[..., str]] = {
    "no_threshold": _largest,
    "half_is_enough": _threshold(0.5),
    "too_strict": _threshold(0.8),
    "of_the_sum": _of_sum,
    "of_the_longest": _of_the_longest,
    "host_unmeasured": _host_unmeasured,
    "host_first": _host_first,
    "host_largest": _host_largest,
    "ignores_host": lambda m, c, b, h: diagnose(m, c, b, 0),
    "kernels_together": _kernels_together,
    "swapped": _swapped,
}

# Shares of the measured time (compute, memory, host): each pattern tells one mistake apart.
_PATTERNS = (
    (0.92, 0.05, 0.30),  # compute
    (0.06, 0.88, 0.20),  # memory
    (0.02, 0.10, 0.93),  # overhead
    (0.02, 0.90, 0.80),  # memory: the host is slow, and hidden
    (0.48, 0.44, 0.10),  # kernels fill the time, split in two
    (0.45, 0.42, 0.75),  # the same, with a host that would take longer than either
    (0.10, 0.15, 0.30),  # nothing explains it
    (0.15, 0.54, 0.20),  # memory explains 54 %: not enough
    (0.64, 0.20, 0.10),  # compute explains 64 %: enough
    (0.20, 0.10, 0.55),  # overhead explains 55 %: not enough
    (0.05, 0.25, 0.68),  # overhead explains 68 %: enough
)


def diagnose_inputs(seed: int) -> list[list[float]]:
    """Eleven programs from 0.3 to 300 ms, the patterns above in an order of this learner's own."""
    rng = random.Random(f"02-4:{seed}")
    calls = []
    for shares in _PATTERNS:
        measured = 10 ** rng.uniform(-3.5, -0.5)
        calls.append([_four(measured), *(_four(measured * s * rng.uniform(0.985, 1.015))
                                         for s in shares)])  # fmt: skip
    rng.shuffle(calls)
    return calls


def _four(value: float) -> float:
    return float(f"{value:.4g}")


def _verdict(said: str) -> str:
    """The bucket or "another test" that a returned text stands for; Wrong if it is none."""
    word = bare(said)
    if word in _ANOTHER:
        return ANOTHER
    if word not in SPELLINGS:
        raise Wrong("not_an_option", have=repr(said)[:60], options=", ".join((*BUCKETS, ANOTHER)))
    return SPELLINGS[word]


def _same_verdict(got: str, wanted: str) -> bool:
    return _verdict(got) == wanted


@exercise("02-4", inputs=diagnose_inputs)
def diagnose_function(answer: Any, context: Context) -> Outcome:
    calls = diagnose_inputs(context.seed)
    if all(_verdict(said) == ANOTHER for said in returned(answer, calls, kind="text")):
        raise Wrong("names_none", have=repr(ANOTHER))
    expect_calls(
        answer,
        calls,
        diagnose,
        mistakes=DIAGNOSE_MISTAKES,
        near=_same_verdict,
        kind="text",
    )
    return right("02-4")


# ---------------------------------------------------------------- three programs, measured

PROGRAMS = {"matmul": "compute", "relu": "memory", "tiny": "overhead"}


@exercise("02-5", predicts=tuple(PROGRAMS))
def three_programs(answer: Any, context: Context) -> Outcome:
    """The bucket of each program. What it is made of decides; the times must be possible."""
    cells = table(answer, tuple(PROGRAMS))
    picked = {name: bucket(cells[name], name) for name in PROGRAMS}
    took = {}
    for name in PROGRAMS:
        record = measured(context, "02-5", name)
        took[name] = wall(record)
        _possible(record, context)
    wrong = [name for name, bucket in PROGRAMS.items() if picked[name] != bucket]
    if wrong:
        first = wrong[0]
        raise Wrong(
            f"{first}_as_{picked[first]}",
            fraction=1 - len(wrong) / len(PROGRAMS),
            have=f"{first}: {picked[first]!r}",
            entry=repr(first),
        )
    roof = _ceiling(context)
    explained = _explained(context, took, roof)
    low = [name for name, share in explained.items() if share < EXPLAINS]
    if low:
        return right("02-5", "question", name=low[0], share=f"{explained[low[0]]:.0%}")
    return right("02-5", origin=origin(measured(context, "02-5", "tiny")))


def _possible(record: Any, context: Context) -> None:
    work, took = record.value["work"], wall(record)
    if record.label == "matmul" and isinstance(work.get("flops"), (int, float)):
        possible(
            work["flops"] / took,
            peak_rate(record, context),
            show=lambda v: f"{v / 1e12:,.4g} TFLOP/s",
        )
    possible(work["bytes_ideal"] / took, peak_bandwidth(record, context))


def _ceiling(context: Context) -> dict[str, float]:
    """Bandwidth, matmul rate and host cost per operation of the learner's own roof, if recorded."""
    record = context.evidence and context.evidence.latest(f"{NOTEBOOK}-0", "measurement", "ceiling")
    value = record.value if record and isinstance(record.value, Mapping) else {}
    rates = value.get("rates") if isinstance(value.get("rates"), Mapping) else {}
    found = {
        "bandwidth": value.get("bandwidth"),
        "host": value.get("host_per_op"),
        "rate": rates.get("fp32" if context.cpu else "fp16"),
    }
    return {k: float(v) for k, v in found.items() if isinstance(v, (int, float)) and v > 0}


def _explained(
    context: Context, took: Mapping[str, float], roof: Mapping[str, float]
) -> dict[str, float]:
    """The share of each program's time that its bucket explains, as far as the roof is known."""
    work = {name: measured(context, "02-5", name).value["work"] for name in PROGRAMS}
    shares = {}
    if "rate" in roof and isinstance(work["matmul"].get("flops"), (int, float)):
        shares["matmul"] = work["matmul"]["flops"] / roof["rate"] / took["matmul"]
    if "bandwidth" in roof:
        shares["relu"] = work["relu"]["bytes_ideal"] / roof["bandwidth"] / took["relu"]
    if "host" in roof and isinstance(work["tiny"].get("kernels"), (int, float)):
        shares["tiny"] = work["tiny"]["kernels"] * roof["host"] / took["tiny"]
    return shares


# ---------------------------------------------------------------- falsify the verdict


@exercise("02-6", predicts=("bucket", *WHAT_IFS))
def falsify(answer: Any, context: Context) -> Outcome:
    base = measured(context, "02-6", "as it is")
    possible(base.value["work"]["bytes_ideal"] / wall(base), peak_bandwidth(base, context))
    return falsified("02-6", answer, context, wall)


# ---------------------------------------------------------------- the public case

TIE = 1.25
"""Two times closer than this factor are a tie: either answer is right."""


@exercise("02-7")
def the_rest_of_39_ms(answer: Any, context: Context) -> Outcome:
    """Half for the host's cost per operation, half for the verdict on the learner's machine."""
    cells = table(answer, ("us per operation", "here"))
    step = 1 / fact("result.gpt_fast.eager").value
    operations = fact("result.gpt_fast.operations").value
    moved = fact("model.llama2_7b.decode_weights").value
    memory = moved / fact("device.a100_80_sxm.bandwidth").value
    each = step / operations * 1e6
    here = bucket(cells["here"], "here")
    expect_number(
        cells["us per operation"],
        each,
        unit="us",
        show=lambda v: f"{v:,.4g} us",
        others={
            # 26.7: the memory's 6.5 ms off first. 27.0, launches of 5 us off, is within 2 % of it
            "took_off": (step - memory) / operations * 1e6,
            "minus_launches": (step - operations * 1e-5) / operations * 1e6,
            "minus_compiled": (step - 1 / fact("result.gpt_fast.compiled").value)
            / operations * 1e6,
            "memory_only": memory / operations * 1e6,
            "per_layer": step / fact("model.llama2_7b.layers").value * 1e6,
            "milliseconds": each / 1e3,
            "operations_per_ms": operations / step / 1e3,
        },
    )  # fmt: skip
    roof = _ceiling(context)
    if not {"bandwidth", "host"} <= set(roof):
        raise Wrong("not_measured", fraction=0.5, have="no roof of this machine")
    times = {"memory": moved / roof["bandwidth"], "overhead": operations * roof["host"]}
    values = {
        name: f"{value * 1e3:,.{1 if value < 0.1 else 0}f} ms" for name, value in times.items()
    }
    longer = max(times, key=times.__getitem__)
    record = context.evidence.latest(f"{NOTEBOOK}-0", "measurement", "ceiling")
    if max(times.values()) < TIE * min(times.values()):
        return right("02-7", "tie", **values, origin=origin(record))
    if here != longer:
        raise Wrong(f"here_{here}", fraction=0.5, have=f"here: {here!r}", **values)
    return right("02-7", longer, **values, origin=origin(record))


# ---------------------------------------------------------------- wrong labels

LABELS = ("fits", "counter", "two fit", "too little", "other bucket")
CLAIMS = {
    "A": "counter",
    "B": "fits",
    "C": "two fit",
    "D": "two fit",
    "E": "too little",
    "F": "other bucket",
}


@exercise("02-8")
def broken_labels(answer: Any, context: Context) -> Outcome:
    """A sixth of the points per claim."""
    expect_choices(answer, CLAIMS, LABELS)
    return right("02-8")


# ---------------------------------------------------------------- recap

RECAP = {"memory": "fewer bytes", "compute": "a faster unit", "overhead": "fewer launches"}


@exercise("02-9")
def recap(answer: Any, context: Context) -> Outcome:
    """What makes a program of each bucket faster."""
    expect_choices(answer, RECAP)
    return right("02-9")
