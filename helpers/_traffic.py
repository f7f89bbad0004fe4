"""Private: which bytes of device memory an operation touches, and the least a whole function must.

Bytes belong to storages, not to Python objects: two views of one storage share bytes, an expanded
tensor has only those it really stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from helpers import _ops

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
    rule: _ops.Rule, args: tuple, kwargs: dict, out: Any
) -> tuple[list[Access], list[Access], list[Any]]:
    """Reads and writes of one operation, each byte once, and its input tensors.

    Returns (reads, writes, inputs).
    """
    named = [(spec, value) for spec, value in zip(rule.arguments, args, strict=False)]
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
            reading = not only_written and name not in _ops.LIKE
            if position == 0 and name in _ops.GATHERS:
                touched = min(touched, _gathered(name, args, out) * tensor.element_size())
            elif position == 0 and name in _ops.SCATTERS:
                touched = min(touched, _scattered(name, args, kwargs) * tensor.element_size())
                accumulate = name.startswith(("index_put", "_index_put")) and (
                    kwargs.get("accumulate") or (len(args) > 3 and args[3])
                )
                reading = _ops.SCATTERS[name] or bool(accumulate)
            elif argument == "self" and kwargs.get("beta", 1) == 0:
                reading = False
            if is_written:
                writes[key] = (tensor, touched)
                written_storages.add(key[0])
            if reading:
                reads.setdefault(key, (tensor, touched))
    results = list(tensors(out))
    if rule.base in _ops.ATTENTION_FORWARD:
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


class _Region:
    """A part of one storage, as the union of layouts and of pieces whose place is not known."""

    def __init__(self) -> None:
        self.layouts: dict[Layout, int] = {}
        self.partial = 0
        self.partial_limit = 0

    def add(self, tensor: Any, touched: int) -> None:
        where = layout(tensor)
        whole = size(where) if tensor.numel() else 0
        if touched == whole:
            self.layouts[where] = whole
        else:
            self.partial += touched
            self.partial_limit = max(self.partial_limit, whole)

    def _spans(self, solid_only: bool) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for where in sorted(self.layouts, key=extent):
            first, end = extent(where)
            if solid_only and self.layouts[where] != end - first:
                continue
            if spans and first <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((first, end))
        return spans

    def covers(self, tensor: Any) -> bool:
        where = layout(tensor)
        first, end = extent(where)
        return where in self.layouts or any(
            start <= first and end <= stop for start, stop in self._spans(solid_only=True)
        )

    def bytes(self) -> int:
        known = sum(end - first for first, end in self._spans(solid_only=False))
        known = min(known, sum(self.layouts.values()))
        partial = min(self.partial, self.partial_limit)
        return max(known, min(known + partial, self.partial_limit))


class Ledger:
    """The least traffic of a function: what came from outside read once, what leaves written once.

    Intermediates are free. A storage is outside when the function did not make it.
    """

    def __init__(self) -> None:
        self._made: set[Any] = set()
        self._alias: dict[Any, Any] = {}
        self._reads: dict[Any, _Region] = {}
        self._writes: dict[Any, _Region] = {}
        self._leaves: dict[int, Any] = {}

    def _key(self, tensor: Any) -> Any:
        key = storage_key(tensor)
        return self._alias.get(key, key)

    def view(self, inputs: list[Any], out: Any) -> None:
        """An operation without traffic: its results alias its first input, or are new memory."""
        self._remember_leaves(inputs)
        base = self._key(inputs[0]) if inputs else None
        for tensor in tensors(out):
            key = storage_key(tensor)
            if base is None:
                self._made.add(key)
            elif key != base and key not in self._alias:
                self._alias[key] = base

    def made(self, out: Any) -> None:
        """New memory, not yet written."""
        self._made.update(storage_key(tensor) for tensor in tensors(out))

    def operation(self, reads: list[Access], writes: list[Access], inputs: list[Any]) -> None:
        self._remember_leaves(inputs)
        for tensor, touched in reads:
            key = self._key(tensor)
            if key in self._made:
                continue
            written = self._writes.get(key)
            if written is None or not written.covers(tensor):
                self._reads.setdefault(key, _Region()).add(tensor, touched)
        given = {self._key(tensor) for tensor in inputs}
        for tensor, touched in writes:
            key = self._key(tensor)
            if key not in given:
                self._made.add(key)
            elif key not in self._made:
                self._writes.setdefault(key, _Region()).add(tensor, touched)

    def _remember_leaves(self, inputs: list[Any]) -> None:
        for tensor in inputs:
            if tensor.requires_grad and tensor.is_leaf:
                self._leaves[id(tensor)] = tensor

    def total(self, result: Any) -> int:
        """Bytes, once the function has returned `result`. Fresh gradients are results too."""
        leaving: dict[Any, _Region] = {}
        gradients = [leaf.grad for leaf in self._leaves.values()]
        for tensor in [*tensors(result), *tensors(gradients)]:
            key = self._key(tensor)
            if key in self._made and tensor.numel():
                leaving.setdefault(key, _Region()).add(tensor, nbytes(tensor))
        regions = [*self._reads.values(), *self._writes.values(), *leaving.values()]
        return sum(region.bytes() for region in regions)
