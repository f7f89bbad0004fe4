"""Private: the least device-memory traffic that a whole function needs."""

from __future__ import annotations

from typing import Any

from helpers.counting.op import Account
from helpers.counting.traffic import (
    Access,
    Layout,
    extent,
    layout,
    nbytes,
    size,
    storage_key,
    tensors,
)


class Region:
    """A part of one storage: the union of layouts, and of pieces whose place is not known."""

    def __init__(self) -> None:
        self.layouts: dict[Layout, int] = {}
        self.partial = 0
        self.partial_limit = 0

    def add(self, tensor: Any, touched: int) -> None:
        """Add `touched` bytes of a tensor: all of it, or an unknown part."""
        where = layout(tensor)
        whole = nbytes(tensor)
        if touched == whole:
            self.layouts[where] = whole
        else:
            self.partial += touched
            self.partial_limit = max(self.partial_limit, whole)

    def covers(self, tensor: Any) -> bool:
        where = layout(tensor)
        first, end = extent(where)
        return where in self.layouts or any(
            start <= first and end <= stop for start, stop in self._spans(gapless=True)
        )

    def bytes(self) -> int:
        """Bytes of the union. Interleaved layouts that overlap in part count their overlap twice,
        but never more than the span they lie in."""
        span = sum(end - first for first, end in self._spans(gapless=False))
        known = min(span, sum(self.layouts.values()))
        return max(known, min(known + self.partial, self.partial_limit))

    def _spans(self, gapless: bool) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for where in sorted(self.layouts, key=extent):
            first, end = extent(where)
            if gapless and size(where) != end - first:
                continue
            if spans and first <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((first, end))
        return spans


class Ledger:
    """What came from outside is read once, what leaves or was changed outside is written once.

    Intermediates are free. A storage is outside when the function did not make it.
    """

    def __init__(self) -> None:
        self._made: set[Any] = set()
        self._alias: dict[Any, Any] = {}
        self._reads: dict[Any, Region] = {}
        self._writes: dict[Any, Region] = {}
        self._leaves: dict[int, Any] = {}

    def add(self, entry: Account, out: Any) -> None:
        """Note one operation and its result."""
        for tensor in entry.inputs:
            if tensor.requires_grad and tensor.is_leaf:
                self._leaves[id(tensor)] = tensor
        given = {self._key(tensor) for tensor in entry.inputs}
        if entry.op.kind != "view":
            self._operation(entry.reads, entry.writes, given)
        elif entry.rule.aliasing and not entry.rule.allocates and entry.inputs:
            base = self._key(entry.inputs[0])
            for tensor in tensors(out):  # the views of a wrapper subclass may own their storage
                if (key := storage_key(tensor)) != base:
                    self._alias.setdefault(key, base)
        else:
            self._made.update({self._key(tensor) for tensor in tensors(out)} - given)

    def total(self, result: Any) -> int:
        """Bytes, once the function has returned `result`. Fresh gradients are results too."""
        leaving: dict[Any, Region] = {}
        gradients = [leaf.grad for leaf in self._leaves.values()]
        for tensor in [*tensors(result), *tensors(gradients)]:
            if (key := self._key(tensor)) in self._made:
                leaving.setdefault(key, Region()).add(tensor, nbytes(tensor))
        regions = [*self._reads.values(), *self._writes.values(), *leaving.values()]
        return sum(region.bytes() for region in regions)

    def _key(self, tensor: Any) -> Any:
        key = storage_key(tensor)
        return self._alias.get(key, key)

    def _operation(self, reads: list[Access], writes: list[Access], given: set[Any]) -> None:
        for tensor, touched in reads:
            key = self._key(tensor)
            written = self._writes.get(key)
            if key not in self._made and (written is None or not written.covers(tensor)):
                self._reads.setdefault(key, Region()).add(tensor, touched)
        for tensor, touched in writes:
            key = self._key(tensor)
            if key not in given:
                self._made.add(key)
            elif key not in self._made:
                self._writes.setdefault(key, Region()).add(tensor, touched)
