"""Surveys, compiled and in plain Python, find what a plain reading of all entries finds."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveys import (
    ALL,
    BAD,
    BAD_EXTENSIONS,
    BITS,
    GOOD,
    GRAMMAR,
    KINDS,
    NUMBER,
    ODD,
    OPTIONS,
    PAGE,
    PIECES,
    URLS,
    Model,
    document,
    entry,
    links,
    moment,
    readable_by,
)
from usp.check.scope import scope_of
from usp.check.subjects import DiscoveryPath
from usp.compiled import IS_COMPILED
from usp.fetch_parse import XMLSitemapParser
from usp.objects.problem import ProblemLog
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.survey import SURVEYED, SURVEYORS, SurveyOptions, Surveyors, elsewhere_code, period_of, same_url_key
from usp.scan.vocabulary import Kind

pytestmark = pytest.mark.compare

each_kind = pytest.mark.parametrize("surveyors", KINDS.values(), ids=KINDS)
compiled = pytest.mark.skipif(not IS_COMPILED, reason="there is no compiled survey here")


@each_kind
@pytest.mark.parametrize("code", BAD)
def test_a_code_stops_or_is_counted(code: str, surveyors: Surveyors) -> None:
    """A survey stops at an entry with a problem, or counts it if its code was reported often enough."""
    for text in BAD[code]:
        for passed in (0, ALL & ~BITS[code], BITS[code], ALL):
            model = Model(surveyors, passed).read(document(text))
            is_counted = passed & BITS[code] and readable_by(surveyors, text)
            assert model.reader.counts == ({code: 1} if is_counted else {}), text
            assert Counter(model.stops)[code] == (0 if is_counted else 1), text
            assert model.said + Counter(model.reader.counts) == Counter([code]), text


def test_every_code_has_entries() -> None:
    """The tables of bad entries have all codes that a survey knows."""
    assert sorted([*BAD, *BAD_EXTENSIONS]) == sorted(SURVEYED)


@each_kind
def test_good_entries_are_passed_over(surveyors: Surveyors) -> None:
    """A survey skips entries without problems, and counts all of them."""
    model = Model(surveyors).read(document(*GOOD[:-1]))
    assert set(model.stops) <= {""}
    assert len(model.stops) == sum(not readable_by(surveyors, text) for text in GOOD[:-1])
    stats = model.reader.stats
    assert (stats.entries, stats.dated, stats.prioritised, stats.stories, stats.linked) == (len(GOOD) - 1, 4, 3, 4, 4)
    assert (stats.lowest, stats.highest) == (0.1, 0.5)
    assert (stats.earliest, stats.latest) == (moment("2024-01-01"), moment("2026-11-16"))
    assert not model.clusters.has_open
    assert model.table.find("http://ok/[3]%20") == model.stories.find("http://h/a/5") == NUMBER
    assert model.table.find("http://h/a/5") == model.stories.find("http://h/a/4") == -1
    assert model.table.find("http://h/a/elsewhere") == NUMBER


@compiled
def test_stops_are_exact() -> None:
    """A compiled survey stops only at entries with a code that is not in `passed`."""
    chance = random.Random(1)
    plain_entries = [text for text in PIECES if text not in ODD]
    for _ in range(300):
        passed = chance.choice([0, ALL, chance.getrandbits(len(SURVEYED))])
        data = document(*chance.choices(plain_entries, k=chance.randint(1, 12)))
        expected = Model(SURVEYORS, uses_survey=False).read(data).stops
        bad = [codes for codes in expected if any(not BITS[code] & passed for code in codes.split())]
        assert Model(SURVEYORS, passed).read(data).stops == bad


@each_kind
def test_all_is_as_without_a_survey(surveyors: Surveyors) -> None:
    """The result does not depend on what was skipped, nor on how the document is cut."""
    chance = random.Random(2)
    for _ in range(200):
        data = document(*chance.choices(PIECES, k=chance.randint(1, 15)))
        expected = Model(surveyors, uses_survey=False).read(data).outcome(URLS)
        assert Model(surveyors, chance.getrandbits(len(SURVEYED))).read(data).outcome(URLS) == expected
        edges = [0, *sorted(chance.choices(range(len(data)), k=3)), len(data)]
        pieces = [data[a:b] for a, b in pairwise(edges)]
        assert Model(surveyors, ALL).read(*pieces).outcome(URLS) == expected


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=4), st.data())
def test_mutated_documents(texts: list[str], draw: st.DataObject) -> None:
    """The same holds if bytes are dropped, doubled or replaced."""
    data = bytearray(document(*texts))
    start = document().index(b"</urlset>")  # a root is needed
    for _ in range(draw.draw(st.integers(1, 4))):
        i, j = sorted(draw.draw(st.tuples(*[st.integers(start, len(data) - 1)] * 2)))
        match draw.draw(st.integers(0, 2)):
            case 0:
                del data[i : min(j, i + 40, len(data) - 1)]
            case 1:
                data[i:i] = data[i : min(j, i + 400)]
            case 2:
                data[i] = draw.draw(st.sampled_from(b"<>&/\"' \n\0\x7f\xff\xc3a:;=%#-[]9"))
    for surveyors in KINDS.values():
        outcomes = []
        for uses_survey in (False, True):
            model = Model(surveyors, draw.draw(st.sampled_from([0, ALL])), uses_survey=uses_survey)
            outcomes.append(model.read(bytes(data)).outcome(URLS))
        assert outcomes[0] == outcomes[1]


@each_kind
@pytest.mark.parametrize("text", ["<", "<u", ">", "<u a='", "&", "]]>"])
def test_what_stands_before_entries_that_are_skipped(surveyors: Surveyors, text: str) -> None:
    """An XML parser stops where the entry starts, or before it, and the code of that is the same without a survey."""
    data = document(text + "<url><loc>http://h/a/page</loc></url>" * 3)
    expected = Model(surveyors, ALL, uses_survey=False).read(data).outcome(URLS)
    assert Model(surveyors, ALL).read(data).outcome(URLS) == expected


@each_kind
def test_many_distinct_texts(surveyors: Surveyors) -> None:
    """The cached result of one text is never used for another, however many there are."""
    dates = [text.format(year) for text in ("{}", "{}-05", "8 May {}", "{}/05/08") for year in range(1700, 2200)]
    chance = random.Random(3)
    entries = [
        entry(f"<lastmod>{date}</lastmod><priority>+0.{chance.randrange(900)}</priority>", f"http://h{i % 700}/{i}")
        for i, date in enumerate(chance.choices(dates, k=3_000))
    ]
    expected = Model(surveyors, uses_survey=False).read(document(*entries))
    model = Model(surveyors, ALL).read(document(*entries))
    assert model.outcome([]) == expected.outcome([])
    assert len(model.stops) == 0


@compiled
def test_wanted_entries_stop() -> None:
    """A survey stops at each entry of an incomplete set of alternates, if another page of the set is listed."""
    texts = [entry(links(("x-default", PAGE), ("de", PAGE), ("en", f"http://h/a/{i}"))) for i in range(3)]
    hash_of = SURVEYORS.url_table.hash_of
    wanted, listed = SURVEYORS.cluster_sums(), SURVEYORS.url_table()
    wanted.note((hash_of(PAGE) + hash_of("http://h/a/1")) % (1 << 64), 2, hash_of(PAGE))
    assert len(Model(SURVEYORS, ALL, wanted=wanted).read(document(*texts)).stops) == 1
    survey = SURVEYORS.survey(OPTIONS, wanted=wanted, listed=(SURVEYORS.url_table(), listed))
    survey.passed = ALL
    for is_listed in (False, True):
        stops: list[str | None] = []
        inspector = SimpleNamespace(reader=survey, entry=lambda element, url, stops=stops: stops.append(url))
        XMLSitemapParser("http://h/s.xml", lambda log: [document(*texts)]).inspect(ProblemLog(""), inspector)
        assert stops == [PAGE] * is_listed
        listed.add("http://h/a/1", 0)
    survey.stop_wanting()
    XMLSitemapParser("http://h/s.xml", lambda log: [document(*texts)]).inspect(ProblemLog(""), inspector)
    assert stops == [PAGE]


@each_kind
def test_complete_sets_come_to_nothing(surveyors: Surveyors) -> None:
    """Only incomplete sets are open, however many sets there are and in any order of pages."""
    chance = random.Random(1)
    sets = [[chance.getrandbits(64) for _ in range(chance.randint(1, 9))] for _ in range(3_000)]
    pages = [(sum(members) % (1 << 64), len(members), own) for members in sets for own in members]
    chance.shuffle(pages)
    clusters = surveyors.cluster_sums()
    for key, size, own in pages[:-1]:
        clusters.note(key, size, own)
    assert len(clusters.sums_left()) == 1
    assert clusters.is_open(pages[-1][0])
    clusters.note(*pages[-1])
    assert not clusters.has_open
    clusters.note(*pages[0])  # listed twice
    assert clusters.is_open(pages[0][0])


@each_kind
def test_what_the_rules_raise_is_raised(surveyors: Surveyors) -> None:
    """An exception in a function of the options is raised, with or without the GIL."""

    def fail(text: str) -> Any:
        raise RuntimeError(text)

    for name in ("elsewhere", "is_disallowed"):
        callbacks: dict[str, Any] = {name: fail}
        options = SurveyOptions(may_disallow=(("http://h/a/",),), **callbacks)
        with pytest.raises(RuntimeError, match="http://h"):
            surveyors.survey(options).take(GRAMMAR, entry("").encode(), 0)


@each_kind
def test_a_survey_that_is_not_asked_for_duplicates(surveyors: Surveyors) -> None:
    """Without tables, duplicates are allowed; without limits, so is any date."""
    text = entry("<lastmod>9999-12-31T23:59:59Z</lastmod>") * 2
    survey = surveyors.survey(SurveyOptions())
    assert survey.has_pages is False
    position, full = 0, True
    while full:
        _, position, _, full = survey.take(GRAMMAR, text.encode(), position)
    assert (position, survey.has_pages, survey.stats.entries, survey.counts) == (len(text), True, 2, {})


@each_kind
def test_urls_that_may_be_disallowed(surveyors: Surveyors) -> None:
    """robots.txt is asked about a URL only if it contains the texts of a sequence in order, or escaped ASCII."""
    asked: list[str] = []

    def is_disallowed(url: str) -> bool:
        asked.append(url)
        return False

    sequences: dict[str, Callable[[str], bool]] = {
        "http://h/a/b": lambda url: url.startswith("http://h/a/b"),
        "http://h/a/ x y": lambda url: "/a/" in url and "y" in url.partition("x")[2],
        "http://h yy": lambda url: "yy" in url,
    }
    urls = [f"http://h/a/{text}" for text in ("", "b", "c", "xy", "yx", "xxyy", "ayybx", "%41", "%c3%a9", "%", "yxcy")]
    for sequence, may_be in sequences.items():
        asked.clear()
        options = SurveyOptions(may_disallow=(tuple(sequence.split()),), is_disallowed=is_disallowed)
        for url in urls:
            survey = surveyors.survey(options)
            survey.passed = ALL
            survey.take(GRAMMAR, entry("", url).encode(), 0)
        assert sorted(set(asked)) == sorted(url for url in urls if may_be(url) or "%4" in url)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://h", "https://h/"),
        ("https://h?x", "https://h/?x"),
        ("http://h:81#/", "http://h:81/#/"),
        ("http://u:p@h?a=http://b/", "http://u:p@h/?a=http://b/"),
        *((url, url) for url in ("https://h/", "http://h/a", "http://h//", "https://H/?x", "http://h/%41", "h", "")),
    ],
)
def test_urls_that_are_the_same(url: str, key: str) -> None:
    """An empty path equals "/" in every table; nothing else is equal."""
    assert same_url_key(url) == same_url_key(key) == key
    for surveyors in KINDS.values():
        table = surveyors.url_table(1)
        table.add(url, 5)
        table.add(key, 6)
        assert (table.find(url), table.find(key), table.find(f"{key}/"), table.is_full) == (6, 6, -1, False)
        assert table.hash_of(url) == table.hash_of(key) != table.hash_of(f"{key}/")


@compiled
@pytest.mark.parametrize("rest", ["", "?", "#a", "?a&amp;b", "?" + "x" * 65_000])
def test_urls_without_a_path_in_documents(rest: str) -> None:
    """A compiled survey and its table use the same hash for URLs without a path, as pages and as alternates."""
    page = f"http://ok{rest}"
    linked = links(("x-default", page), ("de", page)) if len(rest) < 1_000 else ""
    model = Model(SURVEYORS, ALL).read(document(entry(linked, page)))
    assert model.stops == []
    assert not {"H632", "H635"} & model.reader.counts.keys()
    text = page.replace("&amp;", "&")
    assert model.table.find(text) == model.table.find(text.replace("ok", "ok/", 1)) == NUMBER
    assert not model.clusters.has_open


@pytest.mark.parametrize(
    ("text", "days"),
    [
        *(("2024", 366), ("2026", 365), ("2026-11", 30), ("2024/2", 29), ("9999-12", 31), ("2026-11-15", 1)),
        *(("20261115", 1), ("15 Nov 2026", 1), ("2026-11-15T10:00", 1), ("2026-11-15T10:00Z", 0)),
    ],
)
def test_what_a_date_may_mean(text: str, days: int) -> None:
    """A date means the whole year, month or day that it states; with a zone, one moment."""
    date = parse_date(text)
    assert date is not None
    assert period_of(text, date) == days * 24 * 3_600_000_000


@each_kind
def test_a_table_finds_a_million(surveyors: Surveyors) -> None:
    """A table finds each of a million URLs with its number, and no other."""
    table = surveyors.url_table()
    for i in range(1_000_000):
        table.add(f"https://www.example.org/{i}", i & 0xFFFF)
    assert all(table.find(f"https://www.example.org/{i}") == i & 0xFFFF for i in range(1_000_000))
    assert all(table.find(f"https://www.example.org/{i}") == -1 for i in range(1_000_000, 1_500_000))
    assert not table.is_full


@each_kind
def test_a_full_table(surveyors: Surveyors) -> None:
    """A full table keeps its URLs, can change their numbers, and takes no new ones."""
    table = surveyors.url_table(1_000)
    for i in range(1_000):
        table.add(f"http://h/é{i}", 1)
    assert not table.is_full
    table.add("http://h/é7", (1 << 20) - 2)
    assert (table.find("http://h/é7"), table.is_full) == ((1 << 20) - 2, False)
    table.add("http://h/", 2)
    assert (table.find("http://h/"), table.find("http://h/é999"), table.is_full) == (-1, 1, True)


@compiled
def test_a_table_is_small() -> None:
    """Two million URLs take less than 20 bytes each."""
    program = (
        "import os; from usp.scan.survey import SURVEYORS\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')\n"
        "table, before = SURVEYORS.url_table(), resident()\n"
        "for i in range(2_000_000): table.add(f'https://www.example.org/{i}', 1)\n"
        "print((resident() - before) / 2_000_000)"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("where memory is read from is known on Linux only")
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 8 < float(made.stdout) < 20


@each_kind
@pytest.mark.parametrize(
    "home", ["http://h.example", "https://www.h.example", "http://h.example:81", "http://\u00fc.example"]
)
def test_hosts_of_others(home: str, surveyors: Surveyors) -> None:
    """A survey finds the code of the scope for every host, also where it need not ask the scope."""
    scope = scope_of(f"{home}/s.txt", DiscoveryPath())
    options = SurveyOptions(scope.sites, scope.elsewhere, scope.own_hosts)
    plain = ("h.example", "www.h.example", "www.www.h.example", "xn--tda.example", "other.example", "127.0.0.1", "www")
    odd = (
        "H.example",
        "h.example.",
        "h.example:80",
        "h.example:81",
        "a..b",
        "-",
        "\u00fc.example",
        "u@h.example",
        "www.",
    )
    found = {}
    for url in [f"{scheme}://{host}/a" for scheme in ("http", "https", "HTTP") for host in (*plain, "www.", *odd)]:
        survey = surveyors.survey(options)
        survey.passed = ALL
        survey.skips(Element("url", Kind(), 0, {}), url, sum(BITS[code] for code in ("U506", "U507", "U508", "U509")))
        found[url] = "".join(survey.counts)
    assert found == {url: elsewhere_code(url, options) for url in found}
    assert len(set(found.values())) > 2
