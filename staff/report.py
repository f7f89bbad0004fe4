"""The nightly run as a page that works from a file, as JUnit XML, and as a line per notebook."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from staff.course import Course
from staff.nightly import Run

PACKAGES = (
    "torch",
    "numpy",
    "matplotlib",
    "ipywidgets",
    "ipykernel",
    "nbclient",
    "papermill",
    "nbgrader",
    "jupytext",
)


def versions() -> dict[str, str]:
    """Name and version of what the run depended on; "absent" where a package is missing."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def write(course: Course, runs: Sequence[Run], out: Path) -> tuple[Path, Path]:
    """Write report.html and junit.xml into `out`; returns their paths."""
    page, junit = out / "report.html", out / "junit.xml"
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    page.write_text(
        environment.get_template("nightly.html").render(
            course=course,
            runs=runs,
            versions=versions(),
            when=when,
            failed=sum(bool(run.failures) for run in runs),
        ),
        "utf-8",
    )
    ET.ElementTree(junit_tree(runs)).write(junit, encoding="utf-8", xml_declaration=True)
    return page, junit


def junit_tree(runs: Sequence[Run]) -> ET.Element:
    """One test case per notebook and version."""
    suite = ET.Element(
        "testsuite",
        name="nightly",
        tests=str(len(runs)),
        errors="0",
        failures=str(sum(bool(run.failures) for run in runs)),
        time=f"{sum(run.seconds for run in runs):.3f}",
    )
    for run in runs:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"notebooks.{run.stem}",
            name=run.version,
            time=f"{run.seconds:.3f}",
        )
        if run.failures:
            failure = ET.SubElement(case, "failure", message=_xml(run.failures[0]))
            failure.text = _xml("\n".join(run.failures))
        if run.notes:
            ET.SubElement(case, "system-out").text = _xml("\n".join(run.notes))
    return suite


def lines(runs: Sequence[Run]) -> list[str]:
    """What the command prints: a line per run, and the failures below it."""
    said = []
    for run in runs:
        said.append(
            f"{run.state:6}  {run.stem}  {run.version:8}  {run.points:g}/{run.possible:g} "
            f"points  {run.seconds:.1f} s  {', '.join(run.devices)}".rstrip()
        )
        said += [f"        {failure}" for failure in run.failures]
        said += [f"        note: {note}" for note in run.notes]
    return said


def _xml(text: str) -> str:
    """`text` without the control characters that XML cannot hold."""
    return "".join(ch for ch in text if ch in "\t\n" or ch >= " ")
