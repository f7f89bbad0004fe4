"""Random numbers of the simulated GPU: a CPU generator that says it is on ``cuda``."""

from __future__ import annotations

from typing import Any

import torch

SEED = 67280421310721
"""PyTorch's default seed, so that two fresh devices draw the same numbers."""

_Generator = torch.Generator


class _Kind(type):
    """``isinstance(g, torch.Generator)`` stays true of ordinary generators as well."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Generator)


class SimGenerator(_Generator):
    """Stands in for ``torch.Generator(device="cuda")``."""

    def __new__(cls) -> SimGenerator:
        made = super().__new__(cls, "cpu")
        made.manual_seed(SEED)
        return made

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)


class GeneratorFactory(metaclass=_Kind):
    """``torch.Generator`` while a simulated GPU is active."""

    def __new__(cls, device: Any = "cpu") -> Any:
        if torch.device(device).type == "cuda":
            return SimGenerator()
        return _Generator(device)
