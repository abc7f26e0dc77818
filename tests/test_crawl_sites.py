"""Lists of sites, in every form that a crawl takes."""

from __future__ import annotations

import gzip
import io
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from usp.crawl import crawl
from usp.crawl.sites import SiteTarget, estimated_count, listed_targets, read_sites, site_target
from usp.crawl.state import _PartNumbers
from usp.exceptions import InvalidArgumentError
from usp.export.dedupe import FirstOfEach

pytestmark = pytest.mark.export

LISTED = ["one.example", "https://two.example/", "three.example/sitemap.xml"]


def listed(path: Path, column: str | None = None) -> list[str]:
    return list(listed_targets([str(path)], column=column))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sites.txt", "# sites\n\none.example\n  https://two.example/  \r\nthree.example/sitemap.xml"),
        ("sites.csv", "name,url\nOne,one.example\nTwo,https://two.example/\nThree,three.example/sitemap.xml\n"),
        ("sites.csv", "Site\none.example\nhttps://two.example/\n\nthree.example/sitemap.xml\n"),
        ("sites.csv", "one.example,1\nhttps://two.example/,2\nthree.example/sitemap.xml,3\n"),
        ("sites.csv", "name;url\nOne;one.example\nTwo;https://two.example/\nThree;three.example/sitemap.xml\n"),
        ("sites.csv", "name\turl\nOne\tone.example\nTwo\thttps://two.example/\nThree\tthree.example/sitemap.xml\n"),
        ("sites.txt", "one.example\rhttps://two.example/\r# three\rthree.example/sitemap.xml\r"),
        ("sites.tsv", "rank\tdomain\n1\tone.example\n2\thttps://two.example/\n3\tthree.example/sitemap.xml\n"),
    ],
    ids=["text", "csv", "csv, one column", "csv without a head", "semicolons", "tabs", "lone CRs", "tsv"],
)
@pytest.mark.parametrize("is_gzipped", [False, True], ids=["plain", "gzip"])
def test_lists(tmp_path: Path, name: str, text: str, is_gzipped: bool) -> None:
    """Text and tables are read alike, gzipped or not, in UTF-8 or UTF-16."""
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        data = text.encode(encoding)
        path = tmp_path / (f"{name}.gz" if is_gzipped else name)
        path.write_bytes(gzip.compress(data) if is_gzipped else data)
        assert listed(path) == LISTED


def test_a_column_can_be_named(tmp_path: Path) -> None:
    """The column that is named counts, in CSV and Parquet; a wrong name is an error that lists the columns."""
    (tmp_path / "sites.csv").write_text("url,other\na.example,one.example\n")
    assert listed(tmp_path / "sites.csv", "Other") == ["one.example"]
    with pytest.raises(InvalidArgumentError, match=r"no column 'none'; it has url, other"):
        listed(tmp_path / "sites.csv", "none")
    table = pa.table({"n": [1, 2], "site": ["one.example", None], "other": ["x.example", "y.example"]})
    pa.parquet.write_table(table, tmp_path / "sites.parquet")
    assert listed(tmp_path / "sites.parquet") == ["one.example"]
    assert listed(tmp_path / "sites.parquet", "other") == ["x.example", "y.example"]


def test_standard_input_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list on standard input is read line by line, so that it may be endless."""

    class Endless(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:12] = b"one.example\n"
            return 12

    class Stdin:
        buffer = io.BufferedReader(Endless())

    monkeypatch.setattr("sys.stdin", Stdin())
    assert list(islice(listed_targets(["-"]), 3)) == ["one.example"] * 3


def test_sites_have_one_key(tmp_path: Path) -> None:
    """The key of a site does not depend on how it is written; a sitemap is a target of its own."""
    texts = [
        "one.example",
        "https://one.example",
        "https://ONE.example/",
        "https://one.example/",
        "http://one.example/",
    ]
    keys = [target.site for target in read_sites(texts, lambda line, why: None)]
    assert keys == ["https://one.example/", "http://one.example/"]
    assert site_target("https://one.example/sitemap.xml").site == "https://one.example/sitemap.xml"


def test_what_is_no_site_is_reported() -> None:
    """A text that is no site is reported with what to write; its password is hidden."""
    bad: list[tuple[str, str]] = []
    texts = ["", "no site", "ftp://one.example/", "https://user:secret@/", "one.example"]
    found = [target.site for target in read_sites(texts, lambda line, why: bad.append((line, why)))]
    assert found == ["https://one.example/"]
    assert len(bad) == 4
    assert "secret" not in str(bad)


def test_a_site_is_never_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in a list is that of a site, even if there is a file of this name."""
    monkeypatch.chdir(tmp_path)
    Path("one.example").write_text("<urlset/>")
    (target,) = read_sites(["one.example"], lambda line, why: None)
    assert isinstance(target, SiteTarget)
    assert target.site == "https://one.example/"


