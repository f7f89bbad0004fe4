"""Tensors made on the device: ``torch.zeros(..., device="cuda")`` and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from helpers.counting import Op
from helpers.simgpu import state
from helpers.simgpu.execute import Plan, task_of
from helpers.simgpu.tensor import SimTensor

NAMES = (
    "empty", "zeros", "ones", "full", "rand", "randn", "randint", "randperm", "arange", "range",
    "linspace", "logspace", "eye", "tensor", "as_tensor", "asarray", "scalar_tensor",
    "empty_strided", "empty_permuted", "tril_indices", "triu_indices", "hann_window",
    "hamming_window", "bartlett_window", "blackman_window", "kaiser_window", "normal",
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like",
    "randint_like", "from_numpy",
)  # fmt: skip
LIKE = {name for name in NAMES if name.endswith("_like")}
FROM_DATA = {"tensor", "as_tensor", "asarray"}


def ambient() -> torch.device | None:
    """The device of ``with torch.device(...)`` or ``set_default_device``, innermost first."""
    from torch.utils._device import DeviceContext

    for index in reversed(range(torch._C._len_torch_function_stack())):
        mode = torch._C._get_function_stack_at(index)
        if isinstance(mode, DeviceContext):
            return mode.device
    return None


def is_cuda(device: Any) -> bool:
    """Whether a device argument (string, index, torch.device) means the simulated card.

    RuntimeError for a second card: there is one.
    """
    if device is None:
        return False
    if isinstance(device, int):
        device = torch.device("cuda", device)
    device = torch.device(device)
    if device.type == "cuda" and device.index not in (None, 0):
        raise RuntimeError(
            f"CUDA error: invalid device ordinal (simulated): there is no {device}, only cuda:0."
        )
    return device.type == "cuda"


def check_device(device: Any) -> None:
    """Accept the simulated card under any of its names; ValueError for what is not CUDA."""
    if device is None or (isinstance(device, int) and device == -1):
        return
    if not is_cuda(device):
        raise ValueError(f"Expected a cuda device, but got: {device}")


def replacement(name: str, original: Callable) -> Callable:
    """The function that stands in for ``torch.<name>``."""

    def factory(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if name in LIKE and device is None:
            return original(*args, **kwargs)
        if device is None:
            source = args[0] if args and name in FROM_DATA else None
            device = source.device if isinstance(source, torch.Tensor) else ambient()
            if name == "tensor" and isinstance(source, SimTensor):
                device = ambient()
        elif not is_cuda(device) and any(isinstance(a, SimTensor) for a in args):
            return args[0].to(device, dtype=kwargs.get("dtype")) if name in FROM_DATA \
                else original(*args, **kwargs)  # fmt: skip
        if not is_cuda(device):
            return _on_host(original, args, kwargs)
        if kwargs.get("out") is not None:
            return original(*args, **kwargs)
        return _make(name, original, args, kwargs)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = original.__doc__
    factory.__wrapped__ = original
    return factory


def _on_host(original: Callable, args: tuple, kwargs: dict) -> Any:
    pinned = kwargs.pop("pin_memory", False)
    made = original(*args, **kwargs)
    return made.pin_memory() if pinned else made


def _make(name: str, original: Callable, args: tuple, kwargs: dict) -> Any:
    grad = kwargs.pop("requires_grad", False)
    options = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory", "generator")}
    with torch.no_grad():
        if name in FROM_DATA:
            result = _from_data(name, original, args, options)
        elif name in LIKE and isinstance(args[0], SimTensor):
            return original(*args, **options, requires_grad=grad)
        elif name in LIKE:
            result = _like(name, args, options)
        else:
            result = _fresh(name, original, args, options, kwargs.get("generator"))
    return result.requires_grad_(grad) if grad else result


def _fresh(name: str, original: Callable, args: tuple, options: dict, generator: Any) -> SimTensor:
    with no_dispatch():
        shape = original(*args, **options, device="meta")
    result = empty(shape)
    fill = {
        "zeros": lambda: result.zero_(),
        "ones": lambda: result.fill_(1),
        "full": lambda: result.fill_(args[1] if len(args) > 1 else options["fill_value"]),
        "scalar_tensor": lambda: result.fill_(args[0]),
        "rand": lambda: result.uniform_(generator=generator),
        "randn": lambda: result.normal_(generator=generator),
        "randint": lambda: result.random_(*_bounds(args, options), generator=generator),
        "empty": lambda: result, "empty_strided": lambda: result,
        "empty_permuted": lambda: result,
    }.get(name)  # fmt: skip
    if fill is not None:
        return fill()
    if name == "normal":
        mean, std = (*args, *[options.get(k) for k in ("mean", "std")][len(args) :])[:2]
        return result.normal_(float(mean), float(std), generator=generator)
    if name == "randperm":
        options = {**options, "generator": generator or state.require().generator}
    # arange and the like: one kernel that writes the result
    if not result._inner.is_meta:
        with no_dispatch():
            result._inner.copy_(original(*args, **options, device="cpu"))
    return _written(result, f"aten.{name}.default")


def _like(name: str, args: tuple, options: dict) -> SimTensor:
    source = args[0]
    dtype = options.get("dtype") or source.dtype
    result = empty(torch.empty_like(source, device="meta", dtype=dtype))
    rest = args[1:]
    return {
        "empty_like": lambda: result, "zeros_like": result.zero_,
        "ones_like": lambda: result.fill_(1), "rand_like": result.uniform_,
        "full_like": lambda: result.fill_(rest[0] if rest else options["fill_value"]),
        "randn_like": result.normal_,
        "randint_like": lambda: result.random_(*(rest if len(rest) > 1 else (0, *rest))),
    }[name]()  # fmt: skip


def _from_data(name: str, original: Callable, args: tuple, options: dict) -> Any:
    source = args[0] if args else options.pop("data")
    if isinstance(source, SimTensor):
        same = name != "tensor" and options.get("dtype") in (None, source.dtype)
        return source if same else source.detach().to(options.get("dtype") or source.dtype).clone()
    on_host = original(source, **options, device="cpu")
    return on_host.detach().to("cuda")


def _bounds(args: tuple, options: dict) -> tuple[int, int]:
    numbers = [a for a in args if isinstance(a, int)]
    low = options.get("low", numbers[0] if len(numbers) > 1 else 0)
    high = options.get("high", numbers[-1] if numbers else None)
    return low, high


def empty(like: torch.Tensor) -> SimTensor:
    """A new tensor with the shape, strides and dtype of ``like``; no kernel. Zeros inside."""
    gpu = state.require()
    small = like.numel() * like.element_size() <= gpu.value_bytes
    with no_dispatch():
        inner = torch.empty_strided(
            like.shape, like.stride(), dtype=like.dtype, device="cpu" if small else "meta"
        )
        if small:
            inner.zero_()
    return SimTensor(inner, gpu.block(inner, known=small, kind="empty"))


def _written(result: SimTensor, name: str) -> SimTensor:
    gpu = state.require()
    nbytes = result.numel() * result.element_size()
    dtype = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"}
    op = Op(
        name, "copy", bytes_written=nbytes, elements=result.numel(),
        dtype=dtype.get(str(result.dtype).removeprefix("torch."), "int64"),
        shapes=(tuple(result.shape),),
    )  # fmt: skip
    plan = Plan(op, task_of(gpu, op), True, (result.dtype,))
    if gpu.recorder is not None:
        gpu.recorder.assign(plan, [], [result])
    gpu.started(plan, [], [result])
    return result
