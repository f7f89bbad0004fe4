"""What functions ask for: FLOPs, bytes and kernels, against arithmetic and torch's own counter."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from helpers import counting
from helpers.counting import CountError, Op, Work, count, itemsize, kernels, op_work

DEVICES = ("cpu", "meta")


def tensors(device: str, dtype: torch.dtype = torch.float32) -> SimpleNamespace:
    """x, y: 4x8; w: 8x16; v: 8; s: scalar; table: 100x8; rows: 3 indices; q, k, v4: attention."""

    def new(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, dtype=dtype, device=device)

    return SimpleNamespace(
        x=new(4, 8), y=new(4, 8), w=new(8, 16), v=new(8), s=new(1)[0].clone(), table=new(100, 8),
        rows=torch.zeros(3, dtype=torch.int64, device=device), b=new(2, 4, 8), c=new(2, 8, 16),
        q=new(1, 2, 4, 8), image=new(2, 3, 8, 8), kernel=new(5, 3, 3, 3), cache=new(1, 10, 8),
        mask=torch.zeros(4, 8, dtype=torch.bool, device=device), out=new(4, 8),
    )  # fmt: skip


# function of the tensors above, FLOPs, bytes unfused, bytes ideal, kernels. fp32: x is 128 bytes.
CASES = {
    # pointwise: one FLOP per element and function, read and write
    "cos": (lambda t: t.x.cos(), 32, 256, 256, 1),
    "cos chain": (lambda t: t.x.cos().cos().cos(), 96, 768, 256, 3),
    "cos in place": (lambda t: t.x.cos_(), 32, 256, 256, 1),
    "cos in place twice": (lambda t: t.x.cos_().cos_(), 64, 512, 256, 2),
    "cos into out": (lambda t: torch.cos(t.x, out=t.out), 32, 256, 256, 1),
    "add": (lambda t: t.x + t.y, 32, 384, 384, 1),
    "add itself": (lambda t: t.x + t.x, 32, 256, 256, 1),
    "add its transpose": (lambda t: t.x[:, :4] + t.x[:, :4].t(), 16, 128, 128, 1),
    "add number": (lambda t: t.x + 1.0, 32, 256, 256, 1),
    "add scalar tensor": (lambda t: t.x + t.s, 32, 260, 260, 1),
    "add row": (lambda t: t.x + t.v, 32, 288, 288, 1),
    "add expanded": (lambda t: t.x + t.v.expand(4, 8), 32, 288, 288, 1),
    "add scaled": (lambda t: torch.add(t.x, t.y, alpha=2.0), 64, 384, 384, 1),
    "add in place": (lambda t: t.x.add_(t.y), 32, 384, 384, 1),
    "addcmul": (lambda t: torch.addcmul(t.x, t.y, t.out), 64, 512, 512, 1),
    "lerp": (lambda t: torch.lerp(t.x, t.y, 0.5), 96, 384, 384, 1),
    "square": (lambda t: t.x**2, 32, 256, 256, 1),
    "compare": (lambda t: t.x > 0, 32, 160, 160, 1),
    "where": (lambda t: torch.where(t.mask, t.x, t.y), 32, 416, 416, 1),
    "masked fill": (lambda t: t.x.masked_fill(t.mask, 0.0), 32, 288, 288, 1),
    "relu": (lambda t: F.relu(t.x), 32, 256, 256, 1),
    "gelu": (lambda t: F.gelu(t.x), 32, 256, 256, 1),
    "gate": (lambda t: F.silu(t.x) * t.y, 64, 640, 384, 2),
    "outer": (lambda t: torch.outer(t.v, t.v), 64, 288, 288, 1),
    "foreach": (lambda t: torch._foreach_mul([t.x, t.v], 2.0), 40, 320, 320, 1),
    # two halves of one tensor are the whole of it
    "halves": (lambda t: t.x[:, :4] * t.x[:, 4:], 16, 192, 192, 1),
    "half of it": (lambda t: t.x[:, :4].cos(), 16, 128, 128, 1),
    "windows": (lambda t: t.v.unfold(0, 3, 1).sum(), 18, 36, 36, 1),
    # writes only
    "zero": (lambda t: t.x.zero_(), 0, 128, 128, 1),
    "fill": (lambda t: t.x.fill_(1.0), 0, 128, 128, 1),
    "zeros": (lambda t: torch.zeros_like(t.x), 0, 128, 128, 1),
    "write then read": (lambda t: t.x.zero_().cos(), 32, 384, 256, 2),
    # copies
    "clone": (lambda t: t.x.clone(), 0, 256, 256, 1),
    "to fp16": (lambda t: t.x.half(), 0, 192, 192, 1),
    "to the same": (lambda t: t.x.to(torch.float32), 0, 0, 0, 0),
    "copy into fp16": (lambda t: t.x.half().copy_(t.y), 0, 384, 320, 2),
    "cat": (lambda t: torch.cat([t.x, t.y]), 0, 512, 512, 1),
    "contiguous": (lambda t: t.x.t().contiguous(), 0, 256, 256, 1),
    "reshape that copies": (lambda t: t.x.t().reshape(32), 0, 256, 256, 1),
    "item-wise write": (lambda t: t.x[0].copy_(t.v), 0, 64, 64, 1),
    # no kernel at all
    "views": (lambda t: t.x.t()[1:].unsqueeze(0).expand(3, 7, 4), 0, 0, 0, 0),
    "reshape": (lambda t: t.x.reshape(32), 0, 0, 0, 0),
    "empty": (lambda t: torch.empty_like(t.x), 0, 0, 128, 0),
    "nothing": (lambda t: t.x[:0].cos(), 0, 0, 0, 0),
    # reductions: one FLOP per input element, unless stated
    "sum": (lambda t: t.x.sum(), 32, 132, 132, 1),
    "mean of rows": (lambda t: t.x.mean(1), 32, 144, 144, 1),
    "max with index": (lambda t: t.x.max(1), 32, 128 + 16 + 32, 176, 1),
    "argmax": (lambda t: t.x.argmax(1), 32, 160, 160, 1),
    "cumsum": (lambda t: t.x.cumsum(0), 32, 256, 256, 1),
    "variance": (lambda t: t.x.var(1), 4 * 32, 144, 144, 1),
    "norm": (lambda t: torch.linalg.vector_norm(t.x), 2 * 32, 132, 132, 1),
    "softmax": (lambda t: t.x.softmax(1), 5 * 32, 256, 256, 1),
    "log softmax": (lambda t: t.x.log_softmax(1), 5 * 32, 256, 256, 1),
    "layer norm": (lambda t: F.layer_norm(t.x, (8,), t.v, t.v), 8 * 32, 288 + 32, 288, 1),
    "rms norm": (lambda t: F.rms_norm(t.x, (8,)), 3 * 32, 256, 256, 1),
    "rms norm, weight": (lambda t: F.rms_norm(t.x, (8,), t.v), 4 * 32, 288, 288, 1),
    "max pool": (lambda t: F.avg_pool2d(t.image, 2), 384, 1536 + 384, 1920, 1),
    "top k": (lambda t: t.x.topk(2), 32, 128 + 8 * 12, 224, 1),
    # matrix products: two FLOPs per multiply-add
    "matmul": (lambda t: t.x @ t.w, 1024, 896, 896, 1),
    "matmul with itself": (lambda t: t.x @ t.x.t(), 256, 128 + 64, 192, 1),
    "linear": (lambda t: F.linear(t.x, t.w.t()), 1024, 896, 896, 1),
    "linear, bias": (lambda t: F.linear(t.x, t.w[:, :8].t(), t.v), 512, 544, 544, 1),
    "addmm, beta 0": (lambda t: torch.addmm(t.x, t.x, t.w[:, :8], beta=0), 512, 512, 512, 1),
    "bmm": (lambda t: t.b @ t.c, 2048, 256 + 1024 + 512, 1792, 1),
    "einsum": (lambda t: torch.einsum("bij,bjk->bik", t.b, t.c), 2048, 1792, 1792, 1),
    "matrix, vector": (lambda t: torch.mv(t.x, t.v), 64, 176, 176, 1),
    "addmv": (lambda t: torch.addmv(t.s.expand(4), t.x, t.v), 64, 180, 180, 1),
    "dot": (lambda t: torch.dot(t.v, t.v), 16, 36, 36, 1),
    "conv2d": (
        lambda t: F.conv2d(t.image, t.kernel),
        2 * 2 * 36 * 5 * 27, 1536 + 540 + 1440, 3516, 1,
    ),
    "attention": (
        lambda t: F.scaled_dot_product_attention(t.q, t.q.clone(), t.q.cos()),
        64 + 4 * 8 * 16 * 2, 512 + 512 + 1024, 512, 3,
    ),
    "causal attention": (
        lambda t: F.scaled_dot_product_attention(t.q, t.q, t.q, is_causal=True), 1024, 512, 512, 1,
    ),
    # gathers read what they gather: 3 rows of 8, and 3 indices of 8 bytes
    "embedding": (lambda t: F.embedding(t.rows, t.table), 0, 96 + 24 + 96, 216, 1),
    "index": (lambda t: t.table[t.rows], 0, 216, 216, 1),
    "index select": (lambda t: t.table.index_select(0, t.rows), 0, 216, 216, 1),
    "index copy": (lambda t: t.table.index_copy_(0, t.rows, t.x[:3]), 0, 216, 216, 1),
    "index put": (lambda t: t.cache.__setitem__((0, t.rows), t.x[:3]), 0, 216, 216, 1),
    "index add": (lambda t: t.table.index_add_(0, t.rows, t.x[:3]), 0, 312, 312, 1),
    "gather": (lambda t: t.table.gather(0, t.rows.view(1, 3)), 0, 12 + 24 + 12, 48, 1),
    "scatter": (lambda t: t.table.scatter_(0, t.rows.view(1, 3), 1.0), 0, 24 + 12, 36, 1),
    # random numbers are written, not computed from memory
    "random": (lambda t: torch.rand_like(t.x), 0, 128, 128, 1),
    "uniform": (lambda t: t.x.uniform_(), 0, 128, 128, 1),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_table(name, device):
    fn, flops, unfused, ideal, launched = CASES[name]
    work = count(fn, tensors(device))
    found = (work.flops, work.bytes_unfused, work.bytes_ideal, work.kernels)
    assert found == (flops, unfused, ideal, launched), f"\n{work}"
    assert not [op for op in work.ops if op.kind == "other" and not op.flops]


def test_table_on_a_simulated_gpu():
    from helpers.simgpu import SimulatedGPU

    different = {}
    with SimulatedGPU("T4"):
        for name, (fn, *expected) in CASES.items():
            t = tensors("cpu")
            for key, value in vars(t).items():
                setattr(t, key, value.cuda())
            work = count(fn, t)
            found = [work.flops, work.bytes_unfused, work.bytes_ideal, work.kernels]
            if found != expected:
                different[name] = (found, expected)
        x = torch.zeros(2**20, device="cuda", dtype=torch.float16)
        chain = torch.compile(lambda: x.cos().cos().cos())
        assert count(chain).kernels == 3
        found = kernels(chain)
        assert (found.n, found.how) == (1, "modelled")
        assert kernels(lambda: x.cos().cos().cos()).n == 3
    assert not different


@pytest.mark.parametrize("name", CASES)
def test_no_grad_and_inference_mode_count_the_same(name):
    fn = CASES[name][0]
    with torch.no_grad():
        expected = count(fn, tensors("meta"))
    with torch.inference_mode():
        found = count(fn, tensors("meta"))
    assert (found.flops, found.bytes_unfused, found.bytes_ideal, found.kernels) == (
        expected.flops, expected.bytes_unfused, expected.bytes_ideal, expected.kernels
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_view_changes_nothing(name):
    fn = CASES[name][0]
    plain = count(fn, tensors("meta"))

    def with_views(t):
        t.x = t.x.unsqueeze(0).squeeze(0)
        t.w.t().t()
        return fn(t)

    viewed = count(with_views, tensors("meta"))
    assert (viewed.flops, viewed.bytes_unfused, viewed.bytes_ideal, viewed.kernels) == (
        plain.flops, plain.bytes_unfused, plain.bytes_ideal, plain.kernels
    )  # fmt: skip
    assert len(viewed.ops) > len(plain.ops)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.cos().cos(),
        lambda x: x.exp_(),
        lambda x: x.sum(1),
        lambda x: x.t().contiguous(),
        lambda x: F.silu(x) * x,
        lambda x: x.softmax(-1),
    ],
)
def test_twice_the_rows_are_twice_the_bytes(fn, dtype):
    one = count(fn, torch.empty(64, 32, dtype=dtype, device="meta"))
    two = count(fn, torch.empty(128, 32, dtype=dtype, device="meta"))
    assert two.flops == 2 * one.flops
    assert two.bytes_unfused == 2 * one.bytes_unfused
    assert two.bytes_ideal == 2 * one.bytes_ideal
    assert two.kernels == one.kernels


def test_the_cos_chain_and_the_gate():
    n = 2**27
    x = torch.empty(n, dtype=torch.float16, device="meta")
    work = count(lambda: x.cos().cos().cos())
    assert (work.bytes_unfused, work.bytes_ideal, work.kernels) == (12 * n, 4 * n, 3)
    assert work.flops == 3 * n
    assert (work.intensity, work.ideal_intensity) == (0.25, 0.75)
    assert all(op.functions == ("cos",) and op.dtype == "fp16" for op in work.ops)
    gate, up = torch.empty(2, n, dtype=torch.float16, device="meta").unbind()
    work = count(lambda: F.silu(gate) * up)
    assert (work.bytes_unfused, work.bytes_ideal) == (5 * 2 * n, 3 * 2 * n)


@pytest.mark.parametrize("n", [256, 4096])
def test_square_matmul_intensity_is_a_third_of_n(n):
    a, b = torch.empty(2, n, n, dtype=torch.float16, device="meta").unbind()
    assert count(torch.matmul, a, b).ideal_intensity == pytest.approx(n / 3)


# Against torch's own counter, where that counts


def _loss(module, *inputs):
    return lambda: module(*inputs).sum().backward()


def _models(device):
    image = torch.rand(2, 3, 16, 16, device=device, requires_grad=True)
    x = torch.rand(4, 6, 32, device=device, requires_grad=True)
    conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2))
    mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 32))
    conv, mlp = conv.to(device), mlp.to(device)
    yield "linear", lambda: mlp(x)
    yield "linear, backward", _loss(mlp, x)
    yield "conv", lambda: conv(image)
    yield "conv, backward", _loss(conv, image)
    up = nn.ConvTranspose2d(3, 8, 4, stride=2).to(device)
    yield "transposed conv, backward", _loss(up, image)
    yield "einsum", lambda: torch.einsum("bij,bkj->bik", x, x)
    yield "bmm, backward", lambda: (x @ x.transpose(1, 2)).sum().backward()
    yield "baddbmm", lambda: torch.baddbmm(x[:, :, :6], x, x.transpose(1, 2))
    if device == "meta":  # on the CPU torch counts attention as nothing
        q = torch.rand(2, 4, 6, 8, device=device, requires_grad=True)
        yield "attention", lambda: F.scaled_dot_product_attention(q, q, q)
        yield "attention, backward", _loss(F.scaled_dot_product_attention, q, q, q)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, device=device)
        yield "encoder layer", lambda: layer(x)
        yield "encoder layer, backward", _loss(layer, x)


@pytest.mark.parametrize("device", DEVICES)
def test_agrees_with_flop_counter_mode(device):
    for name, fn in _models(device):
        with FlopCounterMode(display=False) as counter:
            fn()
        assert count(fn).matmul_flops == counter.get_total_flops() > 0, name


def test_attention_on_the_cpu_which_torch_counts_as_nothing():
    q = torch.rand(2, 4, 6, 8, requires_grad=True)
    forward = 4 * 2 * 4 * 6 * 6 * 8
    with FlopCounterMode(display=False) as counter:
        F.scaled_dot_product_attention(q, q, q)
    assert counter.get_total_flops() == 0
    assert count(F.scaled_dot_product_attention, q, q, q).matmul_flops == forward
    # the fused backward computes the scores again: five products after the forward's two
    work = count(_loss(F.scaled_dot_product_attention, q, q, q))
    assert work.matmul_flops == forward + forward // 2 * 5


@pytest.mark.parametrize("device", DEVICES)
def test_attention_is_one_operation_wherever_it_hides(device):
    x = torch.rand(2, 6, 32, device=device)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, device=device).eval()
    work = count(layer, x)
    assert [op.kind for op in work.ops].count("attention") == 1
    q, kv = torch.rand(1, 8, 4, 16, device=device), torch.rand(1, 2, 10, 16, device=device)
    work = count(F.scaled_dot_product_attention, q, kv, kv.clone(), enable_gqa=True)
    assert work.kernels == 1
    assert work.flops == 4 * 8 * 4 * 10 * 16
    assert work.bytes_unfused == (2 * 512 + 2 * 320) * 4
    mask = torch.zeros(4, 10, dtype=torch.bool, device=device)
    k = torch.rand(1, 8, 10, 16, device=device)
    work = count(F.scaled_dot_product_attention, q, k, k.clone(), attn_mask=mask)
    assert work.bytes_unfused == (2 * 512 + 2 * 1280) * 4 + 40


# A decoder layer with the shapes of Llama-2-7B, written for this test


class Layer(nn.Module):
    def __init__(self, width=4096, heads=32, hidden=11008):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        rows, tokens, width = x.shape
        h = self.norm1(x)
        q, k, v = (
            part(h).view(rows, tokens, self.heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(rows, tokens, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_llama_layer_on_the_meta_device(mode):
    with torch.device("meta"):
        layer, tokens = Layer().half(), 128
        x = torch.empty(1, tokens, 4096, dtype=torch.float16)
    parameters = sum(p.numel() for p in layer.parameters())
    assert parameters == 202_383_360
    with mode():
        work = count(layer, x)
    weights = parameters - 2 * 4096
    assert work.matmul_flops == 2 * weights * tokens + 4 * 4096 * tokens**2
    assert work.bytes_ideal == 2 * (parameters + 2 * x.numel())
    linear = sum(op.bytes_read for op in work.ops if op.kind == "matmul")
    assert linear == 2 * (weights + tokens * (6 * 4096 + 11008))
    assert [op.kind for op in work.ops].count("attention") == 1
    assert work.kernels == 7 + 1 + 2 + 2 + 2  # products, attention, norms, SiLU and gate, adds


def test_decode_step_writes_one_slot_of_the_cache():
    cache = torch.empty(1, 32, 1000, 128, dtype=torch.float16, device="meta")
    key = torch.empty(1, 32, 1, 128, dtype=torch.float16, device="meta")
    where = torch.empty(1, dtype=torch.int64, device="meta")
    slot = 32 * 128 * 2

    def step():
        cache[:, :, where] = key

    for work in (count(step), count(lambda: cache.index_copy_(2, where, key))):
        assert work.bytes_unfused == work.bytes_ideal == 2 * slot + 8


# What is outside, what is inside


def test_ideal_bytes_follow_storages_not_python_objects():
    base = torch.empty(100, 100, device="meta")
    whole = base.numel() * 4
    assert count(lambda: base.cos() + base.view(-1)[:].view(100, 100)).bytes_ideal == 2 * whole
    assert count(lambda: base[:50].sum() + base[25:75].sum()).bytes_ideal == 3 * whole // 4 + 4
    assert count(lambda: (base[:50].cos(), base[50:].cos())).bytes_ideal == 2 * whole
    assert count(lambda: base.cos()[:10]).bytes_ideal == whole + whole // 10
    assert count(lambda: base.t()).bytes_ideal == 0
    assert count(lambda: None).bytes_ideal == 0
    assert count(lambda: {"a": [base.cos()], "b": base.sin()}).bytes_ideal == 3 * whole


def test_an_intermediate_is_free_even_when_its_memory_is_used_again():
    x = torch.rand(1000)

    def fn():
        for _ in range(20):  # each freed before the next is made, at the same address
            x.cos()
        return None

    assert count(fn).bytes_ideal == 4000


def test_gradients_are_results():
    w = torch.empty(8, 16, device="meta", requires_grad=True)
    x = torch.empty(4, 8, device="meta")
    work = count(lambda: (x @ w).sum().backward())
    assert w.grad is not None
    # read x and w, write the gradient; the ones that backward starts from stay inside
    assert work.bytes_ideal == (32 + 128 + 128) * 4
    assert work.matmul_flops == 2 * 2 * 4 * 8 * 16


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_step_has_a_flop_rule_for_everything(device):
    embedding, out = nn.Embedding(50, 8).to(device), nn.Linear(8, 10).to(device)
    conv, norm = nn.Conv2d(3, 8, 3).to(device), nn.BatchNorm2d(8).to(device)
    parameters = [p for m in (embedding, out, conv, norm) for p in m.parameters()]
    optimizer = torch.optim.AdamW(parameters, foreach=True)
    image = torch.rand(2, 3, 16, 16, device=device)
    words = torch.zeros(2, 5, dtype=torch.int64, device=device)

    def step():
        h = F.max_pool2d(F.hardswish(norm(conv(image))), 2).mean((2, 3))
        h = F.dropout(h + embedding(words).mean(1), 0.1)
        F.cross_entropy(out(h), words[:, 0]).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    work = count(step)
    assert not [op.name for op in work.ops if op.kind == "other"]
    size = sum(p.numel() for p in parameters) * 4
    assert work.bytes_ideal > 3 * size  # parameters read and written, gradients written


def test_changed_outside_is_written_once():
    x, y = torch.empty(2, 100, device="meta").unbind()
    assert count(lambda: x.add_(y).mul_(2).add_(y)).bytes_ideal == 3 * 400
    assert count(lambda: x.copy_(y)).bytes_ideal == 2 * 400
    assert count(lambda: x[10:20].zero_()).bytes_ideal == 40
    state = {}
    assert count(lambda: state.update(out=y.cos())).bytes_ideal == 400  # kept, but not returned


# op_work, the part that the simulated GPU calls


class Wrapped(torch.Tensor):
    """A subclass that is meta to C++ and says so to nobody, as the simulated GPU's is."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), storage_offset=inner.storage_offset(),
            dtype=inner.dtype, device="meta",
        )  # fmt: skip

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from torch.utils._pytree import tree_map

        kwargs = kwargs or {}
        wrappers = {id(a.inner): a for a in args if isinstance(a, Wrapped)}
        args, kwargs = tree_map(lambda a: a.inner if isinstance(a, Wrapped) else a, (args, kwargs))
        out = func(*args, **kwargs)
        return tree_map(
            lambda o: (
                (wrappers[id(o)] if id(o) in wrappers else cls(o))
                if isinstance(o, torch.Tensor)
                else o
            ),
            out,
        )


