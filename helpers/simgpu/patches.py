"""What is replaced in ``torch`` while a simulated GPU is active, and put back exactly after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch._dynamo  # before anything is replaced: it looks around for devices while it loads
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors
from torch.utils.benchmark.utils import timer as benchmark_timer

from helpers.simgpu import compiling, cuda, factories, functions, generator, state, tensor

if TYPE_CHECKING:
    from helpers.simgpu.gpu import SimulatedGPU

_MISSING = object()


class Names(TorchFunctionMode):
    """Catches functions that somebody took out of ``torch`` before: ``from torch import randn``."""

    def __init__(self, table: dict[Any, Any]) -> None:
        super().__init__()
        self.table = table

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return self.table.get(func, func)(*args, **(kwargs or {}))


def _remove(mode: TorchFunctionMode) -> None:
    """Take a mode off the stack, wherever it stands, and leave the others in their order."""
    above = []
    while torch._C._len_torch_function_stack():
        top = torch._C._pop_torch_function_stack()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)


class Patches:
    """Replaced attributes with what stood there before, newest last."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any]] = []
        self._default_device: torch.device | None = None
        self._names: Names | None = None

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replace ``owner.name``; an inherited or missing attribute is removed again later."""
        before = vars(owner).get(name, _MISSING)
        self._saved.append((owner, name, before))
        setattr(owner, name, value)

    def replaced(self) -> list[tuple[Any, str]]:
        """What is replaced now: (owner, attribute name)."""
        return [(owner, name) for owner, name, _ in self._saved]

    def apply(self, gpu: SimulatedGPU) -> None:
        """Replace everything."""
        # PyTorch keeps tables of its own functions, made at first use: now, not of replacements.
        for table_of in (
            _device_constructors, torch.overrides.get_default_nowrap_functions,
            torch.overrides.get_ignored_functions, torch.overrides.get_testing_overrides,
        ):  # fmt: skip
            table_of()
        for name, value in cuda.functions().items():
            self._cuda(name, value)
        self.set(torch.cuda, "default_generators", (gpu.generator,))
        for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
            self.set(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)
        for name in ("start", "stop"):
            self.set(torch.cuda.profiler, name, lambda: None)
        for name, value in _accelerator().items():
            if hasattr(torch.accelerator, name):
                self.set(torch.accelerator, name, value)
        table: dict[Any, Any] = dict(tensor.REPLACED)
        for name in factories.NAMES:
            original = getattr(torch, name)
            table[original] = factories.replacement(name, original)
            self.set(torch, name, table[original])
        for name in ("to", "cuda", "cpu", "pin_memory", "is_pinned"):
            self.set(torch.Tensor, name, getattr(functions, name))
        functional = torch.nn.functional
        self.set(functional, "scaled_dot_product_attention",
                 functions.scaled_dot_product_attention)  # fmt: skip
        self.set(functional, "rms_norm", functions.rms_norm)
        self.set(torch, "rms_norm", functions.rms_norm)
        self.set(functional, "dropout", functions.dropout)
        self.set(torch, "Generator", generator.GeneratorFactory)
        self.set(torch, "Event", _event(torch.Event))
        self.set(torch, "compile", compiling.compile)
        self.set(torch.nn.Module, "compile", compiling.module_compile)
        self.set(torch.compiler, "reset", compiling.reset)
        self.set(torch, "Stream", _stream(torch.Stream))
        self.set(torch.nn.functional, "one_hot", functions.one_hot)
        # Inference tensors and wrappers that claim another device do not go together.
        self.set(torch.inference_mode, "__enter__", _enter_inference)
        self.set(torch.inference_mode, "__exit__", _exit_inference)
        self.set(torch.autocast, "__init__", _autocast(torch.autocast.__init__))
        self.set(torch._dynamo, "reset", compiling.reset)
        self._timer()
        self._default_device = _default_device()
        self._names = Names(table)
        self._names.__enter__()

    def undo(self) -> None:
        """Put everything back, newest first."""
        if self._names is not None:
            _remove(self._names)
            self._names = None
            if _default_device() is not self._default_device:
                torch.set_default_device(self._default_device)
        while self._saved:
            owner, name, before = self._saved.pop()
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

    def _cuda(self, name: str, value: Any) -> None:
        owners = [torch.cuda]
        for part in ("memory", "random", "streams", "graphs"):
            module = getattr(torch.cuda, part)
            if name in vars(module):
                owners.append(module)
        for owner in owners:
            self.set(owner, name, value)

    def _timer(self) -> None:
        """``torch.utils.benchmark.Timer`` waits and reads the virtual clock."""

        def now() -> float:
            cuda.synchronize()
            return state.require().runtime.now()

        original = benchmark_timer.Timer.__init__

        def init(self: Any, stmt: Any = "pass", setup: Any = "pass", global_setup: str = "",
                 timer: Any = now, *args: Any, **kwargs: Any) -> None:  # fmt: skip
            original(self, stmt, setup, global_setup, timer, *args, **kwargs)

        self.set(benchmark_timer.Timer, "__init__", init)


def _default_device() -> torch.device | None:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return context.device if context is not None else None


def _enter_inference(self: Any) -> None:
    self.simgpu_before = torch.is_grad_enabled()
    torch.set_grad_enabled(not self.mode and self.simgpu_before)


def _exit_inference(self: Any, *exception: object) -> None:
    torch.set_grad_enabled(self.simgpu_before)


def _stream(original: Any) -> Any:
    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original | cuda.Stream)

    class Stream(metaclass=Kind):
        def __new__(cls, device: Any = None, **options: Any) -> Any:
            if device is None or factories.is_cuda(device):
                return cuda.Stream(**options)
            return original(device, **options)

    return Stream


def _event(original: Any) -> Any:
    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original | cuda.Event)

    class Event(metaclass=Kind):
        def __new__(cls, device: Any = None, **options: Any) -> Any:
            if device is None or factories.is_cuda(device):
                return cuda.Event(**options)
            return original(device, **options)

    return Event


def _autocast(original: Any) -> Any:
    def init(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda" and kwargs.get("enabled", True):
            raise NotImplementedError(
                "torch.autocast('cuda') is not simulated: convert the model and its inputs with "
                ".half(), which runs the same kernels, or use a real GPU."
            )
        original(self, device_type, *args, **kwargs)

    return init


def _accelerator() -> dict[str, Any]:
    known = cuda.functions()
    same = (
        "is_available", "device_count", "synchronize", "current_stream", "set_stream",
        "empty_cache", "memory_allocated", "max_memory_allocated", "memory_reserved",
        "max_memory_reserved", "memory_stats", "reset_peak_memory_stats",
        "reset_accumulated_memory_stats", "get_device_capability",
    )  # fmt: skip
    found = {name: known[name] for name in same}
    found["current_accelerator"] = lambda check_available=False: torch.device("cuda")
    for name in ("current_device_index", "current_device_idx"):
        found[name] = known["current_device"]
    for name in ("set_device_index", "set_device_idx"):
        found[name] = known["set_device"]
    found["get_memory_info"] = known["mem_get_info"]
    found["get_device_capability"] = lambda device=None: {
        "capability": state.require().device.capability
    }
    return found
