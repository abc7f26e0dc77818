"""Every exception of usp, under one base.

    UspError
    ├── SitemapException              the caller asked for something that cannot be a sitemap
    │   └── SitemapXMLParsingException    a document is refused as XML (never raised out of a tree)
    ├── InvalidArgumentError          an argument that makes no sense; a ValueError too
    ├── GunzipException               data that is not gzip was to be gunzipped
    ├── StripURLToHomepageException   a homepage cannot be made of this URL
    ├── MissingExtraError             an optional package is not installed; an ImportError too
    ├── NoWebClientException          a client that fetches nothing was asked to fetch
    └── DocumentReadError             the temporary file of a large tree cannot be read back

    KeyboardInterrupt
    └── TreeInterrupted               Ctrl-C while a tree was fetched; it has what there is of the tree

These are raised for wrong use by the caller only, but for the last, which is the machine's fault. What a website does
wrong becomes an `InvalidSitemap` or a `Problem` in the tree and is never raised out of it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from usp.objects.sitemap import IndexWebsiteSitemap

__all__ = [
    "DocumentReadError",
    "GunzipException",
    "InvalidArgumentError",
    "MissingExtraError",
    "NoWebClientException",
    "SitemapException",
    "SitemapXMLParsingException",
    "StripURLToHomepageException",
    "TreeInterrupted",
    "UspError",
]


class UspError(Exception):
    """Base of everything that usp raises on purpose."""


class SitemapException(UspError):
    """A URL, a level or an argument from which no sitemap can be had."""


class InvalidArgumentError(UspError, ValueError):
    """An argument that makes no sense."""


class SitemapXMLParsingException(SitemapException):
    """An XML document is refused as a whole."""


class GunzipException(UspError):
    """Data could not be gunzipped."""


class StripURLToHomepageException(UspError):
    """A URL has no homepage that could be derived from it."""


class MissingExtraError(UspError, ImportError):
    """A package that is needed for this, and only for this, is not installed."""


class NoWebClientException(UspError):
    """A local client was asked to fetch a URL."""


class DocumentReadError(UspError):
    """A sitemap that was put into a temporary file cannot be read back."""


class TreeInterrupted(KeyboardInterrupt):
    """Ctrl-C was pressed while a tree was fetched. `tree` is all that was had of it."""

    def __init__(self, tree: "IndexWebsiteSitemap") -> None:
        super().__init__()
        self.tree = tree
