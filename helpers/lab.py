"""The learner's front door: setup, predict, measure, reveal, check, hint, reset, progress.

Everything here prints or draws for a person and keeps evidence. The work is done in the rooms
below. `...` is welcome everywhere: it means "not started" and stops nothing.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helpers import checks, counting, plots, roofline, timing
from helpers import evidence as ev
from helpers import prediction as pr
from helpers.answers import of_function, untouched
from helpers.checks.catalogue import text
from helpers.checks.engine import Outcome
from helpers.checks.feedback import as_html, as_text
from helpers.output import explain_missing_names, publish
from helpers.session import LabError, Machine, Session, begin

ANSWER_MIME = "application/vnd.brrr.answer+json"
CHECK_MIME = "application/vnd.brrr.check+json"

_session: Session | None = None


def setup(notebook: str, device: str | None = None, simulate: str | None = None) -> Machine:
    """Begin a notebook and say on what it runs. Returns the machine to compute on.

    `notebook` is the file's stem. `device="cpu"` measures the CPU itself. Without a GPU a
    simulated one takes its place: `simulate` chooses which ("T4", "A100-80", "H100", ...).
    """
    global _session
    _session = begin(notebook, device, simulate)
    machine = _session.machine
    explain_missing_names()
    if machine.origin == "simulated":
        print(
            f"No GPU in use: this notebook runs on a model of one, {machine.name}. "
            "Every number from it says simulated."
        )
    elif machine.cpu:
        print(
            f"This notebook measures the CPU: {machine.name}, in float32. "
            "Where a CPU has no such effect, checks answer: cannot tell."
        )
    else:
        known = (
            "" if machine.facts else " The course has no facts on it: datasheet lines are absent."
        )
        print(f"This notebook measures your GPU: {machine.name}.{known}")
    if _session.evidence.records and not _session.replaying:
        print(
            f"{len(_session.evidence.records)} earlier records were found and kept. "
            'lab.reset("all") forgets them.'
        )
    return machine


def predict(
    exercise: str,
    value: Any,
    *,
    unit: str = "",
    label: str = "",
    options: Sequence[str] | None = None,
) -> None:
    """Commit a number (in `unit`) or one of `options` before measuring. The first one counts."""
    session = _now(exercise)
    name = f"{exercise} {label}".strip()
    if checks.not_started(ev.plain(value) if _is_plain(value) else value):
        wanted = (
            f"one of: {', '.join(options)}" if options else f"a number{f' in {unit}' * bool(unit)}"
        )
        print(f"{name}: no prediction yet. Assign {wanted}, then run this cell again.")
        return
    try:
        record, locked = pr.lock(
            session.evidence, exercise, value, label=label, unit=unit, options=options
        )
    except (pr.PredictionError, TypeError) as error:
        print(f"{name}: {error}")
        return
    session.save()
    said = f"{_cell(record.value)} {record.unit}".strip()
    late = f" (it was locked before; lab.reset({exercise!r}) opens it)" if locked else ""
    _publish_record(record, f"{name}: your prediction is locked: {said}{late}")


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
    wrong on purpose. When graded, the recorded measurement is returned and nothing is timed.
    """
    session = _now(exercise)
    if session.machine.cpu:
        cache = "hot"  # nothing here can empty a CPU's caches; the record says so
    functions = dict(fn) if isinstance(fn, Mapping) else {label: fn}
    for name in [n for n, f in functions.items() if f is ...]:
        print(f"{f'{exercise} {name}'.strip()}: not started, so there is nothing to measure yet.")
        del functions[name]
    if not functions:
        return {} if isinstance(fn, Mapping) else ...
    if session.replaying:
        found = {name: _replayed(session, exercise, name) for name in functions}
    else:
        results = timing.interleave(
            *functions.values(), cache=cache, device=session.machine.device, **options
        )
        found = dict(zip(functions, results, strict=True))
    for name, call in functions.items():
        session.work[exercise, name] = work = counting.count(call)
        _say_measurement(session, exercise, name, found[name], work, purpose)
    return found if isinstance(fn, Mapping) else found[label]


