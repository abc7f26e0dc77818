"""Commands as a user runs them: in a process of their own, or, for what that is not needed for, in this one."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

import pytest

from usp.cli import main

UNWANTED = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")  # in the environment


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, "TERM": "xterm-256color", **more}


@dataclass(frozen=True)
class RunHere:
    """Gives of a command what a process gives, in a tenth of the time: not what ends or closes that, or shows there."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        self.capsys.readouterr()
        try:
            code: object = main([*arguments])
        except SystemExit as end:
            code = end.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(arguments, code, *self.capsys.readouterr())
