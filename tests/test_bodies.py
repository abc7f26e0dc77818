"""Bodies on their way: they share a budget of memory, spill to the temporary file, and give their place back."""

from __future__ import annotations

import gc
import gzip
import json
import multiprocessing
import os
import random
import tempfile
import threading
import warnings
from collections.abc import Callable
from typing import IO, Any
from unittest.mock import Mock

import pytest

from support import urlset
from test_store import FullDisk, noise
from usp.bodies import ArrivingBody, DocumentStore, InFile, InMemory
from usp.documents import Document
from usp.drivers.fetch import ResponseReader
from usp.limits import ARRIVING_BYTES
from usp.web_client.abstract_client import AbstractWebClientSuccessResponse
from usp.web_client.policy import RequestPolicy

pytestmark = pytest.mark.network

URL = "http://h/s.xml"
KIB = 1024


class CountedFile:
    """Opens a temporary file, and tells its size."""

    def __init__(self) -> None:
        self.files: list[IO[bytes]] = []

    def open(self) -> IO[bytes]:
        self.files.append(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 -- the store closes it
        return self.files[-1]

    @property
    def size(self) -> int:
        return os.fstat(self.files[-1].fileno()).st_size if self.files else 0


def in_memory(*bodies: ArrivingBody) -> int:
    return sum(len(body._data) for body in bodies)


def received(store: DocumentStore, data: bytes, piece: int = 64 * KIB) -> ArrivingBody:
    body = store.arriving()
    for start in range(0, len(data), piece):
        body.append(data[start : start + piece])
    return body


def read(body: ArrivingBody) -> bytes:
    return b"".join(body.finish().pieces())


def test_bodies_on_their_way_share_one_budget() -> None:
    """However many bodies arrive at once, they have no more memory together than their budget."""
    counted = CountedFile()
    store = DocumentStore(1 << 30, counted.open)
    texts = [noise(3 << 20, seed) for seed in range(24)]
    bodies = [store.arriving() for _ in texts]
    for start in range(0, 3 << 20, 64 * KIB):
        for body, text in zip(bodies, texts, strict=True):
            assert body.append(text[start : start + 64 * KIB])
            assert in_memory(*bodies) <= ARRIVING_BYTES
    assert counted.size >= (24 * 3 << 20) - ARRIVING_BYTES
    assert [read(body) for body in bodies] == texts


def test_a_small_body_is_not_copied_and_needs_no_file() -> None:
    """A body of one piece is kept as it came, in memory."""
    counted = CountedFile()
    body = received(DocumentStore(1 << 20, counted.open), piece := noise(1_000))
    kept = body.finish()
    assert isinstance(kept, InMemory)
    assert next(kept.pieces()) is piece
    assert counted.files == []


def test_the_largest_body_spills_first() -> None:
    """A small body that waits stays in memory while a large one arrives."""
    store = DocumentStore(10_000)
    small = received(store, noise(2_000))
    large = received(store, noise(50_000), piece=1_000)
    assert (in_memory(small), len(small._extents)) == (2_000, 0)
    assert large._extents
    assert isinstance(small.finish(), InMemory)
    assert isinstance(large.finish(), InFile)
    assert (read(small), read(large)) == (noise(2_000), noise(50_000))


def test_dropped_bodies_free_their_share() -> None:
    """A body that nobody needs any more does not count toward the budget."""
    counted = CountedFile()
    store = DocumentStore(10_000, counted.open)
    for seed in range(20):
        received(store, noise(9_000, seed))
    gc.collect()
    assert counted.files == []


def test_their_place_in_the_file_is_used_again() -> None:
    """The file does not grow while bodies are replaced by others, and shrinks when its last bodies are gone."""
    counted = CountedFile()
    store = DocumentStore(0, counted.open)
    kept = [Document(URL, received(store, noise(200_000, seed))) for seed in range(2)]
    for seed in range(30):
        kept[0] = Document(URL, received(store, noise(200_000, seed)))
        assert counted.size <= 3 * 200_000
    texts = [b"".join(document.pieces(lambda _: None)) for document in kept]
    assert texts == [noise(200_000, 29), noise(200_000, 1)]
    del kept
    gc.collect()
    last = Document(URL, received(store, b"x"))
    assert counted.size == last.size == 1


def test_any_order() -> None:
    """Whatever order bodies arrive, end and are dropped in, each keeps its own bytes, and gaps are filled."""
    chance = random.Random(5)
    counted = CountedFile()
    store = DocumentStore(20_000, counted.open)
    alive: dict[ArrivingBody, bytearray] = {}
    done: list[tuple[Document, bytes]] = []
    most = 0
    for _ in range(4_000):
        match chance.randrange(12):
            case 0 | 1:
                alive[store.arriving()] = bytearray()
            case 2 if alive:
                body = chance.choice(list(alive))
                done.append((Document(URL, body), bytes(alive.pop(body))))
            case 3 if alive:
                del alive[chance.choice(list(alive))]
            case 4 | 5 if done:
                document, expected = done.pop(chance.randrange(len(done)))
                assert b"".join(document.pieces(lambda _: None)) == expected
            case _ if alive:
                body = chance.choice(list(alive))
                piece = chance.randbytes(chance.randrange(1, 5_000))
                body.append(piece)
                alive[body] += piece
        document = body = None  # type: ignore[assignment]  # else it is not dropped
        most = max(most, sum(map(len, alive.values())) + sum(len(text) for _, text in done))
    for document, expected in done:
        assert b"".join(document.pieces(lambda _: None)) == expected
    assert 0 < counted.size < 2 * most


def test_a_disk_that_is_full_while_a_body_arrives(caplog: pytest.LogCaptureFixture) -> None:
    """What no longer fits on the disk stays in memory, and the body is complete."""
    store = DocumentStore(1_000, lambda: FullDisk(room=12_000))
    bodies = [received(store, noise(30_000, seed), piece=500) for seed in range(3)]
    assert any(body._extents for body in bodies)
    assert [read(body) for body in bodies] == [noise(30_000, seed) for seed in range(3)]
    assert caplog.text.count("TMPDIR") == 1


def test_a_compressed_body_that_has_spilled() -> None:
    """A document knows that its body is compressed, even if its first bytes are in the file."""
    store = DocumentStore(0)
    document = Document(URL, received(store, gzip.compress(b"text" * 1_000), piece=1))
    assert document.may_be_compressed
    assert b"".join(document.pieces(lambda _: None)) == b"text" * 1_000


def test_total_bytes() -> None:
    """A store counts what arrives and what clients discard, and says when the tree has had more than it may."""
    store = DocumentStore(max_total_bytes=10)
    first, second = store.arriving(), store.arriving()
    assert first.append(b"12345")
    store.count(3)
    assert second.append(b"12")
    assert not first.append(b"1")
    assert (first.data(), second.data()) == (b"123451", b"12")


def test_a_mock_of_a_response() -> None:
    """A mock that stands in for a response has the body that its test gives it."""
    response = Mock(spec=AbstractWebClientSuccessResponse)
    response.encoded_data.return_value = None
    response.raw_data.return_value = b"text"
    response.header.return_value = None
    response.url.return_value = URL
    response.transport_problems.return_value = ()
    document = ResponseReader(RequestPolicy(URL), 1_000).read(response, URL)
    assert isinstance(document, Document)
    assert (document.size, document.transferred) == (4, 4)


# Forks


def in_child(work: Callable[[], Any]) -> Callable[[], Any]:
    """Do work in a forked child. Return a function that waits for its result."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is what is tested
        child = os.fork()
    if not child:
        try:
            os.write(writer, json.dumps(work()).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)

    def result() -> Any:
        with os.fdopen(reader, "rb") as pipe:
            found = pipe.read()
        assert os.waitpid(child, 0)[1] == 0
        return json.loads(found)

    return result


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@needs_fork
def test_a_fork_while_bodies_arrive() -> None:
    """After a fork, neither process changes what the other one reads, whatever both drop, receive and keep."""
    store = DocumentStore(0)
    texts = [noise(100_000, seed) for seed in range(4)]
    documents = [Document(URL, received(store, text)) for text in texts]
    half = received(store, noise(50_000, 9))
    go, gone = os.pipe()

    def is_right(other: int) -> list[bool]:
        half.append(noise(50_000, other))
        more = [Document(URL, received(store, noise(100_000, other + seed))) for seed in range(4)]
        found = [b"".join(document.pieces(lambda _: None)) for document in (*documents[2:], *more)]
        expected = [*texts[2:], *(noise(100_000, other + seed) for seed in range(4))]
        return [*(a == b for a, b in zip(found, expected, strict=True)), read(half)[50_000:] == noise(50_000, other)]

    def in_the_child() -> list[bool]:
        os.read(go, 1)  # until the parent has dropped and written
        found = [b"".join(document.pieces(lambda _: None)) for document in documents]
        return [found == texts, *is_right(300)]

    result = in_child(in_the_child)
    del documents[:2]
    gc.collect()
    documents = [documents[0], documents[0], *documents]  # the places of those that were dropped are free now
    assert all(is_right(200))
    os.write(gone, b"x")
    assert all(result())
    os.close(go)
    os.close(gone)


@needs_fork
def test_a_fork_while_threads_write() -> None:
    """A child that was forked while threads were writing can use the store, and what it has read is right."""
    store = DocumentStore(0)
    kept = Document(URL, received(store, noise(100_000)))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            Document(URL, received(store, noise(300_000, 2)))

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()

    def work() -> bool:
        more = Document(URL, received(store, noise(100_000, 3)))
        texts = [b"".join(document.pieces(lambda _: None)) for document in (kept, more)]
        return texts == [noise(100_000), noise(100_000, 3)]

    try:
        assert [in_child(work)() for _ in range(5)] == [True] * 5
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _pages(documents: list[Document], numbers: list[int], send: Any) -> None:
    send.send([b"".join(documents[number].pieces(lambda _: None)).decode() for number in numbers])


@needs_fork
@pytest.mark.slow
def test_multiprocessing() -> None:
    """Processes of multiprocessing read what had arrived before the fork."""
    context = multiprocessing.get_context("fork")
    store = DocumentStore(0)
    documents = [Document(URL, received(store, urlset(f"http://h/{number}").encode())) for number in range(4)]
    receive, send = context.Pipe(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = context.Process(target=_pages, args=(documents, [0, 1, 2, 3], send))
        process.start()
    del documents[1:]
    gc.collect()
    documents += [Document(URL, received(store, noise(5_000, number))) for number in range(4)]
    assert receive.recv() == [urlset(f"http://h/{number}") for number in range(4)]
    process.join(10)
