"""Whether the compiled parts are used: they are where they could be built, unless USP_PURE=1 says otherwise.

Without them plain Python does the same, slower. Both give equal results.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

__all__ = ["IS_COMPILED"]

IS_COMPILED = os.environ.get("USP_PURE", "") in ("", "0") and find_spec("usp.scan._plain") is not None
