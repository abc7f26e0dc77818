"""The soak tool: it crawls sites with every fault, and finds what is wrong with a crawl."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import soak
from bench import bounds
from bench.crowd import FAULTS, KINDS, Crowd

pytestmark = pytest.mark.tools


def test_every_fault_has_its_sites() -> None:
    """One site in twenty has a fault, of each kind in turn; no two sites have the same address."""
    kinds = [soak.kind_of(number) for number in range(2_400)]
    assert {kind: kinds.count(kind) for kind in set(kinds) - {"small"}} == dict.fromkeys(FAULTS, 10)
    crowd = Crowd(80)
    assert len({crowd.url(number, kind) for number, kind in enumerate(kinds)}) == len(kinds)
    assert len({crowd.url(0, kind) for kind in (*KINDS, "small", "refused", "name")}) == len(KINDS) + 3


def test_what_is_wrong_with_a_crawl_is_found(tmp_path: Path) -> None:
    """A site that is missing, there twice, not asked for, or has another outcome than its kind."""
    (tmp_path / "sites").mkdir()
    rows = {"site": ["a", "b", "b", "d", "e"], "outcome": ["complete"] * 3 + ["complete", "unreachable"]}
    table = pa.table({**rows, "reason": [None] * 4 + ["refused"]})
    pyarrow.parquet.write_table(table, tmp_path / "sites" / "00001-000001.parquet")
    (tmp_path / "pages.partial").touch()
    expected = {"a": "small", "b": "small", "c": "small", "d": "hole", "e": "small"}
    assert sorted(soak.problems(tmp_path, expected, is_over=True)) == [
        "b is there 2 times",
        "c is missing",
        "d, of the kind hole, is complete: None",
        "e, of the kind small, is unreachable: refused",
        "left behind: pages.partial",
    ]
    assert len(list(soak.problems(tmp_path, expected, is_over=False))) == 3


def test_growing_memory_is_found() -> None:
    """Memory may grow for the first thousands of sites, not after that."""
    assert not list(soak.growth({"250": 100, "8000": 200, "16000": 210}))
    assert list(soak.growth({"250": 100_000_000, "8000": 200_000_000, "64000": 250_000_000})) == [
        "memory grows from 200 to 250 MB"
    ]


def test_memory_is_looked_at_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample is the most since the one before, so a moment more or less does not matter."""
    memory = {300: 70, 500: 20, 1_025: 90}
    sites = 0
    monkeypatch.setattr(bounds, "resident_memory", lambda: memory.get(sites, 10))
    samples = bounds._MemorySamples(reports=False)
    for sites in range(1, 1_101):
        samples.note(sites)
    samples.keep(sites)
    assert samples.samples == {250: 10, 500: 70, 1_000: 10, 1_100: 90}
