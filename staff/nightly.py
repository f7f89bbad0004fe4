"""`brrr nightly`: run every notebook, solved and untouched, and say what happened.

Each run is a process of its own (staff/nightly_run.py), two at a time, in an empty temporary
folder. The solved version must score full automatic marks; in the untouched one every exercise
must be "not started"; neither may show an error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat import NotebookNode

from staff import canonical
from staff.course import Course, CourseError
from staff.startup import venv_first

CHECK = "application/vnd.brrr.check+json"
EVIDENCE = "application/vnd.brrr.evidence+json"
WANTED = {"solution": "right", "student": "not_started"}
AT_ONCE = 2


@dataclass
class Run:
    """One notebook in one version, and what became of it. `seconds` is wall clock."""

    stem: str
    version: str  # "solution" or "student"
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    points: float = 0.0
    possible: float = 0.0
    seconds: float = 0.0
    slowest: str = ""
    devices: tuple[str, ...] = ()
    executed: str = ""  # file name of the executed notebook, beside the report
    retried: bool = False

    @property
    def state(self) -> str:
        return "failed" if self.failures else "passed"


def nightly(course: Course, out: Path, only: str | None = None) -> list[Run]:
    """Run the notebooks (all, or the stem `only`); executed copies and evidence go to `out`.

    CourseError for an unknown stem or a student version that was not built.
    """
    stems = [n.stem for n in course.written() if only in (None, n.stem)]
    if not stems:
        raise CourseError(
            f"There is no notebook {only!r} to run; there are "
            f"{', '.join(n.stem for n in course.written()) or 'none'}."
        )
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for folder in (course.sources, course.released):
        if out == folder or folder in out.parents:
            raise CourseError(f"{out} holds the notebooks themselves: choose another --out.")
    venv_first()
    books = [(stem, version, load(course, stem, version)) for stem in stems for version in WANTED]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        jobs = [pool.submit(_run, course, stem, version, nb, out) for stem, version, nb in books]
        return [job.result() for job in jobs]


def load(course: Course, stem: str, version: str) -> NotebookNode:
    """The notebook to run: the solution from its .py, the student version as released."""
    if version == "solution":
        nb = canonical.from_source(course.sources / f"{stem}.py")
        canonical.fill(nb, canonical.resolver(course), stem)
        return nb
    path = course.released / f"{stem}.ipynb"
    if not path.exists():
        raise CourseError(f"{path} is missing: run `brrr build` first.")
    return nbformat.read(path, 4)


def _run(course: Course, stem: str, version: str, nb: NotebookNode, out: Path) -> Run:
    run = Run(stem, version, executed=f"{stem}.{version}.ipynb")
    target = out / run.executed
    target.unlink(missing_ok=True)
    began = time.monotonic()
    result = _execute(course, nb, target, out / "evidence" / f"{stem}.{version}")
    if result["outcome"] == "kernel_not_ready":
        run.retried = True
        run.notes.append("run again once: the kernel had died before it was ready")
        result = _execute(course, nb, target, out / "evidence" / f"{stem}.{version}")
    run.seconds = time.monotonic() - began
    if result["outcome"] != "done":
        run.failures.append(result["sentence"])
    executed = nbformat.read(target, 4) if target.exists() else None
    if executed is None:
        run.executed = ""
    else:
        inspect_cells(executed, run)
    inspect_exercises(nb, executed, run)
    return run


def _execute(course: Course, nb: NotebookNode, target: Path, evidence: Path) -> dict[str, Any]:
    """Run `nb` in a child process within the notebook's time; how it ended, in words."""
    limits = course.limits
    evidence.mkdir(parents=True, exist_ok=True)
    for old in evidence.glob("*.json"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="brrr-nightly-") as folder:
        room = Path(folder).resolve()
        (room / "cwd").mkdir()
        (room / "in.ipynb").write_text(canonical.dump(nb), "utf-8")
        order = {
            "notebook": str(room / "in.ipynb"),
            "target": str(target),
            "cwd": str(room / "cwd"),
            "result": str(room / "result.json"),
            "cell_seconds": limits.cell_seconds,
            "start_seconds": limits.kernel_start_seconds,
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "staff.nightly_run", json.dumps(order)],
            env=_environment(room, evidence),
            cwd=room,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, stderr = child.communicate(timeout=limits.notebook_seconds)
        except subprocess.TimeoutExpired:
            return {
                "outcome": "notebook_timeout",
                "sentence": "the notebook ran longer than its "
                f"{limits.notebook_seconds} s and was ended",
            }
        finally:
            _end(child)
        if (room / "result.json").exists():
            return json.loads((room / "result.json").read_text("utf-8"))
    last = (stderr.strip().splitlines() or ["without a word"])[-1]
    return {
        "outcome": "runner_died",
        "sentence": f"the run itself died (exit code {child.returncode}): {last}",
    }


