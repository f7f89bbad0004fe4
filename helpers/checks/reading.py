"""Reading answers: what is handed in, as the kind of thing that the question asks for.

Each reader returns the value or raises Wrong with the catalogue key of what it is instead.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from helpers.checks.engine import Wrong, not_started
from helpers.evidence import unplain


def number(answer: Any, *, unit: str = "", positive: bool = True) -> float:
    """A finite number from a plain answer, or Wrong with the kind of thing it is instead."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    answer = unplain(answer)
    if answer is None:
        raise Wrong("none", have="None")
    if isinstance(answer, bool) or not isinstance(answer, numbers.Real):
        kind = {str: "text", list: "a list", dict: "a dict", bool: "True or False"}
        raise Wrong(
            "not_a_number",
            have=f"{str(answer)[:40]!r}",
            kind=kind.get(type(answer), type(answer).__name__),
        )
    try:
        value = float(answer)
    except OverflowError:  # a whole number beyond 1e308
        value = math.inf
    if not math.isfinite(value):
        raise Wrong("not_finite", have=str(value))
    if positive and value <= 0:
        raise Wrong("not_positive", have=f"{value:g} {unit}".strip())
    return value


def choice(answer: Any, options: Sequence[str], entry: str = "") -> str:
    """One of `options`, whatever its case; Wrong if the answer, or that entry of it, is none."""
    if isinstance(answer, str) and answer.strip().lower() in options:
        return answer.strip().lower()
    have = f"{entry}: {unplain(answer)!r}" if entry else repr(unplain(answer))
    raise Wrong("not_an_option", have=have[:60], options=", ".join(options))


def table(answer: Any, keys: Sequence[str]) -> dict[str, Any]:
    """A dict that holds every one of `keys`; Wrong names those that are missing."""
    if not isinstance(answer, Mapping):
        raise Wrong("not_a_table", have=repr(answer)[:60], keys=", ".join(map(repr, keys)))
    if missing := [k for k in keys if k not in answer or not_started(answer[k])]:
        raise Wrong(
            "rows_missing",
            have=f"{len(keys) - len(missing)} of {len(keys)} entries",
            keys=", ".join(map(repr, missing)),
        )
    return {k: answer[k] for k in keys}


SLIPS = {  # factor (answer / right value) -> catalogue key
    1e3: "times_1000",
    1e-3: "per_1000",
    1e6: "times_1e6",
    1e-6: "per_1e6",
    1e9: "times_1e9",
    1e-9: "per_1e9",
    1e12: "times_1e12",
    1e-12: "per_1e12",
    8.0: "bits",
    0.125: "bits",
    0.5: "half",
    2.0: "double",
    1e9 / 2**30: "gib",
    2**30 / 1e9: "gib",
    1e6 / 2**20: "gib",
    2**20 / 1e6: "gib",
}


WITHOUT_BYTES = ("USD", "USD per hour", "%", "times", "rows", "elements", "tokens")
"""Units of answers in which no byte is left: there 8 and 1.07 are just factors."""


def slip(value: float, right_value: float, tolerance: float = 0.01, unit: str = "") -> str | None:
    """The name of the unit slip that turns `right_value` into `value`, or None."""
    for factor, key in SLIPS.items():
        if key in ("gib", "bits") and unit in WITHOUT_BYTES:
            continue
        if math.isclose(value, right_value * factor, rel_tol=tolerance):
            return key
    return None


def expect_number(
    answer: Any,
    right_value: float,
    *,
    unit: str,
    show: Callable[[float], str],
    tolerance: float = 0.02,
    others: Mapping[str, float] | None = None,
    peak: float | None = None,
    **values: Any,
) -> float:
    """The answer if it is within `tolerance` of `right_value`, else Wrong.

    `others` maps a catalogue key to the value that this particular mistake leads to; they are
    looked at before the general unit slips. `peak` is what the device can do at most, in the
    same unit: an answer above 1.1 times it asks whether the learner waited for the GPU.
    """
    value = number(answer, unit=unit)
    if math.isclose(value, right_value, rel_tol=tolerance):
        return value
    values |= {"have": show(value), "right": show(right_value)}
    for key, mistaken in (others or {}).items():
        if math.isclose(value, mistaken, rel_tol=max(tolerance, 0.01)):
            raise Wrong(key, **values)
    if named := slip(value, right_value, unit=unit):
        raise Wrong(named, **values)
    if peak and value > 1.1 * peak:
        raise Wrong("impossible", **values | {"peak": show(peak)})
    raise Wrong("off", **values)


