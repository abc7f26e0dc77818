"""`usp ls --sitemaps`: what is known about each sitemap, as a table for people or for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from usp.cli.output import size
from usp.cli.terminal import Paint, unpainted
from usp.cli.trees import Mark, Signs, marked
from usp.export.reading import SitemapRow
from usp.export.schema import SOURCE
from usp.objects.dates import aware
from usp.objects.wording import printable, shortened

__all__ = ["STYLES", "plain_values", "table_lines", "time_text", "tsv_lines"]

#: The part of a line -> its style for rich.
STYLES = {"heading": "bold", "facts": "cyan", "failed": "bold red", "incomplete": "yellow", "left out": "dim"}

_GAP = "  "
_NOTHING = "-"
_MAX_ETAG = 20  # characters in the table for people


def time_text(moment: datetime) -> str:
    """Write a time in UTC: 2024-05-08T10:00:00Z. A time without a zone is in UTC already."""
    try:
        return aware(moment).astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:  # in UTC, it is before the year 1 or after 9999
        return moment.isoformat()


def plain_values(row: SitemapRow) -> dict[str, Any]:
    """Return what is known about a sitemap as numbers and texts, by the names of the columns of `usp export`."""
    return {name: _plain(value) for name, value in row.values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return time_text(value)
    return round(value, 6) if isinstance(value, float) else value


def tsv_lines(rows: Iterable[SitemapRow], *, source: str | None = None, has_heading: bool = True) -> Iterator[str]:
    """Give a line for each sitemap, with tabs between all that is known.

    :param source: the name of the source, for a first column. None if there is only one source.
    """
    for number, row in enumerate(rows):
        values = plain_values(row) if source is None else {SOURCE: source, **plain_values(row)}
        if has_heading and not number:
            yield "\t".join(values) + "\n"
        yield "\t".join("" if value is None else printable(str(value)) for value in values.values()) + "\n"


class _Column(NamedTuple):
    """A column of the table for people: its heading, its name in the row, how to write it, and whether to the right."""

    heading: str
    name: str
    text: Callable[[Any], str]
    is_right: bool = True


_COLUMNS = (
    _Column("pages", "pages", "{:,}".format),
    _Column("packed", "bytes", size),
    _Column("unpacked", "bytes_inflated", size),
    _Column("lastmod", "last_modified", lambda moment: time_text(moment)[:10], is_right=False),
    _Column("newest page", "newest", lambda moment: time_text(moment)[:10], is_right=False),
    _Column("status", "status", str),
    _Column("seconds", "seconds", "{:.2f}".format),
    _Column("problems", "problems", "{:,}".format),
    _Column("etag", "etag", lambda text: printable(shortened(text, _MAX_ETAG)), is_right=False),
)


def table_lines(
    rows: Sequence[SitemapRow],
    width: int | None = None,
    *,
    signs: Signs,
    paint: Paint = unpainted,
    show_url: Callable[[str], str] = printable,
) -> Iterator[str]:
    """Give the lines of a table for people. Columns that would be empty are left out. A URL is never cut.

    :param width: that of the terminal. If a row is longer, it takes two lines: the URL, and what is known.
    """
    texts = {column: [_text(column, row) for row in rows] for column in _COLUMNS}
    there = {column: found for column, found in texts.items() if any(text != _NOTHING for text in found)}
    widths = [max(map(len, (column.heading, *found))) for column, found in there.items()]
    marks = [marked(row.sitemap, signs) for row in rows]
    names = [show_url(row.values["url"]) for row in rows]
    table_width = sum(widths) + len(_GAP) * len(widths)
    longest = max((len(name) + _length(mark) for name, mark in zip(names, marks, strict=True)), default=0)
    is_wide = width is None or table_width + longest <= width

    def line(cells: Iterable[str]) -> str:
        padded = (
            cell.rjust(width) if column.is_right else cell.ljust(width)
            for column, cell, width in zip(there, cells, widths, strict=True)
        )
        return _GAP.join(padded)

    heading = line(column.heading for column in there)
    yield paint(f"{heading}{_GAP}sitemap" if is_wide else heading.rstrip(), "heading") + "\n"
    for number, (name, mark) in enumerate(zip(names, marks, strict=True)):
        known = paint(line(found[number] for found in there.values()).rstrip(None if not is_wide else ""), "facts")
        sitemap = name if mark is None else _with_mark(name, mark, paint)
        yield f"{known}{_GAP}{sitemap}\n" if is_wide else f"{sitemap}\n{known}\n"


def _text(column: _Column, row: SitemapRow) -> str:
    value = row.values[column.name]
    return column.text(value) if value else _NOTHING  # a zero is nothing, too


def _length(mark: Mark | None) -> int:
    return 0 if mark is None else len(mark.sign) + len(mark.why) + 3


def _with_mark(name: str, mark: Mark, paint: Paint) -> str:
    return f"{paint(mark.sign, mark.style)} {name}  {paint(mark.why, mark.style)}"
