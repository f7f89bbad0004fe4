"""Explorer of notebook 04: when fusing stops being free."""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, device_choice, explorer

FUSION_DEVICES = ("t4", "v100_sxm_16", "l4", "a100_80_sxm", "h100_sxm", "rtx_4090")
"""Offered by ``fusion``: one card for each way that bandwidth and arithmetic were balanced."""


def fusion(device: Any = None, operations: int = 3) -> None:
    """Explore when fusing stops being free: function, dtype and device.

    ``device``: the one to start with, a Device or its key or name, or the machine of a notebook
    (anything with ``facts``, a Device or None). None is a T4. ``operations``: the length of chain
    whose speed-up is marked; the axis shows all lengths. Raises UnknownDevice for an unknown name.
    """

    def draw(function: str, dtype: str, device: str) -> Any:
        return plots.draw_fusion_explorer(None, operations, function, dtype, device)

    explorer(
        draw,
        function=Choice("cosine", ("multiply", "exp", "cosine", "gelu"), "function"),
        dtype=Choice("fp16", ("fp16", "fp32"), "dtype"),
        device=device_choice(device, FUSION_DEVICES),
    )