class Flattened(Wrapped):
    def __tensor_flatten__(self):
        return ["inner"], None


@pytest.mark.parametrize("cls", [Wrapped, Flattened])
@pytest.mark.parametrize(
    "name", ["cos chain", "cos in place", "halves", "gate", "linear", "views", "reshape", "softmax"]
)
def test_wrapper_subclasses_count_like_plain_tensors(cls, name):
    fn, flops, unfused, ideal, launched = CASES[name]
    t = tensors("meta")
    for key, value in vars(t).items():
        setattr(t, key, cls(value))
    work = count(fn, t)
    found = (work.flops, work.bytes_unfused, work.bytes_ideal, work.kernels)
    assert found == (flops, unfused, ideal, launched)


def test_op_work_of_single_overloads():
    aten = torch.ops.aten
    x, w = torch.empty(4, 8, device="meta"), torch.empty(8, 16, device="meta")
    op = op_work(aten.cos.default, (x,), {}, x.cos())
    assert op == Op(
        "aten.cos.default", "pointwise", 1, 32, 128, 128, 32, "fp32", ("cos",), ((4, 8),)
    )
    assert op.bytes == 256
    assert op_work(aten.cos_.default, (x,), None, x).functions == ("cos",)
    assert op_work(aten.t.default, (x,), {}, x.t()).kind == "view"
    assert op_work(aten.linear.default, (x, w.t()), {}, x @ w).flops == 1024
    assert op_work(aten.reshape.default, (x, (32,)), {}, x.reshape(32)).kind == "view"
    copied = op_work(aten.reshape.default, (x.t(), (32,)), {}, x.t().reshape(32))
    assert (copied.kind, copied.bytes) == ("copy", 256)
    item = op_work(aten._local_scalar_dense.default, (torch.ones(()),), {}, 1.0)
    assert (item.kind, item.bytes_read, item.bytes_written) == ("copy", 4, 0)
    table = torch.empty(50_000, 64, device="meta", dtype=torch.bfloat16)
    rows = torch.empty(2, dtype=torch.int64, device="meta")
    op = op_work(aten.embedding.default, (table, rows), {}, torch.empty(2, 64, device="meta"))
    assert (op.kind, op.elements, op.dtype) == ("gather", 128, "bf16")
    gelu = op_work(aten.gelu.default, (x,), {"approximate": "tanh"}, x.clone())
    assert gelu.functions == ("gelu_tanh",)
    assert [itemsize(name) for name in ("fp16", "bf16", "fp32", "int64", "bool")] == [2, 2, 4, 8, 1]


