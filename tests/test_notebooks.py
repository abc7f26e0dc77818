"""The notebooks run, and show what they say that they show."""

from __future__ import annotations

from pathlib import Path

import pytest

import notebooks
from docs_pages import notebook_page

pytestmark = [pytest.mark.slow, pytest.mark.tools]

PATHS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path) -> None:
    """Every cell of a notebook runs without a network, and those that had output have it again."""
    before = notebook_page(path)
    ran = notebooks.run(path)
    code = [cell for cell in ran.cells if cell.cell_type == "code"]
    assert code
    assert before.count('<div class="notebook-output">') == sum(
        "text/html" in output.get("data", {}) for cell in code for output in cell.outputs
    )


def test_notebooks_on_the_site() -> None:
    """A notebook is a page with its text, its code and its output, which loads nothing."""
    assert [path.stem for path in PATHS] == ["first-look", "many-sites"]
    for path in PATHS:
        page = notebook_page(path)
        assert page.startswith("# ")
        assert "```python\n" in page
        assert "<table" in page
        assert "<script" not in page
