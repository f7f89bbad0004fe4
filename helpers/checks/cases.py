"""Cases to diagnose: the numbers of one step on a named card, drawn from a seed.

A step is so many FLOP of matrix products, so many bytes and so many launches, and a time that
somebody measured. All rates are the card's datasheet peaks; the times follow the course's rule.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helpers.devices import Device, get

CARDS = ("t4", "l4", "a100_80_sxm", "h100_sxm")
"""One card for each way that bandwidth and arithmetic are balanced."""

ANOTHER = "another test"
LEAST, MOST = 0.6, 1.1
"""Shares of the measured time between which a bucket may be named; above, the time is in doubt."""

KINDS = ("memory", "compute", "overhead", "trace", "again")
"""What a case is about: a bucket, a time that nothing explains, a time that cannot be."""

NEXT = {
    "memory": "fewer bytes",
    "compute": "cheaper arithmetic",
    "overhead": "fewer launches",
    "trace": "look at the trace",
    "again": "time it again",
}
"""What to do after each kind of case."""


@dataclass(frozen=True)
class Case:
    """One step: ``ms`` measured; what it does; what the card and its host can do."""

    card: str
    ms: float
    tflop: float
    gb: float
    launches: int
    us_each: float
    tflop_per_s: float
    gb_per_s: float

    @classmethod
    def of(cls, numbers: Mapping[str, Any]) -> Case:
        return cls(**numbers)

    @property
    def parts(self) -> dict[str, float]:
        """Milliseconds that arithmetic, memory and the host need, each as if it were alone."""
        return {
            "compute": self.tflop / self.tflop_per_s * 1e3,
            "memory": self.gb / self.gb_per_s * 1e3,
            "overhead": self.launches * self.us_each / 1e3,
        }

    @property
    def largest(self) -> str:
        return max(self.parts, key=self.parts.__getitem__)

    @property
    def share(self) -> float:
        """Share of the measured time that the largest part explains."""
        return self.parts[self.largest] / self.ms

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return kind(self.largest, self.share)

    @property
    def verdict(self) -> str:
        """A bucket, or "another test"."""
        return self.kind if LEAST <= self.share <= MOST else ANOTHER


def kind(largest: str, share: float) -> str:
    """What a step is a case of whose largest part explains that share of the measured time."""
    return "trace" if share < LEAST else "again" if share > MOST else largest


def explain(measured: float, compute: float, memory: float, host: float) -> tuple[str, float]:
    """The verdict on one step and the seconds that its largest part leaves over; all in seconds.

    A bucket is named if it explains 60 to 110 % of the measured time.
    """
    parts = {"compute": compute, "memory": memory, "overhead": host}
    largest = max(parts, key=parts.__getitem__)
    named = LEAST <= parts[largest] / measured <= MOST
    return (largest if named else ANOTHER), measured - parts[largest]


def draw(rng: random.Random, wanted: str) -> dict[str, Any]:
    """The numbers of a case of the kind ``wanted``, clear of every borderline.

    The largest part explains 78 to 95 % in a case with a bucket, below 45 % where nothing does, and
    140 to 250 % where the time cannot be; the other two parts stay below 40 %.
    """
    card: Device = get(rng.choice(CARDS))
    measured = rng.uniform(3e-3, 40e-3)
    winner = wanted if wanted in KINDS[:3] else rng.choice(("memory", "compute"))
    low, high = {"trace": (0.3, 0.45), "again": (1.4, 2.5)}.get(wanted, (0.78, 0.95))
    share = {name: rng.uniform(0.08, 0.4) for name in ("memory", "compute", "overhead")}
    share[winner] = rng.uniform(low, high)
    each = _short(rng.uniform(5, 30))
    launches = max(2, round(share["overhead"] * measured / (each * 1e-6)))
    return {
        "card": card.name,
        "ms": _short(measured * 1e3),
        "tflop": _short(share["compute"] * measured * card.peak["fp16"] / 1e12),
        "gb": _short(share["memory"] * measured * card.bandwidth / 1e9),
        "launches": launches,
        "us_each": each,
        "tflop_per_s": card.peak["fp16"] / 1e12,
        "gb_per_s": card.bandwidth / 1e9,
    }


def three(seed: int) -> list[str]:
    """The kinds of the three cases of one learner, in their order: two buckets, one open case."""
    rng = random.Random(f"09-cases:{seed}")
    kinds = [*rng.sample(KINDS[:3], 2), rng.choice(KINDS[3:])]
    rng.shuffle(kinds)
    return kinds


def numbered(number: int) -> Case:
    """Case ``number`` of the explorer: the same for everybody; five in a row show all kinds."""
    block, place = divmod(number - 1, len(KINDS))
    kinds = list(KINDS)
    random.Random(f"explorer:{block}").shuffle(kinds)
    return Case.of(draw(random.Random(f"explorer-case:{number}"), kinds[place]))


ORDERS = ("CMO", "COM", "MCO", "MOC", "OCM", "OMC")
"""Which bucket the factory pictures A, B and C show: Compute, Memory, Overhead."""
_INITIAL = {"M": "memory", "C": "compute", "O": "overhead"}


def buckets_of(picture: int) -> dict[str, str]:
    """The bucket that each of the factory pictures A, B and C shows in arrangement 1 to 6."""
    return {letter: _INITIAL[i] for letter, i in zip("ABC", ORDERS[picture - 1], strict=True)}


def _short(value: float) -> float:
    """Three significant digits: what is printed is what is judged."""
    return float(f"{value:.3g}")
