"""The repository as a stock nbgrader course. Only wiring: the code is in staff/."""

import warnings
from pathlib import Path

from nbgrader import preprocessors as stock

from staff import course, preprocessors

# nbgrader's own, at the first submission of every learner: true and without consequence
warnings.filterwarnings("ignore", message="Object of type .* not in session")

root = Path(__file__).resolve().parent
limits = course.load(root).limits
c = get_config()  # noqa: F821 - nbgrader provides it

c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "labs_solutions"
c.CourseDirectory.release_directory = "notebooks"
# sqlite waits this long for another writer, instead of giving up after five seconds
c.CourseDirectory.db_url = f"sqlite:///{root / 'gradebook.db'}?timeout=60"
# nbgrader copies every other file from the sources to the learners and back over their own
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "*.py",
    ".gitkeep",
    "*.evidence.json",
    "*.replay.json",
]

c.FillPlaceholders.root = str(root)
c.GenerateAssignment.preprocessors = [
    preprocessors.FillPlaceholders,
    stock.LockCells,
    stock.ClearSolutions,
    stock.ClearOutput,
    stock.CheckCellMetadata,
    stock.ComputeChecksums,
    stock.SaveCells,
    stock.ClearHiddenTests,
    stock.ClearMarkScheme,
    stock.ComputeChecksums,
    stock.CheckCellMetadata,
]
c.ClearSolutions.code_stub = {"python": "# your code here"}
c.ClearSolutions.text_stub = "*Your answer here.*"

c.Autograde.sanitize_preprocessors = [
    preprocessors.LiftEvidence,  # first: the next step clears the outputs
    stock.ClearOutput,
    stock.DeduplicateIds,
    stock.OverwriteKernelspec,
    stock.OverwriteCells,
    stock.CheckCellMetadata,
]
c.Autograde.autograde_preprocessors = [
    stock.Execute,
    preprocessors.Judge,
    stock.LimitOutput,
    stock.SaveAutoGrades,
    preprocessors.Review,
    stock.AssignLatePenalties,
    stock.CheckCellMetadata,
]
c.Execute.timeout = limits.cell_seconds
c.Execute.startup_timeout = limits.kernel_start_seconds
c.Execute.iopub_timeout = 30
c.Execute.kernel_name = "python3"
# a tag is not part of a cell's checksum: without this, a learner could skip a check by a tag
c.Execute.skip_cells_with_tag = "__never__"
