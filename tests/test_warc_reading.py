"""WARC files that usp reads: from any writer, compressed in any way, cut short or damaged."""

from __future__ import annotations

import gzip
import io
import random
import struct
import sys
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from support import peak_of
from usp import extras
from usp.exceptions import MissingExtraError
from usp.inflate import ZLIB
from usp.warc import codecs, message_of, open_block, open_body, read_record, read_records, response_head
from usp.warc.messages import dechunked
from usp.warc.reading import Record, date_of, is_warc

NOW = datetime(2026, 11, 17, tzinfo=UTC)
URL = "https://www.example.org/"
HEAD = response_head(200, "OK", [("Content-Type", "text/xml")])


def plain_record(url: str, body: bytes, version: bytes = b"1.1", kind: bytes = b"response") -> bytes:
    block = HEAD + body
    head = b"WARC/%s\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: 2026-11-17T00:00:00Z\r\n"
    return head % (version, kind, url.encode()) + b"Content-Length: %d\r\n\r\n%s\r\n\r\n" % (len(block), block)


RECORDS = [plain_record(f"{URL}{number}", b"body %d " % number * number * 20) for number in range(6)]
URLS = [f"{URL}{number}" for number in range(6)]


def skippable(data: bytes, number: int = 0) -> bytes:
    return struct.pack("<II", 0x184D2A50 + number, len(data)) + data


def zstd_with_dictionary(is_compressed: bool) -> bytes:
    samples: list[Any] = [plain_record(f"{URL}{number}", b"sample %d" % number) for number in range(2_000)]
    trained = zstandard.train_dictionary(2_000, samples)
    stored = zstandard.compress(trained.as_bytes()) if is_compressed else trained.as_bytes()
    compressor = zstandard.ZstdCompressor(dict_data=trained)
    return skippable(stored, 0xD) + b"".join(map(compressor.compress, RECORDS))


FORMS: dict[str, Callable[[], bytes]] = {
    "plain": lambda: b"".join(RECORDS),
    "gzip": lambda: b"".join(map(gzip.compress, RECORDS)),
    "one gzip member": lambda: gzip.compress(b"".join(RECORDS)),
    "two gzip members for a record": lambda: b"".join(
        gzip.compress(part) for record in RECORDS for part in (record[:-40], record[-40:])
    ),
    "gzip stored": lambda: b"".join(gzip.compress(record, 0) for record in RECORDS),
    "gzip with names": lambda: b"".join(map(named_member, RECORDS)),
    "zstd": lambda: b"".join(map(zstandard.compress, RECORDS)),
    "zstd with skippable frames": lambda: skippable(b"x" * 9).join(map(zstandard.compress, RECORDS)),
    "zstd with a dictionary": lambda: zstd_with_dictionary(is_compressed=False),
    "zstd with a compressed dictionary": lambda: zstd_with_dictionary(is_compressed=True),
    "one zstd frame": lambda: zstandard.compress(b"".join(RECORDS)),
}
each_form = pytest.mark.parametrize("form", FORMS)


