"""Tables of a site's pages and sitemaps: in files, as pandas, polars, Arrow and DuckDB have them.

    from usp.export import export_homepage

    exported = export_homepage("https://www.example.org/", "pages.csv", columns=["url", "last_modified"])
    print(exported.rows, "rows")

Names are imported when they are first used, so that commands that export nothing do not wait for them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from usp.export.exporting import Exported as Exported
    from usp.export.exporting import export_homepage as export_homepage
    from usp.export.exporting import export_stream as export_stream
    from usp.export.exporting import plan_export as plan_export
    from usp.export.exporting import run_export as run_export
    from usp.export.exporting import write as write
    from usp.export.queries import Query as Query
    from usp.export.schema import SCHEMA_VERSION as SCHEMA_VERSION

_MODULES = {
    "exporting": ("Exported", "export_homepage", "export_stream", "plan_export", "run_export", "write"),
    "queries": ("Query",),
    "schema": ("SCHEMA_VERSION",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["SCHEMA_VERSION", "Exported", "export_homepage", "write"]


if not TYPE_CHECKING:  # so that mypy knows each name by its import above

    def __getattr__(name: str) -> object:
        """Import a name when it is first used."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