def sweep(
    exercise: str,
    series: Mapping[str, Callable[[Any], Callable]],
    points: Sequence[Any],
    **options: Any,
) -> dict[str, list[float]]:
    """Time a family of functions: `series[name](point)` makes the function for one point.

    Returns the median seconds of each series in the order of `points`; NaN, with a sentence,
    where a point could not be measured (memory, for example). Compiled versions are
    forgotten between points: past eight of one function they would silently stay eager.
    """
    import torch

    session = _now(exercise)
    curves: dict[str, list[float]] = {name: [] for name in series}
    for name, make in series.items():
        for point in points:
            label = f"{name} @ {point}"
            try:
                if session.replaying:
                    m = _replayed(session, exercise, label)
                else:
                    torch._dynamo.reset()
                    m = timing.measure(
                        make(point),
                        device=session.machine.device,
                        **({"budget": 0.15, "warmup": 0.02} | options),
                    )
                    session.record(
                        exercise,
                        "measurement",
                        m.to_dict(),
                        label=label,
                        unit="s",
                        purpose="demonstration",
                        origin=m.origin,
                    )
            except timing.MeasureError as error:
                print(f"{label}: {error}")
                curves[name].append(float("nan"))
            else:
                curves[name].append(m.median)
        print(
            f"{exercise} {name}: "
            + ", ".join(timing.seconds(v) for v in curves[name])
            + f"  ({_origin(session)})"
        )
    return curves


def compare(exercise: str, slow: str, fast: str, prediction: str = "") -> None:
    """Print time of `slow` over time of `fast`, both measured in turn, beside the prediction."""
    session = _now(exercise)
    records = [session.evidence.latest(exercise, "measurement", name) for name in (slow, fast)]
    if not all(records):
        print(f"{exercise}: {slow!r} and {fast!r} are not both measured yet.")
        return
    times = [statistics.median(record.value["samples"]) for record in records]
    said = f"{slow} / {fast}: {times[0] / times[1]:.2f}"
    guess = session.evidence.latest(exercise, "prediction", prediction)
    if guess and isinstance(guess.value, (int, float)):
        factor = plots.off_by(guess.value, times[0] / times[1])
        said += f"   you predicted {guess.value:g}: off by x{factor:.2f}"
    elif guess:
        said += f"   you predicted: {guess.value}"
    print(f"{said}   ({_origin(session)}, {session.machine.name})")


def show_table(rows: Any, **columns: Mapping[str, float]) -> None:
    """Print a dict of dicts as a table, with further columns given by row name."""
    if not isinstance(rows, Mapping) or not all(isinstance(r, Mapping) for r in rows.values()):
        print("There is no table yet.")
        return
    names = list(dict.fromkeys([c for row in rows.values() for c in row])) + list(columns)
    print(" " * 12 + "".join(f"{name:>12}" for name in names))
    for label, row in rows.items():
        cells = {**row, **{name: column.get(label, "") for name, column in columns.items()}}
        print(f"{label:12}" + "".join(f"{_cell(cells.get(name, '')):>12}" for name in names))


def kernels(fn: Any, *arguments: Any) -> Any:
    """How many kernels `fn(*arguments)` launches, as a number with its origin printed."""
    if fn is ...:
        print("Not started, so there is nothing to count yet.")
        return ...
    counted = counting.kernels(fn, *arguments)
    print(
        f"{counted.n} kernel{'s' * (counted.n != 1)} ({counted.how})"
        if counted.n is not None
        else f"The kernels cannot be counted here ({counted.how})."
    )
    return counted.n


