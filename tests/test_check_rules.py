"""The rules on entries and on single sitemaps find each problem at its place, and nothing else."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import usp.check.rules
from checks import HOME, NOW, check_site, found_at, found_in, place_of, report_of, url_of, urlset_of
from support import FakeResponse, Fixture, fixtures, index
from usp.check import Report, check_bytes, check_path
from usp.check.rules import MODULES, RULES, ensure_consistent
from usp.check.rules.rule import ERROR, SURVEYED_BY_CODE, EntryRule, Rule, SitemapRule
from usp.check.sitemaps import SiteTables
from usp.check.subjects import SitemapCheck
from usp.objects.codes import CODES
from usp.objects.problem import KEPT_PER_CODE, ProblemLog
from usp.objects.sitemap import AbstractSitemap, InvalidSitemap, PagesXMLSitemap
from usp.objects.transport import Transport
from usp.scan.columns import microseconds
from usp.scan.survey import PURE_SURVEYORS, SURVEYED, SURVEYORS, SitemapStats, Surveyors
from usp.tree import sitemap_from_bytes

PUBLICATION = "<news:publication><news:name>The Example</news:name><news:language>en</news:language></news:publication>"
NEWS_DATE = "<news:publication_date>2026-11-15T08:00:00Z</news:publication_date>"
TITLE = "<news:title>A bridge</news:title>"
VIDEO = {
    "thumbnail_loc": f"<video:thumbnail_loc>{HOME}t.jpg</video:thumbnail_loc>",
    "title": "<video:title>A title</video:title>",
    "description": "<video:description>Words</video:description>",
    "content_loc": f"<video:content_loc>{HOME}v.mp4</video:content_loc>",
}


def news(*fields: str) -> str:
    return f"<news:news>{''.join(fields)}</news:news>"


def video(**fields: str) -> str:
    return f"<video:video>{''.join((VIDEO | fields).values())}</video:video>"


def published(date: str) -> str:
    return video(publication_date=f"<video:publication_date>{date}</video:publication_date>")


def expiring(date: str) -> str:
    return video(expiration_date=f"<video:expiration_date>{date}</video:expiration_date>")


def found_by_sitemap_rules(sitemap: AbstractSitemap, stats: SitemapStats) -> list[str]:
    """Return the codes of the rules on whole sitemaps that find something."""
    check = SitemapCheck(sitemap, "", ProblemLog(HOME), stats)
    return [rule.code for rule in RULES.values() if isinstance(rule, SitemapRule) and rule.find(check) is not None]


def link(language: str, path: str) -> str:
    return f'<xhtml:link rel="alternate" hreflang="{language}" href="{HOME}{path}"/>'


def linked(path: str, *links: str) -> str:
    return url_of(path, *links)


DEFAULT = link("x-default", "a")

#: Code -> an entry with a mark where it is wrong, and the corrected entry.
ENTRIES: dict[str, list[tuple[str, str]]] = {
    "U503": [(f"<url><loc>¦{HOME.ljust(2_048, 'a')}</loc></url>", f"<url><loc>{HOME.ljust(2_047, 'a')}</loc></url>")],
    "U504": [
        (f"<url><loc>¦{HOME}a b</loc></url>", f"<url><loc>{HOME}a%20b</loc></url>"),
        (f"<url><loc> ¦{HOME}100%</loc></url>", f"<url><loc> {HOME}100%25</loc></url>"),
        (f"<url><loc>¦{HOME}?q={{x}}</loc></url>", f"<url><loc>{HOME}?q=[x]|</loc></url>".replace("|", "%7C")),
    ],
    "U505": [(f"<url><loc>¦{HOME}é</loc></url>", f"<url><loc>{HOME}%C3%A9</loc></url>")],
    "U506": [
        ("<url><loc>¦https://example.com/a</loc></url>", "<url><loc>HTTPS://WWW.Example.org:443/a</loc></url>"),
        ("<url><loc>¦https://news.example.org/</loc></url>", f"<url><loc>{HOME}</loc></url>"),
        ("<url><loc>¦https://www.example.org:8443/</loc></url>", "<url><loc>https://www.example.org</loc></url>"),
        ("<url><loc>¦https://www.example.org.example.com/</loc></url>", f"<url><loc>{HOME}www</loc></url>"),
    ],
    "U508": [("<url><loc>¦http://www.example.org/a</loc></url>", url_of("a"))],
    "U509": [
        ("<url><loc>¦https://example.org/a</loc></url>", url_of("a")),
        ("<url><loc>¦http://example.org/a</loc></url>", url_of("a")),
    ],
    "U510": [(f"<url><loc>¦{HOME}a#b</loc></url>", f"<url><loc>{HOME}a%23b</loc></url>")],
    "L303": [
        (
            url_of("a", "<lastmod>¦2026-11-15T12:30:00Z</lastmod>"),
            url_of("a", "<lastmod>2026-11-15T12:00:00Z</lastmod>"),
        ),
        (url_of("a", "<lastmod>¦2026-11-17</lastmod>"), url_of("a", "<lastmod>2026-11-16</lastmod>")),
        (url_of("a", "<lastmod>¦2027</lastmod>"), url_of("a", "<lastmod>2026</lastmod>")),
        (url_of("a", published("¦2026-11-15T12:30:00Z")), url_of("a", published("2026-11-15T12:00:00Z"))),
    ],
    "L305": [
        (url_of("a", "<lastmod>¦Wed, 08 May 2024 10:00:00 GMT</lastmod>"), url_of("a", "<lastmod>2024-05</lastmod>")),
        (url_of("a", "<lastmod> ¦2024-05-08 10:00</lastmod>"), url_of("a", "<lastmod>2024-05-08T10:00Z</lastmod>")),
        (url_of("a", "<lastmod>¦20240508</lastmod>"), url_of("a", "<lastmod>2024-05-08</lastmod>")),
        (url_of("a", video(), published("¦8 May 2024")), url_of("a", video(), published("2024-05-08"))),
    ],
    "L306": [
        (
            url_of("a", "<lastmod>¦2024-05-08T10:00:00</lastmod>"),
            url_of("a", "<lastmod>2024-05-08T10:00:00+02:00</lastmod>"),
        ),
        (url_of("a", published("¦2024-05-08T10:00:00")), url_of("a", published("2024-05-08T10:00:00Z"))),
    ],
    "P418": [(f"{url_of('a')}\n<url><loc>¦{HOME}a</loc></url>", f"{url_of('a')}\n{url_of('A')}")],
    "P423": [
        (url_of("a", "<changefreq>¦Daily</changefreq>"), url_of("a", "<changefreq>daily</changefreq>")),
    ],
    "N601": [
        (
            url_of(
                "a", news(PUBLICATION, "<news:publication_date>¦2026-11-13T11:59:00Z</news:publication_date>", TITLE)
            ),
            url_of(
                "a", news(PUBLICATION, "<news:publication_date>2026-11-13T12:01:00Z</news:publication_date>", TITLE)
            ),
        ),
        (
            url_of("a", news(PUBLICATION, "<news:publication_date>¦2026-11-12</news:publication_date>", TITLE)),
            url_of("a", news(PUBLICATION, "<news:publication_date>2026-11-13</news:publication_date>", TITLE)),
        ),
    ],
    "N603": [
        (url_of("a", "¦", news(NEWS_DATE, TITLE)), url_of("a", news(PUBLICATION, NEWS_DATE, TITLE))),
        (
            url_of("a", news("¦", PUBLICATION.replace("The Example", " "), NEWS_DATE, TITLE)),
            url_of("a", news(PUBLICATION, NEWS_DATE, TITLE)),
        ),
    ],
    "N604": [
        (
            url_of("a", news(PUBLICATION.replace(">en<", ">¦en-US<"), NEWS_DATE, TITLE)),
            url_of("a", news(PUBLICATION.replace(">en<", ">zh-tw<"), NEWS_DATE, TITLE)),
        )
    ],
    "I611": [
        (
            "¦"
            + url_of("a", *[f"<image:image><image:loc>{HOME}{n}.jpg</image:loc></image:image>" for n in range(1_001)]),
            url_of("a", *[f"<image:image><image:loc>{HOME}{n}.jpg</image:loc></image:image>" for n in range(1_000)]),
        )
    ],
    "V621": [
        (url_of("a", "¦", video(title="")), url_of("a", video())),
        (url_of("a", video(), "¦", video(thumbnail_loc="<video:thumbnail_loc/>")), url_of("a", video(), video())),
        (
            url_of("a", "¦", video(content_loc="")),
            url_of("a", video(content_loc=f"<video:player_loc>{HOME}p</video:player_loc>")),
        ),
    ],
    "V622": [
        (
            url_of("a", video(duration="<video:duration>¦28801</video:duration>")),
            url_of("a", video(duration="<video:duration>28800</video:duration>")),
        ),
        (
            url_of("a", video(rating="<video:rating>¦5.1</video:rating>")),
            url_of("a", video(rating="<video:rating>5.0</video:rating>")),
        ),
        (url_of("a", expiring("¦2026-11-15T11:59:00Z")), url_of("a", expiring("2026-11-15T12:01:00Z"))),
        (url_of("a", expiring("¦2026-11-13")), url_of("a", expiring("2026-11-14"))),
    ],
    "H631": [
        (linked("a", link("de", "a"), "¦", link("en-UK", "b"), DEFAULT), linked("a", link("de", "a"), DEFAULT)),
        (linked("a", "¦", link("en_US", "a"), DEFAULT), linked("a", link("en-us", "a"), DEFAULT)),
    ],
    "H632": [("¦" + linked("a", link("de", "b"), link("x-default", "c")), linked("a", link("de", "b"), DEFAULT))],
    "H634": [("¦" + linked("a", link("de", "a")), linked("a", link("de", "a"), link("X-Default", "c")))],
    "H635": [
        (
            linked("a", link("de", "a"), "¦", link("DE", "b"), DEFAULT),
            linked("a", link("de", "a"), link("de", "a"), link("de-AT", "b"), DEFAULT),
        )
    ],
    "H637": [
        (
            linked("a", link("de", "a"), DEFAULT, '¦<xhtml:link rel="alternate" hreflang="fr"/>'),
            linked("a", link("de", "a"), DEFAULT, '<xhtml:link rel="stylesheet" hreflang="fr"/>'),
        ),
        (
            linked("a", f'¦<xhtml:link rel="alternate" href="{HOME}m"/>'),
            linked("a", f'<xhtml:link rel="alternate" media="only screen" href="{HOME}m"/>'),
        ),
    ],
    "L307": [
        (url_of("a", "<lastmod>¦1994-12-31</lastmod>"), url_of("a", "<lastmod>1995-01-01</lastmod>")),
        (
            url_of("a", "<lastmod>¦1970-01-01T00:00:00+00:00</lastmod>"),
            url_of("a", "<lastmod>1995-01-01T00:00:00Z</lastmod>"),
        ),
        (url_of("a", "<lastmod>¦0001-01-01</lastmod>"), url_of("a", "<lastmod>2001-01-01</lastmod>")),
    ],
    "P432": [
        (url_of("a", "<lastmod>¦</lastmod>"), url_of("a", "<lastmod>2026</lastmod>")),
        (url_of("a", "<changefreq> ¦ </changefreq>".replace(" ¦ ", "¦")), url_of("a")),
    ],
    "P433": [
        (
            url_of("a", "<priority>1</priority><lastmod>¦2026</lastmod>"),
            url_of("a", "<lastmod>2026</lastmod><priority>1</priority>"),
        ),
        (
            f"<url><lastmod>2026</lastmod><loc>¦{HOME}a</loc></url>",
            f"<url><loc>{HOME}a</loc><lastmod>2026</lastmod></url>",
        ),
        (
            url_of("a", f"<image:image><image:loc>{HOME}i</image:loc></image:image><lastmod>¦2026</lastmod>"),
            url_of("a", f"<lastmod>2026</lastmod><image:image><image:loc>{HOME}i</image:loc></image:image>"),
        ),
    ],
    "U518": [
        (f"<url><loc>¦{HOME}a%2520b</loc></url>", f"<url><loc>{HOME}50%25-off</loc></url>"),
        (f"<url><loc>¦{HOME}caf%25C3%25A9</loc></url>", f"<url><loc>{HOME}20%25de-descuento</loc></url>"),
        (f"<url><loc>¦{HOME}?a%253Db</loc></url>", f"<url><loc>{HOME}?a%2530b</loc></url>"),
        (f"<url><loc>¦{HOME}?a=&amp;quot;b</loc></url>", f"<url><loc>{HOME}?a=1&amp;quot=b;</loc></url>"),
        (f"<url><loc>¦{HOME}?a=&amp;lt;b&amp;gt;</loc></url>", f"<url><loc>{HOME}?a=1&amp;lt=b;&amp;copy;</loc></url>"),
    ],
    "V623": [
        (
            url_of("a", video(content_loc=f"<video:content_loc>¦{HOME}a</video:content_loc>")),
            url_of("a", video(content_loc=f"<video:content_loc>{HOME}a.mp4</video:content_loc>")),
        ),
        (
            url_of("a", video(content_loc=f"¦<video:player_loc>{HOME}a</video:player_loc>")),
            url_of("a", video(content_loc=f"<video:player_loc>{HOME}player?a</video:player_loc>")),
        ),
        (
            url_of("a", video(content_loc=f'¦<video:player_loc allow_embed="yes">{HOME}a</video:player_loc>')),
            url_of("a", video(content_loc=f'<video:player_loc allow_embed="yes">{HOME}player?a</video:player_loc>')),
        ),
    ],
    "V624": [
        (
            url_of("a", "¦", video(duration="<video:tag>t</video:tag>" * 33)),
            url_of("a", video(duration="<video:tag>t</video:tag>" * 32)),
        )
    ],
    "V625": [
        (
            url_of("a", video(title=f"<video:title>¦{'t' * 101}</video:title>")),
            url_of("a", video(title=f"<video:title>{'t' * 100}</video:title>")),
        ),
        (
            url_of("a", video(description=f"<video:description>¦{'t' * 2_049}</video:description>")),
            url_of("a", video(description=f"<video:description>{'t' * 2_048}</video:description>")),
        ),
    ],
    "V626": [
        (
            url_of("a", video(duration="¦<video:restriction>GB</video:restriction>")),
            url_of("a", video(duration='<video:restriction relationship="deny">GB</video:restriction>')),
        ),
        (
            url_of("a", video(duration='¦<video:platform relationship="">web</video:platform>')),
            url_of("a", video(duration='<video:platform relationship="Allow">web</video:platform>')),
        ),
    ],
}
CASES = [
    pytest.param(code, bad, good, id=f"{code}-{number}")
    for code, cases in ENTRIES.items()
    for number, (bad, good) in enumerate(cases)
]
LATE = "2026-11-15T11:{:02}:00Z"


def test_every_rule_on_entries_is_tested() -> None:
    """Each rule on entries has a bad and a good entry here, or needs more than one sitemap."""
    rules = {code for code, rule in RULES.items() if isinstance(rule, EntryRule)}
    assert rules - ENTRIES.keys() == {"P419", "R709", "U507"}
    assert list(CODES) == list(RULES)


def module_of(*rules: Rule) -> Any:
    """Return a module of rules, as the registry takes it."""
    return SimpleNamespace(__file__="rules/example.py", RULES=rules)


def test_rules_are_checked_at_import() -> None:
    """Two rules of one code, or a rule and the survey that disagree, raise an error with the rule and its file."""
    known = [rule for rule in RULES.values() if rule.code != "U503"]
    surveyed = RULES["U503"]
    assert isinstance(surveyed, EntryRule)
    ensure_consistent([module_of(*known, surveyed)])
    new = EntryRule("U598", ERROR, "", surveyed.find)  # CONTRIBUTING adds U599
    ensure_consistent([module_of(*known, surveyed, new)])
    for rules, message in (
        ([surveyed, surveyed], r"rules/example.py: rule U503 is also in rules/example.py"),
        ([surveyed, Rule("Z101", ERROR, "")], r"rules/example.py: rule Z101 is of no group"),
        (
            [surveyed, replace(new, compiled=SURVEYED_BY_CODE)],
            r"rules/example.py: rule U598 says .* usp/scan/survey.py",
        ),
        ([replace(surveyed, compiled=None)], r"rules/example.py: rule U503 is in SURVEYED .* does not say"),
        ([], r"usp/scan/survey.py: SURVEYED has U503, but there is no such rule"),
    ):
        with pytest.raises(ValueError, match=message):
            ensure_consistent([module_of(*known, *rules)])


def test_every_module_of_rules_is_registered() -> None:
    """A file of rules that is not in the registry would be silent: each is there, and nothing else."""
    package = Path(usp.check.rules.__file__).parent
    files = {path.name for path in package.glob("*.py")} - {"__init__.py", "rule.py", "page.py"}
    assert {Path(str(module.__file__)).name for module in MODULES} == files


def test_the_survey_has_a_bit_for_each_of_its_codes() -> None:
    """Codes of the survey are distinct, and fit into the bits that it has."""
    assert len(set(SURVEYED)) == len(SURVEYED) <= 64


@pytest.mark.parametrize(("code", "bad", "good"), CASES)
def test_entries(code: str, bad: str, good: str) -> None:
    """A bad entry has only its code, at its place. The corrected entry has no problem."""
    marked = urlset_of(url_of("first"), bad)
    assert found_at(marked) == [("sitemap.xml", code, *place_of(marked))]
    assert found_at(urlset_of(url_of("first"), good)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("code", "bad", "good"), CASES)
@pytest.mark.parametrize("surveyors", [PURE_SURVEYORS, SURVEYORS], ids=["pure", "chosen"])
def test_many_entries(code: str, bad: str, good: str, surveyors: Surveyors) -> None:
    """Of many problems the first few are kept and all are counted, with each survey."""
    count = 2 * KEPT_PER_CODE + 1
    first = url_of("first", "<lastmod>2020-01-01</lastmod><priority>0.5</priority>")
    document = urlset_of(first, *(numbered(bad.replace("¦", ""), number) for number in range(count)))
    tree = sitemap_from_bytes(document.encode(), f"{HOME}sitemap.xml")
    (checked,) = report_of(tree, SiteTables(surveyors=surveyors)).sitemaps
    assert checked.problems.counts == {code: count}
    assert len(checked.problems) == KEPT_PER_CODE
    assert checked.pages == len(tree.pages)


def numbered(entry: str, number: int) -> str:
    """Return the entry with other URLs, which are the same where they were the same."""
    for end in ("</loc>", "</video:content_loc>", "</video:player_loc>", '"/>'):
        entry = entry.replace(end, f"?{number}{end}")
    return entry


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2024-02-29T10Z", "2024-02-29T10:00:00+00:00"),
        ("2024-02-29 10:00:00", "2024-02-29T10:00:00+hh:mm"),
        ("2024-02-29T10", "2024-02-29T10:00:00+hh:mm"),
        ("20240229T0000", "2024-02-29T00:00:00+hh:mm"),
        ("Thu, 29 Feb 2024 00:00:00 +0100", "2024-02-29T00:00:00+01:00"),
        ("29 Feb 2024", "2024-02-29"),
        ("2024/2/29", "2024-02-29"),
    ],
)
def test_dates_are_shown_in_the_right_form(text: str, written: str) -> None:
    """L305: the suggested date has a time and a zone if the text has a time."""
    (problem,) = check_site({"a.xml": urlset_of(url_of("a", f"<lastmod>{text}</lastmod>"))}).problems()
    assert problem.code == "L305"
    assert problem.message.endswith(f"write it as {written}")
    proper = written.replace("hh:mm", "01:00")
    assert found_at(urlset_of(url_of("a", f"<lastmod>{proper}</lastmod>"))) == []


def test_an_entry_counts_once_for_a_code() -> None:
    """Several bad dates or videos of one entry are one problem: the first of them."""
    bad = url_of("a", "<lastmod>20240508</lastmod>", published("20240508"), published("20240508"))
    (problem,) = check_site({"a.xml": urlset_of(bad)}).problems()
    assert (problem.code, "<lastmod>" in problem.message) == ("L305", True)


@pytest.mark.parametrize(("field", "code"), [("lastmod", "L301"), ("priority", "P420")])
def test_what_only_some_entries_state(field: str, code: str) -> None:
    """L301, P420: at least 90% of the entries must state the value; news sitemaps are exempt."""
    value = {"lastmod": "2024-05-08", "priority": "0.5"}[field]
    stated = [url_of(str(n), f"<{field}>{value}</{field}>") for n in range(18)]
    others = [url_of(f"other{n}") for n in range(3)]
    assert found_at(urlset_of(*stated, *others[:2])) == [("sitemap.xml", code, None, None)]
    assert found_at(urlset_of(*stated, *others)) == []
    story = news(PUBLICATION, NEWS_DATE, TITLE)
    for count, codes in ((9, [code]), (10, [])):
        entries = [entry.replace("</url>", f"{story}</url>") for entry in stated[:count]] + stated[count:]
        assert [found for _, found, _, _ in found_at(urlset_of(*entries))] == codes


def dated(count: int, date: Callable[[int], str]) -> str:
    return urlset_of(*(url_of(str(n), f"<lastmod>{date(n)}</lastmod>") for n in range(count)))


@pytest.mark.parametrize(
    ("code", "bad", "good"),
    [
        (
            "L301",
            dated(10, lambda n: "2024-05-08"),
            dated(10, lambda n: "2024-05-09" if n == 9 else "2024-05-08"),
        ),
        ("L301", dated(10, lambda n: "2024-05-08T10:00:00+02:00"), dated(9, lambda n: "2024-05-08T10:00:00+02:00")),
        (
            "P420",
            urlset_of(*(url_of(str(n), "<priority>0.5</priority>") for n in range(10))),
            urlset_of(*(url_of(str(n), f"<priority>0.{n}</priority>") for n in range(10))),
        ),
        ("P421", urlset_of(), urlset_of(url_of("a"))),
        (
            "N602",
            urlset_of(*(url_of(str(n), news(PUBLICATION, NEWS_DATE, TITLE)) for n in range(1_001))),
            urlset_of(*(url_of(str(n), news(PUBLICATION, NEWS_DATE, TITLE)) for n in range(1_000))),
        ),
        (
            "P415",
            urlset_of(*(url_of(str(n)) for n in range(50_001))),
            urlset_of(*(url_of(str(n)) for n in range(50_000))),
        ),
        (
            "P416",
            urlset_of(url_of("a"), " " * 50 * 1024 * 1024),
            urlset_of(url_of("a"), " " * (50 * 1024 * 1024 - 1_000)),
        ),
    ],
    ids=["L301-day", "L301-time", "P420", "P421", "N602", "P415", "P416"],
)
def test_sitemaps(code: str, bad: str, good: str) -> None:
    """A problem of a whole sitemap is reported once, without a place. The corrected sitemap has no problem."""
    assert found_at(bad) == [("sitemap.xml", code, None, None)]
    assert found_at(good) == []


@pytest.mark.slow
def test_large_when_inflated() -> None:
    """The uncompressed size of a gzip file counts."""
    large = gzip.compress(urlset_of(url_of("a"), " " * 50 * 1024 * 1024).encode())
    assert found_in(check_site({"sitemap.xml.gz": large})) == [("sitemap.xml.gz", "P416", None, None)]


@pytest.mark.parametrize(
    ("dates", "made", "expected"),
    [
        ([LATE.format(n) for n in range(10)], {"fetched_at": NOW}, ["L304"]),
        (["2026-11-15"] * 10, {"fetched_at": NOW}, ["L304"]),
        (["2026-11-15T11:59:00Z"] * 10, {"fetched_at": NOW}, ["L304"]),
        (["2026-11-15T12:02:00Z"] * 10, {"fetched_at": NOW}, ["L304"]),  # clocks differ
        (["2026-11-14"] * 10, {"fetched_at": NOW}, ["L301"]),
        (["2026-11-10"] * 10, {"fetched_at": NOW, "last_modified": NOW - timedelta(days=5)}, ["L304"]),
        ([LATE.format(n) for n in range(10)], {"fetched_at": NOW + timedelta(minutes=61)}, []),
        ([LATE.format(n) for n in range(9)] + ["2026-11-15T09:00:00Z"], {"fetched_at": NOW}, []),
        ([LATE.format(n) for n in range(9)], {"fetched_at": NOW}, []),
        (["2026-11-15"] * 10, {}, ["L301"]),
        ([LATE.format(n) for n in range(18)] + [""] * 2, {"fetched_at": NOW}, ["L304"]),
        ([LATE.format(n) for n in range(18)] + [""] * 3, {"fetched_at": NOW}, []),
        (
            ["9999-12-31T23:59:59+00:00"] * 10,
            {"last_modified": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
            ["L304"],
        ),
        (["0001-01-01T00:00:00+00:00"] * 10, {"last_modified": datetime(1, 1, 1, tzinfo=UTC)}, ["L304"]),
    ],
)
def test_build_dates(dates: list[str], made: dict[str, Any], expected: list[str]) -> None:
    """L304: all dates are just before the sitemap was made, or on that day."""
    stats = SitemapStats()
    for date in dates:
        stats.count(microseconds(datetime.fromisoformat(date)) if date else None, None, False)
    transport = replace(Transport(HOME, HOME), **made)
    codes = found_by_sitemap_rules(PagesXMLSitemap(HOME, [], transport=transport), stats)
    assert [code for code in codes if code in ("L301", "L304")] == expected


def test_build_dates_of_files(tmp_path: Path) -> None:
    """A file was made when it was last written."""
    file = tmp_path / "sitemap.xml"
    file.write_text(dated(10, lambda n: LATE.format(n)), "utf-8")
    os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    assert found_in(check_path(file, now=NOW)) == [(str(file), "L304", None, None)]


@pytest.mark.parametrize(
    ("name", "stated", "is_right"),
    [
        *(
            ("sitemap.xml", stated, True)
            for stated in ("text/xml; charset=UTF-8", "APPLICATION/XML", "application/x+xml")
        ),
        *(("sitemap.xml", stated, False) for stated in ("text/html", "text/plain", "", "application/gzip", "xml")),
        *(
            ("sitemap.xml.gz", stated, True)
            for stated in ("application/x-gzip", "application/octet-stream", "text/xml")
        ),
        *(("sitemap.xml.gz", stated, False) for stated in ("text/html", "text/plain", "application/zip")),
        *(("sitemap.txt", stated, stated == "text/plain") for stated in ("text/plain", "text/html", "application/xml")),
        *(
            ("robots.txt", stated, stated.startswith("text/plain"))
            for stated in ("text/plain;charset=utf-8", "text/html")
        ),
    ],
)
def test_content_types(name: str, stated: str, is_right: bool) -> None:
    """T806: the content type fits the document."""
    bodies: dict[str, str | bytes] = {
        "sitemap.xml": urlset_of(url_of("a")),
        "sitemap.xml.gz": gzip.compress(urlset_of(url_of("a")).encode()),
        "sitemap.txt": f"{HOME}a\n",
        "robots.txt": "User-agent: *\n",
    }
    body = bodies[name]
    data = body.encode() if isinstance(body, str) else body
    report = check_site({name: FakeResponse(data, HOME + name, {"Content-Type": stated} if stated else {})})
    assert found_in(report) == ([] if is_right else [(name, "T806", None, None)])


@pytest.mark.parametrize(("seconds", "codes"), [(10.0, []), (10.1, ["T808"]), (None, [])])
def test_slow_answers(seconds: float | None, codes: list[str]) -> None:
    """T808: a response may take ten seconds."""
    sitemap = PagesXMLSitemap(HOME, [], transport=Transport(HOME, HOME, 200, "text/xml", seconds=seconds))
    assert found_by_sitemap_rules(sitemap, SitemapStats(entries=1)) == codes


@pytest.mark.parametrize(
    ("paths", "is_wrong"),
    [
        (["/a"] * 3 + ["a"] * 2, True),
        (["a//b"] * 3 + ["a"] * 2, True),
        (["/a"] * 3 + ["a"] * 3, False),  # not most
        (["/a"] * 4, False),  # too few to tell
        (["a"] * 100 + ["/a"] * 200, False),  # only the first are looked at
        (["/a"] * 51 + ["a"] * 200, True),
        (["r/https://example.com/a"] * 5, False),  # a URL in a path
        (["a?u=//b"] * 5, False),
        (["a?u=http://h/b//c"] * 5, False),
    ],
)
def test_double_slashes(paths: list[str], is_wrong: bool) -> None:
    """U516: most of the first 100 paths have "//"."""
    document = urlset_of(*(url_of(f"{path}{number}") for number, path in enumerate(paths)))
    problems = list(check_bytes(document.encode(), name="sitemap.xml", now=NOW).problems())
    assert [(problem.code, problem.line) for problem in problems] == [("U516", None)] * is_wrong
    if is_wrong:
        count, total = sum("//" in path or path[0] == "/" for path in paths[:100]), min(len(paths), 100)
        message = (
            f'{count} of the first {total} URLs have "//" in their paths, such as {HOME}{paths[0]}0; write one "/"'
        )
        assert problems[0].message == message


@pytest.mark.parametrize(
    ("fields", "is_wrong"),
    [
        ("<lastmod>2026</lastmod>¦<lastmod>2025</lastmod>", True),
        ("<lastmod>2026</lastmod><priority>0.4</priority>¦<lastmod>2025</lastmod>", True),
        ("<changefreq>daily</changefreq>¦<changefreq>daily</changefreq>", True),
        ("<priority>0.4</priority>¦<priority>0.5</priority>", True),
        ("<lastmod>2026</lastmod><changefreq>daily</changefreq>", False),
    ],
)
def test_fields_that_are_there_twice(fields: str, is_wrong: bool) -> None:
    """P431: an entry has a field twice. The first counts."""
    marked = urlset_of(url_of("first"), url_of("a", fields))
    expected = [("sitemap.xml", "P431", *place_of(marked))] if is_wrong else []
    assert [found for found in found_at(marked) if found[1] != "P433"] == expected
    (_, page) = sitemap_from_bytes(marked.replace("¦", "").encode(), f"{HOME}sitemap.xml").pages
    assert page.last_modified is None or page.last_modified.year == 2026


@pytest.mark.parametrize(
    ("entry", "name", "hint"),
    [
        (f"¦<urls>{url_of('a')}</urls>", "urls", ": did you mean <url>?"),
        (f"¦<urlset>{url_of('a')}</urlset>", "urlset", ": did you mean <url>?"),
        ("¦<foo/>", "foo", ""),
        (f"{url_of('a')}¦<lastmod>2026-11-01</lastmod>", "lastmod", ""),
        ('<a:foo xmlns:a="urn:a"><foo/></a:foo>', "", ""),
        ("<br/>", "", ""),  # of a warning that a program printed
    ],
)
def test_unknown_elements_between_entries(entry: str, name: str, hint: str) -> None:
    """P429: the root holds an element that is no entry. The entries in it are read."""
    marked = urlset_of(url_of("first"), entry)
    report = check_bytes(marked.replace("¦", "").encode(), now=NOW)
    expected = [("P429", *place_of(marked), f"<{name}> is no element of a <urlset>; ")] if name else []
    found = [(each.code, each.line, each.column, each.message) for each in report.problems()]
    assert [(*place, message[: message.find("; ") + 2]) for *place, message in found] == expected
    assert all(message.endswith(f"refuse the sitemap{hint}") for *_, message in found)
    assert report.pages == 1 + entry.count("<loc>")


def test_entries_of_indexes() -> None:
    """In an index, URLs, dates and duplicates are checked, but not priorities and the like."""
    bad = index(f"{HOME}a b.xml", f"{HOME}c.xml").replace(
        "</loc></sitemap></s", "</loc><lastmod>2030</lastmod></sitemap></s"
    )
    bad = bad.replace("</sitemapindex>", f"\n<sitemap><loc>{HOME}c.xml</loc></sitemap></sitemapindex>")
    report = check_bytes(bad.encode(), url=f"{HOME}index.xml", now=NOW)
    assert [(problem.code, problem.line) for problem in report.problems()] == [("U504", 1), ("L303", 1), ("P418", 2)]


def test_entries_of_feeds() -> None:
    """In a feed, URLs are checked. It may link to comments and to other sites, and may be empty."""
    item = f"<item><title>T</title><link>{HOME}a#comment</link></item>\n"
    feed = '<rss version="2.0"><channel>\n{}</channel></rss>'
    bad = f"<item><title>T</title><link>{HOME}%</link></item>\n"
    assert found_in(check_site({"feed.rss": feed.format(item + bad)})) == [("feed.rss", "U504", 3, 23)]
    elsewhere = ("https://example.com/", "http://www.example.org/", "https://example.org/", HOME)
    items = "".join(f"<item><title>T</title><link>{url}</link></item>\n" for url in elsewhere)
    assert found_in(check_site({"feeds/feed.rss": feed.format(items)})) == []
    atom = "".join(f'<entry><title>T</title><link href="{url}"/></entry>\n' for url in elsewhere)
    report = check_site({"feed.xml": f'<feed xmlns="http://www.w3.org/2005/Atom">{atom}</feed>'})
    assert found_in(report) == []
    assert found_in(check_site({"feed.rss": feed.format(item)})) == []
    assert found_in(check_site({"feed.rss": feed.format("")})) == []


def test_lines_of_texts() -> None:
    """The lines of a text sitemap are entries with places."""
    text = f"{HOME}a\n\n  {HOME}b c\n{HOME}a\n"
    assert found_in(check_site({"sitemap.txt": text})) == [
        ("sitemap.txt", "U504", 3, 3),
        ("sitemap.txt", "P418", 4, 1),
    ]


def test_nothing_is_said_of_entries_that_were_left_out() -> None:
    """An entry without a URL has that problem only, and so has its sitemap."""
    assert [code for _, code, _, _ in found_at(urlset_of("<url><lastmod>2030-01-01</lastmod></url>"))] == ["P401"]


def test_now_needs_a_zone() -> None:
    """`now` needs a time zone."""
    with pytest.raises(ValueError, match="time zone"):
        check_bytes(b"", now=datetime(2026, 11, 15))


def is_said(tree: AbstractSitemap, report: Report) -> bool:
    """Return whether a report has all problems of a sitemap.

    For an invalid one, it has T807 and why XML parsers refuse it, but not what the search for its root had to skip.
    """
    if isinstance(tree, InvalidSitemap):
        refusals = {code for code in tree.problem_counts if code[0] == "X" and CODES[code].severity is ERROR}
        return set(report.counts()) == {"T807"} | refusals - {"X101", "X106", "X107", "X109", "X116"}
    return tree.problem_counts <= report.counts()


@pytest.mark.slow
@pytest.mark.parametrize("fixture", fixtures(), ids=lambda fixture: fixture.name)
def test_fixtures(fixture: Fixture) -> None:
    """Every fixture is checked, keeps its problems, and both surveys find the same."""
    tree = sitemap_from_bytes(fixture.data, f"{HOME}{fixture.file}")
    reports = [report_of(tree, SiteTables(surveyors=each)) for each in (PURE_SURVEYORS, SURVEYORS)]
    assert reports[0] == reports[1]
    assert is_said(tree, reports[0])
    assert reports[0].pages == len(tree.pages)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_damaged_documents(data: st.DataObject) -> None:
    """Nothing raises, and both surveys find the same, however a document is cut or changed."""
    bad = [entry.replace("¦", "") for cases in ENTRIES.values() for entry, _ in cases if len(entry) < 2_000]
    document = urlset_of(*data.draw(st.lists(st.sampled_from(bad), max_size=6))).encode()
    at = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(at, min(at + 20, len(document))))
    document = (
        document[:at]
        + data.draw(st.sampled_from([b"", b"<", b"&", b"\xff", b"</url>", b"<url>", b'"']))
        + document[end:]
    )
    tree = sitemap_from_bytes(document, f"{HOME}sitemap.xml")
    reports = [report_of(tree, SiteTables(surveyors=each)) for each in (PURE_SURVEYORS, SURVEYORS)]
    assert reports[0] == reports[1]
    assert is_said(tree, reports[0])


def test_rules_are_imported_when_a_problem_is_looked_up() -> None:
    """The command line, fetching and parsing import no rules; the first problem does."""
    program = (
        "import sys; from usp.tree import sitemap_from_str\n"
        "def is_imported(): return any(name.startswith('usp.check.rules') for name in sys.modules)\n"
        "from usp.cli.cli import parser; parser()\n"
        "root = '<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>https://h/'\n"
        "sitemap_from_str(root + 'a</loc></url></urlset>').pages[0]\n"
        "before = is_imported()\n"
        "sitemap_from_str(root + 'a?b&c</loc></url></urlset>').problems[0].message\n"
        "print(before, is_imported())"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["False", "True"]
