"""Graders of notebook 08, from bottlenecks to money."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

from helpers import devices, inference, roofline
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
from helpers.checks.records import measured, origin, peak_bandwidth, possible, seconds
from helpers.facts import fact

LLAMA = inference.model()
CONTEXT = 1024  # tokens in the cache of each sequence, in the table and in the measurement
MANY = 32


def usd(value: float) -> str:
    """A cost as a learner reads it."""
    return f"{value:,.3g} USD"


def in_cents(value: float, wanted: float) -> bool:
    """A cost that is rounded to cents, which may be more than the tolerance: 0.215 is 0.21 USD."""
    return abs(value - wanted) <= 0.00501


def per_million(price: float, rate: float, utilisation: float = 1.0) -> float:
    """USD per million tokens; no guard, so that mistakes can be planted with it."""
    return price / 3600 / (rate * utilisation) * 1e6


def roof(key: str) -> roofline.Roof:
    return roofline.datasheet(devices.get(key))


# ---------------------------------------------------------------- retrieval


@exercise("08-1")
def tokens_at_batch_1(answer: Any, context: Context) -> Outcome:
    """Bandwidth of an A100 80 GB SXM over the weights that one decode step reads."""
    card = devices.get("a100_80_sxm")
    rate = card.bandwidth / LLAMA.step_weights
    expect_number(
        answer,
        rate,
        unit="tokens/s",
        show=lambda v: f"{v:,.4g} tokens/s",
        tolerance=0.025,  # with all 13.5 GB, the input embedding included, it is 151
        others={
            "milliseconds": 1e3 / rate,
            "seconds": 1 / rate,
            "compute": card.peak["fp16"] / (2 * LLAMA.matrices),
            "capacity": card.memory / LLAMA.step_weights,
        },
    )
    own = context.device
    if own is None:
        return right("08-1")
    there = f"{own.bandwidth / LLAMA.step_weights:.1f} tokens/s"
    return right("08-1", "device", name=own.name, rate=there)


@exercise("08-2")
def what_is_not_shared(answer: Any, context: Context) -> Outcome:
    expect_letter(answer, "c")
    return right("08-2")


# ---------------------------------------------------------------- the formula


def cost_per_million(
    price_per_hour: float, tokens_per_second: float, utilisation: float = 1.0
) -> float:
    return per_million(price_per_hour, tokens_per_second, utilisation)


COST_MISTAKES: dict[str, Callable[..., float]] = {
    "ignores_utilisation": lambda p, t, u=1.0: per_million(p, t),
    "multiplies_utilisation": lambda p, t, u=1.0: per_million(p, t) * u,
    "per_token": lambda p, t, u=1.0: per_million(p, t, u) / 1e6,
    "per_thousand": lambda p, t, u=1.0: per_million(p, t, u) / 1e3,
    "hours": lambda p, t, u=1.0: per_million(p, t, u) * 3600,
    "hours_and_idle": lambda p, t, u=1.0: per_million(p, t) * 3600,
    "minutes": lambda p, t, u=1.0: per_million(p, t, u) * 60,
    "inverted": lambda p, t, u=1.0: t * u * 3600 / p,
    "millions_per_usd": lambda p, t, u=1.0: 1 / per_million(p, t, u),
    "tokens_times": lambda p, t, u=1.0: p / 3600 * t * u,
    "percent": lambda p, t, u=1.0: per_million(p, t, u) * (1 if u == 1 else 100),
    "idle_added": lambda p, t, u=1.0: per_million(p, t) * (2 - u),
}


def cost_inputs(seed: int) -> list[list[Any]]:
    rng = random.Random(f"08-3:{seed}")

    def one(*shares: float) -> list[Any]:
        return [round(rng.uniform(0.3, 9), 2), round(rng.uniform(15, 6000), 1), *shares]

    return [one(), one(0.5), one(round(rng.uniform(0.05, 0.45), 2)), one(), one(1.0)]


@exercise("08-3", inputs=cost_inputs)
def cost_function(answer: Any, context: Context) -> Outcome:
    expect_calls(
        answer,
        cost_inputs(context.seed),
        cost_per_million,
        mistakes=COST_MISTAKES,
        near=lambda got, wanted: math.isclose(got, wanted, rel_tol=0.005),
    )
    return right("08-3")


# ---------------------------------------------------------------- 32 against 1


@exercise("08-4", predicts=("cheaper",))
def measured_gain(answer: Any, context: Context) -> Outcome:
    """How many times less one token costs in a batch of 32: 32 x time at 1 over time at 32."""
    records = [measured(context, "08-4", label) for label in ("batch 1", f"batch {MANY}")]
    one, many = (seconds(record) for record in records)
    moved = [record.value["work"]["bytes_ideal"] for record in records]
    for record, size, took in zip(records, moved, (one, many), strict=True):
        possible(size / took, peak_bandwidth(record, context))
    gain = MANY * one / many
    expect_number(
        answer,
        gain,
        unit="times",
        show=lambda v: f"{v:.3g} times",
        others={
            "forgot_tokens": one / many,
            "slower": many / one,
            "inverted": 1 / gain,
            "all_32": float(MANY),
        },
    )
    by_bytes = MANY * moved[0] / moved[1] if moved[1] else gain
    variant = "bytes" if 0.75 < gain / by_bytes < 1.33 else "other"
    return right(
        "08-4",
        variant,
        gain=f"{gain:.1f}",
        slower=f"{many / one:.1f}",
        by_bytes=f"{by_bytes:.1f}",
        origin=origin(records[1]),
    )


CONTEXTS = (128, 1024, 2048)


def gain_of(context: int, batch: int = MANY) -> float:
    """Cost of a token at batch 1 over that at `batch`, both with their cache (memory-bound)."""
    one, many = (
        inference.decode(LLAMA, roof("a100_80_sxm"), b, context).seconds for b in (1, batch)
    )
    return batch * one / many


def _gain_mistakes(context: int) -> dict[str, float]:
    weights, cache = LLAMA.step_weights, context * LLAMA.kv_bytes
    return {
        "no_cache": float(MANY),
        "one_cache_for_all": MANY * weights / (weights + cache),
        "one_without_cache": MANY * weights / (weights + MANY * cache),
        "forgot_tokens": gain_of(context) / MANY,
        "slower": MANY / gain_of(context),
        "inverted": 1 / gain_of(context),
        "keys_only": MANY * (weights + cache / 2) / (weights + MANY * cache / 2),
    }


@exercise("08-5")
def gains(answer: Any, context: Context) -> Outcome:
    """A third of the points per context."""
    cells = table(answer, [str(c) for c in CONTEXTS])
    for key in cells:
        number(cells[key], unit="times")  # a slip of kind is told before any slip of value
    wrong = []
    # From the longest on: there every mistake stands clear of the others.
    for length in reversed(CONTEXTS):
        try:
            expect_number(
                cells[str(length)],
                gain_of(length),
                unit="times",
                show=lambda v: f"{v:.3g} times",
                tolerance=0.015,
                others=_gain_mistakes(length),
                context=f"{length:,}",
            )
        except Wrong as error:
            wrong.append(error)
    if wrong:
        wrong[0].fraction = 1 - len(wrong) / len(CONTEXTS)
        raise wrong[0]
    return right("08-5")


# ---------------------------------------------------------------- the table

COLUMNS = ("price", "usd_at_1", "batch", "ms", "usd")
PRICED = ("t4", "l4", "a100_40_sxm", "a100_80_sxm", "a100_80_pcie", "h100_sxm", "h100_pcie", "a10")
"""Cards with a price in the facts: a learner who has one of them has it in the table."""


@exercise("08-6")
def cost_table(answer: Any, context: Context) -> Outcome:
    """A quarter of the points per calculated column, at context 1,024 and the datasheet's rates."""
    if not isinstance(answer, Mapping):
        table(answer, ["t4", "l4", "a100_80_sxm"])
    known = {d.key for d in devices.all_devices()}
    if strangers := [k for k in answer if k not in known]:
        raise Wrong("no_card", have=repr(strangers[0])[:40])
    if len(answer) < 3:
        raise Wrong("too_few", have=f"{len(answer)} cards")
    own = context.device
    if own and own.key in PRICED and own.key not in answer:
        raise Wrong("own_missing", have=", ".join(answer), name=own.name)
    rows = {key: table(answer[key], COLUMNS) for key in answer}
    for key, row in rows.items():
        if number(row["price"], unit="USD per hour") > 100:
            raise Wrong("no_price", have=f"{number(row['price']):g} USD per hour", row=repr(key))
    problems = []
    prices = {number(row["price"]) for row in rows.values()}
    if len(prices) == 1:
        have = f"{prices.pop():g} USD per hour in every row"
        problems.append(Wrong("same_price", have=have))
    first = next(iter(rows))
    for column in COLUMNS[1:]:
        try:
            for key, row in rows.items():
                _check_cell(key, column, row, first)
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / (len(COLUMNS) - 1)
        raise problems[0]
    best = min(rows, key=lambda key: number(rows[key]["usd"]))
    rent = min(rows, key=lambda key: number(rows[key]["price"]))
    variant = "same" if best == rent else "other"
    names = {"best": devices.get(best).name, "rent": devices.get(rent).name}
    return right("08-6", variant, cost=usd(number(rows[best]["usd"])), **names)


