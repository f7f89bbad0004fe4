"""Showing rich data in a notebook, and its plain text anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any


class NotebookError(RuntimeError):
    """An error whose sentence says what, where and what to do: notebooks show nothing else."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]  # IPython prints these lines instead of the stack


def in_notebook() -> bool:
    """True where a kernel can show a picture (IPython's terminal cannot)."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    return shell is not None and getattr(shell, "kernel", None) is not None


def publish(data: Mapping[str, Any]) -> None:
    """Display a MIME bundle where there is a kernel, else print its text/plain."""
    if in_notebook():
        from IPython.display import display

        display(dict(data), raw=True)
    else:
        print(data["text/plain"])


def explain_missing_names() -> None:
    """After a NameError in a cell, add the usual reason: a cell above was not run.

    Happens after every restart, and the traceback alone does not say so. Does nothing outside
    IPython.
    """
    try:
        from IPython import get_ipython
    except ImportError:
        return
    if (shell := get_ipython()) is None:
        return

    def told(self: Any, kind: type, error: NameError, trace: Any, tb_offset: Any = None) -> None:
        self.showtraceback((kind, error, trace), tb_offset=tb_offset)
        print(
            f"{error.name!r} has no value in this kernel. Run the cells above this one first, "
            "from the top. Look at the spelling, and put quotes around it if it is meant as text."
        )

    shell.set_custom_exc((NameError,), told)
