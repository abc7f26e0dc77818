"""Advice on missing extras: a command for the tool that has installed usp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest

from commands import environment
from usp.exceptions import MissingExtraError
from usp.extras import Installation, extra

pytestmark = [
    pytest.mark.export,
    pytest.mark.skipif(os.name == "nt", reason="the commands are written for another shell there"),
]

METADATA = """\
Metadata-Version: 2.4
Name: usp
Version: 2.0.0
Requires-Dist: requests>=2.32
Requires-Dist: pyarrow>=17; extra == "arrow"
Requires-Dist: duckdb>=1.5; extra == "sql"
Requires-Dist: pyarrow>=17; extra == "sql"
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an environment with a Python and a pip, whose programs a shell finds."""
    folder = tmp_path / "usp"
    program(folder / "bin", "pip")
    monkeypatch.setenv("PATH", str(folder / "bin"))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return folder


def program(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch(mode=0o755)


def advice(prefix: Path, installer: str = "pip", origin: Any = None, *, has_pip: bool = True, name: str = "sql") -> str:
    """Return the command for an extra, by the metadata that installers write."""
    folder = prefix / "lib" / "usp-2.0.0.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text(METADATA)
    (folder / "INSTALLER").write_text(f"{installer}\n")
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    python = str(prefix / "bin" / "python")
    installation = Installation.of(PathDistribution(folder), str(prefix), python, has_pip=has_pip)
    return installation.command(name, "duckdb")


def test_pip(prefix: Path) -> None:
    """What pip has installed from an index, pip extends."""
    assert advice(prefix) == "pip install 'usp[sql]'"
    assert advice(prefix, name="arrow") == "pip install 'usp[arrow]'"


def test_pip_of_another_environment(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a shell finds another pip first, the command names the Python."""
    program(tmp_path / "other", "pip")
    monkeypatch.setenv("PATH", f"{tmp_path / 'other'}:{prefix / 'bin'}")
    assert advice(prefix) == f"{prefix}/bin/python -m pip install 'usp[sql]'"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"url": "file:///src/my%20usp", "dir_info": {"editable": True}}, "pip install -e '/src/my usp[sql]'"),
        ({"url": "file:///src/usp", "dir_info": {}}, "pip install '/src/usp[sql]'"),
        (
            {"url": "https://h.example/usp.git", "vcs_info": {"vcs": "git", "commit_id": "a"}},
            "pip install 'usp[sql] @ git+https://h.example/usp.git'",
        ),
        (
            {"url": "https://h.example/usp.whl", "archive_info": {}},
            "pip install 'usp[sql] @ https://h.example/usp.whl'",
        ),
        ({"url": "file:///w/usp.whl", "archive_info": {}}, "pip install 'usp[sql] @ file:///w/usp.whl'"),
    ],
)
def test_sources(prefix: Path, origin: Any, expected: str) -> None:
    """What was installed from a clone, an archive or a repository is extended from there."""
    assert advice(prefix, origin=origin) == expected


def test_tools(prefix: Path) -> None:
    """pipx, uv and conda have their own commands."""
    assert advice(prefix, "conda") == "conda install -c conda-forge python-duckdb pyarrow"
    assert advice(prefix, "uv") == f"uv pip install --python {prefix}/bin/python 'usp[sql]'"
    (prefix / "uv-receipt.toml").touch()
    assert advice(prefix, "uv") == "uv tool install 'usp[sql]'"
    clone = {"url": "file:///src/usp", "dir_info": {"editable": True}}
    assert advice(prefix, "uv", clone) == "uv tool install -e '/src/usp[sql]'"
    (prefix / "pipx_metadata.json").touch()
    assert advice(prefix) == "pipx inject usp duckdb pyarrow"


def test_tools_that_have_usp_as_a_dependency(tmp_path: Path) -> None:
    """In the environment of another application the command names that application."""
    (tmp_path / "crawler").mkdir()
    (tmp_path / "crawler" / "uv-receipt.toml").touch()
    assert advice(tmp_path / "crawler", "uv") == "uv tool install crawler --with 'usp[sql]'"
    (tmp_path / "crawler" / "pipx_metadata.json").touch()
    assert advice(tmp_path / "crawler") == "pipx inject crawler duckdb pyarrow"


def test_active_environment_of_uv(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uv finds an active environment by itself."""
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    assert advice(prefix, "uv") == "uv pip install 'usp[sql]'"


def test_environment_without_pip(prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no pip, uv or another pip can install; else ensurepip comes first."""
    python, tools = f"{prefix}/bin/python", tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    expected = f"{python} -m ensurepip && {python} -m pip install 'usp[sql]'"
    assert advice(prefix, has_pip=False) == expected
    program(tools, "pip")
    assert advice(prefix, has_pip=False) == f"pip --python {python} install 'usp[sql]'"
    program(tools, "uv")
    assert advice(prefix, has_pip=False) == f"uv pip install --python {python} 'usp[sql]'"


def test_not_installed(prefix: Path) -> None:
    """A usp that only lies on the path has no extras; the command installs the package."""
    installation = Installation.of(None, str(prefix), str(prefix / "bin" / "python"), has_pip=True)
    assert installation.command("sql", "duckdb") == "pip install duckdb"


def test_damaged_metadata(prefix: Path) -> None:
    """Metadata that cannot be read is as good as none."""
    advice(prefix)
    (prefix / "lib" / "usp-2.0.0.dist-info" / "direct_url.json").write_text("{")
    assert advice(prefix) == "pip install 'usp[sql]'"


def test_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package and has the command."""
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError) as raised:
        extra("duckdb", "sql")
    assert str(raised.value) == f"This needs duckdb; install it with: {Installation.here().command('sql', 'duckdb')}"


def test_advice_costs_nothing_until_it_is_needed() -> None:
    """Importing the module imports nothing that only advice needs."""
    code = "import sys, usp.extras; sys.exit(bool({'importlib.metadata', 'urllib.request'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0
