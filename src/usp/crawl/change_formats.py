"""The formats of `usp diff`: all that `usp sql` writes, and text, Atom and HTML.

Everything in a page comes from a website. In Atom and HTML, all of it is escaped, characters that XML does not allow
are replaced, and only http and https URLs become links.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape
from typing import BinaryIO
from urllib.parse import quote

from usp.crawl.changes import Change, ChangeKind
from usp.export.dedupe import FirstOfEach
from usp.export.formats import ANSWER_FORMATS
from usp.export.formats.base import Answer, Format, FormatOptions
from usp.objects.problem import printable
from usp.objects.wording import plural
from usp.version import __version__

__all__ = ["ATOM_END", "SIGNS", "atom_entry", "atom_head", "change_formats", "change_line", "counts_text"]

SIGNS = {ChangeKind.ADDED: "+", ChangeKind.REMOVED: "-", ChangeKind.CHANGED: "~", ChangeKind.MOVED: ">"}
_SHOWN_PAGES = 10  # of each kind, on a terminal
_SHOWN_COUNTS = 20  # sites or sections, on a terminal
_MOST_HTML = 50_000  # pages in one HTML file: browsers stall with more
ATOM_END = b"</feed>\n"
_ONLY_CHANGES = "it shows changes, and not any table"
#: What XML 1.0 does not allow. https://www.w3.org/TR/xml/#charsets
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: What an IRI does not allow. https://www.rfc-editor.org/rfc/rfc3987#section-2.2
_NOT_IRI = re.compile(r'[\0-\x20<>"{}|\\^`\x7f-\x9f]|%(?![0-9A-Fa-f]{2})')


def change_formats(subject: str, title: str, moment: datetime) -> dict[str, Format]:
    """Return the formats by their names.

    :param subject: what is compared: it tells feeds apart, and stays the same from run to run.
    :param title: of a feed or a web page.
    :param moment: when the later side was read, for pages without a date.
    """
    of_changes = {"text": _TEXT, **ANSWER_FORMATS, "atom": _ATOM, "html": _HTML}
    about = _About(subject, title, moment)
    own: dict[str, Callable[[Answer, BinaryIO, FormatOptions, _About], int]] = {
        "text": _write_text,
        "atom": _write_atom,
        "html": _write_html,
    }
    return {
        name: one if name not in own else replace(one, answer_writer=_bound(own[name], about))
        for name, one in of_changes.items()
    }


@dataclass(frozen=True, slots=True)
class _About:
    subject: str
    title: str
    moment: datetime


def _bound(
    write: Callable[[Answer, BinaryIO, FormatOptions, _About], int], about: _About
) -> Callable[[Answer, BinaryIO, FormatOptions], int]:
    return lambda answer, stream, options: write(answer, stream, options, about)


def _changes(answer: Answer) -> Iterator[Change]:
    for batch in answer.batches:
        yield from map(Change.of_row, batch.to_pylist())


# Text


def change_line(change: Change) -> str:
    """Return one line on a change: a sign, the URL, and which fields changed."""
    fields = f" ({', '.join(change.fields)})" if change.fields else ""
    return f"{SIGNS[change.change]} {printable(change.url)}{fields}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return a text such as "3 added, 1 removed"."""
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in ChangeKind if counts.get(kind)) or "no changes"


def _write_text(answer: Answer, stream: BinaryIO, options: FormatOptions, about: _About) -> int:
    """Write a line for each change; on a terminal, in short: counts, and the first pages of each kind."""
    if options.width is not None:
        return _write_short(answer, stream)
    count = 0
    for change in _changes(answer):
        stream.write(f"{change_line(change)}\n".encode("utf-8", "backslashreplace"))
        count += 1
    return count


def _write_short(answer: Answer, stream: BinaryIO) -> int:
    total: Counter[str] = Counter()
    by_site: dict[str, Counter[str]] = {}
    by_section: dict[str, Counter[str]] = {}
    first: dict[ChangeKind, list[str]] = {kind: [] for kind in ChangeKind}
    for change in _changes(answer):
        total[change.change] += 1
        by_site.setdefault(change.site, Counter())[change.change] += 1
        section = f"{change.site.rstrip('/')}/{change.section or ''}"
        by_section.setdefault(section, Counter())[change.change] += 1
        if len(first[change.change]) < _SHOWN_PAGES:
            first[change.change].append(change_line(change))
    lines = [*_count_lines(by_site, "site"), *_count_lines(by_section, "section")]
    for kind, shown in first.items():
        if shown:
            more = total[kind] - len(shown)
            lines += ["", *shown, *([f"  and {more:,} more {kind}; to see all, add | cat"] if more else [])]
    stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
    return total.total()


def _count_lines(counts: Mapping[str, Counter[str]], what: str) -> Iterator[str]:
    """Give lines with the numbers of each site or section, those with the most changes first."""
    ordered = sorted(counts.items(), key=lambda item: -item[1].total())
    if ordered:
        yield f"by {what}:"
    for name, of_kinds in ordered[:_SHOWN_COUNTS]:
        yield f"  {printable(name)}: {counts_text(of_kinds)}"
    if len(ordered) > _SHOWN_COUNTS:
        yield f"  and {plural(len(ordered) - _SHOWN_COUNTS, f'more {what}')}"


# Atom


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _is_web_url(url: str) -> bool:
    """Return whether a URL may become a link."""
    return url.lower().startswith(("http://", "https://"))


