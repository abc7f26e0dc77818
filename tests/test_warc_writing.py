"""WARC records that usp writes: other tools read and verify them, and bodies of any size need little memory."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import subprocess
import sys
import tracemalloc
import warnings
import zlib
from base64 import b32encode
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from usp.inflate import split
from usp.warc import (
    Original,
    Payload,
    WarcWriter,
    body_of_member,
    message_of,
    open_block,
    read_records,
    request_head,
    response_head,
    writing,
)

NOW = datetime(2026, 11, 17, 3, 30, 55, 123456, UTC)
URL = "https://www.example.org/sitemap.xml"
PLAIN = b"<urlset>" + b"<url><loc>https://www.example.org/</loc></url>" * 5_000 + b"</urlset>"
HEAD = response_head(200, "OK", [("Content-Type", "text/xml"), ("ETag", '"1"')])
BODIES = {
    "empty": b"",
    "small": b"User-agent: *\n",
    "plain": PLAIN,
    "gzip": gzip.compress(PLAIN * 3 + random.Random(1).randbytes(300_000)),
    "random": random.Random(2).randbytes(200_000),
}


def written(file: io.BytesIO | None = None, compress: bool = True) -> bytes:
    """A file with records of all kinds."""
    file = file or io.BytesIO()
    writer = WarcWriter(file, compress=compress)
    writer.info({"robots": "obey"}, date=NOW, filename="1.warc.gz")
    for name, data in BODIES.items():
        url = f"{URL}?{name}"
        body = Payload(data)
        response = writer.response(url, HEAD, body, NOW, ip="127.0.0.1")
        sent = request_head("GET", "/sitemap.xml", [("Host", "www.example.org")])
        writer.request(url, sent, NOW, concurrent_to=response.record_id)
        original = Original(url, NOW, body.digest, response.record_id)
        writer.revisit(url, HEAD, original, NOW + timedelta(hours=1))
        not_modified = response_head(304, "Not Modified", [("ETag", '"1"')])
        writer.revisit(url, not_modified, original, NOW + timedelta(hours=2), not_modified=True)
    writer.response(f"{URL}?cut", HEAD, Payload(b"<urlset>"), NOW, truncated="time")
    writer.metadata(URL, {"title": "Grüße"}, NOW)
    return file.getvalue()


def run(*command: str) -> str:
    return subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("compress", [True, False], ids=["gzip", "plain"])
def test_warcio_reads_what_is_written(compress: bool) -> None:
    """Another reader finds the same records, bodies and facts, and finds every digest right."""
    found = {}
    for record in ArchiveIterator(io.BytesIO(written(compress=compress)), check_digests="raise"):
        body = record.content_stream().read()
        if record.rec_type == "response":
            found[record.rec_headers["WARC-Target-URI"]] = body
            assert record.http_headers.get_header("etag") == '"1"'
            assert record.rec_headers["WARC-Date"] == "2026-11-17T03:30:55.123456Z"
        if record.rec_type == "revisit":
            assert record.rec_headers["WARC-Refers-To-Date"] == "2026-11-17T03:30:55.123456Z"
            assert record.rec_headers["WARC-Refers-To-Target-URI"] == record.rec_headers["WARC-Target-URI"]
    decoded = {f"{URL}?{name}": data for name, data in BODIES.items()}
    assert found == {**decoded, f"{URL}?cut": b"<urlset>"}


def test_fastwarc_reads_what_is_written() -> None:
    """A second reader finds the same, and verifies block and payload digests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of names of its own
        from fastwarc.warc import ArchiveIterator as FastIterator
    kinds = []
    for record in FastIterator(io.BytesIO(written()), parse_http=False):
        assert record.verify_block_digest()
        record.parse_http()
        if record.headers["WARC-Type"] == "response":
            assert record.verify_payload_digest()
        kinds.append(record.headers["WARC-Type"])
    assert kinds == ["warcinfo", *["response", "request", "revisit", "revisit"] * len(BODIES), "response", "metadata"]


