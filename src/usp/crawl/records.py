"""The exchanges of a site as WARC records: what was sent and received, and what did not change.

A document that came with the same bytes as in the run before, or of which the server said that it did not change, is a
revisit record: the body stays where it is. Of requests, only headers are kept that cannot be secret.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import BinaryIO

from usp.crawl.crawled import CrawledSite, Stored
from usp.crawl.state import KnownSite, Row
from usp.origins import requested_url
from usp.warc.messages import request_head, response_head
from usp.warc.writing import Original, Payload, WarcWriter, Written
from usp.web_client.exchanges import Exchange
from usp.web_client.http_dates import read_http_date

__all__ = ["cache_seconds", "write_exchanges"]

#: Headers of requests that are written. The caller's own may be secret.
_SENT = frozenset({"user-agent", "accept", "accept-encoding", "if-none-match", "if-modified-since"})
_SMALL_BYTES = 1 << 16
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*+=\s*+\"?(\d{1,9})", re.IGNORECASE)
_SECONDS = re.compile(r"\d{1,9}", re.ASCII)
_NO_CACHE = re.compile(r"(?:^|[\s,])no-(?:cache|store)(?:[\s,=]|$)", re.IGNORECASE)


def write_exchanges(file: BinaryIO | None, name: str, crawled: CrawledSite) -> dict[str, Stored]:
    """Write the exchanges of a site, and return its documents by their URLs.

    :param file: a WARC file, to append to; None writes nothing.
    :param name: the name of that file.
    """
    writer = None if file is None else WarcWriter(file)
    if writer is not None and not writer.offset:
        writer.info(
            {"conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
            date=crawled.started,
            filename=name,
        )
    stored: dict[str, Stored] = {}
    for exchange in crawled.exchanges:
        if exchange.body is None:
            if writer is not None:
                _write_bodiless(writer, exchange, crawled.known)
            continue
        body = _payload(exchange)
        before = crawled.known.document_at(exchange.url)
        fresh = cache_seconds(exchange)
        is_there = before is not None and before["warc"] and before["url"] not in crawled.lost
        if before is not None and before["digest"] == body.digest and (writer is None or is_there):
            place = (before["warc"], before["warc_offset"], before["warc_length"], before["warc_date"])
            if writer is not None:
                written = writer.revisit(exchange.url, _head(exchange), _original(before), exchange.answered_at)
                _write_request(writer, exchange, written)
        elif writer is not None:
            cut = _truncated(exchange)
            written = writer.response(exchange.url, _head(exchange), body, exchange.answered_at, truncated=cut)
            place = (name, written.offset, written.length, exchange.answered_at)
            _write_request(writer, exchange, written)
        else:
            place = (None, None, None, None)
        stored[requested_url(exchange.url)] = Stored(body.digest, fresh, *place)
    return stored


def _payload(exchange: Exchange) -> Payload:
    """Return the body of an answer for a record. A large one stays where it is, and is read in pieces."""
    body = exchange.body
    assert body is not None
    return Payload(body.data()) if body.size <= _SMALL_BYTES else Payload(pieces=body.finish().pieces)


def _write_bodiless(writer: WarcWriter, exchange: Exchange, known: KnownSite) -> None:
    """Write a redirect, an error, or a 304. Their bodies are not kept."""
    before = known.document_at(exchange.url) if exchange.status == HTTPStatus.NOT_MODIFIED else None
    head, date = _head(exchange), exchange.answered_at
    if before is not None and before["warc"]:
        written = writer.revisit(exchange.url, head, _original(before), date, not_modified=True)
    else:
        is_empty = exchange.header("Content-Length") == "0" or exchange.status == HTTPStatus.NOT_MODIFIED
        written = writer.response(exchange.url, head, Payload(), date, truncated=None if is_empty else "unspecified")
    _write_request(writer, exchange, written)


def _write_request(writer: WarcWriter, exchange: Exchange, answer: Written) -> None:
    _, _, host, path = exchange.url.split("/", 3)  # a URL has all of these where it is requested
    headers = [
        ("Host", host),
        *((name, value) for name, value in exchange.sent.items() if name.lower() in _SENT),
    ]
    head = request_head("GET", f"/{path}", headers)
    writer.request(exchange.url, head, exchange.answered_at, concurrent_to=answer.record_id)


def _head(exchange: Exchange) -> bytes:
    return response_head(exchange.status, exchange.reason, exchange.headers)


def _original(before: Row) -> Original:
    return Original(before["url"], before["warc_date"], before["digest"])


def _truncated(exchange: Exchange) -> str | None:
    """Return why a body is not whole, as WARC names it; None if it is."""
    announced = exchange.header("Content-Length") or ""
    is_short = announced.isdecimal() and exchange.body is not None and exchange.body.size < int(announced)
    return "unspecified" if is_short and exchange.header("Transfer-Encoding") is None else None


def cache_seconds(exchange: Exchange) -> int | None:
    """Return for how many seconds the server says that an answer stays fresh; None if it does not say.

    https://www.rfc-editor.org/rfc/rfc9111#section-4.2.1
    """
    control = ", ".join([value for name, value in exchange.headers if name.lower() == "cache-control"])
    if control and _NO_CACHE.search(control):
        return 0
    if control and (lifetime := _MAX_AGE.search(control)):
        age = exchange.header("Age") or ""  # seconds that it has been in a cache on the way
        return max(int(lifetime[1]) - int(age), 0) if _SECONDS.fullmatch(age) else int(lifetime[1])
    expires = read_http_date(exchange.header("Expires"))
    return None if expires is None else max(int((expires - exchange.answered_at).total_seconds()), 0)
