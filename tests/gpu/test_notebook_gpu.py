"""Notebook 04 on a real card: full marks for the solution, measured and not simulated."""

from pathlib import Path

import pytest

from staff import nightly
from staff.course import load

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.gpu


def test_notebook_04_scores_full_marks_on_this_card(tmp_path):
    runs = {
        run.version: run for run in nightly.nightly(load(ROOT), tmp_path, "04_cos_chain_fusion")
    }
    solution = runs["solution"]
    print(solution)
    assert (solution.failures, solution.points) == ([], 15.0)
    assert solution.devices and not any("simulated" in name for name in solution.devices)
