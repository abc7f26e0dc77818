"""Any encoding in, UTF-8 out.

The first 64 KiB decide the encoding: the byte order mark, then the XML declaration, then the charset of the
Content-Type, then UTF-8. The result does not depend on how the input is cut into pieces. NUL bytes are dropped: no text
has them.

Text that is UTF-8, or declares no encoding, is not changed, even if it has bad bytes. `decode_field` repairs them in
each field, so they harm only their own field.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from encodings import cp1252
from functools import lru_cache
from itertools import chain

from usp.objects.problem import Place, ProblemLog

__all__ = ["IsCut", "decode_bad_field", "decode_field", "in_parts", "name_of_encoding", "never_cut", "to_utf8"]

#: Returns whether a limit cut a text, so that it may end in the middle of anything. It is asked at the end of the text.
IsCut = Callable[[], bool]

_SAMPLE_BYTES = 65_536

# UTF-32 before UTF-16: the mark of one starts like the mark of the other.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(rb"""<\?xml[^<>]{0,200}?\sencoding\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_FIELDS = re.compile(rb"[^<\n]+")
_ASCII = bytes(range(0x80))
_MIN_HIGH_BYTES = 6

# Those of Python's encodings that a website may use: not "hex", "idna" or "unicode_escape".
_CHARSET = re.compile(r"(ascii|utf|iso8859|iso2022|cp\d|koi8|mac|gb|big5|hz|euc|shift_jis|johab|tis|ptcp154|kz1048)")
_WINDOWS = re.compile(r"^(?:windows|win)[-_]?(\d+)$")
# Encodings with one byte per character. Text in them is hardly ever valid UTF-8 by accident; if it is, it is UTF-8.
_SINGLE_BYTE = re.compile(r"(iso8859|cp1[012]\d\d|cp[4-8]\d\d|koi8|mac|tis|kz|ptcp)")
# What the names mean on the web: the Windows superset. https://encoding.spec.whatwg.org/#names-and-labels
_AS_ON_THE_WEB = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-8-sig": "utf-8",
}


def never_cut() -> bool:
    """Return that a text is whole."""
    return False


def to_utf8(chunks: Iterable[bytes], charset: str | None, log: ProblemLog) -> Iterator[bytes]:
    """Yield a text as UTF-8, in pieces, without a byte order mark and NUL bytes."""
    chunks = iter(chunks)
    sample = b""
    for chunk in chunks:
        sample += chunk
        if len(sample) >= _SAMPLE_BYTES:
            break
    head = sample[:_SAMPLE_BYTES]
    encoding, mark = _encoding_of(head, charset, log)
    is_ascii = head.isascii() and not encoding.startswith(("utf-16", "utf-32"))
    log.encoding = "utf-8" if is_ascii else encoding
    pieces: Iterable[bytes] = chain([sample[mark:]], chunks)
    if encoding != "utf-8":
        pieces = in_parts(pieces)  # each is decoded to a text, which may be four times as large
    if _SINGLE_BYTE.match(encoding) and head.isascii():
        pieces = _reencoded_by_field(pieces, encoding)
    elif encoding != "utf-8":
        pieces = _reencoded(pieces, encoding)
    position = 0  # in the text that is yielded
    for piece in pieces:
        if b"\0" in piece:
            if not log.counts["X109"]:
                log.add_ahead("X109", position + piece.index(b"\0"))
            piece = piece.replace(b"\0", b"")
        position += len(piece)
        if piece:
            yield piece


def name_of_encoding(python_name: str) -> str:
    """Return the name of an encoding on the web."""
    return re.sub(r"^CP(125\d|874)$", r"windows-\1", python_name.upper())


def in_parts(pieces: Iterable[bytes], size: int = _SAMPLE_BYTES) -> Iterator[bytes]:
    """Cut pieces so that none is large."""
    for piece in pieces:
        if len(piece) <= size:
            yield piece
        else:
            yield from (piece[i : i + size] for i in range(0, len(piece), size))


