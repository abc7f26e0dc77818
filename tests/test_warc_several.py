"""Web archives in several files, and files that are cut short or damaged."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import usp
from commands import RunHere
from support import index, urlset, write_archive
from test_warc_archive import FORMS, ROBOTS, TREE, Recorder, W, names, plain, site
from usp.exceptions import InvalidArgumentError
from usp.objects.outcome import Cause, OutcomeKind
from usp.sources import SourceKind, find_source, find_sources
from usp.warc import read_records

OTHER = "https://news.example.com/"


def spread(folder: Path) -> list[Path]:
    """Write a site over three files: its robots.txt and a page, its index, and the rest."""
    folder.mkdir(exist_ok=True)
    first = Recorder().add(f"{W}robots.txt", ROBOTS)
    second = Recorder().add(f"{W}index.xml", index(f"{W}1.xml", f"{W}2.xml"))
    third = Recorder().add(f"{W}1.xml", urlset(f"{W}a")).add(f"{W}2.xml", urlset(f"{W}b"))
    return [found.saved(folder / f"{number}.warc.gz") for number, found in enumerate((first, second, third))]


def test_a_site_in_several_files_is_one_tree(tmp_path: Path) -> None:
    """Web archives that are named together are read as one."""
    files = spread(tmp_path)
    with usp.open(files) as stream:
        tree = stream.read()
    assert names(tree) == {"robots.txt": "", "index.xml": "", "1.xml": "a", "2.xml": "b"}
    assert tree.outcome.kind is OutcomeKind.COMPLETE
    assert stream.source == ", ".join(map(str, files))


def test_a_folder_of_web_archives_is_one(tmp_path: Path) -> None:
    """The files of a folder are read as one archive, and so are a folder and a file."""
    spread(tmp_path / "warcs")
    (tmp_path / "warcs" / "crawl.log").write_text("done")
    assert find_source(tmp_path / "warcs").kind is SourceKind.WEB_ARCHIVE
    tree = usp.open(tmp_path / "warcs").read()
    assert [page.url for page in tree.all_pages()] == [f"{W}a", f"{W}b"]
    last = shutil.move(tmp_path / "warcs" / "2.warc.gz", tmp_path / "more.warc.gz")
    assert usp.open(tmp_path / "warcs").read().outcome.kind is OutcomeKind.EMPTY
    (source,) = find_sources([tmp_path / "warcs", last])
    assert source.target == f"{tmp_path / 'warcs'}, {last}"
    assert [page.url for page in usp.open([tmp_path / "warcs", last]).read().all_pages()] == [f"{W}a", f"{W}b"]


@pytest.mark.parametrize("name", ["robots.txt", "sitemap.xml", "feed.atom.gz"])
def test_a_folder_with_sitemaps_is_no_archive(tmp_path: Path, name: str) -> None:
    """A folder of a website may have a web archive in it, and is read as before."""
    spread(tmp_path)
    (tmp_path / name).write_text("")
    assert find_source(tmp_path).kind is SourceKind.FOLDER


def test_archives_of_other_sites_stay_apart(tmp_path: Path) -> None:
    """A site that is in one file only has that file's name, and comes in the place of the first archive."""
    one, two, sitemap = tmp_path / "1.warc.gz", tmp_path / "2.warc.gz", tmp_path / "a.xml"
    write_archive(one, W)
    write_archive(two, OTHER)
    sitemap.write_text(urlset(f"{W}file"))
    sources = find_sources([one, sitemap, two])
    assert [source.target for source in sources] == [str(one), str(two), str(sitemap)]
    stream = usp.open([one, sitemap, two])
    assert [(stream.source, found.url) for found in stream] == [
        (str(one), f"{W}sitemap.xml"),
        (str(two), f"{OTHER}sitemap.xml"),
        (str(sitemap), stream.trees[2].url),
    ]


def test_many_files_are_named_in_short(tmp_path: Path) -> None:
    """A site in more than three files has the name of the first one, and their number; with others, its own, too."""
    files = spread(tmp_path)
    fourth = Recorder().add(f"{W}robots.txt", ROBOTS).add(f"{OTHER}sitemap.xml", urlset(f"{OTHER}a"))
    for number in range(4):
        fourth.add(f"{W}x{number}.xml", urlset(f"{W}x{number}"))
    files.append(fourth.saved(tmp_path / "3.warc.gz"))
    assert [source.target for source in find_sources(files)] == [f"{files[0]} and 3 more", str(files[3])]


def test_a_url_chooses_a_site_of_several_files(tmp_path: Path, run_here: RunHere) -> None:
    """`--url` names one of the sites, however many files there are; with another kind of target it is refused."""
    write_archive(tmp_path / "other.warc.gz", OTHER)
    files = [*map(str, spread(tmp_path)), str(tmp_path / "other.warc.gz")]
    done = run_here("ls", "-f", "pages", *files, "--url", W)
    assert (done.stdout.split(), done.returncode) == ([f"{W}a", f"{W}b"], 0)
    (tmp_path / "a.xml").write_text(urlset(W))
    with pytest.raises(InvalidArgumentError, match="give one target only"):
        find_sources([files[0], tmp_path / "a.xml"], url=W)


