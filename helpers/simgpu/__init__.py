"""The simulated GPU: ``torch.cuda`` code runs on a modelled card where there is none.

    with SimulatedGPU("T4"):
        x = torch.randn(2**27, device="cuda", dtype=torch.float16)

Importing this package does not import torch; making a ``SimulatedGPU`` does.
"""

from typing import Any

__all__ = ["HostModel", "SimulatedGPU", "active"]


def __getattr__(name: str) -> Any:
    if name == "SimulatedGPU":
        from helpers.simgpu.gpu import SimulatedGPU

        return SimulatedGPU
    if name == "HostModel":
        from helpers.simgpu.model import HostModel

        return HostModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def active() -> Any:
    """Return the active SimulatedGPU, or None."""
    from helpers.simgpu import state

    return state.active()
