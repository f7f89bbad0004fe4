"""What a learner did in other notebooks, from the evidence files that lie in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers import evidence
from helpers.checks.catalogue import has_text, text
from helpers.evidence import Evidence, EvidenceError

BUCKETS = ("memory", "compute", "overhead")


def beside(folder: Path) -> dict[str, Evidence]:
    """The evidence of each notebook in `folder` by its number, "04"; unreadable files are told."""
    found = {}
    for path in sorted(folder.glob("[0-9][0-9]_*.evidence.json")):
        try:
            kept = evidence.read(path)
        except EvidenceError as error:
            print(f"{error}; it is left out.")
            continue
        kept.changed()
        found[kept.notebook[:2]] = kept
    return found


def summary_table(found: Mapping[str, Evidence]) -> str:
    """The rows that were filled rightly, one per notebook, with a column per bucket."""
    rows = []
    for number, kept in sorted(found.items()):
        row = _recap(kept)
        if row and has_text(f"summary.{number}"):
            rows.append((f"{number} {text(f'summary.{number}')}", *(row[b] for b in BUCKETS)))
    if not rows:
        return "The summary table has no row yet: it takes the ones that were right."
    lines = [("", *BUCKETS), *rows]
    widths = [max(len(str(line[i])) for line in lines) + 2 for i in range(len(lines[0]))]
    return "\n".join(
        "".join(str(cell).ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _recap(kept: Evidence) -> Mapping[str, str] | None:
    """The newest right answer that has an entry for each bucket: that is the recap's."""
    for record in reversed(kept.records):
        value = record.value if record.kind == "answer" and isinstance(record.value, dict) else {}
        answer = value.get("answer")
        if (
            value.get("state") == "right"
            and isinstance(answer, dict)
            and set(answer) == set(BUCKETS)
            and all(isinstance(cell, str) for cell in answer.values())
        ):
            return answer
    return None


@dataclass(frozen=True)
class Pair:
    """One prediction and what came out: `guess` as it was locked, `came` in the same unit."""

    exercise: str
    label: str
    guess: float | str
    came: float
    unit: str
    origin: str
    device: str

    @property
    def ratio(self) -> float | None:
        """Prediction over outcome; None where either is no number above zero."""
        numbers = isinstance(self.guess, (int, float)) and not isinstance(self.guess, bool)
        return self.guess / self.came if numbers and self.guess > 0 and self.came > 0 else None


def pairs(found: Mapping[str, Evidence]) -> list[Pair]:
    """Every prediction whose outcome is known, notebook by notebook.

    Both from the same machine: a file keeps what several machines recorded.
    """
    out = []
    for _, kept in sorted(found.items()):
        slots = dict.fromkeys((r.exercise, r.label) for r in kept.records if r.kind == "outcome")
        out += [pair for slot in slots if (pair := _pair(kept, *slot))]
    return out


def _pair(kept: Evidence, exercise: str, label: str) -> Pair | None:
    came = kept.latest(exercise, "outcome", label)
    device = came.device.get("name", "")
    guess = next(
        (
            r
            for r in reversed(kept.records)
            if (r.exercise, r.kind, r.label) == (exercise, "prediction", label)
            and r.device.get("name") in (None, device)
        ),
        None,
    )
    odd = isinstance(came.value, bool) or not isinstance(came.value, (int, float))
    if guess is None or odd or not isinstance(guess.value, (int, float, str)):
        return None
    return Pair(exercise, label, guess.value, came.value, guess.unit, came.origin, device)


def predictions_table(found: Mapping[str, Evidence]) -> str:
    """One line per prediction whose outcome is known: what was said, what came, how far off."""
    lines = [f"{p.exercise:6} {p.label[:28]:28} {_said(p)}{_from(p)}" for p in pairs(found)]
    if not lines and len(found) > 1:
        return "The evidence files here hold no prediction whose outcome is known yet."
    if not lines:
        return (
            "No earlier prediction is at hand. They lie in the files that end in .evidence.json "
            "beside the notebooks; copy those here to see them."
        )
    return "\n".join(lines)


def _from(pair: Pair) -> str:
    return "" if pair.origin == "none" else f"   ({pair.origin})"


def _said(pair: Pair) -> str:
    unit = "x" if pair.unit == "times" else pair.unit
    if isinstance(pair.guess, str):
        return f"you said {pair.guess!r:18} it was x{pair.came:.2f}"
    ratio = pair.ratio or 0.0
    off = max(ratio, 1 / ratio) if ratio else float("inf")
    return f"you said {pair.guess:<9.3g} it was {pair.came:<9.3g} {unit:9} off by x{off:.2f}"
