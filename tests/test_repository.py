"""The top level: make, packaging, environments and the documents tell one story."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import helpers
from staff import build, lint
from staff.cli import app
from staff.course import load

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEPENDENCIES = [
    Requirement(r) for r in PROJECT["dependencies"] + PROJECT["optional-dependencies"]["staff"]
]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = ("setup", "lab", "test", "notebooks", "nightly", "grade", "clean")


# ------------------------------------------------------------------ make


def room(tmp_path: Path) -> Path:
    """A folder in which everything is set up, with a stand-in for JupyterLab."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "notebooks/day1").mkdir(parents=True)
    for name in ("01_a", "02_b"):
        (tmp_path / f"notebooks/day1/{name}.ipynb").write_text(f"released {name}", "utf-8")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    jupyter = tmp_path / ".venv/bin/jupyter"
    jupyter.write_text('#!/bin/sh\necho "jupyter $* in $PWD"\n', "utf-8")
    jupyter.chmod(0o755)
    (tmp_path / ".venv/.ready").touch()
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        text=True,
        capture_output=True,
        env={k: v for k, v in os.environ.items() if k != "MAKEFLAGS"},
    )


def test_make_has_these_targets_and_no_more() -> None:
    phony = re.search(r"^\.PHONY:(.*)$", MAKEFILE, re.MULTILINE)
    assert phony and tuple(phony[1].split()) == TARGETS and len(TARGETS) <= 8
    rules = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    assert rules == set(TARGETS)


def test_make_lab_copies_once_and_never_over_a_learners_file(tmp_path: Path) -> None:
    folder = room(tmp_path)
    first = make(folder, "lab", "LAB_ARGS=--no-browser --port 9999")
    assert first.returncode == 0, first.stderr
    copies = folder / "work" / "day1"
    assert f"jupyter lab --no-browser --port 9999 in {copies}" in first.stdout
    mine = copies / "01_a.ipynb"
    assert mine.read_text("utf-8") == "released 01_a"
    mine.write_text("my own work", "utf-8")
    (copies / "02_b.ipynb").unlink()
    again = make(folder, "lab")
    assert "kept your work/day1/01_a.ipynb" in again.stdout
    assert "copied work/day1/02_b.ipynb" in again.stdout
    assert mine.read_text("utf-8") == "my own work"


def test_make_setup_is_instant_until_the_requirements_change(tmp_path: Path) -> None:
    folder = room(tmp_path)
    assert make(folder, "-q", "setup").returncode == 0
    os.utime(folder / "constraints.txt", (4e9, 4e9))
    assert make(folder, "-q", "setup").returncode == 1


def test_make_setup_names_a_python_that_is_too_old(tmp_path: Path) -> None:
    folder = room(tmp_path)
    (folder / ".venv/.ready").unlink()
    old = folder / "old-python"
    old.write_text(
        f'#!/bin/sh\nshift\nexec {sys.executable} -c "import sys; '
        "sys.version_info = (3, 10); sys.version = '3.10.4 (main)'; "
        'exec(sys.argv[1])" "$@"\n',
        "utf-8",
    )
    old.chmod(0o755)
    result = make(folder, "setup", f"PYTHON={old}")
    assert result.returncode != 0
    assert "The course needs Python 3.11 or newer" in result.stderr and "3.10.4" in result.stderr


def test_make_clean_keeps_everybodys_work(tmp_path: Path) -> None:
    folder = room(tmp_path)
    kept = ["work/day1/a.ipynb", "submitted/ada/day1/a.ipynb", "gradebook.db", ".venv/.ready"]
    for name in [
        *kept,
        "build/x",
        "nightly/report.html",
        "helpers/__pycache__/x",
        "staff/x",
        "tests/x",
    ]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert make(folder, "clean").returncode == 0
    assert all((folder / name).exists() for name in kept)
    assert not any((folder / name).exists() for name in ("build", "nightly", "helpers/__pycache__"))


# ------------------------------------------------------------------ environments


def test_conda_and_pip_tell_the_same_story() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    assert environment["channels"] == ["conda-forge"]
    lines = [line for line in environment["dependencies"] if isinstance(line, str)]
    conda = {r.name: str(r.specifier) for r in map(Requirement, lines) if r.name != "pip"}
    assert conda.pop("python") == PROJECT["requires-python"]
    assert conda.pop("pytorch") == conda.setdefault("torch", ">=2.6")
    assert conda == {r.name: str(r.specifier) for r in DEPENDENCIES}
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}


def test_constraints_pin_every_dependency_to_a_version_that_is_allowed() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = {
        r.name: next(iter(r.specifier))
        for r in (Requirement(line) for line in lines if line and not line.startswith("#"))
    }
    for name, pin in pins.items():
        assert pin.operator == "==" and "+" not in pin.version, name
    for requirement in DEPENDENCIES:
        assert requirement.specifier.contains(pins[requirement.name].version), requirement


