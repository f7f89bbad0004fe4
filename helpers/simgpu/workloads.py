"""A program that the validation runs through the simulator: ordinary PyTorch, our own writing."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


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
