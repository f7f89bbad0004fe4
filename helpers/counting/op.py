"""Private: one operation and its account. `Op` and `op_work` are imported from helpers.counting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helpers.counting import conventions, traffic
from helpers.counting.rules import Rule, rule_of

_DTYPES = {
    "float16": ("fp16", 2), "bfloat16": ("bf16", 2), "float32": ("fp32", 4),
    "float64": ("fp64", 8), "float8_e4m3fn": ("fp8", 1), "float8_e5m2": ("fp8", 1),
    "int8": ("int8", 1), "uint8": ("uint8", 1), "bool": ("bool", 1), "int16": ("int16", 2),
    "int32": ("int32", 4), "int64": ("int64", 8), "complex64": ("complex64", 8),
    "complex128": ("complex128", 16),
}  # fmt: skip


@dataclass(frozen=True)
class Op:
    """One dispatched ATen operation, or several alike (`Work.by_name`). FLOP and bytes.

    kind is "matmul", "attention", "pointwise", "reduction", "copy", "gather", "random", "view" or
    "other". A "view" starts no kernel and moves nothing: views, allocations, questions about a
    shape, anything on no elements. "other" means that no FLOP rule is known, unless flops > 0.
    """

    name: str
    kind: str
    calls: int = 1
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    elements: int = 0
    """The largest element count among inputs and results; of the gathered part of a table only."""
    dtype: str = ""
    """Of the arithmetic: the first floating-point input, else the result ("fp16", "int64")."""
    functions: tuple[str, ...] = ()
    """Functions evaluated per element, from which an instruction cost follows: ("cos",)."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of the input tensors in order; of the results when there are no inputs."""

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class Account:
    """An Op and the tensors behind it: what was read and written, and how much of each."""

    op: Op
    rule: Rule
    inputs: list[Any]
    reads: list[traffic.Access]
    writes: list[traffic.Access]


def itemsize(dtype: str) -> int:
    """Bytes per element of a dtype named as in `Op.dtype`. KeyError for any other name."""
    return dict(_DTYPES.values())[dtype]


def op_work(func: Any, args: tuple, kwargs: dict | None, out: Any) -> Op:
    """The work of one dispatched ATen overload, called as func(*args, **kwargs) -> out.

    Looks at shapes, strides, dtypes and storage identity only, never at values, so it is the same
    for CPU, CUDA and meta tensors and for subclasses, and may be called before or after the call.
    """
    return account(func, args, kwargs or {}, out).op


def account(func: Any, args: tuple, kwargs: dict, out: Any) -> Account:
    """`op_work` together with the tensors that were touched."""
    rule = rule_of(func)
    if rule.kind == "view":
        reads, writes, inputs = [], [], list(traffic.tensors((args, kwargs)))
    else:
        reads, writes, inputs = traffic.accesses(rule, args, kwargs, out)
    outputs = list(traffic.tensors(out))
    name, dtype = str(func), _dtype(inputs, outputs)
    shapes = tuple(tuple(tensor.shape) for tensor in inputs or outputs)
    if not _starts_kernel(rule, inputs, outputs, writes):
        return Account(Op(name, "view", dtype=dtype, shapes=shapes), rule, inputs, [], [])
    functions = _functions(rule, args, kwargs)
    elements = _elements(rule, args, reads, writes)
    op = Op(
        name=name,
        kind=rule.kind,
        flops=_flops(rule, functions, args, kwargs, out, inputs, writes),
        bytes_read=sum(count for _, count in reads),
        bytes_written=sum(count for _, count in writes),
        elements=elements,
        dtype=dtype,
        functions=functions,
        shapes=shapes,
    )
    return Account(op, rule, inputs, reads, writes)


def _starts_kernel(rule: Rule, inputs: list, outputs: list, writes: list) -> bool:
    if rule.kind == "view":
        return False
    if rule.aliasing and inputs and outputs:
        keys = {traffic.storage_key(tensor) for tensor in inputs}
        if all(traffic.storage_key(out) in keys for out in outputs):
            return False
    if not writes and not outputs:  # a Python number: .item() or equal(), else only a question
        return rule.base in ("_local_scalar_dense", "equal")
    return any(tensor.numel() for tensor, _ in writes)


def _elements(rule: Rule, args: tuple, reads: list, writes: list) -> int:
    if rule.kind == "gather":
        return max((count // tensor.element_size() for tensor, count in writes), default=0)
    if rule.name.startswith("_foreach_"):
        return sum(tensor.numel() for tensor in traffic.tensors(args[0]))
    return max((tensor.numel() for tensor, _ in [*reads, *writes]), default=0)


def _functions(rule: Rule, args: tuple, kwargs: dict) -> tuple[str, ...]:
    if rule.base == "pow" and len(args) > 1 and isinstance(args[1], int | float):
        return {2: ("mul",), 0.5: ("sqrt",)}.get(args[1], ("pow",))
    if rule.base == "gelu" and kwargs.get("approximate") == "tanh":
        return ("gelu_tanh",)
    if rule.base in ("add", "sub") and kwargs.get("alpha", 1) != 1:
        return ("mul", rule.base)
    return rule.functions


def _flops(
    rule: Rule, functions: tuple, args: tuple, kwargs: dict, out: Any, inputs: list, writes: list
) -> int:
    if rule.formula is not None:
        return int(rule.formula(*args, **kwargs, out_val=out))
    if rule.name.startswith("_foreach_"):
        each = len(functions) if rule.kind == "pointwise" else rule.per_element
        return each * sum(tensor.numel() for tensor in traffic.tensors(args[0]))
    if rule.kind == "pointwise":
        return len(functions) * writes[0][0].numel()
    if rule.base in conventions.POOLS and "adaptive" not in rule.base:
        window = list(args[1]) if isinstance(args[1], list | tuple) else [args[1]]
        size = 1
        for axis in range(int(rule.base.split("pool")[1][0])):
            size *= window[axis % len(window)]
        return writes[0][0].numel() * size
    per_element = rule.per_element
    if rule.base in conventions.NORMS:
        named = dict(zip((name for name, *_ in rule.arguments), args, strict=False)) | kwargs
        per_element += sum(named.get(name) is not None for name in ("weight", "bias"))
    return per_element * max((tensor.numel() for tensor in inputs), default=0)


def _dtype(inputs: list, outputs: list) -> str:
    floating = [tensor for tensor in inputs if tensor.dtype.is_floating_point]
    first = (floating or outputs or inputs or [None])[0]
    name = str(getattr(first, "dtype", "")).removeprefix("torch.")
    return _DTYPES[name][0] if name in _DTYPES else name
