"""Pages as columns: no object for each page, ready to become arrays of Arrow without a copy.

`PlainColumns` takes pages one by one; compiled (`_columns.pxi`), it also takes plain entries straight from the buffer.
`columns()` gives what it took, as `Columns`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from usp.objects.page import SitemapPage, SitemapPageChangeFrequency

__all__ = ["CHANGE_FREQUENCIES", "DATE_ONLY", "NO_DATE", "NO_ZONE", "WITH_ZONE", "Columns", "PureColumns"]

#: What a last modification says: nothing, a day, a time without a zone, a time with one.
NO_DATE, DATE_ONLY, NO_ZONE, WITH_ZONE = range(4)
CHANGE_FREQUENCIES = tuple(SitemapPageChangeFrequency)
_NO_FREQUENCY = 255
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a document's pages.

    Each is a memoryview of what Arrow calls a buffer. Texts are UTF-8 bytes one after another, with offsets, of which
    there is one more than there are rows. Validity is a bit for each row, the lowest bit of a byte first.
    """

    length: int
    url_offsets: memoryview  #: int64
    urls: memoryview
    last_modified: memoryview  #: int64, microseconds since 1970 in UTC; what has no zone is taken to be in UTC
    last_modified_valid: memoryview
    last_modified_form: memoryview  #: uint8: NO_DATE, DATE_ONLY, NO_ZONE or WITH_ZONE
    last_modified_text_offsets: memoryview  #: int64; the text as written, where the form is not WITH_ZONE
    last_modified_texts: memoryview
    change_frequency: memoryview  #: uint8, a number of CHANGE_FREQUENCIES
    change_frequency_valid: memoryview
    priority: memoryview  #: float64; 0.5 where none is stated


def microseconds(date: datetime) -> int:
    """Since 1970 in UTC."""
    return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def form_of(date: datetime | None, text: str) -> int:
    """What a date says: see NO_DATE and the others. A text of no more than a day has no colon."""
    if date is None:
        return NO_DATE
    if date.tzinfo is not None:
        return WITH_ZONE
    return NO_ZONE if ":" in text else DATE_ONLY


def bits(flags: Iterable[bool]) -> bytearray:
    """A bit for each flag, the lowest of a byte first."""
    found = bytearray()
    for i, flag in enumerate(flags):
        if not i & 7:
            found.append(0)
        found[-1] |= flag << (i & 7)
    return found


class PureColumns:
    """Collects columns, page by page."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._urls = bytearray()
        self._url_offsets = array("q", [0])
        self._dates = array("q")
        self._forms = bytearray()
        self._texts = bytearray()
        self._text_offsets = array("q", [0])
        self._frequencies = bytearray()
        self._priorities = array("d")

    def append(self, page: SitemapPage, last_modified_text: str) -> None:
        """One page, unless its URL is there already."""
        if page.url in self._seen:
            return
        self._seen.add(page.url)
        self._urls += page.url.encode("utf-8", "replace")
        self._url_offsets.append(len(self._urls))
        date = page.last_modified
        form = form_of(date, last_modified_text)
        self._dates.append(microseconds(date) if date else 0)
        self._forms.append(form)
        if form in (DATE_ONLY, NO_ZONE):
            self._texts += last_modified_text.encode("utf-8", "replace")
        self._text_offsets.append(len(self._texts))
        frequency = page.change_frequency
        self._frequencies.append(CHANGE_FREQUENCIES.index(frequency) if frequency else _NO_FREQUENCY)
        self._priorities.append(float(page.priority))

    def columns(self) -> Columns:
        """All that was collected."""
        return Columns(
            len(self._forms),
            memoryview(self._url_offsets),
            memoryview(self._urls),
            memoryview(self._dates),
            memoryview(bits(form != NO_DATE for form in self._forms)),
            memoryview(self._forms),
            memoryview(self._text_offsets),
            memoryview(self._texts),
            memoryview(self._frequencies),
            memoryview(bits(frequency != _NO_FREQUENCY for frequency in self._frequencies)),
            memoryview(self._priorities),
        )
