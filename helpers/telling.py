"""Telling: a record as one sentence for a person, with its data in the same output."""

from __future__ import annotations

import html
from typing import Any

from helpers import evidence as ev
from helpers.output import publish

STYLE = 'style="margin:0;white-space:pre-wrap"'
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
"""The units of time in which learners predict, in seconds."""


def tell(record: ev.Record, said: str) -> None:
    """Show a record as one sentence; its data travels along, also as text."""
    bundle = {ev.MIME: record.to_dict(), "text/html": f"<pre {STYLE}>{html.escape(said)}</pre>"}
    publish(bundle | {"text/plain": f"{said}\n{ev.line(record)}"})


def name_of(exercise: str, label: str) -> str:
    return f"{exercise} {label}".strip()


def cell(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, (int, float)) else str(value)
