"""`brrr lint`: what nbgrader, Colab and the course's own rules expect of each notebook."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4.rwbase import rejoin_lines

from staff import canonical, leaks, pages
from staff.course import Course

MOST_CODE = 45  # lines of one code cell
MOST_PROSE = 400  # words of one markdown cell
EXERCISE = re.compile(r"^\d{2}-\d+$")
ANSWER = re.compile(r"^(\d{2}-\d+)-(?:answer|prediction)$")  # what a learner fills in
FENCE = re.compile(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
IMAGE = re.compile(r"!\[([^\]]*)\]\(|<img\b([^>]*)>", re.IGNORECASE)
UNIT = (
    r"(?:[kKMGTP]i?B(?:/s)?|B/s|[kMGTP]?FLOPS|[kMGTP]?FLOPs?/s|[kMGTP]FLOPs?|FLOPs?/B|"
    r"[munµμ]?s|W|[kMG]?Hz|tokens?/s|USD)"
)
QUANTITY = re.compile(
    rf"(?<![\w.,$])\d+(?:[.,]\d+)*(?:e[+-]?\d+)?[ \u00a0\u202f]?{UNIT}(?![\w/])"
    r"|\\?\$\d+(?:[.,]\d+)*"
)
MATH = re.compile(r"\$\$.*?\$\$|(?<!\\)\$(?=\S)[^$\n]*?(?<=\S)\$(?!\d)", re.DOTALL)
NOTE = re.compile(r"(?:<!--|#)\s*derived:(.*?)(?:-->|$)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: the file, the cell (or ""), and what to do."""

    file: str
    cell: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}{', cell ' + self.cell if self.cell else ''}: {self.message}"


def lint(course: Course) -> list[Finding]:
    """All findings in the sources and in the student notebooks that exist."""
    found: list[Finding] = []
    for notebook in course.written():
        path = course.sources / f"{notebook.stem}.py"
        found += lint_source(path.name, canonical.from_source(path), notebook.number)
        released = course.released / f"{notebook.stem}.ipynb"
        if not released.exists():
            found.append(Finding(str(released), "", "is missing: run `brrr build`."))
            continue
        found += lint_released(released, course.limits.notebook_bytes)
    for page in pages.sources(course):
        found += [Finding(page.name, "", m) for m in _prose(page.read_text("utf-8"))]
    found += [Finding(name, "", message) for name, message in pages.dead_links(course)]
    found += [
        Finding(course.released.name, "", s)
        for s in leaks.in_folder(course.released, {n.stem: None for n in course.written()})
    ]
    return found


def lint_source(name: str, nb: NotebookNode, number: str) -> Iterator[Finding]:
    """Findings in one source notebook; `number` is the two digits its exercise ids begin with."""
    for message, cell in _ids(nb, number):
        yield Finding(name, cell, message)
    for cell in nb.cells:
        for message in _cell(cell):
            yield Finding(name, cell["id"], message)


def lint_released(path: Path, most_bytes: int) -> Iterator[Finding]:
    """Findings in one student notebook as it lies on disk."""
    if (size := path.stat().st_size) > most_bytes:
        yield Finding(path.name, "", f"has {size:,} bytes, more than {most_bytes:,}.")
    # nbformat.read would repair what is to be found here
    nb = rejoin_lines(nbformat.from_dict(json.loads(path.read_text("utf-8"))))
    if nb.metadata.get("kernelspec", {}).get("name") != "python3":
        yield Finding(path.name, "", "its kernelspec must be named python3.")
    if "widgets" in nb.metadata:
        yield Finding(path.name, "", "holds metadata.widgets, which breaks nbgrader's feedback.")
    if nb.metadata.get("colab", {}).get("name") != path.name:
        yield Finding(path.name, "", "metadata.colab.name must be the file's name.")
    ids = [cell.get("id") for cell in nb.cells]
    for repeated in sorted({str(i) for i in ids if i is None or ids.count(i) > 1}):
        yield Finding(path.name, repeated, "every cell needs an id of its own.")
    for sentence in leaks.in_notebook(path.name, nb):
        yield Finding(path.name, "", sentence)
    for cell in nb.cells:
        if cell.get("execution_count") is not None:
            yield Finding(path.name, str(cell.get("id")), "has an execution count.")
        if cell.cell_type == "code" and (problem := _unparsed(cell.source)):
            yield Finding(path.name, str(cell.get("id")), f"does not parse: {problem}.")


def _ids(nb: NotebookNode, number: str) -> Iterator[tuple[str, str]]:
    """What is wrong with the nbgrader cells, as (message, cell)."""
    seen: list[str] = []
    for cell in nb.cells:
        settings = cell.metadata.get("nbgrader")
        if settings is None:
            if "BEGIN SOLUTION" in cell.source or "BEGIN HIDDEN" in cell.source:
                yield "a solution or hidden test needs nbgrader metadata.", cell["id"]
            continue
        name = str(settings.get("grade_id", ""))
        if name in seen:
            yield f"the grade_id {name!r} is used twice.", name
        if not name.startswith(f"{number}-"):
            yield f"the grade_id {name!r} must begin with {number}-.", name
        if settings.get("grade") and not settings.get("solution"):
            yield from ((message, name) for message in _check_cell(cell, settings, name, seen))
        elif settings.get("solution"):
            yield from ((message, name) for message in _answer_cell(cell, settings, name))
        seen.append(name)
    for name in seen:
        if (filled := ANSWER.match(name)) and filled[1] not in seen:
            yield f"no check cell {filled[1]!r} follows.", name


