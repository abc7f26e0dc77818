"""Every regular expression takes linear time, whatever a site writes."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench.workshop import ROOT
from patterns import CALLED, CAPPED, TRUSTED, Found, hidden_patterns, patterns, slow_text

#: Functions that compile patterns which the user wrote, or that run on texts of usp itself.
KNOWN_HIDDEN = {
    "usp.cli.completion._first_sentence",
    "usp.cli.completion._zsh_text",
    "usp.cli.outcomes._in_words_of_options",
    "usp.cli.reading.find_targets",
    "usp.cli.site._pattern",
    "usp.extras._packages",
    "usp.export.files._remove_leftovers",
    "usp.fetch_parse.choice._patterns",
    "usp.scan.encodings.name_of_encoding",
    "usp.sources.targets._host_part",
    "usp.sources.targets._why_not_http",
}


@pytest.mark.slow
def test_every_pattern_takes_linear_time() -> None:
    """No pattern is slow on texts made to be hostile to it, in a process whose CPU time is limited."""
    command = [sys.executable, str(ROOT / "tools" / "patterns.py"), "--try"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    last = ran.stdout.splitlines()[-1:]
    assert "slow: " not in ran.stdout
    assert ran.returncode == 0, (last, ran.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s*\s*x", "match"),
        (r"sitemap\s*(?:[:=]\s*)?\s+http", "match"),
        (r"a*!", "search"),
        (rb"<!--.*?-->", "search"),
    ],
)
def test_slow_patterns_are_found(pattern: str | bytes, method: str) -> None:
    """The trial finds a pattern that takes quadratic time or more."""
    assert slow_text(Found("x", re.compile(pattern), (method,))) is not None


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"\s*+x", r"[a-z]++:", rb"<[^>]*>", r"(?:a|b)*c"])
def test_linear_patterns_are_not_reported(pattern: str | bytes) -> None:
    """The trial reports nothing for a pattern that takes linear time."""
    assert slow_text(Found("x", re.compile(pattern), ("match", "fullmatch"))) is None


@pytest.mark.slow
def test_patterns_are_found() -> None:
    """All patterns of modules are found, by the name of the module that defines them; the tables name no others."""
    names = {found.name for found in patterns()}
    assert {"usp.scan.tokens._LEAF", "usp.scan.lines._SITEMAP_LINE", "usp.web_client.redirects._COOKIE_VALUE"} <= names
    rooms = names | {name.rpartition(".")[0] for name in names}
    assert {*CALLED, *CAPPED, *TRUSTED} <= rooms


@pytest.mark.slow
def test_no_function_hides_a_pattern() -> None:
    """A pattern that sees the text of a site is defined at the top of its module, where the trial finds it."""
    assert set(hidden_patterns()) <= KNOWN_HIDDEN