def _check_cell(key: str, column: str, row: Mapping[str, Any], first: str) -> None:
    """Wrong unless that cell is right; ``first`` is the card whose roof may stand in all rows."""
    card = devices.get(key)
    price, batch = number(row["price"]), number(row["batch"], positive=False)
    fits = inference.largest_batch(LLAMA, card.memory, CONTEXT)
    values = {"row": repr(key), "column": repr(column)}
    if column == "batch":
        if abs(batch - fits) <= max(0.5, 0.01 * fits):
            return
        room = inference.KEPT_FREE * card.memory
        known = {
            "all_memory": inference.largest_batch(LLAMA, card.memory, CONTEXT, use=1.0),
            "no_weights": math.floor(room / (CONTEXT * LLAMA.kv_bytes)),
        }
        named = next((k for k, v in known.items() if abs(v - batch) <= 0.01 * v), "off_batch")
        raise Wrong(named, have=f"batch {batch:g} in the row {key!r}", **values)
    # The later columns follow the batch that the learner found, right or not.
    sequences = 1 if column == "usd_at_1" else max(1, round(batch))
    step = inference.decode(LLAMA, roof(key), sequences, CONTEXT).seconds
    without = inference.decode(LLAMA, roof(key), sequences).seconds
    there = inference.decode(LLAMA, roof(first), sequences, CONTEXT).seconds
    if column == "ms":
        expect_number(
            row[column],
            step * 1e3,
            unit="ms",
            show=lambda v: f"{v:,.4g} ms",
            others={
                "seconds": step,
                "no_cache": without * 1e3,
                "per_row": step * 1e3 / sequences,
                "other_card": there * 1e3,
            },
            **values,
        )
        return
    cost = per_million(price, sequences / step)
    if in_cents(number(row[column], unit="USD"), cost):
        return
    expect_number(
        row[column],
        cost,
        unit="USD",
        show=usd,
        others={
            "steps": cost * sequences if sequences > 1 else cost * 1e6,
            "no_cache": per_million(price, sequences / without),
            "other_card": per_million(price, sequences / there),
        },
        **values,
    )


