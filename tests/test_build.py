"""brrr build: same bytes twice, drift caught, nothing secret released, nothing overwritten."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import jupytext
import nbformat
import pytest
from typer.testing import CliRunner

from staff import build, canonical, leaks
from staff.cli import app
from staff.course import Course, CourseError, load
from tests import tiny_course

SOURCE = tiny_course.SETUP + tiny_course.exercise("04-1")
HIDDEN = SOURCE.replace(
    'check("04-1", answer)',
    'check("04-1", answer)\n### BEGIN HIDDEN TESTS\nassert answer == 2 * 3 * 7\n'
    "### END HIDDEN TESTS",
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return tiny_course.write(tmp_path, {"04_tiny": SOURCE})


def files(course: Course) -> dict[str, bytes]:
    paths = [
        *course.released.glob("*"),
        *course.sources.glob("*.ipynb"),
        course.root / "colab_links.md",
    ]
    return {str(path): path.read_bytes() for path in paths}


def test_same_bytes_twice_and_check_is_clean(course: Course) -> None:
    assert len(build.build(course)) == 3
    first = files(course)
    for path in first:
        Path(path).unlink()
    build.build(course)
    assert files(course) == first
    assert build.build(course) == []
    assert build.check(course) == []


def test_the_student_version_is_clean_and_asks_for_a_t4(course: Course) -> None:
    build.build(course)
    nb = nbformat.read(course.released / "04_tiny.ipynb", 4)
    assert nb.metadata.kernelspec.name == "python3"
    assert nb.metadata.accelerator == "GPU"
    assert nb.metadata.colab == {"gpuType": "T4", "name": "04_tiny.ipynb", "provenance": []}
    answer = next(c for c in nb.cells if c["id"] == "04-1-answer")
    assert answer.source == "answer = ...\n# your code here"
    assert "made for version 0.1.0" in nb.cells[0].source
    assert "6 * 7" not in (course.released / "04_tiny.ipynb").read_text("utf-8")
    assert "jupytext" not in nb.metadata


def test_hidden_tests_reach_the_gradebook_and_not_the_learner(tmp_path: Path) -> None:
    course = tiny_course.write(tmp_path, {"04_tiny": HIDDEN}, gradebook=False)
    build.build(course)
    assert "2 * 3 * 7" not in (course.released / "04_tiny.ipynb").read_text("utf-8")
    assert b"2 * 3 * 7" in (tmp_path / "gradebook.db").read_bytes()


def test_check_names_the_file_and_the_first_difference_and_writes_nothing(course: Course) -> None:
    build.build(course)
    path = course.released / "04_tiny.ipynb"
    path.write_text(path.read_text("utf-8").replace("A tiny notebook", "An edited one"), "utf-8")
    before = files(course)
    (message,) = build.check(course)
    assert "notebooks/day1/04_tiny.ipynb is not what its source gives" in message
    assert "An edited one" in message and "A tiny notebook" in message
    assert files(course) == before
    result = CliRunner().invoke(app, ["build", "--check", "--root", str(course.root)])
    assert result.exit_code == 1 and "04_tiny.ipynb is not what its source gives" in result.output


@pytest.mark.parametrize("change", [lambda b: b.rstrip(), lambda b: b.replace(b"\n", b"\r\n")])
def test_check_compares_bytes(course: Course, change: Callable[[bytes], bytes]) -> None:
    build.build(course)
    path = course.released / "04_tiny.ipynb"
    path.write_bytes(change(path.read_bytes()))
    assert "04_tiny.ipynb is not what its source gives" in build.check(course)[0]
    assert build.build(course) == ["notebooks/day1/04_tiny.ipynb"]


def test_check_sees_a_changed_source_and_leaves_the_gradebook_alone(tmp_path: Path) -> None:
    course = tiny_course.write(tmp_path, {"04_tiny": SOURCE}, gradebook=False)
    source = course.sources / "04_tiny.py"
    source.write_text(SOURCE.replace("A tiny", "A new"), "utf-8")
    assert any("is missing" in message for message in build.check(course))
    assert not (course.root / "gradebook.db").exists()


def test_ids_are_stable_when_a_cell_is_inserted(tmp_path: Path) -> None:
    path = tmp_path / "04_x.py"
    path.write_text(SOURCE, "utf-8")
    before = [c["id"] for c in canonical.from_source(path).cells]
    path.write_text("# %%\nfirst = 1\n\n" + SOURCE + "\n# %%\nfirst = 1\n", "utf-8")
    after = [c["id"] for c in canonical.from_source(path).cells]
    assert after[1:-1] == before
    assert after[-1] == f"{after[0]}-copy2"
    assert "04-1" in before and "04-1-answer" in before


def test_facts_are_filled_in_prose_and_comments(tmp_path: Path) -> None:
    from helpers import facts

    text = (
        "# %% [markdown]\n# A T4 has {{fact:device.t4.bandwidth}}.\n"
        "# <!-- derived: 1 ms -->\n\n# %%\nx = 1  # {{ fact:device.t4.l2|MB }}\n"
        "# derived: 2 ms\n"
    )
    course = tiny_course.write(tmp_path, {"04_x": text})
    nb = canonical.from_source(course.sources / "04_x.py")
    canonical.fill(nb, canonical.resolver(course), "04_x")
    assert nb.cells[0].source == f"A T4 has {facts.show('device.t4.bandwidth')}."
    assert nb.cells[1].source == f"x = 1  # {facts.show('device.t4.l2', 'MB')}"


@pytest.mark.parametrize(
    "placeholder",
    [
        "{{fact:device.t5.bandwidth}}",
        "{{facts:device.t4.l2}}",
        "{{course:nothing}}",
        "{{fact:device.t4.bandwidth|parsec}}",
        "{{fact device.t4.l2}}",
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_named(tmp_path: Path, placeholder: str) -> None:
    course = tiny_course.write(tmp_path, {"04_tiny": SOURCE.replace("A tiny", f"A {placeholder}")})
    with pytest.raises(CourseError) as caught:
        canonical.fill(
            canonical.from_source(course.sources / "04_tiny.py"),
            canonical.resolver(course),
            "04_tiny",
        )
    assert placeholder in str(caught.value) and "04_tiny, cell c-" in str(caught.value)


def test_a_newer_solution_notebook_is_not_overwritten(course: Course) -> None:
    build.build(course)
    path = course.sources / "04_tiny.ipynb"
    nb = nbformat.read(path, 4)
    nb.cells[0].source = "# Edited in JupyterLab"
    nbformat.write(nb, path)
    with pytest.raises(CourseError, match=r"04_tiny.ipynb was edited after 04_tiny.py"):
        build.build(course)
    assert "Edited in JupyterLab" in path.read_text("utf-8")
    later = time.time() + 10  # the .py is edited after it: the .ipynb is only an old product
    os.utime(course.sources / "04_tiny.py", (later, later))
    build.build(course)
    assert "Edited in JupyterLab" not in path.read_text("utf-8")


def test_running_the_solution_notebook_is_no_edit(course: Course) -> None:
    build.build(course)
    path = course.sources / "04_tiny.ipynb"
    nb = nbformat.read(path, 4)
    nb.cells[1].execution_count = 1
    nb.cells[1].outputs = [nbformat.v4.new_output("stream", text="hello")]
    nbformat.write(nb, path)
    assert "labs_solutions/day1/04_tiny.ipynb" in build.build(course)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "### BEGIN SOLUTION",
            "### begin solution",
            "begin solution",
        ),  # nbgrader looks at the case
        ("### BEGIN HIDDEN TESTS", "### BEGIN HIDEN TESTS\n### Begin hidden tests", "hidden"),
    ],
)
def test_a_planted_leak_stops_the_build(tmp_path: Path, old: str, new: str, said: str) -> None:
    source = HIDDEN.replace(old, new)
    if "solution" in new:
        source = source.replace("### END SOLUTION", "### end solution").replace(
            "answer = ...\n", "answer = ...\n### BEGIN SOLUTION\n### END SOLUTION\n"
        )
    else:
        source = source.replace("### END HIDDEN TESTS", "### End hidden tests")
    course = tiny_course.write(tmp_path, {"04_tiny": source})
    with pytest.raises(CourseError, match="would leak") as caught:
        build.build(course)
    assert said in str(caught.value)
    assert not list(course.released.iterdir()) and not list(course.sources.glob("*.ipynb"))
    assert b"04_tiny" not in (tmp_path / "gradebook.db").read_bytes()


def test_a_solution_line_in_the_student_version_is_a_leak(course: Course) -> None:
    source = canonical.from_source(course.sources / "04_tiny.py")
    student = canonical.from_source(course.sources / "04_tiny.py")
    student.cells[-2].source = "answer = ...\nanswer = 6 * 7  # the secret of the course"
    (sentence,) = leaks.in_notebook("04_tiny.ipynb", student, leaks.secrets(source))
    assert "the secret of the course" in sentence and "04-1-answer" in sentence


def test_a_source_among_the_student_notebooks_is_a_leak(course: Course) -> None:
    build.build(course)
    (course.released / "04_tiny.py").write_text(SOURCE, "utf-8")
    assert any("04_tiny.py" in s and "would leak" in s for s in build.check(course))


def test_a_stray_file_among_the_sources_is_refused(course: Course) -> None:
    (course.sources / "expected.json").write_text("{}", "utf-8")
    with pytest.raises(CourseError, match=r"expected.json would be released"):
        build.build(course)


def test_an_unlisted_source_is_refused(course: Course) -> None:
    (course.sources / "05_other.py").write_text(SOURCE, "utf-8")
    with pytest.raises(CourseError, match=r"05_other.py is not listed in course.toml"):
        build.build(course)


def test_a_foreign_notebook_is_left_alone_and_reported(course: Course) -> None:
    foreign = course.released / "99_mine.ipynb"
    foreign.write_text("{}", "utf-8")
    result = CliRunner().invoke(app, ["build", "--root", str(course.root)])
    assert result.exit_code == 0 and "left alone" in result.output
    assert foreign.read_text("utf-8") == "{}"
    assert any("99_mine.ipynb" in message for message in build.check(course))


def test_nbgrader_refusing_is_one_sentence(tmp_path: Path) -> None:
    twice = SOURCE + tiny_course.exercise("04-1")
    course = tiny_course.write(tmp_path, {"04_tiny": twice})
    with pytest.raises(CourseError, match="nbgrader could not make the student versions"):
        build.build(course)


def test_the_links_list_every_notebook_and_open_the_tag(tmp_path: Path) -> None:
    course = tiny_course.write(tmp_path, {"04_tiny": SOURCE, "05_next": SOURCE})
    (course.sources / "05_next.py").unlink()
    text = build.links(course)
    assert (
        "https://colab.research.google.com/github/somebody/tiny/blob/v0.1.0/notebooks/day1/"
        "04_tiny.ipynb"
    ) in text
    assert "Open 05_next" not in text and "not written yet" in text


def test_saving_in_jupyterlab_gives_back_the_same_source(course: Course) -> None:
    """The pairing in labs_solutions/jupytext.toml adds nothing to the .py."""
    build.build(course)
    settings = tiny_course.REPOSITORY / "labs_solutions" / "jupytext.toml"
    (course.sources.parent / "jupytext.toml").write_text(settings.read_text("utf-8"), "utf-8")
    config = jupytext.config.load_jupytext_config(str(course.sources / "04_tiny.ipynb"))
    nb = nbformat.read(course.sources / "04_tiny.ipynb", 4)
    for cell in nb.cells:
        cell.metadata["trusted"] = True  # as JupyterLab adds
    back = jupytext.writes(nb, fmt="py:percent", config=config)
    again = canonical.tidy(jupytext.reads(back, fmt="py:percent"))
    assert canonical.dump(again) == (course.sources / "04_tiny.ipynb").read_text("utf-8")
    body = (course.sources / "04_tiny.py").read_text("utf-8").split()
    assert back.split()[-len(body) :] == body  # blank lines between cells are jupytext's own


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no 'course'"),
        ("[course", "not valid TOML"),
        (
            tiny_course.COURSE.format(cell_seconds=1, notebook_seconds=1)
            + tiny_course.ENTRY.format(stem="4_x"),
            "must look like",
        ),
    ],
)
def test_a_broken_course_file_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "course.toml").write_text(text, "utf-8")
    with pytest.raises(CourseError, match=said):
        load(tmp_path)
    with pytest.raises(CourseError, match=r"There is no course\.toml"):
        load(tmp_path / "elsewhere")
