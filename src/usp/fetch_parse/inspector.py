"""What looks at the entries of a document, beside what it takes to read them: the rules of a check."""

from __future__ import annotations

from typing import Protocol

from usp.scan.elements import Element
from usp.scan.plain import Reader

__all__ = ["CheckingReader", "Inspector"]


class CheckingReader(Reader, Protocol):
    """A reader that remembers whether it passed over any entries."""

    @property
    def has_pages(self) -> bool:
        """Whether it did."""


class Inspector(Protocol):
    """Looks at the entries of a document while it is read for what is wrong with it."""

    @property
    def reader(self) -> CheckingReader:
        """Passes over the entries that need not be looked at."""

    def entry(self, entry: Element, url: str | None, /) -> None:
        """An entry that was not passed over, and its URL, if it has any. What could not be read of it was noted."""
