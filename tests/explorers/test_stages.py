"""Explorer of notebook 07: stage, batch and context, on the learner's card."""

from types import SimpleNamespace

import pytest

from helpers import devices, explore, plots


def test_three_controls_move_the_point(interact, shown):
    explore.stages(SimpleNamespace(facts=devices.get("a100_80_sxm")))
    ((update, widgets),) = interact
    assert [w.value for w in widgets.values()] == ["decode", 16, 128]
    update(stage="prefill", batch=1, context=2048)
    update(stage="attention in decode", batch=512, context=32768)
    said = [plots.alt_text(fig) for fig in shown]
    assert said[0].startswith("Prefill, batch 1") and "compute-bound" in said[0]
    assert "A100 80 GB SXM" in said[0]
    assert "memory-bound" in said[1] and "does not fit" in said[1]


def test_the_static_twin_fits_a_t4(shown, monkeypatch, capsys):
    monkeypatch.setenv("BRRR_STATIC", "1")
    explore.stages(SimpleNamespace(facts=None))  # the CPU, or a card without facts
    said = plots.alt_text(shown[0])
    assert said.startswith("Decode, batch 16") and "(T4 ·" in said and ", fits" in said
    assert "context = 128" in capsys.readouterr().out


def test_an_unknown_card_is_named():
    with pytest.raises(devices.UnknownDevice, match="No facts"):
        explore.stages("T5")
