"""Tokens of XML as it is served: start tags, end tags, text.

The tokenizer reads UTF-8 bytes in pieces of any size, and yields the same tokens however they are cut. It expands no
entities, follows no references, and never raises for the content of a document; it notes what it repairs. It skips
comments and processing instructions. It knows nothing of sitemaps: `entries` gives the tags their meaning.

A DOCTYPE with an internal subset could declare entities, so such a document is refused: `refused` says why, and there
are no more tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from usp.objects.problem import UNLOGGED, ProblemLog
from usp.scan.encodings import IsCut, decode_field, never_cut
from usp.scan.values import TextNotes, unescape
from usp.scan.well_formed import WellFormedness

__all__ = ["END_TAG", "START_TAG", "Token", "TokenKind", "Tokenizer", "attributes"]

#: How far to look for the end of a tag. Its beginning stays in memory meanwhile.
MAX_TAG_BYTES = 1 << 20
#: The same for a comment or a CDATA section.
MAX_SECTION_BYTES = 1 << 23
MAX_ATTRIBUTES = 256
_NOWHERE, _TOO_FAR = -1, -2
_TEXT_BYTES = 1 << 16  # the most text of one token
_NEAR_BYTES = 256
_SHOWN_BYTES = 40
_MAX_QUOTED_ENDS = 64  # how many ">" a tag may have inside quotes; with more it is malformed

_PLAIN_TAG = re.compile(rb"<(/?)([^\s<>/!?=\"'&]++)\s*+(/?)>")
#: Tags without attributes, and the text before them, to be counted only.
START_TAG = re.compile(rb"[^<]*+<(?!(?:br|hr|img|input|meta|wbr)>)[A-Za-z_][^\s<>/!?=\"'&]*+>", re.IGNORECASE)
END_TAG = re.compile(rb"[^<]*+</[A-Za-z_][^\s<>/!?=\"'&]*+>")
_LEAF = re.compile(rb"<([A-Za-z_][^\s<>/!?=\"'&]*+)>([^<]*+)</\1\s*>")
_START_TAG = re.compile(rb"<([^\s<>/!?=\"'&]++)((?:[^<>\"']++|\"[^\"<]*\"|'[^'<]*')*+)>")
# A "<" that starts no tag and the text behind it, over and over; and a tag without an end, right before another.
_STRAYS = re.compile(rb"(?:<(?=[^A-Za-z_:\x80-\xff/!?])[^<]*+)++")
_CUT_TAG = re.compile(rb"<(/?)([^\s<>/!?=\"'&]*+)([^<>]{0,1000}+)(?=<)")
_DOCTYPE = re.compile(rb"<!doctype(?:[^<>\[\"']++|\"[^\"]*+\"|'[^']*+')*+>", re.IGNORECASE)
_DOCTYPE_BYTES = 4_096
_NAME_START = re.compile(rb"[A-Za-z_:\x80-\xff]")
_TAG_NAME = re.compile(rb"<(/?)([^\s<>/!?=\"'&]*+)")
# The value is optional so that a name without one is skipped at once, not tried again from each of its letters.
_ATTRIBUTE = re.compile(rb"([^\s=\"'<>/]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>]++)))?+")
_LINE_END_OR_TAB = re.compile(rb"\r\n|[\t\n\r]")


class TokenKind(Enum):
    """What a token is."""

    START = auto()  # name, and the raw attributes as data
    EMPTY = auto()  # the same, of a tag that closes itself
    END = auto()  # name
    TEXT = auto()  # a piece of text as data, references and all
    CDATA = auto()  # a piece of text as data, without references
    LEAF = auto()  # name, and text as data: a start tag without attributes, text and the end tag, all in one


class Token(NamedTuple):
    """One token. Text may come in several pieces; names are as written.

    `at` is the offset of its data; for a leaf that is the text. A leaf is one token or three, depending on how the
    document is cut. They mean the same.
    """

    kind: TokenKind
    name: bytes
    data: bytes
    at: int = 0


class _Searched:
    """A part of the document, by its offsets, that does not contain something; if `found`, that is right at the end."""

    __slots__ = ("end", "found", "start")

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.found = False


class Tokenizer:
    """Yields the tokens of one document."""

    def __init__(self, chunks: Iterable[bytes], log: ProblemLog, is_cut: IsCut = never_cut) -> None:
        self._is_cut = is_cut
        self._chunks = iter(chunks)
        self._log = log
        self._buffer = b""
        self._base = 0  # the offset of the buffer in the document
        self._position = 0  # in the buffer
        self._searched: dict[bytes, _Searched] = {}
        self._ended = False
        self._started = b""  # the name of the last start tag
        self._leaf_text = 0  # where the text of the last leaf starts in the buffer
        self.tag_at = 0  # the offset of the last tag
        self.refused: str | None = None
        self.judge: WellFormedness | None = None  # is given what is read here, not what is skipped
        self._judged = 0  # how much of the buffer the judge has, or needs not have
        self._is_open = False  # whether the judge may be in a section still: then it gets all that follows

    @property
    def offset(self) -> int:
        """The offset of the text that was not read yet."""
        return self._base + self._position

    @property
    def unread(self) -> tuple[bytes, int]:
        """The buffer, and where in it the unread text begins. Use it between two tokens."""
        return self._buffer, self._position

    def skip_to(self, position: int) -> None:
        """Continue at a position in the buffer."""
        if position != self._position:
            self._give_to_judge()
            self._position = position
            if not self._is_open:
                self._judged = position
            self._started = b""

    def extend(self) -> bool:
        """Read on until there is twice as much unread text. Return False at the end of the document."""
        pieces = [self._buffer[self._position :]]
        size, needed = 0, len(pieces[0])
        while size <= needed and (chunk := next(self._chunks, None)) is not None:
            pieces.append(chunk)
            size += len(chunk)
        self._continue_with(b"".join(pieces))  # all at once, as each addition is a copy
        return size > 0

    def start_of_leaf(self, leaf: Token) -> Token:
        """Return the start tag of the last leaf instead of the leaf. Its text and its end tag come next."""
        self._position = self._leaf_text
        self._started = leaf.name
        return Token(TokenKind.START, leaf.name, b"", leaf.at)

    def skip_tags(self, tags: re.Pattern[bytes], most: int | None = None) -> int:
        """Skip tags of one sort that follow directly. Return how many there were."""
        skipped = 0
        while skipped != most and (tag := tags.match(self._buffer, self._position)):
            self._position = tag.end()
            skipped += 1
        return skipped

    def rest(self) -> Iterator[bytes]:
        """Yield the unread text, and some text right before it: removing that would cost a copy."""
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
        """Return the token of a tag without attributes. Nearly all tags have none."""
        self._position = match.end()
        slash, name, empty = match.groups()
        if slash:
            self._started = b""
            return Token(TokenKind.END, name, b"")
        self._started = name
        return Token(TokenKind.EMPTY if empty else TokenKind.START, name, b"")

    def _refill(self) -> bool:
        """Drop what was read and add the next piece. Return False at the end."""
        if self._ended:
            return False
        chunk = next(self._chunks, None)
        if chunk is None:
            self._ended = True
            return False
        self._continue_with(self._buffer[self._position :] + chunk)
        return True

    def _continue_with(self, buffer: bytes) -> None:
        """Use another buffer, which begins with the unread text of this one."""
        self._give_to_judge()
        self._base += self._position
        self._buffer = buffer
        self._position = self._judged = 0

    def _give_to_judge(self) -> None:
        if self.judge is not None:
            self.judge.read(self._buffer, self._judged, self._position, self._base + self._judged)
            self._judged = self._position

    def finish(self) -> int:
        """Give the judge the last part of the document. Return where the document ends."""
        self._give_to_judge()
        self._judged = self._position
        return self.offset

    def _find(self, what: bytes, offset: int, most: int = MAX_TAG_BYTES) -> int:
        """Return where something is next, counted from the current position; else `_NOWHERE` or `_TOO_FAR`.

        It remembers what it has searched, so it searches no part of a document twice for the same thing.
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
        """Return the token that starts with the "<" at the current position, None if it has no meaning."""
        ahead = self._peek(9).upper()
        for start, skip in _SKIPPED.items():
            if ahead.startswith(start):
                skip(self)
                return None
        if ahead == b"<![CDATA[":
            return self._cdata()
        if ahead.startswith(b"<!"):
            return self._malformed(self._find(b">", 2))
        if ahead.startswith(b"</") or _NAME_START.match(ahead[1:2]):
            return self._tag()
        return self._strays()

    def _strays(self) -> Token | None:
        """Return the text that begins with a "<" of no tag, and goes on up to the next tag, if that is not far."""
        if self._position + 1 == len(self._buffer) and self._is_cut():
            self._position += 1
            return None
        run = _STRAYS.match(self._buffer, self._position, self._position + _TEXT_BYTES)
        data = run[0] if run else b"<"
        start = self.offset
        if self._log is not UNLOGGED:
            self._peek(len(data) + _SHOWN_BYTES)
            left = data.count(b"<")
            at = 0
            while left and self._log.keeps("X104"):
                shown = self._buffer[self._position + at : self._position + at + _SHOWN_BYTES]
                self._log.add("X104", start + at, text=shown.decode("utf-8", "replace"))
                at = data.find(b"<", at + 1)
                left -= 1
            if left:
                self._log.count("X104", left, start + len(data) - 1)
        self._position += len(data)
        return Token(TokenKind.TEXT, b"", data, start)

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
            self._is_open = True
        data = self._buffer[self._position + 9 : self._position + end]
        at = self.offset + 9
        self._position += end + 3 * is_closed
        return Token(TokenKind.CDATA, b"", data, at)

    def _opens_field_again(self, again: int) -> bool:
        """Return whether the field around a CDATA section ends, and opens again right before another section."""
        ends = self._find(b"</", 9)
        stop = self._position + again
        before = self._buffer[max(self._position, stop - _NEAR_BYTES) : stop].rstrip()
        is_ended = self._buffer.startswith(b"</" + self._started + b">", self._position + ends)
        return 0 <= ends < again and is_ended and before.endswith(b"<" + self._started + b">")

    def _unclosed(self, opening: bytes, closing: bytes, end: int) -> None:
        """Handle a section whose end is not near. If it has none, continue inside it; if it is huge or cut, skip it."""
        if end == _NOWHERE and self._is_cut():
            self._position = len(self._buffer)
            return
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
            self.refused = "its DOCTYPE has declarations of its own, or no end, which is refused for safety"
            return
        self._log.add("X110", self.offset)
        self._position = doctype.end()

    def _instruction(self) -> None:
        """Skip `<?xml ...?>`. If the second question mark is missing, it ends at the first ">"."""
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
                self._is_open = True
        self._position += end + 1

    def _tag(self) -> Token | None:
        """Return the token of a tag with attributes, or of a malformed one."""
        if cut := _CUT_TAG.match(self._buffer, self._position):
            return self._cut_tag(cut)
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
            end = self._find(b">", end + 1)  # this one may be inside quotes
        return self._malformed(self._find(b">", 1))

    def _cut_tag(self, match: re.Match[bytes]) -> Token | None:
        """Return the token of a tag that has no end before the next one starts, as `_malformed` does, but faster."""
        self._note_malformed(match[0])
        self._position = match.end()
        slash, name, rest = match.groups()
        return Token(TokenKind.END if slash else TokenKind.START, name, rest) if name else None

    def _malformed(self, end: int) -> Token | None:
        """Return the token of a malformed tag, if it has a name. It ends at the next ">" or before the next "<"."""
        following = self._find(b"<", 1)
        if end < 0 and following < 0:
            if following != _NOWHERE:  # else the document is truncated, which is noted at its end
                self._log.add("X105", self.offset, text=self._peek(40).decode("utf-8", "replace"))
            self._position += len(self._peek(MAX_TAG_BYTES)) if following == _NOWHERE else 1
            return None
        length = following if end < 0 or 0 <= following < end else end + 1
        raw = self._buffer[self._position : self._position + length]
        self._note_malformed(raw)
        self._position += length
        match = _TAG_NAME.match(raw)
        if match is None or not match[2]:
            return None
        return Token(TokenKind.END if match[1] else TokenKind.START, match[2], raw[match.end() :].rstrip(b">"))

    def _note_malformed(self, raw: bytes) -> None:
        if self._log.keeps("X105"):
            self._log.add("X105", self.offset, text=raw[:80].decode("utf-8", "replace").rstrip())
        else:
            self._log.count("X105", 1, self.offset)


#: Markup that has no meaning here, by how it starts.
_SKIPPED = {
    b"<!--": Tokenizer._comment,
    b"<!DOCTYPE": Tokenizer._doctype,
    b"<?": Tokenizer._instruction,
}


def attributes(raw: bytes, notes: TextNotes | None = None) -> dict[str, str]:
    """Return the attributes of a start tag by lower-case name. If a name occurs twice, the first counts.

    Line ends and tabs in a value become spaces (https://www.w3.org/TR/xml/#AVNormalize), references to them do not.
    """
    found: dict[str, str] = {}
    has_breaks = _LINE_END_OR_TAB.search(raw) is not None
    for count, match in enumerate(_ATTRIBUTE.finditer(raw)):
        if count >= MAX_ATTRIBUTES:
            break
        name, double, single, bare = match.groups()
        value = next((value for value in (double, single, bare) if value is not None), None)
        if value is not None:
            if has_breaks:
                value = _LINE_END_OR_TAB.sub(b" ", value)
            text = unescape(decode_field(value)[0], notes)
            found.setdefault(name.decode("utf-8", "replace").lower(), text.strip())
    return found
