"""What the schema of an ATen overload says about its arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

# Answered with a Python value.
QUESTIONS = {"equal", "allclose", "is_nonzero"}


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


@lru_cache(maxsize=4096)
def schema_of(func: Any) -> Schema:
    """Read the schema of an overload."""
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
