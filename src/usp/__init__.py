"""usp: from a website's homepage to every page of its sitemaps.

    from usp import sitemap_tree_for_homepage

    tree = sitemap_tree_for_homepage("https://www.example.org/")
    for page in tree.all_pages():
        print(page.url, page.last_modified)

Names are imported from their modules when they are first used, so that `import usp` stays light.
"""

from usp.version import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from usp.exceptions import SitemapException as SitemapException
    from usp.exceptions import TreeInterrupted as TreeInterrupted
    from usp.exceptions import UspError as UspError
    from usp.fetch_parse.parsed import ChildSitemap as ChildSitemap
    from usp.limits import Limits as Limits
    from usp.objects.codes import Severity as Severity
    from usp.objects.dates import aware as aware
    from usp.objects.outcome import Cause as Cause
    from usp.objects.outcome import Outcome as Outcome
    from usp.objects.outcome import OutcomeKind as OutcomeKind
    from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY as SITEMAP_PAGE_DEFAULT_PRIORITY
    from usp.objects.page import SitemapImage as SitemapImage
    from usp.objects.page import SitemapNewsStory as SitemapNewsStory
    from usp.objects.page import SitemapPage as SitemapPage
    from usp.objects.page import SitemapPageChangeFrequency as SitemapPageChangeFrequency
    from usp.objects.page import SitemapVideo as SitemapVideo
    from usp.objects.page import SitemapVideoTvShow as SitemapVideoTvShow
    from usp.objects.problem import Problem as Problem
    from usp.objects.problem import Problems as Problems
    from usp.objects.sitemap import AbstractIndexSitemap as AbstractIndexSitemap
    from usp.objects.sitemap import AbstractPagesSitemap as AbstractPagesSitemap
    from usp.objects.sitemap import AbstractSitemap as AbstractSitemap
    from usp.objects.sitemap import IndexRobotsTxtSitemap as IndexRobotsTxtSitemap
    from usp.objects.sitemap import IndexWebsiteSitemap as IndexWebsiteSitemap
    from usp.objects.sitemap import IndexXMLSitemap as IndexXMLSitemap
    from usp.objects.sitemap import InvalidSitemap as InvalidSitemap
    from usp.objects.sitemap import PagesAtomSitemap as PagesAtomSitemap
    from usp.objects.sitemap import PagesRSSSitemap as PagesRSSSitemap
    from usp.objects.sitemap import PagesTextSitemap as PagesTextSitemap
    from usp.objects.sitemap import PagesXMLSitemap as PagesXMLSitemap
    from usp.objects.transport import Transport as Transport
    from usp.politeness import Politeness as Politeness
    from usp.progress import Progress as Progress
    from usp.sources import open as open  # noqa: A004 -- as in io, gzip and tarfile
    from usp.tree import sitemap_from_bytes as sitemap_from_bytes
    from usp.tree import sitemap_from_file as sitemap_from_file
    from usp.tree import sitemap_from_str as sitemap_from_str
    from usp.tree import sitemap_tree_for_homepage as sitemap_tree_for_homepage
    from usp.tree import stream_pages_for_homepage as stream_pages_for_homepage
    from usp.tree import stream_sitemaps_for_homepage as stream_sitemaps_for_homepage

_MODULES = {
    "usp.exceptions": ("SitemapException", "TreeInterrupted", "UspError"),
    "usp.fetch_parse.parsed": ("ChildSitemap",),
    "usp.limits": ("Limits",),
    "usp.objects.page": (
        "SITEMAP_PAGE_DEFAULT_PRIORITY",
        "SitemapImage",
        "SitemapNewsStory",
        "SitemapPage",
        "SitemapPageChangeFrequency",
        "SitemapVideo",
        "SitemapVideoTvShow",
    ),
    "usp.objects.codes": ("Severity",),
    "usp.objects.dates": ("aware",),
    "usp.objects.outcome": ("Cause", "Outcome", "OutcomeKind"),
    "usp.objects.problem": ("Problem", "Problems"),
    "usp.objects.sitemap": (
        "AbstractIndexSitemap",
        "AbstractPagesSitemap",
        "AbstractSitemap",
        "IndexRobotsTxtSitemap",
        "IndexWebsiteSitemap",
        "IndexXMLSitemap",
        "InvalidSitemap",
        "PagesAtomSitemap",
        "PagesRSSSitemap",
        "PagesTextSitemap",
        "PagesXMLSitemap",
    ),
    "usp.objects.transport": ("Transport",),
    "usp.politeness": ("Politeness",),
    "usp.progress": ("Progress",),
    "usp.sources": ("open",),
    "usp.tree": (
        "sitemap_from_bytes",
        "sitemap_from_file",
        "sitemap_from_str",
        "sitemap_tree_for_homepage",
        "stream_pages_for_homepage",
        "stream_sitemaps_for_homepage",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

# `from usp import *` must not replace the builtin `open`.
__all__ = ["__version__", *(name for name in _MODULE_OF if name != "open")]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _MODULE_OF:
        raise AttributeError(f"module 'usp' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])
