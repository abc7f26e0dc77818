"""Inflating: layers, damage and budgets, with the same result with and without isal."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from functools import cache

import pytest

from usp import inflate
from usp.inflate import (
    PIECE_BYTES,
    ZLIB,
    Engine,
    engines,
    gunzip_in_one_step,
    gunzip_in_pieces,
    inflated,
    split,
    transport_decoded,
    with_fastest_engine,
)
from usp.limits import MAX_SITEMAP_BYTES
from usp.tree import sitemap_from_bytes

Result = tuple[bytes, list[str]]
each_engine = pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.decompressobj.__module__)


def read(
    data: bytes,
    engine: Engine | None = None,
    *,
    encoding: str | None = None,
    limit: int | None = None,
    size: int = PIECE_BYTES,
) -> Result:
    """The inflated data and the codes; without an engine, those of the fastest that finds no damage."""

    def attempt(engine: Engine) -> Result:
        codes: list[str] = []
        pieces = inflated(split(data, size), codes.append, encoding=encoding, limit=limit, engine=engine)
        return b"".join(pieces), sorted(codes)

    return with_fastest_engine(attempt) if engine is None else attempt(engine)


def packed(text: bytes, window: int = 31, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, window, 8, strategy)
    return packer.compress(text) + packer.flush()


def urls(chance: random.Random, count: int) -> bytes:
    return b"".join(b"<url><loc>http://h/%x/%d</loc></url>\n" % (chance.getrandbits(40), i) for i in range(count))


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The data, damaged in a few places, mostly near its start, where the headers and tables are."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(min(len(found), chance.choice((4, 100, 10**9)))) if found else 0
        match chance.randrange(5):
            case 0 if found:
                found[at] ^= 1 << chance.randrange(8)
            case 1 if found:
                found[at] = chance.randrange(256)
            case 2:
                del found[at:]
            case 3:
                del found[at : at + 1]
            case _:
                found[at:at] = chance.randbytes(chance.choice((1, 3, 20)))
    return bytes(found)


def test_isal_is_used() -> None:
    """Isal is used if it is installed."""
    igzip_lib = pytest.importorskip("isal.igzip_lib")
    fastest, last = engines()
    assert isinstance(fastest.decompressobj(31), igzip_lib.IgzipDecompressor)
    assert (fastest.error, last) == (igzip_lib.error, ZLIB)


def test_imports_are_light() -> None:
    """Importing the drivers imports neither isal nor tempfile."""
    check = "import sys, usp.documents, usp.drivers.blocking; sys.exit(bool({'isal', 'tempfile'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_without_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without isal, zlib gives the same result."""
    monkeypatch.setitem(sys.modules, "isal", None)
    engines.cache_clear()
    try:
        assert engines() == (ZLIB,)
        assert read(packed(b"text")) == (b"text", [])
        assert transport_decoded(packed(b"text"), "gzip", None, print) == b"text"
    finally:
        engines.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_same_with_and_without_isal(seed: int) -> None:
    """Isal and zlib agree on data that is whole, cut, damaged, of several members or layers, in pieces of any size."""
    chance = random.Random(seed)
    for _ in range(40):
        text = urls(chance, chance.choice((0, 1, 10, 300)))
        members = [text[: len(text) // 3], text[len(text) // 3 :]] if chance.random() < 0.4 else [text]
        data = b"".join(packed(m, level=chance.choice((0, 1, 6, 9)), strategy=chance.choice((0, 4))) for m in members)
        if chance.random() < 0.7:
            data = mutated(data, chance)
        data += chance.choice((b"", b"", b"\0" * 600, b"junk", b"\n", b"\0\0" + packed(b"more")))
        if chance.random() < 0.3:
            data = packed(data, chance.choice((31, 15, -15)))
            data = mutated(data, chance) if chance.random() < 0.5 else data
        encoding = chance.choice((None, "gzip", "deflate"))
        expected = read(data, ZLIB, encoding=encoding)
        for size in (PIECE_BYTES, 1, 2, 3, 17, 1_000):
            assert read(data, ZLIB, encoding=encoding, size=size) == expected
            found = read(data, encoding=encoding, size=size)
            # There is damage that zlib gives up at and isal reads through, and the checksum says that it was right.
            assert found == expected or found == (text, []), (seed, size)


def test_salvaging_all_there_is() -> None:
    """Everything before the damage is salvaged, wherever the damage is."""
    text = bytes(range(256)) * 40
    whole = gzip.compress(text)
    for cut in range(20, len(whole) - 8, 7):
        found, codes = read(whole[:cut])
        assert text.startswith(found)
        assert codes == ["T801"]
        assert len(found) >= len(zlib.decompressobj(31).decompress(whole[:cut]))
    found, codes = read(whole[:60] + b"\xff\xff\xff" + whole[63:])
    assert codes == ["T801"]
    assert found[:20] == text[:20]


def test_a_wrong_checksum_costs_nothing() -> None:
    """Data with a wrong checksum or length is used whole, with T801."""
    whole = bytearray(packed(b"text" * 100_000))
    for at in (-1, -8):
        damaged = whole.copy()
        damaged[at] ^= 1
        assert read(bytes(damaged)) == (b"text" * 100_000, ["T801"])


@pytest.mark.parametrize(
    ("after", "codes"),
    [
        (b"", []),
        (b"\0", []),
        (b"\0" * 300_000, []),
        (packed(b""), []),
        (b"\0" * 300_000 + packed(b""), []),
        (b"\n", ["T802"]),
        (b"<urlset>", ["T802"]),
        (b"\0\0x", ["T802"]),
        (b"\x1f", ["T802"]),
        (b"\x1f\x8b", ["T801"]),
        (b"\x1f\x8bnonsense", ["T801"]),
    ],
)
def test_what_follows_gzip(after: bytes, codes: list[str]) -> None:
    """After gzip data, zeros are padding, gzip is another member, and anything else is dropped with T802."""
    assert read(packed(b"text") + after) == (b"text", codes)
    assert read(packed(packed(b"text") + after)) == (b"text", codes)


@pytest.mark.parametrize("flag", [1 << bit for bit in range(8)])
def test_flags_of_gzip_headers(flag: int) -> None:
    """Every optional field of a header is skipped, and reserved flags count as damage."""
    whole = packed(b"text")
    fields = {2: b"\0\0", 4: b"\2\0ab", 8: b"name\0", 16: b"comment\0"}
    data = whole[:3] + bytes([flag]) + whole[4:10] + fields.get(flag, b"") + whole[10:]
    assert read(data) == read(data, ZLIB)
    assert (read(data) == (b"text", [])) is (flag in (1, 4, 8, 16))


def test_layers() -> None:
    """Layers of the transport and of the file are removed together, up to a maximum number."""
    data = b"text"
    for _ in range(3):
        data = packed(data)
        assert read(data) == (b"text", [])
    assert read(packed(data)) == (packed(b"text"), [])
    assert read(packed(data), encoding="gzip") == (b"text", [])
    assert read(packed(data, 15), encoding="deflate") == (b"text", [])
    assert read(packed(packed(data, -15)), encoding="deflate, gzip") == (b"text", [])
    assert read(packed(data), encoding="br") == (packed(b"text"), [])


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (packed(b"text"), "gzip"),
        (packed(b"text"), "X-GZIP "),
        (packed(b"text", 15), "deflate"),
        (packed(b"text", -15), "deflate"),
        (packed(b"text"), "deflate"),
        (b"text", "gzip"),
        (b"text", "deflate"),
        (b"text", ""),
        (b"text", "br"),
        (b"text", "gzip, deflate, nonsense"),
    ],
)
def test_transport_encodings(data: bytes, encoding: str) -> None:
    """A transport encoding is removed if the data has it, even if the header names another one."""
    codes: list[str] = []
    assert transport_decoded(data, encoding, None, codes.append) == b"text"
    assert codes == []
    assert transport_decoded(data, encoding, 2, codes.append) == b"te"
    assert codes == ["T804"]


