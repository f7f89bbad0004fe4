"""Showing results: beside the prediction, under the roofs, and what explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from helpers import counting, plots, roofline, timing
from helpers import evidence as ev
from helpers.measuring import ceiling, known_roofs
from helpers.session import current
from helpers.telling import SECONDS, cell, name_of, tell


def predicted(exercise: str, label: str = "") -> Any:
    """The locked prediction, or None."""
    record = current(exercise).evidence.latest(exercise, "prediction", label)
    return record.value if record else None


def compare(
    exercise: str, slow: str, fast: str, *, prediction: str | None = None, clock: str = "gpu"
) -> None:
    """Print the time of `slow` over that of `fast`, measured in turn, beside the prediction.

    `clock="wall"` compares what a loop of calls takes, the host included.
    """
    session = current(exercise)
    records = [session.evidence.latest(exercise, "measurement", name) for name in (slow, fast)]
    if not all(records):
        print(f"{exercise}: {slow!r} and {fast!r} are not both measured yet.")
        return
    a, b = (_time(record, clock) for record in records)
    said = f"{slow} / {fast}: {timing.seconds(a)} / {timing.seconds(b)} = {a / b:.2f}"
    guess = prediction is not None and session.evidence.latest(exercise, "prediction", prediction)
    print(f"{said}   ({session.origin}, {session.machine.name})")
    if guess:
        outcome(exercise, prediction, a / b)


def outcome(exercise: str, label: str, value: float, *, origin: str | None = None) -> None:
    """Say how far the locked prediction `label` was from `value`, in its unit, and keep both.

    Beside an option only the value is told. Notebook 09 shows all of them again. `origin="none"`
    marks a value that this machine did not produce: calculated, or published by others.
    """
    session = current(exercise)
    guess = session.evidence.latest(exercise, "prediction", label)
    if guess is None:
        print(f"{name_of(exercise, label)}: nothing was predicted.")
        return
    unit = "" if guess.unit == "times" else guess.unit
    if isinstance(guess.value, (int, float)):
        off = f"off by x{plots.off_by(guess.value, value):.2f}"
        said = f"you predicted {_digits(guess.value)} {unit}".rstrip()
        said += f", it is {_digits(value)} {unit}"
        said = f"{said.rstrip()}: {off}"
    else:
        said = f"you predicted {guess.value!r}, it is x{value:.2f}"
    origin = origin or session.machine.origin
    if origin == "simulated":
        said += " (simulated)"
    said = f"{name_of(exercise, label)}: {said}"
    if session.replaying:
        print(said)
        return
    details = {"label": label, "unit": guess.unit, "origin": origin}
    tell(session.record(exercise, "outcome", float(value), **details), said)


def reveal(exercise: str, label: str = "", prediction: str = "", *, clock: str = "gpu") -> None:
    """Draw prediction, datasheet, ceiling and measurement of one exercise together.

    `clock="wall"` shows what a loop of calls takes, the host included.
    """
    session = current(exercise)
    record = session.evidence.latest(exercise, "measurement", label)
    work = session.work.get((exercise, label))
    if record is None or work is None:
        print(f"{exercise}: nothing measured yet, so there is nothing to compare.")
        return
    guess = session.evidence.latest(exercise, "prediction", prediction)
    predicted = guess.value * SECONDS[guess.unit] if guess and guess.unit in SECONDS else None
    bounds = {roof.label: _bound(work, roof) for roof in known_roofs()}
    bars = plots.Bars(
        prediction=predicted,
        datasheet=bounds.get("datasheet peak"),
        ceiling=bounds[ceiling().label],
        measured=_time(record, clock),
    )
    title = f"{exercise}: time of {label or 'one call'}"
    axes = plots.draw_bars(None, bars, title, origin=session.origin, device=session.machine.name)
    plots.show(axes.figure)
    if predicted:
        outcome(exercise, prediction, _time(record, clock) / SECONDS[guess.unit])


def ledger(
    exercise: str, labels: Sequence[str], fused: Sequence[str] = (), *, clock: str = "gpu"
) -> None:
    """Residual ledger: what memory, compute and the host explain of each time, and what is left.

    `fused` names the labels that run as one kernel: their intermediates never reach memory.
    `clock="wall"` explains what a loop of calls takes, the host included.
    """
    session = current(exercise)
    books = {}
    for label in labels:
        record = session.evidence.latest(exercise, "measurement", label)
        work = session.work.get((exercise, label))
        if record is None or work is None:
            continue
        times = roofline.times(work, ceiling(), ceiling().host_per_op, fused=label in fused)
        took = _time(record, clock)
        books[label] = roofline.ledger(took, times)
        print(
            f"{label}: moving {timing.seconds(times.memory)}, "
            f"computing {timing.seconds(times.compute)}, "
            f"queueing {timing.seconds(times.host)}; "
            f"{session.origin} {timing.seconds(took)}"
        )
    if not books:
        print(f"{exercise}: nothing measured yet, so there is nothing to explain.")
        return
    axes = plots.draw_ledger(None, books, origin=session.origin, device=session.machine.name)
    plots.show(axes.figure)


def show_table(rows: Any, **columns: Mapping[str, float]) -> None:
    """Print a dict of dicts as a table, with further columns given by row name."""
    if not isinstance(rows, Mapping) or not all(isinstance(r, Mapping) for r in rows.values()):
        print("There is no table yet.")
        return
    names = list(dict.fromkeys([c for row in rows.values() for c in row])) + list(columns)
    print(" " * 12 + "".join(f"{name:>12}" for name in names))
    for label, row in rows.items():
        cells = {**row, **{name: column.get(label, "") for name, column in columns.items()}}
        print(f"{label:12}" + "".join(f"{cell(cells.get(name, '')):>12}" for name in names))
    now = current()
    print(f"({now.origin}, {now.machine.name})")


def _time(record: ev.Record, clock: str) -> float:
    if clock == "wall" and record.value.get("wall"):
        return record.value["wall"]
    return timing.quantile(record.value["samples"], 0.5)


def _bound(work: counting.Work, roof: roofline.Roof) -> float | None:
    """Seconds that `work` needs under `roof`; None where the roof lacks a rate that it uses."""
    try:
        return roofline.times(work, roof, ceiling().host_per_op).program
    except roofline.RooflineError:
        return None


def _digits(value: float) -> str:
    """Three digits, thousands marked, no exponent where a person would write none."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"
