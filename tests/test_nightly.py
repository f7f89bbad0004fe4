"""brrr nightly: one run over five small notebooks, each broken in its own way."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import nbformat
import psutil
import pytest
from typer.testing import CliRunner

from staff import build, canonical, nightly
from staff.cli import app
from staff.course import Course, CourseError
from staff.nightly import Run
from tests import tiny_course
from tests.tiny_course import SETUP, exercise

TRACEBACK = (
    "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n"
    "    traceback.print_exc()\nanswer = 42"
)
SOURCES = {
    "01_good": SETUP
    + exercise("01-1")
    + exercise("01-2", "answer = 42\nimport sys\nprint('careful', file=sys.stderr)"),
    "02_wrong": SETUP + exercise("02-1", "answer = 41") + exercise("02-2", TRACEBACK),
    "03_raises": SETUP + exercise("03-1") + "\n# %%\nanswer + 1\n",  # ... + 1 raises
    "04_endless": SETUP + exercise("04-1", "import time\ntime.sleep(600)"),
    "05_killed": SETUP + exercise("05-1", "import os\nos.kill(os.getpid(), 9)"),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    made = tiny_course.write(tmp_path_factory.mktemp("nightly"), SOURCES, cell_seconds=3)
    build.build(made)
    return made


@pytest.fixture(scope="module")
def before(course: Course) -> dict[Path, bytes]:
    paths = [*course.sources.glob("*"), *course.released.glob("*")]
    return {path: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def runs(course: Course, before: dict[Path, bytes]) -> dict[tuple[str, str], Run]:
    done: list[Run] = []

    def kept(*args: object) -> list[Run]:
        done.extend(nightly_itself(*args))
        return done

    nightly_itself = nightly.nightly
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nightly, "nightly", kept)
        result = CliRunner().invoke(
            app, ["nightly", "--root", str(course.root), "--out", str(course.root / "nightly")]
        )
    assert result.exit_code == 1 and "failed  02_wrong  solution" in result.output, result.output
    return {(run.stem, run.version): run for run in done}


@pytest.mark.parametrize(
    ("stem", "version", "said"),
    [
        ("02_wrong", "solution", "exercise 02-1 is 'not_yet' at 0 of its points, not 'right': six"),
        ("03_raises", "student", "raised TypeError"),
        ("04_endless", "solution", "a cell ran longer than its 3 s; it was cell 04-1-answer"),
        ("05_killed", "solution", "the kernel died while it ran"),
        ("02_wrong", "solution", "cell 02-2-answer printed a traceback to stderr"),
    ],
)
def test_what_is_broken_is_named(runs: dict, stem: str, version: str, said: str) -> None:
    run = runs[stem, version]
    assert run.state == "failed"
    assert any(said in failure for failure in run.failures), run.failures


def test_a_cell_that_stops_the_run_leaves_the_rest_unchecked(runs: dict) -> None:
    assert "not checked: exercise 04-1" in runs["04_endless", "solution"].failures
    assert "it was cell 05-1-answer" in "".join(runs["05_killed", "solution"].failures)


def test_everything_else_passes(runs: dict) -> None:
    failed = {key for key, run in runs.items() if run.failures}
    assert failed == {
        ("02_wrong", "solution"),
        ("03_raises", "student"),
        ("04_endless", "solution"),
        ("05_killed", "solution"),
    }
    good = runs["01_good", "solution"]
    assert (good.points, good.possible) == (4, 4)
    assert runs["01_good", "student"].points == 0
    assert any("careful" in note for note in good.notes)
    assert not any(run.retried for run in runs.values())


def test_the_report_names_all_and_needs_nothing_else(course: Course, runs: dict) -> None:
    text = (course.root / "nightly" / "report.html").read_text("utf-8")
    for stem in SOURCES:
        assert text.count(f">{stem}<") == 2
    assert "4 of 10 runs failed" in text and "papermill " in text
    assert "<script" not in text and "src=" not in text and "http" not in text
    assert "raised TypeError" in text
    assert 'href="01_good.solution.ipynb"' in text
    executed = nbformat.read(course.root / "nightly" / "01_good.solution.ipynb", 4)
    assert executed.cells[1].execution_count


def test_junit_counts_the_failures(course: Course, runs: dict) -> None:
    suite = ET.parse(course.root / "nightly" / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("10", "4")
    failed = {
        (case.get("classname"), case.get("name"))
        for case in suite
        if case.find("failure") is not None
    }
    assert ("notebooks.05_killed", "solution") in failed and len(failed) == 4


def test_the_inputs_are_as_they_were(course: Course, before: dict, runs: dict) -> None:
    paths = [*course.sources.glob("*"), *course.released.glob("*")]
    assert {path: path.read_bytes() for path in paths} == before


def test_the_environment_of_a_run_and_its_exit_code(tmp_path: Path) -> None:
    """Evidence goes to the report's folder, the cwd is empty, and a green run exits with 0."""
    probe = (
        "\n# %%\nimport os, pathlib\nassert os.environ['BRRR_STATIC'] == '1'\n"
        "assert 'NBGRADER_EXECUTION' not in os.environ\n"
        "assert list(pathlib.Path.cwd().iterdir()) == []\n"
        "pathlib.Path('left.txt').write_text('x')\n"
        "pathlib.Path(os.environ['BRRR_EVIDENCE_DIR'], '04_tiny.evidence.json')"
        ".write_text('{}')\n"
        "display({'application/vnd.brrr.evidence+json': {'device': {'name': 'Some card'}},"
        " 'text/plain': 'x'}, raw=True)\n"
    )
    course = tiny_course.write(tmp_path, {"04_tiny": SETUP + exercise("04-1") + probe})
    build.build(course)
    out = tmp_path / "out"
    arguments = ["nightly", "--root", str(tmp_path), "--out", str(out), "--only"]
    result = CliRunner().invoke(app, [*arguments, "04_tiny"])
    assert result.exit_code == 0, result.output
    assert "passed  04_tiny  solution  2/2 points" in result.output
    assert "Some card" in result.output
    assert sorted(p.name for p in out.glob("*")) == [
        "04_tiny.solution.ipynb",
        "04_tiny.student.ipynb",
        "evidence",
        "junit.xml",
        "report.html",
    ]
    assert len(list(out.glob("evidence/*/04_tiny.evidence.json"))) == 2
    unknown = CliRunner().invoke(app, [*arguments, "06_none"])
    assert unknown.exit_code == 1 and "There is no notebook '06_none'" in unknown.output


