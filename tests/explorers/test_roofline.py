"""The explorer of notebook 03: rows, width and dtype of a layer on the roofline."""

from types import SimpleNamespace

import pytest

from helpers import devices, explore, plots, roofline


def test_it_starts_at_the_device_of_the_learner(interact, shown):
    explore.roofline(SimpleNamespace(facts=devices.get("l4")))
    ((update, widgets),) = interact
    assert list(widgets) == ["batch", "width", "dtype"]
    assert [w.value for w in widgets.values()] == [64, 8192, "fp16"]
    assert widgets["dtype"].options == ("fp16", "bf16", "fp32")
    update(batch=1, width=256, dtype="fp32")
    update(batch=4096, width=16384, dtype="fp16")
    first, last = (plots.alt_text(fig) for fig in shown)
    assert "L4" in first and "1 row, 256 wide, fp32: leaning to memory" in first
    assert "4,096 rows, 16,384 wide, fp16: leaning to compute" in last


def test_own_points_show_where_they_were_measured(interact, shown):
    t4 = devices.get("t4")
    roofs = [roofline.datasheet(t4), roofline.sustained(t4)]
    own = {(8192, "fp16"): [plots.Point("yours, 1", 1.0, 2e11, "simulated")]}
    explore.roofline(t4, roofs=roofs, points=own)
    ((update, _),) = interact
    for width, dtype in ((8192, "fp16"), (4096, "fp16"), (8192, "fp32")):
        update(batch=64, width=width, dtype=dtype)
    assert ["yours" in plots.alt_text(fig) for fig in shown] == [True, False, False]
    assert all("published sustained" in plots.alt_text(fig) for fig in shown)


def test_a_cpu_offers_what_its_roof_has(interact, shown):
    roof = roofline.Roof("measured ceiling", "a CPU", 2e10, {"fp32": 2e11}, 1e11, "measured")
    explore.roofline(SimpleNamespace(facts=None), roofs=[roof], width=2048)
    ((update, widgets),) = interact
    assert widgets["dtype"].options == ("fp32",) and 2048 in widgets["width"].options
    update(**{name: widget.value for name, widget in widgets.items()})
    assert "a CPU" in plots.alt_text(shown[0])


def test_the_static_twin_is_drawn_from_the_defaults(shown, monkeypatch, capsys):
    monkeypatch.setenv("BRRR_STATIC", "1")
    explore.roofline()
    assert "rows = 64, width = 8192, dtype = fp16" in capsys.readouterr().out
    assert "64 rows, 8,192 wide, fp16: leaning to memory (T4" in plots.alt_text(shown[0])


def test_an_unknown_device_is_named():
    with pytest.raises(devices.UnknownDevice, match="L99"):
        explore.roofline("L99")
