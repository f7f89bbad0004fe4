"""Arguments of a dispatched operation: simulated tensors in them, their values and shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import torch

from helpers.counting.traffic import tensors as flat
from helpers.simgpu.schema import Schema
from helpers.simgpu.tensor import SimTensor, require_values

# Index tensors may stay on the host on a real card, too.
HOST_INDEX = {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_"}
# In place, and the old values are not looked at: the result may be known where self was not.
OVERWRITES = {"zero_", "fill_", "copy_", "uniform_", "normal_", "random_", "bernoulli_"}


def sims(args: tuple, kwargs: dict) -> Iterator[SimTensor]:
    """Simulated tensors among the arguments."""
    for tensor in flat(args):
        if isinstance(tensor, SimTensor):
            yield tensor
    if kwargs:
        for tensor in flat(kwargs):
            if isinstance(tensor, SimTensor):
                yield tensor


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same structure with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([mapped(item, change) for item in value])
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def values(value: Any) -> Any:
    """The same with the tensors that hold the values."""
    return mapped(value, lambda t: t._inner if isinstance(t, SimTensor) else t)


def shapes(value: Any) -> Any:
    """The same with meta tensors: shapes and dtypes without values."""
    return mapped(value, shape)


def shape(tensor: torch.Tensor) -> torch.Tensor:
    """One tensor without values."""
    inner = tensor._inner if isinstance(tensor, SimTensor) else tensor
    if inner.is_meta or not isinstance(tensor, SimTensor):
        return inner
    return torch.empty_strided(inner.shape, inner.stride(), dtype=inner.dtype, device="meta")


def cast(value: Any, of: tuple, to: torch.dtype) -> Any:
    """The same with tensors of some dtypes converted."""
    return mapped(value, lambda t: t.to(to) if t.dtype in of else t)


def has_meta(args: tuple, kwargs: dict) -> bool:
    """C++ made a tensor "like this one" and took ``meta`` at its word: it has no values."""
    return any(not isinstance(t, SimTensor) and t.is_meta for t in flat([args, kwargs]))


def signature(value: Any, schema: Schema) -> Any:
    """What a plan depends on."""
    if isinstance(value, SimTensor):
        inner = value._inner
        return (inner.shape, inner.stride(), inner.dtype)
    if isinstance(value, torch.Tensor):
        return (value.shape, value.dtype, value.device.type)
    if isinstance(value, list | tuple):
        return tuple([signature(item, schema) for item in value])
    if isinstance(value, dict):
        return tuple([(k, signature(v, schema)) for k, v in value.items() if k != "generator"])
    if isinstance(value, float) and not schema.base.startswith("pow"):
        return float  # no shape and no cost depends on it, and there are many
    return (type(value), value)


def is_known(tensor: SimTensor, schema: Schema, args: tuple, kwargs: dict) -> bool:
    """Whether the values that the operation needs of a tensor exist."""
    if tensor._block.known:
        return True
    whole = prod(tensor.shape) * tensor.element_size() == tensor._block.nbytes
    return schema.base in OVERWRITES and tensor is args[0] and whole and not tensor._inner.is_meta


def asks_for_values(schema: Schema, args: tuple) -> bool:
    """Indexing depends on values only when a mask does the indexing."""
    if schema.base in ("index", "_unsafe_index"):
        return any(t.dtype in (torch.bool, torch.uint8) for t in flat(args[1]))
    return True


def check_devices(schema: Schema, args: tuple, kwargs: dict) -> None:
    """Refuse host tensors as a card does; only those without dimensions may mix."""
    for position, value in enumerate([*args, *kwargs.values()]):
        for tensor in flat(value):
            if isinstance(tensor, SimTensor) or tensor.is_meta or tensor.dim() == 0:
                continue
            if position == 1 and schema.base in HOST_INDEX:
                continue
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:0 and {tensor.device}! (simulated; operation {schema.base}: move the other "
                "tensor with .to('cuda') first)"
            )


def on_host(func: Any, args: tuple, kwargs: dict) -> Any:
    """``zeros_like(x, device="cpu")`` and its kin: only the shape comes from the device."""
    for tensor in flat(args):
        if isinstance(tensor, SimTensor) and "_like" not in str(func) and "new_" not in str(func):
            require_values(tensor)
    return func(*values(args), **kwargs)


def written(schema: Schema, args: tuple, kwargs: dict) -> list[SimTensor]:
    """Simulated tensors that the operation changes in place."""
    found = []
    for where in schema.written:
        target = args[where] if isinstance(where, int) and where < len(args) else kwargs.get(where)
        found += [t for t in flat(target) if isinstance(t, SimTensor)]
    return found


def touched(schema: Schema, args: tuple, kwargs: dict) -> tuple[list, list]:
    """Tensors that are read, and tensors that are written."""
    blind = schema.base in OVERWRITES
    read = [t for t in sims(args, kwargs) if not (blind and t is args[0])]
    return read, written(schema, args, kwargs)
