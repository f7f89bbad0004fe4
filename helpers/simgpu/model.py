"""How long a kernel takes on a GPU, and what the host pays to queue it. Arithmetic only.

The roofs are published sustained figures (``helpers.devices``), not the datasheet's. Where nobody
published one, the datasheet's figure is multiplied by a stated fraction and the quantity is listed
in ``GPUModel.derived``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from helpers.devices import Device, slots
from helpers.facts import FactError, fact

BANDWIDTH_FRACTION = 0.85
"""Sustained over datasheet bandwidth where unpublished; published pairs lie at 0.75 to 0.93."""
MATMUL_FRACTION = 0.75
"""Sustained over datasheet matmul rate where unpublished; published pairs: 0.57 to 1.05."""
L2_MULTIPLE = 4.0
"""L2 bandwidth over device-memory bandwidth where unpublished. An assumption; the published pairs
are 3.1 (A100: 5.4 over 1.74 TB/s) and 3.8 (RTX 4090: 3868 GB/s seen inside L2 over 1008)."""
SLEEP_CLOCK = 1.5e9
"""Cycles per second of ``torch.cuda._sleep``; an assumption for every device."""
PINNED_FRACTION = 0.8
"""Share of the link's theory that a copy from pinned memory reaches."""
PAGEABLE_RATE = 6e9
"""B/s of a copy from ordinary host memory, staged by the driver; 1.6 to 9 GB/s are reported."""
CONTEXT = 2**27
"""Bytes of device memory that the CUDA context takes; an assumption."""

_HALF_RATE_FP64 = {(6, 0), (7, 0), (8, 0), (9, 0)}


@dataclass(frozen=True)
class GPUModel:
    """What the time model knows about a device. B/s, FLOP/s, seconds, bytes."""

    device: Device
    bandwidth: float
    l2: int
    l2_bandwidth: float
    matmul: Mapping[str, float]
    """FLOP/s by dtype name."""
    vector_rate: float
    """FP32 lane operations per second, not counting a multiply-add as two."""
    fp64_share: float
    startup: float
    """Seconds that every kernel takes on top of its work."""
    derived: tuple[str, ...]
    """Quantities that nobody published and that a fraction above supplied."""

    def matmul_rate(self, dtype: str) -> float:
        """FLOP/s of matrix products; a dtype without a unit runs on the FP32 lanes."""
        if dtype in self.matmul:
            return self.matmul[dtype]
        return self.matmul["fp32"] * (self.fp64_share if dtype == "fp64" else 1.0)


@dataclass(frozen=True)
class Task:
    """What one kernel does: bytes moved, matmul FLOPs by dtype, lane slots of vector work."""

    name: str
    bytes: float
    flops: float = 0.0
    matmul: tuple[tuple[str, float], ...] = ()
    lane_operations: float = 0.0


@dataclass(frozen=True)
class Timing:
    """Seconds of a kernel and what decided them."""

    seconds: float
    bound_by: str


def build(device: Device) -> GPUModel:
    """Return the model of ``device``, with its unpublished figures derived and listed."""
    derived = []
    bandwidth = device.sustained_bandwidth
    if bandwidth is None:
        bandwidth = device.bandwidth * BANDWIDTH_FRACTION
        derived.append("bandwidth")
    rates = dict(device.sustained)
    for dtype, peak in device.peak.items():
        if dtype not in rates:
            rates[dtype] = peak * MATMUL_FRACTION
            derived.append(f"matmul {dtype}")
    l2_bandwidth = device.sustained_l2_bandwidth
    if l2_bandwidth is None:
        l2_bandwidth = bandwidth * L2_MULTIPLE
        derived.append("l2_bandwidth")
    fp64 = 1 / 2 if device.capability in _HALF_RATE_FP64 else 1 / 32
    return GPUModel(
        device=device, bandwidth=bandwidth, l2=device.l2, l2_bandwidth=l2_bandwidth, matmul=rates,
        vector_rate=rates["fp32"] / 2, fp64_share=fp64, startup=_startup(device, derived),
        derived=tuple(derived),
    )  # fmt: skip


def _startup(device: Device, derived: list[str]) -> float:
    """What the smallest kernel takes in a CUDA graph, of the nearest card that was measured."""
    measured = {(8, 0): "a100", (8, 9): "l40", (9, 0): "h200"}
    if device.capability not in measured:
        derived.append("startup")
    return fact(f"host.graph_kernel_{measured.get(device.capability, 'a100')}").value


def kernel_time(task: Task, gpu: GPUModel, resident: float = 0.0) -> Timing:
    """Return the start-up plus the largest of memory, matmul and vector time.

    ``resident`` is the share of the bytes that L2 holds: those move at L2 bandwidth. Start-up adds
    to the work and is not a floor under it: T = a + V/b is what gpu-benches fits to small kernels.
    """
    memory = task.bytes * ((1 - resident) / gpu.bandwidth + resident / gpu.l2_bandwidth)
    work = max(
        (
            Timing(memory, "L2" if resident > 0.5 else "memory"),
            Timing(sum(f / gpu.matmul_rate(d) for d, f in task.matmul), "compute"),
            Timing(task.lane_operations / gpu.vector_rate, "vector"),
        ),
        key=lambda t: t.seconds,
    )
    bound_by = work.bound_by if work.seconds > gpu.startup else "startup"
    return Timing(gpu.startup + work.seconds, bound_by)


@lru_cache(maxsize=1024)
def lane_slots(functions: tuple[str, ...], lanes: int) -> float:
    """FP32 lane slots per element of pointwise ``functions``; one for a function without facts."""
    known, unknown = [], 0
    for name in functions:
        try:
            slots((name,), lanes)
        except FactError:
            unknown += 1
        else:
            known.append(name)
    return slots(known, lanes) + unknown


@dataclass(frozen=True)
class HostModel:
    """What the host pays, in seconds.

    ``operation`` is the whole cost of one eager operation that launches a kernel: Python above the
    dispatcher, dispatch, the views in between, and ``launch``, which puts the kernel in the queue.
    """

    operation: float
    launch: float
    compiled_launch: float
    """Launch of a generated kernel (Triton's launcher)."""
    sync: float
    """A wait, on top of the time waited."""
    guard: float = 25e-6
    """Guard check at each call of a compiled function; an assumption."""
    graph_launch: float = 10e-6
    """One replay of a CUDA graph, from Python; an assumption."""
    event: float = 2e-6
    """Recording an event; an assumption."""
    query: float = 1e-6
    """Asking whether an event has happened; an assumption."""
    queue_limit: int = 1024
    """Launches that fit in the queue before the host has to wait."""
    compile_base: float = 2.0
    """First call of a compiled function; an assumption."""
    compile_operation: float = 0.03
    """Each operation in it, on top; an assumption."""

    @property
    def dispatch(self) -> float:
        """The part of ``operation`` before the launch."""
        return self.operation - self.launch


def default_host() -> HostModel:
    """Return the host of the facts: the one behind gpt-fast's eager 25.5 tokens/s."""
    return HostModel(
        operation=fact("host.operation").value,
        launch=fact("host.launch").value,
        compiled_launch=fact("host.triton_launch").value,
        sync=fact("host.synchronize_low").value,
    )