def named_member(data: bytes) -> bytes:
    """A gzip member with an extra field, as old crawlers wrote it, a name, and a checksum of the header."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflate.compress(data) + deflate.flush()
    head = b"\x1f\x8b\x08\x0e\0\0\0\0\0\3" + b"\x08\0LX\x04\0abcd" + b"name\0"
    return head + struct.pack("<H", zlib.crc32(head) & 0xFFFF) + body + struct.pack("<II", zlib.crc32(data), len(data))


def records(data: bytes, **options: Any) -> list[Record]:
    return list(read_records(io.BytesIO(data), **options))


def urls(data: bytes) -> list[str]:
    return [record.url for record in records(data)]


@each_form
def test_every_form_is_read(form: str) -> None:
    """All records come out, whatever compresses them, and each can be read again at its place."""
    data = FORMS[form]()
    found = records(data)
    assert [record.url for record in found] == URLS
    assert [record.type for record in found] == ["response"] * 6
    file = io.BytesIO(data)
    assert is_warc(file)
    for number, record in enumerate(found):
        assert record.block == HEAD + b"body %d " % number * number * 20
        again = read_record(file, record.place)
        assert again is not None
        assert (again.url, again.block, again.date) == (record.url, record.block, NOW)
        if record.length:
            member = data[record.offset : record.offset + record.length]
            assert urls(member) == [record.url] or "dictionary" in form


@each_form
def test_a_long_block_is_read_in_pieces(form: str) -> None:
    """A record comes with the start of its block only; the rest is read from the file when it is asked for."""
    data = FORMS[form]()
    file = io.BytesIO(data)
    for number, record in enumerate(records(data, kept_bytes=70)):
        block = HEAD + b"body %d " % number * number * 20
        assert record.block == block[:70]
        assert b"".join(open_block(file, record)) == block


@each_form
def test_a_file_cut_anywhere_gives_whole_records_only(form: str) -> None:
    """Cut at any byte, a file gives the records before the cut, each of them whole."""
    data = FORMS[form]()
    whole = {record.url: record.block for record in records(data)}
    seen = set()
    for size in range(len(data)):
        found = records(data[:size])
        assert [record.url for record in found] == URLS[: len(found)]
        assert all(record.block == whole[record.url] for record in found)
        seen.add(len(found))
    assert seen >= ({0} if form.startswith("one") else set(range(6)))


@pytest.mark.parametrize("form", ["gzip", "gzip stored", "zstd", "plain"])
def test_damage_costs_one_record(form: str) -> None:
    """A record that is damaged is skipped, and reading goes on with the next. Nothing wrong comes out."""
    data = FORMS[form]()
    found = records(data)
    third, fourth = found[3].offset, found[4].offset
    for at in (third + 1, third + 12, (third + fourth) // 2, fourth - 6):
        if form == "plain" and at != third + 1:
            continue  # nobody can tell that another part of a plain record is damaged
        for damage in (b"\xff" * 4, b"\0" * 4):
            broken = data[:at] + damage + data[at + len(damage) :]
            assert urls(broken) == [*URLS[:3], *URLS[4:]] or form == "zstd"
            assert set(URLS) - set(urls(broken)) <= {URLS[3]}
    missing = data[: third + 20] + data[fourth:]
    assert urls(missing) == [*URLS[:3], *URLS[4:]]
    assert urls(data[:fourth] + b"junk \x1f\x8b\x08 junk\n" * 9 + data[fourth:]) in (URLS, [*URLS[:3], *URLS[4:]])


@pytest.mark.parametrize("length", ["-1", "x", "", "1e3", "9" * 18, "9" * 5000, "3", "٣"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_no_length_is_trusted(length: str, pack: Callable[[bytes], bytes]) -> None:
    """A record with a wrong length is lost, and the others are not."""
    wrong = RECORDS[3].split(b"Content-Length: ")
    broken = wrong[0] + b"Content-Length: " + length.encode() + wrong[1][wrong[1].index(b"\r\n") :]
    data = b"".join(pack(record) for record in [*RECORDS[:3], broken, *RECORDS[4:]])
    assert urls(data) == [*URLS[:3], *URLS[4:]]


def test_line_ends_and_old_versions_are_read() -> None:
    """LF alone, missing blank lines at the end, continued headers, URLs in brackets and WARC 0.17 are fine."""
    old = plain_record(f"<{URL}>", b"1", version=b"0.17").replace(b"WARC-Date: ", b"WARC-Date:\r\n\t")
    newest = plain_record(URL, b"2", version=b"1.0").rstrip(b"\r\n")
    bare = b"WARC/1.0\nwarc-type: RESPONSE\nContent-Length: 3\n\nabc\n\n"
    found = records(old + bare + newest)
    assert [(record.url, record.type, record.size) for record in found] == [
        (URL, "response", len(HEAD) + 1),
        ("", "response", 3),
        (URL, "response", len(HEAD) + 1),
    ]
    assert found[0].date == NOW
    assert gzip_padded(old) == [URL, URL]


def gzip_padded(record: bytes) -> list[str]:
    return urls(gzip.compress(record) + b"\0" * 1000 + gzip.compress(record) + b"\0" * 7)


def test_what_warcio_writes_is_read() -> None:
    """Records of another writer come out as they went in: responses, revisits and chunked bodies."""
    file = io.BytesIO()
    writer = WARCWriter(file, gzip=True)
    head = StatusAndHeaders("200 OK", [("Content-Type", "text/xml"), ("Transfer-Encoding", "chunked")], "HTTP/1.1")
    chunks = b"4;x=1\r\n<url\r\n4\r\nset>\r\n0\r\n\r\n"
    first = writer.create_warc_record(URL, "response", payload=io.BytesIO(chunks), http_headers=head)
    writer.write_record(first)
    digest = first.rec_headers["WARC-Payload-Digest"]
    again = writer.create_revisit_record(f"{URL}2", digest, URL, first.rec_headers["WARC-Date"], http_headers=head)
    writer.write_record(again)
    first.raw_stream.close()
    again.raw_stream.close()
    response, revisit = records(file.getvalue())
    message = message_of(response.block)
    assert (message.status, message.reason, message.header("content-type")) == (200, "OK", "text/xml")
    assert b"".join(open_body(file, response)) == b"<urlset>"
    (again,) = (record for record in read_records(file, kept_bytes=150) if record.type == "response")
    assert b"".join(open_body(file, again)) == b"<urlset>"
    assert (revisit.type, revisit.url, revisit.headers["warc-refers-to-target-uri"]) == ("revisit", f"{URL}2", URL)
    assert response.date is not None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"0005 ;name=value\r\nhello\r\n1\r\n!\r\n0\r\nTrailer: 1\r\n\r\n", b"hello!"),
        (b"5\nhello\n0\n\n", b"hello"),
        (b"5\r\nhello\r\nA\r\nworld", b"helloworld"),
        (b"5\r\nhello\r\nZZ\r\nworld", b"hello"),
        (b"<urlset></urlset>", b"<urlset></urlset>"),
        (b"", b""),
        (b"f" * 20_000, b"f" * 20_000),
        (b"FFFFFFFFFFFFFFF\r\nhello", b"hello"),
    ],
)
def test_chunks_are_joined(body: bytes, expected: bytes) -> None:
    """Chunked framing is removed if it is there, however the body is cut, and whatever the head says."""
    for size in (1, 2, 3, 7, len(body) + 1):
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
        assert b"".join(dechunked(pieces)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-17T01:02:03Z", datetime(2026, 11, 17, 1, 2, 3, tzinfo=UTC)),
        ("2026-11-17T01:02:03.5Z", datetime(2026, 11, 17, 1, 2, 3, 500_000, UTC)),
        ("2026-11-17T01:02:03.123456789Z", datetime(2026, 11, 17, 1, 2, 3, 123456, UTC)),
        ("2026-11-17T01:02Z", datetime(2026, 11, 17, 1, 2, tzinfo=UTC)),
        ("2026-11-17", datetime(2026, 11, 17, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
        ("2026-13-17T01:02:03Z", None),
        ("9999-12-31T23:59:60Z", None),
        ("today", None),
        ("", None),
    ],
)
def test_dates_are_read(text: str, expected: datetime | None) -> None:
    """A date may lack parts or have a fraction; one that makes no sense is none."""
    assert date_of(text) == expected


@pytest.mark.parametrize(
    "block",
    [b"", b"\r\n\r\n", b"HTTP/1.1", b"HTTP/1.1 abc OK\r\n\r\n", b"<html>", b"HTTP/1.1 200 OK\r\nno end", b"\0" * 99],
)
def test_no_head_raises(block: bytes) -> None:
    """A head that makes no sense has no status, or no headers, and never raises."""
    message = message_of(block)
    assert message.status in (0, 200)
    assert 0 <= message.body_at <= len(block)


@given(
    st.sampled_from(["plain", "gzip", "one gzip member", "zstd", "gzip stored"]),
    st.lists(st.tuples(st.integers(0, 100_000), st.binary(max_size=12), st.integers(0, 200)), max_size=5),
)
def test_nothing_raises(form: str, edits: list[tuple[int, bytes, int]]) -> None:
    """Whatever is inserted into a file or removed from it, reading it ends and does not raise."""
    data = FORMS[form]()
    for at, inserted, removed in edits:
        at %= len(data) + 1
        data = data[:at] + inserted + data[at + removed :]
    file = io.BytesIO(data)
    for record in read_records(file, kept_bytes=50):
        assert len(record.block) <= 50
        assert len(b"".join(open_block(file, record))) == record.size
        message_of(record.block)


@given(st.binary(max_size=300))
def test_no_input_raises(data: bytes) -> None:
    """What is no WARC file has no records."""
    for start in (b"", b"WARC/1.0\r\n", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18\x09\0\0\0"):
        found = records(start + data)
        assert found == [] or b"WARC" in start + data


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_memory_does_not_grow_with_a_record(pack: Callable[[bytes], bytes]) -> None:
    """A record that inflates to 200 MB takes no more memory than another."""
    bomb = pack(plain_record(URL, b"\0" * 200_000_000)) + pack(RECORDS[1])
    found: list[Record] = []
    peak = peak_of(lambda: found.extend(records(bomb)))
    assert [record.size for record in found] == [200_000_000 + len(HEAD), len(records(RECORDS[1])[0].block)]
    assert peak < 20_000_000
    sizes: list[int] = []
    peak = peak_of(lambda: sizes.extend(map(len, open_block(io.BytesIO(bomb), found[0]))))
    assert (sum(sizes), peak < 20_000_000) == (found[0].size, True)


def nested_members(size: int, inner: int = 60_000) -> bytes:
    """Gzip members that start inside the first, each of which goes on to the end of the data and is damaged there."""

    def stored(length: int) -> bytes:
        return b"\0" + struct.pack("<HH", length, length ^ 0xFFFF)

    data = b""
    while inner - len(data) > 60:
        head = b"\x1f\x8b\x08\0\0\0\0\0\0\3"
        data += head + stored(inner - len(data) - len(head) - 5) + b"WARC/1.0\r\n"
    data = data.ljust(inner, b"x")
    return data + (stored(inner) + b"x" * inner) * (size // inner) + b"\xff"


@pytest.mark.parametrize(
    "data",
    [
        b"WARC/1.0\r\n" * 50_000,
        b"WARC/1.0\r\nContent-Length: 5\r\n\r\n" * 15_000,
        b"WARC/1.0\r\nContent-Length: 99999\r\n\r\n" * 15_000,
        b"WARC/1.0\r\n" + b"x" * 2_000_000,
        b"\x1f\x8b\x08\0" * 125_000,
        gzip.compress(b"") * 15_000,
        gzip.compress(b"\n" * 2_000_000),
        gzip.compress(b"WARC/1.0\r\n" * 50_000),
        gzip.compress(b"WARC/1.0\r\nContent-Length: 99999\r\n\r\n" * 15_000),
        gzip.compress(RECORDS[1])[:-1] * 5_000,
        zstandard.compress(b"") * 25_000,
        skippable(b"") * 25_000,
        nested_members(2_000_000),
    ],
    ids=range(13),
)
@pytest.mark.slow
def test_hostile_files_take_bounded_time_and_memory(data: bytes) -> None:
    """Half a megabyte or two of what looks like records take seconds at most, and little memory."""
    started = time.process_time()
    peak = peak_of(lambda: sum(1 for _ in read_records(io.BytesIO(data))))
    assert peak < 5_000_000 + len(data)
    assert time.process_time() - started < 10


def test_zstd_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no package for zstd is installed, the error says what to install."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    here = extras.Installation("", "python", installer="pip")
    monkeypatch.setattr(extras.Installation, "here", lambda: here)
    with pytest.raises(MissingExtraError, match=r"This needs zstandard.*usp\[warc\]"):
        records(FORMS["zstd"]())


def test_the_same_is_read_without_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where isal is missing, zlib inflates: the records are the same, whole or damaged."""
    data = FORMS["gzip"]()
    rng = random.Random(7)
    files = [data] + [bytes(b ^ (rng.random() < 0.001) for b in data) for _ in range(20)]
    found = [records(file) for file in files]
    monkeypatch.setattr(codecs, "engines", lambda: (ZLIB,))
    assert [records(file) for file in files] == found