def test_every_pointwise_overload_is_known_as_such():
    """Of what torch tags pointwise, only copies, fills, masks and random numbers are another."""
    from helpers.counting.rules import rule_of

    kinds = {}
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if hasattr(packet, "overloads") else ():
            func = getattr(packet, overload)
            if torch.Tag.pointwise in func.tags:
                kinds.setdefault(rule_of(func).kind, set()).add(name)
    assert len(kinds["pointwise"]) > 200
    assert "other" not in kinds
    assert not kinds.get("view", set()) - {"positive"}
    assert not kinds.get("reduction", set()) - {"equal"}


def test_an_unknown_operation_is_counted_in_bytes_and_named():
    from torch import library

    with library._scoped_library("countingtest", "DEF") as ours:
        ours.define("twice(Tensor x) -> Tensor")
        ours.impl("twice", lambda x: torch.empty_like(x), "CompositeExplicitAutograd")
        x = torch.empty(100, device="meta")
        work = count(torch.ops.countingtest.twice, x)
    assert (work.bytes_unfused, work.flops, work.ops[-1].kind) == (800, 0, "other")
    assert "no FLOP rule for countingtest.twice: counted as 0 FLOP" in str(work)


# The table


def test_table_text():
    x, w = torch.empty(64, 64, device="meta"), torch.empty(64, 64, device="meta")
    text = str(count(lambda: (x @ w.t()).cos().cos()))
    lines = text.splitlines()
    assert lines[0] == "3 operations and 1 view, 532.5 kFLOP"
    assert lines[1] == "bytes unfused 114.7 kB (4.643 FLOP/B), ideal 49.15 kB (10.83 FLOP/B)"
    assert lines[2].split() == ["operation", "calls", "shapes", "dtype", "FLOPs", "bytes", "share"]
    assert lines[3].split() == ["cos", "2", "64x64", "fp32", "8.192", "kFLOP", "65.54", "kB",
                                "57.1%"]  # fmt: skip
    assert lines[4].startswith("mm             1  64x64, 64x64")
    assert len(lines) == 5
    assert str(count(lambda: None)).startswith("0 operations and 0 views, 0 FLOP")