# ---------------------------------------------------------------- paid for and idle


def idle_case(seed: int) -> dict[str, Any]:
    rng = random.Random(f"08-7:{seed}")
    rate = rng.randrange(1500, 4000, 100)
    return {
        "usd per hour": round(rng.uniform(1.2, 4.5), 2),
        "tokens/s at full load": rate,
        "tokens/s asked for": round(rate * rng.uniform(0.06, 0.3) / 5) * 5,
    }


@exercise("08-7", case=idle_case)
def idle(answer: Any, context: Context) -> Outcome:
    """Half for the cost at the load asked for, half for that on a card twice as fast: the same."""
    drawn = context.case("08-7")
    price, full, asked = drawn.values()
    cost = per_million(price, asked)
    cells = table(answer, ("usd", "usd on a card twice as fast"))
    number(cells["usd on a card twice as fast"], unit="USD")
    first = None
    try:
        expect_number(
            cells["usd"],
            cost,
            unit="USD",
            show=usd,
            others={
                "full_load": per_million(price, full),
                "multiplied": per_million(price, full) * asked / full,
            },
        )
    except Wrong as wrong:
        first = wrong
    second = number(cells["usd on a card twice as fast"])
    own = number(cells["usd"])
    if math.isclose(second, cost, rel_tol=0.02):
        if first is None:
            share = f"{asked / full:.0%}"
            return right("08-7", cost=usd(cost), full=usd(per_million(price, full)), share=share)
        first.fraction = 0.5
        raise first
    if first is not None:
        raise first
    key = "halved" if math.isclose(second, own / 2, rel_tol=0.02) else "off_fast"
    raise Wrong(key, fraction=0.5, have=f"{usd(second)} on the faster card")


