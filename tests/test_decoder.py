"""The decoder layer: its values, its size, and its work at Llama's shapes without memory."""

import pytest
import torch

from helpers import counting, inference
from helpers.decoder import Decoder

SMALL = dict(
    width=64, heads=4, kv_heads=4, inner=96, layers=2, words=50, dtype=torch.float64, device="cpu"
)


def small(**changes):
    torch.manual_seed(0)
    model = Decoder(**SMALL | changes)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def hidden(model, tokens, at):
    """What stands before the head, for all rows."""
    caught = []
    hook = model.head.register_forward_hook(lambda module, inputs, out: caught.append(out))
    with torch.no_grad():
        model(tokens, at)
    hook.remove()
    return caught[0]


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_token_by_token_gives_what_the_whole_prompt_gives(kv_heads):
    model = small(kv_heads=kv_heads)
    tokens = torch.randint(0, 50, (3, 7))
    model.start(3, 7)
    whole = hidden(model, tokens, torch.arange(7))
    model.start(3, 7)
    for i in range(7):
        last = hidden(model, tokens[:, i : i + 1], torch.tensor([i]))
    assert torch.allclose(whole, last, atol=1e-10)


def test_attention_is_the_textbook_one():
    """One layer against softmax(QK/sqrt(d) + mask) V written out, positions rotated."""
    model = small(layers=1)
    layer = model.layers[0]
    model.start(2, 5)
    x, at = torch.randn(2, 5, 64, dtype=torch.float64), torch.arange(5)
    turn, mask = model.turns[at][None, :, None], model.bias[at][None, None]
    with torch.no_grad():
        got = layer.attend(x, at, turn, mask, model.caches[0])
        q, k, v = (t.view(2, 5, 4, 16) for t in layer.qkv(x).split(64, -1))
        angle = torch.view_as_complex(turn.contiguous())
        q, k = (
            torch.view_as_real(torch.view_as_complex(t.reshape(2, 5, 4, 8, 2)) * angle).flatten(-2)
            for t in (q, k)
        )
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / 4.0
        scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -1e4)
        out = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).reshape(2, 5, 64)
        assert torch.allclose(got, layer.out(out), atol=1e-10)


def test_a_later_token_does_not_change_an_earlier_row():
    model = small()
    tokens = torch.randint(0, 50, (1, 6))
    model.start(1, 6)
    first = hidden(model, tokens[:, :4], torch.arange(4))
    other = tokens.clone()
    other[:, 4:] = 0
    model.start(1, 6)
    again = hidden(model, other[:, :4], torch.arange(4))
    assert torch.equal(first, again)


def test_at_llama_shapes_it_has_the_published_size_and_needs_no_memory():
    model = Decoder(device="meta")
    shapes = inference.model()
    assert sum(p.numel() for p in model.parameters()) == shapes.parameters
    model.start(1, 128)
    with torch.no_grad():
        work = counting.count(model, torch.zeros(1, 1, dtype=torch.long, device="meta"),
                              torch.zeros(1, dtype=torch.long, device="meta"))  # fmt: skip
    attention = 4 * shapes.layers * shapes.hidden * 128
    assert work.matmul_flops == pytest.approx(2 * shapes.matrices + attention, rel=1e-3)
    assert work.bytes_unfused > shapes.step_weights


def test_the_next_token_is_the_word_with_the_highest_score():
    model = small()
    tokens, at = torch.randint(0, 50, (3, 4)), torch.arange(4)
    model.start(3, 4)
    with torch.no_grad():
        scores = model.scores(tokens, at)
        assert scores.shape == (3, 50)
        assert torch.equal(model(tokens, at), scores.argmax(-1))
