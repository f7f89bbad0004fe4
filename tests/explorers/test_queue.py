"""The explorer of notebook 05: three controls, and a static twin from their defaults."""

from types import SimpleNamespace

from helpers import explore, plots


def test_without_a_front_end_the_defaults_are_drawn(shown, capsys):
    explore.queue()
    (figure,) = shown
    assert "one kernel takes (µs) = 60" in capsys.readouterr().out
    assert "the CPU waits: never" in plots.alt_text(figure)


def test_three_controls_move_it(monkeypatch, shown):
    import ipywidgets

    calls = []
    monkeypatch.setattr(explore.controls, "in_notebook", lambda: True)
    monkeypatch.setattr(ipywidgets, "interact", lambda f, **w: calls.append((f, w)))
    explore.queue(SimpleNamespace(facts=None))
    ((update, widgets),) = calls
    assert list(widgets) == ["kernel", "launch", "ending"]
    assert tuple(widgets["ending"].options) == plots.QUEUE_ENDINGS
    for ending in plots.QUEUE_ENDINGS:
        for kernel, launch in ((2, 100), (200, 2)):
            update(kernel=kernel, launch=launch, ending=ending)
    assert len(shown) == 2 * len(plots.QUEUE_ENDINGS)
    asked = [ending for ending in plots.QUEUE_ENDINGS for _ in range(2)]
    for ending, figure in zip(asked, shown, strict=True):
        assert f"the CPU waits: {ending}" in plots.alt_text(figure)
