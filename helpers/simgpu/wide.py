"""Values of a fused kernel: intermediates in fp32, one rounding where they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helpers.simgpu.tensor import SimTensor

if TYPE_CHECKING:
    from helpers.simgpu.execute import Plan
    from helpers.simgpu.fuse import Group
    from helpers.simgpu.schema import Schema

HALVES = (torch.float16, torch.bfloat16)


def keeps_fp32(plan: Plan, values: Any) -> bool:
    """Whether the operation takes part in a fused kernel on halves."""
    halves = any(t.dtype in HALVES for t in _each(values))
    return halves and plan.op.kind in ("pointwise", "reduction", "copy")


def fp32_job(group: Group, plan: Plan, schema: Schema, func: Any, args: tuple, kwargs: dict) -> Any:
    """A function that computes the operation in fp32 and rounds what it leaves behind.

    It may be called again when a graph is replayed, so it reads its inputs anew each time.
    """
    written = [a for i, a in enumerate(args) if i in schema.written and isinstance(a, SimTensor)]
    starts = []
    for tensor in written:
        if tensor.dtype not in HALVES:
            tensor._block.fused = None
        elif not _has_twin(tensor, group):
            flat = _flat(tensor._inner)
            tensor._block.fused = (group, flat.float())
            starts.append((tensor._block.fused[1], flat))
    twins = [(t._inner, _twin(t)) for t in written if t.dtype in HALVES]
    given, named = _sources(args, group), _sources(kwargs, group)

    def job() -> Any:
        for twin, flat in starts:
            twin.copy_(flat)
        raw = func(*_read(given), **_read(named))
        for inner, twin in twins:
            inner.copy_(twin)
        if schema.written:
            return args[schema.written[0]]._inner if isinstance(schema.written[0], int) else raw
        results = raw if isinstance(raw, tuple) else (raw,)
        rounded = []
        for value, dtype in zip(results, plan.dtypes, strict=True):
            out = value.to(dtype)
            if dtype in HALVES and value.dtype == torch.float32:
                out.fp32_twin = (group, value)
            rounded.append(out)
        return tuple(rounded) if isinstance(raw, tuple) else rounded[0]

    return job


class _Rounded:
    """An input that exists in half precision only: widened when it is read."""

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner


def _sources(value: Any, group: Group) -> Any:
    if isinstance(value, SimTensor):
        if value.dtype not in HALVES:
            return value._inner
        return _twin(value) if _has_twin(value, group) else _Rounded(value._inner)
    if isinstance(value, list | tuple):
        return type(value)([_sources(item, group) for item in value])
    if isinstance(value, dict):
        return {key: _sources(item, group) for key, item in value.items()}
    return value


def _read(value: Any) -> Any:
    if isinstance(value, _Rounded):
        return value.inner.float()
    if isinstance(value, list | tuple):
        return type(value)([_read(item) for item in value])
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    return value


def _has_twin(tensor: SimTensor, group: Group) -> bool:
    return tensor._block.fused is not None and tensor._block.fused[0] is group


def _twin(tensor: SimTensor) -> torch.Tensor:
    """The fp32 values of the block, seen as ``tensor`` sees it."""
    inner = tensor._inner
    return tensor._block.fused[1].as_strided(inner.shape, inner.stride(), inner.storage_offset())


def _flat(inner: torch.Tensor) -> torch.Tensor:
    """Everything that lies behind a tensor."""
    count = inner.untyped_storage().nbytes() // inner.element_size()
    return inner.as_strided((count,), (1,), 0)


def _each(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [t for item in value for t in _each(item)]
    return []
