"""Redirects: what to request next, as plain values."""

from __future__ import annotations

import time

import pytest

from usp.limits import Limits
from usp.web_client.policy import RequestPolicy
from usp.web_client.redirects import Redirects

URL = "http://h.example/a/b"


def start(url: str = URL, **limits: int) -> Redirects:
    return Redirects(url, RequestPolicy("http://h.example/", Limits(**limits)))


@pytest.mark.parametrize(
    ("location", "url"),
    [
        (b"/c", "http://h.example/c"),
        (b"c", "http://h.example/a/c"),
        (b"../c", "http://h.example/c"),
        (b"//o.example/c", "http://o.example/c"),
        (b"https://O.example:443", "https://o.example/"),
        (b"/c#d", "http://h.example/c"),
        (b"/a b|", "http://h.example/a%20b%7C"),
        ("/é".encode(), "http://h.example/%C3%A9"),
        (b"/\xe9", "http://h.example/%E9"),
        ("http://bücher.example/".encode(), "http://xn--bcher-kva.example/"),
        (b" \t/c\r\n", "http://h.example/c"),
        (b"?q", "http://h.example/a/b?q"),
    ],
)
def test_locations(location: bytes, url: str) -> None:
    """A Location is resolved against the URL, and put in the form in which URLs are requested."""
    redirects = start()
    assert redirects.follow(location) is None
    assert redirects.url == url


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        (b"", "redirects in a loop, to http://h.example/a/b"),
        (b"#x", "redirects in a loop, to http://h.example/a/b"),
        (b"http://[bad/", "redirects to http://[bad/, which is not a URL"),
        (b"file:///etc/passwd", "redirects to file:///etc/passwd: file is not http or https"),
        (b"javascript:alert(1)", "redirects to javascript:alert(1): javascript is not http or https"),
        (b"http://10.0.0.1/", "redirects to http://10.0.0.1/: 10.0.0.1 is not a public address; "),
        (b"http://x:99999/", "redirects to http://x:99999/: it is not a URL"),
    ],
)
def test_places_that_are_not_gone_to(location: bytes, reason: str) -> None:
    """A redirect to nowhere, or to where the policy forbids, has a reason."""
    assert (start().follow(location) or "").startswith(reason)


def test_first_url() -> None:
    """The first URL is checked too, and put in the same form."""
    assert start("HTTP://H.example").url == "http://h.example/"
    assert start("ftp://h.example/").refusal() == "ftp is not http or https"
    assert start().refusal() is None


def test_how_many() -> None:
    """There is a limit to redirects."""
    redirects = start(max_redirects=2)
    assert [redirects.follow(b"/%d" % i) for i in range(3)] == [None, None, "redirected more than 2 times"]
    assert start(max_redirects=0).follow(b"/x") == "redirected more than 0 times"


def test_loops() -> None:
    """The same URL again is a loop, unless there are other cookies."""
    redirects = start()
    assert redirects.follow(b"/x") is None
    assert redirects.follow(b"/a/b") == "redirects in a loop, to http://h.example/a/b"
    redirects = start()
    assert redirects.follow(b"/a/b", ["a=1"]) is None
    assert redirects.follow(b"/a/b", ["a=2"]) is None
    assert redirects.follow(b"/a/b", ["a=2"]) == "redirects in a loop, to http://h.example/a/b"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["a=1; Path=/; HttpOnly", "b=2"], "a=1; b=2"),
        (["a=1", "a=2"], "a=2"),
        (["a="], "a="),
        ([' a = "x y,z" ; Secure'], 'a="x y,z"'),
        (["nonsense", "=x", "a b=c", "a=\x00", "a=é", "a=b\r\nX: y", ""], None),
        ([f"a{i}=1" for i in range(30)], "; ".join(f"a{i}=1" for i in range(20))),
        (["a=" + "x" * 5000, "b=1"], "b=1"),
        (["a=" + "x" * 3000, "b=" + "x" * 3000, "a=1", "c=2"], "a=1; c=2"),
    ],
)
def test_cookies(values: list[str], expected: str | None) -> None:
    """Names and values of cookies are kept, a bounded number of bounded size."""
    redirects = start()
    assert redirects.cookie() is None
    assert redirects.follow(b"/x", values) is None
    assert redirects.cookie() == expected


@pytest.mark.parametrize(
    "value",
    ["a=" + " " * 100_000 + "\xe9", " " * 100_000 + "a", "a" * 100_000, "a=" + "x " * 50_000 + "\xe9", ";" * 100_000],
)
def test_hostile_cookies_cost_no_time(value: str) -> None:
    """A Set-Cookie header of any shape is judged in linear time: spaces used to cost minutes."""
    started = time.process_time()
    assert start().follow(b"/x", [value] * 10) is None
    assert time.process_time() - started < 1


@pytest.mark.parametrize("elsewhere", [b"https://h.example/x", b"http://h.example:81/x", b"http://www.h.example/x"])
def test_cookies_stay_at_their_origin(elsewhere: bytes) -> None:
    """A cookie goes to the scheme, host and port that set it, and is there again on the way back."""
    redirects = start()
    assert redirects.follow(elsewhere, ["a=1"]) is None
    assert redirects.cookie() is None
    assert redirects.follow(b"http://h.example/y", ["b=2"]) is None
    assert redirects.cookie() == "a=1"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        (b"/c", "http://me:secret@h.example/c"),
        (b"//H.example/c", "http://me:secret@h.example/c"),
        (b"http://h.example:80/c", "http://me:secret@h.example/c"),
        (b"http://you:x@h.example/c", "http://you:x@h.example/c"),
        (b"http://www.h.example/c", "http://www.h.example/c"),
        (b"https://h.example/c", "https://h.example/c"),
        (b"http://h.example:81/c", "http://h.example:81/c"),
    ],
)
def test_credentials_in_urls(location: bytes, url: str) -> None:
    """A user and password in a URL are those of where it leads too, as long as that is the same origin."""
    redirects = start("http://me:secret@h.example/a/b")
    assert redirects.follow(location) is None
    assert redirects.url == url


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        (b"", "redirects in a loop, to http://h.example/a/b"),
        (b"http://me:secret@[bad/", "redirects to http://[bad/, which is not a URL"),
        (b"ftp://me:secret@h.example/", "redirects to ftp://h.example/: ftp is not http or https"),
        (b"http://me:secret@x:99999/", "redirects to http://x:99999/: it is not a URL"),
    ],
)
def test_credentials_are_not_shown(location: bytes, reason: str) -> None:
    """No message has a user and password in it."""
    assert start("http://me:secret@h.example/a/b").follow(location) == reason
