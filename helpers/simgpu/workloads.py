"""Programs that the validation runs through the simulator: ordinary PyTorch, our own writing."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    """A Llama decoder layer with a key-value cache of fixed length."""

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

    Called with tokens [batch, rows] and their positions [rows], it returns the next token [batch].
    """

    def __init__(
        self, width: int = 4096, heads: int = 32, kv_heads: int = 32, inner: int = 11008,
        layers: int = 32, words: int = 32000, dtype: torch.dtype = torch.float16,
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"device": "cuda", "dtype": dtype}
        self.embedding = nn.Embedding(words, width, **made)
        self.layers = nn.ModuleList(
            Layer(width, heads, kv_heads, inner, **made) for _ in range(layers)
        )
        self.last = nn.Parameter(torch.ones(width, **made))
        self.head = nn.Linear(width, words, bias=False, **made)
        self.shape = (kv_heads, width // heads)

    def start(self, batch: int, length: int) -> None:
        """Make an empty cache for ``batch`` sequences of at most ``length`` tokens."""
        dtype = self.last.dtype
        heads, size = self.shape
        self.caches = [
            tuple(torch.zeros(batch, heads, length, size, device="cuda", dtype=dtype)
                  for _ in range(2))
            for _ in self.layers
        ]  # fmt: skip
        angles = torch.arange(length, device="cuda").float()[:, None] * torch.exp(
            torch.arange(0, size, 2, device="cuda").float() * (-math.log(1e4) / size)
        )
        self.turns = torch.stack([angles.cos(), angles.sin()], -1).to(dtype)
        future = torch.ones(length, length, device="cuda").triu(1)
        self.bias = future.mul(-1e4).to(dtype)

    def forward(self, tokens: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        turn = self.turns[at][None, :, None]
        mask = self.bias[at][None, None]
        for layer, cache in zip(self.layers, self.caches, strict=True):
            x = layer(x, at, turn, mask, cache)
        return self.head(norm(x[:, -1], self.last)).argmax(-1)


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


class ActionBlock(nn.Module):
    """Self-attention, attention to a cached prefix, feed-forward; normalised before each."""

    def __init__(self, width: int, heads: int, **made: object) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, **made) for _ in range(3))
        self.qkv = nn.Linear(width, 3 * width, **made)
        self.self_out = nn.Linear(width, width, **made)
        self.query = nn.Linear(width, width, **made)
        self.prefix = nn.Linear(width, 2 * width, bias=False, **made)
        self.cross_out = nn.Linear(width, width, **made)
        self.up = nn.Linear(width, 4 * width, **made)
        self.down = nn.Linear(4 * width, width, **made)

    def forward(self, x: torch.Tensor, prefix: tuple) -> torch.Tensor:
        q, k, v = (self.split(t) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        x = x + self.self_out(self.join(F.scaled_dot_product_attention(q, k, v)))
        q = self.split(self.query(self.norms[1](x)))
        x = x + self.cross_out(self.join(F.scaled_dot_product_attention(q, *prefix)))
        return x + self.down(F.gelu(self.up(self.norms[2](x))))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def join(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).flatten(-2)


class ActionExpert(nn.Module):
    """A flow-matching sampler: the same small transformer, once per step."""

    def __init__(self, width: int, dtype: torch.dtype, blocks: int = 6, heads: int = 8) -> None:
        super().__init__()
        made = {"device": "cuda", "dtype": dtype}
        self.width = width
        self.enter = nn.Linear(32, width, **made)
        self.time = nn.Linear(width, width, **made)
        self.blocks = nn.ModuleList(ActionBlock(width, heads, **made) for _ in range(blocks))
        self.last = nn.LayerNorm(width, **made)
        self.leave = nn.Linear(width, 32, **made)
        seen = torch.randn(1, 256, width, **made)
        self.prefix = [
            tuple(block.split(t) for t in block.prefix(seen).chunk(2, -1)) for block in self.blocks
        ]
        self.scale = torch.exp(
            torch.arange(width // 2, device="cuda").float() * (-math.log(1e4) / (width // 2))
        )

    def velocity(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        angles = t[:, None].float() * self.scale
        moment = torch.cat([angles.sin(), angles.cos()], -1).to(x.dtype)
        h = self.enter(x) + self.time(moment)[:, None]
        for block, prefix in zip(self.blocks, self.prefix, strict=True):
            h = block(h, prefix)
        return self.leave(self.last(h))

    def forward(self, x: torch.Tensor, steps: int) -> torch.Tensor:
        t = torch.zeros(1, device="cuda", dtype=x.dtype)
        step = 1.0 / steps
        for _ in range(steps):
            x = x + self.velocity(x, t) * step
            t = t + step
        return x
