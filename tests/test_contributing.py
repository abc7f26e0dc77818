"""The example of CONTRIBUTING: whoever follows it has a rule whose tests pass."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Its language, and its text: the rule, its line in RULES, its page, its test, and the commands that check them.
BLOCKS = re.findall(
    r"^(?P<fence>`{3,})(?P<language>\w+)\n(?P<text>.*?)^(?P=fence)$",
    (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("### Add a rule")[2],
    re.MULTILINE | re.DOTALL,
)


def insert(path: Path, before: str, text: str) -> None:
    """Write a text before the place that a regular expression finds once."""
    (found,) = re.finditer(before, source := path.read_text("utf-8"), re.MULTILINE)
    path.write_text(f"{source[: found.start()]}{text}{source[found.start() :]}", "utf-8")


@pytest.mark.slow
@pytest.mark.tools
def test_the_rule_of_the_example_works(tmp_path: Path) -> None:
    """Its parts go where CONTRIBUTING says, and its commands find no fault in them; without the rule, they fail."""
    function, value, page, test, commands = (text for _, _, text in BLOCKS)
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src/usp/check/pages/U599.md").write_text(page, "utf-8")
    insert(tmp_path / "tests/test_check_rules.py", r"^}\nCASES = ", test)

    command = [sys.executable, *shlex.split(commands.splitlines()[0], comments=True)[1:], "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "200"}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    assert run().returncode != 0
    rules = tmp_path / "src/usp/check/rules/urls.py"
    insert(rules, r"^# .*\nRULES = \(", f"{function}\n\n")
    insert(rules, r"^\)\n\Z", value)
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed, \d+ deselected", done.stdout, re.MULTILINE)
    for style in (["check", "--quiet"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *style, "src/usp/check/rules", "tests/test_check_rules.py"]
        subprocess.run(ruff, cwd=tmp_path, capture_output=True, check=True)
