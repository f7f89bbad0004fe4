"""Private part of helpers.roofline: the four measurements behind a measured ceiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from helpers.roofline.roof import RooflineError

COPY_BYTES = 2**28
"""Size of one copied array: far above the L2 of the common cards."""
CPU_COPY_BYTES = 2**28
"""Two of these exceed the last-level cache of most machines; some servers have more."""
CPU_SIDE, CPU_SIDE_LONG = 1024, 2048
"""Matmul side on a CPU, in fp32: milliseconds, where a GPU's side would take seconds."""


def measure(dtype: str, quick: bool) -> dict[str, Any]:
    """Return the fields of a Roof: device, origin, bandwidth, rates, vector_rate and the rest."""
    import torch

    from helpers import devices, timing

    gpu = torch.cuda.is_available()
    kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
    if dtype not in kinds:
        raise RooflineError(f"A ceiling is measured in {', '.join(kinds)}, not {dtype!r}.")
    if not gpu:
        dtype = "fp32"  # half precision on a CPU is emulated and slow: a different question
    budget, warmup = (0.4, 0.2) if quick else (2.0, 2.0)

    def timed(fn: Callable[[], object]) -> Any:
        return timing.measure(fn, budget=budget, warmup=warmup, min_samples=5)

    moved, copied = _copy(torch, gpu, timed)
    rates = {}
    for name in dict.fromkeys((dtype, "fp32")):
        flops, taken = _matmul(torch, gpu, kinds[name], quick, timed)
        rates[name] = flops / taken.p20
    tiny = torch.zeros(1, device="cuda" if gpu else "cpu")
    queued = timed(lambda: tiny.add_(1))
    device = devices.current() if gpu else None
    return {
        "device": copied.device,
        "bandwidth": moved / copied.p20,
        "rates": rates,
        "vector_rate": rates["fp32"] / 2,
        "origin": copied.origin,
        "lanes": device.fp32_lanes_per_sm if device else _lanes(torch) if gpu else 64,
        "host_per_op": queued.host if queued.host is not None else queued.median,
    }


def _copy(torch: Any, gpu: bool, timed: Callable) -> tuple[int, Any]:
    """Bytes read plus written by one copy, and its Measurement."""
    size = CPU_COPY_BYTES
    if gpu:
        here = torch.cuda.current_device()
        l2 = getattr(torch.cuda.get_device_properties(here), "L2_cache_size", 0)
        free = torch.cuda.mem_get_info()[0]
        size = max(COPY_BYTES, 8 * l2)
        if size > free // 4:
            size = free // 4
            if size < max(4 * l2, 2**25):
                raise RooflineError(
                    f"Only {free / 2**20:.0f} MiB of GPU memory are free, too little to measure "
                    f"its bandwidth: delete tensors or restart the runtime."
                )
    where = "cuda" if gpu else "cpu"
    source = torch.empty(size // 4, device=where).fill_(1.0)
    target = torch.empty_like(source)
    return 2 * source.numel() * 4, timed(lambda: target.copy_(source))


def _matmul(torch: Any, gpu: bool, kind: Any, quick: bool, timed: Callable) -> tuple[int, Any]:
    """FLOPs of one square matmul, and its Measurement. Random data: zeros run faster."""
    if gpu:
        half = kind is not torch.float32
        side = (4096 if half else 2048) if quick else (8192 if half else 4096)
    else:
        side = CPU_SIDE if quick else CPU_SIDE_LONG
    where = "cuda" if gpu else "cpu"
    a = torch.randn(side, side, device=where, dtype=kind)
    b = torch.randn(side, side, device=where, dtype=kind)
    out = torch.empty_like(a)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # TF32 would answer for another unit
    try:
        return 2 * side**3, timed(lambda: torch.mm(a, b, out=out))
    finally:
        torch.set_float32_matmul_precision(before)


def _lanes(torch: Any) -> int:
    """FP32 lanes per SM by compute capability: 64 up to 8.0, 128 after."""
    return 128 if torch.cuda.get_device_capability() > (8, 0) else 64
