"""A public figure beside the model's, and why it is off where it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from helpers.facts import fact

LIMIT = 0.25
"""A held-out error beyond this is a miss and needs an explanation."""

_HOST = (
    "the cost per operation is that of gpt-fast's host (32 us); this was measured on another, and "
    "the figure alone gives {each:.0f} us per operation there"
)
_SMALL = (
    "kernels of a few blocks leave most SMs idle and wait for memory latency, some microseconds "
    "each; the model adds only the start-up of the smallest kernel"
)
_TURING = _SMALL + ", which was published for an A100 and not for any Turing card"
_TILES = (
    "products of 50 rows run on tiles of up to 128 rows, and at its 70 W limit a T4 sustains "
    "24 TFLOP/s: 128 rows would take 15 ms at width 4096, 3.8 at 2048; the model counts 50 rows at "
    "the unlimited rate, which are memory-bound. A guess: the source reports no clocks"
)
_RUNTIME = (
    "a serving runtime, not PyTorch: tokenizing, scheduling and sampling count in its latency, "
    "the model counts kernels and one graph launch per token"
)
REASONS = {
    "hf.eager": _HOST.format(each=1e6 / 44.5 / 1170),
    "h100.eager": _HOST.format(each=8.4e3 / 1226),
    "t4.eager_10": "the same source gives 3.6 ms for 4 and 8 steps per call, which the model meets",
    "t4.graph": _TURING,
    "t4.compiled": _TURING,
    "t4.compiled_4": _TURING,
    "t4.width_512": _TURING + "; the source itself gives 0.819 and 1.091 ms for this case",
    "t4.width_1024": _TURING,
    "t4.width_2048": _TILES,
    "t4.width_4096": _TILES,
    "l4.width_512": _SMALL,
    "nemo.a100.1": _RUNTIME,
    "nemo.a100.2": _RUNTIME,
    "nemo.a100.4": _RUNTIME,
    "nemo.a100.8": _RUNTIME,
    "nemo.h100.1": _RUNTIME,
    "nemo.h100.2": _RUNTIME,
    "nemo.h100.4": _RUNTIME,
    "nemo.h100.8": _RUNTIME,
}
"""Why a held-out case misses by more than LIMIT. A miss without an entry here is a failure."""


@dataclass(frozen=True)
class Row:
    """One public figure beside the model's, in the same unit."""

    key: str
    what: str
    public: float
    model: float
    unit: str
    source: str
    reason: str = ""

    @property
    def error(self) -> float:
        """Model over public, minus one."""
        return self.model / self.public - 1

    @property
    def missed(self) -> bool:
        """Whether it is off by more than LIMIT."""
        return abs(self.error) > LIMIT


def row(path: str, model: float, what: str, kind: str = "", key: str = "") -> Row:
    """The fact at ``kind.path`` beside the model's figure; ``key`` finds the explanation."""
    public = fact(f"{kind}.{path}" if kind else path)
    key = key or path
    found = Row(key, what, public.value, model, public.unit, public.source)
    return replace(found, reason=REASONS.get(key, "NOT EXPLAINED")) if found.missed else found