# ---------------------------------------------------------------- which remedy for whom

REMEDIES = ("cuda graph", "8 bits", "batch x4")
PROFILES = ("A", "B", "C")
BOUND = {"A": "overhead", "B": "memory", "C": "compute"}


def profiles_case(seed: int) -> dict[str, Any]:
    """Three steps of a server, in ms: overhead-bound, memory-bound, compute-bound."""
    rng = random.Random(f"08-8:{seed}")

    def ms(low: float, high: float) -> float:
        return round(rng.uniform(low, high), 1)

    weights = ms(6, 7.5)
    return {
        "A": {"host": ms(38, 52), "weights moved": weights, "weights computed": 0.1, "cache": 0.3},
        "B": {"host": 0.4, "weights moved": weights, "weights computed": 0.3, "cache": ms(0.4, 1)},
        "C": {
            "host": 2.5,
            "weights moved": weights,
            "weights computed": ms(80, 200),
            "cache": ms(1, 3),
        },
    }


def step_ms(profile: Mapping[str, float]) -> float:
    """ms per step: the host, or the weights' part and the cache one after the other."""
    kernels = max(profile["weights moved"], profile["weights computed"]) + profile["cache"]
    return max(profile["host"], kernels)


def gain_by(profile: Mapping[str, float], remedy: str) -> float:
    """Cost of a token before over after the remedy."""
    after, tokens = dict(profile), 1
    if remedy == "cuda graph":
        after["host"] = profile["host"] / 20
    elif remedy == "8 bits":
        after |= {k: profile[k] / 2 for k in ("weights moved", "weights computed")}
    else:
        after |= {k: profile[k] * 4 for k in ("weights computed", "cache")}
        tokens = 4
    return tokens * step_ms(profile) / step_ms(after)


@exercise("08-8", case=profiles_case)
def ranking(answer: Any, context: Context) -> Outcome:
    """A third of the points per profile. Remedies within 3 percent of each other may swap.

    The buckets that were named before are told and cost nothing.
    """
    drawn = context.case("08-8")
    rows = table(answer, PROFILES)
    read = {name: _order(name, rows[name]) for name in PROFILES}
    wrong = []
    for name in PROFILES:
        gains = [gain_by(drawn[name], remedy) for remedy in read[name]]
        if gains[0] < 0.97 * max(gains):
            key = f"first_{name}_{read[name][0]}".lower().replace(" ", "_")
            wrong.append(Wrong(key, have=f"{name}: {read[name][0]!r} first"))
        elif gains[1] < 0.97 * gains[2]:
            have = f"{name}: {read[name][1]!r} before {read[name][2]!r}"
            wrong.append(Wrong("second", have=have))
    if wrong:
        wrong[0].fraction = 1 - len(wrong) / len(PROFILES)
        raise wrong[0]
    named = {name: context.prediction("08-8", name) for name in PROFILES}
    held = sum(bool(p) and p.value == BOUND[name] for name, p in named.items())
    if not any(named.values()):
        return right("08-8")
    return right("08-8", "held" if held == len(PROFILES) else "missed", held=held)


