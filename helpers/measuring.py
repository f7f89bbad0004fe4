"""The measuring verbs of the lab: time, sweep, soak, count, find the roofs, and keep evidence."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from helpers import checks, counting, roofline, timing
from helpers import evidence as ev
from helpers.session import Session, current
from helpers.telling import name_of, tell
from helpers.timing.soak import Soak
from helpers.timing.soak import soak as soaked


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
        print(f"{name_of(exercise, name)}: not started, so there is nothing to measure yet.")
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
        said = f"{name_of(exercise, name)}: {_summary(m)}"
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
    prediction is missing. Compiled versions are forgotten between points, since a function that
    was compiled for too many shapes stays eager from then on.
    """
    session = current(exercise)
    if not _predicted(session, exercise):
        return {}
    curves: dict[str, list[float]] = {}
    for name, make in series.items():
        found = [_point(session, exercise, name, make, p, options) for p in points]
        curves[name] = [seconds for seconds, _ in found]
        times = ", ".join("none" if math.isnan(v) else timing.seconds(v) for v in curves[name])
        records = [record for _, record in found if record]
        tell(records, f"{exercise} {name}: {times}  ({session.origin})")
    return curves


def _point(
    session: Session, exercise: str, name: str, make: Callable, point: Any, options: Mapping
) -> tuple[float, ev.Record | None]:
    """The median seconds of one point, and what was recorded of it."""
    import torch

    label = f"{name} @ {point}"
    try:
        if session.replaying:
            m = _replayed(session, exercise, label)
            return (m.median if m else math.nan), None
        torch._dynamo.reset()
        settings = {"budget": 0.15, "warmup": 0.02, "max_samples": 40, **options}
        with _hurried():
            m = timing.measure(make(point), device=session.machine.device, **settings)
    except timing.MeasureError as error:
        print(f"{label}: {error}")
        return math.nan, None
    details = {"label": label, "unit": "s", "purpose": "demonstration", "origin": m.origin}
    return m.median, session.record(exercise, "measurement", m.to_dict(), **details)


def soak(exercise: str, fn: Any, *, label: str = "", **options: Any) -> Any:
    """Call `fn` in a row for seconds, record what each short window took, and return the `Soak`.

    Options as in `timing.soak`. Gated by predictions, and replayed when graded, as `measure`.
    """
    session = current(exercise)
    name = name_of(exercise, label)
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


def as_graph(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Record the launches of `fn` as a CUDA graph; what comes back replays them as one.

    A CPU has no graphs: there `fn` itself comes back.
    """
    if current().machine.cpu:
        return fn
    import torch

    fn()  # warm: what a first call allocates or compiles must not be recorded
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph.replay


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
    known = known_roofs()
    kept = session.evidence.latest(f"{session.number}-0", "measurement", "ceiling")
    if measured and kept and not session.replaying:
        tell(kept, _ceiling_said(known[-1]))
    return known


def _ceiling_said(roof: roofline.Roof) -> str:
    rates = ", ".join(f"{rate / 1e12:,.3g} TFLOP/s {dtype}" for dtype, rate in roof.rates.items())
    return f"Your ceiling: {roof.bandwidth / 1e9:,.4g} GB/s, {rates} ({roof.origin})"


def known_roofs() -> list[roofline.Roof]:
    facts = current().machine.facts
    known = [roofline.datasheet(facts), roofline.sustained(facts)] if facts else []
    return [roof for roof in (*known, ceiling()) if roof is not None]


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
        print(f"{name_of(exercise, label)}: no measurement of it was handed in.")
        return None
    data = {k: v for k, v in record.value.items() if k != "work"} | {"origin": "replayed"}
    try:
        return timing.Measurement.from_dict(data)
    except ValueError as error:
        print(f"{name_of(exercise, label)}: the measurement handed in is damaged ({error})")
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


def _hurried() -> AbstractContextManager[None]:
    """Timing reads the virtual clocks of a simulated card, so nobody has to sit through it."""
    from helpers import simgpu

    card = simgpu.active()
    return card.hurried() if card else nullcontext()
