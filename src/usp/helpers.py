"""Helper functions of ultimate-sitemap-parser, under their old names. Nothing inside usp imports this module."""

from __future__ import annotations

import html
import zlib
from collections.abc import Iterable
from datetime import datetime

from usp.documents import Document
from usp.drivers.fetch import get_with_retries
from usp.exceptions import GunzipException, SitemapException
from usp.fetch_parse.fetcher import RecurseCallbackType, RecurseListCallbackType
from usp.inflate import GZIP_MAGIC
from usp.objects.problem import ProblemLog
from usp.scan.dates import parse_date
from usp.scan.encodings import to_utf8
from usp.scan.urls import is_http_url, strip_url_to_homepage
from usp.web_client.abstract_client import (
    AbstractWebClient,
    AbstractWebClientResponse,
    AbstractWebClientSuccessResponse,
)

__all__ = [
    "RecurseCallbackType",
    "RecurseListCallbackType",
    "get_url_retry_on_client_errors",
    "gunzip",
    "html_unescape_strip",
    "is_http_url",
    "parse_iso8601_date",
    "parse_rfc2822_date",
    "strip_url_to_homepage",
    "ungzipped_response_content",
]


def html_unescape_strip(string: str | None) -> str | None:
    """Decode HTML entities and strip white space. Return None if nothing remains."""
    if not string:
        return string
    return html.unescape(string).strip() or None


def parse_iso8601_date(date_string: str) -> datetime | None:
    """Parse a date in any form. Return None if the text is not a date.

    :raises SitemapException: if the text is empty.
    """
    if not date_string:
        raise SitemapException("Date string is unset.")
    return parse_date(date_string)


def parse_rfc2822_date(date_string: str) -> datetime | None:
    """Parse a date in any form, as `parse_iso8601_date` does."""
    return parse_iso8601_date(date_string)


def get_url_retry_on_client_errors(
    url: str,
    web_client: AbstractWebClient,
    retry_count: int = 5,
    sleep_between_retries: int = 1,
    quiet_404: bool = False,
) -> AbstractWebClientResponse:
    """Fetch a URL with a client, in at most `retry_count` attempts."""
    return get_with_retries(
        url, web_client, tries=retry_count, seconds_between=sleep_between_retries, quiet_404=quiet_404
    )


def gunzip(data: bytes, max_output_bytes: int | None = None) -> bytes:
    """Gunzip data.

    :raises GunzipException: if the data is truncated, damaged, not gzip, or longer than the limit.
    """
    if not isinstance(data, bytes):
        raise GunzipException(f"Data is not bytes but {type(data).__name__}.")
    if not data.startswith(GZIP_MAGIC):
        raise GunzipException("Unable to gunzip data: it is empty or not gzip.")
    inflated = bytearray()
    rest = data
    while rest.rstrip(b"\0"):
        inflater = zlib.decompressobj(31)
        left = 0 if max_output_bytes is None else max_output_bytes - len(inflated) + 1
        if left < 0:
            break
        try:
            inflated += inflater.decompress(rest, left)
        except zlib.error as error:
            raise GunzipException(f"Unable to gunzip data: {error}") from error
        if max_output_bytes is not None and len(inflated) > max_output_bytes:
            break
        if not inflater.eof:
            raise GunzipException("Unable to gunzip data: it is cut off.")
        rest = inflater.unused_data
    if max_output_bytes is not None and len(inflated) > max_output_bytes:
        raise GunzipException(f"Unable to gunzip data: it is longer than {max_output_bytes} bytes.")
    return bytes(inflated)


def ungzipped_response_content(
    url: str, response: AbstractWebClientSuccessResponse, max_uncompressed_bytes: int | None = None
) -> str:
    """Return the text of a response, inflated if it is compressed."""
    document = Document(url, response.raw_data(), response.header("Content-Type"))
    pieces: Iterable[bytes] = to_utf8(document.pieces(lambda code: None), document.charset, ProblemLog(url))
    return b"".join(pieces)[:max_uncompressed_bytes].decode("utf-8", "replace")
