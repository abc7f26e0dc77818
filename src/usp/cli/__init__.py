"""The command line. It uses the front doors and the objects only."""

from usp.cli.cli import main

__all__ = ["main"]
