"""`usp.open`: the sitemaps of any source, or of several, as one stream."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from usp.exceptions import InvalidArgumentError, TreeInterrupted, UspError
from usp.objects.outcome import Outcome, combined
from usp.objects.sitemap import AbstractSitemap
from usp.objects.wording import described, plural
from usp.sources.targets import ReadAs, Source, SourceKind, find_source
from usp.stream import AsyncSitemapStream, HomepageOptions, SitemapStream, reusable
from usp.web_client.abstract_client import AbstractAsyncWebClient, AbstractWebClient

if TYPE_CHECKING:
    from usp.warc.archive import ScanProgress

__all__ = ["AsyncSourceStream", "SourceStream", "Targets", "find_sources"]

#: One target or several: URLs, hosts, paths, or "-" for standard input.
Targets = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def find_sources(
    targets: Targets,
    *,
    url: str | None = None,
    read_as: ReadAs = "auto",
    https_only: bool = False,
    progress: ScanProgress | None = None,
) -> tuple[Source, ...]:
    """Find out what each target is; see `find_source`. Each site of a web archive or a crawl folder is a source.

    All web archives are read as one, in the place of the first: a site may be in several files.

    :param progress: called now and then while a web archive is read.
    """
    is_one = (
        isinstance(targets, (str, bytes, os.PathLike)) or hasattr(targets, "read") or not isinstance(targets, Iterable)
    )
    listed: list[Any] = [targets] if is_one else list(targets)  # type: ignore[arg-type]
    if not listed:
        raise InvalidArgumentError("give a target: a site, a sitemap, a file, a folder, or - for standard input")
    sources = tuple(find_source(target, read_as=read_as, https_only=https_only) for target in listed)
    if url is not None:
        if len(sources) > 1 and any(source.kind is not SourceKind.WEB_ARCHIVE for source in sources):
            raise InvalidArgumentError("url says where one file or folder will be served; give one target only")
        sources = (find_source(listed[0], url=url, read_as=read_as, https_only=https_only), *sources[1:])
    sources = _joined(sources)
    if sum(source.kind is SourceKind.STANDARD_INPUT for source in sources) > 1:
        raise InvalidArgumentError("standard input (-) can be read only once")
    return tuple(site for source in sources for site in source.sites(progress))


def _joined(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Join all web archives to the first of them. A file that is given twice counts once."""
    found = {os.path.realpath(source.path): source for source in sources if source.kind is SourceKind.WEB_ARCHIVE}
    if len(found) < 2:
        return sources
    first, *others = found.values()
    joined = replace(first, others=tuple(others))
    return tuple(
        joined if source is first else source
        for source in sources
        if source is first or source.kind is not SourceKind.WEB_ARCHIVE
    )


class _Read:
    """What was read so far. A stream and its generator share it.

    The generator has no reference to the stream, so that dropping the stream ends it at once.
    """

    def __init__(self, sources: tuple[Source, ...]) -> None:
        self.sources = sources
        self.source = sources[0]
        self.trees: list[AbstractSitemap] = []
        self.notes: list[str] = []
        self.names: dict[str, str] = {}
        self.part: SitemapStream | AsyncSitemapStream | None = None  # that is being read

    def start(self, part: SitemapStream | AsyncSitemapStream) -> None:
        """Go on to the next source."""
        self.source = self.sources[len(self.trees)]
        self.notes += [self.source.note] if self.source.note else []
        self.part = part

    def fail(self) -> None:
        """Forget a source that cannot be read, such as a file without permission: it has no tree."""
        self.part = None

    def end(self) -> None:
        """Keep what was read of the source that was being read, if there is one."""
        if (part := self.part) is not None:
            self.part = None
            self.trees.append(part.tree)
            self.notes += part.notes
            self.names = part.names


