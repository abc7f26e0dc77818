"""Runs the notebooks, each in a kernel of its own. They read websites on this machine only.

python tools/notebooks.py           runs them, and fails if a cell raises an exception
python tools/notebooks.py --write   also writes their output
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
_CELL_SECONDS = 60


def run(path: Path) -> Any:
    """Run a notebook and return it with its output.

    :raises CellExecutionError: if a cell raises an exception. The message has the cell and the exception.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of Jupyter are not ours
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        with tempfile.TemporaryDirectory() as folder:
            client = NotebookClient(
                notebook, timeout=_CELL_SECONDS, resources={"metadata": {"path": folder}}, record_timing=False
            )
            client.execute()
    return notebook


def main() -> int:
    """Run all notebooks. Return the exit code."""
    import nbformat
    from nbclient.exceptions import CellExecutionError

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        try:
            notebook = run(path)
        except CellExecutionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
        print(f"{path.name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells")
        if "--write" in sys.argv[1:]:
            nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    return 0


if __name__ == "__main__":
    sys.exit(main())
