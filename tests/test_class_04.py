"""Notebook 04 from the nightly run to the gradebook: four learners, stock `nbgrader autograde`.

The learners' notebooks are made by script: the released version, with the solution's code in the
answer cells and the outputs of a run on the simulated T4, and one mistake planted in two of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from staff import build, nightly
from staff.course import load

ROOT = Path(__file__).parent.parent
STEM = "04_cos_chain_fusion"
MISTAKES = {
    "ada": {},
    "blank": None,
    "unit": {"04-4-answer": ("/ 1e9", "/ 1e6")},
    "wait": {"04-4-answer": ("cos1.median", "20e-6")},  # what a stopwatch that does not wait says
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The nightly run of both versions, without a GPU: {version: Run} and its folder."""
    out = tmp_path_factory.mktemp("nightly")
    return {run.version: run for run in nightly.nightly(load(ROOT), out, STEM)}, out


def learner(executed, released, changes):
    """The released notebook as a learner hands it in: answers, and the outputs of their run."""
    if changes is None:
        return nbformat.read(released, 4)
    nb = nbformat.read(released, 4)
    solved = {cell.id: cell for cell in nbformat.read(executed, 4).cells}
    for cell in nb.cells:
        if cell.cell_type != "code" or cell.id not in solved:
            continue
        cell.outputs = solved[cell.id].outputs
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if cell.metadata.get("nbgrader", {}).get("solution"):
            lines = [line for line in solved[cell.id].source.splitlines() if "### " not in line]
            cell.source = "\n".join(lines)
        if name in changes:
            old, new = changes[name]
            assert old in cell.source
            cell.source = cell.source.replace(old, new)
    return nb


@pytest.fixture(scope="module")
def grades(runs, tmp_path_factory):
    """{learner: {exercise: points}} and {learner: {exercise: what the judge wrote}}."""
    root = tmp_path_factory.mktemp("course")
    for name in ("course.toml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, root)
    (root / "labs_solutions" / "day1").mkdir(parents=True)
    for path in (ROOT / "labs_solutions").rglob("*"):
        if path.suffix in (".py", ".toml"):
            shutil.copy(path, root / path.relative_to(ROOT))
    build.build(load(root))
    for name, changes in MISTAKES.items():
        folder = root / "submitted" / name / "day1"
        folder.mkdir(parents=True)
        released = root / "notebooks" / "day1" / f"{STEM}.ipynb"
        nb = learner(runs[1] / f"{STEM}.solution.ipynb", released, changes)
        nbformat.write(nb, folder / f"{STEM}.ipynb")
    environment = dict(os.environ, PYTHONPATH=str(ROOT), CUDA_VISIBLE_DEVICES="")
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", "day1"],
        cwd=root, env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    points, said, errors = {}, {}, {}
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        for name in MISTAKES:
            book = gradebook.find_submission("day1", name).notebooks[0]
            points[name] = {grade.name: grade.auto_score for grade in book.grades}
    for name in MISTAKES:
        nb = nbformat.read(root / "autograded" / name / "day1" / f"{STEM}.ipynb", 4)
        errors[name] = [
            output.evalue
            for cell in nb.cells
            for output in cell.get("outputs", [])
            if output.output_type == "error"
        ]
        said[name] = {
            cell.metadata.nbgrader.grade_id: cell.outputs[0].text
            for cell in nb.cells
            if cell.metadata.get("nbgrader", {}).get("grade")
        }
    assert errors == {name: [] for name in MISTAKES}
    return points, said


def test_the_nightly_run_is_green_without_a_gpu(runs):
    for run in runs[0].values():
        assert (run.failures, run.state) == ([], "passed")
        assert run.devices == ("Tesla T4 (simulated)",)
        assert run.points == (15.0 if run.version == "solution" else 0.0)


def test_every_figure_says_on_what_card_it_stands(runs):
    nb = nbformat.read(runs[1] / f"{STEM}.solution.ipynb", 4)
    texts = [
        "".join(output.data["text/plain"])
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert len(texts) >= 8
    calculated = [t for t in texts if "calculated" in t.lower() or "counted" in t.lower()]
    assert all("Tesla T4 (simulated)" in t for t in texts if t not in calculated)
    assert len(texts) - len(calculated) >= 5
    assert not any("· measured" in t for t in texts)


def test_solved_scores_full_marks(grades):
    points, said = grades
    assert sum(points["ada"].values()) == 15.0, said["ada"]


def test_untouched_scores_nothing_and_says_not_started(grades):
    points, said = grades
    assert set(points["blank"].values()) == {0.0}
    assert all("not started" in text for text in said["blank"].values())


@pytest.mark.parametrize(
    ("name", "words"), [("unit", "1,000 times too large"), ("wait", "Did you wait for it?")]
)
def test_a_mistake_is_named_and_costs_nothing_else(grades, name, words):
    points, said = grades
    assert points[name].pop("04-4") == 0.0 and words in said[name]["04-4"]
    assert sum(points[name].values()) == 14.0
