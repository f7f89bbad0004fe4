"""CUDA graphs of the simulated GPU."""

from __future__ import annotations

from typing import Any

import torch

from helpers.simgpu import state
from helpers.simgpu.runtime import Captured


class CUDAGraph:
    """``torch.cuda.CUDAGraph``: kernels recorded once, started together by ``replay``."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._kernels: list[Captured] | None = None
        self._jobs: list[Any] = []

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
        """Record from here on instead of running."""
        gpu = state.require()
        if gpu.runtime.capture is not None:
            raise RuntimeError("CUDA error: a graph is being captured already (simulated).")
        gpu.runtime.capture, gpu.jobs, gpu.undo = [], [], []

    def capture_end(self) -> None:
        """End of the recording; what it changed in place is as it was before."""
        gpu = state.require()
        gpu.flush()
        self._kernels, self._jobs = gpu.runtime.capture, gpu.jobs or []
        gpu.runtime.capture = gpu.jobs = None
        for inner, before in reversed(gpu.undo):
            inner.copy_(before)
        gpu.undo = []

    def replay(self) -> None:
        """Run everything again, on what the static tensors hold now, for one launch."""
        if self._kernels is None:
            raise RuntimeError("CUDAGraph.replay() before capture: there is nothing to replay.")
        gpu = state.require()
        with torch.utils._mode_utils.no_dispatch():
            for job, buffers in self._jobs:
                refill(job(), buffers)
        gpu.runtime.replay(self._kernels)

    def reset(self) -> None:
        """Forget the recording."""
        self._kernels, self._jobs = None, []

    def pool(self) -> tuple[int, int]:
        """A handle that may be passed to another capture."""
        return (0, 1)

    def enable_debug_mode(self) -> None:
        """Nothing to do."""

    def debug_dump(self, debug_path: str) -> None:
        """Nothing to dump."""


def refill(result: Any, buffers: list) -> None:
    """Copy what a replayed operation gave into the tensors that the capture handed out."""
    values = result if isinstance(result, tuple | list) else (result,)
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    for new, (old, twin) in zip(tensors, buffers, strict=True):
        if new is not old:
            old.copy_(new)
        if twin is not None:
            twin.copy_(new.fp32_twin[1])


class graph:
    """``torch.cuda.graph(g)``: what runs inside is captured into ``g``."""

    def __init__(self, cuda_graph: CUDAGraph, pool: Any = None, stream: Any = None, **_: Any):
        self.cuda_graph = cuda_graph

    def __enter__(self) -> None:
        gpu = state.require()
        gpu.flush()
        gpu.runtime.synchronize()
        self.cuda_graph.capture_begin()

    def __exit__(self, kind: Any, *rest: object) -> None:
        self.cuda_graph.capture_end()
        if kind is not None:
            self.cuda_graph.reset()
