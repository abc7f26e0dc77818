"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, which programs that they start would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
