"""Equal URLs in different spellings, dates of news, and rules that the survey does not know."""

from __future__ import annotations

import pytest

from checks import HOME, check_site, found_at, found_in, place_of, report_of, site_of, url_of, urlset_of
from usp.check.rules import RULES
from usp.check.rules.rule import PAGES, WARNING, EntryRule, Finding
from usp.check.sitemaps import SiteTables
from usp.check.subjects import Entry
from usp.scan.survey import PURE_SURVEYORS, SURVEYORS, Surveyors
from usp.tree import sitemap_from_bytes, sitemap_tree_for_homepage

BARE = HOME.removesuffix("/")
EACH_SURVEY = pytest.mark.parametrize("surveyors", [SURVEYORS, PURE_SURVEYORS], ids=["in use", "pure"])
STORY = (
    "<news:news><news:publication><news:name>N</news:name><news:language>en</news:language></news:publication>"
    "<news:publication_date>{}</news:publication_date><news:title>T</news:title></news:news>"
)


def page(url: str, **alternates: str) -> str:
    """Return an entry with alternates by language; the first one is also x-default."""
    languages = {"x-default": next(iter(alternates.values())), **alternates} if alternates else {}
    links = (
        f'<xhtml:link rel="alternate" hreflang="{language}" href="{link}"/>' for language, link in languages.items()
    )
    return f"<url><loc>{url}</loc>{''.join(links)}</url>"


def found(surveyors: Surveyors, *sitemaps: str) -> list[tuple[str, str, int | None]]:
    files = {f"{number}.xml": sitemap for number, sitemap in enumerate(sitemaps)}
    tree = sitemap_tree_for_homepage(HOME, site_of(files), use_known_paths=False)
    report = report_of(tree, SiteTables(surveyors=surveyors))
    return [(name, code, line) for name, code, line, _ in found_in(report)]


@EACH_SURVEY
@pytest.mark.parametrize(("one", "other"), [(BARE, HOME), (f"{HOME}?x", f"{BARE}?x")])
def test_a_homepage_listed_twice(one: str, other: str, surveyors: Surveyors) -> None:
    """P418 and P419: a URL without a path equals the one with a slash, whichever comes first."""
    for first, second in ((one, other), (other, one)):
        assert found(surveyors, urlset_of(page(first), page(second))) == [("0.xml", "P418", 3)]
        assert found(surveyors, urlset_of(page(first)), urlset_of(page(second))) == [("1.xml", "P419", 2)]
        assert found(surveyors, urlset_of(page(first)), urlset_of(page(f"{second}//"))) == []


@EACH_SURVEY
@pytest.mark.parametrize("own", [BARE, HOME])
@pytest.mark.parametrize("named", [BARE, HOME])
def test_the_homepage_among_its_alternates(own: str, named: str, surveyors: Surveyors) -> None:
    """H632, H635 and H633: a homepage is among its alternates, and linked back to, with or without its slash."""
    french = f"{HOME}fr"
    entries = page(own, en=named, EN=HOME, fr=french), page(french, fr=french, en=named)
    assert found(surveyors, urlset_of(*entries)) == []
    assert found(surveyors, urlset_of(entries[1]), urlset_of(entries[0])) == []
    without = page(french, fr=french, **{"en-GB": f"{HOME}gb"})
    assert found(surveyors, urlset_of(page(own, en=named, fr=french), without)) == [("0.xml", "H633", 2)]
    assert found(surveyors, urlset_of(page(own, fr=french, en=f"{HOME}en"))) == [("0.xml", "H632", 2)]


@EACH_SURVEY
def test_a_homepage_that_does_not_link_back(surveyors: Surveyors) -> None:
    """H633: if a homepage is linked in one spelling and listed in the other, the link is reported once."""
    french = f"{HOME}fr"
    for listed, linked in ((BARE, HOME), (HOME, BARE)):
        entries = page(french, fr=french, en=linked, de=linked), page(listed)
        assert found(surveyors, urlset_of(*entries)) == [("0.xml", "H633", 2)]
    # Another entry of the same page may have the links.
    more = page(french, fr=french, en=HOME), page(HOME), page(BARE, en=BARE, fr=french)
    assert [code for _, code, _ in found(surveyors, urlset_of(*more))] == ["P418"]


