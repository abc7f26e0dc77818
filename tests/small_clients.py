"""Two small HTTP clients, as a user would write them: one method each."""

from __future__ import annotations

import asyncio
import http.client
from functools import partial
from urllib.parse import urlsplit

from usp.web_client.http_client import (
    AbstractAsyncHTTPClient,
    AbstractHTTPClient,
    AsyncHTTPAnswer,
    HTTPAnswer,
    HTTPRequest,
)


class SmallClient(AbstractHTTPClient):
    """A client on http.client. It declares nothing: neither that it checks addresses, nor that it keeps deadlines."""

    def send(self, request: HTTPRequest) -> HTTPAnswer:
        parts = urlsplit(request.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.netloc, timeout=request.seconds_left())
        try:
            connection.request("GET", parts._replace(scheme="", netloc="").geturl(), headers=request.headers)
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        read = partial(response.read1, 65_536)
        return HTTPAnswer(request.url, response.status, response.reason, response.getheaders(), read, connection.close)


class SmallAsyncClient(AbstractAsyncHTTPClient):
    """A client on streams of asyncio, which speaks HTTP/1.0 only."""

    async def send(self, request: HTTPRequest) -> AsyncHTTPAnswer:
        parts = urlsplit(request.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=65_536)
        headers = {"Host": parts.netloc} | request.headers
        lines = [f"GET {parts._replace(scheme='', netloc='').geturl()} HTTP/1.0"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        try:
            _, status, reason = (await reader.readline()).decode("latin-1").split(maxsplit=2)
            pairs = []
            while line := (await reader.readline()).decode("latin-1").strip():
                name, _, value = line.partition(":")
                pairs.append((name, value.strip()))
        except BaseException:
            writer.close()
            raise
        read = partial(reader.read, 65_536)
        return AsyncHTTPAnswer(request.url, int(status), reason.strip(), pairs, read, writer.close)
