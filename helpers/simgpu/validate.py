"""The simulator beside public measurements: what set its parameters, and what only tests them.

Every model figure comes from running PyTorch code on the simulated card (``cases``), never from a
formula.
"""

from __future__ import annotations

from helpers.facts.units import format_value
from helpers.simgpu.cases import held_out, inputs
from helpers.simgpu.rows import LIMIT, Row


def table(rows: list[Row]) -> str:
    """Rows aligned for a terminal, an explanation below each miss."""
    width = max(len(row.what) for row in rows)
    lines = [f"{'case':{width}}  {'public':>12}  {'model':>12}  {'error':>6}  source"]
    for row in rows:
        lines.append(
            f"{row.what:{width}}  {_shown(row.public, row.unit):>12}  "
            f"{_shown(row.model, row.unit):>12}  {row.error:>+6.0%}  {row.source}"
        )
        if row.reason:
            lines.append(f"{'':4}miss: {row.reason}.")
    return "\n".join(lines)


def _shown(value: float, unit: str) -> str:
    return format_value(value, unit) if unit != "op" else f"{value:.0f}"


def report() -> str:
    """Both parts, as text."""
    given, tested = inputs(), held_out()
    missed = [row for row in tested if row.missed]
    return (
        "INPUTS: these set the model's parameters\n\n" + table(given)
        + "\n\nHELD OUT: these only test it\n\n" + table(tested)
        + f"\n\n{len(tested) - len(missed)} of {len(tested)} held-out cases within {LIMIT:.0%}; "
        "every miss is explained above, none was used to tune anything."
    )  # fmt: skip
