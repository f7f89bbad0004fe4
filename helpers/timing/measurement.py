"""What a measurement is: plain data, its statistics and its JSON form.

Private: import these names from `helpers.timing`.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

NOISY_SPREAD = 0.10  # above it the 20 % and 80 % points tell visibly different stories
CLOCKS = ("cuda-events", "wall")
CACHES = ("cold", "hot")
ORIGINS = ("measured", "simulated", "replayed")


def quantile(values: Sequence[float], q: float) -> float:
    """The `q` quantile (0 to 1) of `values`, by linear interpolation between order statistics."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def spread(values: Sequence[float]) -> float:
    """(p80 - p20) / median, a relative width that a few outliers cannot move; no unit."""
    return (quantile(values, 0.8) - quantile(values, 0.2)) / statistics.median(values)


def seconds(value: float) -> str:
    """A time for people: `0.00219` -> `"2.19 ms"`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


@dataclass(frozen=True)
class Measurement:
    """How long one call takes. All times in seconds per call.

    samples: one entry per timed event pair or timed block, each already divided by its calls.
    first_call: the very first call, with compilation and lazy initialisation; None of the samples.
    host: what the host needs to queue one call on an idle GPU; None where there is no queue (CPU).
    wall: per call of a loop that waits for the device once at its end; caches as the loop finds
    them, so hot.
    clock: "cuda-events" (GPU time) or "wall". cache: "cold" (L2 flushed before each sample) or
    "hot". origin: "measured", "simulated" or "replayed".
    held: True when the GPU could not start before everything was queued, in every sample; False
    makes the samples an upper bound; None on the wall clock.
    group: the same in all measurements of one `interleave`, whose samples pair up; else None.
    Raises ValueError when a field is not what it should be.
    """

    samples: tuple[float, ...]
    first_call: float
    host: float | None
    wall: float | None
    clock: str
    cache: str
    origin: str
    device: str
    held: bool | None
    notes: tuple[str, ...] = ()
    group: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.samples, tuple) or not self.samples:
            raise ValueError("samples must be a non-empty tuple of seconds.")
        for i, value in enumerate(self.samples):
            _require(_is_time(value) and value > 0, f"samples[{i}]", value, "seconds above 0")
        _require(_is_time(self.first_call), "first_call", self.first_call, "seconds")
        for name in ("host", "wall"):
            value = getattr(self, name)
            _require(value is None or _is_time(value), name, value, "seconds or None")
        for name, allowed in (("clock", CLOCKS), ("cache", CACHES), ("origin", ORIGINS)):
            value = getattr(self, name)
            _require(value in allowed, name, value, "one of " + ", ".join(allowed))
        _require(isinstance(self.device, str) and self.device, "device", self.device, "a name")
        ok = self.held is None or isinstance(self.held, bool)
        _require(ok, "held", self.held, "True, False or None")
        texts = isinstance(self.notes, tuple) and all(isinstance(n, str) for n in self.notes)
        _require(texts, "notes", self.notes, "a tuple of sentences")
        ok = self.group is None or isinstance(self.group, str)
        _require(ok, "group", self.group, "a text or None")

    @property
    def n(self) -> int:
        """How many samples."""
        return len(self.samples)

    @property
    def median(self) -> float:
        """Median seconds per call: the number to quote."""
        return statistics.median(self.samples)

    @property
    def p20(self) -> float:
        """A fifth of the samples were faster than this (s)."""
        return quantile(self.samples, 0.2)

    @property
    def p80(self) -> float:
        """A fifth of the samples were slower than this (s)."""
        return quantile(self.samples, 0.8)

    @property
    def spread(self) -> float:
        """(p80 - p20) / median, no unit."""
        return spread(self.samples)

    @property
    def noisy(self) -> bool:
        """True when the spread is above 10 %: compare with care, or measure again."""
        return self.spread > NOISY_SPREAD

    def __str__(self) -> str:
        what = "GPU time" if self.clock == "cuda-events" else "wall time"
        text = (
            f"{seconds(self.median)} per call ({what}, {self.cache} cache, {self.origin} on "
            f"{self.device}; p20 {seconds(self.p20)}, p80 {seconds(self.p80)}, n = {self.n}"
            f"{', noisy' if self.noisy else ''}; first call {seconds(self.first_call)})"
        )
        return "\n".join([text, *(f"  note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, with the summary beside the samples it was made from."""
        data = asdict(self)
        data.update(samples=list(self.samples), notes=list(self.notes))
        data["summary"] = {
            "median": self.median,
            "p20": self.p20,
            "p80": self.p80,
            "n": self.n,
            "spread": self.spread,
            "noisy": self.noisy,
        }
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Measurement":
        """The inverse of `to_dict`.

        Raises ValueError when a key is missing or unknown, a value is not what it should be, or
        the summary is not that of the samples.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"A measurement is a mapping, not {type(data).__name__}.")
        own = {f.name for f in fields(cls)}
        missing, unknown = own - set(data), set(data) - own - {"summary"}
        if missing or unknown:
            names = f"missing {sorted(missing)}, unknown {sorted(map(str, unknown))}"
            raise ValueError(f"Not a measurement: {names}.")
        values = {name: data[name] for name in own}
        for name in ("samples", "notes"):
            _require(isinstance(values[name], list), name, values[name], "a list")
            values[name] = tuple(values[name])
        measurement = cls(**values)
        if "summary" in data:
            _check_summary(data["summary"], measurement)
        return measurement


@dataclass(frozen=True)
class Ratio:
    """How many times as long a takes as b. No unit.

    paired: sample i of a was divided by sample i of b of the same round, so slow drift cancels.
    Not paired: the ratio of the medians, and p20 and p80 are the widest that the two allow.
    """

    median: float
    p20: float
    p80: float
    paired: bool

    def __str__(self) -> str:
        how = "paired, round by round" if self.paired else "of the medians, not paired"
        return f"{self.median:.3g}x (p20 {self.p20:.3g}, p80 {self.p80:.3g}; {how})"


def ratio(a: Measurement, b: Measurement) -> Ratio:
    """How many times as long `a` takes as `b`.

    Paired when both came from one `interleave` (same group, same number of samples); otherwise
    of the medians, and `Ratio.paired` is False.
    """
    if a.group is not None and a.group == b.group and a.n == b.n:
        each = [x / y for x, y in zip(a.samples, b.samples, strict=True)]
        return Ratio(statistics.median(each), quantile(each, 0.2), quantile(each, 0.8), True)
    return Ratio(a.median / b.median, a.p20 / b.p80, a.p80 / b.p20, False)


def _is_time(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _require(ok: object, name: str, value: object, wanted: str) -> None:
    if not ok:
        raise ValueError(f"{name} must be {wanted}, not {value!r}.")


def _check_summary(summary: object, m: Measurement) -> None:
    _require(isinstance(summary, Mapping), "summary", summary, "a mapping")
    for name, told in summary.items():
        if name not in ("median", "p20", "p80", "n", "spread", "noisy"):
            raise ValueError(f"summary has an unknown entry {name!r}.")
        true = getattr(m, name)
        number = isinstance(told, (int, float))
        if not number or not math.isclose(told, true, rel_tol=1e-9, abs_tol=1e-15):
            raise ValueError(f"summary says {name} = {told!r}, but its samples give {true!r}.")
