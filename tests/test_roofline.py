"""Roofs, times, verdicts and ledgers, on cases small enough to work out by hand."""

import dataclasses

import pytest

from helpers import roofline
from helpers.counting import Op, Work
from helpers.devices import get
from helpers.facts import fact
from helpers.roofline import (
    Roof,
    RooflineError,
    attainable,
    ceiling,
    datasheet,
    ledger,
    measure_ceiling,
    ridge,
    sustained,
    times,
    vector_budget,
    verdict,
)

A100 = datasheet(get("A100-80"))
T4 = datasheet(get("T4"))
# Round numbers: 1 TB/s, 100 TFLOP/s, 5e12 vector operations/s.
ROUND = Roof("measured ceiling", "Round GPU", 1e12, {"fp16": 1e14}, 5e12, "measured")


def work(*ops: Op, bytes_ideal: int = 0) -> Work:
    return Work(ops=ops, bytes_ideal=bytes_ideal)


def matmul(n: int, dtype: str = "fp16") -> Op:
    size = 2 * n * n
    return Op("aten.mm.default", "matmul", flops=2 * n**3, bytes_read=2 * size,
              bytes_written=size, elements=n * n, dtype=dtype)  # fmt: skip


def pointwise(name: str, elements: int, dtype: str = "fp16") -> Op:
    size = elements * {"fp16": 2, "fp32": 4}[dtype]
    return Op(f"aten.{name}.default", "pointwise", flops=elements, bytes_read=size,
              bytes_written=size, elements=elements, dtype=dtype, functions=(name,))  # fmt: skip


# --- the course's worked examples -------------------------------------------------------------


def test_4096_matmul_on_an_a100_is_compute_bound_nine_to_one():
    op = matmul(4096)
    assert op.flops == pytest.approx(137.4e9, rel=1e-3)
    assert op.bytes == pytest.approx(100.7e6, rel=1e-3)
    t = times(work(op), A100, 0.0)
    assert t.compute == pytest.approx(0.44e-3, rel=0.01)
    assert t.memory == pytest.approx(0.049e-3, rel=0.01)
    assert t.compute / t.memory == pytest.approx(9, rel=0.02)
    assert t.program == t.compute == t.compute_bound
    assert verdict(0.5e-3, t).bucket == "compute"


def test_relu_on_one_gigabyte_is_memory_bound_nineteen_to_one():
    op = pointwise("relu", 500_000_000)
    t = times(work(op), A100, 0.0)
    assert t.memory == pytest.approx(0.98e-3, rel=0.01)
    assert t.compute == pytest.approx(0.051e-3, rel=0.01)
    assert t.memory / t.compute == pytest.approx(19, rel=0.02)
    naive = op.flops / A100.rates["fp16"]
    assert naive == pytest.approx(0.0016e-3, rel=0.01)
    assert t.memory / naive == pytest.approx(612, rel=0.01)
    assert verdict(1.1e-3, t).bucket == "memory"


def test_ridges():
    assert ridge(A100, "fp16") == pytest.approx(153, abs=0.5)
    assert ridge(T4, "fp16") == pytest.approx(203, abs=0.5)
    assert ridge(T4, "fp32") == pytest.approx(25.3, abs=0.1)
    assert ridge(sustained(get("T4")), "fp16") == pytest.approx(175, abs=0.5)
    capped = fact("device.t4.sustained_power_capped.fp16").value / fact("device.t4.bandwidth").value
    assert capped == pytest.approx(75, abs=0.5)
    for name, expected in [
        ("L4", 403),
        ("A10", 208),
        ("A100-40", 201),
        ("H100", 295),
        ("H200", 206),
    ]:
        assert ridge(datasheet(get(name)), "fp16") == pytest.approx(expected, abs=1)


def test_vector_operations_per_element_moved_in_and_out_once():
    assert vector_budget(A100, 2) == pytest.approx(19, abs=0.2)
    assert vector_budget(T4, 2) == pytest.approx(51, abs=0.5)
    assert vector_budget(sustained(get("T4")), 2) == pytest.approx(35, abs=0.2)
    for roof in (A100, T4):
        assert vector_budget(roof, 4) == 2 * vector_budget(roof, 2)
    a100_40 = datasheet(get("A100-40"))
    assert vector_budget(a100_40, 4) == pytest.approx(50, abs=0.5)  # 52 with 1.5 TB/s


