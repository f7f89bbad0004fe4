"""Every explorer at its defaults and at the ends of its controls, with ipywidgets and without."""

from __future__ import annotations

import inspect
import itertools
import warnings

import pytest

from helpers import devices, explore, plots
from helpers.explore import Choice, Slider, controls

EXPLORERS = sorted(
    name
    for name in explore.__all__
    if inspect.isfunction(getattr(explore, name))
    and not hasattr(controls, name)  # those are the tools, not the explorers
)


@pytest.fixture
def made(monkeypatch):
    """What an explorer hands over: (draw, controls), with nothing shown."""
    calls = []

    def explorer(draw, **given):
        calls.append((draw, given))

    for name in EXPLORERS:
        module = inspect.getmodule(getattr(explore, name))
        monkeypatch.setattr(module, "explorer", explorer)
    return calls


def ends(control):
    if isinstance(control, Slider):
        return [control.default, control.low, control.high]
    assert isinstance(control, Choice)
    return [o[1] if isinstance(o, tuple) else o for o in control.options]


def test_there_is_one_explorer_for_each_notebook():
    assert len(EXPLORERS) == 9


def settings(given, together):
    """Values of the controls: each at its ends, the others at theirs or at their defaults."""
    if together:
        yield from itertools.product(*(ends(control) for control in given.values()))
        return
    defaults = {name: control.default for name, control in given.items()}
    for name, control in given.items():
        few = ends(control)
        for value in (few[0], few[-1], few[len(few) // 2]):
            yield tuple((defaults | {name: value}).values())


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", EXPLORERS)
def test_every_end_of_every_control_is_drawn_with_words(name, together, made):
    getattr(explore, name)()
    draw, given = made[-1]
    assert 1 <= len(given) <= explore.MOST_CONTROLS
    for values in settings(given, together):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            axes = draw(**dict(zip(given, values, strict=True)))
            fig = axes.figure if hasattr(axes, "figure") else axes[0].figure
            fig.draw_without_rendering()
        words = plots.alt_text(fig)
        assert len(words) > 40 and "nan" not in words.lower().split(), (name, values)


@pytest.mark.parametrize("name", EXPLORERS)
@pytest.mark.parametrize("card", ["t4", "a100_80_sxm", "h100_sxm", "l4", None])
def test_an_explorer_starts_with_the_learners_card(name, card, made):
    class Machine:
        facts = devices.get(card) if card else None

    explore_it = getattr(explore, name)
    if inspect.signature(explore_it).parameters:
        explore_it(Machine())
        draw, given = made[-1]
        draw(**{key: control.default for key, control in given.items()})


@pytest.mark.parametrize("name", EXPLORERS)
def test_it_is_alive_with_widgets(name, monkeypatch):
    """The real ipywidgets: the figure is drawn again when a control is moved."""
    import ipywidgets

    for variable in ("BRRR_STATIC", "NBGRADER_EXECUTION"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(controls, "in_notebook", lambda: True)
    shown, alive = [], []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: shown.append(plots.alt_text(fig)))
    real = ipywidgets.interactive

    def interactive(*arguments, **options):
        alive.append(real(*arguments, **options))
        alive[-1].update()
        return alive[-1]

    monkeypatch.setattr(
        ipywidgets, "interact", lambda draw, **widgets: interactive(draw, **widgets)
    )
    getattr(explore, name)()
    drawn = len(shown)
    assert drawn >= 1
    widget = alive[0].children[0]
    before = widget.value
    options = getattr(widget, "options", None)
    values = [o[1] if isinstance(o, tuple) else o for o in options] if options else None
    widget.value = next(v for v in values if v != before) if values else widget.max
    assert len(shown) > drawn
