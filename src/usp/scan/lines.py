"""Documents of lines: robots.txt and plain text sitemaps. Lines end with CR, LF, both, or a Unicode line break."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice

from usp.objects.problem import UNLOGGED, Place, ProblemLog
from usp.scan.encodings import IsCut, decode_field, in_parts, never_cut
from usp.scan.urls import INVISIBLE, is_http_url, is_without_scheme, unwrapped

__all__ = [
    "MAX_ROBOTS_TXT_BYTES",
    "FindURLs",
    "FoundURL",
    "Line",
    "LineKind",
    "PureLineSkipper",
    "TakeLines",
    "after_comments",
    "is_robots_txt",
    "line_lists",
    "robots_sitemaps",
    "robots_text",
    "text_lines",
    "urls_on_line",
    "urls_without_scheme",
    "within",
]

MAX_LINE_BYTES = 1 << 16
#: Bytes read of a robots.txt. Google reads 500 KiB, and RFC 9309, 2.5 asks for at least that.
MAX_ROBOTS_TXT_BYTES = 500 * 1024
_MANY_LINES = 512
_TOO_LONG = b"x" * (MAX_LINE_BYTES + 1)  # stands for a line whose text is not kept

# Where Python's str.splitlines() splits, in UTF-8, except at the separators of files, groups and records.
_BREAK = re.compile(rb"\r\n?|[\n\x0b\x0c]|\xc2\x85|\xe2\x80[\xa8\xa9]")
# As nearly all are: with nothing to repair, and nothing that could be a second URL.
_USUAL_SITEMAP_LINE = re.compile(
    r"sitemap: ?+(https?://[a-z0-9][a-z0-9/._?=&%-]*+|[a-z0-9/](?:[a-z0-9/._-]*[a-z0-9])?)", re.IGNORECASE | re.ASCII
)
_SITEMAP_LINE = re.compile(r"\s*site-?map\s*:(.*)", re.IGNORECASE)
# Lines that were meant to name a sitemap: "Video Sitemap: URL", "Sitemaps: URL", "Sitemap = URL", or just its URL.
# The spaces are possessive: each is read once, whatever follows.
_NAMES_SITEMAP = re.compile(
    r"(?:.{0,40}\b)?site[ -]?maps?(?:\s*+[:=]\s*+|\s++)(https?://\S+)",
    re.IGNORECASE,
)
_BARE_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_MAY_NAME_SITEMAP = re.compile(rb":")
# What a line has that has a URL, with or without a scheme.
_MAY_HAVE_URL = re.compile(rb"[.:]")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_SPACE = re.compile(r"\s")
_SPACE_BEFORE_URL = re.compile(r"\s(?=https?://)", re.IGNORECASE)
_BEFORE_URL = re.compile(r"[\s,;](?=https?://)", re.IGNORECASE)
_WEB_PAGE = re.compile(rb"<(?:!doctype|html|head|body|\?xml|urlset|sitemapindex)[\s>]", re.IGNORECASE)
_ROBOTS_LINE = re.compile(rb"^[ \t]*(?:user-?agent|(?:dis)?allow|site-?map)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_COMMENTS_AND_SPACE = re.compile(rb"(?:\s|(?><!--.*?-->))*+", re.DOTALL)
_CONTROLS = dict.fromkeys((*range(0x20), 0x7F, *map(ord, INVISIBLE)))
_CONTROLS.pop(ord("\t"))


#: A line, and its place.
Line = tuple[Place, str]
#: Takes lines of a buffer, from a position on. Returns where they end, and how many they are.
TakeLines = Callable[[bytes, int], tuple[int, int]]
#: The same, given also the number of the first of these lines.
FindURLs = Callable[[bytes, int, int], tuple[int, int]]
#: A URL on a line, its place, and the codes of the problems of the line.
FoundURL = tuple[Place, str, Sequence[str]]


class LineKind(Enum):
    """What lines are read for. The value is what a line has if it is wanted at all, None for any line."""

    SITEMAPS = _MAY_NAME_SITEMAP  # of a robots.txt
    URLS = _MAY_HAVE_URL
    URLS_AND_PROBLEMS = None


class PureLineSkipper:
    """Skips lines that say nothing, and counts their problems. This one, in plain Python, skips none.

    The compiled one (`_line_skipper.pyx`) skips lines that name no sitemap or have no URL, and finds the URLs on
    others, unless the log keeps the problems of the line. `base` is the URL of the document.
    """

    skips_any = False

    def __init__(self, log: ProblemLog, kind: LineKind, base: str) -> None:
        pass

    def skip(self, buffer: bytes, position: int, /) -> tuple[int, int]:
        """Return where the lines end that it skips, from a position on, and how many they are."""
        return position, 0

    def find(self, buffer: bytes, position: int, number: int, /) -> tuple[list[FoundURL], int, int]:
        """Return the URLs on lines of a text sitemap, where these lines end, and how many they are.

        The first of them has this number. Lines without URLs are among them, and their problems are counted.
        """
        return [], position, 0


def text_lines(
    pieces: Iterable[bytes],
    log: ProblemLog,
    is_cut: IsCut = never_cut,
    kind: LineKind = LineKind.URLS_AND_PROBLEMS,
    skipper: PureLineSkipper | None = None,
) -> Iterator[Line]:
    """Yield the lines that are not blank, with their places, without outer white space and control characters.

    If the text is cut, its last line is dropped. Of lines that are not wanted, only the encoding is looked at.
    """
    for lines in line_lists(pieces, log, None, is_cut, kind, skipper):
        yield from lines


def line_lists(
    pieces: Iterable[bytes],
    log: ProblemLog,
    take: TakeLines | None = None,
    is_cut: IsCut = never_cut,
    kind: LineKind = LineKind.URLS_AND_PROBLEMS,
    skipper: PureLineSkipper | None = None,
    find: FindURLs | None = None,
) -> Iterator[Iterator[Line]]:
    """Yield the same lines, some at a time, except those that `take` takes, and that the skipper skips or `find` reads.

    What they took and read comes before the lines of the same iteration: first what `take` took.
    """
    skip = skipper.skip if skipper is not None and skipper.skips_any else None
    number = 1
    rest = b""
    for piece in in_parts(pieces):
        buffer = rest + piece
        start, odd = 0, 1
        while take is not None or skip is not None or find is not None:
            before = number
            for pass_lines in filter(None, (take, skip)):
                start, count = pass_lines(buffer, start)
                number += count
            if find is not None:
                start, count = find(buffer, start, number)
                number += count
                if count:
                    yield iter(())
                    continue
            odd = 1 if number > before else min(odd * 2, _MANY_LINES)  # if lines are odd, do not ask for each of them
            ends = [*islice(_BREAK.finditer(buffer, start), odd)]
            if not ends or ends[-1].end() == len(buffer):
                break
            starts = [start, *(end.end() for end in ends)]
            odd_lines = [buffer[at : end.start()] for at, end in zip(starts, ends, strict=False)]
            yield _numbered(odd_lines, number, log, kind.value)
            number += len(ends)
            start = starts[-1]
        *lines, rest = _BREAK.split(buffer[start:])
        if buffer.endswith(b"\r") and lines:  # its LF may be the first byte of the next piece
            rest = lines.pop() + b"\r"
        yield _numbered(lines, number, log, kind.value)
        number += len(lines)
        if len(rest) > MAX_LINE_BYTES:
            rest = _TOO_LONG + rest[-2:]  # which may be the start of a line break
    if not is_cut():
        yield _numbered([rest.rstrip(b"\r")], number, log, kind.value)


def _numbered(lines: list[bytes], first: int, log: ProblemLog, wanted: re.Pattern[bytes] | None) -> Iterator[Line]:
    """Yield lines one at a time, so that problems are noted in their order."""
    for number, raw in enumerate(lines, first):
        if len(raw) > MAX_LINE_BYTES:
            log.add("X115", Place(number, 1), text=str(MAX_LINE_BYTES), where="a line")
            continue
        is_wanted = wanted is None or wanted.search(raw) is not None
        if not is_wanted and (log is UNLOGGED or raw.isascii()):
            continue
        whole, good = decode_field(raw)
        if not good:
            log.add("E203", Place(number, 1), text="UTF-8", where="a line")
        if is_wanted and (line := (whole if whole.isprintable() else whole.translate(_CONTROLS)).strip()):
            yield Place(number, max(whole.find(line[0]), 0) + 1), line


def urls_on_line(line: str) -> list[str]:
    """Return the URLs on a line of a plain text sitemap. It may have several fields, and a comment."""
    if "://" not in line:
        return []
    parts = (part for part in _parts_of(line) if "://" in part)
    return _urls(field for part in parts for field in _split(_SPACE_BEFORE_URL, part) if "://" in field)


def urls_without_scheme(line: str, base: str) -> list[str]:
    """Return the URLs on a line that lack only the scheme. `base` is the URL of the document."""
    if "." not in line:
        return []
    texts = (unwrapped(part) for part in _parts_of(line) if "." in part)
    return [text for text in texts if is_without_scheme(text, base) and not _SPACE.search(text)]


def _parts_of(line: str) -> list[str]:
    return (_COMMENT.sub("", line) if "#" in line else line).removeprefix("- ").split("\t")


def _split(before_url: re.Pattern[str], text: str) -> list[str]:
    """Split a text before its URLs. Most texts have only one, at their start."""
    is_single = text[:8].lower().startswith(("http://", "https://")) and text.count("://") == 1
    return [text] if is_single else before_url.split(text)


def _urls(fields: Iterable[str]) -> list[str]:
    """Return the fields that are URLs; if there are several, without the commas between them."""
    urls = [url for field in fields if is_http_url(url := unwrapped(field))]
    return urls if len(urls) < 2 else [url.rstrip(",;|") for url in urls]


def after_comments(head: bytes) -> int:
    """Return where a document continues after leading white space and XML comments."""
    found = _COMMENTS_AND_SPACE.match(head)
    return found.end() if found else 0


def is_robots_txt(head: bytes) -> bool:
    """Return whether a document looks like a robots.txt, maybe after a warning or an HTML comment.

    A document that starts with text always does; a web page never.
    """
    if not head.startswith(b"<", after_comments(head)):
        return True
    return _WEB_PAGE.search(head) is None and _ROBOTS_LINE.search(head) is not None


def robots_text(pieces: Iterable[bytes], log: ProblemLog = UNLOGGED, is_cut: IsCut = never_cut) -> bytes:
    """Return the first 500 KiB of a robots.txt, without the line that is cut there, or where the text is cut."""
    kept = []
    room = MAX_ROBOTS_TXT_BYTES
    for piece in pieces:
        if len(piece) <= room:
            kept.append(piece)
            room -= len(piece)
            continue
        log.add("R708")
        return _whole_lines(b"".join((*kept, piece[:room])))
    text = b"".join(kept)
    return _whole_lines(text) if is_cut() else text


def _whole_lines(text: bytes) -> bytes:
    return text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]


def robots_sitemaps(
    pieces: Iterable[bytes], log: ProblemLog, is_cut: IsCut = never_cut, skipper: PureLineSkipper | None = None
) -> Iterator[tuple[Place, str]]:
    """Yield the values of the `Sitemap:` lines of a robots.txt, with their places."""
    text = robots_text(pieces, log, is_cut)  # whole lines
    for place, line in text_lines([text], log, never_cut, LineKind.SITEMAPS, skipper):
        if usual := _USUAL_SITEMAP_LINE.fullmatch(line):
            yield Place(place.line, place.column + usual.start(1)), usual[1]
            continue
        match = _SITEMAP_LINE.match(line)
        if not match:
            if url := _url_meant_as_sitemap(_COMMENT.sub("", line).strip()):
                log.add("R712", place, text=url)
            continue
        written = _COMMENT.sub("", match[1]).strip()
        value = unwrapped(written)
        if not value:
            log.add("R703", place)
            continue
        urls = _urls(_split(_BEFORE_URL, value)) or [value]
        if len(urls) > 1 or value != written or "-" in line[: match.start(1)]:
            log.add("R710", place, text=urls[0])
        for url in urls:
            yield within(place, line, url), url


def _url_meant_as_sitemap(line: str) -> str | None:
    """Return the URL on a line that looks as if it were meant to name a sitemap, or None."""
    if match := _NAMES_SITEMAP.fullmatch(line):
        return match[1]
    if _BARE_URL.fullmatch(line):
        lowered = line.lower()
        if "sitemap" in lowered or lowered.endswith((".xml", ".xml.gz")):
            return line
    return None


def within(place: Place, line: str, text: str) -> Place:
    """Return the place of a text on a line."""
    return Place(place.line, place.column + max(line.find(text), 0))
