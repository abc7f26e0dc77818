"""The host, the path and the section of URLs: right for odd ones, and equal in plain Python and compiled."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usp.export.formats.cells import values_of
from usp.origins import host_of, normalized_host
from usp.scan import URL_PARTS, Column, Scalar, column_of, split_urls
from usp.scan.url_parts import pure_split_urls

pytestmark = pytest.mark.compare

each = pytest.mark.parametrize("split", [pure_split_urls, split_urls], ids=["pure", "fastest"])
Split = Callable[[Column, Collection[str], Callable[[str], str]], dict[str, Column]]
Row = tuple[str | None, ...]

ODD_URLS: dict[str, Row] = {
    "https://www.example.org/blog/2024/a.html?q=/x#y": ("www.example.org", "/blog/2024/a.html", "blog"),
    "https://www.example.org/about": ("www.example.org", "/about", "about"),
    "https://www.example.org/": ("www.example.org", "/", None),
    "https://www.example.org": ("www.example.org", "/", None),
    "https://www.example.org?q": ("www.example.org", "/", None),
    "https://www.example.org#top": ("www.example.org", "/", None),
    "https://www.example.org//": ("www.example.org", "//", None),
    "https://www.example.org//a//b": ("www.example.org", "//a//b", "a"),
    "https://www.example.org/a?b=/c": ("www.example.org", "/a", "a"),
    "https://www.example.org/a#/b": ("www.example.org", "/a", "a"),
    "https://www.example.org/caf%C3%A9/%2F/x": ("www.example.org", "/caf%C3%A9/%2F/x", "caf%C3%A9"),
    "https://www.example.org/é/日本": ("www.example.org", "/é/日本", "é"),
    "https://www.example.org/a:b@c/d": ("www.example.org", "/a:b@c/d", "a:b@c"),
    "HTTPS://WWW.Example.ORG/Blog/": ("www.example.org", "/Blog/", "Blog"),
    "https://www.example.org./a": ("www.example.org", "/a", "a"),
    "http://user:secret@example.org:8080/a": ("example.org", "/a", "a"),
    "http://a@b@example.org/": ("example.org", "/", None),
    "http://example.org:80/": ("example.org", "/", None),
    "http://example.org:": ("example.org", "/", None),
    "http://[2001:DB8::1]:8080/a/b": ("2001:db8::1", "/a/b", "a"),
    "http://[::1]": ("::1", "/", None),
    "http://[::1": ("::1", "/", None),
    "http://127.0.0.1:8000/x": ("127.0.0.1", "/x", "x"),
    "http://Bücher.example/Ü": ("xn--bcher-kva.example", "/Ü", "Ü"),
    "http://例え.テスト./a": ("xn--r8jz45g.xn--zckzah", "/a", "a"),
    "http://xn--bcher-kva.example/": ("xn--bcher-kva.example", "/", None),
    "http://exa_mple.org/a": ("exa_mple.org", "/a", "a"),
    "//example.org/a": ("example.org", "/a", "a"),
    "http:///a/b": (None, "/a/b", "a"),
    "http://": (None, None, None),
    "/a/b": (None, "/a/b", "a"),
    "a/b?c": (None, "a/b", "a"),
    "mailto:a": (None, "a", "a"),
    "a:": (None, None, None),
    "9a:/b": (None, "9a:/b", "9a:"),
    "": (None, None, None),
    "?": (None, None, None),
    "\0": (None, "\0", "\0"),
}


def rows(urls: Collection[str], split: Split = split_urls) -> list[Row]:
    """Return the parts of URLs, row by row."""
    columns = split(column_of(Scalar.TEXT, list(urls)), URL_PARTS, normalized_host)
    parts = [values_of(Scalar.TEXT, columns.get(name), len(urls)) for name in URL_PARTS]
    return list(zip(*parts, strict=True))


@each
def test_odd_urls(split: Split) -> None:
    """Each URL has its parts, among others and alone."""
    assert dict(zip(ODD_URLS, rows(ODD_URLS, split), strict=True)) == ODD_URLS
    assert [rows([url], split) for url in ODD_URLS] == [[row] for row in ODD_URLS.values()]


@each
def test_only_what_is_wanted(split: Split) -> None:
    """Only wanted columns are made, and only those with a value."""
    urls = column_of(Scalar.TEXT, ["http://h/", "http://h"])
    assert {name: list(split(urls, [name], normalized_host)) for name in URL_PARTS} == {
        "host": ["host"],
        "path": ["path"],
        "section": [],
    }
    assert split(column_of(Scalar.TEXT, []), URL_PARTS, normalized_host) == {}


@given(st.lists(st.one_of(st.text("htp:/?#@[].\\ aÉß。9", max_size=30), st.sampled_from(list(ODD_URLS)))))
def test_both_ways_are_equal(urls: list[str]) -> None:
    """Plain Python and the compiled function have the same parts."""
    assert rows(urls, pure_split_urls) == rows(urls, split_urls)


@given(st.text("abC.:@[]0é/?#", max_size=20))
def test_hosts_are_those_of_requests(text: str) -> None:
    """The host is the one that requests go to, as the rest of usp knows it."""
    url = f"http://{text}"
    with suppress(ValueError):  # a malformed port or address
        assert (rows([url])[0][0] or "") == host_of(url)
