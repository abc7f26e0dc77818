"""Tokens of XML as it is served: start tags, end tags, text.

Reads UTF-8 bytes in pieces of any size and yields the same tokens however they are cut. It has no entity machinery,
follows no reference, and never raises for what a document holds; what it puts right is noted. Comments and processing
instructions are passed over. It knows nothing of sitemaps: `entries` gives the tags their meaning.

A DOCTYPE with an internal subset could declare entities, so such a document is refused: `refused` says why, and the
tokens end there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from usp.objects.problem import ProblemLog
from usp.scan.encodings import decode_field
from usp.scan.entities import Note, unescape

__all__ = ["END_TAG", "START_TAG", "Token", "TokenKind", "Tokenizer", "attributes"]

#: How far the end of a tag is looked for, with its beginning still in memory.
MAX_TAG_BYTES = 1 << 20
#: The same for a comment or a CDATA section.
MAX_SECTION_BYTES = 1 << 23
MAX_ATTRIBUTES = 256
_NOWHERE, _TOO_FAR = -1, -2
_TEXT_BYTES = 1 << 16  # of which there is one token at most
_NEAR_BYTES = 256
_MAX_QUOTED_ENDS = 64  # how many ">" inside quotes a tag may have before it is called malformed

_PLAIN_TAG = re.compile(rb"<(/?)([^\s<>/!?=\"'&]++)\s*+(/?)>")
#: Tags without attributes, and text before them, for where they are only counted.
START_TAG = re.compile(rb"[^<]*+<(?!(?:br|hr|img|input|meta|wbr)>)[A-Za-z_][^\s<>/!?=\"'&]*+>", re.IGNORECASE)
END_TAG = re.compile(rb"[^<]*+</[A-Za-z_][^\s<>/!?=\"'&]*+>")
_LEAF = re.compile(rb"<([A-Za-z_][^\s<>/!?=\"'&]*+)>([^<]*+)</\1\s*>")
_START_TAG = re.compile(rb"<([^\s<>/!?=\"'&]++)((?:[^<>\"']++|\"[^\"<]*\"|'[^'<]*')*+)>")
_DOCTYPE = re.compile(rb"<!doctype(?:[^<>\[\"']++|\"[^\"]*+\"|'[^']*+')*+>", re.IGNORECASE)
_DOCTYPE_BYTES = 4_096
_NAME_START = re.compile(rb"[A-Za-z_:\x80-\xff]")
_TAG_NAME = re.compile(rb"<(/?)([^\s<>/!?=\"'&]*+)")
# The value is optional so that a name without one is passed over whole, not tried again from each of its letters.
_ATTRIBUTE = re.compile(rb"([^\s=\"'<>/]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++)))?+")


class TokenKind(Enum):
    """What a token is."""

    START = auto()  # name, and the raw attributes as data
    EMPTY = auto()  # the same, of a tag that closes itself
    END = auto()  # name
    TEXT = auto()  # a piece of text as data, references and all
    CDATA = auto()  # a piece of text as data, to be taken as it is
    LEAF = auto()  # name, and text as data: a start tag without attributes, text and the end tag, all in one


class Token(NamedTuple):
    """One token. Text may come in several pieces; names are as written.

    `at` is the offset of its data, which for a leaf is the text. A leaf comes as one token or as three, as it happens
    to lie in the pieces. They mean the same.
    """

    kind: TokenKind
    name: bytes
    data: bytes
    at: int = 0


class _Searched:
    """A part of the document, by its offsets, in which something is not; if `found`, it stands right at the end."""

    __slots__ = ("end", "found", "start")

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.found = False


class Tokenizer:
    """The tokens of one document."""

    def __init__(self, chunks: Iterable[bytes], log: ProblemLog) -> None:
        self._chunks = iter(chunks)
        self._log = log
        self._buffer = b""
        self._base = 0  # where in the document the buffer starts
        self._position = 0  # in the buffer
        self._searched: dict[bytes, _Searched] = {}
        self._ended = False
        self._started = b""  # the name of the last start tag
        self._leaf_text = 0  # where the text of the last leaf starts in the buffer
        self.tag_at = 0  # the offset of the last tag
        self.refused: str | None = None

    @property
    def offset(self) -> int:
        """Where in the document the text begins that was not read yet."""
        return self._base + self._position

    @property
    def unread(self) -> tuple[bytes, int]:
        """The buffer, and where in it the text begins that was not read yet. To be used between two tokens."""
        return self._buffer, self._position

    def skip_to(self, position: int) -> None:
        """Go on from here in the buffer."""
        if position != self._position:
            self._position = position
            self._started = b""

    def extend(self) -> bool:
        """Read on until there is twice as much unread text; False if there is no more."""
        pieces = [self._buffer[self._position :]]
        size, needed = 0, len(pieces[0])
        while size <= needed and (chunk := next(self._chunks, None)) is not None:
            pieces.append(chunk)
            size += len(chunk)
        self._go_on_with(b"".join(pieces))  # all at once, as each addition is a copy
        return size > 0

    def start_of_leaf(self, leaf: Token) -> Token:
        """The start tag of the leaf that came last. Its text, and its end tag, come next then."""
        self._position = self._leaf_text
        self._started = leaf.name
        return Token(TokenKind.START, leaf.name, b"", leaf.at)

    def pass_over(self, tags: re.Pattern[bytes], most: int | None = None) -> int:
        """Pass over tags of one sort that follow directly; how many there were."""
        passed = 0
        while passed != most and (tag := tags.match(self._buffer, self._position)):
            self._position = tag.end()
            passed += 1
        return passed

    def rest(self) -> Iterator[bytes]:
        """The text that was not read yet, and some of what was read right before: to cut that off would be a copy."""
        yield self._buffer
        yield from self._chunks

    def __iter__(self) -> Iterator[Token]:
        while self.refused is None:
            position = self._position
            most = position + _TEXT_BYTES
            tag = self._buffer.find(b"<", position, most)
            if tag != position:
                end = self._position = tag if tag > 0 else min(most, len(self._buffer))
                if end > position:
                    yield Token(TokenKind.TEXT, b"", self._buffer[position:end], self._base + position)
                elif not self._refill():
                    return
                continue
            self.tag_at = self._base + tag
            if leaf := _LEAF.match(self._buffer, tag):
                self._position = leaf.end()
                self._leaf_text = leaf.start(2)
                self._started = b""
                yield Token(TokenKind.LEAF, leaf[1], leaf[2], self._base + self._leaf_text)
                continue
            plain = _PLAIN_TAG.match(self._buffer, tag)
            token = self._plain(plain) if plain and _NAME_START.match(plain[2]) else self._markup()
            if token is not None:
                yield token

    def _plain(self, match: re.Match[bytes]) -> Token:
        """A tag without attributes: nearly all of them."""
        self._position = match.end()
        slash, name, empty = match.groups()
        if slash:
            self._started = b""
            return Token(TokenKind.END, name, b"")
        self._started = name
        return Token(TokenKind.EMPTY if empty else TokenKind.START, name, b"")

    def _refill(self) -> bool:
        """Drop what was read, add the next piece; False at the end."""
        if self._ended:
            return False
        chunk = next(self._chunks, None)
        if chunk is None:
            self._ended = True
            return False
        self._go_on_with(self._buffer[self._position :] + chunk)
        return True

    def _go_on_with(self, buffer: bytes) -> None:
        """Take another buffer, which begins with what was not read yet of this one."""
        self._base += self._position
        self._buffer = buffer
        self._position = 0

    def _find(self, what: bytes, offset: int, most: int = MAX_TAG_BYTES) -> int:
        """Where it stands next, counted from the current position; else `_NOWHERE` or `_TOO_FAR`.

        What was searched is remembered, so that no part of a document is searched twice for the same thing.
        """
        here = self._base + self._position
        limit = here + most
        searched = self._searched.get(what)
        if searched is None or not searched.start <= here + offset <= searched.end:
            searched = self._searched[what] = _Searched(here + offset)
        while not searched.found:
            buffered = self._base + len(self._buffer)
            at = self._buffer.find(what, searched.end - self._base, max(limit - self._base, 0))
            if at >= 0:
                searched.end = self._base + at
                searched.found = True
                break
            searched.end = max(searched.end, min(buffered, limit) - len(what) + 1)
            if buffered >= limit:
                return _TOO_FAR
            if not self._refill():
                return _NOWHERE
        return searched.end - here if searched.end + len(what) <= limit else _TOO_FAR

    def _peek(self, size: int) -> bytes:
        while len(self._buffer) - self._position < size and self._refill():
            pass
        return self._buffer[self._position : self._position + size]

    def _markup(self) -> Token | None:
        """What starts with the "<" at the current position; None where it means nothing."""
        ahead = self._peek(9).upper()
        for start, pass_over in _PASSED_OVER.items():
            if ahead.startswith(start):
                pass_over(self)
                return None
        if ahead == b"<![CDATA[":
            return self._cdata()
        if ahead.startswith(b"<!"):
            return self._malformed(self._find(b">", 2))
        if ahead.startswith(b"</") or _NAME_START.match(ahead[1:2]):
            return self._tag()
        self._log.add("X104", self.offset, text=self._peek(40).decode("utf-8", "replace"))
        self._position += 1
        return Token(TokenKind.TEXT, b"", b"<", self.offset - 1)

    def _comment(self) -> None:
        end = self._find(b"-->", 4, MAX_SECTION_BYTES)
        if end < 0:
            self._unclosed(b"<!--", b"-->", end)
        else:
            self._position += end + 3

    def _cdata(self) -> Token | None:
        end = self._find(b"]]>", 9, MAX_SECTION_BYTES)
        if end < 0:
            self._unclosed(b"<![CDATA[", b"]]>", end)
            return None
        is_closed = True
        again = self._find(b"<![CDATA[", 9, MAX_SECTION_BYTES)
        if 0 <= again < end and self._opens_field_again(again):
            # "<loc><![CDATA[a</loc> ... <loc><![CDATA[b]]></loc>": the first was never closed.
            self._log.add("X112", self.offset, text="<![CDATA[")
            end = self._find(b"</", 9)
            is_closed = False
        data = self._buffer[self._position + 9 : self._position + end]
        at = self.offset + 9
        self._position += end + 3 * is_closed
        return Token(TokenKind.CDATA, b"", data, at)

    def _opens_field_again(self, again: int) -> bool:
        """Whether the field that a CDATA section stands in ends, and the same opens right before another section."""
        ends = self._find(b"</", 9)
        stop = self._position + again
        before = self._buffer[max(self._position, stop - _NEAR_BYTES) : stop].rstrip()
        is_ended = self._buffer.startswith(b"</" + self._started + b">", self._position + ends)
        return 0 <= ends < again and is_ended and before.endswith(b"<" + self._started + b">")

    def _unclosed(self, opening: bytes, closing: bytes, end: int) -> None:
        """A section whose end is not near. If it has none, go on inside it; if it is huge, pass over it."""
        self._log.add("X112", self.offset, text=opening.decode())
        if end == _NOWHERE:
            self._position += len(opening)
            return
        while (found := self._buffer.find(closing, self._position)) < 0:
            self._position = max(self._position, len(self._buffer) - len(closing) + 1)
            if not self._refill():
                self._position = len(self._buffer)
                return
        self._position = found + len(closing)

    def _doctype(self) -> None:
        self._peek(_DOCTYPE_BYTES)
        doctype = _DOCTYPE.match(self._buffer, self._position)
        if doctype is None:
            self.refused = "its DOCTYPE declares entities of its own, which is refused for safety"
            return
        self._log.add("X110", self.offset)
        self._position = doctype.end()

    def _instruction(self) -> None:
        """`<?xml ...?>`. Some forget the second question mark: then it ends at the first ">"."""
        end = self._find(b">", 2)
        if end < 0:
            self._unclosed(b"<?", b"?>", end)
            return
        if self._buffer[self._position + end - 1] != ord("?"):
            proper, tag = self._find(b"?>", end), self._find(b"<", end)
            if 0 <= proper < tag or (proper >= 0 > tag):
                end = proper + 1
            else:
                self._log.add("X112", self.offset, text="<?")
        self._position += end + 1

    def _tag(self) -> Token | None:
        """A tag with attributes, or a malformed one."""
        end = self._find(b">", 1)
        for _ in range(_MAX_QUOTED_ENDS):
            if end < 0:
                break
            start, stop = self._position, self._position + end + 1
            if match := _PLAIN_TAG.fullmatch(self._buffer, start, stop):
                return self._plain(match)
            if match := _START_TAG.fullmatch(self._buffer, start, stop):
                self._position = stop
                name, raw = match.groups()
                self._started = name
                if raw.endswith(b"/"):
                    return Token(TokenKind.EMPTY, name, raw[:-1])
                return Token(TokenKind.START, name, raw)
            if self._buffer.find(b"<", start + 1, stop) >= 0:
                break
            end = self._find(b">", end + 1)  # this one may stand inside quotes
        return self._malformed(self._find(b">", 1))

    def _malformed(self, end: int) -> Token | None:
        """A tag that is none: it ends at the next ">" or before the next "<", and still counts if it has a name."""
        following = self._find(b"<", 1)
        if end < 0 and following < 0:
            if following != _NOWHERE:  # else the document is cut off, which is noted at its end
                self._log.add("X105", self.offset, text=self._peek(40).decode("utf-8", "replace"))
            self._position += len(self._peek(MAX_TAG_BYTES)) if following == _NOWHERE else 1
            return None
        length = following if end < 0 or 0 <= following < end else end + 1
        raw = self._buffer[self._position : self._position + length]
        self._log.add("X105", self.offset, text=raw[:80].decode("utf-8", "replace").rstrip())
        self._position += length
        match = _TAG_NAME.match(raw)
        if match is None or not match[2]:
            return None
        return Token(TokenKind.END if match[1] else TokenKind.START, match[2], raw[match.end() :].rstrip(b">"))


#: Markup that means nothing here, by how it starts.
_PASSED_OVER = {
    b"<!--": Tokenizer._comment,
    b"<!DOCTYPE": Tokenizer._doctype,
    b"<?": Tokenizer._instruction,
}


def attributes(raw: bytes, note: Note | None = None) -> dict[str, str]:
    """The attributes of a start tag by lower-case name; the first of a name counts."""
    found: dict[str, str] = {}
    for count, match in enumerate(_ATTRIBUTE.finditer(raw)):
        if count >= MAX_ATTRIBUTES:
            break
        name, double, single, bare = match.groups()
        value = next((value for value in (double, single, bare) if value is not None), None)
        if value is not None:
            text = unescape(decode_field(value)[0], note if b"&" in value else None)
            found.setdefault(name.decode("utf-8", "replace").lower(), text.strip())
    return found
