"""The figure behind the explorer of notebook 04: when does one more fused operation cost time?"""

from __future__ import annotations

from typing import Any

from helpers.devices import get
from helpers.plots import style
from helpers.plots.style import INK, SMALL
from helpers.plots.sweep import draw_sweep

ELEMENT = {"fp16": 2, "bf16": 2, "fp32": 4}
"""Bytes of one element."""

MOST = 64
ELEMENTS = 2**27


def _roofs(device: Any) -> tuple[float, float, str]:
    """Bandwidth in B/s, vector operations/s, and the name of the roofs they come from."""
    bandwidth, vector = device.sustained_bandwidth, device.sustained_vector_rate
    if bandwidth and vector:
        return bandwidth, vector, "published sustained roofs"
    return device.bandwidth, device.vector_rate, "datasheet roofs"


def free_operations(cost_per_op: float, dtype: str, device: Any) -> float:
    """Return how many fused operations of ``cost_per_op`` vector operations ride on one trip.

    One trip moves each element in and out, 2 x its size; the chain stops being free where its
    arithmetic takes as long: (2 x size / bandwidth) x vector rate / cost. May be below 1.
    """
    bandwidth, vector, _ = _roofs(device)
    return 2 * ELEMENT[dtype] / bandwidth * vector / cost_per_op


def draw_fusion_explorer(
    ax: Any = None,
    operations: int = 3,
    cost_per_op: float = 1.0,
    dtype: str = "fp16",
    device: Any = "t4",
    *,
    elements: int = ELEMENTS,
) -> Any:
    """Draw time against number of operations, eager and fused, from the roofs of ``device``.

    ``cost_per_op``: vector operations per element of one operation (a multiply is 1, a cosine
    tens). ``device``: a Device, or its key or name. Eager pays a trip per operation,
    n x max(trip, cost); fused pays one, max(trip, n x cost). The speed-up at ``operations`` is
    marked. Launch cost is left out: ``elements`` is large.
    """
    device = get(device) if isinstance(device, str) else device
    if dtype not in ELEMENT:
        raise ValueError(f"Unknown dtype {dtype!r}; use {', '.join(ELEMENT)}.")
    if not 1 <= operations <= MOST or cost_per_op <= 0:
        raise ValueError(f"Need 1 to {MOST} operations and a cost per operation above zero.")
    bandwidth, vector, roofs = _roofs(device)
    trip = 2 * ELEMENT[dtype] * elements / bandwidth
    work = cost_per_op * elements / vector
    knee = free_operations(cost_per_op, dtype, device)
    steps = range(1, MOST + 1)
    eager = [n * max(trip, work) for n in steps]
    fused = [max(trip, n * work) for n in steps]
    at = steps.index(operations)
    gain = eager[at] / fused[at]
    inside = 1 <= knee <= MOST
    ax = draw_sweep(
        ax, steps, {"eager": eager, "fused": fused},
        origin="calculated", device=device.name, logx=True, logy=True,
        xlabel="operations in the chain", ylabel="time",
        title=_headline(operations, gain) + f" ({dtype}, cost {style.number(cost_per_op)} each)",
        knee=knee if inside else None, knee_label="no longer free after",
        flat=(1, min(knee, MOST)) if knee > 1.6 else None, flat_label="one more is free",
        note=roofs + _edge_case(knee),
    )  # fmt: skip
    size, _ = style.scale(max(eager), "s")
    ax.annotate(
        "", (operations, fused[at] / size), xytext=(operations, eager[at] / size),
        arrowprops=dict(arrowstyle="<->", color=INK, linewidth=1.4, shrinkA=3, shrinkB=3),
    )  # fmt: skip
    if gain > 1.15:
        middle = (eager[at] * fused[at]) ** 0.5 / size
        ax.annotate(f"×{style.number(gain, 2)}", (operations, middle), xytext=(6, 0), va="center",
                    textcoords="offset points", fontsize=SMALL, fontweight="bold", color=INK,
                    gid="gain")  # fmt: skip
    style.describe(
        ax,
        f"Calculated for {device.name} from its {roofs}, {dtype}, {elements:,} elements, "
        f"{style.number(cost_per_op)} vector operations per element and operation. "
        f"One trip through memory takes {style.quantity(trip, 's')}. A fused chain is free up to "
        f"{style.number(knee)} operations. At {operations}: eager "
        f"{style.quantity(eager[at], 's')}, fused {style.quantity(fused[at], 's')}, "
        f"{_headline(operations, gain)}. Both axes are logarithmic.",
    )
    return ax


def _headline(operations: int, gain: float) -> str:
    chain = f"{operations} operation{'s' * (operations > 1)}"
    if gain < 1.05:
        return f"Fusing {chain} gains nothing"
    return f"{chain}, fused: ×{style.number(gain, 2)} faster"


def _edge_case(knee: float) -> str:
    if knee < 1:
        return f" · one operation takes as long as {style.number(1 / knee, 2)} trips: never free"
    if knee > MOST:
        return f" · free up to {style.number(knee)} operations, beyond this figure"
    return ""
