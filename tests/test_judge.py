"""The judge: a score and a reason for everything a check cell can hold, and stock nbgrader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_output
from nbgrader.api import Gradebook

from helpers.evidence import Evidence, Record, line
from staff import build, canonical, preprocessors
from staff.judge import ANSWER, judge
from tests import tiny_course

GRADER = '''
"""A grader for the tests: 42 is right, 21 is half, some answers break the grader."""
from dataclasses import dataclass

@dataclass
class Outcome:
    state: str
    fraction: float
    have: str = ""
    expected: str = ""
    likely: str = ""
    next_step: str = ""
    insight: str = ""

def grade(exercise, answer, context):
    if answer is None:
        return Outcome("not_started", 0.0)
    if answer == "noisy":
        return Outcome("cannot_tell", 0.0, next_step="Measure again.")
    if answer == "seed":
        return Outcome("right", 1.0, insight=f"seed {context.seed}, {context.device.name}, "
                       f"{len(context.evidence.records)} records")
    if answer == 42:
        return Outcome("right", 1.0, insight="Six times seven.")
    if isinstance(answer, float) and answer != answer:
        return Outcome("not_yet", 0.0, have="nan", expected="A number is expected.")
    return Outcome("not_yet", 0.5 if answer == 21 else 0.0, have=str(answer)[:20],
                   expected="A larger number is expected.", likely="You added.")
'''


@dataclass
class Said:
    state: str = "right"
    fraction: Any = 1.0
    insight: str = ""


def cell(*outputs: Any, grade_id: str = "04-1", points: Any = 2) -> nbformat.NotebookNode:
    made = nbformat.v4.new_code_cell("lab.check(...)")
    made.metadata["nbgrader"] = {
        "grade": True,
        "grade_id": grade_id,
        "points": points,
        "locked": True,
        "schema_version": 3,
        "solution": False,
    }
    made.outputs = list(outputs)
    return made


def answer(value: Any, exercise: str = "04-1") -> nbformat.NotebookNode:
    return new_output("display_data", data={ANSWER: {"exercise": exercise, "value": value}})


def says(outcome: Any) -> Callable[..., Any]:
    return lambda exercise, value, context: outcome


@pytest.fixture(scope="module")
def grade(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    space: dict[str, Any] = {"__name__": "tiny_grader"}
    sys.modules["tiny_grader"] = type(sys)("tiny_grader")  # dataclass looks its module up
    exec(GRADER, space)
    return space["grade"]


@pytest.mark.parametrize(
    ("given", "score", "said"),
    [
        ([answer(42)], 2, "[judge] 2 / 2: right. Six times seven."),
        ([answer(21)], 1, "[judge] 1 / 2: not yet. You have: 21."),
        ([answer(13)], 0, "You added."),
        ([answer(float("nan"))], 0, "You have: nan"),
        ([answer([42])], 0, "[judge] 0 / 2: not yet"),
        ([answer(None)], 0, "[judge] 0 / 2: not started"),
        ([answer("noisy")], 0, "cannot tell. Next: Measure again."),
        ([], 0, "no answer was emitted: the cell ran, and its check gave nothing"),
        (
            [new_output("stream", text=json.dumps({ANSWER: {"exercise": "04-1", "value": 42}}))],
            0,
            "no answer was emitted",
        ),
        (
            [new_output("error", ename="NameError", evalue="name 'answer' is not defined")],
            0,
            "no answer was emitted: the cell stopped with NameError: name 'answer' is not defined",
        ),
        (
            [new_output("error", ename="CellTimeoutError", evalue="")],
            0,
            "longer than the time limit",
        ),
        (
            [new_output("error", ename="KeyboardInterrupt", evalue="")],
            0,
            "KeyboardInterrupt stopped",
        ),
        ([answer(42), answer(42)], 0, "2 answers were emitted where one is expected"),
        ([answer(42, "04-2")], 0, "the answer is for exercise '04-2'"),
        ([new_output("display_data", data={ANSWER: "42"})], 0, "not an answer"),
        ([new_output("display_data", data={ANSWER: {"exercise": "04-1"}})], 0, "it has no value"),
        ([new_output("stream", name="stderr", text="warning\n"), answer(42)], 2, "[judge] 2 / 2"),
        ([new_output("execute_result", data={"text/plain": "2.0"})], 0, "no answer was emitted"),
    ],
)
def test_a_cell_and_its_score(grade: Callable, given: list, score: float, said: str) -> None:
    verdict = judge(cell(*given), grade, None)
    assert verdict.score == score
    assert said in str(verdict)
    assert "\n" not in str(verdict)


@pytest.mark.parametrize(("fraction", "score"), [(7, 2.0), (-1.0, 0.0), (0.25, 0.5), (1, 2.0)])
def test_a_fraction_is_clamped(fraction: float, score: float) -> None:
    assert judge(cell(answer(1)), says(Said(fraction=fraction)), None).score == score


@pytest.mark.parametrize("fraction", [float("nan"), None, True, "1", [1.0]])
def test_a_fraction_that_is_no_number_is_zero(fraction: Any) -> None:
    verdict = judge(cell(answer(1)), says(Said(fraction=fraction)), None)
    assert verdict.score == 0 and "a number from 0 to 1" in str(verdict)


def test_a_grader_that_raises_is_zero_with_a_reason() -> None:
    def broken(exercise: str, value: Any, context: Any) -> Any:
        raise KeyError("04-9")

    verdict = judge(cell(answer(42)), broken, None)
    assert verdict.score == 0 and "could not judge this answer (KeyError" in str(verdict)


@pytest.mark.parametrize("broken", [{}, {"metadata": {}}, cell(answer(1), points="many")])
def test_a_cell_that_cannot_be_read_is_zero(broken: Any) -> None:
    assert judge(broken, says(Said()), None).score == 0


def test_a_long_reason_is_cut(grade: Callable) -> None:
    error = new_output("error", ename="ValueError", evalue="x\n" * 5000)
    assert len(str(judge(cell(error), grade, None))) < 700


def record(value: float, time: str, **details: Any) -> Record:
    return Record("04-1", "measurement", {"median": value}, time=time, seed=5, **details).sealed()


def test_evidence_is_lifted_from_outputs_and_file_each_record_once(tmp_path: Path) -> None:
    device = {"name": "NVIDIA A100-SXM4-80GB", "type": "cuda"}
    old, new = record(1.0, "2026-01-01T00:00:00", device=device), record(2.0, "2026-01-02T00:00:00")
    kept = Evidence("04_tiny", "0.1.0", 7, [new])
    (tmp_path / "04_tiny.evidence.json").write_text(json.dumps(kept.to_dict()), "utf-8")
    nb = nbformat.v4.new_notebook(
        cells=[
            cell(
                new_output("stream", text=line(old) + "\n"),
                new_output("stream", text=line(new) + "\n"),
            )
        ]
    )
    key = ("ada", "day1", "04_tiny")
    replay = preprocessors.lift(nb, tmp_path, key)
    assert replay.evidence.records == [old, new]
    assert replay.seed == preprocessors.seed_of("ada", "day1") != preprocessors.seed_of("b", "day1")
    assert 0 <= replay.seed < 2**31
    context = preprocessors.context_of(replay)
    assert context.device is not None and context.device.key == "a100_80_sxm"
    assert context.seed == replay.seed and not context.cpu
    warned: list[Any] = []
    (tmp_path / "04_tiny.evidence.json").write_text("{", "utf-8")
    replay = preprocessors.lift(nb, tmp_path, key, lambda *args: warned.append(args))
    assert replay.evidence.records == [old, new] and replay.evidence.seed == 5 and warned


def test_the_device_of_a_context() -> None:
    def device(**data: Any) -> Any:
        kept = [record(1.0, "2026-01-01T00:00:00", device=data)] if data else []
        return preprocessors.context_of(
            preprocessors.Replay(Evidence("04_tiny", "0.1.0", 1, kept), 3)
        )

    assert device().device.key == "t4"
    assert device(name="Some New Card", type="cuda").device is None
    assert device(name="A CPU", type="cpu").cpu and device(name="A CPU", type="cpu").device is None


NAN = "answer = float('nan')"
FORGED = (
    "answer = 13\ndisplay({'application/vnd.brrr.answer+json': "
    "{'exercise': '04-1', 'value': 42}}, raw=True)"
)
TWICE = (
    "answer = 42\nreal = check\ndef check(exercise, answer):\n"
    "    real(exercise, answer)\n    real(exercise, answer)"
)
STDERR = (
    "answer = 42\nimport sys\ndef check(exercise, answer):\n"
    "    print('warning', file=sys.stderr)\n    real(exercise, answer)"
)
LEARNERS = {  # what stands in the answer cells of 04-1 to 04-6
    "mixed": ["answer = 13", "answer = 21", NAN, "del answer", "answer = 'noisy'", "answer = 42"],
    "untouched": [None] * 6,
    "hostile": [FORGED, "answer = 'seed'", TWICE, STDERR, "1 / 0", "answer = 42"],
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One class, graded by one `nbgrader autograde day1`; the folder and what it printed."""
    root = tmp_path_factory.mktemp("class")
    exercises = [tiny_course.exercise(f"04-{n}") for n in range(1, 7)]
    course = tiny_course.write(root, {"04_tiny": tiny_course.SETUP + "".join(exercises)})
    build.build(course)
    (root / "tiny_grader.py").write_text(GRADER, "utf-8")
    with (root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('\nc.Judge.grader = "tiny_grader.grade"\n')
    (course.sources / "04_tiny.evidence.json").write_text("the instructor's own", "utf-8")
    (course.sources / "04_tiny.replay.json").write_text("the instructor's own", "utf-8")
    for learner, texts in LEARNERS.items():
        folder = root / "submitted" / learner / "day1"
        folder.mkdir(parents=True)
        nb = nbformat.read(course.released / "04_tiny.ipynb", 4)
        for n, text in enumerate(texts, 1):
            (target,) = [c for c in nb.cells if c["id"] == f"04-{n}-answer"]
            target.source = text or target.source
        if learner == "hostile":
            nb.cells[1].outputs = [
                new_output(
                    "stream",
                    text=line(record(1.0, "2026-01-01T00:00:00", device={"name": "Tesla T4"}))
                    + "\n",
                )
            ]
            (folder / "04_tiny.replay.json").write_text("forged", "utf-8")
        nbformat.write(nb, folder / "04_tiny.ipynb")
    result = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", "day1"],
        cwd=root,
        text=True,
        env=os.environ
        | {
            "PYTHONPATH": f"{tiny_course.REPOSITORY}{os.pathsep}{root}",
            "IPYTHONDIR": str(root / "ipython"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=240,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    return root, result.stdout


def scores(root: Path, learner: str) -> dict[str, tuple[float, bool]]:
    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        notebook = gradebook.find_submission_notebook("04_tiny", "day1", learner)
        return {g.name: (g.auto_score, g.needs_manual_grade) for g in notebook.grades}


def line_of(root: Path, learner: str, grade_id: str) -> str:
    nb = nbformat.read(root / "autograded" / learner / "day1" / "04_tiny.ipynb", 4)
    (found,) = [c for c in nb.cells if canonical.grade_id(c) == grade_id]
    stream, result = found.outputs
    assert stream.name == "stdout" and result.output_type == "execute_result"
    return stream.text


@pytest.mark.parametrize(
    ("learner", "exercise", "score", "said"),
    [
        ("mixed", 1, 0, "You added."),
        ("mixed", 2, 1, "1 / 2"),
        ("mixed", 3, 0, "0 / 2"),
        ("mixed", 4, 0, "the cell stopped with NameError: name 'answer' is not defined"),
        ("mixed", 6, 2, "right. Six times seven."),  # the others' faults are not its own
        ("untouched", 1, 0, "[judge] 0 / 2: not started"),
        ("hostile", 1, 0, "You have: 13"),  # the forgery was in another cell
        ("hostile", 3, 0, "2 answers were emitted"),
        ("hostile", 4, 2, "right"),  # stock nbgrader would give 0 for any word on stderr
        ("hostile", 6, 2, "right"),
    ],
)
def test_stock_autograde_scores_by_the_judge(
    graded: tuple[Path, str], learner: str, exercise: int, score: float, said: str
) -> None:
    root, _ = graded
    assert scores(root, learner)[f"04-{exercise}"] == (score, False)
    assert said in line_of(root, learner, f"04-{exercise}")


def test_untouched_is_zero_in_every_exercise(graded: tuple[Path, str]) -> None:
    root, _ = graded
    assert scores(root, "untouched") == {f"04-{n}": (0, False) for n in range(1, 7)}


def test_what_the_judge_cannot_tell_waits_for_a_person(graded: tuple[Path, str]) -> None:
    root, printed = graded
    assert scores(root, "mixed")["04-5"] == (0, True)
    assert "mixed: a person must look at 04-5" in printed


def test_evidence_and_seed_reach_kernel_and_judge(graded: tuple[Path, str]) -> None:
    root, _ = graded
    seed = preprocessors.seed_of("hostile", "day1")
    assert f"seed {seed}, T4, 1 records" in line_of(root, "hostile", "04-2")
    sidecar = root / "autograded" / "hostile" / "day1" / "04_tiny.replay.json"
    replay = json.loads(sidecar.read_text("utf-8"))
    assert replay["seed"] == seed and len(replay["evidence"]["records"]) == 1


def test_the_instructors_own_evidence_goes_nowhere(graded: tuple[Path, str]) -> None:
    root, _ = graded
    copies = [*root.glob("autograded/*/day1/*.json"), *root.glob("notebooks/day1/*.json")]
    assert copies and not any("instructor" in path.read_text("utf-8") for path in copies)
    assert not list(root.glob("autograded/*/day1/*.py"))


def test_an_answer_cell_that_stopped_is_not_called_untouched() -> None:
    untouched = says(Said(state="not_started", fraction=0.0))
    stopped = judge(cell(answer(None)), untouched, None, "AttributeError: no median")
    assert stopped.score == 0 and "the answer cell stopped with AttributeError" in stopped.reason
    assert judge(cell(answer(None)), untouched, None).reason == "not started"


def submitted(folder: Path, *records: Record, notebook: str = "04_tiny") -> list[str]:
    """Write an evidence file, lift it with an empty notebook, and return what was warned of."""
    kept = Evidence(notebook, "0.1", 3)
    kept.records = list(records)
    (folder / "04_tiny.evidence.json").write_text(json.dumps(kept.to_dict()))
    warned: list[str] = []
    nb = nbformat.v4.new_notebook()
    replay = preprocessors.lift(
        nb, folder, ("ada", "day1", "04_tiny"), lambda text, *values: warned.append(text % values)
    )
    return [*(str(r.value) for r in replay.evidence.records), *warned]


def test_changed_records_and_other_notebooks_are_reported(tmp_path: Path) -> None:
    good, bad = (Record("04-4", "prediction", value).sealed() for value in (1.0, 2.0))
    forged = Record.from_dict(bad.to_dict() | {"value": 9.0})
    assert submitted(tmp_path, good, bad) == ["1.0", "2.0"]
    values = submitted(tmp_path, good, forged)
    assert values[0] == "1.0" and "1 records of 04_tiny.evidence.json do not fit" in values[1]
    assert "belongs to 05_other" in submitted(tmp_path, good, notebook="05_other")[0]


def test_no_tag_lets_a_learner_skip_a_check() -> None:
    root = Path(__file__).parent.parent
    assert build.nbgrader_config(root).Execute.skip_cells_with_tag == "__never__"