class _Several:
    """What both streams share: the sources, and the trees of those that were read."""

    def __init__(self, sources: tuple[Source, ...]) -> None:
        self.sources = sources
        self._read = _Read(sources)

    def __repr__(self) -> str:
        return described(self, "", f"{len(self.trees):,} of {plural(len(self.sources), 'source')} read")

    @property
    def source(self) -> str:
        """The target that the sitemap given last belongs to, as you gave it, but without a user and password."""
        return self._read.source.target

    @property
    def ancestors(self) -> tuple[AbstractSitemap, ...]:
        """The sitemaps above the one given last, outermost first."""
        return () if self._read.part is None else self._read.part.ancestors

    @property
    def names(self) -> dict[str, str]:
        """The names of files by the URLs of their sitemaps, for the target that is being read or was read last."""
        return self._read.names if self._read.part is None else self._read.part.names

    @property
    def notes(self) -> tuple[str, ...]:
        """How targets were read, if not as written: over http, as a whole site, or as a folder of the same name."""
        return (*self._read.notes, *(() if self._read.part is None else self._read.part.notes))

    @property
    def trees(self) -> tuple[AbstractSitemap, ...]:
        """The trees of the targets that were read, in their order. After an early close, the last one is partial."""
        return tuple(self._read.trees)

    @property
    def tree(self) -> AbstractSitemap:
        """The tree of the only target, once the stream is exhausted. After an early close: what was read until then.

        :raises UspError: while the stream goes on, or if there are several targets.
        """
        self._refuse_several("`trees`")
        if not self.trees:
            raise UspError("The tree is not complete yet: go through the stream to its end, or call read().")
        return self.trees[0]

    @property
    def outcome(self) -> Outcome:
        """How reading ended, over all targets that were read.

        :raises UspError: before the first target was read.
        """
        if not self.trees:
            raise UspError("There is no outcome yet: go through the stream to its end, or call read().")
        return combined([tree.outcome for tree in self.trees])

    def _refuse_several(self, instead: str) -> None:
        if len(self.sources) > 1:
            raise UspError(f"There are {len(self.sources)} targets: use {instead}.")


def _sitemaps(
    read: _Read, streams: list[SitemapStream]
) -> Generator[AbstractSitemap, None, tuple[AbstractSitemap, ...]]:
    for stream in streams:
        read.start(stream)
        try:
            with stream:
                yield from stream
        except Exception:
            read.fail()
            raise
        finally:
            read.end()
    return tuple(read.trees)


class SourceStream(_Several, Generator[AbstractSitemap, None, tuple[AbstractSitemap, ...]]):
    """Iterate over the sitemaps of one or several sources, each in tree order.

    Close it, or use it in a `with` block, if you leave the loop early. It returns the trees. Ctrl-C raises
    `TreeInterrupted`, as for a `SitemapStream`.
    """

    def __init__(
        self,
        sources: tuple[Source, ...],
        web_client: AbstractWebClient | None = None,
        **options: Unpack[HomepageOptions],
    ) -> None:
        super().__init__(sources)
        given = reusable(options)
        self._streams = [source.stream(web_client, **given) for source in sources]  # options are checked now
        self._sitemaps = _sitemaps(self._read, self._streams)

    def read(self) -> AbstractSitemap:
        """Go to the end, and return the tree. For several targets, use `read_all()`."""
        self._refuse_several("read_all()")
        return self.read_all()[0]

    def read_all(self) -> tuple[AbstractSitemap, ...]:
        """Go to the end, and return the trees of all targets."""
        with self:
            for _ in self:
                pass
        return self.trees

    def __next__(self) -> AbstractSitemap:
        return next(self._sitemaps)

    def send(self, value: None, /) -> AbstractSitemap:
        """Return the next sitemap, as `next()` does."""
        return next(self)

    def throw(self, *error: object) -> NoReturn:
        """Raise an exception inside the stream, which ends it."""
        self._sitemaps.throw(*error)  # type: ignore[call-overload]
        raise RuntimeError("a stream went on after an exception")

    def close(self) -> None:
        """Cancel all requests, and close everything."""
        self._sitemaps.close()
        for stream in self._streams:
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, TreeInterrupted):
                self._sitemaps.throw(error)  # raises TreeInterrupted if a target is being read
        finally:
            self.close()


class AsyncSourceStream(_Several, AsyncIterator[AbstractSitemap]):
    """Iterate over the sitemaps of one or several sources, on asyncio. See `SourceStream`: both give the same."""

    def __init__(
        self,
        sources: tuple[Source, ...],
        web_client: AbstractAsyncWebClient | None = None,
        **options: Unpack[HomepageOptions],
    ) -> None:
        super().__init__(sources)
        given = reusable(options)
        self._streams = [source.stream_async(web_client, **given) for source in sources]
        self._left = deque(self._streams)

    async def read(self) -> AbstractSitemap:
        """Go to the end, and return the tree. For several targets, use `read_all()`."""
        self._refuse_several("read_all()")
        return (await self.read_all())[0]

    async def read_all(self) -> tuple[AbstractSitemap, ...]:
        """Go to the end, and return the trees of all targets."""
        async with self:
            async for _ in self:
                pass
        return self.trees

    async def __anext__(self) -> AbstractSitemap:
        # Not an asynchronous generator: at its end, an event loop closes them all at once, and each stream has one.
        while self._left:
            if self._read.part is None:
                self._read.start(self._left[0])
            try:
                return await anext(self._left[0])
            except StopAsyncIteration:
                self._left.popleft()
                self._read.end()
            except BaseException as error:
                if isinstance(error, Exception):
                    self._read.fail()
                await self.aclose()
                raise
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel all requests, and close everything."""
        self._left.clear()
        for stream in self._streams:
            await stream.aclose()
        self._read.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
