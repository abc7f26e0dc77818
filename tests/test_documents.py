"""Documents: inflated by their content, read several times, and fetched by a client."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator

import pytest

from support import FakeResponse, Server, serve, urlset
from usp.documents import Document, DocumentStore
from usp.drivers.fetch import ResponseReader
from usp.inflate import engines
from usp.limits import MAX_SITEMAP_BYTES
from usp.web_client.abstract_client import AbstractWebClient, AbstractWebClientResponse
from usp.web_client.policy import RequestPolicy
from usp.web_client.requests_client import RequestsWebClient, RequestsWebClientSuccessResponse

URL = "http://h/s.xml"


def read(document: Document) -> tuple[bytes, list[str]]:
    codes: list[str] = []
    return b"".join(document.pieces(codes.append)), codes


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


# Documents


@pytest.mark.parametrize(
    ("data", "encoding", "expected"),
    [
        (b"text", None, (b"text", [])),
        (b"text", "gzip", (b"text", [])),
        (b"text", "identity", (b"text", [])),
        (b"", None, (b"", [])),
        (gzip.compress(b"text"), None, (b"text", [])),
        (gzip.compress(gzip.compress(b"text")), "gzip", (b"text", [])),
        (zlib.compress(gzip.compress(b"text")), "deflate", (b"text", [])),
        (zlib.compress(b"text", wbits=-15), "deflate", (b"text", [])),
        (gzip.compress(b"text")[:-1], None, (b"text", ["T801"])),
        (gzip.compress(b"text") + b"junk", None, (b"text", ["T802"])),
        (gzip.compress(gzip.compress(b"text") + b"junk")[:-1], None, (b"text", ["T801", "T802"])),
    ],
)
def test_pieces(data: bytes, encoding: str | None, expected: tuple[bytes, list[str]]) -> None:
    """A document is inflated by its content, and every read gives the same text and problems."""
    for store in (None, DocumentStore(), DocumentStore(memory_bytes=0)):
        document = Document(URL, data, content_encoding=encoding, store=store)
        assert [read(document) for _ in range(5)] == [expected] * 5


@pytest.mark.parametrize(
    ("url", "data", "encoding", "codes"),
    [
        ("http://h/s.xml.gz", b"text", None, ["T803"]),
        ("http://h/s.xml.GZ?a=b.xml", b"text", None, ["T803"]),
        ("http://h/s.xml.gz", b"text", "gzip", []),
        ("http://h/s.xml.gz", gzip.compress(b"text"), None, []),
        ("http://h/s.xml?a=b.gz", b"text", None, []),
    ],
)
def test_names_that_lie(url: str, data: bytes, encoding: str | None, codes: list[str]) -> None:
    """T803 is logged for a .gz name without gzip data, unless the client has removed the compression."""
    assert read(Document(url, data, content_encoding=encoding)) == (b"text", codes)


def test_transport_problems() -> None:
    """Problems of the transfer are logged once; data cut at a limit (T804) is not also called damaged (T801)."""
    data = gzip.compress(b"text" * 1_000)[:-12]
    assert read(Document(URL, data, transport_problems=("T801",)))[1] == ["T801"]
    assert read(Document(URL, data, transport_problems=("T804",)))[1] == ["T804"]
    assert read(Document(URL, b"text", transport_problems=("T804",))) == (b"text", ["T804"])


@pytest.mark.parametrize(
    ("data", "encoding", "is_ahead"),
    [
        (gzip.compress(b"<urlset/>" * 9_999), None, True),
        (b"text", None, False),
        (gzip.compress(b"text"), "gzip", False),
        (gzip.compress(gzip.compress(b"text")), None, False),
        (gzip.compress(b"one ") + gzip.compress(b"two"), None, False),
        (gzip.compress(b"text")[:-1], None, False),
        (gzip.compress(noise(5_000))[:-700] + noise(700), None, False),
        (gzip.compress(b"text") + b"rest", None, False),
        (gzip.compress(bytes(17 << 20)), None, False),
    ],
    ids=["sound", "plain", "encoded", "twice", "members", "cut", "damaged", "more", "large"],
)
def test_reading_ahead(data: bytes, encoding: str | None, is_ahead: bool) -> None:
    """Text inflated ahead serves one read, with the same result; only a single small gzip member is inflated ahead."""
    document = Document(URL, data, content_encoding=encoding)
    expected = read(document)
    document.read_ahead()
    assert (document._ahead is not None) == (is_ahead and len(engines()) > 1)
    assert read(document) == expected
    assert document._ahead is None
    assert read(document) == expected


@pytest.mark.slow
def test_the_budget_of_a_document() -> None:
    """A document of exactly the limit is read whole; one byte more is dropped with T804, compressed or not."""
    text = bytes(MAX_SITEMAP_BYTES)
    for more, expected in ((b"", []), (b"\0", ["T804"])):
        for data in (text + more, gzip.compress(text + more, 1)):
            codes: list[str] = []
            assert sum(map(len, Document(URL, data).pieces(codes.append))) == MAX_SITEMAP_BYTES
            assert codes == expected


BOMB = """
import resource, sys, time
from usp.documents import Document
from usp.inflate import engines
engines()
bomb = bytes.fromhex(sys.stdin.read())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.process_time()
document = Document("http://h/s.xml.gz", bomb)
for _ in range(3):
    codes = []
    size = sum(map(len, document.pieces(codes.append)))
    assert codes == ["T804"], codes
    assert 95_000_000 < size <= 100 << 20, size
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.process_time() - started)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
def test_a_bomb_in_a_bomb() -> None:
    """A gzip bomb in a gzip bomb costs little memory and little time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    inner = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(300)), packer.flush()])
    bomb = gzip.compress(inner, 9)
    assert len(bomb) < 5_000
    done = subprocess.run([sys.executable, "-c", BOMB], input=bomb.hex(), capture_output=True, text=True, check=True)
    kib, seconds = map(float, done.stdout.split())
    assert kib < 8_000
    assert seconds < 5


def test_without_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document gives the same text and problems without isal."""
    text = urlset(*(f"http://h/{i}" for i in range(5_000))).encode()
    whole = gzip.compress(text)
    cases = [whole, whole[: len(whole) // 2], whole[:100] + b"\xff\xff" + whole[102:], whole + b"junk", whole * 2]
    with_isal = [[read(document), read(document)] for document in (Document(URL, case) for case in cases)]
    monkeypatch.setitem(sys.modules, "isal", None)
    engines.cache_clear()
    try:
        assert [[read(document), read(document)] for document in (Document(URL, case) for case in cases)] == with_isal
    finally:
        engines.cache_clear()


def test_reading_while_inflating() -> None:
    """The first read happens while the document is inflated, and a second time if isal finds damage."""
    text = noise(1_000_000)
    whole = gzip.compress(text)
    seen: list[bytes] = []

    def start(document: Document) -> bytes:
        seen.append(next(document.pieces(print)))
        return seen[-1]

    good, damaged = Document(URL, whole), Document(URL, whole[:-100])
    assert text.startswith(good.first_read(lambda: start(good)))
    assert len(seen) == 1
    damaged.first_read(lambda: start(damaged))
    assert len(seen) == len(engines()) + 1
    assert read(good) == read(good) == (text, [])
    assert read(damaged) == read(damaged)
    assert read(damaged)[1] == ["T801"]


# Through a client

TEXT = b"some text, repeated. " * 1_000
BODIES = {
    "/plain": (None, TEXT),
    "/file": (None, gzip.compress(TEXT)),
    "/gzip": ("gzip", gzip.compress(TEXT)),
    "/x-gzip": ("x-gzip", gzip.compress(TEXT)),
    "/deflate": ("deflate", zlib.compress(TEXT)),
    "/raw-deflate": ("deflate", zlib.compress(TEXT, wbits=-15)),
    "/gzip-file": ("gzip", gzip.compress(gzip.compress(TEXT))),
    "/deflate-file": ("deflate", zlib.compress(gzip.compress(TEXT))),
    "/not-gzip": ("gzip", TEXT),
    "/not-deflate": ("deflate", TEXT),
    "/gzip-not-deflate": ("deflate", gzip.compress(TEXT)),
    "/unknown": ("nonsense", TEXT),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    names = [(path + end, path) for path in BODIES for end in ("", ".gz", ".gz?a=b")]
    headers = {path: {"Content-Encoding": encoding} if encoding else {} for path, (encoding, _) in BODIES.items()}
    with serve({name: (200, headers[path], BODIES[path][1]) for name, path in names}) as server:
        yield server


def received(client: AbstractWebClient, url: str) -> tuple[bytes, list[str]]:
    """The body as a tree gets it, and its problems."""
    document = ResponseReader(RequestPolicy(url), 0).read(client.get(url), url)
    assert isinstance(document, Document), document
    codes: list[str] = []
    return b"".join(document.pieces(codes.append)), codes


class Decoding(RequestsWebClient):
    """A client that has only `raw_data()`, like clients written for ultimate-sitemap-parser."""

    def get(self, url: str) -> AbstractWebClientResponse:
        response = super().get(url)
        assert isinstance(response, RequestsWebClientSuccessResponse)
        return FakeResponse(response.raw_data(), url, headers=dict(response._response.headers))


@pytest.mark.slow
@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("client_class", [RequestsWebClient, Decoding])
def test_transport(site: Server, path: str, client_class: type[RequestsWebClient]) -> None:
    """A document is free of all compression, of the transport and of the file, even if the headers lie."""
    encoding, data = BODIES[path]
    is_misnamed = encoding is None and data == TEXT
    with client_class() as client:
        assert received(client, site.url + path) == (TEXT, [])
        for end in (".gz", ".gz?a=b"):
            assert received(client, site.url + path + end) == (TEXT, ["T803"] if is_misnamed else [])
    assert {headers["Accept-Encoding"] for _, headers in site.requests} == {"gzip, deflate"}
