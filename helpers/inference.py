"""Transformer inference on paper: shapes, bytes, FLOPs, step times, tokens per second and money.

Torch-free. Counted are the weights' matrix products, the attention over the key-value cache, and
nothing else: activations between them are small beside both, and what they add is measured in
notebook 07. A part takes the larger of its compute and its memory time, a step the sum of its
parts or the host's time, whichever is longer. Arithmetic of a decoder: Pope et al., "Efficiently
Scaling Transformer Inference", 2022. Units: s, B, FLOP, B/s, FLOP/s, USD/h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from helpers.facts import fact
from helpers.roofline import Roof, RooflineError, attainable, ridge

KEPT_FREE = 0.92
"""Share of a card's memory for weights and cache; the rest is for activations and the runtime."""


class InferenceError(ValueError):
    """Shapes or rates that no model can have. The sentence says which."""


@dataclass(frozen=True)
class Model:
    """Shapes of a Llama-like decoder: gated feed-forward, rotary positions, RMS norms, no biases.

    ``weight_bytes`` per parameter: 2 in fp16, 1 in int8, 0.5 in int4. The cache stays fp16.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    weight_bytes: float = 2.0

    @property
    def layer_matrices(self) -> int:
        """Parameters of one layer's matrices: query and output, keys and values, feed-forward."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return attention + 3 * self.hidden * self.ffn

    @property
    def matrices(self) -> int:
        """Parameters that every token multiplies: all layers' matrices and the head."""
        return self.layers * self.layer_matrices + self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters: the matrices, the norms and the input embedding."""
        norms = (2 * self.layers + 1) * self.hidden
        return self.matrices + norms + self.vocabulary * self.hidden

    @property
    def weights(self) -> float:
        """Bytes of all parameters."""
        return self.parameters * self.weight_bytes

    @property
    def step_weights(self) -> float:
        """Bytes of the weights that one step reads: of the embedding only a row per token."""
        return (self.parameters - self.vocabulary * self.hidden) * self.weight_bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values that one token leaves in the cache, all layers, fp16."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2

    def quantised(self, bits: int) -> Model:
        """The same model with weights of ``bits`` bits."""
        return replace(self, name=f"{self.name}, int{bits}", weight_bytes=bits / 8)


def model(key: str = "llama2_7b") -> Model:
    """The model of that key in the facts. FactError if there is none."""

    def shape(name: str) -> int:
        return int(fact(f"model.{key}.{name}").value)

    names = ("layers", "hidden", "heads", "head_dim", "ffn", "vocabulary")
    title = "Llama-2-7B" if key == "llama2_7b" else key
    return Model(title, kv_heads=shape("heads"), **{name: shape(name) for name in names})


@dataclass(frozen=True)
class Part:
    """One part of a step: FLOPs and bytes, and what each takes under the roof, in seconds."""

    flops: float
    bytes: float
    compute: float
    memory: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.memory)

    @property
    def intensity(self) -> float:
        """FLOP per byte; 0 for a part that moves nothing."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def bound(self) -> str:
        return "compute" if self.compute > self.memory else "memory"


@dataclass(frozen=True)
class Step:
    """One step of a decoder: the weights' part, the attention's, and the host's time."""

    weights: Part
    attention: Part
    host: float = 0.0

    @property
    def seconds(self) -> float:
        return max(self.weights.seconds + self.attention.seconds, self.host)

    @property
    def flops(self) -> float:
        return self.weights.flops + self.attention.flops

    @property
    def bytes(self) -> float:
        return self.weights.bytes + self.attention.bytes

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def bound(self) -> str:
        """ "overhead" if the host is slower than both parts, else the longer part's bound."""
        if self.host > self.weights.seconds + self.attention.seconds:
            return "overhead"
        return max(self.weights, self.attention, key=lambda part: part.seconds).bound


def decode(
    model: Model, roof: Roof, batch: int = 1, context: int = 0, *, host: float = 0.0
) -> Step:
    """One decode step: ``batch`` sequences, each with ``context`` tokens in its cache.

    ``host``: seconds that the CPU needs to queue the step. fp16 arithmetic, whatever the weights.
    """
    _counts(batch=batch, context=context + 1)
    weights = _part(roof, 2.0 * batch * model.matrices, model.step_weights)
    seen = batch * context
    flops = 4.0 * model.layers * model.heads * model.head_dim * seen
    return Step(weights, _part(roof, flops, float(seen * model.kv_bytes)), host)


