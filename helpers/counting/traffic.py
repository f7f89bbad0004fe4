"""Private: which bytes of device memory an operation touches, and the least a whole function must.

Bytes belong to storages, not to Python objects: two views of one storage share bytes, an expanded
tensor has only those it really stores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import prod
from typing import Any

from helpers.counting import conventions
from helpers.counting.rules import Rule

Layout = tuple[int, tuple[tuple[int, int], ...]]  # offset and (stride, size) pairs, in bytes


def tensors(value: Any) -> Iterator[Any]:
    """The tensors inside nested lists, tuples and dicts, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from tensors(list(vars(value).values()))


def storage_key(tensor: Any) -> Any:
    """Identity of the memory behind a tensor; holding it keeps no memory alive.

    A wrapper subclass is asked for its inner tensor (`__tensor_flatten__`) where it tells.
    """
    from torch.multiprocessing.reductions import StorageWeakRef

    for _ in range(8):
        if not hasattr(tensor, "__tensor_flatten__"):
            break
        names, _context = tensor.__tensor_flatten__()
        if len(names) != 1:
            break
        tensor = getattr(tensor, names[0])
    try:
        return StorageWeakRef(tensor.untyped_storage())
    except (NotImplementedError, RuntimeError):  # sparse and other tensors without one storage
        return id(tensor)


def layout(tensor: Any) -> Layout:
    """Offset, strides and sizes in bytes, in one canonical order: x and x.t() have the same."""
    item = tensor.element_size()
    if tensor.layout is not _strided():
        return 0, ((item, tensor.numel()),)
    pairs = sorted(
        (stride, size)
        for stride, size in zip(tensor.stride(), tensor.shape, strict=True)
        if size != 1 and stride != 0
    )
    merged: list[tuple[int, int]] = []
    for stride, size in pairs:
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        else:
            merged.append((stride, size))
    merged = merged or [(1, min(1, tensor.numel()))]
    if merged[0][0] == 1:
        merged[0] = (1, merged[0][1] * item)
        pairs = [merged[0], *((stride * item, size) for stride, size in merged[1:])]
    else:
        pairs = [(1, item), *((stride * item, size) for stride, size in merged)]
    return tensor.storage_offset() * item, tuple(pairs)


def _strided() -> Any:
    import torch

    return torch.strided


def extent(where: Layout) -> tuple[int, int]:
    """First byte and the byte after the last one."""
    offset, pairs = where
    if any(size == 0 for _, size in pairs):
        return offset, offset
    return offset, offset + 1 + sum((size - 1) * stride for stride, size in pairs)


def size(where: Layout) -> int:
    """Bytes that are really stored there (overlapping windows count once)."""
    first, end = extent(where)
    return min(prod(count for _, count in where[1]), end - first)


def nbytes(tensor: Any) -> int:
    """Bytes that a tensor really stores: an expanded dimension costs nothing."""
    return size(layout(tensor)) if tensor.numel() else 0


Access = tuple[Any, int]  # tensor, bytes of it that are touched


def accesses(
    rule: Rule, args: tuple, kwargs: dict, out: Any
) -> tuple[list[Access], list[Access], list[Any]]:
    """Reads and writes of one operation, each byte once, and its input tensors.

    Returns (reads, writes, inputs).
    """
    named = list(zip(rule.arguments, args, strict=False))
    named += [(spec, kwargs[spec[0]]) for spec in rule.arguments[len(args) :] if spec[0] in kwargs]
    reads: dict[Any, Access] = {}
    writes: dict[Any, Access] = {}
    inputs: list[Any] = []
    written_storages = set()
    name = rule.name
    for position, ((argument, is_written, only_written), value) in enumerate(named):
        for tensor in tensors(value):
            inputs.append(tensor)
            touched = nbytes(tensor)
            key = (storage_key(tensor), layout(tensor))
            reading = not only_written and name not in conventions.LIKE
            if position == 0 and name in conventions.GATHERS:
                touched = min(touched, _gathered(name, args, out) * tensor.element_size())
            elif position == 0 and name in conventions.SCATTERS:
                touched = min(touched, _scattered(name, args, kwargs) * tensor.element_size())
                accumulate = name.startswith(("index_put", "_index_put")) and (
                    kwargs.get("accumulate") or (len(args) > 3 and args[3])
                )
                reading = conventions.SCATTERS[name] or bool(accumulate)
            elif argument == "self" and kwargs.get("beta", 1) == 0:
                reading = False
            if is_written:
                writes[key] = (tensor, touched)
                written_storages.add(key[0])
            if reading:
                reads.setdefault(key, (tensor, touched))
    results = list(tensors(out))
    if rule.base in conventions.ATTENTION_FORWARD:
        results = results[:1]  # the logarithms of the sums are 1/head_dim of it at most
    for tensor in results:
        key = storage_key(tensor)
        if key not in written_storages and not any(tensor is other for other in inputs):
            writes[(key, layout(tensor))] = (tensor, nbytes(tensor))
    return list(reads.values()), list(writes.values()), inputs


def _gathered(name: str, args: tuple, out: Any) -> int:
    """Elements of the table that are read."""
    first = next(tensors(out))
    if name.startswith("nll_loss"):
        return args[1].numel()
    if "embedding_bag" in name:
        return args[1].numel() * args[0].shape[-1]
    return first.numel()


def _scattered(name: str, args: tuple, kwargs: dict) -> int:
    """Elements of the first argument that are written."""
    target = args[0]
    if "index_put" in name:
        indices = [index for index in args[1] if index is not None]
        if any(str(index.dtype) in ("torch.bool", "torch.uint8") for index in indices):
            # how many places a mask names is known to its values only
            return args[2].numel() if args[2].numel() > 1 else target.numel()
        shape: list[int] = []
        for index in indices:
            wide = [1] * (len(shape) - index.dim()) + list(index.shape)
            shape = [1] * (len(wide) - len(shape)) + shape
            shape = [max(pair) for pair in zip(shape, wide, strict=True)]
        rest = [n for axis, n in enumerate(target.shape)
                if axis >= len(args[1]) or args[1][axis] is None]  # fmt: skip
        return prod(shape) * prod(rest)
    if name == "put_":
        return args[1].numel()
    axis, index = args[1], args[2] if len(args) > 2 else kwargs["index"]
    if name.startswith("scatter"):
        return index.numel()
    return target.numel() // max(1, target.shape[axis]) * index.numel()
