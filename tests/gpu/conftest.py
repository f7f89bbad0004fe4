"""For a real CUDA card: run with `pytest -m gpu tests/gpu`; skipped, saying why, elsewhere."""

import pytest
import torch


def why_not() -> str | None:
    """Why there is no real card here, or None. Asks PyTorch's core, which no simulator replaces."""
    count = getattr(torch._C, "_cuda_getDeviceCount", None)
    if count is None:
        return "this PyTorch is built without CUDA"
    if count() < 1:
        return "there is no CUDA card here"
    from helpers import devices

    if devices.is_simulated(torch.cuda.get_device_name()):
        return "a simulated GPU is active: these tests are for the real one"
    return None


@pytest.fixture(autouse=True)
def real_card():
    if reason := why_not():
        pytest.skip(reason)
    yield torch.cuda.get_device_name()
    torch.cuda.empty_cache()
