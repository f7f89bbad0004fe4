"""Where data can lie, from the registers to the disk: how much fits there, how fast it comes.

Every figure says how it is known: ``stated`` (a datasheet, a guide or the rules of a bus),
``published`` (somebody measured it) or ``estimated`` (an order of magnitude, with its reason).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from helpers.devices import Device
from helpers.facts import fact

__all__ = ["BANK", "FMA_BYTES", "KNOWN", "L2_MULTIPLE", "Level", "host_memory", "levels"]

KNOWN = ("stated", "published", "estimated")

FMA_BYTES = 16
"""Bytes that one fp32 multiply-add takes out of and puts into registers: three in, one out."""
BANK = 4
"""Bytes that a bank of shared memory answers with per clock."""
L2_MULTIPLE = 4.0
"""L2 over device memory where unpublished; the published pairs are 3.1 and 3.8. An assumption, the
same as the simulated GPU's."""


@dataclass(frozen=True)
class Level:
    """One place for data. ``size``: bytes, None where no figure of the card says it.

    ``rate``: bytes/s that it delivers to the units; from host memory and disk, to the card. Both
    are sums over the card. ``known``, one of `KNOWN`, speaks of the rate; ``why`` says from what.
    """

    name: str
    size: float | None
    rate: float
    known: str
    why: str


def levels(device: Device, host: float | None = None) -> tuple[Level, ...]:
    """The levels of ``device``, fastest first. ``host``: bytes of the machine's own memory.

    Rates of what lies inside the SMs are per SM and clock x SMs x boost clock.
    """
    architecture = "architecture.sm{}{}".format(*device.capability)
    clock = fact(f"device.{device.key}.boost_clock").value
    lanes = device.fp32_lanes_per_sm
    banks = fact(f"{architecture}.shared_banks").value
    l2 = device.sustained_l2_bandwidth
    per_second = device.sms * clock
    return (
        Level(
            "registers",
            device.sms * fact(f"{architecture}.registers").value,
            FMA_BYTES * lanes * per_second,
            "estimated",
            f"{lanes} multiply-adds x {FMA_BYTES} bytes per SM and clock",
        ),
        Level(
            "shared memory, L1",
            device.sms * fact(f"{architecture}.shared").value,
            BANK * banks * per_second,
            "estimated",
            f"{banks} banks x {BANK} bytes per SM and clock",
        ),
        Level(
            "L2",
            device.l2,
            l2 or L2_MULTIPLE * device.bandwidth,
            "published" if l2 else "estimated",
            "reads, measured by others" if l2 else f"{L2_MULTIPLE:g} x device memory",
        ),
        Level("device memory", device.memory, device.bandwidth, "stated", "datasheet"),
        Level("host, pinned", host, device.pcie, "stated", fact(f"device.{device.key}.pcie").note),
        Level(
            "host, ordinary",
            host,
            min(fact("result.transfer.pageable_load").value, device.pcie),
            "published",
            "upper end of 1.6 to 6 GB/s, PyTorch",
        ),
        Level(
            "disk",
            None,
            fact("model.llama2_7b.weights").value / fact("result.loading.llama2_7b_after").value,
            "estimated",
            "7B weights from a local disk in 6 s",
        ),
    )


def host_memory() -> int | None:
    """Bytes of memory of the machine that this runs on, None where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
