"""The class: four learners, from the nightly run through stock `nbgrader autograde`.

The learners' notebooks are made by script: the released version, with the solution's code in the
answer cells and the outputs of a run on the simulated T4, and one mistake planted in two of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from staff import build, nightly
from staff.course import load
from tests import cells

ROOT = Path(__file__).parent.parent
COSINES = "04_cos_chain_fusion"
UNTIMED = ("· calculated", "calculated for", "calculated:", "· counted", "· published")
pytestmark = pytest.mark.slow
MISTAKES = {
    "ada": {},
    "blank": None,
    "unit": {"04-4-answer": ("/ 1e9", "/ 1e6")},
    "wait": {"04-4-answer": ("cos1.median", "20e-6")},  # what a stopwatch that does not wait says
}


@dataclass
class Class:
    """The runs, and what the gradebook and the judge say of each learner's exercises."""

    stems: tuple[str, ...]
    runs: dict[tuple[str, str], nightly.Run]
    folder: Path
    points: dict[str, dict[str, float]]
    said: dict[str, dict[str, str]]
    by_hand: dict[str, list[str]]  # exercises that a person must grade


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    stems, out = cells.STEMS, tmp_path_factory.mktemp("nightly")
    runs = {(run.stem, run.version): run for run in nightly.nightly(load(ROOT), out)}
    root = tmp_path_factory.mktemp("course")
    hand_in(root, stems, out)
    environment = dict(os.environ, PYTHONPATH=str(ROOT), CUDA_VISIBLE_DEVICES="")
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", "day1"],
        cwd=root, env=environment, capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return Class(stems, runs, out, *read(root, stems))


def hand_in(root, stems, out):
    """A course of its own in `root`, and what the four learners hand in."""
    for name in ("course.toml", "nbgrader_config.py"):
        shutil.copy(ROOT / name, root)
    (root / "labs_solutions" / "day1").mkdir(parents=True)
    for stem in stems:
        shutil.copy(ROOT / f"labs_solutions/day1/{stem}.py", root / "labs_solutions/day1")
    build.build(load(root))
    for name, changes in MISTAKES.items():
        folder = root / "submitted" / name / "day1"
        folder.mkdir(parents=True)
        for stem in stems:
            released = root / "notebooks" / "day1" / f"{stem}.ipynb"
            nb = learner(out / f"{stem}.solution.ipynb", released, changes)
            nbformat.write(nb, folder / f"{stem}.ipynb")


def learner(executed, released, changes):
    """The released notebook as a learner hands it in: answers, and the outputs of their run."""
    nb = nbformat.read(released, 4)
    if changes is None:
        return nb
    solved = {cell.id: cell for cell in nbformat.read(executed, 4).cells}
    for cell in nb.cells:
        if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "All rows share one trip of the weights."
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


def read(root, stems):
    points, said, by_hand = {}, {}, {}
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        for name in MISTAKES:
            books = gradebook.find_submission("day1", name).notebooks
            grades = [grade for book in books for grade in book.grades]
            auto = [grade for grade in grades if grade.auto_score is not None]
            points[name] = {grade.name: grade.auto_score for grade in auto}
            by_hand[name] = [grade.name for grade in grades if grade.needs_manual_grade]
    for name in MISTAKES:
        said[name] = {}
        for stem in stems:
            nb = nbformat.read(root / "autograded" / name / "day1" / f"{stem}.ipynb", 4)
            outputs = [output for cell in nb.cells for output in cell.get("outputs", [])]
            errors = [output.evalue for output in outputs if output.output_type == "error"]
            assert errors == [], (name, stem)
            said[name] |= {
                cell.metadata.nbgrader.grade_id: cell.outputs[0].text
                for cell in nb.cells
                if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
            }
    return points, said, by_hand


def test_the_nightly_run_is_green_without_a_gpu(graded):
    for (stem, version), run in graded.runs.items():
        assert (run.failures, run.state) == ([], "passed"), stem
        assert run.devices in ((), ("Tesla T4 (simulated)",)), stem
        assert run.points == (run.possible if version == "solution" else 0.0), stem
    assert graded.runs[COSINES, "solution"].devices


def test_every_figure_says_on_what_card_it_stands(graded):
    for stem in graded.stems:
        nb = nbformat.read(graded.folder / f"{stem}.solution.ipynb", 4)
        texts = [
            "".join(output.data["text/plain"])
            for cell in nb.cells
            for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})
        ]
        timed = [t for t in texts if not any(word in t.lower() for word in UNTIMED)]
        assert len(texts) >= 2, stem
        assert all("Tesla T4 (simulated)" in t for t in timed), stem
        assert not any("· measured" in t for t in texts), stem


def test_solved_scores_full_marks(graded):
    wanted = {}
    for stem in graded.stems:
        wanted |= cells.points(cells.notebook(stem, "solution"))
    lost = {k: graded.said["ada"][k] for k, v in graded.points["ada"].items() if v != wanted[k]}
    assert lost == {} and set(graded.points["ada"]) == set(wanted)


def test_untouched_scores_nothing_and_says_not_started(graded):
    assert set(graded.points["blank"].values()) == {0.0}
    assert all("not started" in text for text in graded.said["blank"].values())


def test_only_the_written_answer_waits_for_a_person(graded):
    for name, exercises in graded.by_hand.items():
        assert all(exercise.startswith("06-") for exercise in exercises), name
        assert len(exercises) == (name != "blank"), name


@pytest.mark.parametrize(
    ("name", "words"), [("unit", "1,000 times too large"), ("wait", "Did you wait for it?")]
)
def test_a_mistake_is_named_and_costs_nothing_else(graded, name, words):
    points = dict(graded.points[name])
    assert points.pop("04-4") == 0.0 and words in graded.said[name]["04-4"]
    perfect = {k: v for k, v in graded.points["ada"].items() if k != "04-4"}
    assert points == perfect