def _order(name: str, row: Any) -> list[str]:
    if not isinstance(row, list) or len(row) != len(REMEDIES):
        raise Wrong("no_ranking", have=f"{name}: {row!r}"[:60])
    order = [choice(item, REMEDIES, name) for item in row]
    if len(set(order)) < len(REMEDIES):
        raise Wrong("no_ranking", have=f"{name}: {order}"[:60])
    return order


# ---------------------------------------------------------------- second sitting: the budget

OFFERS = {
    "l4": ("price.modal.l4",),
    "a100_80_sxm": (
        "price.modal.a100_80",
        "price.runpod_community.a100_80_sxm",
        "price.runpod_secure.a100_80_sxm",
        "price.aws.a100_80",
    ),
    "h100_sxm": (
        "price.modal.h100",
        "price.runpod_community.h100_sxm",
        "price.runpod_secure.h100_sxm",
        "price.lambda.h100_sxm",
    ),
}
"""Prices in the facts that the budget case draws from, by card."""


def budget_case(seed: int) -> dict[str, Any]:
    """A context, a limit and one offer per card; redrawn until the cheapest wins by 5 percent."""
    rng = random.Random(f"08-9:{seed}")
    while True:
        drawn: dict[str, Any] = {
            "context": rng.choice((1024, 1536, 2048, 2560)),
            "limit_ms": rng.choice((25, 27, 29, 31, 33, 50, 54, 58, 62, 66)),
        }
        drawn |= {key: rng.choice(paths) for key, paths in OFFERS.items()}
        costs = sorted(c for b, c in usable(drawn).values() if b)
        if costs[1] > 1.05 * costs[0]:
            return drawn


def usable(drawn: Mapping[str, Any], memory: bool = True, limit: bool = True) -> dict[str, tuple]:
    """(largest batch, USD per million tokens at it) per card; (0, inf) where not one sequence."""
    found = {}
    for key in OFFERS:
        card, price = devices.get(key), fact(drawn[key]).value
        most = inference.largest_batch(LLAMA, card.memory, drawn["context"]) if memory else 4096
        batch = most
        if limit:
            per_step = drawn["limit_ms"] / 1e3 * card.bandwidth - LLAMA.step_weights
            batch = min(most, max(0, math.floor(per_step / (drawn["context"] * LLAMA.kv_bytes))))
        step = inference.decode(LLAMA, roof(key), max(1, batch), drawn["context"]).seconds
        found[key] = (batch, per_million(price, batch / step) if batch else math.inf)
    return found


@exercise("08-9", case=budget_case)
def budget(answer: Any, context: Context) -> Outcome:
    """A third each: the usable batches, the cheapest card, its cost."""
    drawn = context.case("08-9")
    found = usable(drawn)
    cells = table(answer, ("batches", "cheapest", "usd"))
    batches = table(cells["batches"], list(OFFERS))
    given = {key: number(batches[key], positive=False) for key in OFFERS}
    picked = choice(cells["cheapest"], list(OFFERS), "cheapest")
    cost = number(cells["usd"], unit="USD")
    best = min(found, key=lambda key: found[key][1])
    problems = []
    for check in (_batches, _cheapest, _best_cost):
        try:
            check(given, picked, cost, drawn, found, best)
        except Wrong as wrong:
            problems.append(wrong)
    if problems:
        problems[0].fraction = 1 - len(problems) / 3
        raise problems[0]
    rent = min(OFFERS, key=lambda key: fact(drawn[key]).value)
    return right(
        "08-9",
        "rent" if found[rent][0] else "none",
        name=devices.get(best).name,
        cost=usd(found[best][1]),
        batch=found[best][0],
        rent=devices.get(rent).name,
        limit=f"{drawn['limit_ms']} ms",
    )


def near(cost: float, other: float) -> bool:
    """The same cost, as closely as the budget case is graded."""
    return math.isclose(cost, other, rel_tol=0.03)