def test_diff_compares_archives_one_by_one(tmp_path: Path, run_here: RunHere) -> None:
    """`usp diff` takes two archives as two, not as one."""
    old = Recorder().add(f"{W}sitemap.xml", urlset(f"{W}a", f"{W}b")).saved(tmp_path / "old.warc.gz")
    new = Recorder().add(f"{W}sitemap.xml", urlset(f"{W}b", f"{W}c")).saved(tmp_path / "new.warc.gz")
    assert run_here("diff", str(old), str(new)).stdout.splitlines() == [f"- {W}a", f"+ {W}c"]


@pytest.mark.parametrize("form", ["a.warc.gz", "a.warc", "a.warc.zst"])
def test_each_cut_inside_a_record_is_noticed_once(form: str) -> None:
    """Whole records are given, wherever a file ends; a file that ends within a record is reported once."""
    data = FORMS[form](site().file.getvalue())
    blank = 4 if form == "a.warc" else 0  # the lines that end a record: nothing is lost without them
    ends = [data.find(b"WARC/1.1", at) for at in range(len(data))] if form == "a.warc" else []
    ends = sorted({*ends, *(record.place.offset for record in read_records(io.BytesIO(data))), len(data)})
    for cut in range(len(data) + 1):
        found: list[int] = []
        list(read_records(io.BytesIO(data[:cut]), on_damage=found.append))
        is_between = any(0 <= end - cut <= blank for end in ends)
        assert len(found) == (not is_between), cut


def cut_short(data: bytes) -> bytes:
    return data[:-100]


def damaged(data: bytes) -> bytes:
    at = data.index(b"\x1f\x8b", 500)  # the second or third record
    return data[: at + 20] + bytes(40) + data[at + 60 :]


CASES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut": (cut_short, "{} ends in the middle of a record: it was cut short"),
    "damaged": (damaged, "{} is damaged: records that are not whole were skipped"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_that_is_not_whole_says_so_once(case: str, tmp_path: Path, run_here: RunHere) -> None:
    """The whole records are read, one message says that there was more, and a sitemap that is missing is a loss."""
    harm, message = CASES[case]
    path = tmp_path / "a.warc.gz"
    path.write_bytes(harm(site().add(f"{OTHER}sitemap.xml", urlset(f"{OTHER}a")).add(W, "x" * 500).file.getvalue()))
    stream = usp.open(path)
    trees = stream.read_all()
    assert stream.notes == (message.format(path),)
    (missing,) = [missing for missing in trees[0].outcome.missing if f"{W}missing.xml" in missing.urls]
    assert (missing.cause, missing.reason) == (Cause.UNREACHABLE, "not in the archive, of which a part is missing")
    done = run_here("ls", str(path))
    assert done.stderr.count(message.format(path)) == 1
    assert done.returncode == 4
    assert f"{OTHER}a" in done.stdout


def test_a_cut_that_loses_no_sitemap_is_no_failure(tmp_path: Path, run_here: RunHere) -> None:
    """If everything that the site lists is there, the tree is complete, and the message remains."""
    data = Recorder().add(f"{W}sitemap.xml", urlset(f"{W}a")).add(W, "x" * 500).file.getvalue()
    (tmp_path / "a.warc.gz").write_bytes(data[:-10])
    done = run_here("ls", "-f", "pages", str(tmp_path / "a.warc.gz"))
    assert (done.stdout.split(), done.returncode) == ([f"{W}a"], 0)
    assert "ends in the middle of a record" in done.stderr


def test_sitemaps_behind_many_that_are_missing_are_read(tmp_path: Path) -> None:
    """However many sitemaps a cut archive lacks, those that it has are read."""
    missing = [f"{W}missing{number}.xml" for number in range(200)]
    found = Recorder().add(f"{W}robots.txt", f"Sitemap: {W}index.xml\n").add(f"{W}last.xml", urlset(f"{W}a"))
    data = plain(found.add(f"{W}index.xml", index(*missing, f"{W}last.xml")).add(W, "x" * 500).file.getvalue())
    (tmp_path / "a.warc").write_bytes(data[:-10])
    tree = usp.open(tmp_path / "a.warc").read()
    assert [page.url for page in tree.all_pages()] == [f"{W}a"]
    assert (tree.outcome.kind, tree.outcome.missing[0].count) == (OutcomeKind.PARTIAL, 200)


def test_nothing_in_a_cut_file(tmp_path: Path) -> None:
    """If a cut file has no sitemap, the error says that it is cut."""
    (tmp_path / "a.warc.gz").write_bytes(Recorder().add(W, "page").add(f"{W}b", "x" * 500).file.getvalue()[:-10])
    with pytest.raises(InvalidArgumentError, match="ends in the middle of a record"):
        find_sources(tmp_path / "a.warc.gz")


def test_a_whole_archive_has_no_note(tmp_path: Path) -> None:
    """Blank lines or zeros at the end are no damage."""
    for name, form in FORMS.items():
        path = tmp_path / name
        path.write_bytes(form(site().file.getvalue()) + (b"\0" * 30 if name == "a.warc.gz" else b""))
        stream = usp.open(path)
        assert names(stream.read()) == TREE
        assert stream.notes == ()
