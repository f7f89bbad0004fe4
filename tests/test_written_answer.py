"""A written answer, graded by hand: through build, lint, the nightly run and stock autograde."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from staff import build, canonical, lint, nightly
from tests import tiny_course

ROOT = Path(__file__).resolve().parents[1]
STEM = "06_batch_size"
NAME = "06-written"
WRITTEN = """
# %% [markdown] nbgrader={"grade": true, "grade_id": "04-written", "locked": false, \
"points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The weights are read once for all rows of a batch.
# ### END SOLUTION
"""
SOURCE = tiny_course.SETUP + tiny_course.exercise("04-1") + WRITTEN
ANSWERS = {"writer": "All rows share one trip.", "silent": None}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    made = tiny_course.write(tmp_path_factory.mktemp("course"), {"04_tiny": SOURCE})
    build.build(made)
    return made


def written_in(nb, name="04-written"):
    (cell,) = [c for c in nb.cells if canonical.grade_id(c) == name]
    return cell


def test_the_learner_gets_an_empty_cell_that_may_be_edited(course):
    cell = written_in(nbformat.read(course.released / "04_tiny.ipynb", 4))
    assert (cell.cell_type, cell.source) == ("markdown", "*Your answer here.*")
    assert "deletable" not in cell.metadata or cell.metadata.deletable is False
    assert cell.metadata.get("editable", True)
    assert cell.metadata.nbgrader.points == 4


def test_the_model_answer_is_a_secret_that_the_build_guards(tmp_path):
    secret = lint.leaks.secrets(canonical.from_source(course_source(SOURCE, tmp_path)))
    assert "The weights are read once for all rows of a batch." in secret


def course_source(text, folder):
    path = folder / "04_secret.py"
    path.write_text(text, "utf-8")
    return path


def test_lint_takes_it_and_wants_points(course, tmp_path):
    assert lint.lint(course) == []
    poor = SOURCE.replace('"points": 4', '"points": 0')
    found = lint.lint_source("x", canonical.from_source(course_source(poor, tmp_path)), "04")
    assert ["points above 0" in finding.message for finding in found] == [True]


def test_the_nightly_run_counts_automatic_points_only(course):
    nb = canonical.from_source(course.sources / "04_tiny.py")
    run = nightly.Run("04_tiny", "student")
    nightly.inspect_exercises(nb, None, run)
    assert run.possible == 2 and run.failures == ["not checked: exercise 04-1"]


@pytest.fixture(scope="module")
def grades(course):
    for learner, text in ANSWERS.items():
        folder = course.root / "submitted" / learner / "day1"
        folder.mkdir(parents=True)
        nb = nbformat.read(course.released / "04_tiny.ipynb", 4)
        written_in(nb).source = text or written_in(nb).source
        nbformat.write(nb, folder / "04_tiny.ipynb")
    (course.root / "tiny_grader.py").write_text(
        "from helpers.checks import Outcome\n"
        "def grade(exercise, answer, context):\n    return Outcome('not_started')\n",
        "utf-8",
    )
    with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('\nc.Judge.grader = "tiny_grader.grade"\n')
    paths = f"{tiny_course.REPOSITORY}{os.pathsep}{course.root}"
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", "day1"],
        cwd=course.root, text=True, timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONPATH": paths, "IPYTHONDIR": str(course.root / "ipython")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    found = {}
    with Gradebook(f"sqlite:///{course.root}/gradebook.db") as gradebook:
        for learner in ANSWERS:
            book = gradebook.find_submission_notebook("04_tiny", "day1", learner)
            found[learner] = {g.name: (g.auto_score, g.needs_manual_grade, g.max_score)
                              for g in book.grades}  # fmt: skip
    return found


def test_stock_autograde_leaves_a_written_answer_to_a_person(grades):
    assert grades["writer"]["04-written"] == (None, True, 4)
    assert grades["writer"]["04-1"] == (0, False, 2)


def test_an_untouched_cell_is_zero_and_waits_for_nobody(grades):
    assert grades["silent"]["04-written"] == (0, False, 4)


def test_the_real_cell_asks_for_what_the_rubric_grades():
    nb = canonical.from_source(ROOT / "labs_solutions" / "day1" / f"{STEM}.py")
    cell = written_in(nb, NAME)
    settings = cell.metadata.nbgrader
    assert (settings.grade, settings.solution, settings.locked, settings.points) == (
        True, True, False, 4,
    )  # fmt: skip
    at = nb.cells.index(cell)
    asked = nb.cells[at - 1].source
    for words in ("fixed", "until when", "two exceptions", "which test"):
        assert words in asked
    assert len(re.findall(r"^- ", asked, re.MULTILINE)) == settings.points
    assert len(re.findall(r"^\d\. \*", cell.source, re.MULTILINE)) == settings.points


def test_the_rubric_page_has_the_same_four_lines():
    nb = canonical.from_source(ROOT / "labs_solutions" / "day1" / f"{STEM}.py")
    lines = re.findall(r"^(\d)\. \*([^*]+)\*", written_in(nb, NAME).source, re.MULTILINE)
    page = (ROOT / "docs" / "instructors" / "rubric_06.md").read_text("utf-8")
    for number, title in lines:
        assert f"| {number} {title} |" in page
    assert len(lines) == 4


def test_the_student_version_holds_neither_answer_nor_rubric():
    nb = nbformat.read(ROOT / "notebooks" / "day1" / f"{STEM}.ipynb", 4)
    assert written_in(nb, NAME).source == "*Your answer here.*"
    assert not any("How to grade" in cell.source for cell in nb.cells)
