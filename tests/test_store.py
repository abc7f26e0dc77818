"""The store of documents: bodies in memory and in a temporary file, full disks, threads."""

from __future__ import annotations

import errno
import gc
import gzip
import io
import logging
import os
import random
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

from support import FakeClient, index, urlset
from usp.bodies import DocumentStore, InFile, InMemory
from usp.documents import Document
from usp.drivers.blocking import run
from usp.drivers.options import Options
from usp.exceptions import DocumentReadError, UspError
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.walk import Walk

URL = "http://h/s.xml"


def read(document: Document) -> tuple[bytes, list[str]]:
    codes: list[str] = []
    return b"".join(document.pieces(codes.append)), codes


def stored(store: DocumentStore, data: bytes, **options: Any) -> Document:
    return Document(URL, data, store=store, **options)


def is_in_file(document: Document) -> bool:
    assert isinstance(document._body, (InFile, InMemory))
    return isinstance(document._body, InFile)


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def test_in_memory_up_to_the_limit() -> None:
    """Bodies stay in memory up to exactly the limit; further ones go to the file, and all can be read."""
    store = DocumentStore(memory_bytes=300)
    bodies = [noise(size, size) for size in (100, 200, 1, 400_000, 0)]
    kept_documents = [stored(store, body) for body in bodies]
    assert [is_in_file(document) for document in kept_documents] == [False, False, True, True, False]
    assert [read(document)[0] for document in kept_documents] == bodies


def test_memory_is_given_back() -> None:
    """A body that is no longer referenced frees its share of the memory limit."""
    store = DocumentStore(memory_bytes=100)
    first = stored(store, noise(80))
    assert is_in_file(stored(store, noise(80)))
    del first
    gc.collect()
    assert not is_in_file(stored(store, noise(80)))


