"""Origins, normalized URLs, and credentials in URLs."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from usp.origins import host_of, normalized_host, origin_of, put_credentials, requested_url, split_credentials


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h.example/", "http://h.example/"),
        ("http://h.example", "http://h.example/"),
        ("HTTP://H.Example./A", "http://h.example/A"),
        ("http://h.example:80/", "http://h.example/"),
        ("http://[2001:DB8:0::1]:80/x", "http://[2001:db8::1]/x"),
        ("http://h.example:443/", "http://h.example:443/"),
        ("https://h.example:443/", "https://h.example/"),
        ("http://h.example:8080/x", "http://h.example:8080/x"),
        ("http://h.example:0/x", "http://h.example:0/x"),
        ("http://h.example/x#y", "http://h.example/x"),
        ("http://h.example/x?", "http://h.example/x"),
        ("http://h.example?x", "http://h.example/?x"),
        ("http://h.example/a b?c d", "http://h.example/a%20b?c%20d"),
        ("http://h.example/%zz%e9", "http://h.example/%zz%e9"),
        ("http://h.example/é?ü", "http://h.example/%C3%A9?%C3%BC"),
        ("http://h.example/a[1]", "http://h.example/a[1]"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://h.example/a/../b/./c", "http://h.example/b/c"),
        ("http://h.example/../../x", "http://h.example/x"),
        ("http://h.example/a/..", "http://h.example/"),
        ("http://h.example/a/.", "http://h.example/a/"),
        ("http://h.example/.well-known/x", "http://h.example/.well-known/x"),
        ("http://h.example/a..b/...", "http://h.example/a..b/..."),
        ("http://h.example/x?a=/../b", "http://h.example/x?a=/../b"),
        ("http://h.example//x", "http://h.example//x"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("http://me:x@h.example:80/", "http://me:x@h.example/"),
        ("ftp://H/", "ftp://H/"),
        ("nonsense", "nonsense"),
        ("http://[bad/", "http://[bad/"),
        ("http://h:99999/", "http://h:99999/"),
    ],
)
def test_requested_urls(url: str, expected: str) -> None:
    """URLs that lead to the same request are normalized to one URL."""
    assert requested_url(url) == expected


@given(st.text(alphabet="abZ09-._~:/?#[]@!$&'()*+,;=% é\\", max_size=30))
def test_the_form_is_stable(text: str) -> None:
    """Normalizing never raises, and normalizing again changes nothing."""
    for url in (f"http://h.example/{text}", f"http://{text}", text):
        assert requested_url(requested_url(url)) == requested_url(url)


def test_origins() -> None:
    """An origin is scheme, normalized host and port; a URL with an invalid port has none."""
    assert origin_of("HTTPS://Bücher.example./x") == ("https", "xn--bcher-kva.example", 443)
    assert origin_of("http://h:8080/") == ("http", "h", 8080)
    assert host_of("http://me@H:1/") == "h"
    assert origin_of("http://[0:0:0:0:0:0:0:1]:81/x") == origin_of("http://[::1]:81/") == ("http", "::1", 81)
    assert origin_of("nonsense") == ("", "", 0)
    with pytest.raises(ValueError, match=r"[Pp]ort"):
        origin_of("http://h:99999/")


@pytest.mark.parametrize(
    ("url", "plain", "credentials"),
    [
        ("http://h.example/", "http://h.example/", ""),
        ("http://me:secret@h.example:81/x@y?z", "http://h.example:81/x@y?z", "me:secret"),
        ("http://me@h.example", "http://h.example", "me"),
        ("http://me:p@ss@h.example/", "http://h.example/", "me:p@ss"),
        ("http://@h.example/", "http://h.example/", ""),
        ("//me:x@h.example/", "//h.example/", "me:x"),
        ("http://me:x@[bad/", "http://[bad/", "me:x"),
        ("http://h.example?a=b@c", "http://h.example?a=b@c", ""),
        ("mailto:me@h.example", "mailto:me@h.example", ""),
        ("/x//me@y", "/x//me@y", ""),
        ("", "", ""),
    ],
)
def test_credentials(url: str, plain: str, credentials: str) -> None:
    """The user and password of a URL can be removed and put back."""
    assert split_credentials(url) == (plain, credentials)
    if credentials:
        assert put_credentials(plain, credentials) == put_credentials(url, credentials) == url
    assert put_credentials("nonsense", "me:x") == "nonsense"


@pytest.mark.parametrize("scheme", ["http", "https", "HTTP", "ftp"])
@pytest.mark.parametrize("host", ["example.org", "a-b.example.org.", "127.0.0.1", "[::1]", "Ex.org", "a..b", "", "1.2"])
@pytest.mark.parametrize("port", ["", ":", ":80", ":443", ":8080", ":059", ":59999", ":60000", ":65536", ":8\u0664"])
@pytest.mark.parametrize("rest", ["", "/", "/a?b", "?x", "#y", "\t/", "@other.org/"])
def test_origins_of_plain_urls_are_those_of_any(scheme: str, host: str, port: str, rest: str) -> None:
    """The short way for plain URLs gives the origin that splitting them gives, or the same error."""
    url = f"{scheme}://{host}{port}{rest}"
    try:
        parts = urlsplit(url)
        number = {"http": 80, "https": 443}.get(parts.scheme, 0) if parts.port is None else parts.port
        expected: object = (parts.scheme, normalized_host(parts.hostname or ""), number)
    except ValueError:
        expected = ValueError
    try:
        found: object = origin_of(url)
    except ValueError:
        found = ValueError
    assert found == expected
