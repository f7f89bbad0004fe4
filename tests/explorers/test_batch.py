"""The explorer of notebook 06: controls, static twin, and what it may start with."""

from types import SimpleNamespace

import pytest

from helpers import devices, explore, plots


def test_it_has_three_controls_and_redraws(interact, shown):
    explore.batch("A100-80", context=256)
    ((update, widgets),) = interact
    assert list(widgets) == ["context", "weights", "device"]
    assert [w.value for w in widgets.values()] == [256, "fp16", "a100_80_sxm"]
    assert [key for _, key in widgets["device"].options] == list(explore.BATCH_DEVICES)
    update(context=4096, weights="int4", device="l4")
    assert shown[0].axes[0].get_title(loc="left").startswith("L4 · calculated")
    said = plots.alt_text(shown[0])
    assert "int4" in said and "context 4,096" in said and "Tokens per second" in said


@pytest.mark.parametrize("card", explore.BATCH_DEVICES)
def test_every_card_can_be_chosen(card, interact, shown):
    explore.batch(card)
    ((update, widgets),) = interact
    assert widgets["device"].value == card
    update(**{name: widget.value for name, widget in widgets.items()})
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (None, "t4"),
        (SimpleNamespace(facts=devices.get("rtx_4090")), "rtx_4090"),
        (SimpleNamespace(facts=None), "t4"),
    ],
)
def test_it_takes_a_machine(given, key, interact, shown):
    explore.batch(given)
    ((_, widgets),) = interact
    assert widgets["device"].value == key
    assert len(widgets["device"].options) == len({*explore.BATCH_DEVICES, key})


def test_the_static_twin_is_the_figure_of_the_defaults(shown, capsys, monkeypatch):
    monkeypatch.setenv("BRRR_STATIC", "1")
    explore.batch("H100", context=512)
    assert "context = 512, weights = fp16, device = H100 SXM" in capsys.readouterr().out
    (figure,) = shown
    twin = plots.draw_batch(512, "fp16", "h100_sxm")[0].figure
    assert plots.png(figure) == plots.png(twin)


def test_a_context_that_is_not_offered_is_named():
    with pytest.raises(ValueError, match="1000 is not one of"):
        explore.batch("t4", context=1000)
    with pytest.raises(devices.UnknownDevice, match="L99"):
        explore.batch("L99")