def ceiling() -> roofline.Roof:
    """The roof this machine really has, measured once per session (a few seconds)."""
    session = _now()
    if session.roof is None:
        exercise = f"{session.number}-0"
        kept = session.evidence.latest(exercise, "measurement", "ceiling")
        if session.replaying and kept:
            session.roof = roofline.Roof(**kept.value)
        else:
            dtype = {2: "fp16", 4: "fp32"}[session.machine.itemsize]
            session.roof = roofline.measure_ceiling(dtype)
            if not session.replaying:
                session.record(
                    exercise,
                    "measurement",
                    _roof_data(session.roof),
                    label="ceiling",
                    origin=session.machine.origin,
                )
    return session.roof


def roofs() -> list[roofline.Roof]:
    """Every roof known for this machine: datasheet peak, published sustained, own ceiling."""
    facts = _now().machine.facts
    known = [roofline.datasheet(facts), roofline.sustained(facts)] if facts else []
    return [roof for roof in (*known, ceiling()) if roof is not None]


def reveal(exercise: str, label: str = "") -> None:
    """Draw prediction, datasheet, ceiling and measurement of one exercise together."""
    session = _now(exercise)
    record = session.evidence.latest(exercise, "measurement", label)
    work = session.work.get((exercise, label))
    if record is None or work is None:
        print(f"{exercise}: nothing measured yet, so there is nothing to compare.")
        return
    guess = session.evidence.latest(exercise, "prediction")
    seconds = {"ms": 1e-3, "us": 1e-6, "s": 1.0}
    predicted = guess.value * seconds[guess.unit] if guess and guess.unit in seconds else None
    bounds = {roof.label: _bound(work, roof) for roof in roofs()}
    bars = plots.Bars(
        prediction=predicted,
        datasheet=bounds.get("datasheet peak"),
        ceiling=bounds[ceiling().label],
        measured=statistics.median(record.value["samples"]),
    )
    axes = plots.draw_bars(
        None,
        bars,
        f"{exercise}: time of {label or 'one call'}",
        origin=_origin(session),
        device=session.machine.name,
    )
    plots.show(axes.figure)


def ledger(exercise: str, labels: Sequence[str], fused: Sequence[str] = ()) -> None:
    """Residual ledger: what memory, compute and the host explain of each time, and what is left.

    `fused` names the labels that run as one kernel: their intermediates never reach memory.
    """
    session = _now(exercise)
    books = {}
    for label in labels:
        record = session.evidence.latest(exercise, "measurement", label)
        work = session.work.get((exercise, label))
        if record is not None and work is not None:
            roof = ceiling()
            times = roofline.times(work, roof, roof.host_per_op, fused=label in fused)
            seconds = statistics.median(record.value["samples"])
            books[label] = roofline.ledger(seconds, times)
    if not books:
        print(f"{exercise}: nothing measured yet, so there is nothing to explain.")
        return
    axes = plots.draw_ledger(None, books, origin=_origin(session), device=session.machine.name)
    plots.show(axes.figure)


def check(exercise: str, answer: Any) -> None:
    """Judge an answer. Never raises: it says one of five things, and why."""
    session = _now(exercise)
    found = checks.find(exercise)
    if callable(answer) and found.inputs:
        given = of_function(answer, found, session.machine, session.evidence.seed)
    elif untouched(answer):
        given = dict(ev.PLACEHOLDER)
    else:
        try:
            given = ev.plain(answer)
        except TypeError as error:
            given = {"unusable": str(error)}
    if session.replaying:
        publish(
            {
                ANSWER_MIME: {"exercise": exercise, "value": given},
                "text/plain": f"{exercise}: answer taken",
            }
        )
        return
    outcome = checks.grade(exercise, given, session.context())
    session.record(
        exercise, "answer", {"answer": given, "state": outcome.state, "fraction": outcome.fraction}
    )
    _publish_outcome(exercise, outcome)


