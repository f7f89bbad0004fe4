"""The `brrr` command. Every step also works as plain jupytext, nbgrader or papermill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from staff.course import Course, CourseError, load
from staff.startup import skip_iri_grammar

skip_iri_grammar()
app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)
Root = Annotated[Path, typer.Option(help="The repository's top folder.")]


@contextmanager
def _course(root: Path) -> Iterator[Course]:
    """The course, with a CourseError told as one sentence and exit code 1."""
    try:
        yield load(root)
    except CourseError as error:
        typer.echo(f"brrr: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def build(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail on drift.")] = False,
    root: Root = Path("."),
) -> None:
    """Make the student notebooks, the solution notebooks and colab_links.md from the sources."""
    from staff import build as builder
    from staff import leaks

    with _course(root) as course:
        if check:
            if found := builder.check(course):
                raise CourseError("\n".join(found))
            typer.echo("The student notebooks are what their sources give.")
            return
        written = builder.build(course)
        for name in written:
            typer.echo(f"wrote {name}")
        if not written:
            typer.echo("Nothing has changed.")
        for sentence in leaks.in_folder(course.released, {n.stem: 0 for n in course.written()}):
            typer.echo(f"left alone: {sentence}", err=True)


@app.command()
def lint(root: Root = Path(".")) -> None:
    """Check ids, points, prose, sizes and metadata of all notebooks."""
    from staff import lint as linter

    with _course(root) as course:
        if found := linter.lint(course):
            raise CourseError("\n".join(map(str, found)))
        typer.echo("No findings.")


@app.command()
def nightly(
    only: Annotated[str | None, typer.Option(help="Run this notebook alone.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("nightly"),
    root: Root = Path("."),
) -> None:
    """Run every notebook, solved and untouched, and write report.html and junit.xml."""
    from staff import nightly as runner
    from staff import report

    with _course(root) as course:
        runs = runner.nightly(course, out, only)
        page, _ = report.write(course, runs, out)
        for line in report.lines(runs):
            typer.echo(line)
        typer.echo(f"report: {page}")
        if any(run.failures for run in runs):
            raise typer.Exit(1)
