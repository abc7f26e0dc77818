"""Any source in: `open` reads a site, a sitemap, a file, a folder, an archive or standard input.

`usp.open` is `open` of this package, and `usp.aio.open` its twin on asyncio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from usp.sources.opening import SourceStream, Targets, find_sources
from usp.sources.targets import STANDARD_INPUT, ReadAs, Source, SourceKind, find_source, find_web_source
from usp.stream import Reading

if TYPE_CHECKING:
    from usp.stream import HomepageOptions
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = [
    "STANDARD_INPUT",
    "ReadAs",
    "Reading",
    "Source",
    "SourceKind",
    "SourceStream",
    "Targets",
    "find_source",
    "find_sources",
    "find_web_source",
    "open",
]


def open(  # noqa: A001 -- as in io, gzip and tarfile
    targets: Targets,
    web_client: AbstractWebClient | None = None,
    *,
    url: str | None = None,
    read_as: ReadAs = "auto",
    **options: Unpack[HomepageOptions],
) -> SourceStream:
    """Open a site, a sitemap, a file, a folder or an archive, or several of these, as a stream of sitemaps.

        import usp

        tree = usp.open("example.org").read()
        for sitemap in usp.open(["https://www.example.org/sitemap.xml", "old/sitemap.xml.gz"]):
            print(sitemap.url, len(sitemap.pages))

    A URL with a path is read as a sitemap with everything below it; if a web page is there, its whole site is read. A
    host without a scheme is read over https, or over http if nothing answers there. `stream.notes` says so.

    :param targets: one target or several: URLs, hosts, paths, or "-" for standard input.
    :param web_client: fetches the URLs; None for a `RequestsWebClient`.
    :param url: where a file or a folder is, or will be, served.
    :param read_as: "site" reads the whole site of a URL, "sitemap" the sitemap at it and what is below; "auto" decides.
    :param options: those of `usp.tree.sitemap_tree_for_homepage`.
    :raises InvalidArgumentError: if a target is none of these. The message says what to pass.
    :raises OSError: while reading, if a file cannot be read.
    """
    return SourceStream(find_sources(targets, url=url, read_as=read_as), web_client, **options)
