"""The power fails while a crawl writes. Whatever of it a disk may hold then: every site is there as a whole, or not.

strace records what a crawl does to its folder; `power_loss` says what may be left at each moment.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from many_sites import Sites, serve_sites
from power_loss import STRACE, Disk, Tree, calls_of, record, write_tree
from test_crawl_faults import tables
from usp.crawl import CrawlOptions, crawl
from usp.crawl.folder import CrawlFolder

pytestmark = [
    pytest.mark.network,
    pytest.mark.export,
    pytest.mark.slow,
    pytest.mark.skipif(STRACE is None, reason="strace is not installed"),
]

#: Crawls what a file lists, and commits often. Some sites count as large, and get parts of their own at the same time.
PROGRAM = """
import sys
from usp.crawl import CrawlOptions, crawl, crawler
crawler._LARGE_BYTES = 1_800
with_pages = sys.argv[3] == "pages"
options = CrawlOptions(known_paths="never", sites_at_once=3, commit_seconds=0.05, with_pages=with_pages)
crawl([sys.argv[1]], sys.argv[2], options=options)
"""
OPTIONS = CrawlOptions(known_paths="never", commit_seconds=0.05)
RANDOM_STATES = 8  # at each moment
RESUMED = 24  # states from which a crawl goes on


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Sites, list[str]]]:
    with serve_sites() as sites:
        yield (
            sites,
            [
                sites.add(f"127.0.11.{number}", {"/a.xml": [f"/{page}" for page in range(number * 4)]})
                for number in range(1, 11)
            ],
        )


def crawled_under_strace(listed: Path, root: Path, what: str = "pages") -> Iterator[tuple[Disk, Tree | None]]:
    """Crawl into root/c. Give the disk whenever it may hold something else; at the end, with what it holds."""
    disk = Disk(root)
    command = [sys.executable, "-c", PROGRAM, str(listed), str(root / "c"), what]
    for call in record(command, listed.with_suffix(".trace")):
        if disk.apply(call):
            yield disk, None
    yield disk, disk.written()


def parts_in(names: Iterable[str]) -> set[str]:
    """The parts that have files of these names."""
    return {name.removesuffix(".parquet") for name in names if name.endswith(".parquet")}


def files_of(tree: Tree, parts: set[str]) -> Tree:
    """The files of some parts."""
    return {
        f"{table}/{name}": content
        for table, files in tree.items()
        if isinstance(files, dict)
        for name, content in files.items()
        if name.partition(".")[0] in parts
    }


def tree_of(path: Path) -> Tree:
    return {found.name: tree_of(found) if found.is_dir() else found.read_bytes() for found in path.iterdir()}


def read_states(
    moments: Iterator[tuple[Disk, Tree | None]], chance: random.Random
) -> tuple[list[tuple[Tree, set[str]]], Tree]:
    """Return what may be left at any moment, with the parts that must be there; and what is there at last."""
    found: dict[int, tuple[Tree, set[str]]] = {}
    final: Tree = {}
    promised: set[str] = set()
    for disk, at_last in moments:
        final = at_last or final
        promised = parts_in(disk.flushed("c", "sites"))
        for left in disk.after_power_loss(chance, RANDOM_STATES):
            found.setdefault(hash((_frozen(left), frozenset(promised))), (left, promised))
    return list(found.values()), final


def _frozen(tree: Tree) -> object:
    return frozenset((name, _frozen(node) if isinstance(node, dict) else hash(node)) for name, node in tree.items())


def check(left: Tree, promised: set[str], final: Tree, path: Path) -> None:
    """A folder that the power left has all parts that were promised, and each of its parts is whole."""
    write_tree(left, path)
    if not (path / "c/crawl.json").exists():
        assert promised == set()
        return
    folder = CrawlFolder(path / "c")
    with folder.writing():
        names = set(map(str, folder.parts()))
    assert promised <= names
    assert files_of(tree_of(path / "c"), names) == files_of(final["c"], names)


def test_a_number_is_free_as_soon_as_its_close_begins(tmp_path: Path) -> None:
    """Where strace tells of a close after another thread got its number, the file of the other thread stays open."""
    (tmp_path / "a").write_bytes(b"")
    trace = tmp_path.with_suffix(".trace")
    shown = ("".join(f"\\x{byte:02x}" for byte in f"{tmp_path}/{name}".encode()) for name in "ab")
    old, new = (f'openat(AT_FDCWD, "{path}", O_WRONLY|O_CREAT, 0666) = 5' for path in shown)
    lines = [f"1 {old}", "1 close(5 <unfinished ...>", f"2 {new}", "1 <... close resumed>) = 0"]
    trace.write_text("\n".join([*lines, r'2 write(5, "\x61", 1) = 1', "2 fsync(5) = 0"]), encoding="ascii")
    disk = Disk(tmp_path)
    for call in calls_of(trace):
        disk.apply(call)
    assert disk.written() == {"a": b"", "b": b"a"}


def test_the_power_fails_at_any_moment(served: tuple[Sites, list[str]], tmp_path: Path) -> None:
    """Whenever the power fails, the folder has whole parts only, and none that was committed is missing."""
    _, urls = served
    listed, root, chance = tmp_path / "sites.txt", tmp_path / "disk", random.Random(7)
    listed.write_text("\n".join(urls))
    root.mkdir()
    states, final = read_states(crawled_under_strace(listed, root), chance)
    assert final == tree_of(root)  # so the model knows all that happened
    assert len(parts_in(final["c"]["sites"])) >= 3
    for left, promised in states:
        check(left, promised, final, tmp_path / "left")
    assert len(states) > 150
    assert any(promised for _, promised in states)
    crawl(urls, tmp_path / "whole", options=OPTIONS)
    for left, _ in chance.sample(states, RESUMED):
        path = write_tree(left, tmp_path / "left") / "c"
        crawl(urls, path, options=OPTIONS)
        assert tables(path, 1) == tables(tmp_path / "whole", 1)


def test_the_power_fails_again_after_leftovers_were_removed(served: tuple[Sites, list[str]], tmp_path: Path) -> None:
    """Files of a part that was not committed do not come back as files of the part that has got its name."""
    _, urls = served
    listed, root, chance = tmp_path / "sites.txt", tmp_path / "disk", random.Random(8)
    listed.write_text(urls[-1])
    root.mkdir()
    crawl(urls[-1], root / "c", options=OPTIONS)
    (root / "c/sites/00001-000001.parquet").unlink()  # as if the power had failed before the part was committed
    manifest = json.loads((root / "c/crawl.json").read_text())
    manifest["runs"][0]["ended"] = None
    (root / "c/crawl.json").write_text(json.dumps(manifest))
    states, final = read_states(crawled_under_strace(listed, root, "no pages"), chance)
    assert final == tree_of(root)
    assert parts_in(final["c"]["sites"]) == {"00001-000001"}
    assert "00001-000001.parquet" not in final["c"]["pages"]
    for left, promised in states:
        check(left, promised, final, tmp_path / "left")
