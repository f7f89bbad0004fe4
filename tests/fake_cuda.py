"""A stand-in for the few torch.cuda calls that `timing` makes: one host clock, one stream.

Smaller and more adjustable than the simulated GPU: a test sets what each launch costs.
"""

import types

import torch

from helpers import clock

MISSING = object()


class FakeGPU:
    """A GPU whose every duration the test knows. Times in seconds, sizes in bytes."""

    def __init__(self, name="Tesla T4", l2=4 * 2**20, free=14 * 2**30, hertz=1.5e9):
        self.name, self.l2, self.free, self.hertz = name, l2, free, hertz
        self.reserved = self.allocated = 0
        self.host = self.stream = 0.0
        self.record_cost = 1e-6  # what one event keeps the stream busy
        self.bytes_per_second = 250e9
        self.flushed: list[int] = []  # bytes of each zeroing
        self.slept: list[float] = []
        self.emptied = 0

    def launch(self, gpu, host=5e-6):
        """Queue a kernel of `gpu` seconds; the host is busy for `host` seconds."""
        self.host += host
        self.stream = max(self.stream, self.host) + gpu

    def synchronize(self, device=None):
        self.host = max(self.host, self.stream)

    def sleep(self, cycles):
        self.slept.append(cycles / self.hertz)
        self.launch(cycles / self.hertz)

    def zeros(self, n, dtype=None, device=None):
        assert (dtype, device) == (torch.int32, "cuda")
        return types.SimpleNamespace(zero_=lambda: self.zero(4 * n))

    def zero(self, size):
        self.flushed.append(size)
        self.launch(size / self.bytes_per_second)

    def empty_cache(self):
        self.emptied += 1

    def properties(self, device):
        return types.SimpleNamespace(**({} if self.l2 is MISSING else {"L2_cache_size": self.l2}))

    def install(self, monkeypatch):
        gpu = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing

            def record(self):
                gpu.launch(gpu.record_cost, host=1e-6)
                self.done = gpu.stream

            def query(self):
                return gpu.host >= self.done

            def synchronize(self):
                gpu.host = max(gpu.host, self.done)

            def elapsed_time(self, end):
                assert gpu.host >= end.done, "the end event has not happened yet"
                return 1e3 * (end.done - self.done)

        for name, value in {
            "is_available": lambda: True,
            "get_device_name": lambda device=None: gpu.name,
            "get_device_properties": gpu.properties,
            "current_device": lambda: 0,
            "mem_get_info": lambda device=None: (gpu.free, 16 * 2**30),
            "memory_reserved": lambda device=None: gpu.reserved,
            "memory_allocated": lambda device=None: gpu.allocated,
            "synchronize": gpu.synchronize,
            "empty_cache": gpu.empty_cache,
            "Event": Event,
            "_sleep": gpu.sleep,
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(torch, "zeros", self.zeros)
        clock.install(self.read)
        return self

    def read(self):
        return self.host

    def uninstall(self):
        clock.uninstall(self.read)
