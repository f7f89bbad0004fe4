"""Showing rich data in a notebook, and its plain text anywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def publish(data: Mapping[str, Any]) -> None:
    """Display a MIME bundle where there is a kernel, else print its text/plain."""
    try:
        from IPython import get_ipython
    except ImportError:
        shell = None
    else:
        shell = get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import display

        display(dict(data), raw=True)
    else:
        print(data["text/plain"])
