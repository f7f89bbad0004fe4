"""The measuring verbs of the lab: time, count, sweep and compare, and keep evidence of it."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from helpers import checks, counting, plots, roofline, timing
from helpers import evidence as ev
from helpers.output import publish
from helpers.session import Session, current
from helpers.timing.soak import Soak
from helpers.timing.soak import soak as soaked

STYLE = 'style="margin:0;white-space:pre-wrap"'
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def measure(
    exercise: str,
    fn: Any,
    *,
    label: str = "",
    purpose: str = "answer",
    cache: str = "cold",
    **options: Any,
) -> Any:
    """Time `fn` (no arguments), record it, and return its `Measurement`.

    A dict of functions is measured in turn, so that ratios survive drift, and comes back as a
    dict of Measurements; its keys are the labels. `purpose="demonstration"` marks a timing made
    wrong on purpose. Where the exercise asks for predictions, they must be locked first: until
    then nothing is measured and `...` (an empty dict) comes back. When graded, the recorded
    measurement is returned and nothing is timed.
    """
    session = current(exercise)
    if session.machine.cpu:
        cache = "hot"  # nothing here can empty a CPU's caches; the record says so
    functions = dict(fn) if isinstance(fn, Mapping) else {label: fn}
    for name in [n for n, f in functions.items() if f is ...]:
        print(f"{_name(exercise, name)}: not started, so there is nothing to measure yet.")
        del functions[name]
    if not functions or not _predicted(session, exercise):
        return {} if isinstance(fn, Mapping) else ...
    if session.replaying:
        found = {name: m for name in functions if (m := _replayed(session, exercise, name))}
    else:
        with _hurried():
            results = timing.interleave(
                *functions.values(), cache=cache, device=session.machine.device, **options
            )
        found = dict(zip(functions, results, strict=True))
    for name, m in found.items():
        session.work[exercise, name] = work = counting.count(functions[name])
        said = f"{_name(exercise, name)}: {_summary(m)}"
        if session.replaying:
            print(said)
            continue
        value = m.to_dict() | {"work": _work(work)}
        details = {"label": name, "unit": "s", "purpose": purpose, "origin": m.origin}
        tell(session.record(exercise, "measurement", value, **details), said)
    return found if isinstance(fn, Mapping) else found.get(label, ...)


def sweep(
    exercise: str,
    series: Mapping[str, Callable[[Any], Callable]],
    points: Sequence[Any],
    **options: Any,
) -> dict[str, list[float]]:
    """Time a family of functions: `series[name](point)` makes the function for one point.

    Returns the median seconds of each series in the order of `points`; NaN, with a sentence,
    where a point could not be measured (memory, for example). An empty dict as long as a
    prediction is missing. Compiled versions are forgotten between points: past eight of one
    function they would silently stay eager.
    """
    session = current(exercise)
    if not _predicted(session, exercise):
        return {}
    curves: dict[str, list[float]] = {}
    for name, make in series.items():
        curves[name] = [_point(session, exercise, name, make, p, options) for p in points]
        times = ", ".join("none" if math.isnan(v) else timing.seconds(v) for v in curves[name])
        print(f"{exercise} {name}: {times}  ({session.origin})")
    return curves


def _point(
    session: Session, exercise: str, name: str, make: Callable, point: Any, options: Mapping
) -> float:
    import torch

    label = f"{name} @ {point}"
    try:
        if session.replaying:
            m = _replayed(session, exercise, label)
            return m.median if m else float("nan")
        torch._dynamo.reset()
        settings = {"budget": 0.15, "warmup": 0.02, **options}
        with _hurried():
            m = timing.measure(make(point), device=session.machine.device, **settings)
    except timing.MeasureError as error:
        print(f"{label}: {error}")
        return float("nan")
    details = {"label": label, "unit": "s", "purpose": "demonstration", "origin": m.origin}
    session.record(exercise, "measurement", m.to_dict(), **details)
    return m.median


def soak(exercise: str, fn: Any, *, label: str = "", **options: Any) -> Any:
    """Call `fn` in a row for seconds, record what each short window took, and return the `Soak`.

    Options as in `timing.soak`. Gated by predictions, and replayed when graded, as `measure`.
    """
    session = current(exercise)
    name = _name(exercise, label)
    if fn is ... or not _predicted(session, exercise):
        return ...
    if session.replaying:
        record = session.evidence.latest(exercise, "measurement", label)
        data = {k: v for k, v in record.value.items() if k != "work"} if record else {}
        try:
            found = Soak.from_dict(data | {"origin": "replayed"})
        except ValueError as error:
            why = f"is damaged ({error})" if record else "is not there"
            print(f"{name}: the measurement handed in {why}.")
            return ...
        print(f"{name}: {_soaked(found)}")
        return found
    with _hurried():
        found = soaked(fn, device=session.machine.device, **options)
    value = found.to_dict() | {"work": _work(counting.count(fn))}
    details = {"label": label, "unit": "s", "purpose": "answer", "origin": found.origin}
    tell(session.record(exercise, "measurement", value, **details), f"{name}: {_soaked(found)}")
    return found


def _soaked(found: Soak) -> str:
    clocks = [f"{hertz / 1e6:,.0f}" for hertz in found.clocks()]
    beside = f"; clock {clocks[0]} MHz at first, {clocks[-1]} MHz at last" if clocks else ""
    notes = "".join(f"\n  note: {note}" for note in found.notes)
    return (
        f"{timing.seconds(found.first)} per call at first, {timing.seconds(found.sustained)} "
        f"in the last third of {found.windows[-1].at:.2g} s{beside} "
        f"({found.device if found.origin == 'simulated' else f'{found.origin} on {found.device}'})"
        f"{notes}"
    )


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
        print(f"{_name(exercise, label)}: nothing was predicted.")
        return
    unit = "" if guess.unit == "times" else guess.unit
    if isinstance(guess.value, (int, float)):
        off = f"off by x{plots.off_by(guess.value, value):.2f}"
        said = f"you predicted {_digits(guess.value)} {unit}".rstrip()
        said += f", it is {_digits(value)} {unit}"
        said = f"{said.rstrip()}: {off}"
    else:
        said = f"you predicted {guess.value!r}, it is x{value:.2f}"
    said = f"{_name(exercise, label)}: {said}"
    if session.replaying:
        print(said)
        return
    origin = origin or session.machine.origin
    details = {"label": label, "unit": guess.unit, "origin": origin}
    tell(session.record(exercise, "outcome", float(value), **details), said)


def kernels(fn: Any, *arguments: Any) -> Any:
    """How many kernels `fn(*arguments)` launches, and how that is known, printed."""
    if fn is ...:
        print("Not started, so there is nothing to count yet.")
        return ...
    counted = counting.kernels(fn, *arguments)
    if counted.n is None:
        print(f"The kernels cannot be counted here ({counted.how}).")
    else:
        print(f"{counted.n} kernel{'s' * (counted.n != 1)} ({counted.how})")
    return counted.n


def ceiling() -> roofline.Roof:
    """The roof this machine really has, measured once per session (a few seconds)."""
    session = current()
    if session.roof is None:
        exercise = f"{session.number}-0"
        kept = session.evidence.latest(exercise, "measurement", "ceiling")
        if session.replaying and kept:
            session.roof = roofline.Roof(**kept.value)
        else:
            dtype = {2: "fp16", 4: "fp32"}[session.machine.itemsize]
            with _hurried():
                session.roof = roof = roofline.measure_ceiling(dtype)
            data = dataclasses.asdict(dataclasses.replace(roof, rates=dict(roof.rates)))
            details = {"label": "ceiling", "origin": session.machine.origin}
            tell(session.record(exercise, "measurement", data, **details), _ceiling_said(roof))
    return session.roof


def roofs() -> list[roofline.Roof]:
    """Every roof known for this machine: datasheet peak, published sustained, own ceiling.

    The ceiling's record goes into the output of the cell, also of one that is run again: graders
    that need it find it in the notebook.
    """
    session, measured = current(), current().roof is not None
    known = _roofs()
    kept = session.evidence.latest(f"{session.number}-0", "measurement", "ceiling")
    if measured and kept and not session.replaying:
        tell(kept, _ceiling_said(known[-1]))
    return known


def _ceiling_said(roof: roofline.Roof) -> str:
    rates = ", ".join(f"{rate / 1e12:,.3g} TFLOP/s {dtype}" for dtype, rate in roof.rates.items())
    return f"Your ceiling: {roof.bandwidth / 1e9:,.4g} GB/s, {rates} ({roof.origin})"


def _roofs() -> list[roofline.Roof]:
    facts = current().machine.facts
    known = [roofline.datasheet(facts), roofline.sustained(facts)] if facts else []
    return [roof for roof in (*known, ceiling()) if roof is not None]


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
    bounds = {roof.label: _bound(work, roof) for roof in _roofs()}
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


def tell(record: ev.Record, said: str) -> None:
    """Show a record as one sentence; its data travels along, also as text."""
    bundle = {ev.MIME: record.to_dict(), "text/html": f"<pre {STYLE}>{html.escape(said)}</pre>"}
    publish(bundle | {"text/plain": f"{said}\n{ev.line(record)}"})


def _predicted(session: Session, exercise: str) -> bool:
    """True when every prediction that the exercise asks for is locked; else says which is not."""
    asked = checks.find(exercise).predicts
    missing = [p for p in asked if not session.evidence.latest(exercise, "prediction", p)]
    if not missing:
        return True
    if session.replaying:  # what was handed in is replayed, even if its prediction got lost
        if session.evidence.latest(exercise, "measurement"):
            return True
        print(f"{exercise}: no measurement of it was handed in.")
        return False
    which = ", ".join(filter(None, missing))
    print(
        f"{exercise}: commit your prediction first{f' ({which})' if which else ''}. "
        "A wrong one costs nothing, and teaches more."
    )
    return False


def _replayed(session: Session, exercise: str, label: str) -> timing.Measurement | None:
    """The recorded measurement; None, with a sentence, if none was handed in or it is damaged."""
    record = session.evidence.latest(exercise, "measurement", label)
    if record is None:
        print(f"{_name(exercise, label)}: no measurement of it was handed in.")
        return None
    data = {k: v for k, v in record.value.items() if k != "work"} | {"origin": "replayed"}
    try:
        return timing.Measurement.from_dict(data)
    except ValueError as error:
        print(f"{_name(exercise, label)}: the measurement handed in is damaged ({error})")
        return None


def _summary(m: timing.Measurement) -> str:
    """One line. Identical samples of a model have no spread worth a word."""
    if m.origin != "simulated":
        return str(m)
    notes = "".join(f"\n  note: {note}" for note in m.notes)
    first = f"first call {timing.seconds(m.first_call)}"
    return f"{timing.seconds(m.median)} per call, {m.cache} cache; {first} ({m.device}){notes}"


def _work(work: counting.Work) -> dict[str, Any]:
    """The counted work as plain data; `elements` and `itemsize` of its largest operation."""
    largest = max(work.ops, key=lambda op: op.elements, default=None)
    return {
        "bytes_unfused": work.bytes_unfused,
        "bytes_ideal": work.bytes_ideal,
        "flops": work.flops,
        "kernels": work.kernels,
        "elements": largest.elements if largest else 0,
        "itemsize": counting.itemsize(largest.dtype) if largest else 0,
    }


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


def _hurried() -> AbstractContextManager[None]:
    """Timing reads the virtual clocks of a simulated card, so nobody has to sit through it."""
    from helpers import simgpu

    card = simgpu.active()
    return card.hurried() if card else nullcontext()


def _digits(value: float) -> str:
    """Three digits, thousands marked, no exponent where a person would write none."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"


def _name(exercise: str, label: str) -> str:
    return f"{exercise} {label}".strip()
