"""`brrr build`: from labs_solutions/*.py to the student notebooks and the list of Colab links.

nbgrader makes the student versions, in a temporary folder: its own --force would delete the
whole release folder first. Nothing of the repository is written until all of it has been made.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from traitlets.config import Config, PyFileConfigLoader

from staff import canonical, leaks, pages
from staff.course import Course, CourseError
from staff.startup import venv_first

LINKS = "colab_links.md"
OURS = f"{CourseError.__module__}.{CourseError.__name__}: "
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"
HARMLESS = ("*.evidence.json", "*.replay.json", ".gitkeep")  # ignored by nbgrader_config.py


@dataclass(frozen=True)
class Built:
    """What the sources give: text per file, by path relative to the course's root."""

    solutions: dict[str, str] = field(default_factory=dict)
    released: dict[str, str] = field(default_factory=dict)


def build(course: Course) -> list[str]:
    """Write what has changed; returns the paths written. The gradebook learns of each notebook.

    CourseError if a solution notebook was edited after its .py, if anything would leak, or if
    nbgrader refuses.
    """
    sources = _convert(course)
    for stem, nb in sources.items():
        _refuse_newer(course, stem, nb)
    make(course, sources, gradebook=False)  # what is refused must not reach the gradebook
    made = make(course, sources, gradebook=True)
    written = [
        name
        for name, text in (made.solutions | made.released).items()
        if _write(course.root / name, text)
    ]
    for stem in sources:  # as old as its source, so that a later edit can be told apart
        stat = (course.sources / f"{stem}.py").stat()
        os.utime(course.sources / f"{stem}.ipynb", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return written


def check(course: Course) -> list[str]:
    """What a build would change, one sentence per file; writes nothing."""
    made = make(course, _convert(course), gradebook=False)
    found = list(leaks.in_folder(course.released, _stems(made)))
    for name, text in made.released.items():
        path = course.root / name
        old = path.read_bytes().decode("utf-8", "replace") if path.exists() else None
        if old != text:
            found.append(f"{name} {_difference(old, text)} Run `brrr build`.")
    return found


def make(course: Course, sources: dict[str, NotebookNode], *, gradebook: bool) -> Built:
    """All files of a build, made in a temporary folder."""
    assignment, resolve = course.assignment, canonical.resolver(course)
    for stem, nb in sources.items():  # nbgrader would tell of the first fault only
        canonical.fill(copy.deepcopy(nb), resolve, stem)
    made = Built(
        {
            f"labs_solutions/{assignment}/{stem}.ipynb": canonical.dump(nb)
            for stem, nb in sources.items()
        }
    )
    with tempfile.TemporaryDirectory(prefix="brrr-build-") as folder:
        room = Path(folder).resolve()
        (room / "source" / assignment).mkdir(parents=True)
        for stem, nb in sources.items():
            path = room / "source" / assignment / f"{stem}.ipynb"
            path.write_text(canonical.dump(nb), "utf-8")
        if sources:
            generate(course, room, gradebook=gradebook)
        trouble = list(leaks.in_folder(room / "release", {})) if not sources else []
        for stem, nb in sources.items():
            path = room / "release" / assignment / f"{stem}.ipynb"
            student = canonical.release(nbformat.read(path, 4), stem)
            trouble += leaks.in_notebook(f"{stem}.ipynb", student, leaks.secrets(nb))
            made.released[f"notebooks/{assignment}/{stem}.ipynb"] = canonical.dump(student)
    if trouble:
        raise CourseError("Nothing was written, because it would leak:\n" + "\n".join(trouble))
    made.released[LINKS] = links(course)
    made.released.update(pages.made(course))
    return made


def generate(course: Course, room: Path, *, gradebook: bool) -> None:
    """nbgrader generate_assignment from room/source to room/release, with the course's config."""
    from nbgrader.converters.base import NbGraderException
    from nbgrader.converters.generate_assignment import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    venv_first()
    config = nbgrader_config(course.root)
    config.CourseDirectory.root = str(room)
    config.CourseDirectory.source_directory = "source"
    config.CourseDirectory.release_directory = "release"
    config.CourseDirectory.assignment_id = course.assignment
    if not gradebook:
        config.SaveCells.enabled = False
        config.GenerateAssignment.no_database = True
    app = GenerateAssignment(coursedir=CourseDirectory(config=config), config=config)
    with _captured(app.log) as log:
        try:
            app.start()
        except NbGraderException:
            text = "\n".join(log)
            if "submissions associated" in text:
                raise CourseError(
                    "The gradebook holds submissions, and exercises were added or removed since: "
                    "grade with the course version they were made with, or move gradebook.db "
                    "away to begin a new class."
                ) from None
            errors = [line for line in text.splitlines() if re.match(r"[\w.]*Error: ", line)]
            raise CourseError(
                "nbgrader could not make the student versions: "
                + (errors or [text])[-1].removeprefix(OURS)
            ) from None


def nbgrader_config(root: Path) -> Config:
    """The course's nbgrader_config.py as nbgrader itself would load it."""
    if not (root / "nbgrader_config.py").exists():
        raise CourseError(f"There is no nbgrader_config.py in {root}.")
    return PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()


def links(course: Course) -> str:
    """colab_links.md: one row per notebook, its badge pinned to the course's tag."""
    written = {n.stem for n in course.written()}
    rows = [
        f"# {course.title}",
        "",
        f"Generated by `brrr build` from `course.toml`; the links open version `{course.tag}`.",
        "",
        "| | notebook | minutes | what it teaches | |",
        "|---|---|---|---|---|",
    ]
    for n in course.notebooks:
        if n.stem in written:
            name = f"[{n.title}](notebooks/{course.assignment}/{n.stem}.ipynb)"
            badge = f"[![Open {n.stem} in Colab]({BADGE})]({course.colab_link(n.stem)})"
        else:
            name, badge = n.title, "not written yet"
        rows.append(f"| {n.number} | {name} | {n.minutes} | {n.teaches} | {badge} |")
    return "\n".join(rows) + "\n"


def _convert(course: Course) -> dict[str, NotebookNode]:
    notebooks = course.written()
    expected = {f"{n.stem}{suffix}" for n in notebooks for suffix in (".py", ".ipynb")}
    for path in sorted(course.sources.glob("*")):
        known = path.name in expected or any(path.match(pattern) for pattern in HARMLESS)
        if path.is_file() and not known:
            raise CourseError(
                f"{path} would be released to learners by nbgrader, which "
                "copies every extra file: move it out of that folder."
            )
    return {n.stem: canonical.from_source(course.sources / f"{n.stem}.py") for n in notebooks}


def _refuse_newer(course: Course, stem: str, wanted: NotebookNode) -> None:
    source, path = course.sources / f"{stem}.py", course.sources / f"{stem}.ipynb"
    if not path.exists() or path.stat().st_mtime_ns <= source.stat().st_mtime_ns:
        return
    edited = canonical.tidy(nbformat.read(path, 4))
    if [(c.cell_type, c.source, c.metadata) for c in edited.cells] == [
        (c.cell_type, c.source, c.metadata) for c in wanted.cells
    ]:
        return
    raise CourseError(
        f"{path} was edited after {source.name} and differs from it. Run `jupytext --to "
        f"py:percent {path}` to keep the edit, or delete that .ipynb to drop it."
    )


def _stems(made: Built) -> dict[str, None]:
    return {Path(name).stem: None for name in made.solutions}


def _write(path: Path, text: str) -> bool:
    if path.exists() and path.read_bytes() == text.encode():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, "utf-8")
    draft.replace(path)
    return True


def _difference(old: str | None, new: str) -> str:
    if old is None:
        return "is missing."
    pairs = zip_longest(old.split("\n"), new.split("\n"), fillvalue="(nothing)")
    number, (here, wanted) = next(
        (n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1]
    )
    return (
        f"is not what its source gives, first at line {number}: it has {here.strip()[:120]!r} "
        f"in place of {wanted.strip()[:120]!r}."
    )


@contextmanager
def _captured(logger: logging.Logger) -> Iterator[list[str]]:
    """Everything that `logger` says at level WARNING or above, kept instead of printed."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, handlers, propagate = Keep(logging.WARNING), logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [handler], False
    try:
        yield lines
    finally:
        logger.handlers, logger.propagate = handlers, propagate
