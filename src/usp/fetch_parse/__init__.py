"""One response in, one node of the tree out: `SitemapFetcher` and the parsers."""

from usp.fetch_parse.abstract import AbstractSitemapParser
from usp.fetch_parse.fetcher import (
    RecurseCallbackType,
    RecurseListCallbackType,
    SitemapFetcher,
    SitemapStrParser,
)
from usp.fetch_parse.lines import IndexRobotsTxtSitemapParser, PlainTextSitemapParser
from usp.fetch_parse.parsers import (
    AbstractXMLSitemapParser,
    IndexXMLSitemapParser,
    PagesAtomSitemapParser,
    PagesRSSSitemapParser,
    PagesXMLSitemapParser,
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