def test_by_name_adds_up():
    x = torch.empty(10, 10, device="meta")
    work = count(lambda: x.cos().cos() @ x.t() + 1)
    rows = work.by_name()
    assert sum(op.flops for op in rows) == work.flops
    assert sum(op.bytes for op in rows) == work.bytes_unfused
    assert sum(op.calls for op in rows) == len(work.ops)
    cos = next(op for op in rows if op.name == "aten.cos.default")
    assert (cos.calls, cos.flops, cos.elements) == (2, 200, 200)
    assert Work((), 0).intensity == 0.0


# Errors


def test_errors_are_one_sentence_naming_the_operation():
    x = torch.empty(4, 8, device="meta")
    with pytest.raises(CountError, match=r"raised RuntimeError in aten\.mm\.default: .*; run it "):
        count(lambda: x @ x)
    with pytest.raises(CountError, match="in Python before any operation: division by zero"):
        count(lambda: 1 / 0)
    with pytest.raises(CountError, match=r"KeyError in Python after aten\.cos\.default"):
        count(lambda: (x.cos(), {}["lost"]))
    with pytest.raises(CountError, match=r"RuntimeError in torch\.functional\.einsum: "):
        count(lambda: torch.einsum("ij,jk->ik", x, x))
    with pytest.raises(CountError, match=r"got Tensor: write count\(lambda: \.\.\.\)"):
        count(x)
    with pytest.raises(CountError, match=r"write kernels\(lambda: \.\.\.\)"):
        kernels(None)
    with pytest.raises(CountError, match="your lambda raised ZeroDivisionError while its kernels"):
        kernels(lambda: 1 / 0)
    error = CountError("one sentence")
    assert error._render_traceback_() == ["CountError: one sentence"]


