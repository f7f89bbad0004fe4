"""What a learner did in other notebooks, from the evidence files that lie in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from helpers import evidence
from helpers.checks.catalogue import has_text, text
from helpers.evidence import Evidence, EvidenceError, Record

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


def predictions_table(found: Mapping[str, Evidence]) -> str:
    """One line per prediction whose outcome is known: what was said, what came, how far off."""
    lines = []
    for _, kept in sorted(found.items()):
        slots = dict.fromkeys((r.exercise, r.label) for r in kept.records if r.kind == "outcome")
        lines += [line for slot in slots if (line := _line(kept, *slot))]
    if not lines:
        return (
            "No earlier prediction is at hand. They lie in the files that end in .evidence.json "
            "beside the notebooks; copy those here to see them."
        )
    return "\n".join(lines)


def _line(kept: Evidence, exercise: str, label: str) -> str:
    guess, came = (
        kept.latest(exercise, "prediction", label),
        kept.latest(exercise, "outcome", label),
    )
    if guess is None or came is None or not isinstance(came.value, (int, float)):
        return ""
    return f"{exercise:6} {label[:28]:28} {_said(guess, came)}   ({came.origin})"


def _said(guess: Record, came: Record) -> str:
    unit = "x" if guess.unit == "times" else guess.unit
    if isinstance(guess.value, str):
        return f"you said {guess.value!r:18} it was x{came.value:.2f}"
    ratio = guess.value / came.value if came.value else float("inf")
    off = max(ratio, 1 / ratio) if ratio else float("inf")
    return f"you said {guess.value:<9.3g} it was {came.value:<9.3g} {unit:5} off by x{off:.2f}"
