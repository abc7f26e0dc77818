"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, which programs that they start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that cannot be read make no name for a test: compressed ones have the time in them, and always differ."""
    return argname if isinstance(val, bytes) and not (val.isascii() and val.decode().isprintable()) else None
