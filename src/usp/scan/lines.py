"""Documents of lines: robots.txt and plain text sitemaps. Lines end with CR, LF, both, or what else Unicode has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from usp.objects.problem import ProblemLog
from usp.scan.encodings import decode_field
from usp.scan.urls import is_http_url

__all__ = ["looks_like_html", "robots_sitemaps", "text_lines", "urls_on_line"]

MAX_LINE_BYTES = 1 << 16

# What Python's str.splitlines() splits at, in UTF-8, but for the separators of files, groups and records.
_BREAK = re.compile(rb"\r\n?|[\n\x0b\x0c]|\xc2\x85|\xe2\x80[\xa8\xa9]")
_SITEMAP_LINE = re.compile(r"\s*site-?map\s*:(.*)", re.IGNORECASE)
_COMMENT = re.compile(r"(?:^|\s)#.*")
_BEFORE_URL = re.compile(r"\s(?=https?://)", re.IGNORECASE)
_COMMENTS_AND_SPACE = re.compile(rb"(?:\s|<!--.*?-->)*", re.DOTALL)
_WRAPPING = "<>\"'\u201c\u201d\u2018\u2019`" + "".join(c for c in map(chr, range(0x3001)) if c.isspace())
_CONTROLS = dict.fromkeys((*range(0x20), 0x7F, 0xFEFF))
_CONTROLS.pop(ord("\t"))


def text_lines(pieces: Iterable[bytes], log: ProblemLog) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers, stripped of outer white space and of control characters."""
    number = 1
    rest = b""
    for piece in pieces:
        buffer = rest + piece
        *lines, rest = _BREAK.split(buffer)
        if buffer.endswith(b"\r") and lines:  # its LF may be the first byte of the next piece
            rest = lines.pop() + b"\r"
        yield from _numbered(lines, number, log)
        number += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            rest = rest[: MAX_LINE_BYTES + 1]
    yield from _numbered([rest.rstrip(b"\r")], number, log)


def _numbered(lines: list[bytes], first: int, log: ProblemLog) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(lines, first):
        if len(raw) > MAX_LINE_BYTES:
            log.add("X115", number, text=str(MAX_LINE_BYTES), where="a line")
            continue
        line, good = decode_field(raw)
        if not good:
            log.add("E203", number, text="UTF-8", where="a line")
        if line := line.translate(_CONTROLS).strip():
            yield number, line


def urls_on_line(line: str) -> list[str]:
    """The URLs on a line of a plain text sitemap: one, or several fields of which some are URLs, and a comment."""
    fields = (field.strip() for part in _COMMENT.sub("", line).split("\t") for field in _BEFORE_URL.split(part))
    urls = [field for field in fields if is_http_url(field)]
    return urls if len(urls) < 2 else [url.rstrip(",;|") for url in urls]


def looks_like_html(head: bytes) -> bool:
    """Whether a document's first element, after comments, is a tag: not what a robots.txt starts with."""
    start = _COMMENTS_AND_SPACE.match(head)
    return head[start.end() if start else 0 :].startswith(b"<")


def robots_sitemaps(pieces: Iterable[bytes], log: ProblemLog) -> Iterator[tuple[int, str]]:
    """The values of the `Sitemap:` lines of a robots.txt, with their line numbers."""
    for number, line in text_lines(pieces, log):
        match = _SITEMAP_LINE.match(line)
        if not match:
            continue
        value = _COMMENT.sub("", match[1]).strip(_WRAPPING)
        several = [url for word in value.split() if is_http_url(url := word.strip(_WRAPPING + ","))]
        if not value:
            log.add("R703", number)
        for url in several if len(several) > 1 else filter(None, [value]):
            yield number, url
