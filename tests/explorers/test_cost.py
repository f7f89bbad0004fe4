"""The explorer of notebook 08: three controls over one figure, for the learner's card and price."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from helpers import devices, explore, plots


@pytest.fixture
def made(monkeypatch):
    calls = []
    monkeypatch.setitem(
        explore.cost.__globals__, "explorer", lambda draw, **given: calls.append((draw, given))
    )
    return calls


def test_it_has_price_batch_and_context(made):
    explore.cost("a100_80_sxm", price=2.4984)
    ((draw, given),) = made
    assert list(given) == ["price", "batch", "context"]
    assert given["price"].default == 2.5
    words = plots.alt_text(draw(2.5, 8, 1024).figure)
    assert "A100 80 GB SXM" in words and "limit of 50 ms" in words


@pytest.mark.parametrize(("price", "start"), [(0.0, 0.05), (99.0, 15.0), (0.5904, 0.59)])
def test_a_price_outside_the_slider_starts_at_its_end(made, price, start):
    explore.cost("t4", price=price)
    assert made[0][1]["price"].default == start


@pytest.mark.parametrize(
    "start", [None, "h100_sxm", devices.get("l4"), SimpleNamespace(facts=None)]
)
def test_it_starts_with_what_a_notebook_has(made, start):
    explore.cost(start)
    draw, given = made[0]
    draw(**{name: control.default for name, control in given.items()})


def test_the_limit_is_the_callers(made):
    explore.cost("l4", limit=0.1)
    assert "limit of 100 ms" in plots.alt_text(made[0][0](0.8, 1, 128).figure)


def test_an_unknown_card_is_named():
    with pytest.raises(devices.UnknownDevice):
        explore.cost("gpu 9000")


def test_the_static_twin_is_drawn_without_a_notebook(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: shown.append(plots.alt_text(fig)))
    explore.cost("t4", price=0.59)
    assert "Picture for USD per hour = 0.59, batch = 1, context = 128" in capsys.readouterr().out
    assert len(shown) == 1
