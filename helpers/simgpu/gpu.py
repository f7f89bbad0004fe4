"""The simulated GPU: one object that is the device, its driver and its clocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from helpers import clock, devices
from helpers.simgpu import execute, fuse, model, state
from helpers.simgpu.generator import SimGenerator
from helpers.simgpu.memory import OutOfMemory
from helpers.simgpu.patches import Patches
from helpers.simgpu.runtime import HostInterval, Kernel, Runtime
from helpers.simgpu.tensor import Block, SimTensor

VALUE_BYTES = 2**22
"""Results up to this size keep their values: 4 MiB, 2**21 elements of fp16."""
VALUE_FLOPS = 2**29
"""Matrix products up to this many FLOPs are computed; longer ones are only timed."""


class SimulatedGPU:
    """A GPU that is not there: ``torch.cuda`` code runs against it while it is active.

    device: any key or name of ``helpers.devices`` ("T4", "a100_80_sxm").
    host: what the host pays per call; default ``HostModel()``.
    sleep: a wait also sleeps until the simulated GPU would be done, so that the real clock sees it.
    value_bytes, value_flops: results up to this size and effort keep their values.

    Use it as a context manager, or ``activate()`` and ``deactivate()``, also in different notebook
    cells. Everything it replaces in ``torch`` is put back on deactivation. Its clocks are virtual:
    the same program gives the same times. Raises UnknownDevice for a device without facts.
    """

    def __init__(
        self, device: str = "T4", host: model.HostModel | None = None, *, sleep: bool = True,
        value_bytes: int = VALUE_BYTES, value_flops: int = VALUE_FLOPS,
    ) -> None:  # fmt: skip
        self.device = devices.get(device)
        self.model = model.build(self.device)
        self.host = host or model.default_host()
        self.value_bytes, self.value_flops = value_bytes, value_flops
        capacity = self.device.memory - model.CONTEXT
        self.runtime = Runtime(self.model, self.host, capacity, sleep)
        self.generator = SimGenerator()
        self.plans: dict[Any, Any] = {}
        self.recorder: Any = None
        self.compiled_generation = 0
        self.jobs: list[Any] | None = None
        self.undo: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._fresh: set[int] = set()
        self._patches = Patches()

    # Switching on and off

    def activate(self) -> SimulatedGPU:
        """Let this device answer ``torch.cuda``; RuntimeError if one does already."""
        current = state.active()
        if current is not None:
            raise RuntimeError(
                f"A simulated {current.device.name} is active already: deactivate it before you "
                "activate another one."
            )
        try:
            self._patches.apply(self)
            clock.install(self.runtime.now)
            state.set_active(self)
            self._threads = torch.get_num_threads()
            torch.set_num_threads(1)  # for its small values, waking threads costs more
        except BaseException:
            self._patches.undo()
            raise
        return self

    def deactivate(self) -> None:
        """Put everything back; does nothing if this device is not active."""
        if state.active() is not self:
            return
        state.set_active(None)
        torch.set_num_threads(self._threads)
        clock.uninstall(self.runtime.now)
        self._patches.undo()
        self.recorder = self.jobs = self.runtime.capture = None

    def __enter__(self) -> SimulatedGPU:
        return self.activate()

    def __exit__(self, *exception: object) -> None:
        self.deactivate()

    # What it shows

    @property
    def name(self) -> str:
        """What ``torch.cuda.get_device_name`` says."""
        return self.device.torch_names[0] + devices.SIMULATED

    @property
    def sleep(self) -> bool:
        """Whether a wait sleeps in real time."""
        return self.runtime.sleep

    @sleep.setter
    def sleep(self, value: bool) -> None:
        self.runtime.sleep = value

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """No wait inside takes real time; nor does one after it for what was queued inside."""
        before, self.sleep = self.sleep, False
        try:
            yield
        finally:
            self.sleep = before
            self.runtime.forget_real_time()

    @property
    def trace(self) -> list[Kernel]:
        """Kernels and copies since the last ``mark()``, in the order they were queued."""
        return self.runtime.since_mark()

    @property
    def host_trace(self) -> list[HostInterval]:
        """What the host did, from the beginning."""
        return self.runtime.host_trace

    def mark(self) -> None:
        """Let ``trace`` start here."""
        self.runtime.mark()

    @property
    def host_clock(self) -> float:
        """Virtual seconds on the host, without spending any."""
        return self.runtime.clock

    @property
    def stream_clock(self) -> float:
        """Virtual seconds when the current stream will have run dry."""
        return self.runtime.stream.free_at

    @property
    def tf32(self) -> bool:
        """Whether fp32 matrix products may use TF32 units."""
        allowed = torch.get_float32_matmul_precision() != "highest"
        return allowed and "tf32" in self.model.matmul

    # What operations ask of it

    def run(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Run one dispatched operation."""
        return execute.run(self, func, args, kwargs)

    def block(self, inner: torch.Tensor, known: bool, kind: str = "copy") -> Block:
        """Memory for a new tensor; torch.cuda.OutOfMemoryError when the device is full."""
        nbytes = inner.untyped_storage().nbytes()
        # Inside a compiled function it is not known yet whether the tensor ever reaches memory.
        later = self.recorder is not None and kind in fuse.FUSABLE
        try:
            block = Block(None if later else self.runtime.memory, nbytes, known)
        except OutOfMemory as full:
            raise self.out_of_memory(full) from None
        if self.recorder is not None:
            self._fresh.add(block.uid)
        return block

    def out_of_memory(self, full: OutOfMemory) -> Exception:
        """The error that PyTorch raises, with its usual words."""
        memory = self.runtime.memory
        return torch.cuda.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {_size(full.requested)}. GPU 0 has a total "
            f"capacity of {_size(self.device.memory)} of which {_size(full.free)} is free. Of the "
            f"allocated memory {_size(memory.allocated)} is allocated by PyTorch, and "
            f"{_size(memory.reserved - memory.allocated)} is reserved by PyTorch but unallocated. "
            f"({self.name})"
        )

    def started(self, plan: Any, inputs: list[SimTensor], outputs: list[SimTensor]) -> None:
        """An operation was called: queue its kernel, or note it for the compiled one."""
        if self.recorder is not None:
            self.recorder.finished(plan, outputs, self._fresh)
            self._fresh.clear()
            return
        seen: dict[int, int] = {}
        limit = plan.op.bytes
        for tensor in (*inputs, *outputs):
            address = tensor._block.address
            size = min(tensor.numel() * tensor.element_size(), limit)
            seen[address] = max(seen.get(address, 0), size)
        self.runtime.launch(plan.task, seen.items(), self.host.dispatch, self.host.launch)

    def copied(self, tensor: SimTensor, name: str, pinned: bool, blocking: bool = True) -> None:
        """A copy over the link; from ordinary host memory the host waits for its end."""
        self.flush()
        nbytes = tensor.numel() * tensor.element_size()
        rate = self.device.pcie * model.PINNED_FRACTION
        if not pinned:
            rate = min(rate, model.PAGEABLE_RATE)
        runtime = self.runtime
        runtime.spend(name, self.host.operation)
        seconds = self.model.startup + nbytes / rate
        runtime.occupy(name, model.Timing(seconds, "link"), nbytes)
        if blocking or not pinned:
            self.wait(name)

    def wait(self, name: str = "synchronize") -> None:
        """Wait for the current stream, as ``.item()`` does."""
        self.flush()
        self.runtime.synchronize(self.runtime.stream, name)

    def flush(self) -> None:
        """A compiled function is interrupted here: its kernels so far have to run."""
        if self.recorder is not None:
            self.recorder.interrupt()

    def record_job(self, job: Any, written: list[SimTensor]) -> Any:
        """Compute values; while a graph is captured, keep the recipe for its replays."""
        if self.jobs is None:
            return job()
        for tensor in written:
            if not tensor._inner.is_meta:
                self.undo.append((tensor._inner, tensor._inner.clone()))
        result = job()
        self.jobs.append((job, _buffers(result)))
        return result

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether a host tensor was pinned with ``pin_memory``."""
        return getattr(tensor, "simgpu_pinned", False)


def _buffers(result: Any) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    values = result if isinstance(result, tuple | list) else (result,)
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    return [(t, getattr(t, "fp32_twin", (None, None))[1]) for t in tensors]


def _size(nbytes: float) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes:.0f} bytes"
