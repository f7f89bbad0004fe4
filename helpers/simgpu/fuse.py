"""What torch.compile makes of a run of operations: which of them share a kernel.

Rules, simpler than Inductor's and of the same kind: matrix products and attention stay kernels of
their own; pointwise operations, copies, gathers and random numbers over the same number of elements
join the kernel of their producer, or one that reads the same tensor; so does a reduction over that
number of elements, and what follows it row by row. A reduction to a single number needs the whole
grid to finish, so what uses its result for every element starts a new kernel.
A kernel moves what it reads from outside and what somebody needs afterwards; the rest stays in
registers, in fp32.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from helpers.simgpu import model
from helpers.simgpu.tensor import Block, SimTensor

if TYPE_CHECKING:
    from helpers.simgpu.execute import Plan
    from helpers.simgpu.gpu import SimulatedGPU

PART = 8
"""A kernel takes in an operation on a part of its elements if that is at least one in so many."""
FUSABLE = {"pointwise", "reduction", "copy", "gather", "random"}


class Group:
    """Operations that become one kernel, in the order in which kernels start."""

    def __init__(self, order: int, space: int, fusable: bool) -> None:
        self.order, self.space, self.fusable = order, space, fusable
        self.plans: list[Plan] = []
        self.read: dict[int, int] = defaultdict(int)
        """Bytes read from outside, by block."""
        self.written: dict[int, int] = {}
        self.whole: set[int] = set()
        """Blocks that hold the result of a reduction to a single number."""
        self.reduces = False

    def accepts(self, plan: Plan, reads: list[int]) -> bool:
        """Whether one more operation can run in this kernel."""
        space, own = plan.op.elements, max(self.space, 1)
        if not self.fusable or (space > 1 and any(uid in self.whole for uid in reads)):
            return False
        made_here = [uid in self.written for uid in reads]
        if space == self.space:
            return not reads or any(made_here) or any(uid in self.read for uid in reads)
        if self.reduces:  # row by row, after a reduction
            return all(made_here) and 0 < space < own and own % space == 0
        small, large = sorted((max(space, 1), own))
        # a part of what was computed here, or a short run that is broadcast and computed again
        return any(made_here) and large % small == 0 and (space > own or large // small <= PART)

    def independent_of(self, later: Group) -> bool:
        """Whether this kernel could as well start after ``later``."""
        mine = self.written.keys()
        return not (mine & later.read.keys() or later.written.keys() & (mine | self.read.keys()))

    def kernel_name(self) -> str:
        """A name in the manner of generated kernels."""
        if not self.fusable:
            return self.plans[0].op.name
        names = [plan.op.name.split(".")[1].strip("_") for plan in self.plans]
        kind = "red" if self.reduces else "poi"
        return f"triton_{kind}_fused_{'_'.join(dict.fromkeys(names))}"


class Recorder:
    """Operations of one call of a compiled function, gathered into kernels."""

    def __init__(self, gpu: SimulatedGPU) -> None:
        self.gpu = gpu
        self.operations = 0
        self._reset()

    def _reset(self) -> None:
        self.groups: list[Group] = []
        self._writer: dict[int, Group] = {}
        self._readers: dict[int, set[Group]] = defaultdict(set)
        self._blocks: dict[int, weakref.ref[Block]] = {}
        self._inside: set[int] = set()
        self._current: Group | None = None

    def assign(self, plan: Plan, reads: list[SimTensor], writes: list[SimTensor]) -> Group:
        """Choose the kernel for an operation, before its values are computed."""
        self.operations += 1
        read_ids = [t._block.uid for t in reads]
        before = [self._writer[uid] for uid in read_ids if uid in self._writer]
        for tensor in writes:
            uid = tensor._block.uid
            before += [self._writer[uid]] if uid in self._writer else []
            before += self._readers[uid]
        group = self._choose(plan, read_ids, before)
        for tensor in reads:
            uid = tensor._block.uid
            self._blocks.setdefault(uid, weakref.ref(tensor._block))
            self._readers[uid].add(group)
            if uid not in group.written:
                size = min(stored_bytes(tensor._inner), plan.op.bytes_read)
                group.read[uid] = min(max(group.read[uid], size), tensor._block.nbytes)
        group.plans.append(plan)
        group.reduces |= plan.op.kind == "reduction"
        self._current = group
        return group

    def _choose(self, plan: Plan, reads: list[int], before: list[Group]) -> Group:
        """A kernel that starts no earlier than those in ``before``, or is one of them."""
        fusable = plan.op.kind in FUSABLE
        first = max((g.order for g in before), default=0)
        if fusable:
            for group in reversed(self.groups[first:]):
                if group.accepts(plan, reads):
                    group.space = max(group.space, plan.op.elements)
                    return group
            for group in before:
                if group.accepts(plan, reads) and self._postponed(group, first):
                    group.space = max(group.space, plan.op.elements)
                    return group
        group = Group(len(self.groups), plan.op.elements, fusable)
        self.groups.append(group)
        return group

    def _postponed(self, group: Group, after: int) -> bool:
        """Let ``group`` start after number ``after``, if nothing in between needs it."""
        between = self.groups[group.order + 1 : after + 1]
        if not all(group.independent_of(later) for later in between):
            return False
        self.groups.remove(group)
        self.groups.insert(after, group)
        for order, one in enumerate(self.groups):
            one.order = order
        return True

    def finished(self, plan: Plan, outputs: list[SimTensor], fresh: set[int]) -> None:
        """Note what the operation wrote; ``fresh`` are the blocks that did not exist before."""
        group = self._current
        for tensor in outputs:
            block = tensor._block
            self._blocks.setdefault(block.uid, weakref.ref(block))
            self._writer[block.uid] = group
            size = min(stored_bytes(tensor._inner), max(plan.op.bytes_written, 1))
            group.written[block.uid] = max(group.written.get(block.uid, 0), size)
            if block.uid in fresh:
                self._inside.add(block.uid)
            if plan.op.kind == "reduction" and tensor.numel() == 1 and plan.op.elements > 1:
                group.whole.add(block.uid)

    def kernels(self) -> list[tuple[model.Task, tuple[tuple[int, int], ...], bool]]:
        """End the run: (work, operands, generated by the compiler) of each kernel, in order."""
        memory, borrowed, found = self.gpu.runtime.memory, {}, []
        for group in self.groups:
            operands, nbytes = [], 0
            for uid, size in group.read.items():
                operands.append((self._address(uid, borrowed, memory), size))
                nbytes += size
            for uid, size in group.written.items():
                block = self._blocks[uid]()
                later = self._last_reader(uid) > group.order
                if block is None and not later and uid in self._inside and group.fusable:
                    continue
                if block is not None and block.memory is None:
                    block.place(memory)
                elif block is None and uid not in borrowed:
                    borrowed[uid] = (memory.allocate(size), size)
                operands.append((self._address(uid, borrowed, memory), size))
                nbytes += size
            found.append((self._task(group, nbytes), tuple(operands), group.fusable))
            for uid in [u for u in borrowed if self._last_reader(u) <= group.order]:
                memory.free(*borrowed.pop(uid))
        for address, size in borrowed.values():
            memory.free(address, size)
        self._reset()
        return found

    def _last_reader(self, uid: int) -> int:
        return max((g.order for g in self._readers.get(uid, ())), default=-1)

    def _address(self, uid: int, borrowed: dict, memory: Any) -> int:
        if uid in borrowed:
            return borrowed[uid][0]
        block = self._blocks[uid]()
        if block is None:
            return -uid  # gone already: its memory was an argument's
        if block.memory is None:
            block.place(memory)
        return block.address

    def _task(self, group: Group, nbytes: int) -> model.Task:
        if not group.fusable:
            task = group.plans[0].task
            return model.Task(task.name, task.bytes, task.flops, task.matmul, task.lane_operations)
        functions: dict[int, list[str]] = defaultdict(list)
        extra = 0.0
        for plan in group.plans:
            functions[plan.op.elements] += plan.op.functions
            if plan.op.kind == "reduction":
                extra += plan.op.flops
        lanes = self.gpu.device.fp32_lanes_per_sm
        work = sum(n * model.lane_slots(tuple(f), lanes) for n, f in functions.items())
        flops = sum(plan.op.flops for plan in group.plans)
        return model.Task(group.kernel_name(), nbytes, flops, (), work + extra)


def stored_bytes(tensor: torch.Tensor) -> int:
    """Bytes behind a tensor, an expanded dimension counted once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if stride:
            count *= size
    return count * tensor.element_size()
