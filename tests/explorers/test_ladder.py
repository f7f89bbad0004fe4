"""The ladder explorer: three controls, a static twin, the learner's own card first."""

from types import SimpleNamespace

import pytest

from helpers import devices, explore, plots


def test_elsewhere_it_is_a_picture_of_the_defaults(shown, capsys):
    explore.ladder("t4")
    (fig,) = shown
    assert "13.5 GB from each level" in plots.alt_text(fig) and "T4" in plots.alt_text(fig)
    said = capsys.readouterr().out
    assert "no controls" in said and "amount = 13.5 GB, the weights of a 7B model" in said
    assert "device = T4" in said and "compared with = device memory" in said


@pytest.mark.parametrize("start", [None, SimpleNamespace(facts=None)])
def test_without_a_known_card_it_begins_with_a_t4(shown, start):
    explore.ladder(start)
    assert "T4" in plots.alt_text(shown[0])


def test_it_begins_with_the_card_of_the_machine(shown):
    explore.ladder(SimpleNamespace(facts=devices.get("a10")))
    assert "A10" in plots.alt_text(shown[0])


def test_a_notebook_gets_three_controls_that_redraw(monkeypatch, shown):
    import ipywidgets

    monkeypatch.setattr(explore.controls, "in_notebook", lambda: True)
    calls = []
    monkeypatch.setattr(ipywidgets, "interact", lambda f, **w: calls.append((f, w)))
    explore.ladder("h100_sxm")
    ((update, widgets),) = calls
    assert set(widgets) == {"amount", "device", "beside"}
    assert widgets["device"].value == "h100_sxm"
    for amount in [value for _, value in widgets["amount"].options]:
        for beside in widgets["beside"].options:
            update(amount=amount, device="l4", beside=beside)
    assert "140 GB from each level" in plots.alt_text(shown[-1])
    assert "times as long as from disk" in plots.alt_text(shown[-1])


def test_the_offered_cards_hold_pairs_of_equal_capacity():
    cards = [devices.get(key) for key in explore.LADDER_DEVICES]
    for memory in (24, 80):
        pair = {c.bandwidth for c in cards if round(c.memory / 1e9) == memory}
        assert len(pair) == 2
    assert len({c.key for c in cards}) == len(cards)


def test_an_unknown_card_is_refused():
    with pytest.raises(devices.UnknownDevice):
        explore.ladder("abacus")
