"""The helper functions of ultimate-sitemap-parser."""

from __future__ import annotations

import gzip

import pytest

from support import FakeClient, FakeResponse
from usp import helpers
from usp.exceptions import GunzipException, SitemapException
from usp.web_client.abstract_client import WebClientErrorResponse


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", ""), ("  a ", "a"), ("&lt;b&gt;", "<b>"), ("&nbsp;x&nbsp;", "x"), (" \xa0 ", None)],
)
def test_html_unescape_strip(text: str | None, expected: str | None) -> None:
    """Entities are decoded and white space is stripped; an empty result is None."""
    assert helpers.html_unescape_strip(text) == expected


@pytest.mark.parametrize("parse", [helpers.parse_iso8601_date, helpers.parse_rfc2822_date])
def test_dates(parse: object) -> None:
    """Both functions parse any date, return None for other text, and raise without text."""
    assert callable(parse)
    assert parse("2024-05-08").isoformat() == "2024-05-08T00:00:00"
    assert parse("Wed, 08 May 2024 10:00:00 GMT").isoformat() == "2024-05-08T10:00:00+00:00"
    assert parse("garbage") is None
    for empty in ("", None):
        with pytest.raises(SitemapException, match="unset"):
            parse(empty)


def test_gunzip() -> None:
    """Undamaged gzip data up to the limit is inflated; anything else raises."""
    packed = gzip.compress(b"0123456789")
    assert helpers.gunzip(packed) == b"0123456789"
    assert helpers.gunzip(packed + gzip.compress(b"ab"), max_output_bytes=12) == b"0123456789ab"
    assert helpers.gunzip(packed, max_output_bytes=10) == b"0123456789"
    for data, limit in [
        (packed, 9),
        (packed + packed, 10),
        (packed[:-4], None),
        (b"", None),
        (b"abc", None),
        (packed + b"junk", None),
        (None, None),
        ("abc", None),
    ]:
        with pytest.raises(GunzipException):
            helpers.gunzip(data, limit)  # type: ignore[arg-type]


@pytest.mark.slow
def test_gunzip_is_bounded() -> None:
    """A bomb raises as soon as it passes the limit."""
    with pytest.raises(GunzipException, match="1000"):
        helpers.gunzip(gzip.compress(b"\0" * 100_000_000), max_output_bytes=1_000)


def test_ungzipped_response_content() -> None:
    """The text of a response is inflated and decoded."""
    for data in ("é".encode(), gzip.compress("é".encode()), "é".encode("utf-16")):
        assert helpers.ungzipped_response_content("http://h/s.xml.gz", FakeResponse(data, "http://h/")) == "é"
    assert helpers.ungzipped_response_content("http://h/", FakeResponse(b"abc", "http://h/"), 2) == "ab"


def test_get_url_retry_on_client_errors() -> None:
    """A URL is tried as often as `retry_count` says."""
    client = FakeClient(lambda url: WebClientErrorResponse("503 Busy", retryable=True))
    response = helpers.get_url_retry_on_client_errors("http://h/", client, retry_count=3, sleep_between_retries=0)
    assert isinstance(response, WebClientErrorResponse)
    assert len(client.asked) == 3
    with pytest.raises(SitemapException, match="once at least"):
        helpers.get_url_retry_on_client_errors("http://h/", client, retry_count=0)
