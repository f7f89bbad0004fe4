"""Telling: a record as one sentence for a person, with its data in the same output."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from helpers import evidence as ev
from helpers.output import publish

STYLE = 'style="margin:0;white-space:pre-wrap"'
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
"""The units of time in which learners predict, in seconds."""


def tell(records: ev.Record | Sequence[ev.Record], said: str) -> None:
    """Show one record, or several, as one sentence; the data travels along, also as text."""
    records = [records] if isinstance(records, ev.Record) else records
    if not records:
        print(said)
        return
    shown = f"<pre {STYLE}>{html.escape(said)}</pre>"
    text = f"{said}\n{ev.line(*records)}"
    publish({ev.MIME: ev.bundle(records), "text/html": shown, "text/plain": text})


def name_of(exercise: str, label: str) -> str:
    return f"{exercise} {label}".strip()


def cell(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, (int, float)) else str(value)
