"""The explorer of notebook 09: cases by number, the verdict on demand."""

from helpers import explore, plots
from helpers.explore.diagnosis import CASES, HIDDEN, SHOWN


def test_its_static_twin_hides_the_verdict(shown, capsys):
    explore.diagnosis()
    (figure,) = shown
    assert "Picture for case = 1" in capsys.readouterr().out
    assert "hidden" in plots.alt_text(figure)


def test_two_controls_move_it(shown, monkeypatch):
    import ipywidgets

    calls = []
    monkeypatch.setattr(explore.controls, "in_notebook", lambda: True)
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("BRRR_STATIC", raising=False)
    monkeypatch.setattr(ipywidgets, "interact", lambda f, **w: calls.append((f, w)))
    explore.diagnosis()
    ((update, widgets),) = calls
    assert list(widgets) == ["case", "show"] and widgets["case"].value == 1
    assert (widgets["case"].min, widgets["case"].max) == (1, CASES)
    for case in (1, CASES):
        update(case=case, show=HIDDEN)
        update(case=case, show=SHOWN)
    said = [plots.alt_text(figure) for figure in shown]
    assert ["hidden" in text for text in said] == [True, False] * 2
    assert said[0] != said[2]
