"""Explorer of notebook 02: which bucket does a program fall into?"""

from __future__ import annotations

from typing import Any

from helpers import plots
from helpers.explore.controls import Slider, device_of, explorer


def buckets(device: Any = None, roof: Any = None) -> None:
    """Explore which of compute, memory and host needs longest: FLOPs, bytes and kernels.

    ``device``: a Device or its name, or the machine of a notebook; None is a T4. Its datasheet
    peaks are the roof, unless ``roof`` is given (for example ``lab.ceiling()``). The sliders are
    powers of ten. Raises UnknownDevice for an unknown name.
    """
    card = None if roof is not None else device_of(device)

    def draw(flops: float, moved: float, kernels: float) -> Any:
        return plots.draw_buckets(None, 10**flops, 10**moved, round(10**kernels), roof, device=card)

    explorer(
        draw,
        flops=Slider(10.0, 6.0, 13.0, 0.25, "FLOPs: 10 to the"),
        moved=Slider(9.0, 3.0, 11.0, 0.25, "bytes: 10 to the"),
        kernels=Slider(1.0, 0.0, 4.0, 0.25, "kernels: 10 to the"),
    )
