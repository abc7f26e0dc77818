"""The loggers of usp. They print nothing until a program sets up logging; Python would print warnings."""

from __future__ import annotations

import logging

__all__ = ["logger"]

logging.getLogger("usp").addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """Return the logger of a module."""
    return logging.getLogger(name)
