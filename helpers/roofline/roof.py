"""Private part of helpers.roofline: what a roof is, and how long operations compute under it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from helpers.devices import has_cost, slots


class RooflineError(ValueError):
    """A roof lacks the rate asked for, or the question does not fit the model."""


@dataclass(frozen=True)
class Roof:
    """How fast one device can move bytes and compute, from one kind of source.

    ``rates``: matmul FLOP/s by dtype. ``vector_rate``: operations/s of the FP32 lanes, a fused
    multiply-add counting once; None where unknown. ``lanes``: FP32 lanes per SM, which the
    instruction cost of a function depends on. ``host_per_op``: seconds to queue one operation.
    """

    label: str
    device: str
    bandwidth: float
    rates: Mapping[str, float]
    vector_rate: float | None
    origin: str
    lanes: int = 64
    host_per_op: float | None = None


def compute(ops: Iterable[Any], roof: Roof) -> float:
    """Return the seconds that ``ops`` compute as one kernel, its memory traffic left aside."""
    ops = list(ops)
    total = sum(
        op.flops / rate(roof, op.dtype)
        for op in ops
        if op.kind in ("matmul", "attention") and op.flops
    )
    operations = _operations(ops, roof)
    return total + (operations / vector_rate(roof) if operations else 0.0)


def _operations(ops: Iterable[Any], roof: Roof) -> float:
    """Lane slots of pointwise operations and reductions; runs over equal elements share units."""
    chains: dict[int, list[str]] = {}
    total = 0.0
    for op in ops:
        if op.kind == "reduction":
            total += op.flops
        if op.kind in ("pointwise", "reduction"):
            chains.setdefault(op.elements, []).extend(op.functions)
    for elements, names in chains.items():
        known = [name if has_cost(name) else "mul" for name in names]
        total += elements * slots(known, roof.lanes)
    return total


def rate(roof: Roof, dtype: str) -> float:
    if dtype not in roof.rates:
        known = ", ".join(roof.rates) or "none"
        raise RooflineError(
            f"The {roof.label} of {roof.device} has no {dtype} rate; it has {known}."
        )
    return roof.rates[dtype]


def vector_rate(roof: Roof) -> float:
    if roof.vector_rate is None:
        raise RooflineError(f"The {roof.label} of {roof.device} has no vector rate (no fp32 rate).")
    return roof.vector_rate
