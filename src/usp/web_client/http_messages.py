"""One request and its answer, as a client's `send` receives and returns them.

They do no I/O by themselves: the functions that read and close an answer are the client's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from usp.web_client.policy import RequestPolicy, seconds_until

__all__ = ["Answer", "AsyncHTTPAnswer", "HTTPAnswer", "HTTPRequest", "header_bytes"]


class HTTPRequest:
    """One GET request to one URL.

    `url` has no user and password; `authorization` is the header for them, which is in `headers` too. Send exactly
    `headers`, and those that HTTP itself needs, such as Host. `addresses` are those that the base has checked; it is
    empty if the client checks addresses itself, or uses a proxy.
    """

    __slots__ = ("addresses", "authorization", "deadline", "headers", "is_home", "policy", "url")

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        policy: RequestPolicy,
        deadline: float,
        *,
        is_home: bool = False,
        authorization: str | None = None,
    ) -> None:
        self.url = url
        self.headers = headers
        self.policy = policy
        #: When the request must end, by `time.monotonic()`.
        self.deadline = deadline
        #: Whether the URL is on the homepage's origin.
        self.is_home = is_home
        self.authorization = authorization
        self.addresses: Sequence[str] = ()

    def seconds_left(self) -> float:
        """Return the seconds until the deadline. Raise `TimeoutError` if none are left."""
        return seconds_until(self.deadline)


class Answer:
    """The URL, status and headers of an answer."""

    #: How many bytes of the body were read and dropped.
    discarded = 0

    def __init__(self, url: str, status: int, reason: str | None, headers: Iterable[tuple[str, str]]) -> None:
        self.url = url
        self.status = status
        self.reason = reason
        self._headers = headers

    def header(self, name: str) -> str | None:
        """Return the value of a header, in any case, or None. Values of repeated headers are joined by commas."""
        values = self.values(name)
        return ", ".join(values) if values else None

    def values(self, name: str) -> list[str]:
        """Return all values of a header, in any case."""
        name = name.lower()
        return [value for other, value in self.all_headers() if other.lower() == name]

    def all_headers(self) -> list[tuple[str, str]]:
        """Return all headers in their order, with their names as written."""
        if not isinstance(self._headers, list):  # it may be an iterator
            self._headers = [*self._headers]
        return self._headers

    def location(self) -> bytes | None:
        """Return the first Location header as bytes, or None."""
        values = self.values("Location")
        return header_bytes(values[0]) if values else None

    def unread(self) -> Iterable[bytes]:
        """Return what has arrived of the body but was not read before the transfer broke off."""
        return ()


def header_bytes(value: str) -> bytes:
    """Return a header as it came: http.client decodes headers as Latin-1, whatever they are."""
    return value.encode("latin-1" if max(value, default="") <= "\xff" else "utf-8")


class HTTPAnswer(Answer):
    """The answer to one request: status, headers as pairs, and a body that has not been read yet.

    `url` is the URL that your library says has answered. If it is on another origin than the request, the library has
    followed a redirect by itself, past all checks, and the base refuses the answer.

    `read` returns the next piece of the body as it was transferred, in any size, and `b""` at its end. The base always
    calls `close` at the end.
    """

    def __init__(
        self,
        url: str,
        status: int,
        reason: str | None,
        headers: Iterable[tuple[str, str]],
        read: Callable[[], bytes],
        close: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(url, status, reason, headers)
        self._read = read
        self._close = close

    def read(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        return self._read()

    def discard(self) -> None:
        """Get rid of the body of an answer that is not a success; read it if that lets you reuse the connection."""

    def close(self) -> None:
        """Close the answer."""
        if self._close is not None:
            self._close()


class AsyncHTTPAnswer(Answer):
    """The same on asyncio: `read` is awaited."""

    def __init__(
        self,
        url: str,
        status: int,
        reason: str | None,
        headers: Iterable[tuple[str, str]],
        read: Callable[[], Awaitable[bytes]],
        close: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(url, status, reason, headers)
        self._read = read
        self._close = close

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at its end."""
        return await self._read()

    async def discard(self) -> None:
        """Get rid of the body of an answer that is not a success; read it if that lets you reuse the connection."""

    def close(self) -> None:
        """Close the answer."""
        if self._close is not None:
            self._close()
