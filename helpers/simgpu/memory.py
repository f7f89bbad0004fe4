"""Device memory of the simulated GPU: a caching allocator and what lies in L2. Plain arithmetic.

Addresses are numbers that name a piece of memory; a freed piece is handed out again to the next
request of its size, as PyTorch's caching allocator does, so a loop that allocates its result anew
each time writes to the same lines of L2.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict

PIECE = 512
"""Bytes; every request is rounded up to a multiple, as in PyTorch's allocator."""


class OutOfMemory(Exception):
    """The request does not fit; ``free`` holds the bytes that are left."""

    def __init__(self, requested: int, free: int) -> None:
        super().__init__(requested, free)
        self.requested = requested
        self.free = free


class Memory:
    """Capacity, what is allocated, and what is kept for reuse. All numbers in bytes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.allocated = self.peak = 0
        self.reserved = self.peak_reserved = 0
        self._next = 1
        self._cached: dict[int, list[int]] = defaultdict(list)

    def allocate(self, nbytes: int) -> int:
        """Return the address of a piece of ``nbytes``; OutOfMemory when it does not fit."""
        size = rounded(nbytes)
        if self.allocated + size > self.capacity:
            raise OutOfMemory(nbytes, self.capacity - self.allocated)
        if self._cached[size]:
            address = self._cached[size].pop()
        else:
            if self.reserved + size > self.capacity:
                self.release_cached()
            address, self._next = self._next, self._next + 1
            self.reserved += size
            self.peak_reserved = max(self.peak_reserved, self.reserved)
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        return address

    def free(self, address: int, nbytes: int) -> None:
        """Take a piece back; it stays reserved until ``release_cached``."""
        size = rounded(nbytes)
        self.allocated -= size
        self._cached[size].append(address)

    def release_cached(self) -> None:
        """Give the pieces that nobody uses back to the device."""
        self._cached.clear()
        self.reserved = self.allocated

    def reset_peak(self) -> None:
        """Let the peaks start again from what is in use now."""
        self.peak, self.peak_reserved = self.allocated, self.reserved


class Cache:
    """Which pieces of memory lie in L2: least recently used first out, whole pieces only.

    A piece larger than L2 streams through it and pushes everything else out, so zeroing a big
    buffer leaves a cold cache.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: OrderedDict[int, int] = OrderedDict()
        self._used = 0

    def touch(self, address: int, nbytes: int) -> int:
        """Note an access of ``nbytes`` at ``address``; return how many of them L2 had."""
        held = self._held.pop(address, 0)
        self._used -= held
        if nbytes > self.capacity:
            self.clear()
            return 0
        keep = max(held, nbytes)
        while self._used + keep > self.capacity:
            self._used -= self._held.popitem(last=False)[1]
        self._held[address] = keep
        self._used += keep
        return min(held, nbytes)

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()
        self._used = 0


def rounded(nbytes: int) -> int:
    """Bytes that the allocator takes for a request."""
    return -(-nbytes // PIECE) * PIECE
