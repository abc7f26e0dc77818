"""The tool that finds a Python to run the tests with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "pythons.py"

pytestmark = pytest.mark.tools


def pythons(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False)


def test_an_installed_python_is_found() -> None:
    """The path of a Python of exactly this version is printed, and nothing else."""
    version = "{}.{}{}".format(*sys.version_info[:2], sys.abiflags)
    run = pythons(version)
    assert (run.returncode, run.stderr) == (0, "")
    code = "import sys; print('%d.%d%s' % (*sys.version_info[:2], sys.abiflags))"
    found = subprocess.run([run.stdout.strip(), "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == version


@pytest.mark.parametrize("arguments", [(), ("python3",), ("3",), ("3.12.1",), ("3.12", "3.13")], ids=repr)
def test_wrong_arguments(arguments: tuple[str, ...]) -> None:
    """Anything but one version is refused before anything is looked for."""
    run = pythons(*arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "name one version: tools/pythons.py 3.14\n"
