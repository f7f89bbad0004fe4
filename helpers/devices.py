"""GPUs by name: what the datasheet says, what others sustained, and which names are look-alikes.

Torch-free except ``current``. All figures come from ``helpers.facts`` and are dense; FLOP/s count a
multiply-add as two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from helpers.facts import fact, facts, label

__all__ = [
    "SIMULATED",
    "Device",
    "UnknownDevice",
    "all_devices",
    "current",
    "get",
    "has_cost",
    "is_simulated",
    "lookup",
    "slots",
]

SIMULATED = " (simulated)"
"""Ending of the name that a simulated device reports."""

ISSUE_LANES = 128
"""Lanes served per SM and clock by its four instruction schedulers, one warp of 32 each."""

XU_LANES = 16
"""Results per SM and clock of the unit for exp2, log2, rcp, rsqrt and most conversions."""


class UnknownDevice(ValueError):
    """The name or key belongs to no device of the facts."""


@dataclass(frozen=True)
class Device:
    """One GPU. Rates in bytes/s and FLOP/s, sizes in bytes, power in watts."""

    key: str
    name: str
    torch_names: tuple[str, ...]
    """What ``torch.cuda.get_device_name`` prints."""
    capability: tuple[int, int]
    sms: int
    memory: int
    """Bytes that CUDA reports where known, else GB as sold x 1e9; ``memory_note`` says which."""
    memory_note: str
    l2: int
    pcie: float
    """Host link, one way, theory."""
    power: float
    bandwidth: float
    """Device memory, datasheet."""
    peak: Mapping[str, float]
    """Datasheet dense rate by dtype; a dtype without its own unit is absent."""
    sustained_bandwidth: float | None
    """Published streaming rate, bytes read plus written; None where nobody published one."""
    sustained_l2_bandwidth: float | None
    sustained: Mapping[str, float]
    """Published matmul rate by dtype; holds emulated ones too (bf16 on a T4), may exceed a peak."""
    fp32_lanes_per_sm: int

    @property
    def has_bf16(self) -> bool:
        """True where tensor cores take bf16 (compute capability 8.0 and later)."""
        return "bf16" in self.peak

    @property
    def dtype(self) -> str:
        """The half-precision dtype to use on it: bf16 where the hardware has it, else fp16."""
        return "bf16" if self.has_bf16 else "fp16"

    @property
    def vector_rate(self) -> float:
        """Vector operations/s that are not multiply-adds: half the fp32 FLOP/s."""
        return self.peak["fp32"] / 2

    @property
    def sustained_vector_rate(self) -> float | None:
        """Half the published fp32 matmul rate; None where nobody published one."""
        rate = self.sustained.get("fp32")
        return None if rate is None else rate / 2


def slots(functions: Iterable[str], lanes: int) -> float:
    """Return the FP32 lane slots that the pointwise ``functions`` take per element, together.

    Three units work side by side, so the busiest one decides: the FP32 lanes (``fma``), the
    special-function unit (``xu``, 16 lanes) and the schedulers (``issue``, 128 lanes), each
    expressed in slots of an SM with ``lanes`` FP32 lanes. Counts: facts ``instruction.*``;
    FactError for an unknown function.
    """
    fma = xu = issue = 0.0
    for function in functions:
        name = _SYNONYMS.get(function, function)
        fma += fact(f"instruction.{name}.fma").value
        xu += fact(f"instruction.{name}.xu").value
        issue += fact(f"instruction.{name}.issue").value
    return max(fma, xu * lanes / XU_LANES, issue * lanes / ISSUE_LANES)


def has_cost(function: str) -> bool:
    """True when the facts hold the instruction cost of a pointwise function (or of its synonym)."""
    return f"instruction.{_SYNONYMS.get(function, function)}.fma" in facts()


def lookup(torch_name: str, *, sms: int | None = None, memory: int | None = None) -> Device | None:
    """Return the device with exactly this name, or None: never a guess, never a default.

    The vendor's prefix, the ending " (simulated)", case and spaces do not matter. ``sms`` and
    ``memory`` (bytes) are a second key: a part of a card, or a card sold with other memory, is not
    the device. Laptop parts, MIG slices and neighbours such as "L40S" are unknown.
    """
    device = _by_torch_name().get(_normal(torch_name))
    if device is None:
        return None
    if sms is not None and sms != device.sms:
        return None
    # Sold in GB, built in GiB, and drivers keep some back: 16 GB may be 15.6e9 to 17.2e9 bytes.
    if memory is not None and not 0.9 <= memory / device.memory <= 1.1:
        return None
    return device


def get(key_or_name: str) -> Device:
    """Return the device for a key, a name or an alias: "t4", "T4", "A100-80", "Tesla T4".

    Unknown names raise UnknownDevice, which lists the keys.
    """
    wanted = _loose(key_or_name)
    for device in all_devices():
        if wanted in (_loose(device.key), _loose(device.name)):
            return device
    if wanted in _ALIASES:
        return get(_ALIASES[wanted])
    device = lookup(key_or_name)
    if device is None:
        known = ", ".join(device.key for device in all_devices())
        raise UnknownDevice(f"No facts about a device called {key_or_name!r}. Known: {known}.")
    return device


@lru_cache(maxsize=1)
def all_devices() -> tuple[Device, ...]:
    """Return every device of the facts, in file order."""
    keys = dict.fromkeys(path.split(".")[1] for path in facts() if path.startswith("device."))
    return tuple(_device(key) for key in keys)


def is_simulated(name: str) -> bool:
    """True when a device name is that of a simulated device."""
    return name.rstrip().endswith(SIMULATED.strip())


def current() -> Device | None:
    """Return the CUDA device in use (real or simulated), or None when there is none or unknown."""
    import torch

    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return lookup(
        torch.cuda.get_device_name(),
        sms=properties.multi_processor_count,
        memory=properties.total_memory,
    )


# Functions that compile to the code of another one.
_SYNONYMS = {
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "isnan", "logical_not"), "compare"),
    **dict.fromkeys(("minimum", "fmax", "fmin"), "maximum"),
    **dict.fromkeys(("clamp_min", "clamp_max", "threshold"), "relu"),
    **dict.fromkeys(("hardtanh", "relu6"), "clamp"),
    **dict.fromkeys(("masked_fill",), "where"),
    **dict.fromkeys(("square",), "pow2"),
}

# Short names that people use; each means the SXM form where there are several.
_ALIASES = {
    "a100": "a100_80_sxm",
    "a10080": "a100_80_sxm",
    "a10080gb": "a100_80_sxm",
    "a10080sxm": "a100_80_sxm",
    "a10040": "a100_40_sxm",
    "a10040gb": "a100_40_sxm",
    "h100": "h100_sxm",
    "v100": "v100_sxm_16",
    "p100": "p100_pcie",
    "3090": "rtx_3090",
    "4090": "rtx_4090",
}


def _normal(name: str) -> str:
    """Lower case, single spaces, without the vendor's prefix and the simulated ending."""
    text = " ".join(name.lower().split()).removesuffix(SIMULATED.strip()).strip()
    return re.sub(r"^((nvidia|tesla) )+", "", text)


