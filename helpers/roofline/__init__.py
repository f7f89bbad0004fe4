"""Three roofs, three times, one verdict: what limits a piece of work, and how much is explained.

The rule, used everywhere in the course: a kernel takes the larger of its compute and its memory
time; a program takes the larger of the sum over its kernels and of what the host needs to queue
them. Roofline model: Williams, Waterman, Patterson, CACM 52(4), 2009. Units: s, B/s, FLOP/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helpers.devices import Device, has_cost
from helpers.roofline import ceiling
from helpers.roofline import roof as roofs
from helpers.roofline.roof import Roof, RooflineError

__all__ = [
    "Ledger",
    "Roof",
    "RooflineError",
    "Row",
    "Times",
    "Verdict",
    "attainable",
    "datasheet",
    "ledger",
    "measure_ceiling",
    "ridge",
    "sustained",
    "times",
    "vector_budget",
    "verdict",
]

EXPLAINS = 0.6
"""Share of the measured time that a bucket must explain to be named."""

TOO_FAST = 1.1
"""Above this share the measurement beats the roof by more than noise and boost clocks do."""

DATASHEET, SUSTAINED = "datasheet peak", "published sustained"


@dataclass(frozen=True)
class Times:
    """Seconds that a program needs under one roof.

    ``compute`` and ``memory`` are each summed over all kernels as if the other were free.
    ``kernels`` sums the larger of the two per kernel: ``compute_bound`` plus ``memory_bound``.
    ``program`` is the larger of ``kernels`` and ``host``. ``notes`` say what was assumed.
    """

    compute: float
    memory: float
    host: float
    program: float
    kernels: float
    compute_bound: float
    memory_bound: float
    roof: Roof
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """``bucket``: compute, memory, overhead or unexplained. ``share``: of the measured time."""

    bucket: str
    share: float
    sentence: str


@dataclass(frozen=True)
class Row:
    """One line of a ledger: ``seconds`` and their ``share`` of the measured time."""

    name: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Ledger:
    """Where a measured time went: the rows and the left-over add up to it.

    The left-over is a question, not noise; it is negative when the model asks for more time than
    was measured.
    """

    measured_s: float
    rows: tuple[Row, ...]
    left_over_s: float
    left_over_share: float

    def __str__(self) -> str:
        lines = [*self.rows, Row("left over", self.left_over_s, self.left_over_share)]
        return "\n".join(f"{r.name:<10} {r.seconds * 1e3:10.4g} ms {r.share:7.0%}" for r in lines)


def datasheet(device: Device) -> Roof:
    """Return the roof that the datasheet promises (dense)."""
    return Roof(
        label=DATASHEET,
        device=device.name,
        bandwidth=device.bandwidth,
        rates=device.peak,
        vector_rate=device.vector_rate,
        origin="published",
        lanes=device.fp32_lanes_per_sm,
    )


def sustained(device: Device) -> Roof | None:
    """Return the roof that others measured, or None when bandwidth or every rate is unpublished."""
    if device.sustained_bandwidth is None or not device.sustained:
        return None
    return Roof(
        label=SUSTAINED,
        device=device.name,
        bandwidth=device.sustained_bandwidth,
        rates=device.sustained,
        vector_rate=device.sustained_vector_rate,
        origin="published",
        lanes=device.fp32_lanes_per_sm,
    )


def measure_ceiling(dtype: str = "fp16", quick: bool = True) -> Roof:
    """Measure the roof of the device in use: the GPU, real or simulated, else the CPU.

    The label says "measured ceiling", or "simulated ceiling": a model's roof is no measurement.
    Takes a copy for the bandwidth (bytes read plus written), one matmul in ``dtype`` and one in
    fp32, whose half is the vector rate, and one tiny operation for the host. A CPU is measured in
    fp32 whatever ``dtype`` is. ``quick``: about two seconds; otherwise it warms up for seconds
    first, which a card that throttles needs before it shows what it sustains.
    """
    found = ceiling.measure(dtype, quick)
    return Roof(label=f"{found['origin']} ceiling", **found)


def ridge(roof: Roof, dtype: str) -> float:
    """Return the arithmetic intensity (FLOP/B) at which the roof turns from memory to compute."""
    return roofs.rate(roof, dtype) / roof.bandwidth


def attainable(roof: Roof, intensity: float, dtype: str) -> float:
    """Return the FLOP/s that the roof allows at ``intensity`` FLOP/B: the smaller of two limits."""
    return min(roofs.rate(roof, dtype), roof.bandwidth * intensity)


def vector_budget(roof: Roof, bytes_per_element: int) -> float:
    """Return the vector operations that fit into the time to move one element in and out once."""
    return roofs.vector_rate(roof) * 2 * bytes_per_element / roof.bandwidth


def times(work: Any, roof: Roof, host_per_op: float, *, fused: bool = False) -> Times:
    """Return the times of ``work`` (a ``counting.Work``) under ``roof``, in seconds.

    Matmul and attention run at the dtype's rate; pointwise functions cost their instructions on the
    vector units and reductions one operation per FLOP there; all others only move bytes. Every
    operation that is not a view is one kernel and costs the host ``host_per_op``. ``fused`` asks
    instead: what if all of it were one kernel that moves the ideal bytes? RooflineError when the
    roof lacks a rate, or when a matmul would have to be fused.
    """
    ops = [op for op in work.ops if op.kind != "view"]
    unknown = sorted({name for op in ops for name in op.functions if not has_cost(name)})
    notes = (f"counted as one multiply each: {', '.join(unknown)}",) if unknown else ()
    if fused:
        matmuls = [op.name for op in ops if op.kind in ("matmul", "attention")]
        if matmuls:
            raise RooflineError(f"{matmuls[0]} stays a kernel of its own: leave out fused=True.")
        pairs = [(roofs.compute(ops, roof), work.bytes_ideal / roof.bandwidth)] if ops else []
        launches = len(pairs)
    else:
        pairs = [(roofs.compute([op], roof), op.bytes / roof.bandwidth) for op in ops]
        launches = sum(op.calls for op in ops)
    compute_bound = sum(c for c, m in pairs if c > m)
    memory_bound = sum(m for c, m in pairs if c <= m)
    host = launches * host_per_op
    return Times(
        compute=sum(c for c, _ in pairs),
        memory=sum(m for _, m in pairs),
        host=host,
        program=max(compute_bound + memory_bound, host),
        kernels=compute_bound + memory_bound,
        compute_bound=compute_bound,
        memory_bound=memory_bound,
        roof=roof,
        notes=notes,
    )


def verdict(measured_s: float, times: Times) -> Verdict:
    """Name what limits a program that took ``measured_s`` seconds, or say that nothing explains it.

    A bucket is named only if it explains at least 60 % of the time. Overhead is one only where
    the host needs longer than all kernels together: else it works while they run, and is hidden.
    Measured faster than a datasheet allows is not a verdict but a question about the measurement.
    """
    _positive(measured_s)
    buckets = {"compute": times.compute_bound, "memory": times.memory_bound}
    if times.host > times.kernels:
        buckets["overhead"] = times.host
    bucket = max(buckets, key=buckets.__getitem__)
    share = buckets[bucket] / measured_s
    roof, kernels = times.roof.label, times.kernels / measured_s
    if kernels > TOO_FAST and roof == DATASHEET:
        asked = "did you wait for the GPU, and do the data fit into its cache?"
        said = f"Faster than the {roof} allows by x{kernels:.2g}: {asked}"
        return Verdict("unexplained", share, said)
    if share < EXPLAINS:
        why = f"{bucket} explains {share:.0%} of the measured time, less than {EXPLAINS:.0%}"
        if kernels >= EXPLAINS:
            why = (
                f"kernels explain {kernels:.0%}, but split: compute-bound ones "
                f"{times.compute_bound / measured_s:.0%}, memory-bound ones "
                f"{times.memory_bound / measured_s:.0%}"
            )
        return Verdict("unexplained", share, f"Unexplained: look at the trace ({why}).")
    said = f"{_BUCKETS[bucket]}: that explains {share:.0%} of the measured time ({roof})."
    if share > TOO_FAST:
        low = "the cost per operation is set too high" if bucket == "overhead" else _BEATS
        said += f" More than all of it: {low}."
    return Verdict(bucket, share, said)


def ledger(measured_s: float, times: Times) -> Ledger:
    """Split ``measured_s`` into compute, memory, host and what is left.

    compute and memory are the kernels bound by each; host is only what the host needs beyond the
    kernels, since it works while they run.
    """
    _positive(measured_s)
    parts = {
        "compute": times.compute_bound,
        "memory": times.memory_bound,
        "host": max(0.0, times.host - times.kernels),
    }
    left = measured_s - times.program
    rows = tuple(Row(name, s, s / measured_s) for name, s in parts.items())
    return Ledger(measured_s, rows, left, left / measured_s)


_BEATS = "a boost clock, data in the cache, or a roof that is too low"
_BUCKETS = {
    "compute": "Compute-bound",
    "memory": "Memory-bandwidth-bound",
    "overhead": "Overhead-bound (the host cannot queue faster)",
}


def _positive(measured_s: float) -> None:
    if not measured_s > 0:
        raise RooflineError(f"A measured time is above 0 s, not {measured_s!r}.")
