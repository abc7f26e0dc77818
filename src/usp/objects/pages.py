"""`Pages`: the pages of one sitemap, read from its document each time they are gone through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, overload

from usp.objects.page import SitemapPage

if TYPE_CHECKING:
    from usp.scan.columns import Columns

__all__ = ["Pages"]

#: Takes the names of columns and reads the same pages as batches of these columns, with no object for each page.
ReadColumns = Callable[[Collection[str]], Iterator["Columns"]]

_NOTHING = object()
_FEW = 1_000  # pages that are read again rather than kept


class Pages(Sequence[SitemapPage]):
    """A sequence of pages that is not kept in memory.

    Going through it reads the document and makes the pages one at a time. Asking for a page by its number, but
    for the first few, makes a list of all of them, once, and keeps it for as long as this object lives. It equals a
    list of the same pages.
    """

    __slots__ = ("_length", "_list", "_read", "columns")

    def __init__(self, read: Callable[[], Iterator[SitemapPage]], columns: ReadColumns | None = None) -> None:
        self._read = read
        self.columns = columns
        self._list: list[SitemapPage] | None = None
        self._length: int | None = None

    def anew(self) -> Pages:
        """The same pages, with nothing kept."""
        return Pages(self._read, self.columns)

    def __iter__(self) -> Iterator[SitemapPage]:
        return self._read() if self._list is None else iter(self._list)

    def __len__(self) -> int:
        if self._length is None:
            read = self.columns  # which makes no object for a page
            self._length = sum(1 for _ in self) if read is None else sum(part.length for part in read(()))
        return self._length

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    @overload
    def __getitem__(self, index: int) -> SitemapPage: ...
    @overload
    def __getitem__(self, index: slice) -> list[SitemapPage]: ...
    def __getitem__(self, index: int | slice) -> SitemapPage | list[SitemapPage]:
        if self._list is None:
            stop = index.stop if isinstance(index, slice) else index + 1
            is_near = isinstance(stop, int) and 0 < stop <= _FEW
            if is_near and not (isinstance(index, slice) and ((index.start or 0) < 0 or (index.step or 1) < 0)):
                return list(islice(self._read(), stop))[index]
            self._list = list(self._read())
        return self._list[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, Pages)):
            return NotImplemented
        return self is other or all(a == b for a, b in zip_longest(self, other, fillvalue=_NOTHING))

    __hash__ = None  # type: ignore[assignment]  # as of a list, which it equals

    def __add__(self, other: list[Any]) -> list[Any]:
        return [*self, *other] if isinstance(other, (list, Pages)) else NotImplemented

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def copy(self) -> list[SitemapPage]:
        """The pages as a list."""
        return list(self)

    def __reduce__(self) -> tuple[type[list[SitemapPage]], tuple[list[SitemapPage]]]:
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"<Pages: {len(self)}>"