def prefill(model: Model, roof: Roof, prompt: int, batch: int = 1, *, host: float = 0.0) -> Step:
    """Read ``batch`` prompts of ``prompt`` tokens at once; only the last token asks the head.

    Attention is causal and fused: each position sees half of the others on average, and scores
    stay on the chip.
    """
    _counts(batch=batch, prompt=prompt)
    tokens, head = batch * prompt, model.vocabulary * model.hidden
    flops = 2.0 * (tokens * (model.matrices - head) + batch * head)
    weights = _part(roof, flops, model.step_weights)
    width = model.heads * model.head_dim
    scores = 2.0 * model.layers * width * batch * prompt * (prompt + 1)
    moved = 2.0 * model.layers * tokens * model.head_dim * 2 * (model.heads + model.kv_heads)
    return Step(weights, _part(roof, scores, moved), host)


def crossing(roof: Roof, width_in: int, width_out: int, itemsize: int = 2) -> float:
    """Rows at which one linear layer reaches the ridge, its own activations counted.

    [B, D] x [D, F] does 2BDF FLOP on itemsize*(BD + DF + BF) bytes; solved for B. Infinite where
    the activations alone keep it below.
    """
    needed = ridge(roof, "fp16") * itemsize / 2
    below = width_in * width_out - needed * (width_in + width_out)
    return needed * width_in * width_out / below if below > 0 else math.inf


def step_crossing(model: Model, roof: Roof, context: int) -> float:
    """Batch at which all FLOPs of a decode step take as long as all its bytes; may be infinite.

    Weights and cache taken together, as if they overlapped.
    """
    flops = 2 * model.matrices + 4 * model.layers * model.heads * model.head_dim * context
    slower = flops / roof.rates["fp16"] - context * model.kv_bytes / roof.bandwidth
    return model.step_weights / roof.bandwidth / slower if slower > 0 else math.inf


def kv_cache(model: Model, batch: int, context: int) -> int:
    """Bytes of the cache of ``batch`` sequences of ``context`` tokens."""
    return batch * context * model.kv_bytes


def largest_batch(model: Model, memory: float, context: int, use: float = KEPT_FREE) -> int:
    """Sequences of ``context`` tokens that fit beside the weights into ``use`` of ``memory`` bytes.

    0 where not one fits.
    """
    _counts(context=context)
    left = use * memory - model.weights
    return max(0, math.floor(left / (context * model.kv_bytes)))


def tokens_per_second(batch: int, step_seconds: float) -> float:
    """One token per sequence and step."""
    return batch / step_seconds


def bandwidth_utilisation(moved: float, steps_per_second: float, bandwidth: float) -> float:
    """Share of ``bandwidth`` that reading ``moved`` bytes per step takes (MBU)."""
    return moved * steps_per_second / bandwidth


def cost_per_million(
    price_per_hour: float, tokens_per_second: float, utilisation: float = 1.0
) -> float:
    """USD per million tokens of a machine that costs ``price_per_hour`` USD.

    ``utilisation``: share of the paid hours in which it produces that many tokens, above 0, to 1.
    """
    if not (price_per_hour >= 0 and tokens_per_second > 0 and 0 < utilisation <= 1):
        raise InferenceError(
            "A cost needs a price, tokens per second above 0, and a utilisation above 0 and up to "
            f"1, not {price_per_hour!r}, {tokens_per_second!r} and {utilisation!r}."
        )
    return price_per_hour / 3600 / (tokens_per_second * utilisation) * 1e6


def _part(roof: Roof, flops: float, moved: float) -> Part:
    if "fp16" not in roof.rates:
        raise RooflineError(f"The {roof.label} of {roof.device} has no fp16 rate.")
    return Part(flops, moved, flops / attainable(roof, math.inf, "fp16"), moved / roof.bandwidth)


def _counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise InferenceError(f"A {name} of {count} is no inference: it is at least 1.")
