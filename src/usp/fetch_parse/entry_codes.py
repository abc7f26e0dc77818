"""What is wrong with each page of a document, by the codes of its problems."""

from __future__ import annotations

from usp.objects.page import LAZY_PAGE_FIELDS, SitemapPage
from usp.objects.problem import At, Place, ProblemLog

__all__ = ["EntryCodes"]


class EntryCodes(ProblemLog):
    """A log that knows of which entry a problem is: what was noted since the entry before, and stands in this one.

    What stands before an entry, or nowhere in particular, is none of the entry's.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._noted: dict[str, At] = {}  # since the last entry: the codes, and where each was noted last

    def add(self, code: str, at: At = None, *, text: str = "", where: str = "", **values: object) -> None:
        """Note a problem."""
        self._noted[code] = at

    def end_entry(self, start: int | Place, page: SitemapPage | None) -> list[str]:
        """The codes of an entry, which is read but for what its page's fields have to be converted for."""
        for name in LAZY_PAGE_FIELDS if page is not None else ():
            getattr(page, name)
        if not self._noted:
            return []
        noted = self._noted
        if not isinstance(start, Place):  # a line may have several entries, all of which it is a problem of
            self._noted = {}
        return sorted(code for code, at in noted.items() if _is_within(at, start))


def _is_within(at: At, start: int | Place) -> bool:
    """Whether a problem is not before an entry: of lines, on none before its own."""
    if callable(at):
        at = at()
    if isinstance(at, Place):
        return isinstance(start, Place) and at.line >= start.line
    return at is not None and isinstance(start, int) and at >= start
