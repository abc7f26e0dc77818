"""Split a column of URLs into columns of their hosts, paths and sections, without an object for each URL.

- The host is in lower case, without user, port, brackets and a dot at the end. The caller normalizes hosts that are not
  ASCII.
- The path is as written, without query and fragment. It is "/" where a URL with a host has none.
- The section is the first part of the path that is not empty: "blog" of /blog/2024/a.html. The homepage has none.

A text that is no URL has no host, and all of it before `?` and `#` is its path. Nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from usp.compiled import IS_COMPILED
from usp.scan.columns import Column, Scalar, column_of

__all__ = ["URL_PARTS", "pure_split_urls", "split_urls"]

#: The columns that come from the URL of a page.
URL_PARTS: tuple[str, ...] = ("host", "path", "section")

#: Returns the one form of a host, given in lower case.
NormalizedHost = Callable[[str], str]

# https://www.rfc-editor.org/rfc/rfc3986#appendix-B
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*+:)?+(?://([^/?#]*+))?+([^?#]*+)")


class _Parts(NamedTuple):
    host: str | None
    path: str | None
    section: str | None


def _split(url: str, normalized_host: NormalizedHost) -> _Parts:
    match = _URL.match(url)
    assert match is not None
    authority, path = match.groups()
    place = (authority or "").rpartition("@")[2]
    host = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    host = host.rstrip(".")
    host = host.lower() if host.isascii() else normalized_host(host)
    return _Parts(host or None, path or ("/" if host else None), path.lstrip("/").partition("/")[0] or None)


def pure_split_urls(urls: Column, wanted: Collection[str], normalized_host: NormalizedHost) -> dict[str, Column]:
    """Return the wanted columns. One without any value is left out."""
    assert urls.offsets is not None
    data = bytes(urls.data or b"")
    texts = [data[start:end].decode() for start, end in pairwise(urls.offsets.tolist())]
    columns = zip(*(_split(text, normalized_host) for text in texts), strict=True)
    return {
        name: column_of(Scalar.TEXT, values)
        for name, values in zip(URL_PARTS, columns, strict=False)
        if name in wanted and any(value is not None for value in values)
    }


if TYPE_CHECKING or not IS_COMPILED:
    split_urls = pure_split_urls
else:
    from usp.scan import _buffers
    from usp.scan._url_parts import split_urls

    _buffers.bind()