def _batches(given: Mapping[str, float], _: str, __: float, drawn: Mapping, found: Mapping,
             ___: str) -> None:  # fmt: skip
    wanted = {key: batch for key, (batch, _) in found.items()}

    def same(got: float, right_batch: float) -> bool:
        """Within one sequence, but none is not one."""
        return abs(got - right_batch) <= 1 and (got == 0) == (right_batch == 0)

    def agrees(other: Mapping[str, tuple]) -> bool:
        return all(same(given[k], other[k][0]) for k in OFFERS)

    if agrees(found):
        return
    have = ", ".join(f"{key}: {batch:g}" for key, batch in given.items())
    key = next(key for key in OFFERS if not same(given[key], wanted[key]))
    values = {"have": have, "row": repr(key)}
    if agrees(usable(drawn, limit=False)):
        raise Wrong("limit_ignored", **values)
    if agrees(usable(drawn, memory=False)):
        raise Wrong("memory_ignored", **values)
    if given[key] == 1 and wanted[key] == 0:
        raise Wrong("not_even_one", **values)
    raise Wrong("off_batch", **values)


def _cheapest(_: Mapping, picked: str, cost: float, drawn: Mapping, found: Mapping,
              best: str) -> None:  # fmt: skip
    if picked == best:
        return
    batch, wanted = found[picked]
    at_limit = per_million(fact(drawn[picked]).value, max(1, batch) / drawn["limit_ms"] * 1e3)
    if batch and not near(cost, wanted) and near(cost, at_limit):
        raise Wrong("at_limit", have=f"{picked!r} at {usd(cost)}")
    rent = min(OFFERS, key=lambda key: fact(drawn[key]).value)
    too_slow = not found[picked][0]
    named = "too_slow" if too_slow else "cheap_rent" if picked == rent else "not_cheapest"
    raise Wrong(named, have=f"{picked!r}", card=repr(best))


def _best_cost(_: Mapping, picked: str, cost: float, drawn: Mapping, found: Mapping,
               best: str) -> None:  # fmt: skip
    (batch, wanted), price = found[best], fact(drawn[best]).value
    if in_cents(cost, wanted):
        return
    alone = inference.decode(LLAMA, roof(best), 1, drawn["context"]).seconds
    expect_number(
        cost,
        wanted,
        unit="USD",
        show=usd,
        tolerance=0.03,
        others={
            "steps": wanted * batch,
            "batch_1": per_million(price, 1 / alone),
            "at_limit": per_million(price, batch / drawn["limit_ms"] * 1e3),
        },
    )


# ---------------------------------------------------------------- the ladder


def left_over(rung: str, bits: int) -> float:
    """ms of a published step that reading the weights at the datasheet's rate does not explain."""
    step = 1 / fact(f"result.gpt_fast.{rung}").value
    return (step - trip(bits)) * 1e3


def trip(bits: int) -> float:
    """Seconds to read the weights of a step at the datasheet's rate of an A100 80 GB SXM."""
    return LLAMA.step_weights * bits / 16 / devices.get("a100_80_sxm").bandwidth


@exercise("08-10")
def ladder(answer: Any, context: Context) -> Outcome:
    """Half of the points per rung; 5 percent, since 2.0 TB/s or 13.5 GB are fair readings too."""
    cells = table(answer, ("fp16", "int8"))
    given = {name: number(cells[name], unit="ms", positive=False) for name in cells}
    wrong = []
    for name, rung, bits in (("fp16", "compiled", 16), ("int8", "int8", 8)):
        total = 1e3 / fact(f"result.gpt_fast.{rung}").value
        if given[name] < 0 and bits == 8:
            wrong.append(Wrong("not_halved", have=f"{given[name]:.3g} ms"))
            continue
        try:
            expect_number(
                given[name],
                left_over(rung, bits),
                unit="ms",
                show=lambda v: f"{v:,.3g} ms",
                tolerance=0.05,
                others={"whole_step": total, "the_trip": trip(bits) * 1e3},
                rung=name,
            )
        except Wrong as error:
            wrong.append(error)
    if wrong:
        wrong[0].fraction = 1 - len(wrong) / 2
        raise wrong[0]
    return right("08-10")


# ---------------------------------------------------------------- recap

RECAP = {
    "memory": "more rows per trip",
    "compute": "lower precision",
    "overhead": "fewer launches",
}


@exercise("08-11")
def recap(answer: Any, context: Context) -> Outcome:
    """The remedy that pays for each bucket."""
    expect_choices(answer, RECAP)
    return right("08-11")
