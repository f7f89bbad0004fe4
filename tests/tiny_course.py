"""A course with one small exercise, written into a temporary folder for the staff's tests."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

from nbgrader.api import Gradebook

from staff.course import Course, load
from staff.startup import venv_first

REPOSITORY = Path(__file__).resolve().parents[1]

COURSE = """
[course]
title = "Tiny"
version = "0.1.0"
repository = "somebody/tiny"
tag = "v0.1.0"
assignment = "day1"

[limits]
cell_seconds = {cell_seconds}
notebook_seconds = {notebook_seconds}
kernel_start_seconds = 60
"""

ENTRY = """
[[notebooks]]
stem = "{stem}"
title = "Notebook {stem}"
minutes = 10
teaches = "One thing."
"""

# `check` shows what helpers.lab shows, so that the staff's rooms are tested without the lab.
SETUP = """# %% [markdown]
# # A tiny notebook
# It is made for version {{course:version}}.

# %%
import os
from IPython.display import display

def check(exercise, answer):
    if os.environ.get("NBGRADER_EXECUTION"):
        data = {"exercise": exercise, "value": None if answer is ... else answer}
        display({"application/vnd.brrr.answer+json": data, "text/plain": "answer"}, raw=True)
        return
    state = "not_started" if answer is ... else "right" if answer == 42 else "not_yet"
    data = {"exercise": exercise, "state": state, "fraction": float(state == "right"),
            "message": "six times seven"}
    display({"application/vnd.brrr.check+json": data, "text/plain": state}, raw=True)
"""


def exercise(
    number: str,
    solution: str = "answer = 6 * 7  # the secret of the course",
    placeholder: str = "answer = ...",
    points: int = 2,
) -> str:
    """The source of one answer cell and its check cell; `number` is for example "04-1"."""
    return f'''
# %% nbgrader={{"grade": false, "grade_id": "{number}-answer", "locked": false, \
"schema_version": 3, "solution": true, "task": false}}
{placeholder}
### BEGIN SOLUTION
{solution}
### END SOLUTION

# %% nbgrader={{"grade": true, "grade_id": "{number}", "locked": true, "points": {points}, \
"schema_version": 3, "solution": false, "task": false}}
check("{number}", answer)
'''


@functools.cache
def empty_gradebook() -> bytes:
    """A new gradebook. nbgrader needs two seconds to make one, so the tests share it."""
    venv_first()
    with tempfile.TemporaryDirectory() as folder:
        with Gradebook(f"sqlite:///{folder}/gradebook.db"):
            pass
        return (Path(folder) / "gradebook.db").read_bytes()


def write(
    root: Path,
    sources: dict[str, str],
    cell_seconds: int = 60,
    notebook_seconds: int = 120,
    gradebook: bool = True,
) -> Course:
    """The course of `sources` (stem: py:percent text) in `root`, with the real nbgrader wiring."""
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    text = COURSE.format(cell_seconds=cell_seconds, notebook_seconds=notebook_seconds)
    text += "".join(ENTRY.format(stem=stem) for stem in sorted(sources))
    (root / "course.toml").write_text(text, "utf-8")
    if gradebook:
        (root / "gradebook.db").write_bytes(empty_gradebook())
    course = load(root)
    course.sources.mkdir(parents=True)
    course.released.mkdir(parents=True)
    for stem, source in sources.items():
        (course.sources / f"{stem}.py").write_text(source, "utf-8")
    return course
