"""The modules of the page: types, size, length."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from browser.visits import INSTALL, NODE

pytestmark = pytest.mark.browser

VIEW = Path(__file__).parents[2] / "src" / "usp" / "view"


def test_the_types_of_the_modules_hold() -> None:
    """TypeScript finds nothing in the types that the comments of the modules give."""
    tsc = NODE / ".bin" / "tsc"
    if shutil.which("node") is None or not tsc.exists():
        pytest.skip(f"TypeScript is not installed; {INSTALL}")
    done = subprocess.run([tsc, "--noEmit", "-p", VIEW / "tsconfig.json"], capture_output=True, text=True, timeout=120)
    assert done.stdout == ""
    assert done.returncode == 0


def test_modules_stay_readable() -> None:
    """No module has more than 400 lines, and each opens with what it is."""
    for path in VIEW.glob("static/*.js"):
        text = path.read_text("utf-8")
        assert len(text.splitlines()) < 400, path.name
        assert text.startswith("/**"), path.name
