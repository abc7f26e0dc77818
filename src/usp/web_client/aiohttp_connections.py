"""The connections of the aiohttp client: only to addresses that the policy allows.

The addresses of a host are checked when they are looked up, each one again when a socket is made for it, which is also
where those in URLs pass, and the other end of a connection before each request that uses it.
"""

from __future__ import annotations

import errno
import socket
from contextvars import ContextVar
from functools import partial
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from usp.web_client.lookups import Resolver, looked_up_aside
from usp.web_client.policy import RefusedError, RequestPolicy

__all__ = ["CURRENT", "CheckedConnector", "CheckedResolver", "Hop", "checked_socket"]


_MAX_INTERIM_ANSWERS = 100


class Hop:
    """One request as the connections see it."""

    __slots__ = ("host", "is_new", "is_proxied", "policy", "refused")

    def __init__(self, policy: RequestPolicy) -> None:
        self.policy = policy
        self.host = ""
        self.is_proxied = False
        self.is_new = False  # whether a connection was to be made for it
        #: Why there was no connection, if the policy is the reason.
        self.refused: RefusedError | None = None

    def check(self, address: str) -> None:
        """Raise `RefusedError` if an address may not be connected to."""
        if not self.is_proxied:
            try:
                self.policy.check_peer(self.host, address)
            except RefusedError as refused:
                self.refused = refused
                raise


CURRENT: ContextVar[Hop] = ContextVar("usp hop")


class _Handler(ResponseHandler):
    """What receives the answers. A body that cannot be read on ends there; aiohttp would wait forever for more."""

    _interim_answers = 0

    def feed_data(self, data: Any, *args: Any) -> None:
        """Take an answer in, which is kept to a number if it is an interim one."""
        status = data[0].code
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            self.force_close()  # whatever follows, it is not the answer to another request
        is_flood = self._interim_answers > _MAX_INTERIM_ANSWERS  # then nothing that follows counts
        self._interim_answers = self._interim_answers + 1 if status < HTTPStatus.OK or is_flood else 0
        if self._interim_answers <= _MAX_INTERIM_ANSWERS:
            super().feed_data(data, *args)
        elif self._interim_answers == _MAX_INTERIM_ANSWERS + 1:
            self.set_exception(HttpProcessingError(message=f"more than {_MAX_INTERIM_ANSWERS} interim answers"))
            if self.transport is not None:
                self.transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection was closed, by the other side or after nonsense from there."""
        body = getattr(self, "_payload", None)
        super().connection_lost(exc)
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("the body is not complete"))


class CheckedConnector(aiohttp.TCPConnector):
    """Connections that are checked before each request: those that were kept may stem from another tree."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        handler: type[ResponseHandler] = _Handler
        self._factory = partial(handler, loop=self._loop)

    async def connect(self, req: Any, traces: Any, timeout: Any) -> aiohttp.connector.Connection:
        """Take a connection that was kept, or make one."""
        try:
            connection = await super().connect(req, traces, timeout)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._conns:
                raise
            self._close_kept(0)
            connection = await super().connect(req, traces, timeout)
        peer = connection.transport.get_extra_info("peername") if connection.transport is not None else None
        try:
            if peer:
                CURRENT.get().check(peer[0])
        except RefusedError:
            connection.close()
            raise
        return connection

    async def _create_connection(self, *arguments: Any, **options: Any) -> ResponseHandler:
        CURRENT.get().is_new = True
        return await super()._create_connection(*arguments, **options)

    def _release(self, *arguments: Any, **options: Any) -> None:
        """Keep a connection that is not used any more, and close the oldest that are kept where there are too many.

        The limit of aiohttp counts those in use only: a client that goes from site to site would run out of files.
        """
        super()._release(*arguments, **options)
        self._close_kept(self.limit)

    def _close_kept(self, most: int) -> None:
        """Leave the kept connections of so many hosts at most."""
        while len(self._conns) > most:
            for handler, _ in self._conns.pop(next(iter(self._conns))):
                handler.close()


def checked_socket(info: Any) -> socket.socket:
    """A socket for an address that is about to be connected to, whether it was looked up or stands in a URL."""
    family, kind, protocol, _, address = info
    CURRENT.get().check(address[0])
    return socket.socket(family, kind, protocol)


class CheckedResolver(AbstractResolver):
    """Gives those addresses of a host that the policy allows."""

    def __init__(self, resolve: Resolver | None) -> None:
        self._resolve = resolve

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Look up a host."""
        hop = CURRENT.get()
        resolve = self._resolve or partial(socket.getaddrinfo, family=family, type=socket.SOCK_STREAM)
        found = await looked_up_aside(resolve, host, port)
        addresses = [_with_scope(info[4]) for info in found]
        if not hop.is_proxied:
            try:
                addresses = hop.policy.allowed_addresses(host, addresses)
            except RefusedError as refused:
                hop.refused = refused
                raise
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no addresses")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=socket.AF_UNSPEC, proto=0, flags=socket.AI_NUMERICHOST
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing is kept."""


def _with_scope(address: Any) -> str:
    text = str(address[0])
    return f"{text}%{address[3]}" if len(address) == 4 and address[3] and "%" not in text else text