def hint(exercise: str) -> None:
    """The next step of the hint; the last one stays."""
    session = _now(exercise)
    steps = checks.hints(exercise)
    shown = min(session.hints_shown.get(exercise, 0) + 1, len(steps))
    session.hints_shown[exercise] = shown
    more = f"  (lab.hint({exercise!r}) once more for the next step)" if shown < len(steps) else ""
    print(f"Hint {shown} of {len(steps)}: {steps[shown - 1]}{more}")


def reset(exercise: str) -> None:
    """Forget predictions, measurements and answers of one exercise, or of "all"."""
    session = _now()
    ids = checks.exercises(session.number) if exercise == "all" else [checks.find(exercise).id]
    gone = sum(session.evidence.drop(one) for one in ids)
    for one in ids:
        session.hints_shown.pop(one, None)
    session.save()
    print(f"{exercise}: {gone} record{'s' * (gone != 1)} forgotten. Predictions are open again.")


def progress() -> None:
    """Where each exercise of this notebook stands."""
    session = _now()
    states = {}
    for one in checks.exercises(session.number):
        last = session.evidence.latest(one, "answer")
        states[one] = last.value["state"] if last else "not_started"
    done = sum(state == "right" for state in states.values())
    print(f"{done} of {len(states)} exercises are right.")
    for one, state in states.items():
        print(f"  {one}: {text(f'state.{state}')}")


# ---------------------------------------------------------------- plumbing


def _now(exercise: str | None = None) -> Session:
    """The open session. An exercise run before setup gets one sentence, not a traceback."""
    if _session is None:
        raise LabError("Run the setup cell at the top of the notebook first (lab.setup).")
    if exercise is not None:
        try:
            checks.find(exercise)
        except KeyError as error:
            raise LabError(error.args[0]) from None
    return _session


def _bound(work: Any, roof: roofline.Roof) -> float | None:
    """Seconds that `work` needs under `roof`; None where the roof lacks a rate that it uses."""
    try:
        return roofline.times(work, roof, ceiling().host_per_op).program
    except roofline.RooflineError:
        return None


def _roof_data(roof: roofline.Roof) -> dict[str, Any]:
    return dataclasses.asdict(dataclasses.replace(roof, rates=dict(roof.rates)))


def _cell(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, (int, float)) else str(value)


def _is_plain(value: Any) -> bool:
    try:
        ev.plain(value)
    except TypeError:
        return False
    return True


def _origin(session: Session) -> str:
    return "replayed" if session.replaying else session.machine.origin


def _replayed(session: Session, exercise: str, name: str) -> timing.Measurement:
    record = session.evidence.latest(exercise, "measurement", name)
    if record is None:
        raise LabError(f"{f'{exercise} {name}'.strip()}: no measurement of it was handed in.")
    data = {k: v for k, v in record.value.items() if k != "work"} | {"origin": "replayed"}
    return timing.Measurement.from_dict(data)


def _say_measurement(
    session: Session, exercise: str, name: str, m: timing.Measurement, work: Any, purpose: str
) -> None:
    said = f"{f'{exercise} {name}'.strip()}: {m}"
    if session.replaying:
        print(said)
        return
    record = session.record(
        exercise,
        "measurement",
        m.to_dict() | {"work": _summary(work)},
        label=name,
        unit="s",
        purpose=purpose,
        origin=m.origin,
    )
    _publish_record(record, said)


def _summary(work: Any) -> dict[str, Any]:
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


def _publish_record(record: ev.Record, said: str) -> None:
    publish(
        {
            ev.MIME: record.to_dict(),
            "text/html": f"<pre>{said}</pre>",
            "text/plain": f"{said}\n{ev.line(record)}",
        }
    )


def _publish_outcome(exercise: str, outcome: Outcome) -> None:
    publish(
        {
            CHECK_MIME: {
                "exercise": exercise,
                "state": outcome.state,
                "fraction": outcome.fraction,
                "key": outcome.key,
                "message": as_text(exercise, outcome),
            },
            "text/html": as_html(exercise, outcome),
            "text/plain": as_text(exercise, outcome),
        }
    )
