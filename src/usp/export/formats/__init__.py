"""The file formats of `usp export` and `usp sql`, and the files that they write.

To add a format, add a module to this package, with its formats in `FORMATS`. A module without `FORMATS`, a name or a
suffix that two formats share, and a format that one of the commands cannot write without a reason are errors at import.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from textwrap import fill
from typing import IO, Any

from usp.exceptions import InvalidArgumentError
from usp.export.files import ensure_writable, gzip_stream, is_stream, open_whole, whole_file
from usp.export.formats.base import Format
from usp.extras import extra

__all__ = [
    "ANSWER_FORMATS",
    "BINARY_ON_TERMINAL",
    "FORMATS",
    "STANDARD_OUTPUT",
    "TABLE_FORMATS",
    "OutputFile",
    "file_help",
    "one_result",
    "output_file",
]

STANDARD_OUTPUT = "-"
BINARY_ON_TERMINAL = "this format is not for a terminal; name a file with -o FILE, or redirect the output"
_GZIP = ".gz"
_HELD_IN_MEMORY = 1 << 20  # bytes
_HELP_WIDTH = 54
_SHARED = ("base", "cells")  # the modules that formats share


def _all_formats() -> dict[str, Format]:
    formats: dict[str, Format] = {}
    suffixes: dict[str, str] = {}
    for module in sorted(name for _, name, _ in iter_modules(__path__) if name not in _SHARED):
        for one in import_module(f"{__name__}.{module}").FORMATS:
            if one.name in formats:
                raise TypeError(f"two formats are called {one.name!r}")
            for suffix in one.suffixes:
                if (other := suffixes.setdefault(suffix, one.name)) != one.name:
                    raise TypeError(f"{suffix} is a suffix of both {other!r} and {one.name!r}")
            formats[one.name] = one
    return formats


FORMATS = _all_formats()
#: U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069. https://www.unicode.org/reports/tr9/
_DIRECTION = re.compile(rb"\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
TABLE_FORMATS = {name: one for name, one in FORMATS.items() if one.table_writer is not None}
ANSWER_FORMATS = {name: one for name, one in FORMATS.items() if one.answer_writer is not None}


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file to write, or standard output."""

    path: str
    format: Format
    is_gzipped: bool = False
    is_held: bool = False  #: standard output, too, gets all or nothing

    @property
    def is_watched(self) -> bool:
        """Whether somebody may wait for each row."""
        is_open = self.path == STANDARD_OUTPUT and not self.is_held
        return is_open and self.format.is_text and not self.is_gzipped

    @property
    def is_binary_on_terminal(self) -> bool:
        """Whether this would print binary data on a terminal."""
        is_terminal = self.path == STANDARD_OUTPUT and sys.stdout is not None and sys.stdout.isatty()
        return is_terminal and not self.format.is_text

    @property
    def holds_results(self) -> bool:
        """Whether several results can be written: as tables of a database, or one after another on standard output."""
        return self.format.holds_tables or (self.path == STANDARD_OUTPUT and self.format.is_text)

    def check(self) -> None:
        """Raise an error if the file cannot be written, as far as that is known now."""
        if self.format.needs is not None:
            modules, name = self.format.needs
            for module in modules:
                extra(module, name)
        if self.path != STANDARD_OUTPUT:
            ensure_writable(self.path)

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the file for a writer of its format. It appears under its name if this ends without an error."""
        if self.path == STANDARD_OUTPUT:
            if sys.stdout is None:
                raise OSError("there is no standard output to write to")
            sys.stdout.flush()
            is_seen = sys.stdout.isatty() and not self.is_gzipped
            output: Any = _TerminalText(sys.stdout.buffer) if is_seen else sys.stdout.buffer
            held = _held(output) if self.is_held else nullcontext(output)
            with held as whole, self._compressed(whole) as stream, self.format.opener(stream) as file:
                yield file
            sys.stdout.buffer.flush()
        elif self.format.is_named:
            with whole_file(self.path) as name, self.format.opener(name) as file:
                yield file
        else:
            with open_whole(self.path) as whole, self._compressed(whole) as stream, self.format.opener(stream) as file:
                yield file

    @contextmanager
    def _compressed(self, stream: IO[bytes]) -> Iterator[IO[bytes]]:
        if not self.is_gzipped:
            yield stream
            return
        with gzip_stream(stream) as compressed:
            yield compressed


class _TerminalText(io.BufferedIOBase):
    """Writes UTF-8 to a terminal, with characters escaped that would show the text around them in another order."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Write whole characters."""
        self._stream.write(_DIRECTION.sub(_escaped, data))
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def _escaped(found: re.Match[bytes]) -> bytes:
    return found[0].decode().encode("unicode_escape")


@contextmanager
def _held(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """Give a temporary file. Copy it to the stream if this ends without an error."""
    with SpooledTemporaryFile(_HELD_IN_MEMORY) as held:
        yield held
        held.seek(0)
        copyfileobj(held, stream)


def one_result(format_name: str) -> str:
    """Return the message for several results that cannot be written to one file of a format."""
    *others, last = [one.suffixes[0] for one in TABLE_FORMATS.values() if one.holds_tables]
    return (
        f"a file in the format {format_name} holds one result, and this query has several;"
        f" write to {', '.join(others)} or {last}, or run one SELECT"
    )


def file_help(formats: Mapping[str, Format]) -> str:
    """Say in a few lines of --help how the name of a file ends in each of these formats."""
    suffixes = ", ".join(one.suffixes[0] for one in formats.values())
    *texts, last = [one.suffixes[0] for one in formats.values() if one.is_text]
    return fill(f"write to this file: {suffixes}; {', '.join(texts)} and {last} also with {_GZIP}", _HELP_WIDTH)


def output_file(
    path: str | os.PathLike[str], format_name: str | None = None, formats: Mapping[str, Format] = TABLE_FORMATS
) -> OutputFile:
    """Return the file to write, in the format of this name, or in that of its suffix.

    :raises InvalidArgumentError: if there is no such format, or if it does not go with the file's name.
    """
    path = os.fspath(path)
    if format_name is not None and format_name not in formats:
        raise InvalidArgumentError(f"There is no format {format_name!r}; there are {', '.join(formats)}")
    is_gzipped = path.lower().endswith(_GZIP)
    suffix = os.path.splitext(path[: -len(_GZIP)] if is_gzipped else path)[1].lower()
    name = format_name or next((name for name, one in formats.items() if suffix in one.suffixes), None)
    if name is None:
        if path == STANDARD_OUTPUT:
            raise InvalidArgumentError(f"Say in which format to write: {', '.join(formats)}")
        endings = ", ".join(ending for one in formats.values() for ending in one.suffixes)
        raise InvalidArgumentError(
            f"No format has the ending of {path!r}; let the name end with one of {endings}; or choose a format"
        )
    found = formats[name]
    if is_gzipped and not found.is_text:
        raise InvalidArgumentError(f"Files in the format {name} are not compressed with gzip: leave out {_GZIP}")
    if found.is_named and (path == STANDARD_OUTPUT or is_stream(path)):
        raise InvalidArgumentError(f"The format {name} cannot be written to standard output; name a file")
    return OutputFile(path, found, is_gzipped)