def test_the_cos_chain_of_the_lab():
    n = 2**27
    chain = [pointwise("cos", n) for _ in range(3)]
    one = times(work(chain[0]), T4, 0.0)
    assert one.memory == pytest.approx(1.68e-3, rel=0.01)
    assert times(work(chain[0]), sustained(get("T4")), 0.0).memory == pytest.approx(
        2.24e-3, rel=0.01
    )
    three = work(*chain, bytes_ideal=2 * 2 * n)
    eager, fused = times(three, T4, 0.0), times(three, T4, 0.0, fused=True)
    assert eager.program == pytest.approx(3 * one.program)
    assert fused.program == pytest.approx(one.program), "45 slots fit into the 51 of the datasheet"
    slow = times(three, sustained(get("T4")), 0.0, fused=True)
    assert slow.compute > slow.memory, "45 slots do not fit into the 35 of its measured rates"
    card = times(three, A100, 0.0, fused=True)
    assert card.compute == pytest.approx(45 / 19.13 * card.memory, rel=0.01)


def test_gpt_fast_eager_on_an_a100():
    weights = fact("model.llama2_7b.decode_weights").value
    reads = Op(
        "aten.mm.default", "matmul", flops=2 * weights // 2, bytes_read=weights, dtype="fp16"
    )
    tiny = [pointwise("mul", 1)] * (fact("result.gpt_fast.operations").value - 1)
    step = work(reads, *tiny)
    measured = 1 / fact("result.gpt_fast.eager").value
    launches_only = times(step, A100, fact("host.launch").value)
    assert launches_only.memory == pytest.approx(6.5e-3, rel=0.01)
    assert launches_only.host == pytest.approx(6.1e-3, rel=0.01)
    assert verdict(measured, launches_only).bucket == "unexplained"
    assert ledger(measured, launches_only).left_over_share > 0.8
    everything = times(step, A100, fact("host.operation").value)
    assert verdict(measured, everything).bucket == "overhead"
    assert abs(ledger(measured, everything).left_over_share) < 0.01
    graph = 1 / fact("result.gpt_fast.compiled").value
    assert verdict(graph, times(step, A100, 0.0)).bucket == "memory"


# --- the pieces --------------------------------------------------------------------------------


def test_attainable_is_the_smaller_limit_and_meets_at_the_ridge():
    assert attainable(ROUND, 10, "fp16") == 1e13
    assert attainable(ROUND, 1000, "fp16") == 1e14
    assert attainable(ROUND, ridge(ROUND, "fp16"), "fp16") == pytest.approx(1e14)


def test_the_three_roofs_of_a_t4_lie_one_below_the_other():
    below = sustained(get("T4"))
    assert (T4.label, below.label) == ("datasheet peak", "published sustained")
    assert T4.origin == below.origin == "published"
    assert below.bandwidth < T4.bandwidth
    assert below.rates["fp16"] < T4.rates["fp16"]
    assert below.vector_rate < T4.vector_rate
    assert "bf16" not in T4.rates and below.rates["bf16"] < below.rates["fp32"]


@pytest.mark.parametrize("key", ["a10", "a10g", "h100_sxm", "h200", "v100_pcie_16"])
def test_an_unpublished_roof_is_none(key):
    assert sustained(get(key)) is None


def test_a_missing_rate_is_one_sentence():
    with pytest.raises(RooflineError, match="datasheet peak of T4 has no bf16 rate; it has fp16"):
        ridge(T4, "bf16")
    blind = dataclasses.replace(ROUND, vector_rate=None)
    with pytest.raises(RooflineError, match="has no vector rate"):
        times(work(pointwise("cos", 10)), blind, 0.0)
    assert times(work(matmul(64)), blind, 0.0).compute > 0, "a matmul needs none"


def test_times_sum_the_larger_of_each_kernel():
    heavy = Op("aten.mm.default", "matmul", flops=10**11, bytes_read=10**8, dtype="fp16")
    light = Op("aten.copy_.default", "copy", bytes_read=10**9, bytes_written=10**9)
    view = Op("aten.view.default", "view", elements=10**9)
    t = times(work(heavy, view, light), ROUND, 1e-5)
    assert t.compute == pytest.approx(1e-3)
    assert t.memory == pytest.approx(0.1e-3 + 2e-3)
    assert t.compute_bound == pytest.approx(1e-3)
    assert t.memory_bound == pytest.approx(2e-3)
    assert t.kernels == t.program == pytest.approx(3e-3)
    assert t.host == pytest.approx(2e-5), "the view costs no launch"
    assert times(work(heavy, light), ROUND, 2e-3).program == pytest.approx(4e-3)


