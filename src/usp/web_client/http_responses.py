"""Successful responses that keep their body as it was transferred, in memory or in the store of a tree."""

from __future__ import annotations

import re
from http import HTTPStatus

from usp.bodies import ArrivingBody
from usp.inflate import transport_decoded
from usp.web_client.abstract_client import AbstractWebClientSuccessResponse
from usp.web_client.failures import status_line
from usp.web_client.framing import is_whole_range
from usp.web_client.http_messages import Answer

__all__ = ["HTTPSuccessResponse", "TransferredResponse"]

_LENGTH = re.compile(r"[0-9]{1,18}")


class TransferredResponse(AbstractWebClientSuccessResponse):
    """A success that keeps its body as it was transferred, and inflates it only for `raw_data()`.

    In a tree, the body goes to the tree's store while it arrives. It is inflated by what it is, not by what the headers
    say: a server may announce gzip and send plain text.
    """

    def __init__(self, max_response_data_length: int | None) -> None:
        self._max_bytes = max_response_data_length
        self._received = ArrivingBody()
        self._beyond = b""  # the rest of the piece that crossed the limit, to inflate what is before it
        self._has_ended = False
        self._encoded: bytes | None = None
        self._data: bytes | None = None
        self._problems: list[str] = []
        self._discarded = 0  # bytes of the answers before this one

    def raw_data(self) -> bytes:
        """Return the body without its transport encoding, at most as long as the limit."""
        if self._data is None:
            encoding = self.header("Content-Encoding") or ""
            encoded = self._body() + self._beyond
            self._data = transport_decoded(encoded, encoding, self._max_bytes, self._problems.append)
        return self._data

    def encoded_data(self) -> bytes | None:
        """Return the body as it was transferred, at most as long as the limit."""
        if type(self).raw_data is not TransferredResponse.raw_data:
            return None  # a subclass returns another body
        return self._body()

    def stored_body(self) -> ArrivingBody | None:
        """Return the body in the tree's store; None outside of a tree, and if a subclass returns another body."""
        own, base = type(self), TransferredResponse
        is_ours = own.raw_data is base.raw_data and own.encoded_data is base.encoded_data
        return self._received if is_ours and self._has_ended and self._received.is_stored else None

    def discarded_bytes(self) -> int:
        """Return how many bytes of other answers, such as redirects, came before this one."""
        return self._discarded

    def transport_problems(self) -> tuple[str, ...]:
        """Return codes of problems with the body's length and, once it is removed, with its transport encoding."""
        return tuple(dict.fromkeys(self._problems))

    def _body(self) -> bytes:
        """Return the body as it was transferred."""
        if self._encoded is None:
            self._encoded = self._received.data()
        return self._encoded

    def _receive(self, piece: bytes) -> bool:
        """Keep a piece of the body. Return False once there is more than a limit, of the body or of the tree."""
        left = len(piece) if self._max_bytes is None else self._max_bytes - self._received.size
        is_within = self._received.append(piece if len(piece) <= left else piece[:left])
        if is_within and len(piece) <= left:
            return True
        self._beyond = piece[left:]
        self._problems.append("T804")
        return False

    def _end(self) -> int:
        """End the body, and return its length."""
        self._has_ended = True
        size = self._received.size
        if self.status_code() == HTTPStatus.PARTIAL_CONTENT and not is_whole_range(self.header("Content-Range"), size):
            self._problems.append("T805")  # nobody has asked for a part
        return size

    def _give_up(self) -> int:
        """Keep the part of the body that has arrived before the transfer broke off, and return its length."""
        self._problems.append("T805")
        return self._end()

    def _check(self) -> None:
        """Raise an error if what was received, up to the end of the transfer, cannot be the whole body."""


class HTTPSuccessResponse(TransferredResponse):
    """The success of a client that has no class of its own for it."""

    def __init__(self, answer: Answer, url: str, max_response_data_length: int | None) -> None:
        super().__init__(max_response_data_length)
        self._answer = answer
        self._url = url

    def status_code(self) -> int:
        """Return the HTTP status."""
        return self._answer.status

    def status_message(self) -> str:
        """Return the server's words for the status, or the standard ones."""
        return status_line(self._answer.status, self._answer.reason).partition(" ")[2]

    def header(self, case_insensitive_name: str) -> str | None:
        """Return the value of a header."""
        return self._answer.header(case_insensitive_name)

    def url(self) -> str:
        """Return the URL after redirects."""
        return self._url

    def _check(self) -> None:
        """Raise an error if the body is shorter than announced: not every library notices."""
        length = self.header("Content-Length") or ""
        is_announced = _LENGTH.fullmatch(length) and self.header("Transfer-Encoding") is None
        if is_announced and self.status_code() != HTTPStatus.NO_CONTENT and self._received.size < int(length):
            raise ConnectionResetError("the body is shorter than announced")
