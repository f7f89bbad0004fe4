"""One notebook, one process: execute it with papermill and write down how it ended."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from staff.startup import skip_iri_grammar


def run(order: dict[str, Any]) -> dict[str, str]:
    """Execute order["notebook"] into order["target"]; the outcome and one sentence about it."""
    skip_iri_grammar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import papermill
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(
            order["notebook"],
            order["target"],
            kernel_name="python3",
            cwd=order["cwd"],
            execution_timeout=order["cell_seconds"],
            start_timeout=order["start_seconds"],
            progress_bar=False,
            log_output=False,
        )
    except (PapermillExecutionError, CellExecutionError) as error:
        return {
            "outcome": "cell_error",
            "sentence": f"{error.ename} stopped the run, {_last(order)}; later cells did not run",
        }
    except CellTimeoutError:
        return {
            "outcome": "cell_timeout",
            "sentence": f"a cell ran longer than its {order['cell_seconds']} s; {_last(order)}",
        }
    except DeadKernelError:
        return {
            "outcome": "dead_kernel",
            "sentence": f"the kernel died while it ran (out of memory?); {_last(order)}",
        }
    except RuntimeError as error:
        if "kernel" not in str(error).lower():
            raise
        return {
            "outcome": "kernel_not_ready",
            "sentence": f"the kernel died before it was ready: {error}",
        }
    return {"outcome": "done", "sentence": ""}


def _last(order: dict[str, Any]) -> str:
    """Which cell ran last, from the copy that papermill keeps as it goes."""
    target = Path(order["target"])
    cells = json.loads(target.read_text("utf-8"))["cells"] if target.exists() else []
    last = "no cell had begun"
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code" and cell["metadata"]["papermill"]["start_time"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id")
            last = f"it was cell {name or f'number {number}'}"
    return last


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    Path(wanted["result"]).write_text(json.dumps(run(wanted)), "utf-8")
