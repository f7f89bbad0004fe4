"""The explorer of notebook 02."""

import pytest

from helpers import devices, explore, plots
from helpers.roofline import Roof


@pytest.fixture
def shown(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: figures.append(fig))
    monkeypatch.setenv("BRRR_STATIC", "1")
    return figures


@pytest.fixture
def moved(monkeypatch):
    """A process that looks like a running notebook; what `interact` was given."""
    import ipywidgets

    calls = []
    monkeypatch.delenv("BRRR_STATIC", raising=False)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr(explore.controls, "in_notebook", lambda: True)
    monkeypatch.setattr(ipywidgets, "interact", lambda f, **w: calls.append((f, w)))
    return calls


def test_the_static_twin_is_drawn_from_the_defaults(shown, capsys):
    explore.buckets("A100-80")
    said = plots.alt_text(shown[0])
    assert (
        "A100 80 GB SXM" in said and "10 GFLOP" in said and "1 GB" in said and "10 kernels" in said
    )
    assert "10 to the = 9.0" in capsys.readouterr().out


def test_an_own_roof_takes_the_place_of_the_datasheet(shown):
    roof = Roof("measured ceiling", "My CPU", 2e10, {"fp32": 1e11}, None, "measured", 64, 3e-6)
    explore.buckets(None, roof)
    said = plots.alt_text(shown[0])
    assert "My CPU" in said and "measured ceiling" in said and "fp32" in said and "3 µs" in said


def test_three_sliders_and_each_extreme_draws(moved, monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: figures.append(fig))
    explore.buckets("h100")
    ((update, widgets),) = moved
    assert list(widgets) == ["flops", "moved", "kernels"]
    for end in ("min", "max"):
        update(**{name: getattr(widget, end) for name, widget in widgets.items()})
    assert len(figures) == 2
    assert all("-bound" in plots.alt_text(figure) for figure in figures)


def test_an_unknown_card_is_named():
    with pytest.raises(devices.UnknownDevice):
        explore.buckets("T5")
