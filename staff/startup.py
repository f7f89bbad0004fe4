"""What a staff process does before it imports the notebook tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def venv_first() -> None:
    """Put this Python's programs first on PATH: nbgrader starts `alembic` by its bare name."""
    here = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", "").split(os.pathsep)
    if paths[0] != here:
        os.environ["PATH"] = os.pathsep.join([here, *paths])


def skip_iri_grammar() -> None:
    """Let jsonschema do without its grammar of international web addresses.

    Building that grammar takes a second in every process that imports nbformat, and no notebook
    is checked with it; jsonschema takes its absence for a package that is not installed.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