@pytest.mark.parametrize(
    ("date", "codes"),
    [
        ("¦15 Nov 2026", ["L305"]),
        ("¦2026-11-15T10:00", ["L306"]),
        ("¦2026-11-17T10:00:00Z", ["L303"]),
        ("¦2026-11-01 10:00", ["L305", "N601"]),
        ("¦2026-10", ["N601"]),
        ("¦2025", ["N601"]),
        *((date, []) for date in ("2026", "2026-11", "2026-11-13", "2026-11-15T10:00:00Z")),
    ],
)
def test_dates_of_news(date: str, codes: list[str]) -> None:
    """L303, L305, L306 and N601: a publication date has the format of other dates, and may be a year or a month."""
    text = urlset_of(url_of("a", STORY.format(date)))
    places = [("sitemap.xml", code, *place_of(text)) for code in codes]
    assert found_at(text) == places
    many = [url_of(str(number), STORY.format(date.replace("¦", ""))) for number in range(60)]
    assert check_site({"sitemap.xml": urlset_of(*many)}).counts() == dict.fromkeys(codes, 60)


def test_dates_of_one_entry() -> None:
    """An entry has one problem of each code: its lastmod comes before the date of news. The message says which."""
    both = url_of("a", "<lastmod>2024/05/08</lastmod>", STORY.format("15 Nov 2026"))
    report = check_site({"sitemap.xml": urlset_of(both, url_of("b", STORY.format("15 Nov 2026")))})
    assert [(problem.line, problem.text) for problem in report.problems()] == [(2, "2024/05/08"), (3, "15 Nov 2026")]
    of_page, of_news = (problem.message for problem in report.problems())
    assert "<lastmod>" in of_page
    assert "<news:publication_date>" in of_news
    differing = url_of("a", "<lastmod>2024/05/08</lastmod>", STORY.format("2026-11-15T10:00"))
    assert check_site({"sitemap.xml": urlset_of(differing)}).counts() == {"L305": 1, "L306": 1}


@EACH_SURVEY
def test_listed_elsewhere_and_twice_here(surveyors: Surveyors) -> None:
    """P418: a page that another sitemap lists too is reported if this one lists it twice; it counts once."""
    image = f"<image:image><image:loc>{HOME}i.png</image:loc></image:image>"
    for second, codes in ((url_of("p"), ["P419", "P418"]), (url_of("p", image), ["P418"])):
        files = {"a.xml": urlset_of(url_of("p"), url_of("q")), "b.xml": urlset_of(second, second)}
        tree = sitemap_tree_for_homepage(HOME, site_of(files), use_known_paths=False)
        checked = report_of(tree, SiteTables(surveyors=surveyors)).sitemaps[-1]
        assert [problem.code for problem in checked.problems] == codes
        assert checked.pages == 1


@EACH_SURVEY
@pytest.mark.parametrize(
    "attributes", ['hreflang="&amp" href="{}a"', 'hreflang="{}a&b"', 'title="a&b" hreflang="de" href="{}a"']
)
def test_ampersands_in_attributes(surveyors: Surveyors, attributes: str) -> None:
    """X102: a bare "&" is reported in every attribute of a link."""
    entry = url_of("a", f'<xhtml:link rel="alternate" {attributes.format(HOME)}/>')
    codes = [code for _, code, _ in found(surveyors, urlset_of(entry))]
    assert "X102" in codes


@EACH_SURVEY
def test_a_rule_that_the_survey_does_not_know(surveyors: Surveyors) -> None:
    """A rule that the survey does not know sees every entry; what other rules find stays the same."""

    def session_in_url(entry: Entry) -> Finding | None:
        return Finding(entry.at, entry.text) if "sessionid=" in entry.url else None

    rules = (*RULES.values(), EntryRule("U511", WARNING, "a session in the URL", session_in_url, PAGES))
    plain = [url_of(f"{number}?sessionid={number}", "<priority>0.5</priority>") for number in range(3)]
    entries = [url_of("a"), *plain, url_of("b#c"), url_of("a")]
    tree = sitemap_from_bytes(urlset_of(*entries).encode(), f"{HOME}0.xml")
    report = report_of(tree, SiteTables(surveyors=surveyors), rules)
    assert [(problem.code, problem.line) for problem in report.problems()] == [
        *(("U511", line) for line in (3, 4, 5)),
        ("U510", 6),
        ("P418", 7),
    ]
    many = urlset_of(*(url_of(f"{number}?sessionid=1#x") for number in range(60)))
    counts = report_of(
        sitemap_from_bytes(many.encode(), f"{HOME}0.xml"), SiteTables(surveyors=surveyors), rules
    ).counts()
    assert counts == {"U511": 60, "U510": 60}


def test_a_host_that_is_too_long() -> None:
    """A host outside ASCII that is too long for any host is reported like any other."""
    report = check_site({"sitemap.xml": urlset_of(f"<url><loc>http://{'ü' * 300}/</loc></url>")})
    assert [code for _, code, _, _ in found_in(report)] == ["U505"]
