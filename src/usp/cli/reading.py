"""Read the targets of a command: what every command does before it prints, writes or checks something."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from usp.cli.output import LogLines, log_to, say
from usp.cli.progress import ProgressMeter, progress_line, scan_line
from usp.cli.site import site_client, tree_options
from usp.exceptions import InvalidArgumentError
from usp.limits import MEMORY_BYTES
from usp.objects.problem import printable
from usp.sources import ReadAs, Source, SourceKind, find_sources

if TYPE_CHECKING:
    from usp.objects.sitemap import AbstractSitemap
    from usp.stream import SitemapStream
    from usp.web_client.abstract_client import AbstractWebClient

__all__ = ["Reader", "find_targets", "open_reader", "start_log"]

_KEY_OF_END = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"


def find_targets(arguments: argparse.Namespace) -> tuple[Source, ...]:
    """Return the sources that the targets are. Refuse targets that are none."""
    read_as: ReadAs = "site" if arguments.site else "sitemap" if arguments.sitemap else "auto"
    try:
        # Headers are secrets, such as cookies; and a host that answers over http only gets them unprotected.
        https_only = bool(arguments.header)
        with scan_line(is_shown=not arguments.quiet) as progress:
            return find_sources(
                arguments.targets, url=arguments.url, read_as=read_as, https_only=https_only, progress=progress
            )
    except InvalidArgumentError as error:
        arguments.refuse(re.sub(r"^url\b", "--url", str(error)))
        raise


class Reader:
    """Reads the sources of a command one after another."""

    def __init__(
        self,
        sources: tuple[Source, ...],
        client: AbstractWebClient | None,
        meter: ProgressMeter,
        options: dict[str, Any],
    ) -> None:
        self.sources = sources
        self.client = client
        self.options = options
        self._meter = meter
        self._notes: list[str] = []

    def streams(self, memory_bytes: int = MEMORY_BYTES) -> Iterator[tuple[str | None, SitemapStream]]:
        """Open the stream of each source, when it is its turn. With several, each has its name."""
        for number, source in enumerate(self.sources):
            if number:
                self._meter.next_source()
            stream = source.stream(
                self.client, memory_bytes=memory_bytes, pages_once=True, bounds_reading=True, **self.options
            )
            yield source.target if len(self.sources) > 1 else None, stream
            self.note(*stream.notes)

    @property
    def meter(self) -> ProgressMeter:
        """What the progress line shows."""
        return self._meter

    def note(self, *notes: str) -> None:
        """Keep notes for the end: the progress is in the way now."""
        self._notes += notes

    def say_notes(self) -> None:
        """Say how sources were read, if not as written."""
        for note in self._notes:
            say(f"usp: {printable(note)}")
        self._notes.clear()

    def cost(self, trees: tuple[AbstractSitemap, ...]) -> tuple[int, float]:
        """Return the bytes and the seconds that reading has taken."""
        size = self._meter.bytes
        if not size:  # of files
            sitemaps = (sitemap for tree in trees for sitemap in (tree, *tree.all_sitemaps()))
            size = sum(sitemap.transport.size for sitemap in sitemaps if sitemap.transport is not None)
        return size, self._meter.seconds()


@contextmanager
def open_reader(
    arguments: argparse.Namespace, sources: tuple[Source, ...], *, is_progress_shown: bool = True
) -> Iterator[Reader]:
    """Open a reader, with the log and the progress that the options ask for. Say its notes in the end."""
    log = start_log(arguments)
    meter = ProgressMeter()
    is_quiet = arguments.quiet
    options = tree_options(arguments) | {"progress": None if is_quiet else meter}  # counting pages takes a little time
    if not is_quiet:
        _say_first(arguments, sources)
    shown = progress_line(meter, log) if is_progress_shown and not is_quiet else nullcontext()
    is_local = all(source.kind.is_local for source in sources)  # then importing requests would only take time
    with nullcontext() if is_local else site_client(arguments) as client:
        reader = Reader(sources, client, meter, options)
        try:
            with shown:
                yield reader
        finally:
            if not is_quiet:
                reader.say_notes()


def start_log(arguments: argparse.Namespace) -> LogLines | None:
    """Send usp's log where the options say: nowhere by default. Return the handler if it is standard error."""
    return log_to(arguments.log_file, arguments.verbose)


def _say_first(arguments: argparse.Namespace, sources: tuple[Source, ...]) -> None:
    if arguments.insecure:
        say("usp: warning: TLS certificates are not verified (--insecure)")
    for source in sources:
        if source.note:
            say(f"usp: {printable(source.note)}")
        is_stdin = source.kind is SourceKind.STANDARD_INPUT
        if is_stdin and sys.stdin is not None and sys.stdin.isatty():
            say(f"usp: reading standard input; press {_KEY_OF_END} to end it")