def test_reductions_run_on_the_vector_units():
    softmax = Op("aten._softmax.default", "reduction", flops=5000, elements=1000,
                 functions=("exp",), dtype="fp32")  # fmt: skip
    t = times(work(softmax), ROUND, 0.0)
    assert t.compute == pytest.approx((5000 + 6 * 1000) / 5e12)


def test_functions_of_the_same_elements_share_the_units_when_fused():
    n = 1000
    both = work(pointwise("rsqrt", n), pointwise("mul", n), bytes_ideal=0)
    apart, together = times(both, ROUND, 0.0), times(both, ROUND, 0.0, fused=True)
    assert apart.compute == pytest.approx((4 + 1) * n / 5e12)
    assert together.compute == pytest.approx(4 * n / 5e12), "the multiply hides beside the rsqrt"
    other = work(pointwise("mul", n), pointwise("mul", 2 * n), bytes_ideal=0)
    assert times(other, ROUND, 0.0, fused=True).compute == pytest.approx(3 * n / 5e12)


def test_fusing_launches_once_and_refuses_a_matmul():
    n = 1000
    chain = work(*[pointwise("mul", n)] * 5, bytes_ideal=4 * n)
    fused = times(chain, ROUND, 1e-5, fused=True)
    assert fused.host == pytest.approx(1e-5)
    assert fused.memory == pytest.approx(4 * n / 1e12)
    with pytest.raises(RooflineError, match=r"aten\.mm\.default stays a kernel of its own"):
        times(work(matmul(8)), ROUND, 0.0, fused=True)
    nothing = times(work(), ROUND, 1e-5, fused=True)
    assert nothing.program == nothing.host == 0


def test_an_unknown_function_counts_as_a_multiply_and_says_so():
    t = times(work(pointwise("bessel_j0", 1000)), ROUND, 0.0)
    assert t.compute == pytest.approx(1000 / 5e12)
    assert t.notes == ("counted as one multiply each: bessel_j0",)
    assert times(work(pointwise("cos", 1000)), ROUND, 0.0).notes == ()


def fixed(compute=0.0, memory=0.0, host=0.0, roof=ROUND):
    return roofline.Times(
        compute=compute, memory=memory, host=host, program=max(compute + memory, host),
        kernels=compute + memory, compute_bound=compute, memory_bound=memory, roof=roof,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "parts", "bucket", "share"),
    [
        (10.0, dict(compute=9.0), "compute", 0.9),
        (10.0, dict(memory=9.0), "memory", 0.9),
        (10.0, dict(host=9.0), "overhead", 0.9),
        (10.0, dict(compute=6.0), "compute", 0.6),
        (10.0, dict(compute=5.9), "unexplained", 0.59),
        (10.0, dict(memory=3.0, host=5.0), "unexplained", 0.5),
        (10.0, dict(compute=5.0, memory=5.0), "unexplained", 0.5),
        (10.0, dict(memory=7.0, host=6.5), "memory", 0.7),
        (10.0, dict(memory=6.5, host=7.0), "overhead", 0.7),
        (10.0, dict(), "unexplained", 0.0),
        # hidden behind kernels that are split between two buckets: no verdict, not overhead
        (10.0, dict(compute=5.0, memory=4.0, host=7.0), "unexplained", 0.5),
        (10.0, dict(compute=3.0, memory=3.5, host=7.0), "overhead", 0.7),
        (10.0, dict(memory=7.0, host=7.0), "memory", 0.7),
    ],
)
def test_verdict(measured, parts, bucket, share):
    found = verdict(measured, fixed(**parts))
    assert found.bucket == bucket
    assert found.share == pytest.approx(share)
    if bucket == "unexplained":
        assert "look at the trace" in found.sentence


def test_a_mixed_program_is_told_apart_from_an_unexplained_one():
    assert "split" in verdict(10.0, fixed(compute=5.0, memory=5.0)).sentence
    assert "split" not in verdict(10.0, fixed(compute=3.0)).sentence


def test_faster_than_the_datasheet_is_a_question():
    found = verdict(1.0, fixed(memory=3.0, roof=T4))
    assert found.bucket == "unexplained"
    assert "did you wait" in found.sentence and "x3" in found.sentence
    assert verdict(1.0, fixed(memory=1.05, roof=T4)).bucket == "memory", "boost above the table"


