"""What holds for all tests."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest

from commands import UNWANTED, RunHere

# A shell that starts the tests in the background has them ignore Ctrl-C, which programs that they start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that cannot be read make no name for a test: compressed ones have the time in them, and always differ."""
    return argname if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()) else None


@pytest.fixture(autouse=True)
def unchanged_logging() -> Iterator[None]:
    """A command that runs in the process of the tests sends the log elsewhere; the next test finds it as it was."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def run_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunHere:
    """Runs a command in the process of the tests."""
    for name in UNWANTED:
        monkeypatch.delenv(name, raising=False)
    return RunHere(capsys)
