"""Which simulated GPU is active. One at a time, for the whole process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from helpers.simgpu.gpu import SimulatedGPU

_active: SimulatedGPU | None = None


def active() -> SimulatedGPU | None:
    """Return the simulated GPU that answers ``torch.cuda`` calls now, or None."""
    return _active


def require() -> SimulatedGPU:
    """Return the active simulated GPU; RuntimeError when its tensors outlived it."""
    if _active is None:
        raise RuntimeError(
            "This tensor lives on a simulated GPU that is not active any more: call activate() "
            "again, or make the tensor anew on the device you use now."
        )
    return _active


def set_active(gpu: SimulatedGPU | None) -> None:
    """Let ``gpu`` answer from now on."""
    global _active
    _active = gpu