def test_transport_encoding_is_one_layer() -> None:
    """Removing the transport encoding of a gzip file leaves the gzip file."""
    assert transport_decoded(packed(packed(b"text")), "gzip", None, print) == packed(b"text")


@pytest.mark.parametrize(
    "text", [b"\n<urlset>" + b" " * 99, b"KL" * 50, b"x^" * 50, b"http://h/\n" * 20, b"<?xml", b""]
)
def test_texts_that_are_said_to_be_deflate(text: bytes) -> None:
    """Text is never taken for deflate, although some texts can be inflated for a while."""
    assert transport_decoded(text, "deflate", None, print) == text


@pytest.mark.parametrize("window", [15, -15])
def test_damaged_deflate(window: int) -> None:
    """Deflate that is cut short or followed by other data is used as far as possible, with a problem."""
    text = urls(random.Random(1), 3_000)
    data = packed(text, window)
    found, codes = read(data[: len(data) // 2], encoding="deflate")
    assert codes == ["T801"]
    assert text.startswith(found)
    assert len(found) > len(text) // 3
    assert read(data + b"more", encoding="deflate") == (text, ["T802"])
    assert read(packed(b"", window), encoding="deflate") == (b"", [])


@each_engine
def test_one_budget_for_all_layers(engine: Engine) -> None:
    """The output of every layer counts against the budget to the byte, and so does a body without compression."""
    text = urls(random.Random(2), 10_000)
    once = packed(text, level=1)
    twice = packed(once)
    for data, size in ((text, len(text)), (once, len(text)), (twice, len(text) + len(once))):
        assert read(data, engine, limit=size) == (text, [])
        found, codes = read(data, engine, limit=size - 1)
        assert codes == ["T804"]
        assert found == text[: len(found)]
        assert len(found) == len(text) - 1
    found, codes = read(twice, engine, limit=len(once) // 2)
    assert codes == ["T804"]
    assert text.startswith(found)
    assert len(found) < len(once) // 2


@cache
def bomb() -> bytes:
    return packed(b"\0" * 150_000_000, level=9)


@pytest.mark.slow
@each_engine
@pytest.mark.parametrize("encoding", [None, "gzip", "deflate", "raw deflate"])
def test_bombs(engine: Engine, encoding: str | None) -> None:
    """A bomb inside a bomb is inflated in pieces up to the budget, so memory and time do not depend on its size."""
    window = {"deflate": 15, "raw deflate": -15}.get(encoding or "", 31)
    bomb_in_bomb = packed(bomb(), window, 9)
    codes: list[str] = []
    started = time.process_time()
    tracemalloc.start()
    try:
        pieces = inflated(
            split(bomb_in_bomb),
            codes.append,
            encoding=(encoding or "").removeprefix("raw "),
            limit=20_000_000,
            engine=engine,
        )
        size = sum(map(len, pieces))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 19_000_000 < size < 20_000_000
    assert codes == ["T804"]
    assert peak < 10 * PIECE_BYTES
    assert time.process_time() - started < 2


@pytest.mark.slow
@pytest.mark.parametrize("window", [31, 15, -15])
def test_decoded_bodies_are_bounded(window: int) -> None:
    """`transport_decoded` stops inflating at its limit."""
    bomb = packed(b"a" * 100_000_000, window)
    tracemalloc.start()
    try:
        assert transport_decoded(bomb, "deflate", 1_000_000, print) == b"a" * 1_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


@pytest.mark.slow
def test_tiny_members_cost_linear_time() -> None:
    """The time for many members of one byte each grows linearly."""
    data = packed(packed(b"http://") + packed(b"a") * 30_000)
    started = time.process_time()
    assert len(sitemap_from_bytes(data).pages) == 1
    assert time.process_time() - started < 2


def test_many_members() -> None:
    """Any number of members are one stream, in pieces that are not small."""
    data = packed(b"ab" * 10) * 20_000
    assert read(data) == (b"ab" * 200_000, [])
    assert len(list(inflated(split(data), print, limit=None))) < 2 + 400_000 / (PIECE_BYTES / 2)


@pytest.mark.slow
def test_a_bomb_of_empty_members() -> None:
    """Empty members cost budget, so a bomb of millions of them ends early."""
    bomb = packed(packed(b"") * 1_000_000, level=9)
    started = time.process_time()
    assert read(bomb, limit=MAX_SITEMAP_BYTES) == (b"", ["T804"])
    assert time.process_time() - started < 5


def test_pieces_of_no_length() -> None:
    """Empty pieces and empty data inflate to nothing."""

    def nothing() -> Iterator[bytes]:
        yield b""

    assert list(inflated(nothing(), print, limit=None)) == []
    assert list(inflated(split(b""), print, limit=None)) == []
    assert read(b"\x1f\x8b") == (b"", ["T801"])
    assert inflate.may_be_compressed(b"", None) is False


@pytest.mark.parametrize("text", [b"", b"a", b"a" * 500_000, bytes(range(256)) * 100, b"<url>" * 3_277])
def test_one_step_inflates_whatever_the_ratio(text: bytes) -> None:
    """One small member is inflated at once, however far it was compressed; a longer, damaged or further one is not."""
    data = gzip.compress(text)
    expected = None if engines()[0] is ZLIB else text
    assert gunzip_in_one_step(data, 1 << 20) == gunzip_in_one_step(data, max(len(text), 1)) == expected
    assert gunzip_in_one_step(data + data, 1 << 20) is gunzip_in_one_step(data[:-1], 1 << 20) is None
    if len(text) > 1:
        assert gunzip_in_one_step(data, len(text) - 1) is None


@pytest.mark.parametrize("text", [b"", b"a", b"a" * 500_000, bytes(range(256)) * 2_000, gzip.compress(b"text")])
def test_pieces_inflate_as_one_step_does(text: bytes) -> None:
    """A member inflated in pieces has the same text, in pieces that a reader may stop between."""
    data = gzip.compress(text)
    for most in (1 << 20, max(len(text), 1), max(len(text) - 1, 1)):
        pieces = gunzip_in_pieces(data, most)
        assert (None if pieces is None else b"".join(pieces)) == gunzip_in_one_step(data, most)
        assert max(map(len, pieces or [b""])) <= PIECE_BYTES
    assert gunzip_in_pieces(data + data, 1 << 20) is gunzip_in_pieces(data[:-1], 1 << 20) is None
