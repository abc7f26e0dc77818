"""The connections of the asyncio client, in one event loop: opened to allowed addresses only, kept for later requests.

A connection carries one request at a time. Its answer belongs to that request alone, so what is left of a body in
memory never mixes with the answer to the next one. Only public names of asyncio are used.
"""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

import aiohappyeyeballs

from usp.origins import Origin
from usp.web_client.answer_parser import AnswerHead, AnswerParser
from usp.web_client.failures import TimedOutError
from usp.web_client.http_messages import AsyncHTTPAnswer
from usp.web_client.lookups import AddressInfo, Resolver, is_address, look_up_async, system_lookup
from usp.web_client.policy import RequestPolicy
from usp.web_client.settings import DRAIN_SECONDS, PIECE_BYTES

__all__ = ["AsyncioAnswer", "Connections", "is_readable"]

_KEPT_SECONDS = 15.0  # how long an idle connection stays open
_SECOND_ADDRESS_SECONDS = 0.25  # after which the next address of a host is tried, too: RFC 8305
_MAX_UNREAD = 4 * PIECE_BYTES  # of a body; then the connection is read no further
_MAX_RECORD_BYTES = 1 << 15  # more than any record of TLS has
_TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)


class AsyncioAnswer(AsyncHTTPAnswer):
    """The answer to one request, while it arrives."""

    def __init__(self, connection: _Connection) -> None:
        self.url = ""  # nothing here follows redirects, so it needs no check
        self.discarded = 0
        self._connection = connection
        self._parser = AnswerParser()
        self._pieces: list[bytes] = []
        self._unread = 0  # bytes of the pieces
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    # What the connection calls

    def receive(self, data: bytes) -> None:
        """Take some bytes that have arrived."""
        parser = self._parser
        piece = parser.receive(data)
        if piece:
            self._pieces.append(piece)
            self._unread += len(piece)
        if parser.error is not None:
            self.fail(parser.error)
        elif parser.has_ended:
            self._connection.end_answer(parser.can_reuse)
        elif self._unread > _MAX_UNREAD:
            self._connection.pause()
        self._wake()

    def receive_end(self, error: Exception | None) -> None:
        """Note that the connection has ended, with an error or as it should."""
        parser = self._parser
        if error is None or parser.has_ended:
            parser.receive_end()
            error = parser.error
        if error is not None:
            self.fail(error)  # even a body without a length is not complete if the connection broke
        else:
            self._connection.end_answer(False)
            self._wake()

    def fail(self, error: Exception) -> None:
        """End the answer with an error."""
        self._error = error
        self._connection.end_answer(False)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = self._connection.loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # What the client calls

    @property
    def has_begun(self) -> bool:
        """Whether anything of it has arrived."""
        return self._connection.last_data_at > 0

    async def arrived(self) -> None:
        """Wait until the head has arrived."""
        while self._parser.head is None:
            if self._error is not None:
                raise self._error
            await self._wait()
        self.status = self._head.status
        self.reason = self._head.reason

    @property
    def _head(self) -> AnswerHead:
        assert self._parser.head is not None
        return self._parser.head

    def values(self, name: str) -> list[str]:
        """Return all values of a header."""
        return self._head.values(name.lower())

    def all_headers(self) -> list[tuple[str, str]]:
        """Return all headers in their order, with their names as written."""
        return self._head.headers

    async def read(self) -> bytes:
        """Return what has arrived of the body, or wait for more; empty at its end."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._parser.has_ended:
                return b""
            await self._wait()
        pieces, self._pieces, self._unread = self._pieces, [], 0
        self._connection.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def unread(self) -> Iterable[bytes]:
        """Return what has arrived of the body but was not read."""
        return self._pieces

    async def discard(self) -> None:
        """Read a small body, to reuse its connection; leave one that is large, endless or slow."""
        if self._parser.may_be_short(PIECE_BYTES):
            with suppress(Exception):
                async with asyncio.timeout(DRAIN_SECONDS):
                    while self.discarded <= PIECE_BYTES and (piece := await self.read()):
                        self.discarded += len(piece)

    def close(self) -> None:
        """End the connection, unless the answer is complete."""
        if not self._parser.has_ended:
            self._connection.close()
            # An error that was raised refers back to this answer, and would keep it until the next garbage collection.
            self._parser.error = None
            self._error = ConnectionAbortedError(errno.ECONNABORTED, "the answer was closed")


class _Connection(asyncio.BufferedProtocol):
    """One connection to an origin. It belongs to `Connections`, or to the answer that it receives."""

    def __init__(self, pool: Connections, origin: Origin) -> None:
        self.loop = pool.loop
        self.origin = origin
        self.peer = ""  # the address at its other end
        self.idle_since = 0.0
        self.last_data_at = 0.0  # by the loop's clock; 0 if nothing has arrived since the request was sent
        self._sent_at = 0.0  # 0 before the first request
        self._early = b""  # what has arrived before the first request
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._answer: AsyncioAnswer | None = None
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, request: bytes) -> AsyncioAnswer:
        """Send a request, and return its answer, which has not arrived yet."""
        answer = self._answer = AsyncioAnswer(self)
        self.last_data_at = 0.0
        self._sent_at = self.loop.time()
        if self._timer is None and self._pool.read_seconds is not None:
            self._timer = self.loop.call_later(self._pool.read_seconds, self._look_at_clock)
        has_ended = self._transport is None
        if self._transport is not None:
            self._transport.write(request)
        if self._early:
            answer.receive(self._early)
            self._early = b""
        if has_ended:
            answer.receive_end(None)
        return answer

    def end_answer(self, can_reuse: bool) -> None:
        """Note that the answer is complete, or has failed."""
        if self._answer is not None:
            self._answer = None
            if not can_reuse or self._transport is None:
                self.close()
            self.resume()
            self._pool.give_back(self)

    def pause(self) -> None:
        """Read no further until `resume`.

        Not with the TLS of other event loops: that of uvloop drops what it holds when the other side closes meanwhile.
        There is little to gain, as answers are read as soon as the event loop gets to it.
        """
        if self.origin[0] == "https" and not isinstance(self._transport, asyncio.Transport):
            return
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self.last_data_at = self.loop.time()  # nobody was to blame for the silence
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection at once. An answer that it was receiving has failed."""
        transport, self._transport = self._transport, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if transport is not None:
            transport.abort()  # close() may wait for the other side to take part
        if self._answer is not None:
            self._answer.fail(ConnectionAbortedError(errno.ECONNABORTED, "the connection was closed"))

    @property
    def is_open(self) -> bool:
        """Whether nobody has closed it yet, as far as the event loop knows."""
        return self._transport is not None and not self._transport.is_closing()

    def can_be_used(self) -> bool:
        """Return whether another request can use it. One with unread bytes cannot: they answer no request."""
        if self._transport is None or self._transport.is_closing():
            return False
        file = self._transport.get_extra_info("socket")
        return file is None or not is_readable(file.fileno())

    def _look_at_clock(self) -> None:
        """End the answer if nothing has arrived for too long; else look again when that may be so."""
        self._timer = None
        seconds = self._pool.read_seconds
        if seconds is None or self._answer is None:
            return  # the next request starts the timer
        latest = max(self.last_data_at, self._sent_at)
        left = latest + seconds - self.loop.time()
        if left > 0 or self._is_paused:
            self._timer = self.loop.call_later(max(left, seconds if self._is_paused else 0.0), self._look_at_clock)
        else:
            self._answer.fail(TimedOutError(seconds))

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Receive the transport."""
        self._transport = cast("asyncio.Transport", transport)  # those of uvloop have no such class

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to put what arrives. All connections share it: what is in it is taken at once.

        With TLS, the hint is how many bytes have been received, at most some 100 KB. There must be room for them all,
        decrypted, and for one record that was begun: asyncio drops the rest when the other side closes the connection.
        """
        if sizehint > len(self._pool.buffer) - _MAX_RECORD_BYTES:
            self._pool.buffer = memoryview(bytearray(sizehint + _MAX_RECORD_BYTES))
        return self._pool.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Receive what has arrived. Bytes that nobody has asked for end the connection."""
        data = bytes(self._pool.buffer[:nbytes])
        if self._answer is not None:
            self.last_data_at = self.loop.time()
            self._answer.receive(data)
        elif not self._sent_at:  # with TLS, they may come together with the end of the handshake
            self._early += data
        else:
            self._pool.drop(self)

    def eof_received(self) -> None:
        """End the connection: nothing more will arrive."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection has ended."""
        self._transport = None
        if self._answer is not None:
            self._answer.receive_end(exc)
        else:
            self._pool.drop(self)