def test_no_file_without_need() -> None:
    """No file is opened before the memory limit is reached, and then one for all bodies."""
    opened = []

    def open_file() -> IO[bytes]:
        opened.append(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 -- the store closes it
        return opened[-1]

    store = DocumentStore(10, open_file)
    alive = [stored(store, b"in memory")]
    assert opened == []
    alive += [stored(store, noise(50)) for _ in range(3)]
    assert len(opened) == 1
    del alive, store
    gc.collect()
    assert opened[0].closed


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file never has a name, and is closed when the store and its last body are gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    gc.collect()
    store = DocumentStore(memory_bytes=0)
    document = stored(store, noise(50))

    def open_files() -> int:
        found = 0
        for fd in os.listdir("/proc/self/fd"):
            try:
                found += os.readlink(f"/proc/self/fd/{fd}").startswith(str(tmp_path))
            except FileNotFoundError:  # the listing's own
                continue
        return found

    assert (list(tmp_path.iterdir()), open_files()) == ([], 1)
    del store
    gc.collect()
    assert (read(document), open_files()) == ((noise(50), []), 1)
    del document
    gc.collect()
    assert open_files() == 0


class FullDisk(io.BytesIO):
    """A file that has room for so many bytes, and takes a few at a time."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self._real = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 -- closed below

    def write(self, data: Any) -> int:
        taken = min(len(data), 1_000, self.room - self._real.seek(0, os.SEEK_CUR))
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._real.write(data[:taken])

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._real.seek(offset, whence)

    def truncate(self, size: int | None = None) -> int:
        return self._real.truncate(size)

    def fileno(self) -> int:
        return self._real.fileno()

    def close(self) -> None:
        self._real.close()
        super().close()


def test_a_full_disk(caplog: pytest.LogCaptureFixture) -> None:
    """On a full disk, bodies stay in memory, and one warning says what to do."""
    disk = FullDisk(room=12_000)
    store = DocumentStore(100, lambda: disk)
    bodies = [noise(size, size) for size in (5_000, 6_000, 7_000, 10, 8_000)]
    kept_documents = [stored(store, body) for body in bodies]
    assert [is_in_file(document) for document in kept_documents] == [True, True, False, False, False]
    assert [read(document)[0] for document in kept_documents] == bodies
    assert disk.seek(0, os.SEEK_END) == 11_000, "of what did not fit nothing is left"
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("usp.bodies", logging.WARNING)
    assert "No space left on device" in record.getMessage()
    assert "TMPDIR" in record.getMessage()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_full_from_the_start(caplog: pytest.LogCaptureFixture) -> None:
    """On a device that is full from the start, bodies stay in memory."""
    with open("/dev/full", "r+b", buffering=0) as full:
        assert read(stored(DocumentStore(0, lambda: full), b"text")) == (b"text", [])
    assert "No space left on device" in caplog.text


def test_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Without a folder for temporary files, bodies stay in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    store = DocumentStore(memory_bytes=0)
    assert [read(stored(store, body)) for body in (b"a", b"b")] == [(b"a", []), (b"b", [])]
    assert len(caplog.records) == 1
    assert "No such file or directory" in caplog.text


def shorten(file: IO[bytes]) -> None:
    file.truncate(10)


@pytest.mark.parametrize("harm", [shorten, lambda file: file.close()], ids=["shortened", "closed"])
def test_a_file_that_cannot_be_read_back(harm: Callable[[IO[bytes]], None]) -> None:
    """A body that cannot be read back raises DocumentReadError, and the message says what to do."""
    with tempfile.TemporaryFile(buffering=0) as file:
        document = stored(DocumentStore(0, lambda: file), noise(50))
        harm(file)
        with pytest.raises(
            DocumentReadError, match="cannot be read back from the temporary file of its tree; fetch the tree again"
        ) as raised:
            read(document)
    assert isinstance(raised.value, UspError)


# Threads


@pytest.mark.slow
@pytest.mark.parametrize("memory_bytes", [0, 1 << 30])
def test_threads(memory_bytes: int) -> None:
    """Threads can store and read at the same time."""
    store = DocumentStore(memory_bytes)
    texts = [noise(300_000, seed) for seed in range(8)]

    def work(seed: int) -> bool:
        chance = random.Random(seed)
        for _ in range(10):
            text = chance.choice(texts)
            own = stored(store, gzip.compress(text, 1) if chance.random() < 0.5 else text)
            shared = chance.randrange(len(texts))
            if read(own) != (text, []) or read(shared_documents[shared]) != (texts[shared], []):
                return False
        return True

    shared_documents = [stored(store, gzip.compress(text, 1)) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(16)))


@pytest.mark.slow
def test_threads_reading_one_document_for_the_first_time() -> None:
    """Threads that inflate one document at the same time all get its whole text and its problems."""
    expected = (noise(2_000_000), ["T801"])
    for _ in range(5):
        document = Document(URL, gzip.compress(expected[0], 1)[:-4])
        ready = threading.Barrier(6)

        def work(_: int, document: Document = document, ready: threading.Barrier = ready) -> tuple[bytes, list[str]]:
            ready.wait()
            return read(document)

        with ThreadPoolExecutor(6) as threads:
            assert all(result == expected for result in threads.map(work, range(6)))


# The tree


@pytest.mark.slow
def test_a_tree_with_its_documents_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree whose documents are in the file equals one in memory, and can be read after the walk has ended."""
    site = {"http://h/index.xml": index(*(f"http://h/{i}.xml.gz" for i in range(20)))}
    pages = {f"http://h/{i}.xml.gz": gzip.compress(urlset(f"http://h/{i}").encode()) for i in range(20)}

    def tree() -> list[str]:
        walk = Walk([SitemapFetcher("http://h/index.xml", 0)])
        run(walk, FakeClient({**site, **pages}), Options(), "http://h/")
        (sitemap,) = walk.sitemaps()
        del walk
        gc.collect()
        return [page.url for _ in range(2) for page in sitemap.all_pages()]

    in_memory = tree()
    monkeypatch.setattr("usp.drivers.fetch.DocumentStore", lambda *_, **__: DocumentStore(memory_bytes=0))
    assert tree() == in_memory == [f"http://h/{i}" for i in range(20)] * 2
