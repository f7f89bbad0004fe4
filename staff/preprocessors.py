"""What grading adds to nbgrader, as preprocessors that nbgrader_config.py lists."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from helpers import devices, evidence
from helpers.checks import Context
from staff import canonical, course
from staff.judge import Verdict, judge

REVIEW = "brrr_review"  # key of nbconvert's resources: ids that a person must look at
Step = tuple[NotebookNode, dict[str, Any]]


@dataclass(frozen=True)
class Replay:
    """What the grading of one notebook replays: the learner's evidence, and the judge's seed."""

    evidence: evidence.Evidence
    seed: int

    def to_dict(self) -> dict[str, Any]:
        return {"evidence": self.evidence.to_dict(), "seed": self.seed}


# What LiftEvidence found, for Judge in the same process: (student, assignment, notebook). The
# file beside the notebook is for the kernel, where the learner's code could have changed it.
_lifted: dict[tuple[str, str, str], Replay] = {}


class FillPlaceholders(NbGraderPreprocessor):
    """Fill `{{fact:...}}` and `{{course:...}}` in the copy that learners get."""

    root = Unicode("", help="Directory of course.toml.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Step:
        resolve = canonical.resolver(course.load(self.root))
        canonical.fill(nb, resolve, resources["nbgrader"]["notebook"])
        return nb, resources


class LiftEvidence(NbGraderPreprocessor):
    """Save the learner's evidence from outputs and file to `<notebook>.replay.json`.

    Must stand first: nbgrader then clears the outputs.
    """

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Step:
        key = _key(resources)
        replay = lift(nb, _folder(self, "submitted_directory", key), key, self.log.warning)
        target = _folder(self, "autograded_directory", key) / f"{key[2]}.replay.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # an older one is read-only
        target.write_text(json.dumps(replay.to_dict(), allow_nan=False), "utf-8")
        _lifted[key] = replay
        return nb, resources


class Judge(NbGraderPreprocessor):
    """Score every check cell in this process, from the answer it emitted in the kernel."""

    grader = Unicode(
        "helpers.checks.engine.grade", help="Dotted name of grade(exercise, answer, context)."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Step:
        key = _key(resources)
        replay = _lifted.pop(key, None)
        if replay is None:
            raise RuntimeError(
                "Judge found no lifted evidence: LiftEvidence must be the first of "
                "c.Autograde.sanitize_preprocessors."
            )
        grade, context = _imported(self.grader), context_of(replay)
        review = resources.setdefault(REVIEW, [])
        for cell in nb.cells:
            if not (cell.cell_type == "code" and utils.is_grade(cell)) or utils.is_solution(cell):
                continue
            stopped = _error_of(nb, f"{cell.metadata.nbgrader['grade_id']}-answer")
            verdict = judge(cell, grade, context, stopped)
            _write(cell, verdict)
            if verdict.state == "cannot_tell":
                review.append(cell.metadata.nbgrader["grade_id"])
                self.log.warning("%s: a person must look at %s: %s", key[0], review[-1], verdict)
        return nb, resources


class Review(NbGraderPreprocessor):
    """Mark for manual grading what the judge cannot tell. Must stand after SaveAutoGrades."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> Step:
        if ids := resources.get(REVIEW):
            student, assignment, notebook = _key(resources)
            with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
                for grade_id in ids:
                    grade = gradebook.find_grade(grade_id, notebook, assignment, student)
                    grade.needs_manual_grade = True
                gradebook.db.commit()
        return nb, resources


def lift(
    nb: NotebookNode,
    folder: Path,
    key: tuple[str, str, str],
    warn: Callable[..., None] = lambda *args: None,
) -> Replay:
    """The evidence of one submission: the file beside the notebook, and what its outputs add.

    A file that is damaged or another notebook's, and records that were changed in it, are
    reported through `warn` and left out.
    """
    student, assignment, notebook = key
    lifted = evidence.from_notebook(nb)
    path = folder / f"{notebook}.evidence.json"
    found = evidence.Evidence(notebook, "", lifted[-1].seed if lifted else 0)
    if path.exists():
        try:
            read = evidence.read(path)
            if read.notebook != notebook:
                raise evidence.EvidenceError(f"{path.name} belongs to {read.notebook}")
            if changed := read.changed():
                warn("%s: %d records of %s do not fit their checksum and are left out",
                     student, len(changed), path.name)  # fmt: skip
            found = read
        except evidence.EvidenceError as error:
            warn("%s: %s; only the notebook's outputs are used", student, error)
    known = {record.checksum for record in found.records}
    found.records += [record for record in lifted if record.checksum not in known]
    found.records.sort(key=lambda record: record.time)  # stable: equal seconds keep their order
    return Replay(found, seed_of(student, assignment))


def _error_of(nb: NotebookNode, grade_id: str) -> str:
    """The error that stopped the answer cell of that id, in words; "" if it ran."""
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id:
            for output in cell.get("outputs", []):
                if output.output_type == "error":
                    return f"{output.ename}: {output.evalue}"
    return ""


def seed_of(student: str, assignment: str) -> int:
    """The judge's seed for one learner and assignment: 31 bits, the same at every regrade."""
    digest = hashlib.sha256(f"{student}\n{assignment}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def context_of(replay: Replay) -> Context:
    """What the graders may look at. The device is the one the newest record names: None if the
    course does not know it, and the T4, on which the kernel ran, if no record names any.
    """
    named = [r.device for r in replay.evidence.records if r.device.get("name")]
    device = named[-1] if named else {"name": "T4", "type": "cuda"}
    return Context(
        replay.evidence,
        devices.lookup(str(device["name"])),
        cpu=device.get("type") == "cpu",
        seed=replay.seed,
    )


def _write(cell: NotebookNode, verdict: Verdict) -> None:
    """Replace the outputs by what stock SaveAutoGrades understands: the score as a value."""
    cell.outputs = [
        new_output("stream", name="stdout", text=f"{verdict}\n"),
        new_output(
            "execute_result",
            data={"text/plain": repr(verdict.score)},
            execution_count=cell.get("execution_count"),
        ),
    ]


def _key(resources: dict[str, Any]) -> tuple[str, str, str]:
    names = resources["nbgrader"]
    return names["student"], names["assignment"], names["notebook"]


def _folder(step: NbGraderPreprocessor, which: str, key: tuple[str, str, str]) -> Path:
    """The learner's folder of that kind; the course directory hangs on the converter."""
    owner = step.parent
    while not hasattr(owner, "coursedir"):
        owner = owner.parent
    directory = getattr(owner.coursedir, which)
    return Path(owner.coursedir.format_path(directory, key[0], key[1]))


def _imported(dotted: str) -> Callable[..., Any]:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)
