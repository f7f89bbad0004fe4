"""Notebook form: from .py to notebook, stable cell ids, placeholders, and one way to write JSON."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from helpers import facts
from staff.course import Course, CourseError

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL_METADATA = ("nbgrader", "tags", "cellView", "deletable", "editable")
PLACEHOLDER = re.compile(r"\{\{\s*(fact|course)\s*:\s*([\w.-]+)\s*(?:\|\s*([^{}|]+?)\s*)?\}\}")
NEARLY = re.compile(r"\{\{\s*(?:facts?|course)\b[^}\n]*\}?\}?", re.IGNORECASE)
DERIVED = re.compile(r"[ \t]*<!--\s*derived:(.*?)-->[ \t]*\n?", re.DOTALL)
DERIVED_IN_CODE = re.compile(r"^[ \t]*#\s*derived:.*\n?|[ \t]*#\s*derived:.*$", re.MULTILINE)


def from_source(path: Path) -> NotebookNode:
    """The notebook that a jupytext py:percent file describes, with stable ids and no outputs."""
    try:
        nb = jupytext.read(path, fmt="py:percent")
    except Exception as error:
        raise CourseError(f"{path} is not a py:percent notebook: {error}") from error
    return tidy(nb)


def tidy(nb: NotebookNode) -> NotebookNode:
    """`nb` (changed in place) without outputs, strange metadata and random cell ids."""
    kept = {key: nb.metadata[key] for key in ("accelerator", "colab") if key in nb.metadata}
    nb.metadata = NotebookNode(kernelspec=NotebookNode(KERNELSPEC), **kept)
    nb.nbformat, nb.nbformat_minor = 4, 5
    for cell in nb.cells:
        cell.metadata = NotebookNode(
            {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata}
        )
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.pop("attachments", None)
    for cell, new_id in zip(nb.cells, stable_ids(nb), strict=True):
        cell["id"] = new_id
    return nb


def stable_ids(nb: NotebookNode) -> Iterator[str]:
    """An id per cell: its grade_id, else a hash of its content; a suffix tells copies apart.

    No id depends on a cell's position, so a new cell leaves the other ids as they are.
    """
    used: dict[str, int] = {}
    for cell in nb.cells:
        name = grade_id(cell)
        if name is None:
            content = f"{cell.cell_type}\n{cell.source}".encode()
            name = f"c-{hashlib.sha256(content).hexdigest()[:10]}"
        name = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:56]
        used[name] = used.get(name, 0) + 1
        yield name if used[name] == 1 else f"{name}-copy{used[name]}"


def grade_id(cell: NotebookNode) -> str | None:
    """The nbgrader id of a cell, or None for a cell that nbgrader does not know."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def release(nb: NotebookNode, stem: str) -> NotebookNode:
    """`nb` (changed in place) as a student version: ids kept, a T4 asked for on Colab."""
    ids = [cell["id"] for cell in nb.cells]
    tidy(nb)
    for cell, kept in zip(nb.cells, ids, strict=True):
        cell["id"] = kept
    colab = dict(nb.metadata.get("colab", {})) | {"name": f"{stem}.ipynb", "provenance": []}
    colab.setdefault("gpuType", "T4")
    nb.metadata["colab"] = NotebookNode(colab)
    nb.metadata.setdefault("accelerator", "GPU")
    return nb


def dump(nb: NotebookNode) -> str:
    """The notebook as text: sorted keys, one space of indent, one newline at the end."""
    return nbformat.writes(nb, version=4).rstrip("\n") + "\n"


def resolver(course: Course) -> Callable[[str, str, str | None], str]:
    """What a placeholder of `course` stands for. CourseError for a name that does not exist."""

    def resolve(kind: str, name: str, spec: str | None) -> str:
        if kind == "fact":
            try:
                return facts.show(name, spec)
            except (KeyError, ValueError) as error:
                raise CourseError(str(error.args[0] if error.args else error)) from error
        if name not in (values := course.values()):
            raise CourseError(f"there is no course value {name!r}; there are {', '.join(values)}")
        return values[name]

    return resolve


def fill(nb: NotebookNode, resolve: Callable[[str, str, str | None], str], name: str) -> None:
    """Replace every placeholder in the cells of `nb`, in place; drop the notes for lint.

    CourseError names the notebook, the cell and every placeholder that cannot be filled.
    """
    trouble: list[str] = []
    for cell in nb.cells:
        cell.source, faults = filled(cell.source, resolve)
        trouble += [f"{name}, cell {cell['id']}: {fault}" for fault in faults]
        note = DERIVED_IN_CODE if cell.cell_type == "code" else DERIVED
        cell.source = note.sub("", cell.source).rstrip()
    if trouble:
        raise CourseError("\n".join(trouble))


def filled(text: str, resolve: Callable[[str, str, str | None], str]) -> tuple[str, list[str]]:
    """`text` with its placeholders filled, and what is wrong with those that cannot be."""
    faults: list[str] = []

    def put(match: re.Match[str]) -> str:
        try:
            return resolve(match[1], match[2], match[3])
        except CourseError as error:
            faults.append(f"{match[0]}: {error}")
            return ""

    text = PLACEHOLDER.sub(put, text)
    faults += [
        f"{left!r} is not of the form {{{{fact:path}}}}, {{{{fact:path|unit}}}} or "
        "{{course:name}}."
        for left in NEARLY.findall(text)
    ]
    return text, faults
