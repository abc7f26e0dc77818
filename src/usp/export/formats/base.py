"""What a file format is: one value that says all there is to know about it.

A format writes tables of pages and sitemaps (`usp export`) and answers to queries (`usp sql`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from usp.export.batches import Batch
from usp.scan import Type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Format", "FormatOptions", "Table", "Writer"]


class FormatOptions(NamedTuple):
    """Options that only some formats have."""

    keep_formulas: bool = False  #: write text cells unchanged, even if a spreadsheet would run them
    width: int | None = None  #: columns of the terminal, which the text table has to fit


class Table(NamedTuple):
    """A table to write: its name, the types of its columns, and the columns to write."""

    name: str
    types: Mapping[str, Type]
    chosen: Mapping[str, Type]


class Answer(NamedTuple):
    """The answer to a query: an Arrow schema, batches of rows, and the name of its table in a database."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    name: str = "answer"


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

    `table_writer` makes a writer of a table. `answer_writer` writes an answer and returns its number of rows. Both get
    what `opener` makes of the file: of a stream, or of the file's name if `is_named`. If `opener` sees an exception,
    nothing is to be written.

    A format that lacks one of the writers is not offered by that command, and says why in `lacks`.
    """

    name: str
    what: str  #: for --help, where `description` adds the extra
    suffixes: tuple[str, ...]
    table_writer: Callable[[Any, Table, FormatOptions], Writer] | None = None
    answer_writer: Callable[[Answer, Any, FormatOptions], int] | None = None
    lacks: str = ""  #: why the format cannot write both
    opener: Callable[[Any], AbstractContextManager[Any]] = nullcontext
    is_text: bool = False  #: may go to a terminal, and may be gzipped
    is_named: bool = False  #: needs the name of a file, and cannot go to standard output
    holds_tables: bool = False  #: holds several tables
    separator: bytes = b""  #: stands between the answers to several queries, if they go to the same stream
    needs: tuple[tuple[str, ...], str] | None = None  #: packages, and the extra that installs them

    @property
    def description(self) -> str:
        """What --help says: what the format is, and which extra it needs."""
        return self.what if self.needs is None else f"{self.what}; needs the extra {self.needs[1]}"

    def __post_init__(self) -> None:
        missing = [name for name in ("table_writer", "answer_writer") if getattr(self, name) is None]
        if len(missing) == 2:
            raise TypeError(f"the format {self.name!r} needs a table_writer or an answer_writer")
        if missing and not self.lacks:
            raise TypeError(f"the format {self.name!r} needs {missing[0]}, or a reason in `lacks`")
        if not missing and self.lacks:
            raise TypeError(f"the format {self.name!r} has both writers; leave out `lacks`")
        if not self.suffixes or not all(suffix.startswith(".") for suffix in self.suffixes):
            raise TypeError(f"the format {self.name!r} needs suffixes like '.csv'")
        if self.is_text and self.is_named:
            raise TypeError(f"the format {self.name!r} cannot be both text and is_named")