@pytest.mark.slow
def test_tools_for_archives_accept_what_is_written(tmp_path: Path) -> None:
    """`warcio check` finds nothing wrong, and cdxj-indexer lists each response where the writer said that it is."""
    path = tmp_path / "1.warc.gz"
    path.write_bytes(written())
    checked = run("warcio.cli", "check", "-v", str(path))
    passed, revisits = checked.count("digest pass"), checked.count("digest present but not checked (revisit)")
    assert (passed, revisits, checked.count("offset")) == (13, 10, 23)  # it verifies no digest of a revisit
    code = f"from cdxj_indexer.main import main; main([{str(path)!r}])"
    lines = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()
    entries = [json.loads(line.split(" ", 2)[2]) for line in lines]
    with path.open("rb") as file:
        places = [
            (record.url, str(record.offset), str(record.length))
            for record in read_records(file)
            if record.type in ("response", "revisit")
        ]
    assert sorted((entry["url"], entry["offset"], entry["length"]) for entry in entries) == sorted(places)
    assert {entry["mime"] for entry in entries if entry["status"] == "304"} == {"warc/revisit"}


def test_digests_are_sha1_in_base32() -> None:
    """A digest is what other tools compute from the same bytes, however they are cut."""
    for data in BODIES.values():
        expected = f"sha1:{b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()}"
        pieces = partial(split, data, 9_999)
        assert Payload(data).digest == Payload(pieces=pieces).digest == expected


def test_the_writer_says_where_records_are() -> None:
    """Each record is a gzip member of its own, at the offset and of the length that the writer returned."""
    file = io.BytesIO(b"before")
    file.seek(6)
    writer = WarcWriter(file)
    records = [writer.response(URL, HEAD, Payload(data), NOW) for data in BODIES.values()]
    assert records[0].offset == 6
    for record, data in zip(records, BODIES.values(), strict=True):
        member = file.getvalue()[record.offset : record.offset + record.length]
        inflater = zlib.decompressobj(31)
        text = inflater.decompress(member)
        assert (inflater.eof, inflater.unused_data) == (True, b"")
        assert text.endswith(HEAD + data + b"\r\n\r\n")
        assert record.record_id.encode() in text
    assert writer.offset == len(file.getvalue())


