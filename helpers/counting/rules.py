"""Private: what is known of one ATen overload before any tensor is seen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from helpers.counting import conventions


@dataclass(frozen=True)
class Rule:
    """What is known of one ATen overload before any tensor is seen."""

    name: str  # "cos_" for aten.cos_.default
    base: str  # "cos" for aten.cos.out, aten.cos_.default, aten._foreach_cos.default
    kind: str
    functions: tuple[str, ...]
    per_element: int  # FLOPs per output element (pointwise) or input element (reduction)
    formula: Callable[..., int] | None  # FLOPs from the operation's own arguments
    arguments: tuple[tuple[str, bool, bool], ...]  # name, written, only written
    composite: bool  # made of other operations
    whole: bool  # made of other operations, but one kernel on a GPU
    allocates: bool  # the result is new memory, not yet written
    aliasing: bool  # the schema, or we, say that the result may alias the input


def _kind(name: str, base: str, func: Any) -> str:
    tags = {str(tag).removeprefix("Tag.") for tag in getattr(func, "tags", ())}
    if name in conventions.NO_KERNEL or func.namespace == "prim" or "inplace_view" in tags:
        return "view"
    if func.namespace != "aten":  # somebody's own operation may share a name with one of ATen's
        return "pointwise" if "pointwise" in tags else "other"
    if name in conventions.MAYBE_VIEW or name in conventions.COPIES:
        return "copy"
    if getattr(func, "is_view", False):
        return "view"
    if name in conventions.RANDOM:
        return "random"
    if name in conventions.GATHERS or name in conventions.SCATTERS or name in conventions.INDEXED:
        return "gather"
    binary = base in ("max", "min") and func._overloadname in ("other", "out")
    if base in conventions.REDUCTION_FLOPS and not binary:
        return "reduction"
    if base in conventions.POOLS or "reduction" in tags:
        return "reduction"
    if name in conventions.FILLS or (
        name.startswith("_foreach_") and base not in conventions.REDUCTION_FLOPS
    ):
        return "pointwise"
    if "pointwise" in tags or base in conventions.POINTWISE or _sibling_is_pointwise(base):
        return "pointwise"
    return "other"


def _sibling_is_pointwise(base: str) -> bool:
    """In-place, out= and backward overloads are not always tagged; their functional sibling is."""
    import torch

    packet = getattr(torch.ops.aten, base.removesuffix("_backward"), None)
    names = packet.overloads() if packet is not None else ()
    return any(torch.Tag.pointwise in getattr(packet, name).tags for name in names)


@functools.cache
def rule_of(func: Any) -> Rule:
    """The rule of one ATen overload (torch.ops.aten.cos.default), looked up once."""
    from torch.utils.flop_counter import flop_registry

    name = func._schema.name.split("::")[-1]
    base = name.removeprefix("_foreach_") if name.startswith("_foreach_") else name
    base = base.removesuffix("_") if not base.endswith("__") else base.strip("_")
    formula, kind = None, None
    if func._overloadpacket in flop_registry:
        formula = flop_registry[func._overloadpacket]
        kind = "attention" if "attention" in name else "matmul"
    elif base in conventions.OUR_ATTENTION or base in conventions.OUR_MATMULS:
        formula = conventions.OUR_ATTENTION.get(base) or conventions.OUR_MATMULS[base]
        kind = "attention" if base in conventions.OUR_ATTENTION else "matmul"
    kind = kind or _kind(name, base, func)
    functions: tuple[str, ...] = conventions.FUNCTIONS.get(base, ())
    if kind == "pointwise" and name not in conventions.FILLS:
        functions = functions or (base,)
    elif kind == "random":
        functions = ("random",)
    per_element = {
        "pointwise": len(functions),
        "reduction": conventions.REDUCTION_FLOPS.get(base, 1),
    }
    arguments = tuple(
        (
            argument.name,
            bool(argument.alias_info is not None and argument.alias_info.is_write),
            argument.is_out or (name in conventions.WRITE_ONLY and position == 0),
        )
        for position, argument in enumerate(func._schema.arguments)
    )
    return Rule(
        name=name,
        base=base,
        kind=kind,
        functions=functions,
        per_element=1 if base in conventions.SELECTIONS else per_element.get(kind, 0),
        formula=formula,
        arguments=arguments,
        allocates=name in conventions.ALLOCATIONS,
        whole=base in conventions.ONE_KERNEL,
        composite=base not in conventions.ONE_KERNEL and _is_composite(func),
        aliasing=kind == "view"
        or name in conventions.MAYBE_VIEW
        or bool(getattr(func, "is_view", False)),
    )


def _is_composite(func: Any) -> bool:
    import torch

    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return key in func.py_kernels or torch._C._dispatch_has_kernel_for_dispatch_key(
        func.name(), key
    )
