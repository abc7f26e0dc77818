"""The fuzzer: its seeds pass its own checks, it finds differences, and it reports what it did and found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from fuzz import cli, seeds, target, workshop
from usp.scan.grammar import Grammar
from usp.scan.plain import PurePages, Taken

pytestmark = pytest.mark.tools

LOG = """INFO: Using preloaded libfuzzer
#128\tpulse  cov: 2079 ft: 4930 corp: 47/7669b exec/s: 32 rss: 659Mb
#600\tDONE   cov: 3681 ft: 11432 corp: 222/95Kb lim: 4096 exec/s: 6 rss: 1202Mb
stat::number_of_executed_units: 612
"""
FAILED = """#128\tpulse  cov: 2079 ft: 4930 corp: 47/7669b exec/s: 32 rss: 659Mb

 === Uncaught Python exception: ===
Difference: read as text, cut at 3
==7== ERROR: libFuzzer: fuzz target exited
artifact_prefix='found/'; Test unit written to found/crash-a
"""


@pytest.mark.parametrize("name", seeds.seeds())
def test_seeds_are_read_alike(name: str) -> None:
    """All readers give the same of each document that the search starts from."""
    target.check(seeds.seeds()[name])


def test_a_difference_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that gives other pages raises a `Difference`."""

    class Loses(PurePages):
        def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
            pages, position, more, full = super().take(grammar, buffer, position)
            return pages[1:], position, more, full

    monkeypatch.setitem(target.READ_BY, "pure", target.READ_BY["pure"]._replace(pages=Loses))
    with pytest.raises(target.Difference, match="pure"):
        target.check(b"<urlset><url><loc>http://h/1</loc></url><url><loc>http://h/2</loc></url></urlset>")


def test_summary() -> None:
    """The summary has the number of executions and the coverage of the last line of the log."""
    assert cli.summary(LOG, 61.2) == (
        "fuzz: 612 executions in 61 seconds; coverage: 3,681 edges, 11,432 features; 222 inputs kept"
    )
    assert cli.summary("", 1) == "fuzz: 0 executions in 1 seconds"


def test_findings() -> None:
    """A failure is shown with the path of its input; a search that did not start, with the end of its log."""
    assert cli.findings(FAILED, 77).splitlines()[1] == "Difference: read as text, cut at 3"
    assert "fuzz: found something: found/crash-a" in cli.findings(FAILED, 77).splitlines()
    assert cli.findings("no module\n", 1).splitlines()[0] == "no module"
    assert "ended with code 1" in cli.findings("no module\n", 1)


def test_words_fit() -> None:
    """No word has more than the 64 bytes that libFuzzer takes."""
    assert max(len(word.encode()) for word in seeds.WORDS) <= 64


def test_dictionary(tmp_path: Path) -> None:
    """The dictionary has a line for each word, and the tags of entries."""
    seeds.write_dictionary(tmp_path / "words")
    lines = (tmp_path / "words").read_text("ascii").splitlines()
    assert '"' + "".join(f"\\x{byte:02x}" for byte in b"<news:title>") + '"' in lines
    assert len(lines) > len(seeds.WORDS)


def test_earlier_inputs_leave_time(tmp_path: Path) -> None:
    """Only the latest inputs of earlier searches stay."""
    for age in range(5):
        (tmp_path / str(age)).touch()
        os.utime(tmp_path / str(age), (100 - age, 100 - age))
    workshop._thin_out(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
