"""One dispatched operation on simulated tensors: its values, its memory, its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from helpers import counting
from helpers.simgpu import attention, fuse, model
from helpers.simgpu.tensor import SimTensor, ValuesUnavailable, require_values

if TYPE_CHECKING:
    from helpers.simgpu.gpu import SimulatedGPU

aten = torch.ops.aten

HALVES = (torch.float16, torch.bfloat16)
# Index tensors may stay on the host on a real card, too.
HOST_INDEX = {"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_"}
# In place, and the old values are not looked at: the result may be known where self was not.
OVERWRITES = {"zero_", "fill_", "copy_", "uniform_", "normal_", "random_", "bernoulli_"}
# Answered with a Python value.
QUESTIONS = {"equal", "allclose", "is_nonzero"}
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


@dataclass(frozen=True)
class Schema:
    """What the schema of an overload says."""

    base: str
    returns: tuple[int | str | None, ...]
    """For each result: position or name of the argument that it is, or None for a new tensor."""
    written: tuple[int | str, ...]
    generator: bool
    reshapes_self: bool
    dynamic: bool


def run(gpu: SimulatedGPU, func: Any, args: tuple, kwargs: dict) -> Any:
    """Run one operation: its values on the CPU where they are kept, its kernel in simulation."""
    schema = _schema(func)
    special = SPECIAL.get(func)
    if special is not None:
        result = special(gpu, func, args, kwargs)
        if result is not NotImplemented:
            return result
    device = kwargs.get("device")
    if device is not None:
        # "meta" is what C++ takes this device for, in backward formulas for example
        if torch.device(device).type not in ("cuda", "meta"):
            return _on_host(func, args, kwargs)
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")}
    sims = list(_sims(args, kwargs))
    _check_devices(schema, args, kwargs)
    if schema.generator and kwargs.get("generator") is None:
        kwargs = {**kwargs, "generator": gpu.generator}
    known = all(_is_known(t, schema, args, kwargs) for t in sims) and not _has_meta(args, kwargs)
    if schema.dynamic and _asks_for_values(schema, args):
        for tensor in sims:
            require_values(tensor)
        out = func(*_values(args), **_values(kwargs))
        op = counting.op_work(func, _values(args), _values(kwargs), out)
        plan = Plan(op, task_of(gpu, op), True, ())
        gpu.wait("data-dependent shape")
    else:
        plan, out = _planned(gpu, schema, func, args, kwargs, known)
    if schema.reshapes_self:
        with torch.utils._mode_utils.no_dispatch():
            func(*args, **kwargs)
    result = _wrap(gpu, schema, plan, out, args, kwargs, sims, known and plan.small)
    if plan.op.kind != "view":
        outputs = [t for t in _flat(result) if isinstance(t, SimTensor)]
        gpu.started(plan, sims, outputs)
        if result is not None and not isinstance(result, torch.Tensor | list | tuple):
            gpu.wait(f"value of {plan.op.name}")
    return result


def _planned(
    gpu: SimulatedGPU, schema: Schema, func: Any, args: tuple, kwargs: dict, known: bool
) -> tuple[Plan, Any]:
    key = (func, _signature(args, schema), _signature(kwargs, schema), gpu.tf32)
    plan = gpu.plans.get(key)
    out = None
    if plan is None:
        shapes, named = _shapes(args), _shapes(kwargs)
        try:
            out = func(*shapes, **named)
        except NotImplementedError:
            if not known:
                raise ValuesUnavailable(
                    f"{func} needs values to know its result, and the simulation keeps none for "
                    "tensors this large: use a smaller input, or a real GPU."
                ) from None
            shapes, named = _values(args), _values(kwargs)
            out = func(*shapes, **named)
        op = counting.op_work(func, shapes, named, out)
        size = max((t.numel() * t.element_size() for t in _flat(out)), default=0)
        short = op.kind not in MATMULS or op.flops <= gpu.value_flops
        dtypes = tuple(t.dtype for t in _flat(out))
        small = size <= gpu.value_bytes and short
        layouts, many = _layouts(schema, out)
        plan = Plan(op, task_of(gpu, op), small, dtypes, layouts, many)
        gpu.plans[key] = plan
        out = None
    if plan.op.kind == "view":
        return plan, func(*_values(args), **_values(kwargs))
    group = gpu.recorder.assign(plan, *_touched(schema, args, kwargs)) if gpu.recorder else None
    if known and plan.small:
        return plan, _run_values(gpu, plan, schema, func, args, kwargs, group)
    if plan.layouts is not None:
        made = [torch.empty_strided(shape, stride, dtype=dtype, device="meta")
                for shape, stride, dtype in plan.layouts]  # fmt: skip
        return plan, tuple(made) if plan.many else made[0]
    return plan, func(*_shapes(args), **_shapes(kwargs))


def _layouts(schema: Schema, out: Any) -> tuple[tuple[tuple, ...] | None, bool]:
    many = isinstance(out, list | tuple)
    tensors = list(_flat(out))
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
    values, named = _values(args), _values(kwargs)
    if group is not None and fuse.keeps_fp32(plan, values):
        job = fuse.fp32_job(group, plan, schema, func, args, kwargs)
    else:
        def job() -> Any:
            return compute(plan, func, values, named)

        for tensor in _written(schema, args, kwargs):
            tensor._block.fused = None
    return gpu.record_job(job, _written(schema, args, kwargs))


def compute(plan: Plan, func: Any, values: tuple, named: dict) -> Any:
    """Values of one operation; matrix products of halves accumulate in fp32, as on a GPU."""
    if func in attention.VALUES:
        return attention.VALUES[func](*values, **named)
    if plan.op.kind not in MATMULS or not _has_half(values):
        return func(*values, **named)
    half = next(t.dtype for t in _flat(values) if t.dtype in HALVES)
    out = func(*_cast(values, HALVES, torch.float32), **_cast(named, HALVES, torch.float32))
    return _cast(out, (torch.float32,), half)


def _written(schema: Schema, args: tuple, kwargs: dict) -> list[SimTensor]:
    found = []
    for where in schema.written:
        target = args[where] if isinstance(where, int) and where < len(args) else kwargs.get(where)
        found += [t for t in _flat(target) if isinstance(t, SimTensor)]
    return found


def _touched(schema: Schema, args: tuple, kwargs: dict) -> tuple[list, list]:
    written = _written(schema, args, kwargs)
    blind = schema.base in OVERWRITES
    return [t for t in _sims(args, kwargs) if not (blind and t is args[0])], written


def _wrap(
    gpu: SimulatedGPU, schema: Schema, plan: Plan, out: Any, args: tuple, kwargs: dict,
    sims: list[SimTensor], known: bool,
) -> Any:  # fmt: skip
    """Results as simulated tensors: an argument itself, a view of its memory, or new memory."""
    for tensor in _written(schema, args, kwargs):
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


# Arguments


def _flat(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, dict):
        yield from _flat(list(value.values()))


def _sims(args: tuple, kwargs: dict) -> Iterator[SimTensor]:
    for tensor in _flat(args):
        if isinstance(tensor, SimTensor):
            yield tensor
    if kwargs:
        for tensor in _flat(kwargs):
            if isinstance(tensor, SimTensor):
                yield tensor


def _map(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)([_map(item, change) for item in value])
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    return value


def _values(value: Any) -> Any:
    return _map(value, lambda t: t._inner if isinstance(t, SimTensor) else t)


def _shapes(value: Any) -> Any:
    return _map(value, _shape)


def _shape(tensor: torch.Tensor) -> torch.Tensor:
    inner = tensor._inner if isinstance(tensor, SimTensor) else tensor
    if inner.is_meta or not isinstance(tensor, SimTensor):
        return inner
    return torch.empty_strided(inner.shape, inner.stride(), dtype=inner.dtype, device="meta")


def _cast(value: Any, of: tuple, to: torch.dtype) -> Any:
    return _map(value, lambda t: t.to(to) if t.dtype in of else t)


def _has_half(values: Any) -> bool:
    return any(t.dtype in HALVES for t in _flat(values))


def _has_meta(args: tuple, kwargs: dict) -> bool:
    """C++ made a tensor "like this one" and took ``meta`` at its word: it has no values."""
    return any(not isinstance(t, SimTensor) and t.is_meta for t in _flat([args, kwargs]))


def _signature(value: Any, schema: Schema) -> Any:
    """What a plan depends on."""
    if isinstance(value, SimTensor):
        inner = value._inner
        return (inner.shape, inner.stride(), inner.dtype)
    if isinstance(value, torch.Tensor):
        return (value.shape, value.dtype, value.device.type)
    if isinstance(value, list | tuple):
        return tuple([_signature(item, schema) for item in value])
    if isinstance(value, dict):
        return tuple([(k, _signature(v, schema)) for k, v in value.items() if k != "generator"])
    if isinstance(value, float) and not schema.base.startswith("pow"):
        return float  # no shape and no cost depends on it, and there are many
    return (type(value), value)


def _is_known(tensor: SimTensor, schema: Schema, args: tuple, kwargs: dict) -> bool:
    if tensor._block.known:
        return True
    whole = prod(tensor.shape) * tensor.element_size() == tensor._block.nbytes
    return schema.base in OVERWRITES and tensor is args[0] and whole and not tensor._inner.is_meta


def _asks_for_values(schema: Schema, args: tuple) -> bool:
    """Indexing depends on values only when a mask does the indexing."""
    if schema.base in ("index", "_unsafe_index"):
        return any(t.dtype in (torch.bool, torch.uint8) for t in _flat(args[1]))
    return True


def _check_devices(schema: Schema, args: tuple, kwargs: dict) -> None:
    """Refuse host tensors as a card does; only those without dimensions may mix."""
    for position, value in enumerate([*args, *kwargs.values()]):
        for tensor in _flat(value):
            if isinstance(tensor, SimTensor) or tensor.is_meta or tensor.dim() == 0:
                continue
            if position == 1 and schema.base in HOST_INDEX:
                continue
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:0 and {tensor.device}! (simulated; operation {schema.base}: move the other "
                "tensor with .to('cuda') first)"
            )


def _on_host(func: Any, args: tuple, kwargs: dict) -> Any:
    """``zeros_like(x, device="cpu")`` and its kin: only the shape comes from the device."""
    for tensor in _flat(args):
        if isinstance(tensor, SimTensor) and "_like" not in str(func) and "new_" not in str(func):
            require_values(tensor)
    return func(*_values(args), **kwargs)


@lru_cache(maxsize=4096)
def _schema(func: Any) -> Schema:
    schema = func._schema
    aliases: dict[str, int | str] = {}
    written: list[int | str] = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            where = argument.name if argument.kwarg_only else position
            written.append(where)
            for name in argument.alias_info.before_set:
                aliases[name] = where
    returns = []
    for result in schema.returns:
        info = result.alias_info
        name = next(iter(info.before_set), None) if info is not None and info.is_write else None
        returns.append(aliases.get(name) if name else None)
    base = schema.name.split("::")[-1]
    tags = func.tags
    return Schema(
        base=base, returns=tuple(returns), written=tuple(written),
        generator=any(a.name == "generator" for a in schema.arguments),
        reshapes_self=torch.Tag.inplace_view in tags,
        dynamic=torch.Tag.dynamic_output_shape in tags or base in QUESTIONS,
    )  # fmt: skip
