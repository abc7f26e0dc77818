"""Tables of a site's pages and sitemaps: in files, as pandas, polars, Arrow and DuckDB have them.

What is needed is imported when it is first used: commands that export nothing do not wait for it.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from usp.export.exporting import Exported as Exported
    from usp.export.exporting import export_homepage as export_homepage
    from usp.export.exporting import write as write
    from usp.export.schema import VERSION as SCHEMA_VERSION

_HOMES = {"Exported": "exporting", "export_homepage": "exporting", "write": "exporting"}

__all__ = ["SCHEMA_VERSION", "Exported", "export_homepage", "write"]


def __getattr__(name: str) -> object:
    """What is exported from here, by its name."""
    if name == "SCHEMA_VERSION":
        from usp.export.schema import VERSION

        return VERSION
    if name in _HOMES:
        return getattr(import_module(f"usp.export.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
