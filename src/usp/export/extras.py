"""Packages that are not installed with usp unless they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from usp.exceptions import MissingExtraError

__all__ = ["extra"]


def extra(module: str, name: str) -> Any:
    """A module that the extra of this name installs. Raises `MissingExtraError`, which says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"This needs {package}; install it with: pip install 'usp[{name}]'") from error
