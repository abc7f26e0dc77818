"""One response in, one node of the tree out: `SitemapFetcher` and the parsers."""

from usp.fetch_parse.fetcher import (
    RecurseCallbackType,
    RecurseListCallbackType,
    SitemapFetcher,
    SitemapStrParser,
)
from usp.fetch_parse.parsers import (
    AbstractSitemapParser,
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
