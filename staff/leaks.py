"""Does a student version hold what only the source may hold?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from nbformat import NotebookNode

MARKER = re.compile(r"\b(?:begin|end)[ _-]*(?:solu|hidden|mark[ _-]*scheme)\w*", re.IGNORECASE)
SECRET = re.compile(
    r"^.*BEGIN (?:SOLUTION|HIDDEN TESTS|MARK SCHEME).*\n([\s\S]*?)"
    r"^.*END (?:SOLUTION|HIDDEN TESTS|MARK SCHEME).*$",
    re.MULTILINE,
)
SHORTEST = 12  # characters; a shorter line may stand in a student version by chance


def secrets(source: NotebookNode) -> set[str]:
    """The lines that stand in solutions and hidden tests of `source` and nowhere else in it."""
    hidden: set[str] = set()
    public: list[str] = []
    for cell in source.cells:
        for region in SECRET.findall(cell.source):
            hidden |= set(_lines(region))
        public.append(SECRET.sub("", cell.source))
    shown = "\n".join(public)
    return {line for line in hidden if len(line) >= SHORTEST and line not in shown}


def in_notebook(name: str, released: NotebookNode, secret: Iterable[str] = ()) -> Iterator[str]:
    """A sentence for each marker and each secret line found in the student version."""
    for cell in released.cells:
        where = f"{name}, cell {cell.get('id')}"
        outputs = cell.get("outputs") or []
        if found := MARKER.search(cell.source):
            yield f"{where}: the marker {found[0]!r} is in the student version."
        for line in sorted(secret):
            if line in cell.source:
                yield f"{where}: a line of the solution or hidden test leaks: {line!r}."
        if outputs:
            yield f"{where}: the student version holds outputs."


def in_folder(folder: Path, expected: Mapping[str, object]) -> Iterator[str]:
    """A sentence for each file of the release folder that is no student notebook."""
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if ".ipynb_checkpoints" in path.parts or path.name == ".gitkeep":
            continue
        if path.suffix != ".ipynb":
            yield f"{path}: only student notebooks belong here; {path.suffix or 'it'} would leak."
        elif path.parent != folder or path.stem not in expected:
            yield f"{path}: no source in labs_solutions makes this notebook; delete it or move it."


def _lines(region: str) -> Iterator[str]:
    return (line.strip() for line in region.splitlines() if line.strip())