def test_one_version_everywhere() -> None:
    course = load(ROOT)
    assert course.version == PROJECT["version"] == helpers.__version__
    assert course.tag == f"v{course.version}"
    assert [n.number for n in course.notebooks] == [f"{n:02}" for n in range(1, 10)]


# ------------------------------------------------------------------ the learner's wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-text"):
        shutil.copy(ROOT / name, source)
    for name in ("helpers", "staff", "tests", "labs_solutions", "notebooks"):
        shutil.copytree(
            ROOT / name,
            source / name,
            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
        )
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
            "-w",
            str(folder),
            str(source),
        ],
        check=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_helpers_and_staff_and_nothing_of_the_solutions(wheel: Path) -> None:
    assert wheel.name == f"brrr_course-{PROJECT['version']}-py3-none-any.whl"
    assert load(ROOT).values()["wheel"].endswith(f"/v{PROJECT['version']}/{wheel.name}")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names} == {
        "helpers",
        "staff",
        f"brrr_course-{PROJECT['version']}.dist-info",
    }
    for package in ("helpers", "staff"):
        wanted = {
            str(path.relative_to(ROOT))
            for path in (ROOT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert {name for name in names if name.startswith(f"{package}/")} == wanted


def test_the_wheel_works_where_only_a_learners_packages_are(wheel: Path, tmp_path: Path) -> None:
    """As on Colab, installed with --no-deps: no module of helpers asks for a staff package."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    blocked = [
        r.name.replace("-", "_")
        for r in DEPENDENCIES
        if r.name not in ("torch", "numpy", "matplotlib", "ipywidgets")
    ]
    blocked += ["staff", "yaml", "nbformat", "nbconvert", "nbclient"]
    blocked.remove("pyyaml")
    code = f"""
import pkgutil, importlib, sys
for name in {blocked!r}:
    sys.modules[name] = None
sys.path.insert(0, {str(tmp_path)!r})
import helpers
for module in pkgutil.walk_packages(helpers.__path__, "helpers."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from helpers import facts
assert helpers.__file__.startswith({str(tmp_path)!r}), helpers.__file__
assert facts.facts()
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True
    )
    assert result.returncode == 0, result.stderr


def test_the_learners_requirements_are_what_colab_ships() -> None:
    assert {Requirement(r).name for r in PROJECT["dependencies"]} == {
        "torch",
        "numpy",
        "matplotlib",
        "ipywidgets",
    }


# ------------------------------------------------------------------ the tree


IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"


@pytest.mark.parametrize("command", [["-m", "ruff", "check", "."], ["-c", IMPORTS]])
def test_the_tree_is_clean(command: list[str]) -> None:
    result = subprocess.run([sys.executable, *command], cwd=ROOT, text=True, capture_output=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_student_notebooks_are_what_their_sources_give() -> None:
    assert build.check(load(ROOT)) == []


def test_the_notebooks_have_no_findings() -> None:
    assert [str(finding) for finding in lint.lint(load(ROOT))] == []


def test_git_ignores_what_is_generated_or_personal() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    ignored = [
        "labs_solutions/day1/04_x.ipynb",
        "work/day1/04_x.ipynb",
        "gradebook.db",
        "submitted/a/day1/04_x.ipynb",
        "autograded/a",
        "nightly/report.html",
        "notebooks/day1/04_x.evidence.json",
        ".venv/bin",
    ]
    shown = ["labs_solutions/day1/04_x.py", "notebooks/day1/04_x.ipynb", "colab_links.md"]
    result = subprocess.run(
        ["git", "check-ignore", *ignored, *shown], cwd=ROOT, text=True, capture_output=True
    )
    assert result.stdout.split() == ignored


@pytest.mark.parametrize("document", ["README.md"])
def test_every_command_and_link_in_the_documents_exists(document: str) -> None:
    text = (ROOT / document).read_text("utf-8")
    for target in re.findall(r"\bmake ([a-z]+)\b(?=[\s`]*(?:#|`|PIP|$))", text, re.MULTILINE):
        assert target in TARGETS, target
    known = {command.name or command.callback.__name__ for command in app.registered_commands}
    for command in re.findall(r"`brrr ([a-z]+)", text):
        assert command in known, command
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_both_licences_are_stated() -> None:
    assert "MIT License" in (ROOT / "LICENSE").read_text("utf-8")
    text = (ROOT / "LICENSE-text").read_text("utf-8")
    assert "CC BY 4.0" in text and "https://creativecommons.org/licenses/by/4.0/" in text
    assert PROJECT["license"] == "MIT AND CC-BY-4.0"
