"""`course.toml` as a value: title, version, address, the ordered notebooks and the limits."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEM = re.compile(r"^\d{2}_[a-z0-9_]+$")


class CourseError(ValueError):
    """Something in the course directory is wrong. The sentence says what and where."""


@dataclass(frozen=True)
class Notebook:
    """One row of the course: `minutes` is the time a learner needs."""

    stem: str
    title: str
    minutes: int
    teaches: str

    @property
    def number(self) -> str:
        """The two digits that begin the stem and every exercise id of the notebook."""
        return self.stem[:2]


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that the nightly run, grading and lint allow."""

    cell_seconds: int = 120
    notebook_seconds: int = 300
    kernel_start_seconds: int = 90
    notebook_bytes: int = 100_000


@dataclass(frozen=True)
class Course:
    """The course that lives in the directory `root`."""

    root: Path
    title: str
    version: str
    repository: str
    tag: str
    assignment: str
    limits: Limits
    notebooks: tuple[Notebook, ...]

    @property
    def sources(self) -> Path:
        """Where the hand-edited .py files are, and the generated solution notebooks."""
        return self.root / "labs_solutions" / self.assignment

    @property
    def released(self) -> Path:
        """Where the generated student notebooks are."""
        return self.root / "notebooks" / self.assignment

    def written(self) -> tuple[Notebook, ...]:
        """The notebooks that have a source, in the course's order.

        CourseError for a .py that the course does not list: it would never be built.
        """
        stems = {path.stem for path in self.sources.glob("*.py")}
        if unlisted := sorted(stems - {n.stem for n in self.notebooks}):
            raise CourseError(
                f"{self.sources / (unlisted[0] + '.py')} is not listed in course.toml: add a "
                "[[notebooks]] entry for it, or keep code that is no notebook out of that folder."
            )
        return tuple(n for n in self.notebooks if n.stem in stems)

    def colab_link(self, stem: str) -> str:
        """The address that opens the student notebook of the course's tag in Colab."""
        return (
            f"https://colab.research.google.com/github/{self.repository}/blob/{self.tag}/"
            f"notebooks/{self.assignment}/{stem}.ipynb"
        )

    def values(self) -> dict[str, str]:
        """What `{{course:NAME}}` may stand for in a notebook."""
        wheel = f"brrr_course-{self.version}-py3-none-any.whl"
        return {
            "title": self.title,
            "version": self.version,
            "repository": self.repository,
            "tag": self.tag,
            "assignment": self.assignment,
            "wheel": f"https://github.com/{self.repository}/releases/download/{self.tag}/{wheel}",
            "colab": self.colab_link("").removesuffix("/.ipynb"),
            "docs": f"https://github.com/{self.repository}/blob/{self.tag}/docs",
        }


def load(root: Path | str = ".") -> Course:
    """Read `root`/course.toml. CourseError names what is missing or unknown."""
    path = Path(root).resolve() / "course.toml"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise CourseError(
            f"There is no course.toml in {path.parent}: run brrr in the repository's top folder."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise CourseError(f"{path} is not valid TOML: {error}.") from None
    try:
        course = data["course"]
        notebooks = tuple(Notebook(**entry) for entry in data["notebooks"])
        limits = Limits(**data.get("limits", {}))
        found = Course(
            path.parent,
            course["title"],
            course["version"],
            course["repository"],
            course["tag"],
            course["assignment"],
            limits,
            notebooks,
        )
    except KeyError as error:
        raise CourseError(f"{path} has no {error.args[0]!r}.") from None
    except TypeError as error:
        raise CourseError(f"{path} has an entry with a wrong or missing key: {error}.") from None
    _validate(found, path)
    return found


def _validate(course: Course, path: Path) -> None:
    stems = [n.stem for n in course.notebooks]
    for stem in stems:
        if not STEM.match(stem):
            raise CourseError(f"{path}: the stem {stem!r} must look like 04_cos_chain_fusion.")
    numbers: list[Any] = [n.number for n in course.notebooks]
    if numbers != sorted(set(numbers)):
        raise CourseError(f"{path}: the notebooks must be in order, each number once: {numbers}.")
