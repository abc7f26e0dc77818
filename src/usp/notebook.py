"""What notebooks show: tables and a histogram of dates, as HTML.

`_repr_html_` of sitemaps, pages and reports is made here. The HTML has inline styles and an inline SVG: no scripts, and
nothing that a browser would have to fetch. It takes the colours of the notebook, light or dark. All text from a site is
escaped and shortened, and only http and https URLs become links.

Size and time are bounded: a table has at most `MAX_ROWS` rows, and at most `MAX_PAGES` pages are read, for at most
about `MAX_SECONDS` seconds. What is left out is said below the table.
"""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from usp.objects.dates import aware
from usp.objects.page import SITEMAP_PAGE_DEFAULT_PRIORITY, Pages, SitemapPage
from usp.objects.wording import plural, printable, shortened

if TYPE_CHECKING:
    from usp.objects.sitemap import AbstractSitemap

__all__ = [
    "MAX_PAGES",
    "MAX_ROWS",
    "escaped",
    "framed",
    "linked",
    "note",
    "pages_html",
    "short_link",
    "sitemap_html",
    "table",
]

MAX_ROWS = 200
MAX_PAGE_ROWS = 20
MAX_PAGES = 200_000
MAX_SECONDS = 2.0

_LINKED = re.compile(r"https?://[^\s<>\"'\\]+", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_DAY = 24 * 60 * 60 * 1_000_000
_KINDS = {
    "IndexRobotsTxtSitemap": "robots.txt",
    "IndexXMLSitemap": "index",
    "IndexWebsiteSitemap": "website",
    "PagesXMLSitemap": "XML",
    "PagesTextSitemap": "text",
    "PagesRSSSitemap": "RSS",
    "PagesAtomSitemap": "Atom",
    "InvalidSitemap": "failed",
}
_MAX_LINK = 1_000
_MAX_DEPTH = 8  # levels that are indented
_BARS = 40
_BAR_WIDTH, _HEIGHT = 12, 60
_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0;border:0;overflow-wrap:anywhere"
_NUMBER = f"{_CELL};text-align:right;white-space:nowrap"
_HEAD = f"{_CELL};border-bottom:1px solid rgba(128,128,128,.6);font-weight:bold"


def escaped(text: str) -> str:
    """Return a text for HTML, with invisible characters written out."""
    return escape(printable(text))


def linked(url: str, shown: str | None = None) -> str:
    """Return a text, as a link if the URL is http or https."""
    text = escaped(url if shown is None else shown)
    if not _LINKED.fullmatch(url):
        return text
    return f'<a href="{escaped(url)}" rel="noreferrer noopener">{text}</a>'


def framed(title: str, name: str, summary: str, parts: Iterable[str]) -> str:
    """Return the HTML of an object: its class, its name, a line that sums it up, and the parts below."""
    head = f"<b>{escaped(title)}</b> {short_link(name)}" if name else f"<b>{escaped(title)}</b>"
    body = "".join(parts)
    return f'<div style="overflow-x:auto"><p style="margin:0 0 .4em">{head}<br>{escaped(summary)}</p>{body}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """Return a table of cells, which are HTML. `numbers` names the columns that are aligned to the right."""
    styles = [_NUMBER if name in numbers else _CELL for name in head]
    top = "".join(f'<th scope="col" style="{_HEAD}">{escaped(name)}</th>' for name in head)
    lines = (
        "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, row, strict=True)) for row in rows
    )
    body = "".join(f'<tr style="background:none">{line}</tr>' for line in lines)
    parts = f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody>"
    return f'<table style="border-collapse:collapse;margin:.4em 0">{parts}</table>'


def note(text: str) -> str:
    """Return a line below a table."""
    return f'<p style="margin:.2em 0;opacity:.75">{escaped(text)}</p>'


def short_link(url: str, shown: str | None = None) -> str:
    """Return a shortened text, as a link unless the URL is very long."""
    text = shortened(url if shown is None else shown)
    return linked(url, text) if len(url) <= _MAX_LINK else escaped(text)


@dataclass(slots=True)
class _Read:
    """What was read of the pages of a sitemap: how many, and their dates in microseconds since 1970."""

    count: int = 0
    dates: array[int] = field(default_factory=lambda: array("q"))
    is_whole: bool = True


class _Reader:
    """Reads pages within the bounds."""

    def __init__(self) -> None:
        self._left = MAX_PAGES
        self._end = time.monotonic() + MAX_SECONDS
        self.is_cut = False

    def read(self, pages: Sequence[SitemapPage]) -> _Read | None:
        """Read the dates of pages. Return None if there is no time left for it."""
        if self._is_over():
            if _length(pages) == 0:
                return _Read()
            self.is_cut = True
            return None
        found = _Read()
        for count, dates in _dates(pages):
            taken = min(count, self._left)
            self._left -= taken
            found.count += taken
            found.dates.extend(dates if taken == count else dates[:taken])
            if taken < count or self._is_over():
                found.is_whole = taken == count and _length(pages) == found.count
                self.is_cut |= not found.is_whole
                break
        return found

    def _is_over(self) -> bool:
        return self._left <= 0 or time.monotonic() > self._end


def _length(pages: Sequence[SitemapPage]) -> int | None:
    return pages.known_length if isinstance(pages, Pages) else len(pages)


def _dates(pages: Sequence[SitemapPage]) -> Iterator[tuple[int, array[int]]]:
    """Yield the number of pages in each part of a document, and the dates of those that have one."""
    if not isinstance(pages, Pages) or pages.columns is None:
        for page in pages:
            date = aware(page.last_modified)
            yield 1, array("q", [] if date is None else [_microseconds(date)])
        return
    for part in pages.columns(("last_modified",)):
        column = part.columns.get("last_modified")
        if column is None or column.data is None:
            yield part.length, array("q")
            continue
        dates = array("q", column.data)
        if (valid := column.valid) is not None:
            dates = array("q", (date for row, date in enumerate(dates) if valid[row >> 3] >> (row & 7) & 1))
        yield part.length, dates


def _microseconds(date: datetime) -> int:
    """Return the microseconds since 1970. A time outside the years 1 to 9999 in UTC is moved to the nearest."""
    return min(max((date - _EPOCH) // _MICROSECOND, _EARLIEST), _LATEST)


def sitemap_html(sitemap: AbstractSitemap) -> str:
    """Return the HTML of a sitemap: counts, a histogram of dates, its first pages, and all sitemaps below it."""
    reader = _Reader()
    own = reader.read(sitemap.pages)
    dates, pages = array("q"), 0
    if own is not None:
        dates, pages = own.dates, own.count
    rows: list[Sequence[str]] = []
    below = 0
    for depth, child in _descend(sitemap):
        below += 1
        found = reader.read(child.pages)
        if found is not None:
            pages += found.count
            dates.extend(found.dates)
        if len(rows) < MAX_ROWS:
            rows.append(_sitemap_row(depth, child, found))
    parts = [_histogram(dates, pages)]
    if own is not None and own.count:
        parts.append(_pages_table(sitemap.pages))
    if rows:
        head = ("Sitemap", "Kind", "Pages", "Declared date", "Newest page", "")
        parts.append(table(head, rows, numbers=("Pages",)))
    if below > len(rows):
        parts.append(note(f"... and {plural(below - len(rows), 'more sitemap')}."))
    if reader.is_cut:
        parts.append(note(f"Only {plural(pages, 'page')} were read for this view; the counts and dates are theirs."))
    return framed(type(sitemap).__name__, sitemap.url, _sentence(sitemap, below, pages, reader.is_cut), parts)


def _sentence(sitemap: AbstractSitemap, below: int, pages: int, is_cut: bool) -> str:
    if reason := getattr(sitemap, "short_reason", ""):
        return shortened(reason)
    parts = [plural(below, "sitemap")] if below else []
    parts.append(f"at least {plural(pages, 'page')}" if is_cut else plural(pages, "page"))
    outcome = sitemap.outcome
    if outcome.kind != "complete":
        parts.append(shortened(str(outcome)))
    return ", ".join(parts)


def _descend(sitemap: AbstractSitemap) -> Iterator[tuple[int, AbstractSitemap]]:
    """Yield all sitemaps below one in tree order, with their depth."""
    ahead = [(0, child) for child in reversed(sitemap.sub_sitemaps)]
    while ahead:
        depth, found = ahead.pop()
        yield depth, found
        ahead.extend((depth + 1, child) for child in reversed(found.sub_sitemaps))


def _sitemap_row(depth: int, sitemap: AbstractSitemap, found: _Read | None) -> Sequence[str]:
    reason = shortened(getattr(sitemap, "short_reason", ""))
    kind = type(sitemap).__name__
    name = f'<span style="padding-left:{1.2 * min(depth, _MAX_DEPTH):.1f}em">{short_link(sitemap.url)}</span>'
    count = _length(sitemap.pages)
    uncounted = "not read" if found is None else f"{found.count:,} or more"
    pages = uncounted if count is None else f"{count:,}"
    newest = _day(max(found.dates)) if found is not None and found.dates else ""
    declared = sitemap.last_modified
    return (
        name,
        escaped(_KINDS.get(kind, kind)),
        "" if reason else pages,
        "" if declared is None else str(declared.date()),
        newest,
        escaped(reason),
    )


def pages_html(pages: Pages) -> str:
    """Return the HTML of a sequence of pages: a histogram of dates and the first pages."""
    reader = _Reader()
    found = reader.read(pages) or _Read()
    parts = [_histogram(found.dates, found.count), _pages_table(pages)]
    summary = f"at least {plural(found.count, 'page')}" if reader.is_cut else plural(found.count, "page")
    return framed(type(pages).__name__, "", summary, parts)


def _pages_table(pages: Sequence[SitemapPage]) -> str:
    first = list(islice(pages, MAX_PAGE_ROWS + 1))
    head = ("Page", "Last modified", "Changes", "Priority", "")
    text = table(head, map(_page_row, first[:MAX_PAGE_ROWS]), numbers=("Priority",))
    return text + note(f"The first {MAX_PAGE_ROWS} pages.") if len(first) > MAX_PAGE_ROWS else text


def _page_row(page: SitemapPage) -> Sequence[str]:
    date = page.last_modified
    listed = {"image": page.images, "video": page.videos, "alternate": page.alternates}
    extras = [f"news: {shortened(page.news_story.title)}"] if page.news_story else []
    extras += (plural(len(values), noun) for noun, values in listed.items() if values)
    return (
        short_link(page.url),
        "" if date is None else escaped(date.isoformat(sep=" ", timespec="minutes").removesuffix(" 00:00")),
        escaped(page.change_frequency.value) if page.change_frequency else "",
        str(page.priority) if page.priority != SITEMAP_PAGE_DEFAULT_PRIORITY else "",
        escaped(", ".join(extras)),
    )


def _day(microseconds: int) -> str:
    return str((_EPOCH + timedelta(microseconds=microseconds)).date())


def _histogram(dates: array[int], pages: int) -> str:
    """Return a histogram of dates, and a line about them. The earliest and the latest hundredth are left out of it."""
    if not dates:
        return ""
    ordered = sorted(dates)
    skipped = len(ordered) // 100
    shown = ordered[skipped : len(ordered) - skipped]
    first = shown[0] - shown[0] % _DAY
    days = (shown[-1] - first) // _DAY + 1
    bars = min(_BARS, days)
    counts = [0] * bars
    for date in shown:
        counts[(date - first) // _DAY * bars // days] += 1
    line = f"{len(dates):,} of {plural(pages, 'page')} have a date, from {_day(ordered[0])} to {_day(ordered[-1])}"
    most = max(counts)
    drawn = []
    for bar, count in enumerate(counts):
        # The days of a bar: those that the division above puts there.
        start, end = -(-bar * days // bars), -(-(bar + 1) * days // bars) - 1
        span = _day(first + start * _DAY) + (f" to {_day(first + end * _DAY)}" if end > start else "")
        height = max(1.0, count / most * _HEIGHT) if count else 0.0
        drawn.append(
            f'<rect x="{bar * _BAR_WIDTH}" y="{_HEIGHT - height:.1f}" width="{_BAR_WIDTH - 2}" height="{height:.1f}">'
            f"<title>{span}: {plural(count, 'page')}</title></rect>"
        )
    width = bars * _BAR_WIDTH
    ends = f'<span>{_day(shown[0])}</span><span style="float:right">{_day(shown[-1])}</span>' if bars > 1 else ""
    return (
        f'<div style="max-width:{max(width, 200)}px"><svg role="img" aria-label="{escaped(line)}" '
        f'viewBox="0 0 {width} {_HEIGHT}" width="{width}" height="{_HEIGHT}" fill="currentColor" '
        f'style="display:block;opacity:.7;max-width:100%">{"".join(drawn)}</svg>'
        f'<div style="font-size:smaller;opacity:.75">{ends}</div></div>{note(f"Last modified: {line}.")}'
    )
