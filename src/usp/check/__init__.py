"""Check sitemaps: say what a search engine would reject or misread, and where.

    from usp.check import check_homepage

    report = check_homepage("https://www.example.org/")
    for problem in report.problems():
        print(problem)

What the checks need is imported when they are first used.
"""

from __future__ import annotations

from usp.check.explain import explain

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from usp.check.checking import check_bytes, check_homepage, check_path, check_tree
    from usp.check.report import CheckedSitemap, Report

__all__ = [
    "CheckedSitemap",
    "Report",
    "check_bytes",
    "check_homepage",
    "check_path",
    "check_tree",
    "explain",
]


def __getattr__(name: str) -> object:
    """The functions that check, and what they give."""
    if name in ("CheckedSitemap", "Report"):
        from usp.check import report

        return getattr(report, name)
    if name in __all__:
        from usp.check import checking

        return getattr(checking, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
