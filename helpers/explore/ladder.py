"""Explorer of notebook 01: how long do so many bytes take from each level of the memory ladder?"""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Choice, device_choice, explorer
from helpers.facts import fact
from helpers.levels import host_memory

LADDER_DEVICES = ("t4", "l4", "rtx_3090", "v100_sxm_16", "a100_80_sxm", "h100_sxm")
"""Offered by ``ladder``: pairs of equal capacity and unequal bandwidth among them."""


def ladder(device: Any = None) -> None:
    """Explore how long n bytes take from each level: amount, device, and the level to compare with.

    ``device``: the one to start with, a Device or its key or name, or the machine of a notebook
    (anything with ``facts``, a Device or None). None is a T4. Raises UnknownDevice for an unknown
    name.
    """
    weights = fact("model.llama2_7b.weights").value

    def draw(amount: float, device: str, beside: str) -> Any:
        return plots.draw_move_time(None, amount, device, beside, host_memory())

    explorer(
        draw,
        amount=Choice(
            weights,
            (
                ("4 KB, a short vector", 4000),
                ("1 MB", 10**6),
                ("33.6 MB, a 4096 x 4096 matrix in fp16", 2 * 4096**2),
                ("1 GB", 10**9),
                ("13.5 GB, the weights of a 7B model", weights),
                ("140 GB, the weights of a 70B model", 140 * 10**9),
            ),
            "amount",
        ),
        device=device_choice(device, LADDER_DEVICES),
        beside=Choice("device memory", plots.level_names(), "compared with"),
    )
