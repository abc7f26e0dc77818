"""Runs commands as a user does: in the process of the tests where that is enough, else in a process of its own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

import pytest

from usp.cli import main

#: Environment variables that change what commands print.
UNWANTED = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "TERM": "xterm-256color", **more}


@dataclass(frozen=True)
class RunHere:
    """Runs a command in this process, in a tenth of the time; for tests without signals, closed pipes or terminals."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        self.capsys.readouterr()
        try:
            code: object = main([*arguments])
        except SystemExit as end:
            code = end.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, *self.capsys.readouterr())
