"""How an outcome looks: the same sentences as text and as HTML."""

from __future__ import annotations

import html

from helpers.checks.catalogue import text
from helpers.checks.engine import Outcome

MARKS = {"not_started": "○", "not_yet": "✗", "right": "✓", "cannot_tell": "?", "error": "!"}
COLOURS = {
    "not_started": "#6b7280",
    "not_yet": "#b45309",
    "right": "#047857",
    "cannot_tell": "#1d4ed8",
    "error": "#b91c1c",
}
PARTS = ("have", "expected", "likely", "next")


def lines(exercise: str, outcome: Outcome) -> list[tuple[str, str]]:
    """(label, sentence) pairs; the first has no label and holds the state."""
    head = f"{MARKS[outcome.state]} {exercise}: {text(f'state.{outcome.state}')}"
    if outcome.state == "not_yet" and outcome.fraction > 0:
        head += f" ({outcome.fraction:.0%} of the points so far)"
    rows = [("", head)]
    if outcome.insight:
        rows.append(("", outcome.insight))
    for part in PARTS:
        sentence = outcome.next_step if part == "next" else getattr(outcome, part)
        if sentence:
            rows.append((text(f"label.{part}"), sentence))
    return rows


def as_text(exercise: str, outcome: Outcome) -> str:
    return "\n".join(
        f"  {label + ': ' if label else ''}{sentence}" if i else sentence
        for i, (label, sentence) in enumerate(lines(exercise, outcome))
    )


def as_html(exercise: str, outcome: Outcome) -> str:
    """A bordered block whose text colour is the page's own, so that it reads on dark pages too."""
    colour = COLOURS[outcome.state]
    body = "".join(
        f"<div>{'<b>' + html.escape(label) + ':</b> ' if label else ''}"
        f"{'<b>' if not i else ''}{html.escape(sentence)}{'</b>' if not i else ''}</div>"
        for i, (label, sentence) in enumerate(lines(exercise, outcome))
    )
    return (
        f'<div style="border-left:4px solid {colour};padding:4px 0 4px 12px;'
        f'margin:4px 0;line-height:1.5">{body}</div>'
    )
