"""Functions that a card runs in another way than the pieces C++ would take them apart into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from helpers.simgpu import state
from helpers.simgpu.factories import empty, is_cuda
from helpers.simgpu.tensor import REPLACED, SimTensor

aten = torch.ops.aten

_sdpa = functional.scaled_dot_product_attention
_rms_norm = functional.rms_norm
_torch_rms_norm = torch.rms_norm
_dropout = functional.dropout
_to = torch.Tensor.to
_cuda = torch.Tensor.cuda
_cpu = torch.Tensor.cpu
_one_hot = functional.one_hot
_where = torch.where
_getitem = torch.Tensor.__getitem__
_setitem = torch.Tensor.__setitem__
_pin = torch.Tensor.pin_memory
_is_pinned = torch.Tensor.is_pinned
_new_tensor = torch.Tensor.new_tensor


def _plain(function: Callable, *args: Any, **kwargs: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return function(*args, **kwargs)


# Kernels


def scaled_dot_product_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Any = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """One memory-efficient kernel: reads query, key, value (and mask), writes the result."""
    if not isinstance(query, SimTensor):
        return _sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
                     enable_gqa=enable_gqa)  # fmt: skip
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        bias = torch.zeros(attn_mask.shape, dtype=query.dtype, device="cuda")
        attn_mask = bias.masked_fill_(attn_mask.logical_not(), float("-inf"))
    shape = query.shape
    q, k, v = (_four(t) for t in (query, key, value))
    if attn_mask is not None:
        attn_mask = _four(attn_mask).expand(*q.shape[:3], k.shape[2])
    lse = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    out = _plain(
        aten._scaled_dot_product_efficient_attention,
        q, k, v, attn_mask, lse, dropout_p, is_causal, scale=scale,
    )[0]  # fmt: skip
    return out.reshape(*shape[:-1], v.shape[-1])


def _four(tensor: torch.Tensor) -> torch.Tensor:
    while tensor.dim() < 4:
        tensor = tensor.unsqueeze(0)
    return tensor if tensor.dim() == 4 else tensor.flatten(0, -4)


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """One kernel where PyTorch has a fused one (2.9 and later), else its pieces."""
    if isinstance(x, SimTensor) and hasattr(aten, "_fused_rms_norm"):
        eps = torch.finfo(x.dtype).eps if eps is None else eps
        return _plain(aten._fused_rms_norm, x, list(normalized_shape), weight, eps)[0]
    return _plain(_torch_rms_norm, x, normalized_shape, weight, eps)


def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """One kernel that draws, scales and writes."""
    if not isinstance(x, SimTensor) or inplace or not training or p in (0.0, 1.0):
        return _plain(_dropout, x, p, training, inplace)
    return _plain(aten.native_dropout, x, p, True)[0]


def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
    """``F.one_hot``: a fill and a scatter."""
    if not isinstance(tensor, SimTensor):
        return _one_hot(tensor, num_classes)
    count = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    empty_rows = torch.zeros(*tensor.shape, count, dtype=torch.long, device="cuda")
    return empty_rows.scatter_(-1, tensor.unsqueeze(-1), 1)


def where(condition: Any, *branches: Any, **options: Any) -> Any:
    """``torch.where``; C++ would make a number a tensor "like x" and lose it on ``meta``."""
    branches = [b if isinstance(b, torch.Tensor) else torch.tensor(b, device="cpu")
                for b in branches]  # fmt: skip
    return _plain(_where, condition, *branches, **options)


# Between host and device


class _ToDevice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, dtype: Any, non_blocking: bool) -> torch.Tensor:
        ctx.dtype = x.dtype
        return _upload(x, dtype, non_blocking)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return _download(grad).to(ctx.dtype), None, None


class _ToHost(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: SimTensor, non_blocking: bool) -> torch.Tensor:
        return _download(x, non_blocking)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return _upload(grad, None, False), None


def _upload(x: torch.Tensor, dtype: Any, non_blocking: bool) -> SimTensor:
    pinned, x = state.require().is_pinned(x), x.detach()
    if pinned:
        x.simgpu_pinned = True
    result = empty(torch.empty_like(x, device="meta"))
    result.copy_(x, non_blocking)
    return result if dtype in (None, x.dtype) else result.to(dtype)


def _download(x: SimTensor, non_blocking: bool = False) -> torch.Tensor:
    gpu = state.require()
    result = x.detach().values().clone()
    gpu.copied(x, "Memcpy DtoH", pinned=False, blocking=not non_blocking)
    return result


def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """``Tensor.to`` for every combination of host and device."""
    other = args[0] if args and isinstance(args[0], torch.Tensor) else kwargs.pop("other", None)
    if other is not None:
        args = (other.device, other.dtype, *args[1:])
    copy = kwargs.pop("copy", False)
    if len(args) and isinstance(args[-1], bool) and sum(isinstance(a, bool) for a in args) == 2:
        copy, args = args[-1], args[:-1]
    if args and isinstance(args[0], int) and not isinstance(args[0], bool):
        args = (torch.device("cuda", args[0]), *args[1:])
    device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **kwargs)
    simulated = isinstance(self, SimTensor)
    to_cuda = simulated if device is None else is_cuda(device)
    extra = {"memory_format": layout} if layout is not None else {}
    if simulated == to_cuda:
        if simulated or device is None:
            return _plain(_to, self, dtype or self.dtype, copy=copy, **extra)
        return _to(self, device, dtype or self.dtype, non_blocking, copy, **extra)
    differentiable = torch.is_grad_enabled() and self.requires_grad
    if to_cuda:
        if self.is_meta:
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Use torch.nn.Module.to_empty() instead "
                "of torch.nn.Module.to() when moving module from meta to a different device."
            )
        if differentiable:
            return _ToDevice.apply(self, dtype, non_blocking)
        return _upload(self, dtype, non_blocking)
    if torch.device(device).type == "meta":
        return torch.empty_strided(self.shape, self.stride(), dtype=dtype or self.dtype,
                                   device="meta")  # fmt: skip
    host = _ToHost.apply(self, non_blocking) if differentiable else _download(self, non_blocking)
    return host if dtype is None else _to(host, dtype)


def cuda(self: torch.Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> Any:
    """``Tensor.cuda``."""
    return to(self, torch.device("cuda", 0) if device is None else device,
              non_blocking=non_blocking)  # fmt: skip


def cpu(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """``Tensor.cpu``; waits for the device."""
    return to(self, "cpu") if isinstance(self, SimTensor) else _cpu(self, *args, **kwargs)


def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
    """A copy of a host tensor that counts as pinned: its transfers are faster and need no wait."""
    if isinstance(self, SimTensor):
        raise RuntimeError("cannot pin a CUDA tensor: only dense CPU tensors can be pinned")
    if getattr(self, "simgpu_pinned", False):
        return self
    pinned = self.clone()
    pinned.simgpu_pinned = True
    return pinned


def is_pinned(self: torch.Tensor, device: Any = None) -> bool:
    """Whether ``pin_memory`` made it."""
    return getattr(self, "simgpu_pinned", False)


def setitem(self: torch.Tensor, index: Any, value: Any) -> None:
    """``x[i] = value``; C++ would make the number a tensor "like x" and lose it on ``meta``."""
    index = _listed(index)
    if isinstance(self, SimTensor) and not isinstance(value, torch.Tensor):
        value = torch.tensor(value, dtype=self.dtype, device="cpu")
    if isinstance(self, SimTensor) and not isinstance(value, SimTensor) and value.dim() == 0 \
            and not _has_tensor(index):  # fmt: skip
        _plain(_getitem, self, index).fill_(value.item())
        return
    if isinstance(self, SimTensor) and not isinstance(value, SimTensor):
        value = value.to("cuda")
    _plain(_setitem, self, index, value)


def getitem(self: torch.Tensor, index: Any) -> torch.Tensor:
    """``x[i]``; a list is made a host tensor first, for the same reason."""
    return _plain(_getitem, self, _listed(index))


def _listed(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_listed(part) for part in index)
    if isinstance(index, list) and index and all(isinstance(i, int | list) for i in index):
        return torch.tensor(index, device="cpu")
    return index


def _has_tensor(index: Any) -> bool:
    return isinstance(index, torch.Tensor | list) or (
        isinstance(index, tuple) and any(_has_tensor(i) for i in index)
    )


def new_tensor(self: torch.Tensor, data: Any, **kwargs: Any) -> torch.Tensor:
    """``x.new_tensor(data)``."""
    if not isinstance(self, SimTensor):
        return _new_tensor(self, data, **kwargs)
    return torch.tensor(data, **{"dtype": self.dtype, "device": "cuda", **kwargs})


def record_stream(self: torch.Tensor, stream: Any) -> None:
    """Nothing to do: the simulated allocator frees in order."""


# What a SimTensor's __torch_function__ runs instead.
REPLACED.update(
    {
        _sdpa: scaled_dot_product_attention,
        _rms_norm: rms_norm,
        _torch_rms_norm: rms_norm,
        _dropout: dropout,
        _to: to,
        _cuda: cuda,
        _cpu: cpu,
        _pin: pin_memory,
        _is_pinned: is_pinned,
        _setitem: setitem,
        _where: where,
        _one_hot: one_hot,
        _getitem: getitem,
        torch.Tensor.where: lambda self, condition, other: where(condition, self, other),
        _new_tensor: new_tensor,
        torch.Tensor.record_stream: record_stream,
    }
)
