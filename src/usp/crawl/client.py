"""The web client of one site in a crawl: it asks only for what may have changed, and notes every exchange.

A request for a document that an earlier run has is conditional: it has the ETag and the date of that document. If the
server answers 304, or usp need not ask at all, the earlier document is the answer. The limits of all sites apply.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Protocol

from usp.crawl.bodies import StoredResponse
from usp.crawl.hosts import SharedLimits
from usp.crawl.records import cache_seconds
from usp.crawl.schema import State
from usp.crawl.state import KnownSite, Row
from usp.objects.dates import aware
from usp.origins import requested_url
from usp.web_client.abstract_client import (
    AbstractAsyncWebClient,
    AbstractWebClientResponse,
    WebClientErrorResponse,
)
from usp.web_client.exchanges import Exchange, observing
from usp.web_client.http_dates import http_date

__all__ = ["Bodies", "Reuse", "SiteClient"]


class Bodies(Protocol):
    """Reads the bodies of earlier documents."""

    def has(self, known: Row, /) -> bool:
        """Return whether a body is there, as far as that is known without reading it."""

    async def read(self, known: Row, /) -> bytes | None:
        """Return a body; None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """When to use an earlier document again without asking the server.

    :param max_age: the age in seconds up to which to use a document that the server calls fresh; 0 always asks.
    :param trust_lastmod: whether to use a document if its date in the index is the same as before.
    """

    max_age: float = 0.0
    trust_lastmod: bool = False


#: What a client makes of the answer to a request, or what it raises, and the last exchange.
_Answer = tuple[AbstractWebClientResponse | Exception, Exchange | None]


class SiteClient(AbstractAsyncWebClient):
    """The client of one site. After the tree is fetched, `exchanges` and `reused` say how."""

    def __init__(
        self,
        client: AbstractAsyncWebClient,
        limits: SharedLimits,
        known: KnownSite,
        bodies: Bodies,
        reuse: Reuse,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.reused: dict[str, Row] = {}  # by the URL of the document
        self.confirmed: dict[str, Row] = {}  # the same for documents that the server says have not changed
        self.lost: set[str] = set()  # URLs of earlier documents whose bodies cannot be read
        self.declared: dict[str, datetime | None] = {}  # URLs of sitemaps -> the dates that indexes give them
        self.request_errors = client.request_errors
        self.user_agent: str = getattr(client, "user_agent", "usp")
        self._client = client
        self._limits = limits
        self._known = known
        self._bodies = bodies
        self._reuse = reuse
        self._answers: dict[str, _Answer] = {}  # of requests that `is_unchanged` has made, for `get`

    def limit_response_data_length(self, max_response_data_length: int) -> None:
        """Do nothing: the policy of each tree has its limit, and all sites share the client."""

    async def get(self, url: str) -> AbstractWebClientResponse:
        """Return the document at a URL, from the server or from an earlier run."""
        known = self._whole_document(url)
        if known is not None and self._need_not_ask(url, known) and (earlier := await self._earlier(known)) is not None:
            return earlier
        while True:
            response, answer = self._answers.pop(url) if url in self._answers else await self._asked(url)
            if isinstance(response, Exception):
                raise response
            if answer is None or not _is_not_modified(response):
                return response
            known = self._whole_document(answer.url)
            if known is None or known["url"] in self.lost:
                return response  # nobody has asked for a 304
            if (earlier := await self._earlier(_as_of(known, answer))) is not None:
                return earlier

    async def is_unchanged(self, known: Row, url: str) -> bool:
        """Return whether a server says that an earlier document has not changed.

        Each answer is also kept for `get`. If all documents of a site are unchanged, nobody calls that: then
        `confirmed` has their rows.

        :param url: the URL to request, with a user and password if it needs them.
        """
        started = time.monotonic()
        try:
            response, answer = self._answers[url] = await self._asked(url)
        except Exception as error:
            self._answers[url] = error, None
            return False
        asked = requested_url(known["url"])
        if answer is None or not _is_not_modified(response) or requested_url(answer.url) != asked:
            return False
        self.confirmed[asked] = {**_as_of(known, answer), "seconds": time.monotonic() - started}
        return True

    async def _asked(self, url: str) -> tuple[AbstractWebClientResponse, Exchange | None]:
        """Request a URL. Return what the client makes of the answer, and the last exchange."""
        with observing(self):
            response = await self._client.get(url)
        return response, self.exchanges[-1] if self.exchanges else None

    def _whole_document(self, url: str) -> Row | None:
        """Return the earlier document at a URL. One of which only a part is known must be fetched again."""
        known = self._known.document_at(url)
        return None if known is None or known["state"] == State.CUT else known

    def _need_not_ask(self, url: str, known: Row) -> bool:
        declared = self.declared.get(url)
        if self._reuse.trust_lastmod and declared is not None and aware(declared) == known["last_modified"]:
            return True
        if not self._reuse.max_age or known["fetched_at"] is None or not known["cache_seconds"]:
            return False
        age: float = (datetime.now(UTC) - known["fetched_at"]).total_seconds()
        return 0 <= age < min(self._reuse.max_age, int(known["cache_seconds"]))

    async def _earlier(self, known: Row) -> AbstractWebClientResponse | None:
        """Return an earlier document as the answer; None if its body is lost.

        If the server was not asked, it is as old as before. Else it would seem fresh for ever.
        """
        body = await self._bodies.read(known)
        if body is None:
            self.lost.add(known["url"])
            return None
        self.reused[requested_url(known["url"])] = known
        return StoredResponse(known, body)

    # What the observer of exchanges does

    def headers_for(self, url: str) -> Mapping[str, str]:
        """Return the conditions of a request: none, unless there is the body of an earlier document."""
        known = self._whole_document(url)
        if known is None or requested_url(known["url"]) != requested_url(url) or known["url"] in self.lost:
            return {}
        if not self._bodies.has(known):
            self.lost.add(known["url"])
            return {}
        headers = {}
        if known["etag"]:
            headers["If-None-Match"] = known["etag"]
        if known["http_last_modified"] is not None:
            headers["If-Modified-Since"] = http_date(known["http_last_modified"])
        return headers

    async def start(self, url: str) -> None:
        """Wait until a request may start."""
        await self._limits.start(url)

    def end(self, url: str, answer: Exchange | None) -> None:
        """Count a request as ended."""
        self._limits.end(url, answer)

    def record(self, exchange: Exchange) -> None:
        """Note an exchange."""
        self.exchanges.append(exchange)


def _is_not_modified(response: AbstractWebClientResponse) -> bool:
    return isinstance(response, WebClientErrorResponse) and response.status_code() == HTTPStatus.NOT_MODIFIED


def _as_of(known: Row, answer: Exchange) -> Row:
    """Return the row of an earlier document, as old as the answer that says that it has not changed."""
    fresh = cache_seconds(answer)
    seconds = known["cache_seconds"] if fresh is None else fresh
    return {**known, "fetched_at": answer.answered_at, "cache_seconds": seconds}