def test_a_notebook_over_its_time_is_ended(course: Course) -> None:
    from dataclasses import replace

    short = replace(course, limits=replace(course.limits, cell_seconds=60, notebook_seconds=4))
    nb = nightly.load(course, "04_endless", "solution")
    run = nightly._run(short, "04_endless", "solution", nb, course.root / "short")
    assert any("ran longer than its 4 s and was ended" in f for f in run.failures)
    assert not alive_with(str(course.root / "short"))


def alive_with(folder: str) -> list[int]:
    """The processes that were told to put their evidence into `folder`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("BRRR_EVIDENCE_DIR", "").startswith(folder):
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def test_only_a_kernel_that_never_was_ready_is_tried_again(
    course: Course, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[str] = []

    def dead_once(*args: object) -> dict[str, str]:
        calls.append("run")
        return {"outcome": "kernel_not_ready", "sentence": "the kernel died before it was ready"}

    monkeypatch.setattr(nightly, "_execute", dead_once)
    nb = nightly.load(course, "01_good", "solution")
    run = nightly._run(course, "01_good", "solution", nb, tmp_path)
    assert len(calls) == 2 and run.retried
    assert "the kernel died before it was ready" in run.failures[0]
    monkeypatch.setattr(
        nightly,
        "_execute",
        lambda *args: (
            calls.append("x")
            or {"outcome": "dead_kernel", "sentence": "the kernel died while it ran"}
        ),
    )
    assert not nightly._run(course, "01_good", "solution", nb, tmp_path).retried
    assert calls == ["run", "run", "x"]


def test_a_report_never_lands_on_the_notebooks(course: Course) -> None:
    with pytest.raises(CourseError, match="choose another --out"):
        nightly.nightly(course, course.released, "01_good")
    with pytest.raises(CourseError, match="run `brrr build` first"):
        nightly.load(course, "09_none", "student")


def test_a_check_that_is_not_full_marks_fails_the_solution() -> None:
    source = nbformat.v4.new_code_cell("lab.check(...)", id="04-1")
    source.metadata["nbgrader"] = {
        "grade": True,
        "grade_id": "04-1",
        "points": 2,
        "solution": False,
        "locked": True,
    }
    nb = nbformat.v4.new_notebook(cells=[source])
    executed = canonical.nbformat.from_dict(nb)
    executed.cells[0].outputs = [
        nbformat.v4.new_output(
            "display_data",
            data={
                nightly.CHECK: {
                    "exercise": "04-1",
                    "state": "right",
                    "fraction": 0.5,
                    "message": "half",
                }
            },
        )
    ]
    run = Run("04_x", "solution")
    nightly.inspect_exercises(nb, executed, run)
    assert run.failures == ["exercise 04-1 is 'right' at 0.5 of its points, not 'right': half"]
    assert (run.points, run.possible) == (1.0, 2.0)