def test_everything_is_restored_after_an_error():
    before = F.scaled_dot_product_attention
    with pytest.raises(CountError):
        count(lambda: 1 / 0)
    assert F.scaled_dot_product_attention is before
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    x = torch.rand(4)
    work = count(lambda: x.cos())
    x.cos()
    assert work.kernels == 1


def test_import_needs_no_torch():
    code = "import sys, helpers.counting; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# kernels


def test_kernels_in_eager_mode_on_the_cpu():
    x = torch.rand(10)
    found = kernels(lambda: x.cos().view(2, 5).t().cos())
    assert (found.n, found.how) == (2, "eager operations")
    assert str(found) == "2 kernels (eager operations): aten.cos.default, aten.cos.default"


def test_compiled_functions_are_counted_as_written_and_stay_compiled():
    from torch._dynamo.utils import counters

    @torch.compile(backend="eager")  # quick to compile, and kernels() puts Inductor in its place
    def chain(x):
        return x.cos().cos().cos()

    x = torch.rand(1000)
    work = count(chain, x)  # before it was ever compiled
    assert (work.kernels, work.bytes_unfused, work.bytes_ideal) == (3, 24_000, 8_000)
    chain(x)
    compiled = counters["stats"]["unique_graphs"]
    assert compiled >= 1
    assert count(chain, x).kernels == 3
    found = kernels(lambda: chain(x).sum())
    assert (found.n, found.how) == (2, "profiler")
    assert "cpp_fused_cos" in found.names[0]
    again = counters["stats"]["unique_graphs"]
    chain(x)
    assert kernels(lambda: chain(x).sum()).n == 2  # the second time nothing is compiled
    assert counters["stats"]["unique_graphs"] == again


