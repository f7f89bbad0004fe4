"""Values of the fused attention kernels, which no CPU build has: in fp32, rounded at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.simgpu.tensor import ValuesUnavailable

aten = torch.ops.aten

Optional = torch.Tensor | None


def forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: Optional = None,
    lse: bool = False, dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Result [batch, heads, rows, width], log-sums, and two numbers that dropout would use."""
    if dropout_p:
        raise ValuesUnavailable("The simulated attention computes no dropout: use dropout_p=0.")
    weights = _weights(query, key, bias, is_causal, scale)
    out = weights @ _repeated(value, query).float()
    # a GPU's kernel writes batch, rows, heads, width
    out = out.to(query.dtype).transpose(1, 2).contiguous().transpose(1, 2)
    batch, heads, rows = query.shape[:3]
    sums = torch.zeros(batch, heads, -(-rows // 32) * 32 if lse else 0, device="cpu")
    number = torch.zeros((), dtype=torch.int64, device="cpu")
    return out, sums, number, number.clone()


def backward(
    grad: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    bias: Optional, out: torch.Tensor, lse: Any, seed: Any, offset: Any, dropout_p: float,
    wanted: list[bool], is_causal: bool = False, *, scale: float | None = None,
) -> tuple[Optional, ...]:  # fmt: skip
    """Gradients of query, key, value and bias."""
    p = _weights(query, key, bias, is_causal, scale)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    g, k, v = grad.float(), _repeated(key, query).float(), _repeated(value, query).float()
    through = g @ v.transpose(-1, -2)
    scores = p * (through - (through * p).sum(-1, keepdim=True))
    gradients = [
        (scores @ k * factor, query),
        (_summed(scores.transpose(-1, -2) @ query.float() * factor, key), key),
        (_summed(p.transpose(-1, -2) @ g, value), value),
    ]
    found = [g.to(of.dtype) if want else None
             for (g, of), want in zip(gradients, wanted, strict=False)]  # fmt: skip
    return (*found, scores.to(query.dtype) if bias is not None and wanted[3] else None)


def _weights(query: torch.Tensor, key: torch.Tensor, bias: Optional, is_causal: bool,
             scale: float | None) -> torch.Tensor:  # fmt: skip
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.float() @ _repeated(key, query).float().transpose(-1, -2) * factor
    if bias is not None:
        scores = scores + bias.float()
    if is_causal:
        rows, columns = scores.shape[-2:]
        seen = torch.ones(rows, columns, dtype=torch.bool, device="cpu").tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    return scores.softmax(-1)


def _repeated(tensor: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Heads that several query heads share, once for each."""
    share = query.shape[1] // tensor.shape[1]
    return tensor if share == 1 else tensor.repeat_interleave(share, 1)


def _summed(gradient: torch.Tensor, of: torch.Tensor) -> torch.Tensor:
    share = gradient.shape[1] // of.shape[1]
    return gradient if share == 1 else gradient.unflatten(1, (-1, share)).sum(2)


VALUES: dict[Any, Callable] = {
    aten._scaled_dot_product_efficient_attention.default: forward,
    aten._scaled_dot_product_efficient_attention_backward.default: backward,
}
