"""What a file format is: one value that says all there is to know about it.

A format writes tables of pages and sitemaps (`usp export`), answers to queries (`usp sql`), or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from usp.export.batches import Batch
from usp.scan import Type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Format", "FormatOptions", "Table", "Writer"]


class FormatOptions(NamedTuple):
    """Options that only some formats have."""

    raw_csv: bool = False  #: write CSV cells as they are, even if a spreadsheet would run them
    width: int | None = None  #: columns of the terminal, to which the text table is cut


class Table(NamedTuple):
    """A table to write: its name, the types of its columns, and the columns to write."""

    name: str
    types: Mapping[str, Type]
    chosen: Mapping[str, Type]


class Answer(NamedTuple):
    """The answer to a query: an Arrow schema, and batches of rows."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


class Writer(Protocol):
    """Writes one table in one format."""

    def encode(self, batch: Batch, /) -> Any:
        """Encode the rows of a batch. Any thread may call this, several at once."""

    def write(self, encoded: Any, /) -> None:
        """Write encoded rows. One thread calls this, in the order of the rows."""

    def close(self) -> None:
        """Write the end of the table. The file stays open."""

    def drop(self) -> None:
        """Release everything, whether or not the table was closed."""
        return  # most writers hold nothing


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    `table_writer` makes a writer of a table into a file; of a database, into the file of this name. `answer_writer`
    writes an answer and returns its number of rows. A format without one of them is not offered by that command.
    """

    name: str
    what: str  #: for --help
    suffixes: tuple[str, ...]
    table_writer: Callable[[Any, Table, FormatOptions], Writer] | None = None
    answer_writer: Callable[[Answer, BinaryIO, FormatOptions], int] | None = None
    is_text: bool = False  #: may go to a terminal, and may be gzipped
    is_database: bool = False  #: holds several tables
    needs: tuple[str, str] | None = None  #: a package, and the extra that installs it

    def __post_init__(self) -> None:
        if self.table_writer is None and self.answer_writer is None:
            raise TypeError(f"the format {self.name!r} needs a table_writer or an answer_writer")
        if not self.suffixes or not all(suffix.startswith(".") for suffix in self.suffixes):
            raise TypeError(f"the format {self.name!r} needs suffixes like '.csv'")
