"""One notebook's session: where it runs, on what machine, and where its evidence is kept."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers import __version__, checks, devices, evidence
from helpers.checks import Context
from helpers.devices import Device
from helpers.evidence import Evidence, EvidenceError, Record
from helpers.output import NotebookError

GPU_ELEMENTS = 2**27  # 268 MB in fp16: far above every L2, far below every memory
CPU_ELEMENTS = 2**24  # 67 MB in fp32: a CPU moves tens of GB/s, not hundreds


class LabError(NotebookError):
    """A cell that cannot go on."""


@dataclass(frozen=True)
class Machine:
    """What the notebook computes on.

    `device` and `dtype` go straight into torch calls; `itemsize` is that dtype's size in bytes.
    `facts` is the course's knowledge of the card, None for a CPU and for an unknown card.
    `elements` is the size of the labs' large tensor.
    """

    device: str
    dtype: Any
    itemsize: int
    name: str
    facts: Device | None
    origin: str
    elements: int

    @property
    def cpu(self) -> bool:
        return self.device == "cpu"


@dataclass
class Session:
    """State of one notebook in one kernel."""

    notebook: str
    machine: Machine
    evidence: Evidence
    path: Path | None
    replaying: bool
    hints_shown: dict[str, int] = field(default_factory=dict)
    work: dict[tuple[str, str], Any] = field(default_factory=dict)
    roof: Any = None
    seen: set[str] = field(default_factory=set)  # checksums of every record this kernel has known
    elsewhere: list[Record] = field(default_factory=list)  # made on another machine: kept, not used
    judge: int | None = None  # the judge's seed, when graded

    @property
    def number(self) -> str:
        return self.notebook[:2]

    @property
    def origin(self) -> str:
        """Where its times come from: measured, simulated, or replayed when graded."""
        return "replayed" if self.replaying else self.machine.origin

    @property
    def seed(self) -> int:
        """Makes the inputs of code exercises: the learner's own seed, the judge's when graded."""
        return self.evidence.seed if self.judge is None else self.judge

    def context(self) -> Context:
        return Context(self.evidence, self.machine.facts, self.machine.cpu, self.seed)

    def record(self, exercise: str, kind: str, value: Any, **details: Any) -> Record:
        """Append to the evidence and save it."""
        sealed = self.evidence.add(
            Record(
                exercise,
                kind,
                value,
                device=device_data(self.machine),
                versions=versions(),
                seed=self.evidence.seed,
                **details,
            )
        )
        self.save()
        return sealed

    def _whole(self) -> Evidence:
        """The evidence with what other machines left: a time on one says nothing of another."""
        records = sorted([*self.elsewhere, *self.evidence.records], key=lambda r: r.time)
        return Evidence(self.notebook, __version__, self.evidence.seed, records)

    def _here(self, record: Record) -> bool:
        return record.device.get("name") in (None, self.machine.name)

    def sift(self) -> None:
        """Put aside what was recorded on another machine."""
        self.elsewhere += [r for r in self.evidence.records if not self._here(r)]
        self.evidence.records = [r for r in self.evidence.records if self._here(r)]

    def _join(self) -> None:
        """Take in what another kernel wrote to the same file meanwhile, a locked prediction say."""
        try:
            other = evidence.read(self.path).records if self.path.exists() else []
        except EvidenceError:
            other = []
        self.seen |= {r.checksum for r in [*self.evidence.records, *self.elsewhere]}
        news = [r for r in other if r.intact and r.checksum not in self.seen]
        if news:
            self.seen |= {r.checksum for r in news}
            self.evidence.records = sorted([*self.evidence.records, *news], key=lambda r: r.time)
            self.sift()

    def save(self) -> None:
        """Write the evidence file. A folder that refuses is told once; nothing else stops."""
        if self.replaying or self.path is None:
            return
        self._join()
        try:
            evidence.write(self._whole(), self.path)
        except EvidenceError as error:
            print(
                f"{error}. Your work stays in this kernel and in the saved outputs; "
                "save the notebook itself."
            )
            self.path = None


def where(environ: Mapping[str, str] = os.environ) -> str:
    """ "nbgrader" (grading), "validate", "colab", "static" (papermill) or "notebook"."""
    if mode := environ.get("NBGRADER_EXECUTION"):
        return "validate" if mode == "validate" else "nbgrader"
    if environ.get("COLAB_RELEASE_TAG"):
        return "colab"
    return "static" if environ.get("BRRR_STATIC") else "notebook"


def begin(notebook: str, device: str | None = None, simulate: str | None = None) -> Session:
    """Open the session of `notebook` (its file stem, "04_cos_chain_fusion").

    `device`: None takes what the environment's BRRR_DEVICE says, else the GPU, real if there is
    one and else simulated; "cpu" takes the CPU itself. `simulate`: which card to simulate, default
    the environment's BRRR_GPU, else the T4.
    """
    device = device or os.environ.get("BRRR_DEVICE") or None
    if not (isinstance(notebook, str) and re.fullmatch(r"\d\d_\w+", notebook)):
        raise LabError(
            f'lab.setup needs the file\'s stem, "04_cos_chain_fusion", not {notebook!r}.'
        )
    if device not in (None, "cpu", "cuda"):
        raise LabError(f'device must be None, "cuda" or "cpu", not {device!r}.')
    replaying = where() == "nbgrader"
    if replaying:
        (kept, judge), path = _handed_in(notebook), None
        recorded = next((r.device for r in reversed(kept.records) if r.device.get("name")), {})
        device = "cpu" if recorded.get("type") == "cpu" else None  # the evidence decides
        known = devices.lookup(recorded.get("name", ""))
        simulate = known.key if known else "T4"
    else:
        path = folder() / f"{notebook}.evidence.json"
        kept, judge = _kept(path, notebook), None
        path = None if where() == "validate" else path  # a trial run leaves nothing behind
    machine = _machine(device, simulate or os.environ.get("BRRR_GPU") or "T4", force=replaying)
    session = Session(notebook, machine, kept, path, replaying, judge=judge)
    if not replaying:
        session.sift()
    return session


_current: Session | None = None


def start(notebook: str, device: str | None = None, simulate: str | None = None) -> Session:
    """`begin`, and make it the session that `current` returns."""
    global _current
    _current = begin(notebook, device, simulate)
    return _current


def current(exercise: str | None = None) -> Session:
    """The open session; LabError if there is none, or if the course has no such exercise."""
    if _current is None:
        raise LabError("Run the setup cell at the top of the notebook first (lab.setup).")
    if exercise is not None:
        try:
            checks.find(exercise)
        except KeyError as error:
            raise LabError(error.args[0]) from None
    return _current


def folder() -> Path:
    """Where the evidence goes: BRRR_EVIDENCE_DIR, else beside the notebook.

    Never beside the solutions: nbgrader would release a file there, or lay it over a learner's.
    """
    if told := os.environ.get("BRRR_EVIDENCE_DIR"):
        return Path(told)
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise LabError("The folder of this notebook is gone: move it back, restart.") from None
    for parent in (here, *here.parents):
        if parent.name == "labs_solutions":
            own = parent.parent / "work" / "instructor"
            own.mkdir(parents=True, exist_ok=True)
            return own
    return here


def device_data(machine: Machine) -> dict[str, Any]:
    """The device as it goes into evidence: no names of people or paths."""
    data = {
        "type": machine.device,
        "name": machine.name,
        "key": machine.facts.key if machine.facts else "",
    }
    if not machine.cpu:
        import torch

        properties = torch.cuda.get_device_properties(0)
        data |= {
            "memory": int(properties.total_memory),
            "sms": int(properties.multi_processor_count),
        }
    return data


def versions() -> dict[str, str]:
    import torch

    return {
        "course": __version__,
        "torch": str(torch.__version__),
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def _kept(path: Path, notebook: str) -> Evidence:
    """The evidence of an earlier kernel, or fresh evidence; a damaged file is set aside."""
    if not path.exists():
        return evidence.fresh(notebook, __version__)
    try:
        kept = evidence.read(path)
        if kept.notebook != notebook:
            raise EvidenceError(f"{path.name} belongs to another notebook, {kept.notebook}")
    except EvidenceError as error:
        aside = path.with_suffix(".damaged.json")
        try:
            os.replace(path, aside)
            print(f"{error}. It is kept as {aside.name}; a new one begins.")
        except OSError:
            print(f"{error}. A new one begins in this kernel.")
        return evidence.fresh(notebook, __version__)
    if gone := kept.changed():
        print(f"In {path.name} records were changed by hand; these are left out: {len(gone)}.")
    return kept


def _handed_in(notebook: str) -> tuple[Evidence, int | None]:
    """What the learner handed in, lifted out of the submission, and the judge's seed."""
    import json

    try:
        data = json.loads(Path(f"{notebook}.replay.json").read_text("utf-8"))
        return Evidence.from_dict(data["evidence"]), int(data["seed"])
    except FileNotFoundError:
        return evidence.fresh(notebook, __version__), None
    except (EvidenceError, KeyError, TypeError, ValueError) as error:
        print(f"The evidence handed in cannot be read: {error}.")
        return evidence.fresh(notebook, __version__), None


def _machine(device: str | None, simulate: str, force: bool) -> Machine:
    import torch

    from helpers import simgpu

    if device == "cpu":
        if simgpu.active():
            simgpu.active().deactivate()
        return Machine("cpu", torch.float32, 4, _cpu_name(), None, "measured", CPU_ELEMENTS)
    running = simgpu.active()
    if running or force or not torch.cuda.is_available():
        try:
            wanted = devices.get(simulate)
        except devices.UnknownDevice as error:
            raise LabError(str(error)) from None
        if running and running.device.key != wanted.key:
            running.deactivate()
            running = None
        if not running:
            simgpu.SimulatedGPU(wanted.key).activate()
    name = torch.cuda.get_device_name()
    simulated = devices.is_simulated(name)
    facts = devices.current()
    return Machine(
        "cuda",
        torch.float16,
        2,
        name,
        facts,
        "simulated" if simulated else "measured",
        GPU_ELEMENTS,
    )


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    import platform

    return platform.processor() or platform.machine() or "CPU"