def _urn(*parts: str) -> str:
    digest = hashlib.sha1("\0".join(parts).encode("utf-8", "surrogatepass"), usedforsecurity=False)
    return f"urn:sha1:{digest.hexdigest()}"


def _write_atom(answer: Answer, stream: BinaryIO, options: FormatOptions, about: _About) -> int:
    """Write a feed of the pages that are new or changed. A page that several sites list is in it once."""
    stream.write(atom_head(about.subject, about.title, about.moment))
    count, seen = 0, FirstOfEach()
    for change in _changes(answer):
        if change.change in (ChangeKind.ADDED, ChangeKind.CHANGED):
            mark, entry = atom_entry(change, change.last_modified or about.moment)
            if seen.is_first(mark):
                stream.write(entry)
                count += 1
    stream.write(ATOM_END)
    return count


def atom_head(subject: str, title: str, moment: datetime) -> bytes:
    """Return the start of a feed, up to its first entry. `ATOM_END` ends it.

    https://www.rfc-editor.org/rfc/rfc4287
    """
    return f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{_urn("feed", subject)}</id>
<title>{_xml(title)}</title>
<updated>{_written(moment)}</updated>
<author><name>usp</name></author>
<generator version="{_xml(__version__)}">usp</generator>
""".encode("utf-8", "replace")


def atom_entry(change: Change, updated: datetime) -> tuple[str, bytes]:
    """Return the id of an entry, and the entry.

    The id depends on the URL, the kind of change and the date of the page only. So a reader shows a page again if it
    has changed again, and not if the feed is written again.
    """
    date = change.last_modified
    mark = _urn(change.change, change.url, "" if date is None else _written(date))
    what = f"changed: {', '.join(change.fields)}" if change.fields else str(change.change)
    entry = f"""<entry>
<id>{mark}</id>
<title>{_xml(change.title or change.url)}</title>
{_atom_link(change.url)}
<updated>{_written(updated)}</updated>
<category term="{change.change}"/>
<summary>{_xml(what)}</summary>
</entry>
"""
    return mark, entry.encode("utf-8", "replace")


def _atom_link(url: str) -> str:
    """Return the link of an entry. An entry without one needs content in its place."""
    if not _is_web_url(url):
        return f"<content>{_xml(url)}</content>"
    return f'<link href="{_xml(_NOT_IRI.sub(lambda match: quote(match[0]), url))}"/>'


# HTML

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em;max-width:80em}table{border-collapse:collapse}"
    "td,th{padding:.1em 1em .1em 0;text-align:left;vertical-align:top}td.n{text-align:right}"
    ".added{color:#0a6b2d}.removed{color:#a3161b}.changed{color:#7a4b00}.moved{color:#4a4a8a}"
)


def _write_html(answer: Answer, stream: BinaryIO, options: FormatOptions, about: _About) -> int:
    """Write one web page, which needs no other file."""
    total: Counter[str] = Counter()
    by_site: dict[str, Counter[str]] = {}
    rows: list[str] = []
    for change in _changes(answer):
        total[change.change] += 1
        by_site.setdefault(change.site, Counter())[change.change] += 1
        if len(rows) < _MOST_HTML:
            rows.append(_html_row(change))
    title = _xml(about.title)
    stream.write(
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{_written(about.moment)}:"
        f" {counts_text(total)}</p>\n".encode("utf-8", "replace")
    )
    kinds = "".join(f"<th>{kind}</th>" for kind in ChangeKind)
    _write_table(stream, f"<tr><th>site</th>{kinds}</tr>", (_count_row(*item) for item in by_site.items()))
    head = "<tr><th></th><th>page</th><th>fields</th><th>last modified</th><th>before</th></tr>"
    _write_table(stream, head, rows)
    if (more := total.total() - len(rows)) > 0:
        stream.write(f"<p>and {more:,} more</p>\n".encode())
    stream.write(b"</body>\n</html>\n")
    return total.total()


def _write_table(stream: BinaryIO, head: str, rows: Iterator[str] | list[str]) -> None:
    stream.write(f"<table>\n{head}\n".encode())
    stream.writelines(row.encode("utf-8", "replace") for row in rows)
    stream.write(b"</table>\n")


def _count_row(site: str, counts: Counter[str]) -> str:
    cells = "".join(f'<td class="n">{counts[kind]:,}</td>' for kind in ChangeKind)
    return f"<tr><td>{_xml(site)}</td>{cells}</tr>\n"


def _html_row(change: Change) -> str:
    url = _xml(change.url)
    shown = _xml(change.title) if change.title else url
    page = f'<a href="{url}" rel="noreferrer nofollow">{shown}</a>' if _is_web_url(change.url) else shown
    dates = (change.last_modified, change.old_last_modified)
    cells = (SIGNS[change.change], page, ", ".join(change.fields), *(_written(date) if date else "" for date in dates))
    return f'<tr class="{change.change}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"


def _unbound(answer: Answer, stream: BinaryIO, options: FormatOptions) -> int:
    raise TypeError("change_formats() gives the writer")


_TEXT = Format(
    "text", "a line for each change; counts on a terminal", (".txt",), None, _unbound, _ONLY_CHANGES, is_text=True
)
_ATOM = Format(
    "atom", "a feed of new and changed pages", (".atom", ".xml"), None, _unbound, _ONLY_CHANGES, is_text=True
)
_HTML = Format("html", "a web page", (".html", ".htm"), None, _unbound, _ONLY_CHANGES, is_text=True)
