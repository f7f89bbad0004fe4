"""Every notebook on a real card: full marks for the solution, measured and not simulated.

What the physics of that card leaves open, "cannot tell", is printed and does not fail.
"""

import nbformat
import pytest

from helpers.lab import CHECK_MIME
from staff import nightly
from tests import cells

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("stem", cells.STEMS)
def test_a_notebook_scores_full_marks_on_this_card(stem, tmp_path):
    runs = {run.version: run for run in nightly.nightly(cells.COURSE, tmp_path, stem)}
    assert runs["student"].failures == []
    nb = nbformat.read(tmp_path / f"{stem}.solution.ipynb", 4)
    outputs = [output for cell in nb.cells for output in cell.get("outputs", [])]
    assert [output.evalue for output in outputs if output.output_type == "error"] == []
    verdicts = [c for o in outputs if (c := o.get("data", {}).get(CHECK_MIME))]
    states = {verdict["exercise"]: verdict["state"] for verdict in verdicts}
    print(stem, runs["solution"].devices, states)
    assert set(states.values()) <= {"right", "cannot_tell"}
    assert not any("simulated" in name for name in runs["solution"].devices)