def test_faster_than_a_measured_roof_is_a_note():
    found = verdict(1.0, fixed(compute=1.3))
    assert found.bucket == "compute"
    assert "More than all of it" in found.sentence
    assert "cost per operation" in verdict(1.0, fixed(host=1.3)).sentence


def test_ledger_adds_up_to_the_measured_time():
    book = ledger(10.0, fixed(compute=2.0, memory=3.0, host=7.0))
    assert {row.name: row.seconds for row in book.rows} == {
        "compute": 2.0, "memory": 3.0, "host": pytest.approx(2.0)}  # fmt: skip
    assert book.left_over_s == pytest.approx(3.0)
    assert sum(row.share for row in book.rows) + book.left_over_share == pytest.approx(1.0)
    assert str(book).count("\n") == 3 and "left over" in str(book)


def test_a_ledger_may_be_overdrawn():
    book = ledger(4.0, fixed(memory=5.0, host=1.0))
    assert book.left_over_s == pytest.approx(-1.0)
    assert book.rows[2].seconds == 0.0, "the host works while the kernels run"


@pytest.mark.parametrize("measured", [0.0, -1.0, float("nan")])
def test_a_time_must_be_above_zero(measured):
    for ask in (verdict, ledger):
        with pytest.raises(RooflineError, match="above 0 s"):
            ask(measured, fixed(memory=1.0))


def test_times_of_a_counted_function():
    import torch

    from helpers.counting import count

    x = torch.empty(2**20, dtype=torch.float16, device="meta")
    counted = count(lambda: x.cos().cos().cos())
    t = times(counted, T4, 1e-5)
    assert t.memory == pytest.approx(3 * 2 * 2 * 2**20 / 320e9)
    assert t.host == pytest.approx(3e-5)
    assert times(counted, T4, 1e-5, fused=True).memory == pytest.approx(t.memory / 3)
    w = torch.empty(512, 512, dtype=torch.float16, device="meta")
    assert times(count(lambda: w @ w), T4, 0.0).compute == pytest.approx(2 * 512**3 / 65e12)


# --- measured ceilings -------------------------------------------------------------------------


def test_measure_ceiling_on_the_cpu(monkeypatch):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU: the ceiling would be its own")
    monkeypatch.setattr(ceiling, "CPU_COPY_BYTES", 2**24)
    monkeypatch.setattr(ceiling, "CPU_SIDE", 128)
    roof = measure_ceiling("fp16")
    assert roof.label == "measured ceiling"
    assert roof.origin == "measured"
    assert set(roof.rates) == {"fp32"}, "a CPU is measured in fp32"
    assert roof.vector_rate == roof.rates["fp32"] / 2
    # Physical limits only: this may run on a busy machine.
    assert 1e7 < roof.bandwidth < 1e13
    assert 1e7 < roof.rates["fp32"] < 1e14
    assert 0 < roof.host_per_op < 1.0


def test_measure_ceiling_leaves_the_matmul_precision_alone(monkeypatch):
    import torch

    monkeypatch.setattr(ceiling, "CPU_COPY_BYTES", 2**20)
    monkeypatch.setattr(ceiling, "CPU_SIDE", 32)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        measure_ceiling("fp32")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_measure_ceiling_refuses_other_dtypes():
    with pytest.raises(RooflineError, match="fp16, bf16, fp32, not 'int8'"):
        measure_ceiling("int8")


@pytest.mark.parametrize("key", ["t4", "a100_80_sxm"])
def test_measure_ceiling_on_a_simulated_gpu_finds_the_published_roof(key):
    from helpers.simgpu import SimulatedGPU

    device = get(key)
    with SimulatedGPU(key):
        roof = measure_ceiling("fp16")
    published = sustained(device)
    assert roof.origin == "simulated"
    assert roof.device == f"{device.torch_names[0]} (simulated)"
    assert roof.lanes == device.fp32_lanes_per_sm
    assert roof.bandwidth == pytest.approx(published.bandwidth, rel=0.05)
    assert roof.rates["fp16"] == pytest.approx(published.rates["fp16"], rel=0.05)
    assert roof.vector_rate == pytest.approx(published.vector_rate, rel=0.05)
    assert 1e-6 < roof.host_per_op < 1e-3