def returned(answer: Any, calls: list[list[Any]], *, kind: str = "number") -> list[Any]:
    """What the learner's function returned on each call, or Wrong for the first that failed.

    `answer` is a list with one {"value": ...} or {"error": "Type: sentence"} per call. `kind` of
    value: a "number", a "list" of numbers, a "text", or "any" plain value.
    """
    if not isinstance(answer, list) or len(answer) != len(calls):
        raise Wrong("not_a_function", have=repr(answer)[:40])
    out = []
    if any("value" in i and i["value"] is not None for i in answer if isinstance(i, Mapping)):
        for item, call in zip(answer, calls, strict=True):
            if isinstance(item, Mapping) and item.get("value", 0) is None:
                raise Wrong("sometimes_none", have=f"None for the arguments {call}")
    for item in answer:
        if not isinstance(item, Mapping) or not {"value", "error"} & set(item):
            raise Wrong("not_a_function", have=repr(item)[:40])
        if "error" in item:
            raise Wrong("raised", state="error", have=str(item["error"])[:200])
        if item["value"] is None:
            raise Wrong("returned_none", have="None")
        if kind == "number":
            out.append(number(item["value"], positive=False))
        elif kind == "text":
            if not isinstance(item["value"], str):
                raise Wrong("not_a_text", have=repr(unplain(item["value"]))[:40])
            out.append(item["value"].strip().lower())
        elif kind == "any":
            out.append(item["value"])
        elif isinstance(item["value"], list):
            out.append([number(v, positive=False) for v in item["value"]])
        else:
            raise Wrong("shape", have=repr(item["value"])[:40])
    return out


def expect_letter(answer: Any, right_letter: str, letters: Sequence[str] = "abcd") -> None:
    """Wrong with the key `picked_x` unless the answer is the right letter."""
    picked = choice(answer, letters)
    if picked != right_letter:
        raise Wrong(f"picked_{picked}", have=picked)


def expect_calls(
    answer: Any,
    calls: list[list[Any]],
    reference: Callable[..., Any],
    *,
    mistakes: Mapping[str, Callable[..., Any]],
    near: Callable[[Any, Any], bool],
    kind: str = "number",
) -> None:
    """Wrong unless the learner's function agreed with `reference` on every call.

    `mistakes` maps a catalogue key to a function that makes this mistake; one that explains every
    returned value is named. `near(got, wanted)` says when two values agree; `kind` is what the
    function returns (see `returned`).
    """
    got = returned(answer, calls, kind=kind)
    wanted = [reference(*call) for call in calls]
    hits = [near(g, w) for g, w in zip(got, wanted, strict=True)]
    if all(hits):
        return
    at = hits.index(False)
    values = {
        "have": _shown(got[at]),
        "call": called(reference.__name__, calls[at]),
        "right": _shown(wanted[at]),
    }
    if len(calls) > 1 and len(set(got)) == 1:
        raise Wrong("constant", **values)
    for key, mistake in mistakes.items():
        if all(near(g, mistake(*c)) for g, c in zip(got, calls, strict=True)):
            raise Wrong(key, **values)
    raise Wrong("off", **values)


def expect_choices(
    answer: Any, right_choices: Mapping[str, str], options: Sequence[str] | None = None
) -> None:
    """Wrong unless each entry of the answer, a dict, is the right one of `options`.

    The fraction is the share of right entries. The first wrong one is explained by the catalogue
    key `<entry>_as_<picked>`, spaces written as underscores. `options` is by default the set of
    right choices.
    """
    options = options or list(dict.fromkeys(right_choices.values()))
    cells = table(answer, list(right_choices))
    picked = {name: choice(cell, options, name) for name, cell in cells.items()}
    wrong = [name for name, wanted in right_choices.items() if picked[name] != wanted]
    if wrong:
        raise Wrong(
            "_".join(f"{wrong[0]} as {picked[wrong[0]]}".lower().replace("-", " ").split()),
            fraction=1 - len(wrong) / len(right_choices),
            have=f"{wrong[0]}: {picked[wrong[0]]!r}",
            entry=repr(wrong[0]),
        )


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return repr(value)
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.5g}"


def called(name: str, arguments: list[Any]) -> str:
    return f"{name}({', '.join(f'{a:g}' if isinstance(a, float) else repr(a) for a in arguments)})"
