"""A decoder of Llama's shape in plain PyTorch: what the course counts, runs and simulates.

Architecture: Touvron et al., "Llama 2", 2023. Imports torch, so import it only where it is used.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    """A Llama decoder layer with a key-value cache of fixed length.

    Called with x [batch, rows, width], the positions of the rows ``at`` [rows], their rotations
    ``turn`` [1, rows, 1, size / 2, 2], a mask [1, 1, rows, length] to add to the scores, and the
    cache: keys and values [batch, kv_heads, length, size], written at those positions.
    """

    def __init__(self, width: int, heads: int, kv_heads: int, inner: int, **made: object) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        kv = kv_heads * self.size
        self.widths = (width, kv, kv)
        self.qkv = nn.Linear(width, width + 2 * kv, bias=False, **made)
        self.out = nn.Linear(width, width, bias=False, **made)
        self.gate = nn.Linear(width, inner, bias=False, **made)
        self.up = nn.Linear(width, inner, bias=False, **made)
        self.down = nn.Linear(inner, width, bias=False, **made)
        self.before_attention = nn.Parameter(torch.ones(width, **made))
        self.before_ffn = nn.Parameter(torch.ones(width, **made))

    def forward(self, x, at, turn, mask, cache):
        x = x + self.attend(norm(x, self.before_attention), at, turn, mask, cache)
        h = norm(x, self.before_ffn)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def attend(self, h, at, turn, mask, cache):
        batch, rows, width = h.shape
        q, k, v = (t.unflatten(-1, (-1, self.size)) for t in self.qkv(h).split(self.widths, -1))
        q, k = rotate(q, turn), rotate(k, turn)
        keys, values = cache
        keys.index_copy_(2, at, k.transpose(1, 2))
        values.index_copy_(2, at, v.transpose(1, 2))
        out = F.scaled_dot_product_attention(
            q.transpose(1, 2), keys, values, mask, enable_gqa=self.heads != self.kv_heads
        )
        return self.out(out.transpose(1, 2).reshape(batch, rows, width))


class Decoder(nn.Module):
    """A decoder of Llama's shape; defaults are Llama-2-7B in fp16.

    Called with tokens [batch, rows] and their positions [rows], it returns the next token [batch];
    ``scores`` returns the score of every word for it [batch, words].
    """

    def __init__(
        self, width: int = 4096, heads: int = 32, kv_heads: int = 32, inner: int = 11008,
        layers: int = 32, words: int = 32000, dtype: torch.dtype = torch.float16,
        device: str = "cuda",
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.embedding = nn.Embedding(words, width, **made)
        self.layers = nn.ModuleList(
            Layer(width, heads, kv_heads, inner, **made) for _ in range(layers)
        )
        self.last = nn.Parameter(torch.ones(width, **made))
        self.head = nn.Linear(width, words, bias=False, **made)
        self.shape = (kv_heads, width // heads)

    def start(self, batch: int, length: int) -> None:
        """Make an empty cache for ``batch`` sequences of at most ``length`` tokens."""
        dtype, device = self.last.dtype, self.last.device
        heads, size = self.shape
        self.caches = [
            tuple(torch.zeros(batch, heads, length, size, device=device, dtype=dtype)
                  for _ in range(2))
            for _ in self.layers
        ]  # fmt: skip
        angles = torch.arange(length, device=device).float()[:, None] * torch.exp(
            torch.arange(0, size, 2, device=device).float() * (-math.log(1e4) / size)
        )
        self.turns = torch.stack([angles.cos(), angles.sin()], -1).to(dtype)
        future = torch.ones(length, length, device=device).triu(1)
        self.bias = future.mul(-1e4).to(dtype)

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return self.scores(tokens, at).argmax(-1)

    def scores(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        turn = self.turns[at][None, :, None]
        mask = self.bias[at][None, None]
        for layer, cache in zip(self.layers, self.caches, strict=True):
            x = layer(x, at, turn, mask, cache)
        return self.head(norm(x[:, -1], self.last))


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """RMS norm, written out as most decoders of that time do, without casts."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of x [batch, rows, heads, size]."""
    pairs = x.unflatten(-1, (-1, 2))
    cos, sin = turn[..., 0], turn[..., 1]
    left = pairs[..., 0] * cos - pairs[..., 1] * sin
    right = pairs[..., 1] * cos + pairs[..., 0] * sin
    return torch.stack([left, right], -1).flatten(-2)
