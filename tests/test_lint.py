"""brrr lint: every rule has a notebook that breaks it, and the clean one breaks none."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from staff import build, canonical, lint
from staff.cli import app
from tests import tiny_course

CLEAN = tiny_course.SETUP + tiny_course.exercise("04-1")


def findings(tmp_path: Path, source: str, number: str = "04") -> list[str]:
    path = tmp_path / "04_tiny.py"
    path.write_text(source, "utf-8")
    return [f.message for f in lint.lint_source(path.name, canonical.from_source(path), number)]


def prose(text: str) -> str:
    return CLEAN + "\n# %% [markdown]\n" + "\n".join(f"# {line}" for line in text.splitlines())


def test_a_clean_notebook_has_no_findings(tmp_path: Path) -> None:
    assert findings(tmp_path, CLEAN) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("04-1", "05-1"), "must begin with 04-"),
        (('"points": 2', '"points": 0'), "points above 0"),
        (('"grade_id": "04-1-answer"', '"grade_id": "04-2-answer"'), "no answer cell 04-1-answer"),
        (
            ('"grade_id": "04-1-answer"', '"grade_id": "04-2-answer"'),
            "no check cell '04-2' follows",
        ),
        (('"grade_id": "04-1-answer"', '"grade_id": "04-1"'), "used twice"),
        (('"grade_id": "04-1-answer"', '"grade_id": "04-1x"'), "must look like 04-2-answer"),
        (('check("04-1", answer)', "check('04-2', answer)"), 'must call lab.check("04-1"'),
        (("answer = ...\n", ""), "a placeholder"),
        (("answer = ...\n", "# answer = ...\n"), "a placeholder"),
        (("### END SOLUTION\n", ""), "END SOLUTION region"),
        (
            (
                '"grade": true, "grade_id": "04-1", "locked": true',
                '"grade": true, "grade_id": "04-1", "locked": false',
            ),
            "must be locked",
        ),
        (
            (
                '"grade_id": "04-1-answer", "locked": false',
                '"grade_id": "04-1-answer", "locked": true',
            ),
            "must not be locked",
        ),
        (('"grade_id": "04-1", "locked"', '"grade_id": "04-one", "locked"'), "must look like 04-2"),
    ],
)
def test_exercises_are_named_and_paired(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    source = CLEAN.replace(*change)
    assert source != CLEAN
    assert any(said in message for message in findings(tmp_path, source))


def test_a_prediction_is_filled_in_like_an_answer(tmp_path: Path) -> None:
    cell = tiny_course.exercise("04-1").split("\n\n")[0].replace("04-1-answer", "04-1-prediction")
    assert findings(tmp_path, tiny_course.SETUP + cell + "\n" + tiny_course.exercise("04-1")) == []
    alone = findings(tmp_path, CLEAN + cell.replace("04-1-pred", "04-3-pred"))
    assert alone == ["no check cell '04-3' follows."]


def test_a_solution_outside_an_answer_cell(tmp_path: Path) -> None:
    source = CLEAN + "\n# %%\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n"
    assert any("needs nbgrader metadata" in m for m in findings(tmp_path, source))


def test_an_answer_may_be_a_function_with_a_docstring(tmp_path: Path) -> None:
    source = tiny_course.SETUP + tiny_course.exercise(
        "04-1", "    return 42", 'def answer():\n    """Six times seven."""'
    )
    assert findings(tmp_path, source) == []


@pytest.mark.parametrize(
    "text",
    [
        "It moves 320 GB/s.",
        "It takes 1.68 ms.",
        "A run of 30 s",
        "cost $2.50 per hour",
        "cost \\$2.50",
        "65 TFLOP/s",
        "65 TFLOPS",
        "268\u202fMB",
        "2,039 GB/s",
        "70W",
        "235–290 GB/s",
        "1.5e3 us",
        "4 GiB of it",
        "200 FLOP/byte is 200 FLOP/B",
        "107 tokens/s",
        "1590 MHz",
    ],
)
def test_a_bare_number_with_a_unit_is_found(tmp_path: Path, text: str) -> None:
    assert any("bare number" in m for m in findings(tmp_path, prose(text)))


@pytest.mark.parametrize(
    "text",
    [
        "It moves {{fact:device.t4.bandwidth}}.",
        "2 bytes per element, 3 trips, 40 minutes",
        "in `x = 4 GB` code",
        "```\n12 GB\n```",
        "$2^{27}$ elements, $3 s$ and $a$",
        "T4, L4, 2^27",
        "[text](http://x.org/4 GB)",
        "fp16 has 16 bits",
        "4 Gauss, 5 symbols, 6 Watts' law, 3 Bs",
        "$$\nt = 4 s\n$$",
        "<!-- derived: 268 MB; 2,039 GB/s -->\n268 MB, 2,039 GB/s",
    ],
)
def test_what_is_no_bare_number(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, prose(text)) == []


def test_derived_numbers_are_noted_where_they_stand(tmp_path: Path) -> None:
    source = CLEAN + "\n# %%\nn = 2  # moves 537 MB\n# derived: 537 MB; 9 ms\n"
    assert findings(tmp_path, source) == [
        "the note derived: '9 ms' fits nothing in this cell; drop it."
    ]
    assert any("537 MB" in m for m in findings(tmp_path, CLEAN + "\n# %%\nn = 2  # 537 MB\n"))


def test_what_the_facts_are_filled_with_is_not_looked_at(tmp_path: Path) -> None:
    """Lint reads the source, where a fact is a placeholder; strings in code are no prose."""
    assert findings(tmp_path, CLEAN + '\n# %%\nprint("4 GB")\n') == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("\n# %%\nx = = 1\n", "does not parse"),
        ("\n# %% [markdown]\n# ```python\n# x = = 1\n# ```\n", "code block does not parse"),
        ("\n# %% [markdown]\n# ![](docs/picture.png)\n", "alternative text"),
        ('\n# %% [markdown]\n# <img src="x.png">\n', "alternative text"),
        ("\n# %%\n" + "x = 1\n" * (lint.MOST_CODE + 1), "lines of code"),
        ("\n# %% [markdown]\n# " + "word " * (lint.MOST_PROSE + 1), "one idea at a time"),
    ],
)
def test_cells_are_readable(tmp_path: Path, source: str, said: str) -> None:
    assert any(said in message for message in findings(tmp_path, CLEAN + source))


@pytest.mark.parametrize(
    "source",
    [
        "\n# %%\n# %pip install nothing\n",
        "\n# %% [markdown]\n# ![a roofline](x.png)\n",
        '\n# %% [markdown]\n# <img alt="a roofline" src="x.png">\n',
        "\n# %% [markdown]\n# ```python\n# x = 1\n# ```\n",
        "\n# %% [markdown]\n# ```\n# x = = 1\n# ```\n",
    ],
)
def test_what_is_readable(tmp_path: Path, source: str) -> None:
    assert findings(tmp_path, CLEAN + source) == []


def test_the_released_notebook_as_it_lies_on_disk(tmp_path: Path) -> None:
    course = tiny_course.write(tmp_path, {"04_tiny": CLEAN})
    assert [f.message for f in lint.lint(course)] == ["is missing: run `brrr build`."]
    build.build(course)
    assert lint.lint(course) == []
    path = course.released / "04_tiny.ipynb"
    nb = nbformat.read(path, 4)
    nb.metadata.kernelspec.name = "brrr"
    nb.metadata.widgets = {}
    nb.metadata.colab.name = "Copy of 04_tiny.ipynb"
    nb.cells[1].execution_count = 3
    nb.cells[1].outputs = [nbformat.v4.new_output("stream", text="hello")]
    nb.cells[1].source = "def f(:"
    nb.cells[3]["id"] = nb.cells[2]["id"]
    nb.cells[2].source = "### BEGIN SOLUTION\n" + "#" * course.limits.notebook_bytes
    path.write_text(json.dumps(nb), "utf-8")
    (course.released / "notes.txt").write_text("x", "utf-8")
    said = "\n".join(map(str, lint.lint(course)))
    for part in (
        "named python3",
        "metadata.widgets",
        "colab.name",
        "execution count",
        "outputs",
        "id of its own",
        "BEGIN SOLUTION",
        "bytes, more than",
        "does not parse",
        "notes.txt",
    ):
        assert part in said, part
    result = CliRunner().invoke(app, ["lint", "--root", str(tmp_path)])
    assert result.exit_code == 1 and "metadata.widgets" in result.output
