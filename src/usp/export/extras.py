"""Import packages that only the extras of usp install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from usp.exceptions import MissingExtraError

__all__ = ["extra"]


def extra(module: str, name: str) -> Any:
    """Import a module that this extra installs.

    :raises MissingExtraError: if it is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(f"This needs {package}; install it with: pip install 'usp[{name}]'") from error
