"""Counting: the FLOPs, bytes and kernels that a PyTorch function asks for, without timing it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from helpers import _ops, _traffic

_DTYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
}  # fmt: skip


@dataclass(frozen=True)
class Op:
    """One dispatched ATen operation (or several alike, in Work.by_name).

    kind is "matmul", "attention", "pointwise", "reduction", "copy", "gather", "random", "view" or
    "other". A "view" starts no kernel and moves no bytes: views, allocations, questions about a
    shape, anything on no elements. Units: FLOP and bytes.
    """

    name: str
    kind: str
    calls: int = 1
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    elements: int = 0  # the largest of the input and output counts that are touched
    dtype: str = ""  # of the arithmetic: the first floating-point input, else the result
    functions: tuple[str, ...] = ()  # pointwise functions per element, for the instruction cost
    shapes: tuple[tuple[int, ...], ...] = ()  # of the input tensors; of the results if none

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


def op_work(func: Any, args: tuple, kwargs: dict | None, out: Any) -> Op:
    """The work of one dispatched ATen overload, called as func(*args, **kwargs) -> out.

    Pure: looks at shapes, strides, dtypes and storages only, so meta tensors and subclasses do.
    """
    return _account(func, args, kwargs or {}, out)[0]


def _account(func: Any, args: tuple, kwargs: dict, out: Any) -> tuple[Op, list, list, list]:
    rule = _ops.rule(func)
    reads, writes, inputs = _traffic.accesses(rule, args, kwargs, out)
    outputs = list(_traffic.tensors(out))
    shown = inputs or outputs
    shapes = tuple(tuple(tensor.shape) for tensor in shown)
    dtype = _dtype(inputs, outputs)
    name = str(func)
    touched = [tensor for tensor, _ in writes] or outputs
    if not _starts_kernel(rule, func, inputs, outputs, touched):
        return Op(name, "view", dtype=dtype, shapes=shapes), [], [], inputs
    functions = _functions(rule, args, kwargs)
    elements = _elements(rule, reads, writes)
    return (
        Op(
            name=name,
            kind=rule.kind,
            flops=_flops(rule, functions, elements, args, kwargs, out, inputs, touched),
            bytes_read=sum(count for _, count in reads),
            bytes_written=sum(count for _, count in writes),
            elements=elements,
            dtype=dtype,
            functions=functions,
            shapes=shapes,
        ),
        reads,
        writes,
        inputs,
    )


def _starts_kernel(
    rule: _ops.Rule, func: Any, inputs: list, outputs: list, touched: list
) -> bool:
    if rule.kind == "view":
        return False
    if rule.aliasing and inputs and outputs:
        if any(out is tensor for out in outputs for tensor in inputs):
            return False
        keys = {_traffic.storage_key(tensor) for tensor in inputs}
        if all(_traffic.storage_key(out) in keys for out in outputs):
            return False
    if not touched:  # a number: .item() reads one element, all else is a question
        return rule.base in ("_local_scalar_dense", "equal")
    return any(tensor.numel() for tensor in touched)


def _elements(rule: _ops.Rule, reads: list, writes: list) -> int:
    if rule.kind == "gather":
        return max((count // tensor.element_size() for tensor, count in writes), default=0)
    if rule.name.startswith("_foreach_"):
        return sum(tensor.numel() for tensor, _ in writes)
    return max((tensor.numel() for tensor, _ in [*reads, *writes]), default=0)


def _functions(rule: _ops.Rule, args: tuple, kwargs: dict) -> tuple[str, ...]:
    if rule.base == "pow" and len(args) > 1 and isinstance(args[1], int | float):
        return {2: ("mul",), 0.5: ("sqrt",)}.get(args[1], ("pow",))
    if rule.base in ("add", "sub") and kwargs.get("alpha", 1) != 1:
        return ("mul", rule.base)
    return rule.functions


def _flops(
    rule: _ops.Rule, functions: tuple, elements: int, args: tuple, kwargs: dict, out: Any,
    inputs: list, touched: list,
) -> int:  # fmt: skip
    if rule.formula is not None:
        return int(rule.formula(*args, **kwargs, out_val=out))
    if rule.kind == "pointwise":
        if rule.name.startswith("_foreach_"):
            return len(functions) * elements
        return len(functions) * touched[0].numel()
    if rule.base in _ops.NORMS:
        affine = sum(1 for tensor in inputs[1:3] if tensor.dim() == 1)
        return (rule.per_element + affine) * inputs[0].numel()
    if rule.base in _ops.POOLS and len(args) > 1 and "adaptive" not in rule.base:
        window = args[1]
        size = window[0] * window[-1] if len(window) < 3 else window[0] * window[1] * window[2]
        return touched[0].numel() * size
    return rule.per_element * max((tensor.numel() for tensor in inputs), default=0)


def _dtype(inputs: list, outputs: list) -> str:
    floating = [tensor for tensor in inputs if tensor.dtype.is_floating_point]
    first = (floating or outputs or inputs or [None])[0]
    name = str(getattr(first, "dtype", "")).removeprefix("torch.")
    return _DTYPES.get(name, name)
