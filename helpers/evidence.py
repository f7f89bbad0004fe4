"""The evidence file: what was predicted, measured and answered, as plain data.

One JSON file beside the notebook, `<stem>.evidence.json`. The same records also go into the
cell outputs, so that a downloaded notebook carries them. A record holds no name and no path.
The checksum catches accident, not forgery: anybody can compute it.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

SCHEMA = 1
MIME = "application/vnd.brrr.evidence+json"
LINE = "BRRR-EVIDENCE "  # begins the one line of text/plain that repeats a record
KINDS = ("measurement", "prediction", "answer", "outcome")
ORIGINS = ("measured", "replayed", "simulated", "none")
PLACEHOLDER = {"placeholder": "..."}  # what `...` becomes: an answer not yet given
LARGEST = 4096  # values in one answer, nested ones counted too; more is a mistake
DEEPEST = 16  # lists within lists
KEPT = 5  # records of one exercise, kind and label: a cell run a hundred times stays small


class EvidenceError(ValueError):
    """Evidence that cannot be read or written. The sentence says what to do."""


def plain(value: Any) -> Any:
    """`value` as JSON data: numbers, text, lists and dicts with text keys, and nothing else.

    NumPy and torch scalars and small arrays (on any device) become numbers and lists. NaN and
    the infinities, which JSON has not, become `{"float": "nan"}`, and whole numbers too large for
    a float become infinite. TypeError says in words what cannot be kept, whatever the object does
    when it is looked at; no live object of the learner ever reaches a grader.
    """
    try:
        return _plain(value, _Budget())
    except TypeError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise TypeError(f"a {type(value).__name__} that cannot be read ({kind})") from None


class _Budget:
    """What one answer may hold in all, so that no answer can fill the evidence file."""

    def __init__(self) -> None:
        self.left = LARGEST

    def spend(self, count: int, what: str) -> None:
        self.left -= count
        if self.left < 0:
            raise TypeError(f"{what} is too large for an answer")


def _plain(value: Any, budget: _Budget, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise TypeError("a list within a list within a list without end is not an answer")
    budget.spend(1, "so much data")
    if value is ...:
        return dict(PLACEHOLDER)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        budget.spend(len(value) // 8, f"a text of {len(value):,} characters")
        return "".join(value)  # a plain str, also from a subclass of it
    if isinstance(value, int):
        return (
            int(value) if value.bit_length() < 1024 else {"float": "inf" if value > 0 else "-inf"}
        )
    if isinstance(value, float):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, budget, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, budget, depth + 1) for item in value]
    if hasattr(value, "tolist"):  # NumPy and torch, scalar or array
        size = value.numel() if hasattr(value, "numel") else value.size
        budget.spend(0 if size == 1 else size, f"an array of {size:,} values")
        return _plain(value.tolist(), _Budget(), depth + 1)
    raise TypeError(f"a {type(value).__name__} is not a number, a text, a list or a dict")


def unplain(value: Any) -> Any:
    """The inverse of `plain` for the floats that JSON has not."""
    if isinstance(value, dict):
        if set(value) == {"float"} and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        return {key: unplain(item) for key, item in value.items()}
    return [unplain(item) for item in value] if isinstance(value, list) else value


def canonical(data: Any) -> str:
    """One fixed JSON text for `data`, whatever the order of its keys."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Record:
    """One thing that happened. Seconds, bytes and FLOP inside `value`; `unit` says which.

    `value` of a measurement is `timing.Measurement.to_dict()`, of a prediction the number or
    the option, of an answer the plain answer, of an outcome the number that a prediction was about.
    """

    exercise: str
    kind: str
    value: Any
    label: str = ""
    unit: str = ""
    purpose: str = "answer"  # or "demonstration": timed wrongly on purpose
    origin: str = "none"
    device: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    time: str = ""
    checksum: str = ""

    def sealed(self) -> Record:
        """This record with the time, if it had none, and the checksum filled in."""
        time = self.time or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        data = asdict(self) | {"time": time, "checksum": ""}
        data["checksum"] = hashlib.sha256(canonical(data).encode()).hexdigest()[:16]
        return Record(**data)

    @property
    def intact(self) -> bool:
        """True when the checksum still fits the content."""
        data = asdict(self) | {"checksum": ""}
        return self.checksum == hashlib.sha256(canonical(data).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Record:
        """A record from plain data. EvidenceError names the first thing that is wrong."""
        if not isinstance(data, dict):
            raise EvidenceError("an evidence record must be a JSON object")
        known = {f.name for f in fields(cls)}
        missing = {"exercise", "kind", "value"} - set(data)
        if missing or set(data) - known:
            odd = sorted(missing | (set(data) - known))
            raise EvidenceError(f"an evidence record has the wrong fields: {', '.join(odd)}")
        record = cls(**copy.deepcopy(data))
        for name in ("exercise", "kind", "label", "unit", "purpose", "origin", "time", "checksum"):
            if not isinstance(getattr(record, name), str):
                raise EvidenceError(f"the field {name!r} of an evidence record must be text")
        if record.kind not in KINDS or record.origin not in ORIGINS:
            raise EvidenceError(
                f"an evidence record is of no known kind or origin: "
                f"{record.kind!r}, {record.origin!r}"
            )
        if not isinstance(record.device, dict) or not isinstance(record.versions, dict):
            raise EvidenceError("device and versions of an evidence record must be JSON objects")
        texts = [record.device.get("name", ""), record.device.get("type", "")]
        if not all(isinstance(text, str) for text in texts):
            raise EvidenceError("name and type of a device must be text")
        return record


@dataclass
class Evidence:
    """All records of one notebook and one learner, oldest first."""

    notebook: str
    course: str
    seed: int
    records: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> Record:
        """Seal `record` and append it; of its kind the oldest beyond a few are forgotten.

        The first attempt at an exercise stays.
        """
        sealed = record.sealed()
        self.records.append(sealed)
        alike = [r for r in self.records if _slot(r) == _slot(sealed)]
        if len(alike) > KEPT:
            first = next((r for r in alike if attempted(r)), None)
            spare = [r for r in alike[:-1] if r is not first]
            gone = min(spare, key=attempted)  # the oldest, placeholders and slips before attempts
            self.records = [r for r in self.records if r is not gone]
        return sealed

    def changed(self) -> list[Record]:
        """Take out, and return, the records whose content no longer fits their checksum."""
        gone = [record for record in self.records if not record.intact]
        self.records = [record for record in self.records if record.intact]
        return gone

    def latest(self, exercise: str, kind: str, label: str | None = None) -> Record | None:
        """The newest record of that exercise and kind (and label, if given), or None."""
        for record in reversed(self.records):
            if (record.exercise, record.kind) == (exercise, kind) and label in (None, record.label):
                return record
        return None

    def drop(self, exercise: str) -> int:
        """Forget everything of `exercise`; returns how many records went."""
        kept = [r for r in self.records if r.exercise != exercise]
        gone = len(self.records) - len(kept)
        self.records = kept
        return gone

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "notebook": self.notebook,
            "course": self.course,
            "seed": self.seed,
            "records": [r.to_dict() for r in self.records],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Evidence:
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise EvidenceError(f"this is not an evidence file of schema {SCHEMA}")
        if not (
            isinstance(data.get("notebook"), str)
            and isinstance(data.get("seed"), int)
            and isinstance(data.get("records"), list)
        ):
            raise EvidenceError("an evidence file needs a notebook, a seed and a list of records")
        return cls(
            data["notebook"],
            str(data.get("course", "")),
            data["seed"],
            [Record.from_dict(r) for r in data["records"]],
        )


def attempted(record: Record) -> bool:
    """True for an answer that can be right or wrong: no placeholder, no slip of form."""
    value = record.value
    return (
        record.kind == "answer"
        and isinstance(value, dict)
        and "answer" in value
        and value.get("state") != "not_started"
        and not value.get("form")
    )


def _slot(record: Record) -> tuple[str, str, str]:
    return record.exercise, record.kind, record.label


def fresh(notebook: str, course: str) -> Evidence:
    """Empty evidence with a new random seed: the seed makes a learner's numeric variants."""
    return Evidence(notebook, course, secrets.randbelow(2**31))


def read(path: str | os.PathLike) -> Evidence:
    """The evidence file at `path`; EvidenceError if it is not there or damaged."""
    name = Path(path).name
    try:
        text = Path(path).read_text("utf-8-sig")  # some editors put a mark in front
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{name} cannot be read ({error.__class__.__name__})") from None
    try:
        return Evidence.from_dict(json.loads(text, parse_constant=_no_constant))
    except json.JSONDecodeError as error:
        raise EvidenceError(f"{name} is damaged at line {error.lineno}") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, EvidenceError):
            raise
        raise EvidenceError(f"{name} is damaged ({type(error).__name__})") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def write(evidence: Evidence, path: str | os.PathLike) -> None:
    """Write `evidence` to `path` whole or not at all; EvidenceError if the folder refuses."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(evidence.to_dict(), indent=1, allow_nan=False) + "\n", "utf-8")
        os.replace(draft, target)
    except OSError as error:
        raise EvidenceError(f"{target.name} cannot be written ({error.strerror})") from None


def bundle(records: Sequence[Record]) -> dict[str, Any]:
    """One record, or several together, as the JSON data of one output."""
    if len(records) == 1:
        return records[0].to_dict()
    return {"records": [record.to_dict() for record in records]}


def line(*records: Record) -> str:
    """Records as the one line of text that survives a front end that drops unknown types."""
    return LINE + canonical(bundle(records))


def from_notebook(nb: Mapping[str, Any]) -> list[Record]:
    """The records in the outputs of a notebook (as JSON data), in order, each once.

    Damaged records are left out: there is nothing in them to trust, and grading names the
    measurement that is then missing.
    """
    found: dict[str, Record] = {}
    for cell in nb.get("cells") or []:
        for output in cell.get("outputs") or [] if isinstance(cell, Mapping) else []:
            for data in _records_of(output):
                try:
                    record = Record.from_dict(data)
                except (EvidenceError, ValueError):
                    continue
                if not record.intact:
                    continue
                found[record.checksum] = record
    return list(found.values())


def _records_of(output: Mapping[str, Any]) -> Iterable[Any]:
    data = output.get("data") or {}
    texts = [output.get("text", ""), data.get("text/plain", "")]
    if (raw := data.get(MIME)) is not None:
        texts.append(LINE + (raw if isinstance(raw, str) else json.dumps(raw)))
    for text in texts:
        joined = "".join(text) if isinstance(text, list) else str(text)
        for match in re.finditer(rf"^{LINE}(\{{.*\}})$", joined, re.MULTILINE):
            try:
                found = json.loads(match[1], parse_constant=_no_constant)
            except (ValueError, RecursionError):
                continue
            several = found.get("records")
            yield from several if isinstance(several, list) else [found]