def test_a_table_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A CSV file with a field beyond all bounds says so."""
    (tmp_path / "sites.csv").write_text("url\n" + "x" * 200_000 + "\n")
    with pytest.raises(InvalidArgumentError, match="cannot be read as a table"):
        listed(tmp_path / "sites.csv")


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("cut.txt.gz", gzip.compress(b"".join(b"site%d.example\n" % number for number in range(9_999)))[:9_000], 1),
        ("damaged.txt.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + bytes(range(99)), 0),
        ("plain.csv.gz", b"url\none.example\n", 0),
        ("sites.parquet", b"PAR1", 0),
        ("empty.parquet", b"", 0),
    ],
)
def test_a_damaged_list_is_an_error(tmp_path: Path, name: str, content: bytes, count: int) -> None:
    """A list that was cut short, or is not what its name says, is an error that names it; its start is read."""
    (tmp_path / name).write_bytes(content)
    found = read_sites([str(tmp_path / name)], lambda line, why: None)
    assert len(list(islice(found, count))) == count
    with pytest.raises(InvalidArgumentError, match=f"{name} cannot be read"):
        list(found)


def test_a_list_is_checked_before_a_crawl(tmp_path: Path) -> None:
    """A column that is not there, and a list that cannot be read, are errors before a folder is made."""
    (tmp_path / "sites.csv").write_text("url\none.example\n")
    with pytest.raises(InvalidArgumentError, match="has no column 'domain'; it has url"):
        crawl([str(tmp_path / "sites.csv")], tmp_path / "c", column="domain")
    (tmp_path / "sites.parquet").write_bytes(b"no table")
    with pytest.raises(InvalidArgumentError, match="cannot be read as a table"):
        crawl([str(tmp_path / "sites.parquet")], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_about_how_many_sites_a_list_has(tmp_path: Path) -> None:
    """Lines are counted. Of a long list, the first ones stand for all. Nobody knows the length of standard input."""
    short, long, packed = tmp_path / "short.txt", tmp_path / "long.txt", tmp_path / "long.txt.gz"
    short.write_text("one.example\ntwo.example")
    text = "".join(f"host-{number:07}.example\n" for number in range(400_000))
    long.write_text(text)
    packed.write_bytes(gzip.compress(text.encode(), 1))
    table = tmp_path / "sites.parquet"
    pyarrow.parquet.write_table(pa.table({"url": LISTED}), table)
    assert estimated_count([str(short), "three.example"]) == 3
    assert estimated_count([str(table)]) == 3
    assert estimated_count([str(long)]) == pytest.approx(400_000, rel=0.01)
    assert estimated_count([str(packed)]) == pytest.approx(400_000, rel=0.1)
    assert estimated_count(["-"]) is None
    assert estimated_count([str(tmp_path / "missing.txt")]) is None


def test_sites_that_were_seen_before_are_left_out() -> None:
    """A run that goes on gives what is left of its list."""
    seen = FirstOfEach()
    assert seen.is_first("https://b.example/")
    assert not seen.is_first("https://b.example/")
    found = read_sites(["a.example", "b.example", "A.example", "c.example"], print, seen=seen)
    assert [target.site for target in found] == ["https://a.example/", "https://c.example/"]


def test_the_parts_of_many_sites_take_little_memory() -> None:
    """The last number that was put for a site is found again, and no other; a site takes few bytes."""
    chance, numbers, expected = random.Random(1), _PartNumbers(), dict[str, int]()
    for _ in range(30_000):
        site, number = f"https://{chance.randrange(20_000)}.example/", chance.randrange(1 << 32)
        numbers.put(site, number)
        expected[site] = number
    assert {site: numbers.get(site) for site in expected} == expected
    assert [numbers.get(f"https://{number}.example/") for number in range(20_000, 25_000)] == [None] * 5_000
    assert sum(map(len, numbers._buckets)) == 10 * len(expected)
