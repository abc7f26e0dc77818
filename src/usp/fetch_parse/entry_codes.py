"""What is wrong with each entry of a document, by the codes of its problems."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from usp.fetch_parse.inspector import CheckingReader
from usp.objects.problem import At, Place, ProblemLog
from usp.scan.columns import PAGE_TYPES, Columns, PureColumns, sparse_column
from usp.scan.elements import Element
from usp.scan.plain import READERS

if TYPE_CHECKING:
    from usp.fetch_parse.parsers import AbstractPagesParser

__all__ = ["with_problems"]


def with_problems(parser: AbstractPagesParser, reader: PureColumns, wanted: Collection[str]) -> Columns:
    """What a reader collected, with what is wrong with each page, where that is wanted and there may be anything."""
    rows: dict[int, list[str]] = {}
    if "problems" in wanted and reader.is_doubtful:
        found = EntryCodes(parser.url, getattr(parser, "readers", READERS).check)
        parser.inspect(found, found)
        rows = {reader.row_of(url): codes for url, codes in found.codes.items()}
    columns = reader.columns()
    if not rows:
        return columns
    problems = sparse_column(PAGE_TYPES["problems"], columns.length, rows)
    return Columns(columns.length, {**columns.columns, "problems": problems})


class EntryCodes(ProblemLog):
    """A log and an inspector in one: collects the codes of problems for the URLs of entries.

    What stands before an entry, or nowhere in particular, is none of the entry's.
    """

    def __init__(self, url: str, reader: Callable[[], CheckingReader]) -> None:
        super().__init__(url)
        self.reader = reader()
        self.codes: dict[str, list[str]] = {}
        self._noted: list[tuple[str, At]] = []  # since the last entry

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Note a problem."""
        self.counts[code] += 1
        self._noted.append((code, at))

    def entry(self, entry: Element, url: str | None, /) -> None:
        """An entry, after all that is wrong with it."""
        noted, self._noted = self._noted, []
        if url is None or not noted:
            return
        codes = [code for code, at in noted if _is_within(at, entry.at)]
        if codes:
            self.codes[url] = list(dict.fromkeys([*self.codes.get(url, ()), *codes]))


def _is_within(at: At, start: int | Place) -> bool:
    """Whether a problem is not before an entry. Of one among offsets that has a place, the place is before all."""
    if callable(at):
        at = at()
    if isinstance(at, Place):
        return isinstance(start, Place) and at >= start
    return at is not None and isinstance(start, int) and at >= start