def _environment(room: Path, evidence: Path) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k not in ("NBGRADER_EXECUTION", "MPLBACKEND")}
    paths = [str(Path(__file__).resolve().parents[1]), env.get("PYTHONPATH", "")]
    return env | {
        "BRRR_STATIC": "1",
        "BRRR_EVIDENCE_DIR": str(evidence),
        "IPYTHONDIR": str(room / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def _end(child: subprocess.Popen[str]) -> None:
    """End the child and all below it: a kernel is the leader of a process group of its own."""
    try:
        below = psutil.Process(child.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    for process in below:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    child.wait()
    if child.stderr:
        child.stderr.close()


def inspect_cells(executed: NotebookNode, run: Run) -> None:
    """Errors, stderr, seconds and devices of the executed cells; writes into `run`."""
    devices: dict[str, None] = {}
    longest = 0.0
    for index, cell in enumerate(executed.cells):
        where = canonical.grade_id(cell) or f"number {index + 1}"
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                run.failures.append(f"cell {where} raised {output.ename}: {_short(output.evalue)}")
            elif output.output_type == "stream" and output.name == "stderr":
                if "Traceback (most recent call last)" in output.text:
                    run.failures.append(f"cell {where} printed a traceback to stderr")
                else:
                    run.notes.append(f"cell {where} wrote to stderr: {_short(output.text)}")
            name = ((output.get("data") or {}).get(EVIDENCE) or {}).get("device", {}).get("name")
            if name:
                devices[str(name)] = None
        seconds = cell.metadata.get("papermill", {}).get("duration") or 0.0
        if seconds > longest:
            longest, run.slowest = seconds, f"{where}: {seconds:.1f} s"
    run.devices = tuple(devices)


def inspect_exercises(nb: NotebookNode, executed: NotebookNode | None, run: Run) -> None:
    """Compare every exercise of `nb` with what the version must show; writes into `run`."""
    done = {canonical.grade_id(cell): cell for cell in executed.cells} if executed else {}
    unchecked = []
    for cell in nb.cells:
        settings = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and settings.get("grade") and not settings.get("solution"):
            run.possible += float(settings["points"])
            if not _exercise(settings, done.get(settings["grade_id"]), run):
                unchecked.append(settings["grade_id"])
    if unchecked:
        run.failures.append(f"not checked: exercise {', '.join(unchecked)}")


def _exercise(settings: dict[str, Any], cell: NotebookNode | None, run: Run) -> bool:
    """Compare one exercise with what its version must show; False if it was never checked."""
    name, wanted = settings["grade_id"], WANTED[run.version]
    shown = [data for data in _checks(cell) if data.get("exercise") == name]
    if not shown:
        return False
    state, share = shown[-1].get("state"), float(shown[-1].get("fraction") or 0.0)
    run.points += share * float(settings["points"])
    if state != wanted or (wanted == "right" and share != 1.0):
        run.failures.append(
            f"exercise {name} is {state!r} at {share:g} of its points, not "
            f"{wanted!r}: {_short(str(shown[-1].get('message', '')))}"
        )
    return True


def _checks(cell: NotebookNode | None) -> Iterator[dict[str, Any]]:
    for output in cell.get("outputs", []) if cell else []:
        data = (output.get("data") or {}).get(CHECK)
        if isinstance(data, dict):
            yield data


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:197] + "..."
