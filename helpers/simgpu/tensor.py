"""The tensor of the simulated GPU: ``meta`` to C++, ``cuda:0`` to Python.

C++ must not believe that it is a CUDA tensor (autograd would ask a CPU build for a device guard and
abort), so the wrapper claims ``meta`` there and says ``cuda:0`` to whoever asks in Python. Inside
is an ordinary CPU tensor with values where it is small, and a meta tensor where it is large.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from helpers.output import NotebookError
from helpers.simgpu import state

CUDA = torch.device("cuda", 0)
REPLACED: dict[Any, Callable] = {}
"""Functions that run another one on simulated tensors; ``functions`` fills it."""


class ValuesUnavailable(NotebookError):
    """A value was asked of a tensor for which the simulation keeps none."""


class Block:
    """A piece of device memory: what a tensor and all its views share."""

    __slots__ = ("__weakref__", "address", "fused", "known", "memory", "nbytes", "uid")
    _uids = itertools.count(1)

    def __init__(self, memory: Any, nbytes: int, known: bool) -> None:
        self.memory, self.nbytes, self.known = None, nbytes, known
        self.uid, self.address = next(self._uids), 0
        self.fused: tuple[Any, torch.Tensor] | None = None
        """Inside a compiled function: the group that made it, and its values in fp32."""
        if memory is not None:
            self.place(memory)

    def place(self, memory: Any) -> None:
        """Take memory now, if none was taken when the block was made."""
        if self.memory is None:
            self.address = memory.allocate(self.nbytes)
            self.memory = memory

    def __del__(self) -> None:
        memory = getattr(self, "memory", None)
        if memory is not None and getattr(self, "address", 0):
            memory.free(self.address, self.nbytes)


class SimTensor(torch.Tensor):
    """A tensor on the simulated GPU. Made by PyTorch calls with ``device="cuda"``, not by hand."""

    _inner: torch.Tensor
    _block: Block

    @staticmethod
    def __new__(cls, inner: torch.Tensor, block: Block, requires_grad: bool = False) -> SimTensor:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(),
            dtype=inner.dtype, layout=inner.layout, device="meta", requires_grad=requires_grad,
        )  # fmt: skip

    def __init__(self, inner: torch.Tensor, block: Block, requires_grad: bool = False) -> None:
        self._inner, self._block = inner, block

    # What Python is told

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    is_meta = property(lambda self: False)

    def get_device(self) -> int:
        return 0

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        if dtype is None:
            return super().type().replace("torch.", "torch.cuda.").replace("meta.", "")
        wanted = getattr(torch, dtype.split(".")[-1].removesuffix("Tensor").lower(), None) \
            if isinstance(dtype, str) else getattr(dtype, "dtype", dtype)  # fmt: skip
        return self.to(wanted)

    def data_ptr(self) -> int:
        return (self._block.address << 32) + self._inner.storage_offset() * self.element_size()

    def is_pinned(self, device: Any = None) -> bool:
        return False

    @property
    def data(self) -> torch.Tensor:
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        if not isinstance(value, SimTensor):
            raise RuntimeError(
                "incompatible tensor type: .data of a CUDA tensor takes a CUDA tensor (simulated)."
            )
        with torch._C.DisableTorchFunctionSubclass():
            torch.Tensor.data.__set__(self, value)
        self._inner, self._block = value._inner, value._block

    # helpers.counting finds the memory behind a wrapper by this name.
    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["_inner"], None

    # Values leave the device

    def values(self) -> torch.Tensor:
        """Wait for the device and return the values as a CPU tensor that shares them."""
        require_values(self)
        state.require().wait("copy to host")
        return self._inner.detach()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        return self.values().tolist()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        grad = ", requires_grad=True" if self.requires_grad else ""
        head = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
        if self._block.known and state.active() is not None:
            text = repr(self.values()).removesuffix(")")
            return f"{head}{text}, device='cuda:0'{grad})"
        return (
            f"{head}tensor(..., device='cuda:0', size={tuple(self.shape)}, dtype={self.dtype}"
            f"{grad}; the simulation keeps no values of a tensor this large)"
        )

    def __format__(self, spec: str) -> str:
        return self.item().__format__(spec) if self.dim() == 0 else str(self)

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        copied = self.detach().clone().requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            copied = torch.nn.Parameter(copied, self.requires_grad)
        if self.grad is not None:
            copied.grad = self.grad.__deepcopy__(memo)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        # torch.save of a simulated model: what a CPU can read, with values
        return self.detach().cpu().__reduce_ex__(protocol)

    # The two doors through which PyTorch calls

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        replacement = REPLACED.get(func)
        if replacement is not None:
            return replacement(*args, **kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return state.require().run(func, args, kwargs or {})


def require_values(tensor: SimTensor) -> None:
    """Raise ValuesUnavailable, with what to do, unless the simulation holds the values."""
    if tensor._block.known:
        return
    gpu = state.require()
    raise ValuesUnavailable(
        f"The simulated {gpu.device.name} keeps no values for this tensor of shape "
        f"{tuple(tensor.shape)}, only its timing: use inputs of at most {gpu.value_bytes >> 20} "
        "MiB each when you look at results (the same code, a smaller size), or a real GPU."
    )
