"""Devices: the datasheet worked out from the silicon, and names that only look alike."""

import dataclasses
import subprocess
import sys

import pytest

from helpers import devices
from helpers.devices import UnknownDevice, all_devices, get, is_simulated, lookup, slots
from helpers.facts import FactError, fact, facts

KEYS = [device.key for device in all_devices()]

# Cards whose tensor cores accumulate in FP32 at half the rate of their architecture.
HALVED = {"a10g", "rtx_3090", "rtx_4090"}


def clock(device, kind="boost_clock"):
    found = facts().get(f"device.{device.key}.{kind}") or fact(f"device.{device.key}.boost_clock")
    return found.value


def architecture(device, kind):
    major, minor = device.capability
    return fact(f"architecture.sm{major}{minor}.{kind}").value


@pytest.mark.parametrize("key", KEYS)
def test_fp32_is_lanes_times_two_times_clock(key):
    device = get(key)
    worked_out = device.sms * device.fp32_lanes_per_sm * 2 * clock(device)
    assert device.peak["fp32"] == pytest.approx(worked_out, rel=0.02)


@pytest.mark.parametrize("key", KEYS)
def test_tensor_core_rates_follow_from_the_silicon(key):
    device = get(key)
    half = 2 if key in HALVED else 1
    fp16 = device.sms * architecture(device, "fma_fp16") * 2 * clock(device, "tensor_clock") / half
    assert device.peak["fp16"] == pytest.approx(fp16, rel=0.02)
    if device.has_bf16:
        assert device.peak["bf16"] == device.peak["fp16"]
        assert device.peak["tf32"] == pytest.approx(device.peak["fp16"] / 2, rel=0.02)
    if "int8" in device.peak and device.capability >= (7, 5):
        lanes = architecture(device, "fma_int8")
        halved = 2 if key == "a10g" else 1  # the GeForce cards halve FP32 accumulation only
        int8 = device.sms * lanes * 2 * clock(device, "tensor_clock") / halved
        assert device.peak["int8"] == pytest.approx(int8, rel=0.02)


def test_no_figure_counts_sparsity():
    sparse = {"l4": 242e12, "a10": 250e12, "a100_80_sxm": 624e12, "h100_sxm": 1979e12}
    for key, advertised in sparse.items():
        assert get(key).peak["fp16"] == pytest.approx(advertised / 2, rel=0.01)


def test_t4_bandwidth_is_clock_times_width():
    worked_out = fact("device.t4.memory_clock").value * 2 * fact("device.t4.bus_width").value / 8
    assert get("t4").bandwidth == pytest.approx(worked_out, rel=0.001)


@pytest.mark.parametrize("key", KEYS)
def test_a_device_is_plausible(key):
    device = get(key)
    assert device.has_bf16 == (device.capability >= (8, 0))
    assert device.dtype == ("bf16" if device.has_bf16 else "fp16")
    assert "tf32" in device.peak or not device.has_bf16
    assert device.pcie < device.bandwidth / 9
    assert device.vector_rate == device.peak["fp32"] / 2
    if device.sustained_bandwidth is not None:
        assert 0.7 < device.sustained_bandwidth / device.bandwidth < 1.0
    for dtype, rate in device.sustained.items():
        if dtype in device.peak:  # boost above the datasheet's clock is real: up to 8 %
            assert 0.4 < rate / device.peak[dtype] < 1.1, dtype
    published = device.sustained.get("fp32")
    assert device.sustained_vector_rate == (published / 2 if published else None)


def test_the_cards_of_the_course_are_there():
    assert {"t4", "p100_pcie", "l4", "a10", "a10g", "a100_40_sxm", "a100_40_pcie", "a100_80_sxm",
            "a100_80_pcie", "h100_pcie", "h100_sxm", "h200", "rtx_3090",
            "rtx_4090"} <= set(KEYS)  # fmt: skip
    assert {key for key in KEYS if key.startswith("v100")} == {
        "v100_sxm_16", "v100_sxm_32", "v100_pcie_16", "v100_pcie_32"}  # fmt: skip


def test_devices_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        get("t4").bandwidth = 1.0
    with pytest.raises(TypeError):
        get("t4").peak["fp16"] = 1.0


