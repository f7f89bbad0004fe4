"""Programs run on the simulated card for each public figure: inputs, and what was held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from helpers import devices
from helpers.facts import fact
from helpers.simgpu.gpu import SimulatedGPU
from helpers.simgpu.rows import Row, row


@contextmanager
def card(device: str) -> Iterator[SimulatedGPU]:
    """A simulated card that only times: no sleeping, no values, no gradients."""
    import torch

    with SimulatedGPU(device, sleep=False, value_bytes=0) as gpu, torch.no_grad():
        yield gpu


def seconds(function: Callable[[], Any], calls: int = 1) -> float:
    """Host seconds per call, waited for, after one call that is not counted."""
    import torch

    from helpers import clock

    function()
    torch.cuda.synchronize()
    start = clock.now()
    for _ in range(calls):
        function()
    torch.cuda.synchronize()
    return (clock.now() - start) / calls


# Inputs


def inputs() -> list[Row]:
    """Figures that set parameters, and what comes out again."""
    import torch

    rows = []
    for device in devices.all_devices():
        with card(device.key) as gpu:
            if device.sustained_bandwidth is not None:
                x = torch.empty(2**28, device="cuda")
                rate = 2 * x.numel() * 4 / seconds(lambda x=x: x.mul_(0.5), 20)
                rows.append(row(f"device.{device.key}.sustained.bandwidth", rate,
                                 f"{device.name}: x * 0.5, read and write"))  # fmt: skip
            for name in ("fp16", "fp32"):
                if name not in device.sustained:
                    continue
                dtype = torch.float16 if name == "fp16" else torch.float32
                a = torch.empty(8192, 8192, device="cuda", dtype=dtype)
                rate = 2 * 8192**3 / seconds(lambda a=a: a @ a, 3)
                rows.append(row(f"device.{device.key}.sustained.{name}", rate,
                                 f"{device.name}: {name} matmul of 8192"))  # fmt: skip
            del gpu
    with card("a100_80_sxm") as gpu:
        x = torch.ones(8, device="cuda")
        before = gpu.host_clock
        x.add_(1)
        rows.append(row("host.operation", gpu.host_clock - before, "one eager operation, host"))
        rows.append(row("gpt_fast.eager", 1 / decode(1), "A100-80: 7B decoder, eager", "result"))
    with card("a100_80_sxm"):
        x = torch.ones(8, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(1000):
                x.add_(1)
        rows.append(row("host.graph_kernel_a100", seconds(graph.replay, 10) / 1000,
                         "A100-80: smallest kernel in a graph"))  # fmt: skip
    return rows


# Held out


def held_out() -> list[Row]:
    """Figures that set nothing: only tests."""
    return [*_decoders(), *_requests(), *_action_experts(), *_knee()]


def decode(batch: int, context: int = 204, graphed: bool = False, **shape: Any) -> float:
    """Seconds of one decode step of a decoder whose cache holds ``context`` tokens."""
    import torch

    from helpers.decoder import Decoder

    model = Decoder(**shape)
    model.start(batch, context)
    tokens = torch.zeros(batch, 1, device="cuda", dtype=torch.long)
    at = torch.full((1,), context - 1, device="cuda")
    run = torch.compile(model, mode="reduce-overhead") if graphed else model
    return seconds(lambda: run(tokens, at), 3)


LLAMA_31_8B = {"kv_heads": 8, "inner": 14336, "words": 128256}


def _decoders() -> list[Row]:
    rows = []
    with card("a100_80_sxm"):
        graphed = 1 / decode(1, graphed=True)
        rows += [
            row("gpt_fast.compiled", graphed, "A100-80: 7B decoder, compiled, graphs", "result"),
            row("gpt_fast_readme.fp16", graphed, "the same, the project's README", "result"),
            row("hf_llama2_7b.eager", 1 / decode(1), "A100: Hugging Face 7B, eager", "result",
                 "hf.eager"),
            row("gpt_fast_readme.llama31_8b", 1 / decode(1, graphed=True, **LLAMA_31_8B),
                 "A100-80: Llama-3.1-8B, compiled, graphs", "result"),
        ]  # fmt: skip
    with card("a100_40_sxm"):
        rows.append(row("vllm.batch1", 1 / decode(1, graphed=True, **LLAMA_31_8B),
                         "A100-40: Llama-3.1-8B in vLLM", "result"))  # fmt: skip
    with card("h100_sxm"):
        rows += [
            row("h100_graph.before", decode(1, **LLAMA_31_8B), "H100: Llama-3.1-8B step, eager",
                 "result", "h100.eager"),
            row("h100_graph.after", decode(1, graphed=True, **LLAMA_31_8B),
                 "H100: the same in a graph", "result"),
        ]  # fmt: skip
    return rows


def _requests() -> list[Row]:
    rows = []
    for device, key in (("a100_80_sxm", "a100"), ("h100_sxm", "h100")):
        with card(device):
            for batch in (1, 2, 4, 8):
                rows.append(row(f"nemo.{key}.batch{batch}", request(batch, 128, 20),
                                 f"{key.upper()}: NeMo, batch {batch}, 128 in, 20 out", "result",
                                 f"nemo.{key}.{batch}"))  # fmt: skip
    with card("a100_80_sxm"):
        for batch, before, after in ((384, 128, 128), (60, 128, 2048), (52, 2048, 128)):
            rate = batch * after / request(batch, before, after, at_once=4096)
            rows.append(row(f"trt_llm.a100.batch{batch}_{before}_{after}", rate,
                             f"A100: TensorRT-LLM, batch {batch}, {before} in, {after} out",
                             "result"))  # fmt: skip
    return rows


def request(batch: int, before: int, after: int, at_once: int = 10**6) -> float:
    """Seconds of prefill and generation; decode steps are taken at the mean context length.

    ``at_once`` limits the tokens of one prefill call, as serving runtimes do.
    """
    import torch

    from helpers.decoder import Decoder

    model = Decoder()
    step = torch.compile(model, mode="reduce-overhead")
    part = max(1, min(batch, at_once // before))
    model.start(part, before)
    tokens = torch.zeros(part, before, device="cuda", dtype=torch.long)
    prefill = seconds(lambda: step(tokens, torch.arange(before, device="cuda"))) * batch / part
    model.start(batch, before + after // 2)
    tokens = torch.zeros(batch, 1, device="cuda", dtype=torch.long)
    at = torch.full((1,), before + after // 2 - 1, device="cuda")
    return prefill + after * seconds(lambda: step(tokens, at))


def _action_experts() -> list[Row]:
    import torch

    rows, at = [], "action_expert"
    with card("T4"):
        rows += [
            row(f"{at}.t4.eager_4_steps", sample(512, 4), "T4: action expert, eager, 4 steps",
                 "result", "t4.eager_4"),
            row(f"{at}.t4.eager_8_steps", sample(512, 8), "T4: eager, 8 steps", "result"),
            row(f"{at}.t4.eager", sample(512, 10), "T4: eager, 10 steps", "result", "t4.eager_10"),
            row(f"{at}.t4.graph", sample(512, 10, "graph"), "T4: CUDA graph, 10 steps", "result",
                 "t4.graph"),
            row(f"{at}.t4.compiled", sample(512, 10, "compile"), "T4: compiled, 10 steps",
                 "result", "t4.compiled"),
            row(f"{at}.t4.compiled_4_steps", sample(512, 4, "compile"), "T4: compiled, 4 steps",
                 "result", "t4.compiled_4"),
        ]  # fmt: skip
        for width in (512, 1024, 2048, 4096):
            rows.append(
                row(
                    f"{at}.t4_width.d{width}",
                    sample(width, 10, "graph"),
                    f"T4: CUDA graph, width {width}",
                    "result",
                    f"t4.width_{width}",
                )
            )
    with card("L4"):
        for width in (512, 2048, 4096):
            rows.append(row(f"{at}.l4_width.d{width}",
                             sample(width, 10, "graph", torch.bfloat16),
                             f"L4: CUDA graph, bf16, width {width}", "result",
                             f"l4.width_{width}"))  # fmt: skip
    return rows


def sample(width: int, steps: int, how: str = "eager", dtype: Any = None) -> float:
    """Seconds per step of the flow sampler."""
    import torch

    from helpers.simgpu.workloads import ActionExpert

    dtype = dtype or torch.float16
    model = ActionExpert(width, dtype)
    x = torch.randn(1, 50, 32, device="cuda", dtype=dtype)
    if how == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x, steps)
        return seconds(graph.replay) / steps
    run = torch.compile(model, mode="reduce-overhead") if how == "compile" else model
    return seconds(lambda: run(x, steps)) / steps


def knee(device: str, step: Callable[[Any], Any], dtype: Any, most: int = 256) -> int:
    """Repeats of ``step`` in one fused kernel before its time is 5 % above that of one repeat."""
    import torch

    with card(device):
        x = torch.empty(2**26, device="cuda", dtype=dtype)

        def repeated(x: Any, times: int) -> Any:
            for _ in range(times):
                x = step(x)
            return x

        def once(times: int) -> float:
            torch._dynamo.reset()
            run = torch.compile(repeated)
            return seconds(lambda: run(x, times), 3)

        first = once(1)
        low, high = 1, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if once(middle) <= 1.05 * first else (low, middle)
        return high


def _knee() -> list[Row]:
    import torch

    found = knee("a100_40_sxm", lambda x: x * 2, torch.float32)
    low, high = (fact(f"result.repeat_sweep.knee_{end}").value for end in ("low", "high"))
    inside = min(max(found, low), high)
    public = fact("result.repeat_sweep.knee_low")
    return [Row("repeat_sweep.knee", f"A100: knee of x * 2, fp32; plot: {low} to {high}",
                inside, found, "op", public.source)]  # fmt: skip
