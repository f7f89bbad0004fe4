"""Inference arithmetic against the facts and against published crossings and gains."""

import math

import pytest

from helpers import devices, inference, roofline
from helpers.facts import fact

LLAMA = inference.model()


def roof(key):
    return roofline.datasheet(devices.get(key))


def test_shapes_give_the_published_sizes():
    expected = {
        "parameters": LLAMA.parameters,
        "weights": LLAMA.weights,
        "decode_weights": LLAMA.step_weights,
        "decode_flops": 2 * LLAMA.matrices,
        "kv_bytes": LLAMA.kv_bytes,
        "layer_parameters": LLAMA.layer_matrices + 2 * LLAMA.hidden,
    }
    for name, value in expected.items():
        assert value == fact(f"model.llama2_7b.{name}").value, name


def test_batch_1_decode_is_the_weights_over_the_bandwidth():
    rates = {"t4": 24.2, "l4": 22.7, "a100_40_sxm": 117.7, "a100_80_sxm": 154.3, "h100_sxm": 253.5}
    for key, tokens in rates.items():
        step = inference.decode(LLAMA, roof(key))
        assert step.bound == "memory"
        assert inference.tokens_per_second(1, step.seconds) == pytest.approx(tokens, rel=2e-3)


@pytest.mark.parametrize(("context", "gain"), [(128, 27.7), (1024, 14.5), (2048, 9.6)])
def test_what_32_sequences_gain_over_one_on_an_a100(context, gain):
    one = inference.decode(LLAMA, roof("a100_80_sxm"), 1, context).seconds
    many = inference.decode(LLAMA, roof("a100_80_sxm"), 32, context).seconds
    assert 32 * one / many == pytest.approx(gain, abs=0.06)


def test_one_layer_crosses_a_little_above_the_ridge():
    assert inference.crossing(roof("a100_80_sxm"), 4096, 4096) == pytest.approx(165.4, abs=0.3)
    assert inference.crossing(roof("t4"), 4096, 4096) == pytest.approx(225.5, abs=0.3)
    assert inference.crossing(roof("t4"), 256, 256) == math.inf


def test_the_whole_step_crosses_only_at_short_context():
    assert inference.step_crossing(LLAMA, roof("a100_80_sxm"), 128) == pytest.approx(671, abs=2)
    for device in devices.all_devices():
        if "fp16" in device.peak and device.peak["fp16"] / device.bandwidth > 100:
            assert inference.step_crossing(LLAMA, roof(device.key), 256) == math.inf


def test_what_fits_at_92_percent():
    # 24, 40 and 80 GB: 16, 43 and 111 sequences of 1024 tokens
    fits = {24e9: 16, 40e9: 43, 80e9: 111}
    assert {m: inference.largest_batch(LLAMA, m, 1024) for m in fits} == fits
    assert inference.largest_batch(LLAMA, 8e9, 1024) == 0
    t4 = devices.get("t4").memory
    assert 2000 <= inference.largest_batch(LLAMA, t4, 1) <= 2100


def test_prefill_of_a_long_prompt_computes_and_decode_moves():
    step = inference.prefill(LLAMA, roof("a100_80_sxm"), 2048)
    assert step.bound == "compute" and step.intensity > 1000
    tokens = 2048 * 2 * LLAMA.matrices
    assert 0.9 * tokens < step.weights.flops < tokens
    assert step.attention.flops < 0.1 * step.weights.flops
    far = inference.prefill(LLAMA, roof("a100_80_sxm"), 65536)
    assert far.attention.flops > far.weights.flops


def test_attention_in_decode_reads_a_byte_per_flop():
    step = inference.decode(LLAMA, roof("t4"), 7, 900)
    assert step.attention.intensity == pytest.approx(1.0)


def test_a_slow_host_decides():
    step = inference.decode(LLAMA, roof("a100_80_sxm"), host=0.0392)
    assert (step.bound, step.seconds) == ("overhead", 0.0392)


def test_int8_halves_the_trip_of_the_weights():
    small = LLAMA.quantised(8)
    assert small.weights == LLAMA.weights / 2 and small.kv_bytes == LLAMA.kv_bytes
    assert small.name == "Llama-2-7B, int8"


def test_the_published_utilisation():
    # 107 tokens/s over 2.0 TB/s is 72 %, with 6.74e9 parameters
    share = inference.bandwidth_utilisation(LLAMA.weights, 107.0, 2e12)
    assert share == pytest.approx(0.72, abs=0.002)


def test_cost_per_million_tokens():
    assert inference.cost_per_million(0.18, 18) == pytest.approx(2.78, abs=0.005)
    assert inference.cost_per_million(2.50, 105) == pytest.approx(6.61, abs=0.005)
    half = inference.cost_per_million(2.50, 105, utilisation=0.5)
    assert half == 2 * inference.cost_per_million(2.50, 105)


@pytest.mark.parametrize(
    "call",
    [
        lambda: inference.cost_per_million(1, 0),
        lambda: inference.cost_per_million(1, 10, 0),
        lambda: inference.cost_per_million(1, 10, 1.2),
        lambda: inference.decode(LLAMA, roof("t4"), 0),
        lambda: inference.decode(LLAMA, roof("t4"), 1, -1),
        lambda: inference.prefill(LLAMA, roof("t4"), 0),
        lambda: inference.largest_batch(LLAMA, 8e9, 0),
    ],
)
def test_what_no_inference_can_be_is_named(call):
    with pytest.raises(inference.InferenceError, match=r"at least 1|A cost needs"):
        call()
