"""Run a notebook's cells in this process: a second per notebook, where a kernel takes five.

The nightly run uses real kernels; this is for the many ways in which a learner runs cells.
"""

from __future__ import annotations

import contextlib
import io
import linecache
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from helpers import lab, output, session, simgpu, standing, telling
from helpers.lab import CHECK_MIME
from staff import nightly
from staff.course import load

ROOT = Path(__file__).parent.parent
COURSE = load(ROOT)
STEMS = tuple(n.stem for n in COURSE.written())
VERSIONS = ("solution", "student")


@dataclass
class Outcome:
    """What the cells showed: the last check of each exercise, all text, and what was raised."""

    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    text: str = ""
    raised: list[tuple[str, BaseException]] = field(default_factory=list)

    @property
    def states(self) -> dict[str, tuple[str, float]]:
        return {k: (c["state"], c["fraction"]) for k, c in self.checks.items()}


def notebook(stem: str, version: str) -> nbformat.NotebookNode:
    return nightly.load(COURSE, stem, version)


def code(nb: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """(name of the cell, its code), in order."""
    return [(cell["id"], cell.source) for cell in nb.cells if cell.cell_type == "code"]


def points(nb: nbformat.NotebookNode) -> dict[str, float]:
    """Points of the exercises that are graded automatically."""
    return {
        cell.metadata.nbgrader["grade_id"]: float(cell.metadata.nbgrader["points"])
        for cell in nb.cells
        if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
    }


def manual_points(nb: nbformat.NotebookNode) -> float:
    """Points that a person gives."""
    return sum(
        float(cell.metadata.nbgrader["points"])
        for cell in nb.cells
        if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("grade")
    )


def fresh(monkeypatch: Any, folder: Path, **environment: str) -> None:
    """The surroundings of a new kernel: no session, no simulated card, nothing set from outside."""
    for name in ("BRRR_GPU", "BRRR_DEVICE", "NBGRADER_EXECUTION", "COLAB_RELEASE_TAG"):
        monkeypatch.delenv(name, raising=False)
    settings = {"BRRR_STATIC": "1", "BRRR_EVIDENCE_DIR": str(folder)} | environment
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    restart(monkeypatch)


def restart(monkeypatch: Any) -> None:
    """Only what lies in files survives."""
    if simgpu.active():
        simgpu.active().deactivate()
    monkeypatch.setattr(session, "_current", None)


def run(
    cells: list[tuple[str, str]], monkeypatch: Any, names: dict[str, Any] | None = None
) -> Outcome:
    """Run the cells one after the other; one that raises does not stop the rest."""
    names = {"__name__": "__main__"} if names is None else names
    found, said = Outcome(), io.StringIO()

    def publish(bundle: dict[str, Any], **more: Any) -> None:
        if check := bundle.get(CHECK_MIME):
            found.checks[check["exercise"]] = check
        said.write(str(bundle.get("text/plain", "")) + "\n")

    for module in (lab, output, standing, telling):
        monkeypatch.setattr(module, "publish", publish)
    with contextlib.redirect_stdout(said):
        for name, source in cells:
            filename = f"<cell {name}>"
            linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
            try:
                exec(compile(source, filename, "exec"), names)
            except Exception as error:
                found.raised.append((name, error))
    found.text = said.getvalue()
    return found


def solve(stem: str, monkeypatch: Any, folder: Path, **environment: str) -> Outcome:
    """The solved notebook, run in fresh surroundings."""
    fresh(monkeypatch, folder, **environment)
    return run(code(notebook(stem, "solution")), monkeypatch)