class Connections:
    """The connections of a client in one event loop. At most `most` are in use, and at most as many are kept."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: ssl.SSLContext,
        *,
        most: int,
        connect_seconds: float | None,
        read_seconds: float | None,
        resolve: Resolver | None,
    ) -> None:
        self.loop = loop
        self.read_seconds = read_seconds
        self.buffer = memoryview(bytearray(PIECE_BYTES))
        self._context = context
        self._most = most
        self.is_closed = False
        self._places = asyncio.Semaphore(most)
        self._connect_seconds = connect_seconds
        self._resolve = resolve or system_lookup
        self._in_use: set[_Connection] = set()
        self._idle: dict[str, list[_Connection]] = {}  # by host, the one that was used longest ago first
        self._idle_count = 0
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, origin: Origin, policy: RequestPolicy, *, is_new: bool = False) -> tuple[_Connection, bool]:
        """Return a connection to an origin that the policy allows, and whether it was open before."""
        await self._places.acquire()
        try:
            kept = None if is_new else self._kept(origin)
            connection = kept or await self._opened(origin, policy)
            try:
                policy.check_peer(origin[1], connection.peer)
            except BaseException:
                connection.close()
                raise
        except BaseException:
            self._places.release()
            raise
        self._in_use.add(connection)
        return connection, kept is not None

    def give_back(self, connection: _Connection) -> None:
        """Keep a connection that is no longer in use, if it is open."""
        if connection not in self._in_use:
            return
        self._in_use.discard(connection)
        self._places.release()
        if connection.is_open and not self.is_closed:
            connection.idle_since = self.loop.time()
            self._idle.setdefault(connection.origin[1], []).append(connection)
            self._idle_count += 1
            if self._idle_count > self._most:
                self._close_oldest()
            if self._timer is None:
                self._timer = self.loop.call_later(_KEPT_SECONDS, self._close_old)
        else:
            connection.close()

    def drop(self, connection: _Connection) -> None:
        """Close an idle connection, and forget it."""
        idle = self._idle.get(connection.origin[1])
        if idle is not None and connection in idle:
            idle.remove(connection)
            self._idle_count -= 1
            if not idle:
                del self._idle[connection.origin[1]]
        connection.close()

    def close_idle(self, host: str) -> None:
        """Close the idle connections to a host."""
        for connection in self._idle.pop(host, ()):
            self._idle_count -= 1
            connection.close()

    async def close(self) -> None:
        """Close all connections, and keep none from now on."""
        if self.is_closed:
            return
        self.is_closed = True
        for host in list(self._idle):
            self.close_idle(host)
        for connection in list(self._in_use):
            connection.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.sleep(0)  # a transport closes its file in the next step of the loop

    def _kept(self, origin: Origin) -> _Connection | None:
        """Return an idle connection to an origin, the one that was used last; None if there is none that is open."""
        idle = self._idle.get(origin[1], ())
        for connection in [connection for connection in reversed(idle) if connection.origin == origin]:
            idle.remove(connection)  # type: ignore[union-attr]  # a tuple has no connection
            self._idle_count -= 1
            if not idle:
                del self._idle[origin[1]]
            if connection.can_be_used():
                return connection
            connection.close()
        return None

    def _close_oldest(self) -> None:
        """Close the idle connections of the host that was put here first."""
        self.close_idle(next(iter(self._idle)))

    def _close_old(self) -> None:
        """Close connections that have been idle for long, and look again later if others are left."""
        self._timer = None
        latest = self.loop.time() - _KEPT_SECONDS
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            if connection.idle_since <= latest:
                self.drop(connection)
        if self._idle:
            self._timer = self.loop.call_later(_KEPT_SECONDS / 2, self._close_old)

    async def _opened(self, origin: Origin, policy: RequestPolicy) -> _Connection:
        """Return a new connection to an origin."""
        _, host, port = origin
        found = _literal(host, port) if is_address(host) else await look_up_async(self._resolve, host, port)
        by_address = {_with_scope(info[4]): info for info in found}
        addresses = policy.allowed_addresses(host, by_address)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no addresses")
        infos = [by_address[address] for address in addresses]
        try:
            async with asyncio.timeout(self._connect_seconds) as scope:
                return await self._connected(origin, infos)
        except TimeoutError:
            if scope.expired():
                raise TimedOutError(self._connect_seconds) from None
            raise

    async def _connected(self, origin: Origin, infos: Sequence[AddressInfo]) -> _Connection:
        try:
            opened = await self._socket(infos)
        except OSError as error:
            if error.errno not in _TOO_MANY_FILES or not self._idle:
                raise
            for host in list(self._idle):
                self.close_idle(host)
            await asyncio.sleep(0)  # a transport closes its file in the next step of the loop
            opened = await self._socket(infos)
        try:
            peer = str(opened.getpeername()[0])
        except OSError:  # it has been reset already
            opened.close()
            raise
        options: dict[str, Any] = {}
        if origin[0] == "https":
            options = {"ssl": self._context, "server_hostname": origin[1]}
        _, connection = await self.loop.create_connection(lambda: _Connection(self, origin), sock=opened, **options)
        connection.peer = peer
        return connection

    async def _socket(self, infos: Sequence[AddressInfo]) -> socket.socket:
        """Return a socket that is connected to one of these addresses."""
        if len(infos) > 1:
            return await aiohappyeyeballs.start_connection(
                [(info[0], info[1], info[2], info[3], info[4]) for info in infos],
                happy_eyeballs_delay=_SECOND_ADDRESS_SECONDS,
                interleave=1,
                loop=self.loop,
            )
        ((family, kind, protocol, _, address),) = infos
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setblocking(False)
            await self.loop.sock_connect(opened, address)
        except BaseException:
            opened.close()
            raise
        return opened


def _literal(host: str, port: int) -> list[AddressInfo]:
    """Return what a lookup finds for an address."""
    if ":" in host:
        return [(socket.AF_INET6, socket.SOCK_STREAM, 0, "", (host, port, 0, 0))]
    return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]


def _with_scope(address: Any) -> str:
    text = str(address[0])
    return f"{text}%{address[3]}" if len(address) == 4 and address[3] and "%" not in text else text


def is_readable(file: int) -> bool:
    """Return whether bytes, or the end of a connection, wait to be read."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([file], [], [], 0)[0])
