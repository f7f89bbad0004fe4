"""A stand-in for the front end: what an explorer shows, and the controls that it offers."""

import pytest

from helpers import explore, plots


@pytest.fixture(autouse=True)
def no_switches(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("BRRR_STATIC", raising=False)


@pytest.fixture
def shown(monkeypatch):
    """The figures that were shown."""
    figures = []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: figures.append(fig))
    return figures


@pytest.fixture
def interact(monkeypatch):
    """A process that looks like a running notebook; what ipywidgets.interact was given."""
    import ipywidgets

    calls = []
    monkeypatch.setattr(explore.controls, "in_notebook", lambda: True)
    monkeypatch.setattr(ipywidgets, "interact", lambda f, **w: calls.append((f, w)))
    return calls