def _reencoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _reencoded_by_field(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Do the same if it is not certain yet that the declared encoding, of one byte per character, is the real one.

    Until the first field that is not UTF-8, fields stay as they are.
    """
    rest = b""
    is_proven = False
    for piece in chain(pieces, [b""]):
        text = rest + piece
        end = max(text.rfind(b"<"), text.rfind(b"\n")) if piece else len(text)
        if end <= 0 and len(text) < _SAMPLE_BYTES:
            rest = text
            continue
        if end <= 0:  # a field that is too long to wait for its end
            end = _start_of_last_character(text)
        text, rest = text[:end], text[end:]
        if not is_proven and (bad := _first_bad(text)) is not None:
            is_proven = True
            field = 1 + max(text.rfind(b"<", 0, bad), text.rfind(b"\n", 0, bad))
            yield text[:field]
            text = text[field:]
        yield _reencoded_fields(text, encoding) if is_proven else text


def _reencoded_fields(text: bytes, encoding: str) -> bytes:
    if text.isascii():
        return text
    if _ASCII.decode(encoding, "replace") == _ASCII.decode("ascii"):
        return text.decode(encoding, "replace").encode()
    # Some encodings of one byte have other characters in place of a few of ASCII.
    return _FIELDS.sub(
        lambda field: field[0] if field[0].isascii() else field[0].decode(encoding, "replace").encode(), text
    )


def _start_of_last_character(text: bytes) -> int:
    """Return where the last character starts if the text is UTF-8: the next bytes may belong to it."""
    return next((i for i in range(len(text) - 1, len(text) - 4, -1) if text[i] & 0xC0 != 0x80), len(text))


def _first_bad(text: bytes) -> int | None:
    """Return where the first bytes are that are not UTF-8."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def _encoding_of(head: bytes, charset: str | None, log: ProblemLog) -> tuple[str, int]:
    """Return the Python name of the encoding, and the length of the byte order mark."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        # In UTF-16, every sitemap and robots.txt has zeros: those of tags, line ends and "http". Otherwise the bytes of
        # the mark are damage.
        if head.startswith(mark) and (encoding == "utf-8" or 0 in head):
            return encoding, len(mark)
    if wide := _unmarked_utf16(head):
        return wide, 0
    declaration = _DECLARATION.search(head)
    declared = declaration[1].decode("ascii") if declaration else None
    for name in (declared, charset):
        if not name:
            continue
        known = _python_name(name)
        if known is None:
            log.add("E202", _place_of(declaration, head), text=name)
        elif _is_plausible(known, head):
            return known, 0
        else:
            log.add("E201", _place_of(declaration, head), text=name, where="UTF-8")
            return "utf-8", 0
    return "utf-8", 0


def _place_of(declaration: re.Match[bytes] | None, head: bytes) -> Place:
    """Return the place of the declared encoding; the start of the document, if there is none."""
    if declaration is None:
        return Place(1, 1)
    offset = declaration.start(1)
    return Place(1 + head.count(b"\n", 0, offset), offset - head.rfind(b"\n", 0, offset))


@lru_cache(64)
def _python_name(name: str) -> str | None:
    label = _WINDOWS.sub(r"cp\1", name.lower().removeprefix("x-"))
    try:
        known = codecs.lookup("cp932" if label == "windows-31j" else label).name
    except (LookupError, ValueError):
        return None
    return _AS_ON_THE_WEB.get(known, known) if _CHARSET.match(known) else None


def _unmarked_utf16(head: bytes) -> str | None:
    """Return the kind of UTF-16 without a mark: text that is mostly ASCII has a zero in every other byte."""
    sample = head[:512]
    if len(sample) < 4 or sample.count(0) * 3 < len(sample):
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 4 * even:
        return "utf-16-le"
    return "utf-16-be" if even > 4 * odd else None


def _is_plausible(encoding: str, head: bytes) -> bool:
    """Return whether a document can be in the encoding that it declares."""
    if encoding.startswith("utf"):
        return encoding == "utf-8"  # the others have a mark or zeros, and were found before
    if "<?xml".encode(encoding, "replace") != b"<?xml":
        return False  # EBCDIC: its declaration could not have been read
    if head.isascii() or not _decodes(head, "utf-8"):
        return True
    if _SINGLE_BYTE.match(encoding):
        return False
    # A few two-byte characters may be valid UTF-8 by accident; many hardly ever are.
    return sum(byte >= 0x80 for byte in head) < _MIN_HIGH_BYTES and _decodes(head, encoding)


def _decodes(head: bytes, encoding: str) -> bool:
    """Return whether bytes are valid in an encoding.

    A character may be cut off at the end: of the sample, or of a document that is cut. A single one proves nothing.
    """
    decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
    try:
        text = decoder.decode(head)
    except UnicodeError:
        return False
    return not decoder.getstate()[0] or not text.isascii() or len(head) == _SAMPLE_BYTES


def decode_field(raw: bytes) -> tuple[str, bool]:
    """Decode a field, as Windows-1252 if it is not UTF-8. Return the text, and whether it was UTF-8."""
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return decode_bad_field(raw), False


def decode_bad_field(raw: bytes) -> str:
    """Decode a field that is not UTF-8 as Windows-1252."""
    # As raw.decode("cp1252", "replace") does, three times as fast.
    return codecs.charmap_decode(raw, "replace", cp1252.decoding_table)[0]
