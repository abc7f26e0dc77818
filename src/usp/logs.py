"""The library's loggers. It prints nothing: not even where a program has not set up logging, as Python would."""

from __future__ import annotations

import logging

__all__ = ["logger"]

logging.getLogger("usp").addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """The logger of a module."""
    return logging.getLogger(name)
