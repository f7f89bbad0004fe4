"""One dispatched operation on simulated tensors: its values, its memory, its kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from helpers import counting
from helpers.simgpu import arguments, attention, model, wide
from helpers.simgpu.schema import Schema, schema_of
from helpers.simgpu.tensor import SimTensor, ValuesUnavailable, require_values

if TYPE_CHECKING:
    from helpers.simgpu.gpu import SimulatedGPU

aten = torch.ops.aten

MATMULS = ("matmul", "attention")


@dataclass(frozen=True)
class Plan:
    """What an operation on such shapes does: computed once, used for every call alike."""

    op: counting.Op
    task: model.Task
    small: bool
    """Values can be computed: the results are small and the arithmetic is short."""
    dtypes: tuple[torch.dtype, ...]
    """Of the results."""
    layouts: tuple[tuple, ...] | None = None
    """Shape, strides and dtype of each result, where results are new memory and nothing else."""
    many: bool = False


def run(gpu: SimulatedGPU, func: Any, args: tuple, kwargs: dict) -> Any:
    """Run one operation: its values on the CPU where they are kept, its kernel in simulation."""
    schema = schema_of(func)
    special = SPECIAL.get(func)
    if special is not None:
        result = special(gpu, func, args, kwargs)
        if result is not NotImplemented:
            return result
    device = kwargs.get("device")
    if device is not None:
        # "meta" is what C++ takes this device for, in backward formulas for example
        if torch.device(device).type not in ("cuda", "meta"):
            return arguments.on_host(func, args, kwargs)
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")}
    sims = list(arguments.sims(args, kwargs))
    arguments.check_devices(schema, args, kwargs)
    if schema.generator and kwargs.get("generator") is None:
        kwargs = {**kwargs, "generator": gpu.generator}
    known = not arguments.has_meta(args, kwargs) and all(
        arguments.is_known(tensor, schema, args, kwargs) for tensor in sims
    )
    if schema.dynamic and arguments.asks_for_values(schema, args):
        for tensor in sims:
            require_values(tensor)
        out = func(*arguments.values(args), **arguments.values(kwargs))
        op = counting.op_work(func, arguments.values(args), arguments.values(kwargs), out)
        plan = Plan(op, task_of(gpu, op), True, ())
        gpu.wait("data-dependent shape")
    else:
        plan, out = _planned(gpu, schema, func, args, kwargs, known)
    if schema.reshapes_self:
        with torch.utils._mode_utils.no_dispatch():
            func(*args, **kwargs)
    result = _wrap(gpu, schema, plan, out, args, kwargs, sims, known and plan.small)
    if plan.op.kind != "view":
        outputs = [t for t in arguments.flat(result) if isinstance(t, SimTensor)]
        gpu.started(plan, sims, outputs)
        if result is not None and not isinstance(result, torch.Tensor | list | tuple):
            gpu.wait(f"value of {plan.op.name}")
    return result


def _planned(
    gpu: SimulatedGPU, schema: Schema, func: Any, args: tuple, kwargs: dict, known: bool
) -> tuple[Plan, Any]:
    key = (func, arguments.signature(args, schema), arguments.signature(kwargs, schema), gpu.tf32)
    plan = gpu.plans.get(key)
    out = None
    if plan is None:
        shapes, named = arguments.shapes(args), arguments.shapes(kwargs)
        try:
            out = func(*shapes, **named)
        except NotImplementedError:
            if not known:
                raise ValuesUnavailable(
                    f"{func} needs values to know its result, and the simulation keeps none for "
                    "tensors this large: use a smaller input, or a real GPU."
                ) from None
            shapes, named = arguments.values(args), arguments.values(kwargs)
            out = func(*shapes, **named)
        op = counting.op_work(func, shapes, named, out)
        size = max((t.numel() * t.element_size() for t in arguments.flat(out)), default=0)
        short = op.kind not in MATMULS or op.flops <= gpu.value_flops
        dtypes = tuple(t.dtype for t in arguments.flat(out))
        small = size <= gpu.value_bytes and short
        layouts, many = _layouts(schema, out)
        plan = Plan(op, task_of(gpu, op), small, dtypes, layouts, many)
        gpu.plans[key] = plan
        out = None
    if plan.op.kind == "view":
        return plan, func(*arguments.values(args), **arguments.values(kwargs))
    group = None
    if gpu.recorder is not None:
        group = gpu.recorder.assign(plan, *arguments.touched(schema, args, kwargs))
    if known and plan.small:
        return plan, _run_values(gpu, plan, schema, func, args, kwargs, group)
    if plan.layouts is not None:
        made = [torch.empty_strided(shape, stride, dtype=dtype, device="meta")
                for shape, stride, dtype in plan.layouts]  # fmt: skip
        return plan, tuple(made) if plan.many else made[0]
    return plan, func(*arguments.shapes(args), **arguments.shapes(kwargs))


def _layouts(schema: Schema, out: Any) -> tuple[tuple[tuple, ...] | None, bool]:
    many = isinstance(out, list | tuple)
    tensors = list(arguments.flat(out))
    plain = not schema.written and len(tensors) == (len(out) if many else 1)
    if not plain:
        return None, many
    return tuple((t.shape, t.stride(), t.dtype) for t in tensors), many


def task_of(gpu: SimulatedGPU, op: counting.Op) -> model.Task:
    """The work of an operation in the terms of the time model."""
    if op.kind in MATMULS:
        dtype = "tf32" if op.dtype == "fp32" and gpu.tf32 else op.dtype
        return model.Task(op.name, op.bytes, op.flops, ((dtype, op.flops),))
    slots = model.lane_slots(op.functions, gpu.device.fp32_lanes_per_sm)
    lanes = max(slots * op.elements, op.flops if op.kind != "pointwise" else 0)
    if op.dtype == "fp64":
        lanes /= gpu.model.fp64_share
    return model.Task(op.name, op.bytes, op.flops, (), lanes)


def _run_values(
    gpu: SimulatedGPU, plan: Plan, schema: Schema, func: Any, args: tuple, kwargs: dict, group: Any
) -> Any:
    """Compute the values; while a graph is captured, keep the recipe so that a replay can."""
    values, named = arguments.values(args), arguments.values(kwargs)
    if group is not None and wide.keeps_fp32(plan, values):
        job = wide.fp32_job(group, plan, schema, func, args, kwargs)
    else:

        def job() -> Any:
            return compute(plan, func, values, named)

        for tensor in arguments.written(schema, args, kwargs):
            tensor._block.fused = None
    return gpu.record_job(job, arguments.written(schema, args, kwargs))


def compute(plan: Plan, func: Any, values: tuple, named: dict) -> Any:
    """Values of one operation; matrix products of halves accumulate in fp32, as on a GPU."""
    if func in attention.VALUES:
        return attention.VALUES[func](*values, **named)
    half = next((t.dtype for t in arguments.flat(values) if t.dtype in wide.HALVES), None)
    if plan.op.kind not in MATMULS or half is None:
        return func(*values, **named)
    values, named = arguments.cast([values, named], wide.HALVES, torch.float32)
    return arguments.cast(func(*values, **named), (torch.float32,), half)


def _wrap(
    gpu: SimulatedGPU, schema: Schema, plan: Plan, out: Any, args: tuple, kwargs: dict,
    sims: list[SimTensor], known: bool,
) -> Any:  # fmt: skip
    """Results as simulated tensors: an argument itself, a view of its memory, or new memory."""
    for tensor in arguments.written(schema, args, kwargs):
        tensor._block.known = known and not tensor._inner.is_meta
    view = plan.op.kind == "view"
    blocks = {t._inner.untyped_storage()._cdata: t._block for t in sims} if view else {}

    known = known or view
    if isinstance(out, torch.Tensor):
        same = schema.returns[0] if schema.returns else None
        return _wrap_one(gpu, schema, plan, out, same, args, kwargs, blocks, known)
    if not isinstance(out, list | tuple):
        return out
    returns = schema.returns if len(schema.returns) == len(out) else (None,) * len(out)
    return type(out)([
        _wrap_one(gpu, schema, plan, value, same, args, kwargs, blocks, known)
        for value, same in zip(out, returns, strict=True)
    ])  # fmt: skip


def _wrap_one(
    gpu: SimulatedGPU, schema: Schema, plan: Plan, value: Any, same: int | str | None, args: tuple,
    kwargs: dict, blocks: dict, known: bool,
) -> Any:  # fmt: skip
    # Not a closure: one that calls itself would keep its tensors alive until the next collection.
    if not isinstance(value, torch.Tensor):
        return value
    if same is not None:
        target = args[same] if isinstance(same, int) else kwargs[same]
        if schema.reshapes_self and isinstance(target, SimTensor):
            target._inner = value
        return target
    block = blocks.get(value.untyped_storage()._cdata)
    if block is None:
        block = gpu.block(value, known and not value.is_meta, plan.op.kind)
        twin = getattr(value, "fp32_twin", None)
        if twin is not None:
            block.fused = (twin[0], twin[1].as_strided((twin[1].numel(),), (1,)))
    return SimTensor(value, block)


# Special operations


def _item(gpu: SimulatedGPU, func: Any, args: tuple, kwargs: dict) -> Any:
    require_values(args[0])
    gpu.copied(args[0], "Memcpy DtoH", pinned=False)
    return func(args[0]._inner)


def _copy(gpu: SimulatedGPU, func: Any, args: tuple, kwargs: dict) -> Any:
    """Copy between host and device; on the device it is an ordinary kernel."""
    target, source = args[0], args[1]
    blocking = not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
    if isinstance(target, SimTensor) and isinstance(source, SimTensor):
        return NotImplemented
    if isinstance(target, SimTensor):
        if source.is_meta:
            return NotImplemented
        if not target._inner.is_meta:
            gpu.record_job(lambda: target._inner.copy_(source), [target])
            whole = target.numel() * target.element_size() == target._block.nbytes
            target._block.known = target._block.known or whole
        target._block.fused = None
        gpu.copied(target, "Memcpy HtoD", gpu.is_pinned(source), blocking)
        return target
    require_values(source)
    gpu.copied(source, "Memcpy DtoH", gpu.is_pinned(target), blocking)
    return target.copy_(source._inner)


SPECIAL: dict[Any, Callable] = {
    aten._local_scalar_dense.default: _item,
    aten.copy_.default: _copy,
}
