"""Every exception of usp, under one base.

    UspError
    ├── SitemapException              a URL or an argument that cannot lead to a sitemap
    │   └── SitemapXMLParsingException    an XML document is refused (never raised out of a tree)
    ├── InvalidArgumentError          an argument is wrong; also a ValueError
    ├── GunzipException               data is not gzip, or is damaged
    ├── StripURLToHomepageException   a URL has no homepage
    ├── MissingExtraError             an optional package is not installed; also an ImportError
    ├── NoWebClientException          a client for local content was asked to fetch a URL
    ├── UnguardedClientError          an HTTP library does not call usp's guards
    ├── DocumentReadError             the temporary file of a large tree cannot be read
    └── CrawlFolderError              a crawl folder cannot be read or written

    KeyboardInterrupt
    └── TreeInterrupted               Ctrl-C while a tree was fetched; it has the partial tree

A `UspError` means that the caller did something wrong, except `DocumentReadError`, where the machine failed, and
`UnguardedClientError`, where the wrong version of a library is installed. What a
website does wrong is never raised: it becomes an `InvalidSitemap` or a `Problem` in the tree.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from usp.check.report import Report
    from usp.export.exporting import Exported
    from usp.objects.sitemap import AbstractSitemap

__all__ = [
    "CrawlFolderError",
    "DocumentReadError",
    "GunzipException",
    "InvalidArgumentError",
    "MissingExtraError",
    "NoWebClientException",
    "SitemapException",
    "SitemapXMLParsingException",
    "StripURLToHomepageException",
    "TreeInterrupted",
    "UnguardedClientError",
    "UspError",
]


class UspError(Exception):
    """The base of all exceptions that usp raises on purpose. Catch it to catch them all, except `TreeInterrupted`."""


class SitemapException(UspError):
    """A URL or an argument cannot lead to a sitemap.

    Raised for a URL that is not http or https, for content of the wrong type, and by a `SitemapFetcher` for a URL that
    is nested too deep or is among its own parents. Pass another URL or argument.
    """


class InvalidArgumentError(UspError, ValueError):
    """An argument is wrong. It is a ValueError, too.

    Raised by every function and class that checks its arguments. The message names the argument and says what to pass.
    """


class SitemapXMLParsingException(SitemapException):
    """An XML document is refused.

    usp never raises it: a refused document becomes an `InvalidSitemap`. It exists for code that catches it because
    ultimate-sitemap-parser does.
    """


class GunzipException(UspError):
    """Data is not gzip, is damaged, or is longer than the limit.

    Raised by `usp.helpers.gunzip` only. Sitemaps with such data are read as far as possible.
    """


class StripURLToHomepageException(UspError):
    """A URL has no homepage, because it is not http or https or has no host.

    Raised by `strip_url_to_homepage`. Pass a URL like https://example.org/.
    """


class MissingExtraError(UspError, ImportError):
    """An optional package is not installed. It is an ImportError, too.

    Raised by exports, tables and queries that need the package. The message says how to install it.
    """


class NoWebClientException(UspError):
    """A client for local content was asked to fetch a URL.

    Raised by `LocalWebClient`. To fetch sitemaps, use another client.
    """


class UnguardedClientError(UspError):
    """An HTTP library does not call usp's guards, so usp could not refuse private addresses.

    Raised by `RequestsWebClient` and `AiohttpWebClient` before the first request, if a version of requests, urllib3 or
    aiohttp is installed in which usp's guards have no effect. The message says which versions to install.
    """


class DocumentReadError(UspError):
    """A sitemap cannot be read back from the temporary file of its tree.

    Raised when you read pages or problems of a large tree and the disk fails. Fetch the tree again.
    """


class CrawlFolderError(UspError):
    """A crawl folder cannot be read or written: it is not one, is damaged, or another process writes to it.

    Raised by `usp.crawl`. The message says what to do.
    """


class TreeInterrupted(KeyboardInterrupt):
    """Ctrl-C was pressed while a tree was fetched. It is a KeyboardInterrupt.

    Catch it to use `tree`, which has everything that was fetched until then. An export of several sites sets `exported`
    to what it has written, and `usp.check.check` sets `report`.
    """

    def __init__(self, tree: "AbstractSitemap") -> None:
        super().__init__()
        self.tree = tree
        self.exported: Exported | None = None
        self.report: Report | None = None
