"""Load the compiled modules, or decide to do without them.

`IS_COMPILED` says whether they are used: all of them, or none. Plain Python is used instead where they were not built,
where USP_PURE=1 is set, and where they cannot be loaded: damaged, or built for another Python or version of usp. Only
the last case warns, once. The results are the same; plain Python is slower.

This module imports nothing of usp, and so do the compiled modules while they load: they import what they need of usp
when a module that uses them calls their `bind()`.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from struct import unpack_from

__all__ = ["INTERFACE", "IS_COMPILED"]

#: Modules that were built with another number are not used. Raise it whenever Python and the compiled modules expect
#: something else of each other: names, arguments, the order of fields. `setup.py` builds it in.
INTERFACE = 10
#: Each after those that it uses.
_MODULES = (
    "usp.objects._lazy",
    *("usp.scan._references", "usp.scan._texts", "usp.scan._lines", "usp.scan._entries", "usp.scan._buffers"),
    *("usp.scan._seen", "usp.scan._pages", "usp.scan._check", "usp.scan._extensions", "usp.scan._columns"),
    *("usp.scan._markup", "usp.scan._tokens", "usp.scan._elements", "usp.scan._scanner", "usp.scan._url_codes"),
    *(
        "usp.scan._url_patterns",
        "usp.scan._general_check",
        "usp.scan._survey",
        "usp.scan._url_parts",
        "usp.scan._urls",
        "usp.scan._entry_pages",
    ),
    *("usp.scan._line_urls", "usp.scan._line_skipper"),
)


def _load() -> bool:
    """Import the compiled modules. Return whether they can be used."""
    if os.environ.get("USP_PURE", "") not in ("", "0"):
        return False
    specs = {name: find_spec(name) for name in _MODULES}
    if not any(specs.values()):
        return False
    try:
        for name, spec in specs.items():
            if spec is None:
                raise ImportError(f"{name} is missing")
            _check_size(spec.origin or "")
            if getattr(import_module(name), "INTERFACE", None) != INTERFACE:
                raise ImportError(f"{name} was built for another version of usp")
    except Exception as error:  # a module of another Python, or of mixed builds, may raise anything
        warnings.warn(
            f"the compiled modules of usp cannot be loaded, so it runs in slower pure Python: {error}. "
            "Install usp again, or set USP_PURE=1 to silence this warning.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def _check_size(path: str) -> None:
    """Raise an error if a library for Linux was cut short: the process would die of loading it.

    The table of sections, which stands at the end, must lie within the file:
    https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
    """
    with open(path, "rb") as file:
        header = file.read(64)
        size = file.seek(0, os.SEEK_END)
    if header.startswith(b"\x7fELF\x02\x01"):
        header = header.ljust(64, b"\xff")
        (table,) = unpack_from("<Q", header, 40)
        entry_size, entry_count = unpack_from("<HH", header, 58)
        if size < table + entry_size * entry_count:
            raise ImportError(f"{path} is truncated")


IS_COMPILED = _load()
