"""Whether a document is well-formed XML, as expat judges it: the parser that Python comes with.

Our own scanner repairs what it can, so it cannot tell what other parsers refuse. Expat reads what the scanner reads. It
does not read the entries that a fast reader took: those are well-formed, and come out whole, so the rest is well-formed
if and only if the document is. That makes it cheap: of most sitemaps, expat reads the first tag and the last one.

Expat stops at its first error. `XMLError` says where that is, and which code of `usp.check` fits. It is a problem only
if the scanner has not reported it already; see `log_refusal`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from xml.parsers import expat
from xml.parsers.expat import errors

from usp.objects.problem import ProblemLog

__all__ = ["WellFormedness", "XMLError", "log_refusal", "refusal_of"]

_CONTEXT_BYTES = 4_096  # how much text before and after an error is looked at, to tell what it is in
_NEAR_BYTES = 64
_LATE_BYTES = 8
_AFTER_DECLARATION_BYTES = 256  # a second document may start with a declaration
_SHOWN_BYTES = 40
_MAX_UNREAD_BYTES = 1 << 20  # of one tag or comment: old versions of expat read it again with each piece
_MAX_SHIFTS = 1_000
_ENTRY = b"<a/>"  # stands for the entries that are not read: an error at it is one at the first of them
_NUMBERS = errors.codes  # the message of an error -> its number

#: Errors that one code fits, whatever the text.
_CODES = {
    _NUMBERS[message]: code
    for message, code in {
        errors.XML_ERROR_XML_DECL: "X119",
        errors.XML_ERROR_MISPLACED_XML_PI: "X120",
        errors.XML_ERROR_DUPLICATE_ATTRIBUTE: "X121",
        errors.XML_ERROR_BAD_CHAR_REF: "X125",
        errors.XML_ERROR_TAG_MISMATCH: "X126",
        errors.XML_ERROR_UNDEFINED_ENTITY: "X103",
        errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "X118",
        errors.XML_ERROR_UNBOUND_PREFIX: "X117",
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION: "X112",
        errors.XML_ERROR_NO_ELEMENTS: "X113",
        errors.XML_ERROR_UNCLOSED_TOKEN: "X112",
        errors.XML_ERROR_PARTIAL_CHAR: "E203",
    }.items()
}
#: What the others mean, in the words of users.
_SENTENCES = {
    _NUMBERS[message]: sentence
    for message, sentence in {
        errors.XML_ERROR_SYNTAX: "this may not stand here",
        errors.XML_ERROR_INVALID_TOKEN: "this character may not stand here",
        errors.XML_ERROR_RECURSIVE_ENTITY_REF: "an entity refers to itself",
        errors.XML_ERROR_UNDECLARING_PREFIX: 'xmlns:prefix="" is not allowed: a prefix needs a namespace',
        errors.XML_ERROR_RESERVED_PREFIX_XML: "the prefix xml may not get another namespace",
        errors.XML_ERROR_RESERVED_PREFIX_XMLNS: "the prefix xmlns may not be declared",
        errors.XML_ERROR_RESERVED_NAMESPACE_URI: "this namespace is reserved: no other prefix may have it",
        errors.XML_ERROR_TEXT_DECL: "the text declaration is not well-formed",
        errors.XML_ERROR_BINARY_ENTITY_REF: "this refers to an entity that is no text",
        errors.XML_ERROR_ATTRIBUTE_EXTERNAL_ENTITY_REF: "an attribute may not refer to an entity in another file",
        errors.XML_ERROR_PUBLICID: "the public identifier has a character that is not allowed",
    }.items()
}
#: Errors in the order of tags. Expat may notice them long after what the scanner has reported.
_OF_STRUCTURE = frozenset(
    _NUMBERS[message]
    for message in (
        errors.XML_ERROR_TAG_MISMATCH,
        errors.XML_ERROR_NO_ELEMENTS,
        errors.XML_ERROR_UNCLOSED_TOKEN,
        errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT,
    )
)
_STRUCTURE_CODES = frozenset({"X104", "X105", "X106", "X107", "X111", "X112", "X113", "X118"})
_TEXT_CODES = frozenset({"X101", "X118", "X102", "X103", "X104", "X105", "X108", "X112", "E203"})
_OPENINGS = re.compile(rb"<!--|<!\[CDATA\[|<\?|<")
_CLOSINGS = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_WHERE = {b"": "text", b"<!--": "a comment", b"<![CDATA[": "a CDATA section", b"<?": "an instruction", b"<": "a tag"}
_TAG_END = re.compile(rb"(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+[<>]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REFERENCE_END = re.compile(rb"#?[\w.:\x80-\xff-]*+\Z")
_BEFORE_ATTRIBUTES = (b" ", b"\t", b"\n", b"\r", b"'", b'"')
_STARTS_TAG = re.compile(rb"<[A-Za-z_:\x80-\xff][^\s/>=\"']*+\s")
_PREFIXES = re.compile(rb"(?:\A|\s)([^\s<>/!?=\"'&:]++):(?=[^\s<>/!?=\"'&:]++\s*+(?:[=/>]|\Z))")
#: What a message shows of the text at an error.
_SHOWN = {
    "X103": re.compile(rb"(&#?[^\s<>&;]*+;?)"),
    "X105": re.compile(rb"(<[^<>]*+>?)"),
    "X112": re.compile(rb"(<!\[CDATA\[|<!--|<\?|<)"),
    "X113": re.compile(rb"<([^\s<>/!?=\"'&]++)"),
    "X121": re.compile(rb"([^\s<>/=\"']++)"),
    "X122": re.compile(rb"([^\s<>]++)"),
    "X125": re.compile(rb"(&#?[^\s<>&;]*+;?)"),
    "X126": re.compile(rb"</([^\s<>/]++)"),
}


class XMLError(NamedTuple):
    """Where and why expat refuses a document."""

    number: int  # of the error, as expat counts
    offset: int  # in the document
    code: str
    text: str = ""
    where: str = ""
    tag_at: int = -1  # the offset of the tag that it is in, -1 if it is in none


class WellFormedness:
    """Reads the parts of a document that nothing else has proved to be well-formed, in order.

    `error` is the first error that expat finds; what comes after it is not read. `is_accepted` says at the end whether
    the whole document is well-formed.
    """

    def __init__(self, has_namespaces: bool = True) -> None:
        self.error: XMLError | None = None
        self.is_accepted = False
        # The text is UTF-8 by now, whatever its declaration says.
        self._parser = expat.ParserCreate("utf-8", " " if has_namespaces else None)
        self._is_done = False
        self._has_started = False
        self._fed = 0  # bytes that expat got
        self._end = 0  # the offset in the document behind them
        self._shifts: list[tuple[int, int]] = []  # offset for expat -> offset in the document, where they part
        self._before = b""  # the end of what expat got before this piece
        self._refused: tuple[int, int, int] | None = (
            None  # an error: its number, its offset, and its place in `_before`
        )

    def read(self, buffer: bytes, start: int, end: int, offset: int) -> None:
        """Read a part of a buffer. `offset` is that of the part in the document. Anything before it was proved."""
        if self._refused is not None and self.error is None:
            self._read_on(buffer[start : min(end, start + _CONTEXT_BYTES)], is_next=offset == self._end)
            self._end = offset + end - start
        if self._is_done or start >= end:
            return
        text = buffer[start:end]
        if not self._has_started:  # white space may stand in place of a preamble, which has its own problem
            text = text.lstrip()
            offset += end - start - len(text)
            if not text:
                return
            self._has_started = True
        if offset != self._end or not self._shifts:
            del self._shifts[: self._index(self._parser.CurrentByteIndex)]
            if self._fed:
                self._shifts.append((self._fed, self._end))
                self._parse(_ENTRY, False)
                if self._is_done:
                    return
            self._shifts.append((self._fed, offset))
        self._parse(text, False)
        self._end = offset + len(text)

    def finish(self, end: int) -> XMLError | None:
        """End the document at an offset. Return its first error."""
        self._end = end
        if not self._is_done:
            self._parse(b"", True)
            self.is_accepted = self._refused is None
        self._is_done = True
        self._read_on(b"", is_next=False)
        return self.error

    def _parse(self, text: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(text, is_last)
        except expat.ExpatError as error:
            self._is_done = True
            at, known = self._parser.ErrorByteIndex, self._before + text
            is_end = is_last and not 0 <= at < self._fed
            at, offset = (self._fed, self._end) if is_end else (at, self._offset_of(at))
            place = at - self._fed + len(self._before)
            skipped = max(place - _CONTEXT_BYTES, 0)
            self._before, self._refused = known[skipped:], (error.code, offset, place - skipped)
            self._read_on(b"", is_next=not is_last)
            return
        self._fed += len(text)
        most = 2 * _CONTEXT_BYTES  # an error may be found after the place where it is
        self._before = text[-most:] if len(text) >= most else (self._before + text)[-most:]
        # A tag or a comment that is so long has a problem already: X105, X112 or X115.
        is_lost = self._fed - max(self._parser.CurrentByteIndex, 0) > _MAX_UNREAD_BYTES
        self._is_done |= is_lost or len(self._shifts) > _MAX_SHIFTS

    def _read_on(self, text: bytes, *, is_next: bool) -> None:
        """Set the error as soon as enough text behind it is known, wherever the document is cut into pieces.

        :param is_next: whether the text follows, and more may come.
        """
        if self._refused is None or self.error is not None:
            return
        number, offset, place = self._refused
        if is_next:
            self._before += text
        if not is_next or len(self._before) - place >= _CONTEXT_BYTES:
            self.error = _error_of(number, offset, self._before[: place + _CONTEXT_BYTES], place)

    def _index(self, at: int) -> int:
        """Return the index of the last shift that starts before an offset of expat."""
        return max((number for number, (fed, _) in enumerate(self._shifts) if fed <= at), default=0)

    def _offset_of(self, at: int) -> int:
        if not self._shifts:
            return at
        fed, offset = self._shifts[self._index(at)]
        return offset + max(at - fed, 0)


def refusal_of(
    pieces: Iterable[bytes], has_namespaces: bool = True, most: int | None = None, is_cut: bool = False
) -> XMLError | None:
    """Return the first error of a document, or of its first bytes; None if there is none.

    If it is cut, its end is no error.
    """
    judge = WellFormedness(has_namespaces)
    offset = 0
    for piece in pieces:
        judge.read(piece, 0, len(piece), offset)
        offset += len(piece)
        if judge.error is not None or (most is not None and offset > most):
            return judge.error
    return judge.error if is_cut else judge.finish(offset)


def log_refusal(error: XMLError, log: ProblemLog) -> None:
    """Log why expat refuses a document, unless the log has the reason already."""
    if not _is_logged(error, log):
        log.add(error.code, error.offset, text=error.text, where=error.where)


def _is_logged(error: XMLError, log: ProblemLog) -> bool:
    """Return whether the scanner has reported an error, or one that leads to it."""
    covering, first, last = _TEXT_CODES, error.offset - _NEAR_BYTES, error.offset + _LATE_BYTES
    if error.number in _OF_STRUCTURE:
        covering, first, last = _STRUCTURE_CODES, 0, error.offset + _AFTER_DECLARATION_BYTES
    elif error.code == "X117":
        covering, first, last = frozenset({"X117"}), error.offset, error.offset
    elif error.tag_at >= 0:
        first = error.tag_at
    for code in covering:
        places = log.offsets_of(code)
        if log.counts[code] > len(places) or any(first <= at <= last for at in places):
            return True  # some may have no place: only the first few are kept
    return False


def _error_of(number: int, offset: int, text: bytes, at: int) -> XMLError:
    """Return an error with the code that fits the text around it. `at` is its place in the text."""
    opening, start = _context(text, at)
    code, back, shown = _CODES.get(number, ""), 0, b""
    if number == _NUMBERS[errors.XML_ERROR_INVALID_TOKEN]:
        code, back = _code_of_token(opening, text, start, at)
    elif number == _NUMBERS[errors.XML_ERROR_TAG_MISMATCH]:
        back = 2 if text.endswith(b"</", 0, at) else 0
    elif number == _NUMBERS[errors.XML_ERROR_UNCLOSED_TOKEN] and not text.startswith((b"<!--", b"<?"), at):
        code = "X105" if text.startswith(b"<", at) else "X102"
    where = _WHERE[opening]
    if code == "X117":
        shown = _undeclared_prefix(text, at)
    elif code in _SHOWN:
        found = _SHOWN[code].search(text, at - back)
        shown = found[1] if found else b""
    elif not code:
        code, shown = "X127", text[at:]
        where = _SENTENCES.get(number, expat.ErrorString(number))
    tag_at = offset - (at - start) if opening == b"<" else -1
    return XMLError(number, offset - back, code, "UTF-8" if code == "E203" else _line(shown), where, tag_at)


def _undeclared_prefix(text: bytes, at: int) -> bytes:
    """Return the prefix in a tag that is not declared: of an attribute, or else of the tag."""
    tag = _TAG_END.match(text, at + 1)
    prefixes: list[bytes] = _PREFIXES.findall(tag[0] if tag else text[at + 1 :]) or [b""]
    known = {b"xml", b"xmlns", prefixes[0]}
    return next((prefix for prefix in prefixes if prefix not in known), prefixes[0])


def _context(text: bytes, at: int) -> tuple[bytes, int]:
    """Return how the markup starts that a place is in, and where; nothing if it is in a text."""
    position = 0
    while (opening := _OPENINGS.search(text, position, at)) is not None:
        if (closing := _CLOSINGS.get(opening[0])) is not None:
            end = text.find(closing, opening.end())
            position = end + len(closing)
        else:
            tag = _TAG_END.match(text, opening.end())
            end = position = tag.end() if tag else -1
            position -= text[position - 1 : position] == b"<"
        if end < 0 or position > at:
            return opening[0], opening.start()
    return b"", at


def _code_of_token(opening: bytes, text: bytes, start: int, at: int) -> tuple[str, int]:
    """Return the code of a character that may not stand where it does, and how far before it the error starts."""
    if _CONTROL.match(text, at):
        return "X108", 0
    if not _starts_with_utf8(text[at : at + 4]):
        return "E203", 0
    if opening == b"<!--":
        return "X123", 2
    if opening == b"" and text.endswith(b"]]", 0, at):
        return "X124", 2
    ampersand = text.rfind(b"&", start if opening else 0, at + 1)
    if opening in (b"", b"<") and ampersand >= 0 and _REFERENCE_END.match(text, ampersand + 1, at):
        return "X102", at - ampersand
    if opening == b"<":
        name = _STARTS_TAG.match(text, start, at)
        return (
            ("X122", at - max(text.rfind(blank, 0, at) for blank in _BEFORE_ATTRIBUTES) - 1)
            if name
            else ("X105", at - start)
        )
    return ("X119", at - start) if text.startswith(b"<?xml", start) else ("", 0)


def _starts_with_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > 0
    return True


def _line(raw: bytes) -> str:
    return raw[:_SHOWN_BYTES].split(b"\n")[0].decode("utf-8", "replace").strip()
