"""Trees as text: nested with tabs for programs, drawn with lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, NamedTuple

from usp.cli.pages import ChosenPages, Preview, shown_url, shown_urls
from usp.cli.terminal import Paint, can_show, unpainted
from usp.export.batches import FirstPlaces
from usp.objects.outcome import OutcomeKind
from usp.objects.sitemap import AbstractIndexSitemap, AbstractSitemap, InvalidSitemap
from usp.objects.wording import plural, printable

__all__ = ["STYLES", "DrawnTree", "Mark", "Signs", "marked", "signs_for", "tabtree"]

#: The part of a line -> its style for rich. Signs say the same as colours.
STYLES = {
    "lines": "dim",
    "about": "cyan",
    "failed": "bold red",
    "incomplete": "yellow",
    "left out": "dim",
    "more": "dim",
}

_LINES = 100  # of pages, in a tree that is cut short; more if there are many sitemaps
_MIN_PAGES, _MAX_PAGES = 3, 10  # of one sitemap then
_MAX_SITEMAPS = 50  # of one index then


def tabtree(
    tree: AbstractSitemap,
    pages: ChosenPages,
    prefix: str = "",
    *,
    names: Mapping[str, str] = MappingProxyType({}),
    with_pages: bool = True,
    depth: int = 0,
    places: FirstPlaces | None = None,
) -> Iterator[tuple[int, str]]:
    """Give lines for each sitemap and its pages, indented with tabs, and the number of pages in them.

    The homepage keeps its prefix. The pages of a sitemap are given at its first place only.

    :param names: the names of files whose URL nobody knows, by the URLs that stand for them.
    """
    yield 0, "\t" * depth + shown_url(names.get(tree.url, tree.url), prefix if depth else "") + "\n"
    indent = "\t" * (depth + 1)
    places = FirstPlaces() if places is None else places
    for block in pages.blocks(tree) if places.is_first(tree) and with_pages else ():
        if block.urls:
            yield len(block.urls), indent + f"\n{indent}".join(shown_urls(block.urls, prefix)) + "\n"
    for sitemap in tree.sub_sitemaps:
        below = tabtree(sitemap, pages, prefix, names=names, with_pages=with_pages, depth=depth + 1, places=places)
        yield from below


class Signs(NamedTuple):
    """The characters that a tree is drawn with."""

    branch: str = "├── "
    last: str = "└── "
    line: str = "│   "
    failed: str = "✗"
    more: str = "…"
    space: str = "    "
    incomplete: str = "!"
    left_out: str = "-"


_PLAIN_SIGNS = Signs("|-- ", "`-- ", "|   ", "x", "...")


def signs_for(stream: IO[str] | None) -> Signs:
    """Return the signs that a stream can show."""
    return Signs() if can_show(stream, "".join(Signs())) else _PLAIN_SIGNS


class Mark(NamedTuple):
    """What is wrong with a sitemap: a sign, its style, and why."""

    sign: str
    style: str
    why: str


def marked(sitemap: AbstractSitemap, signs: Signs) -> Mark | None:
    """Return what is wrong with a sitemap, or None."""
    if isinstance(sitemap, InvalidSitemap):
        why = printable(sitemap.short_reason)
        if sitemap.cause.is_choice or not (sitemap.cause.is_loss or sitemap.transport):
            return Mark(signs.left_out, "left out", why)
        return Mark(signs.failed, "failed", why)
    if sitemap.transport is not None and not sitemap.transport.is_whole:
        return Mark(signs.incomplete, "incomplete", "cut short")
    return None


@dataclass(slots=True)
class _Below:
    """What a sitemap and all below it have."""

    preview: Preview
    sitemaps: int = 0
    failed: int = 0
    pages: int = 0
    chosen: int = 0
    is_again: bool = False  # its pages are at an earlier place


class DrawnTree:
    """A tree with lines, as `tree` draws folders, and with the number of pages of each sitemap.

    :param names: the names of files whose URL nobody knows, by the URLs that stand for them.
    :param is_whole: draw everything. Otherwise only the first pages of each sitemap, and the first sitemaps of each
        index.
    """

    def __init__(
        self,
        tree: AbstractSitemap,
        pages: ChosenPages,
        prefix: str = "",
        *,
        names: Mapping[str, str] = MappingProxyType({}),
        is_whole: bool = True,
        with_pages: bool = True,
        signs: Signs = _PLAIN_SIGNS,
        paint: Paint = unpainted,
    ) -> None:
        self._tree = tree
        self._pages = pages
        self._prefix = prefix
        self._names = names
        self._is_whole = is_whole
        self._with_pages = with_pages
        self._signs = signs
        self._paint = paint
        few = sum(1 for _ in tree.all_sitemaps()) + 1
        self._most = max(_MIN_PAGES, min(_MAX_PAGES, _LINES // few)) + 1 if with_pages else 0
        self._below: dict[int, _Below] = {}
        self._count(tree, FirstPlaces())

    @property
    def chosen_pages(self) -> int:
        """The number of pages in the tree, without those that --since leaves out."""
        return self._below[id(self._tree)].chosen

    def lines(self) -> Iterator[str]:
        """Give the lines of the tree, some at a time."""
        about = [self._about(self._tree)]
        if (kind := self._tree.outcome.kind) is not OutcomeKind.COMPLETE:
            about.append(str(kind))
        yield self._line("", self._tree, shown_url(self._name(self._tree)), ", ".join(filter(None, about)))
        yield from self._inside(self._tree, "")

    def _count(self, sitemap: AbstractSitemap, places: FirstPlaces) -> _Below:
        is_again = not places.is_first(sitemap)
        preview = Preview(0, 0, []) if is_again else self._pages.preview(sitemap, self._most)
        is_failed = isinstance(sitemap, InvalidSitemap)
        found = _Below(preview, 0, is_failed, preview.pages, preview.chosen, is_again)
        for sub in sitemap.sub_sitemaps:
            below = self._count(sub, places)
            found.sitemaps += below.sitemaps + 1
            found.failed += below.failed
            found.pages += below.pages
            found.chosen += below.chosen
        self._below[id(sitemap)] = found
        return found

    def _inside(self, sitemap: AbstractSitemap, indent: str) -> Iterator[str]:
        subs = sitemap.sub_sitemaps
        shown = subs if self._is_whole or len(subs) <= _MAX_SITEMAPS + 1 else subs[:_MAX_SITEMAPS]
        if self._with_pages:
            yield from self._page_lines(sitemap, indent, is_end=not subs)
        for number, sub in enumerate(shown, 1):
            is_last = number == len(subs)
            yield self._line(
                indent + (self._signs.last if is_last else self._signs.branch),
                sub,
                shown_url(self._name(sub), self._prefix),
                self._about(sub),
            )
            yield from self._inside(sub, indent + (self._signs.space if is_last else self._signs.line))
        if hidden := subs[len(shown) :]:
            yield self._more(indent, self._about_hidden(hidden))

    def _page_lines(self, sitemap: AbstractSitemap, indent: str, *, is_end: bool) -> Iterator[str]:
        _, chosen, urls = self._below[id(sitemap)].preview
        if not chosen:
            return
        rest = 0
        blocks: Iterable[list[str]] = [urls]
        if self._is_whole:
            blocks = (block.urls for block in self._pages.blocks(sitemap))
        elif chosen > self._most:
            blocks = [urls[:-1]]
            rest = chosen - len(urls) + 1
        branch = self._paint(indent + self._signs.branch, "lines")
        last = self._paint(indent + self._signs.last, "lines")
        left = chosen - rest
        for block in blocks:
            if not block:
                continue
            left -= len(block)
            shown = shown_urls(block, self._prefix)
            if is_end and not rest and not left:
                yield "".join(f"{branch}{url}\n" for url in shown[:-1]) + f"{last}{shown[-1]}\n"
            else:
                yield "".join(f"{branch}{url}\n" for url in shown)
        if rest:
            yield self._more(indent, f"and {rest:,} more", is_last=is_end)

    def _more(self, indent: str, what: str, *, is_last: bool = True) -> str:
        lines = self._paint(indent + (self._signs.last if is_last else self._signs.branch), "lines")
        return f"{lines}{self._paint(f'{self._signs.more} {what}', 'more')}\n"

    def _line(self, lines: str, sitemap: AbstractSitemap, url: str, about: str) -> str:
        mark = marked(sitemap, self._signs)
        sign, why = "", ""
        if mark is not None:
            sign = f"{self._paint(mark.sign, mark.style)} "
            why = f"  {self._paint(mark.why, mark.style)}"
        shown_about = f"  {self._paint(about, 'about')}" if about else ""
        return f"{self._paint(lines, 'lines') if lines else ''}{sign}{url}{shown_about}{why}\n"

    def _name(self, sitemap: AbstractSitemap) -> str:
        return self._names.get(sitemap.url, sitemap.url)

    def _about(self, sitemap: AbstractSitemap) -> str:
        if isinstance(sitemap, InvalidSitemap):
            return ""
        below = self._below[id(sitemap)]
        parts = [plural(below.sitemaps, "sitemap")] if isinstance(sitemap, AbstractIndexSitemap) else []
        if below.is_again and not sitemap.sub_sitemaps:
            parts.append("pages listed above")
        elif below.pages or not parts:
            parts.append(self._page_count(below))
        return ", ".join(parts)

    def _page_count(self, below: _Below) -> str:
        pages = plural(below.pages, "page")
        return pages if self._pages.is_all else f"{below.chosen:,} of {pages}"

    def _about_hidden(self, sitemaps: list[AbstractSitemap]) -> str:
        belows = [self._below[id(sitemap)] for sitemap in sitemaps]
        pages = sum(below.chosen for below in belows)
        failed = sum(below.failed for below in belows)
        parts = [f"and {plural(len(sitemaps), 'more sitemap')}", plural(pages, "page")]
        return ", ".join([*parts, f"{failed:,} missing"] if failed else parts)
