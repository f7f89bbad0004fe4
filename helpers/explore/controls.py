"""Explorers: a figure with at most three controls, or its static twin where nothing can move."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from helpers import plots
from helpers.output import in_notebook

MOST_CONTROLS = 3


@dataclass(frozen=True)
class Slider:
    """A number from ``low`` to ``high``; an int default makes an integer slider."""

    default: float
    low: float
    high: float
    step: float = 1
    label: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.default <= self.high:
            raise ValueError(f"Slider: {self.default} is outside {self.low} to {self.high}.")

    @property
    def said(self) -> str:
        """The default as a reader sees it."""
        return str(self.default)

    def widget(self, name: str) -> Any:
        import ipywidgets

        whole = isinstance(self.default, int)
        kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
        return kind(
            value=self.default, min=self.low, max=self.high, step=self.step,
            description=self.label or name, **_COMMON,
        )  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """One of ``options``, each a value or a pair (label, value); the default is a value."""

    default: Any
    options: tuple[Any, ...]
    label: str = ""

    def __post_init__(self) -> None:
        values = [o[1] if isinstance(o, tuple) else o for o in self.options]
        if self.default not in values:
            raise ValueError(f"Choice: {self.default!r} is not one of {values}.")

    @property
    def said(self) -> str:
        """The label of the default option."""
        pairs = (o if isinstance(o, tuple) else (o, o) for o in self.options)
        return next(str(label) for label, value in pairs if value == self.default)

    def widget(self, name: str) -> Any:
        import ipywidgets

        return ipywidgets.Dropdown(
            options=list(self.options), value=self.default,
            description=self.label or name, style=_COMMON["style"],
        )  # fmt: skip


# Redraw when the slider is let go: a figure takes too long to follow every step.
_COMMON: dict[str, Any] = {
    "continuous_update": False,
    "style": {"description_width": "initial"},
}


def static_reason() -> str | None:
    """Return why no widget can be used here, or None where one can."""
    if os.environ.get("NBGRADER_EXECUTION"):
        return "grading runs have nobody to move a slider"
    if os.environ.get("BRRR_STATIC", "0") not in ("", "0"):
        return "BRRR_STATIC is set"
    if not in_notebook():
        return "this is not a running notebook"
    if find_spec("ipywidgets") is None:
        return "ipywidgets is not installed"
    return None


def static_twin(draw: Callable[..., Any], **controls: Slider | Choice) -> Any:
    """Return the figure that ``draw`` makes from the defaults of ``controls``."""
    return draw(**{name: control.default for name, control in controls.items()}).figure


def explorer(draw: Callable[..., Any], **controls: Slider | Choice) -> None:
    """Show ``draw(**values)`` with a control for each value, or its static twin.

    ``draw`` makes a new figure from plain values and returns its Axes. Raises ValueError for no
    control or more than three.
    """
    if not 1 <= len(controls) <= MOST_CONTROLS:
        raise ValueError(f"An explorer has 1 to {MOST_CONTROLS} controls; got {len(controls)}.")
    reason = static_reason()
    if reason is not None:
        values = ", ".join(f"{c.label or name} = {c.said}" for name, c in controls.items())
        print(f"Picture for {values} (no controls: {reason}).")
        plots.show(static_twin(draw, **controls))
        return
    from ipywidgets import interact

    def update(**values: Any) -> None:
        plots.show(draw(**values).figure)

    interact(update, **{name: control.widget(name) for name, control in controls.items()})


def device_choice(start: Any, keys: tuple[str, ...]) -> Choice:
    """A control for a device: ``keys`` of the facts, ``start`` (see `device_of`), by default."""
    from helpers import devices

    first = device_of(start).key
    known = tuple((devices.get(key).name, key) for key in dict.fromkeys((*keys, first)))
    return Choice(first, known, "device")


def device_of(wanted: Any) -> Any:
    """The Device that a name, a Device or a machine stands for."""
    from helpers import devices

    wanted = getattr(wanted, "facts", wanted)
    if wanted is None:
        return devices.get("t4")
    if isinstance(wanted, str):
        return devices.get(wanted)
    if not isinstance(wanted, devices.Device):
        raise TypeError(
            "An explorer starts with a device's name or the machine of lab.setup, not with "
            f"{wanted!r}."
        )
    return wanted