def _loose(name: str) -> str:
    """As ``_normal``, and without spaces, hyphens and underscores: for what people type."""
    return re.sub(r"[\s_-]+", "", _normal(name))


@lru_cache(maxsize=1)
def _by_torch_name() -> Mapping[str, Device]:
    return {_normal(name): device for device in all_devices() for name in device.torch_names}


def _device(key: str) -> Device:
    at = f"device.{key}"
    known = facts()

    def table(prefix: str) -> Mapping[str, float]:
        start = f"{at}.{prefix}."
        found = {path[len(start) :]: f.value for path, f in known.items() if path.startswith(start)}
        return MappingProxyType({k: float(v) for k, v in found.items() if "bandwidth" not in k})

    def optional(path: str) -> float | None:
        return float(known[path].value) if path in known else None

    major, minor = fact(f"{at}.capability").value
    return Device(
        key=key,
        name=label(at),
        torch_names=tuple(fact(f"{at}.torch_names").value),
        capability=(major, minor),
        sms=fact(f"{at}.sms").value,
        memory=fact(f"{at}.memory").value,
        memory_note=fact(f"{at}.memory").note,
        l2=fact(f"{at}.l2").value,
        pcie=float(fact(f"{at}.pcie").value),
        power=float(fact(f"{at}.power").value),
        bandwidth=float(fact(f"{at}.bandwidth").value),
        peak=table("peak"),
        sustained_bandwidth=optional(f"{at}.sustained.bandwidth"),
        sustained_l2_bandwidth=optional(f"{at}.sustained.l2_bandwidth"),
        sustained=table("sustained"),
        fp32_lanes_per_sm=fact(f"architecture.sm{major}{minor}.fp32_lanes").value,
    )