def _check_cell(cell: NotebookNode, settings: dict, name: str, seen: list[str]) -> Iterator[str]:
    if not EXERCISE.match(name):
        yield f"the id of a check cell must look like 04-2, not {name!r}."
    if not float(settings.get("points", 0)) > 0:
        yield "a check cell needs points above 0."
    if not settings.get("locked"):
        yield "a check cell must be locked."
    if f"{name}-answer" not in seen:
        yield f"no answer cell {name}-answer stands before it."
    if f'check("{name}"' not in cell.source.replace("'", '"'):
        yield f'a check cell must call lab.check("{name}", ...).'


def _answer_cell(cell: NotebookNode, settings: dict, name: str) -> Iterator[str]:
    if settings.get("locked"):
        yield "an answer cell must not be locked."
    if settings.get("grade"):  # graded by a person: its text is the answer
        if not float(settings.get("points", 0)) > 0:
            yield "a cell graded by hand needs points above 0."
        return
    if not ANSWER.match(name):
        yield f"the id of an answer cell must look like 04-2-answer or 04-2-prediction: {name!r}."
    above, begin, region = cell.source.partition("### BEGIN SOLUTION")
    if not begin or "### END SOLUTION" not in region:
        yield "an answer cell needs a ### BEGIN SOLUTION ... ### END SOLUTION region."
    elif not re.search(r"^[^#\n]*(\.\.\.|\"\"\"|''')", above, re.MULTILINE):
        yield (
            "a placeholder (`name = ...`, or a signature with its docstring) must stand above "
            "the solution."
        )


def _cell(cell: NotebookNode) -> Iterator[str]:
    if cell.cell_type == "code":
        lines = [line for line in cell.source.splitlines() if line.strip()]
        if len(lines) > MOST_CODE:
            yield f"{len(lines)} lines of code are more than {MOST_CODE}: split it."
        if problem := _unparsed(cell.source):
            yield f"does not parse: {problem}."
            return
        yield from _bare_numbers("\n".join(_comments(cell.source)), cell.source)
        return
    words = len(cell.source.split())
    if words > MOST_PROSE:
        yield f"{words} words are more than {MOST_PROSE}: one idea at a time."
    for language, block in FENCE.findall(cell.source):
        if language in ("python", "py") and (problem := _unparsed(block)):
            yield f"a code block does not parse: {problem}."
    yield from _prose(cell.source)


def _prose(source: str) -> Iterator[str]:
    """What is wrong with a text in Markdown: images without words, bare numbers."""
    prose = FENCE.sub("", source)
    for alt, attributes in IMAGE.findall(prose):
        if not alt.strip() and not re.search(r"\balt=[\"'][^\"']+", attributes):
            yield "an image needs an alternative text."
    prose = re.sub(r"`[^`\n]*`|\]\([^)]*\)|<[^>]*>", " ", canonical.DERIVED.sub("", prose))
    yield from _bare_numbers(MATH.sub(" ", prose), source)


def _bare_numbers(prose: str, source: str) -> Iterator[str]:
    """Numbers with a unit that neither come from the facts nor are noted as derived.

    A cell notes what its own sentences define or compute: `<!-- derived: 268 MB; 537 MB -->`,
    in code `# derived: 268 MB`. The build drops the note.
    """
    noted = [_spaced(item) for note in NOTE.findall(source) for item in note.split(";")]
    text = canonical.PLACEHOLDER.sub(" ", NOTE.sub("", prose))
    found = [_spaced(match[0]) for match in QUANTITY.finditer(text)]
    for quantity in found:
        if quantity not in noted:
            yield (
                f"{quantity!r} is a bare number with a unit: write {{{{fact:...}}}}, or note "
                "what the text itself derives: <!-- derived: ... -->."
            )
    for item in noted:
        if item not in found:
            yield f"the note derived: {item!r} fits nothing in this cell; drop it."


def _spaced(quantity: str) -> str:
    """`quantity` with one plain space before its unit, however it was written."""
    plain = re.sub(r"[\s\u00a0\u202f]+", " ", quantity).strip().lstrip("\\")
    return re.sub(r"(?<=\d) ?(?=[A-Za-zµμ])(?!e[+-]?\d)", " ", plain)


def _comments(source: str) -> Iterator[str]:
    transformed = TransformerManager().transform_cell(source)
    for token in tokenize.generate_tokens(io.StringIO(transformed).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _unparsed(source: str) -> str:
    """Why IPython could not run `source`, or "" when it parses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            ast.parse(TransformerManager().transform_cell(source))
    except SyntaxError as error:
        return f"line {error.lineno}, {error.msg}"
    return ""
