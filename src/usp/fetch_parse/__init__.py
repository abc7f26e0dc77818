"""From the response for a URL to a sitemap of the tree: `SitemapFetcher` and the parsers."""

from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.fetch_parse.fetcher import (
    RecurseCallbackType,
    RecurseListCallbackType,
    SitemapFetcher,
    SitemapStrParser,
)
from usp.fetch_parse.parsers import (
    AbstractXMLSitemapParser,
    IndexRobotsTxtSitemapParser,
    IndexXMLSitemapParser,
    PagesAtomSitemapParser,
    PagesRSSSitemapParser,
    PagesXMLSitemapParser,
    PlainTextSitemapParser,
    XMLSitemapParser,
)

__all__ = [
    "AbstractSitemapParser",
    "AbstractXMLSitemapParser",
    "IndexRobotsTxtSitemapParser",
    "IndexXMLSitemapParser",
    "PagesAtomSitemapParser",
    "PagesRSSSitemapParser",
    "PagesXMLSitemapParser",
    "PlainTextSitemapParser",
    "RecurseCallbackType",
    "RecurseListCallbackType",
    "SitemapFetcher",
    "SitemapStrParser",
    "XMLSitemapParser",
]
