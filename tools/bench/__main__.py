"""Runs the command: `python tools/bench`, as `make bench` does."""

import sys
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.cli import main  # after the line that makes it importable

if __name__ == "__main__":
    sys.exit(main())
