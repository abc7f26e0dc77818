"""Every exception of usp, under one base.

    UspError
    ├── SitemapException              a URL or an argument that cannot lead to a sitemap
    │   └── SitemapXMLParsingException    an XML document is refused (never raised out of a tree)
    ├── InvalidArgumentError          an argument is wrong; also a ValueError
    ├── GunzipException               data is not gzip, or is damaged
    ├── StripURLToHomepageException   a URL has no homepage
    ├── MissingExtraError             an optional package is not installed; also an ImportError
    ├── NoWebClientException          a client for local content was asked to fetch a URL
    └── DocumentReadError             the temporary file of a large tree cannot be read

    KeyboardInterrupt
    └── TreeInterrupted               Ctrl-C while a tree was fetched; it has the partial tree

A `UspError` means that the caller did something wrong, except `DocumentReadError`, where the machine failed. What a
website does wrong is never raised: it becomes an `InvalidSitemap` or a `Problem` in the tree.
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
    """The base of all exceptions that usp raises on purpose."""


class SitemapException(UspError):
    """A URL or an argument cannot lead to a sitemap."""


class InvalidArgumentError(UspError, ValueError):
    """An argument is wrong. The message says what to pass."""


class SitemapXMLParsingException(SitemapException):
    """An XML document is refused."""


class GunzipException(UspError):
    """Data is not gzip, or is damaged."""


class StripURLToHomepageException(UspError):
    """A URL has no homepage."""


class MissingExtraError(UspError, ImportError):
    """An optional package is not installed. The message says how to install it."""


class NoWebClientException(UspError):
    """A client for local content was asked to fetch a URL."""


class DocumentReadError(UspError):
    """A sitemap cannot be read back from the temporary file of its tree."""


class TreeInterrupted(KeyboardInterrupt):
    """Ctrl-C was pressed while a tree was fetched. `tree` is the partial tree."""

    def __init__(self, tree: "IndexWebsiteSitemap") -> None:
        super().__init__()
        self.tree = tree
