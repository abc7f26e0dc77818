"""Check sitemaps: find what a search engine would reject, misread or ignore.

    from usp.check import check

    report = check("https://www.example.org/")
    for problem in report.problems():
        print(problem)

The modules are imported when you first use a name.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from usp.check.checking import check, check_bytes, check_homepage, check_path, check_tree
    from usp.check.probing import Probe, ProbeProgress
    from usp.check.report import CheckedSitemap, Report
    from usp.check.rules.page import explain

__all__ = [
    "CheckedSitemap",
    "Probe",
    "ProbeProgress",
    "Report",
    "check",
    "check_bytes",
    "check_homepage",
    "check_path",
    "check_tree",
    "explain",
]


#: A name -> its module; all others are in `checking`.
_MODULES = {
    "CheckedSitemap": "report",
    "Probe": "probing.probe",
    "ProbeProgress": "probing.probe",
    "Report": "report",
    "explain": "rules.page",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'checking')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
