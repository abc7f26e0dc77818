"""Whether the compiled parts are used: they are where they could be built, unless USP_PURE=1 says otherwise.

Without them plain Python does the same, slower. Both give equal results.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec

__all__ = ["IS_COMPILED"]


def _can_be_used() -> bool:
    if os.environ.get("USP_PURE", "") not in ("", "0") or find_spec("usp.scan._plain") is None:
        return False
    try:
        import_module("usp.objects._lazy")  # built together with the other; it may be for another Python
    except ImportError:
        return False
    return True


IS_COMPILED = _can_be_used()