def test_the_same_is_written_without_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where isal is missing, zlib compresses: the records are the same."""

    def records(data: bytes) -> list[tuple[str, str, bytes]]:
        found = ArchiveIterator(io.BytesIO(data), check_digests="raise")
        return [(record.rec_type, str(record.http_headers), record.raw_stream.read()) for record in found]

    with_isal = records(written())
    monkeypatch.setattr(writing, "_library", lambda: (zlib, 6))
    assert records(written()) == with_isal


def test_a_compressed_body_is_stored_as_it_came() -> None:
    """A body that is gzip already costs its own size and little more; a plain one is compressed."""
    writer = WarcWriter(io.BytesIO())
    size = len(BODIES["gzip"])
    assert 0 < writer.response(URL, HEAD, Payload(BODIES["gzip"]), NOW).length - size < 600
    assert writer.response(URL, HEAD, Payload(PLAIN), NOW).length < len(PLAIN) / 20


@pytest.mark.parametrize("name", ["gzip", "random"])
def test_memory_does_not_grow_with_a_body(name: str) -> None:
    """A body that comes in pieces is never in memory as a whole."""
    piece = BODIES[name][:50_000]

    def pieces() -> Iterator[bytes]:
        return (piece for _ in range(400))

    class Nowhere(io.RawIOBase):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            return len(data)

    tracemalloc.start()
    try:
        length = WarcWriter(Nowhere()).response(URL, HEAD, Payload(pieces=pieces), NOW).length  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert length > 400 * len(piece) / 2 or name == "gzip"
    assert peak < 2_000_000


def test_a_body_without_its_framing_has_a_head_to_match() -> None:
    """Of a chunked response only the name of one header changes, and the length is added."""
    head = b"HTTP/1.1 200 Fine\r\nServer: x\r\ntransfer-encoding: gzip, chunked\r\nContent-Length: 7\r\nETag: 1\r\n\r\n"
    file = io.BytesIO()
    WarcWriter(file).response(URL, head, Payload(b"12345"), NOW)
    (record,) = read_records(file)
    assert record.block == (
        b"HTTP/1.1 200 Fine\r\nServer: x\r\nX-Orig-transfer-encoding: gzip, chunked\r\nX-Orig-Content-Length: 7\r\n"
        b"ETag: 1\r\nContent-Length: 5\r\n\r\n12345"
    )
    assert not message_of(record.block).is_chunked


def test_a_head_stays_as_it_was_received() -> None:
    """Odd lines, odd cases and the order of headers are kept; only the end of the head is made one blank line."""
    odd = b"HTTP/1.0 200\r\nx-B: 1\nX-a:  2 \r\nContent-Length: 99\r\n continued"
    file = io.BytesIO()
    WarcWriter(file).response(URL, odd, Payload(b"cut"), NOW, truncated="disconnect")
    (record,) = read_records(file)
    assert record.block == odd + b"\r\n\r\ncut"
    assert record.headers["warc-truncated"] == "disconnect"


def test_nothing_that_a_site_writes_breaks_a_header() -> None:
    """Line ends in URLs and values do not start new headers, and what is not ASCII is UTF-8."""
    file = io.BytesIO()
    writer = WarcWriter(file)
    writer.response("https://www.example.org/a b\r\nX: 1?ü\ud800", HEAD, Payload(b""), NOW)
    writer.info({"title": "a\r\nWARC-Type: response\0"}, date=NOW)
    first, second = read_records(file)
    assert first.url == "https://www.example.org/a%20b%0D%0AX:%201?ü?"
    assert second.block.splitlines()[-1] == b"title: a WARC-Type: response"
    assert response_head(200, "OK\r\nX: 1", [("A\n", "b\r\nC: d")]) == b"HTTP/1.1 200 OK X: 1\r\nA : b C: d\r\n\r\n"


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 6), "2026-01-02T03:04:05.000006Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T01:04:05Z"),
    ],
)
def test_times_are_in_utc(date: datetime, expected: str) -> None:
    """Times are written in UTC, with microseconds if there are some, and read back as they were."""
    file = io.BytesIO()
    WarcWriter(file).response(URL, HEAD, Payload(b""), date)
    (record,) = read_records(file)
    assert record.headers["warc-date"] == expected
    assert record.date == (date if date.tzinfo else date.replace(tzinfo=UTC))


def test_a_body_that_changes_while_it_is_written_is_an_error() -> None:
    """A record never has another length than it says."""
    turns = iter([b"12345", b"12345", b"123"])
    with pytest.raises(ValueError, match="fewer bytes"):
        WarcWriter(io.BytesIO()).response(URL, HEAD, Payload(pieces=lambda: [next(turns)]), NOW)
    with pytest.raises(ValueError, match="truncated must be one of"):
        WarcWriter(io.BytesIO()).response(URL, HEAD, Payload(b""), NOW, truncated="because")


def test_a_small_body_is_read_in_one_step() -> None:
    """The body of a response is the same as read_record finds it; other records, and damaged ones, are left to that."""
    file = io.BytesIO(written())
    seen = Counter[str]()
    for record in read_records(file):
        member = file.getvalue()[record.place.offset : record.place.offset + record.length]
        found = body_of_member(member)
        expected = b"".join(open_block(file, record))[message_of(record.block).body_at :]
        assert found == (expected if record.type == "response" and record.size < 1 << 20 else None)
        seen[record.type] += found is not None
        assert body_of_member(member[:-1]) is body_of_member(member + b"x") is body_of_member(b"") is None
        assert body_of_member(member[:40] + b"damage" + member[46:]) in (None, found)
    assert seen["response"] >= 3
    odd = WarcWriter(plain := io.BytesIO()).response(URL, b"HTTP/1.0 200\n\nbody?\r\n", Payload(b"x"), NOW)
    assert body_of_member(plain.getvalue()[: odd.length]) is None  # where its body starts is a matter of opinion


def test_a_file_that_takes_a_part_at_a_time_gets_everything() -> None:
    """A file without a buffer may write less than it was given."""

    class Slow(io.BytesIO):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            return super().write(data[:1000])

    kinds = [record.rec_type for record in ArchiveIterator(io.BytesIO(written(Slow())), check_digests="raise")]
    assert len(kinds) == 23
