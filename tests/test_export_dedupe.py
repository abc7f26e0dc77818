"""The first of each URL: which rows are kept, in memory and beyond it."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from tables import columns_with
from usp.export.batches import Batch
from usp.export.dedupe import FirstOfEach
from usp.export.schema import PAGES
from usp.scan.columns import Columns

pytestmark = pytest.mark.export


def batch_of(urls: list[str], kept: list[bool] | None = None) -> Batch:
    return Batch(columns_with(PAGES, url=urls), None if kept is None else bytes(kept))


def test_the_first_of_each_is_kept() -> None:
    """Of rows that have a URL in common the first is kept, in one batch and across batches."""
    with closing(FirstOfEach()) as firsts:
        assert firsts.batch(batch_of(["a", "b", "a", "", "é"])).kept == bytes([True, True, False, True, True])
        assert firsts.batch(batch_of(["c", "b", "A", "", "é"])).kept == bytes([True, False, True, False, False])
        assert firsts.batch(batch_of(["d", "e"])).kept is None
        assert firsts.batch(batch_of(["d", "e"])).kept == bytes([False, False])


def test_the_columns_are_let_be() -> None:
    """The rows themselves stay as they are; where there are none there is nothing to do."""
    with closing(FirstOfEach()) as firsts:
        batch = batch_of(["a", "a"])
        assert firsts.batch(batch).columns is batch.columns
        assert firsts.batch(Batch(Columns(0, {}))) == Batch(Columns(0, {}))


def test_only_kept_rows_count() -> None:
    """A row that is not wanted does not come back, and does not keep away a later one."""
    with closing(FirstOfEach()) as firsts:
        assert firsts.batch(batch_of(["a", "b", "a", "b"], [False, True, True, True])).kept == b"\0\1\1\0"
        assert firsts.batch(batch_of(["x", "y"], [False, False])).kept == bytes([False, False])
        assert firsts.batch(batch_of(["x", "b"], [True, True])).kept == bytes([True, False])
        assert firsts.batch(batch_of(["v", "w"], [True, True])).kept is None


def test_beyond_the_memory_nothing_is_forgotten() -> None:
    """What went to the file is found there, after it was written anew too."""
    chance = random.Random(6)
    seen: set[str] = set()
    with closing(FirstOfEach(max_in_memory=4_000)) as firsts:
        for _ in range(30):
            urls = [f"https://www.example.org/{chance.randrange(20_000)}" for _ in range(1_000)]
            expected = []
            for url in urls:
                expected.append(url not in seen)
                seen.add(url)
            kept = firsts.batch(batch_of(urls)).kept
            assert (kept or b"\1" * len(urls)) == bytes(expected)
    assert len(seen) > 3 * 4_000  # so the file was written three times at least


@pytest.mark.skipif(sys.platform == "win32", reason="an open file has a name there")
def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file has no name, even while it is used."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(FirstOfEach(max_in_memory=10)) as firsts:
        firsts.batch(batch_of([str(number) for number in range(25)]))
        assert firsts.batch(batch_of(["1", "12", "24", "25"])).kept == bytes([False, False, False, True])
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no room for the file, that is raised, rather than a page lost or written twice."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with closing(FirstOfEach(max_in_memory=2)) as firsts, pytest.raises(OSError, match="missing"):
        firsts.batch(batch_of(["a", "b", "c"]))


CROWD = """
from array import array
from itertools import accumulate
from pathlib import Path
from usp.export.batches import Batch
from usp.export.dedupe import FirstOfEach
from usp.scan.columns import Column, Columns

def batch(start):
    urls = [b"https://www.example.org/some/page/that/is/listed/%d" % n for n in range(start, start + 20_000)]
    offsets = memoryview(array("q", accumulate(map(len, urls), initial=0)))
    return Batch(Columns(20_000, {"url": Column(20_000, memoryview(b"".join(urls)), offsets)}))

def peak():
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])

FirstOfEach().batch(batch(0))
before = peak()
firsts = FirstOfEach(max_in_memory=200_000)
assert all(firsts.batch(batch(start)).kept is None for start in range(0, 1_000_000, 20_000))
assert not any(firsts.batch(batch(0)).kept)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_memory_is_bounded() -> None:
    """A million URLs take no more memory than those that may be there at once."""
    done = subprocess.run([sys.executable, "-c", CROWD], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20_000  # KiB; in a set they would take five times as much