@pytest.mark.parametrize("key", KEYS)
def test_every_torch_name_is_found(key):
    for name in get(key).torch_names:
        assert lookup(name).key == key
        assert lookup(name + devices.SIMULATED).key == key
        bare = name.removeprefix("NVIDIA ").removeprefix("Tesla ")
        assert lookup(bare).key == key, "older drivers leave the prefix out"
        assert lookup(f"  {name.upper()} ").key == key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Tesla T4", "t4"),
        ("Tesla T4 (simulated)", "t4"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L4", "l4"),
        ("A100-SXM4-40GB", "a100_40_sxm"),
        ("A100-SXM4-80GB", "a100_80_sxm"),
        ("NVIDIA A100 80GB PCIe", "a100_80_pcie"),
        ("GeForce RTX 3090", "rtx_3090"),
        ("Tesla V100-SXM2-32GB", "v100_sxm_32"),
        ("NVIDIA H100 80GB HBM3", "h100_sxm"),
        ("NVIDIA H100 PCIe", "h100_pcie"),
    ],
)
def test_lookup(name, key):
    assert lookup(name).key == key


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA L40",
        "NVIDIA L40S",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA H100 NVL",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA A100",
        "NVIDIA A10M",
        "NVIDIA T400",
        "NVIDIA T4G",
        "Tesla T40",
        "Tesla P100-SXM2-16GB",
        "Tesla V100S-PCIE-32GB",
        "NVIDIA GH200 480GB",
        "NVIDIA B200",
        "AMD Instinct MI300X",
        "Tesla",
        "cpu",
        "",
        "L 4",
        "Tesla T4 (simulated) 2",
    ],
)
def test_near_misses_are_unknown(name):
    assert lookup(name) is None


def test_the_second_key_must_fit():
    name = "NVIDIA A100-SXM4-80GB"
    assert lookup(name, sms=108, memory=85_100_000_000).key == "a100_80_sxm"
    assert lookup(name, sms=98) is None
    assert lookup(name, memory=10 * 2**30) is None
    assert lookup("Tesla T4", memory=round(14.56 * 2**30)).key == "t4"
    assert lookup("NVIDIA GeForce RTX 4090", memory=48 * 2**30) is None, "a rebuilt card"


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ("T4", "t4"),
        ("t4", "t4"),
        ("Tesla T4", "t4"),
        ("Tesla T4 (simulated)", "t4"),
        ("A100-80", "a100_80_sxm"),
        ("A100-40", "a100_40_sxm"),
        ("A100 80 GB SXM", "a100_80_sxm"),
        ("a100_80_pcie", "a100_80_pcie"),
        ("H100", "h100_sxm"),
        ("RTX 4090", "rtx_4090"),
        ("NVIDIA L4", "l4"),
    ],
)
def test_get(asked, key):
    assert get(asked).key == key


@pytest.mark.parametrize("asked", ["B200", "L40S", "RTX 4090 Laptop", "", "A1000"])
def test_get_names_what_is_known(asked):
    with pytest.raises(UnknownDevice, match=r"Known: t4, .*rtx_4090"):
        get(asked)


def test_keys_names_and_torch_names_are_unique():
    for attribute in ("key", "name"):
        values = [getattr(device, attribute) for device in all_devices()]
        assert len(set(values)) == len(values)
    names = [name for device in all_devices() for name in device.torch_names]
    assert len(set(names)) == len(names)


def test_is_simulated():
    assert is_simulated("Tesla T4 (simulated)")
    assert not is_simulated("Tesla T4")


def test_slots_are_set_by_the_busiest_unit():
    assert slots(["mul"], 64) == 1
    assert slots(["relu"], 64) == 1  # two instructions, half an issue slot each
    assert slots(["relu"], 128) == 2
    assert slots(["cos"], 64) == 15  # the FP32 lanes
    assert slots(["cos"], 128) == 28  # twice the lanes: now the schedulers
    assert slots(["rsqrt"], 64) == 4  # the special-function unit
    assert slots(["cos", "cos", "cos"], 64) == 45
    assert slots([], 64) == 0
    assert slots(["gt"], 64) == slots(["compare"], 64)


def test_slots_of_an_unknown_function():
    assert not devices.has_cost("bessel_j0")
    assert devices.has_cost("cos") and devices.has_cost("lt")
    with pytest.raises(FactError, match="bessel_j0"):
        slots(["bessel_j0"], 64)


class _Properties:
    def __init__(self, sms, memory):
        self.multi_processor_count, self.total_memory = sms, memory


@pytest.mark.parametrize(
    ("name", "sms", "memory", "key"),
    [
        ("Tesla T4", 40, 15_835_660_288, "t4"),
        ("NVIDIA A100-SXM4-80GB", 14, 10 * 2**30, None),  # a slice that forgot to say so
        ("NVIDIA L40S", 142, 48 * 2**30, None),
    ],
)
def test_current(monkeypatch, name, sms, memory, key):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: name)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: _Properties(sms, memory))
    found = devices.current()
    assert (found.key if found else None) == key


def test_current_without_a_gpu(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices.current() is None


def test_importing_facts_devices_and_roofline_needs_no_torch():
    code = (
        "import sys, helpers.devices, helpers.roofline; helpers.devices.get('T4'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