def test_kernels_of_a_simulated_gpu_come_from_its_trace(monkeypatch):
    log = ["earlier"]
    monkeypatch.setattr(torch.cuda, "_brrr_trace", lambda: list(log), raising=False)
    found = kernels(lambda: log.append("cos"))
    assert (found.n, found.names, found.how) == (1, ("cos",), "modelled")

    def drain():
        names, log[:] = list(log), []
        return names

    monkeypatch.setattr(torch.cuda, "_brrr_trace", drain, raising=False)
    found = kernels(lambda: log.extend(["cos", "cos"]))
    assert (found.n, found.names) == (2, ("cos", "cos"))


class FakeProfile:
    """A profiler that reports these events, one list per use; the last for good."""

    def __init__(self, *traces):
        self.traces = list(traces)

    def __call__(self, activities):
        assert torch.profiler.ProfilerActivity.CUDA in activities
        return self

    def __enter__(self):
        self.now = self.traces.pop(0) if len(self.traces) > 1 else self.traces[0]
        return self

    def __exit__(self, *_):
        return None

    def events(self):
        kinds = torch.autograd.DeviceType
        return [
            SimpleNamespace(
                name=name, device_type=getattr(kinds, kind), is_user_annotation=name == "note"
            )
            for kind, name in self.now
        ]


def test_kernels_of_a_real_gpu_come_from_the_profiler(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    launches = [("CPU", "aten::cos"), ("CUDA", "note"), ("CUDA", "vectorized_cos"),
                ("CUDA", "Memcpy DtoD")]  # fmt: skip
    monkeypatch.setattr(torch.profiler, "profile", FakeProfile([], launches))
    calls = []
    found = kernels(calls.append, 1)
    assert (found.n, found.names) == (2, ("vectorized_cos", "Memcpy DtoD"))
    assert found.how == "profiler" and len(calls) == 3  # warm-up, empty trace, trace
    monkeypatch.setattr(torch.profiler, "profile", FakeProfile([("CPU", "aten::cos")]))
    x = torch.rand(4)
    found = kernels(lambda: x.cos())
    assert (found.n, found.how) == (1, "eager operations")
    assert "the profiler reported no kernels on the GPU" in found.note


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
def test_kernels_on_a_real_gpu():
    x = torch.rand(2**20, device="cuda")
    found = counting.kernels(lambda: x.cos().cos().cos())
    assert (found.n, found.how) == (3, "profiler")
    chain = torch.compile(lambda: x.cos().cos().cos())
    assert counting.kernels(chain).n == 1
    assert counting.count(chain).kernels == 3
