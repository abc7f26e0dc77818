"""The formats of a report, with reports written by hand."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pydantic import BaseModel
from sarif.loader import load_sarif_file  # type: ignore[import-untyped]
from sarif_pydantic import Sarif  # type: ignore[import-untyped]

from usp.check.formats import FORMATS, render
from usp.check.formats.html import STYLE
from usp.check.formats.text import STYLES
from usp.check.formats.text import render as render_text
from usp.check.formats.views import limited
from usp.check.report import CheckedSitemap, Report
from usp.check.rules.page import rule_page
from usp.exceptions import InvalidArgumentError
from usp.objects.codes import CODES, Severity
from usp.objects.problem import Problem, Problems, printable, shortened
from usp.version import __version__

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
BASE = "https://www.example.org/"
ROOT = CheckedSitemap("", BASE, "IndexWebsiteSitemap", 0, Problems())
MESSAGE = "what is wrong; what to do"
HOSTILE = '"><script>alert(1)</script>\x1b[31m\u202e\r\n::error::%'


def sitemap(
    name: str, *problems: Problem, pages: int = 0, more: int = 0, url: str = "", is_file: bool = False
) -> CheckedSitemap:
    """Return a sitemap with problems; of the first code, there are more that were not kept."""
    counts = Counter(problem.code for problem in problems)
    if more:
        counts[problems[0].code] += more
    return CheckedSitemap(name, url or f"{BASE}{name}", "PagesXMLSitemap", pages, Problems(problems, counts), is_file)


def problem(
    code: str, line: int | None = None, column: int | None = None, *, text: str = "", message: str = MESSAGE
) -> Problem:
    return Problem(code, message, f"{BASE}sitemap.xml", line, column, text)


AMPERSAND = problem("X102", 4319, 17, text="&", message='bare "&" in <loc>; write "&amp;"')
SAME = problem("L301", message="48,201 of 48,201 entries have the same lastmod; write when each page last changed")
REPORT = Report(BASE, (ROOT, sitemap("robots.txt"), sitemap("sitemap.xml", AMPERSAND, SAME, pages=48_201)))
CLEAN = Report(BASE, (ROOT, sitemap("sitemap.xml", pages=1)))


def rendered(name: str, report: Report) -> str:
    return "".join(render(name, report, now=NOW))


def mixed() -> Report:
    """Return a report with everything: problems with and without places, all severities, hostile names and texts."""
    many = [problem("X102", 10 + i, 5, text="&") for i in range(20)]
    odd = problem("U502", 3, 9, text=f"javascript:alert(1){HOSTILE}", message=f"not a URL: {HOSTILE}")
    return Report(
        BASE,
        (
            ROOT,
            sitemap("sitemap.xml", *many, problem("P420"), pages=50_000, more=4_711),
            sitemap(HOSTILE, odd, problem("P418", 12, 10, text=f"{BASE}a"), url=f"javascript:alert(1)//{HOSTILE}"),
        ),
    )


def test_text() -> None:
    """There is one line for each problem, in columns, and a summary."""
    assert rendered("text", REPORT) == (
        'sitemap.xml:4319:17  error    X102  bare "&" in <loc>; write "&amp;"\n'
        "sitemap.xml          warning  L301  48,201 of 48,201 entries have the same lastmod; write when each page last"
        " changed\n"
        "2 sitemaps, 48,201 pages, 1 error, 1 warning\n"
    )


def test_a_url_that_starts_another_one_in_the_message_is_shown() -> None:
    """A message that has a longer URL, which starts like that of the problem, does not tell that of the problem."""
    for url, is_told in ((f"{BASE}a", False), (f"{BASE}archive/", True), (f"{BASE}archive", False), (BASE, False)):
        one = problem("U507", 3, 9, text=url, message=f"the URL is outside {BASE}archive/, its folder")
        report = Report(BASE, (sitemap("a.xml", one),))
        assert (f"({url})" not in rendered("text", report)) == is_told
        assert (f">{url}</a></code>" not in rendered("html", report)) == is_told


def test_text_of_a_clean_site() -> None:
    """Without problems the summary says so, with correct plurals."""
    assert rendered("text", CLEAN) == "1 sitemap, 1 page, no problems\n"


def test_text_aligns_the_whole_report() -> None:
    """Severities stand in one column over all sitemaps. A very long URL sticks out, and moves nobody else's columns."""
    report = Report(BASE, (sitemap("a.xml", problem("X102", 1, 2)), sitemap("maps/b.xml", problem("X102", 1, 2))))
    first, second, _ = rendered("text", report).splitlines()
    assert first.index("error") == second.index("error") == len("maps/b.xml:1:2  ")
    report = Report(BASE, (sitemap("a.xml", problem("X102", 1, 2)), sitemap("b" * 300, problem("X102", 1, 2))))
    first, second, _ = rendered("text", report).splitlines()
    assert first.index("error") == 74
    assert second.startswith(f"{'b' * 300}:1:2  error    X102  ")


def test_text_says_how_many_more_there_are() -> None:
    """A line for each code and sitemap says how many problems were not kept."""
    lines = rendered("text", mixed()).splitlines()
    assert "… and 4,711 more X102 in sitemap.xml" in lines
    assert lines[-1] == "2 sitemaps, 50,000 pages, 4,732 errors, 1 warning, 1 notice"
    assert sum("  X102  " in line for line in lines) == 20


def test_text_paints_parts() -> None:
    """Severity, code and summary can be styled, and nothing else changes."""
    painted = "".join(render_text(mixed(), paint=lambda piece, part: f"[{part}]{piece}[/]"))
    assert "[error]error[/]    [code]X102[/]  " in painted
    assert set(re.findall(r"\[(\w+)\]", painted)) - {"31m"} == set(STYLES)
    assert re.sub(r"\[/\]|\[(?:error|warning|info|code|more|summary)\]", "", painted) == rendered("text", mixed())


def test_the_most_severe_are_shown() -> None:
    """A limit keeps the most severe problems in their order, and all counts."""
    report = limited(mixed(), 3)
    assert [found.code for found in report.problems()] == ["X102", "X102", "X102"]
    assert report.summary() == mixed().summary()
    assert limited(mixed(), 22).sitemaps[2].problems[-1].code == "P418"
    assert limited(mixed(), 1_000) == mixed()
    lines = rendered("text", limited(mixed(), 2)).splitlines()
    assert lines[2:-1] == [
        "… and 4,729 more X102 in sitemap.xml",
        f"… and 1 more U502 in {printable(HOSTILE)}",
        f"… and 1 more P418 in {printable(HOSTILE)}",
        "… and 1 more P420 in sitemap.xml",
    ]
    assert rendered("text", limited(mixed(), 0)) == f"{mixed().summary()}\n"


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_reaches_a_terminal_unescaped(name: str) -> None:
    """No format prints control characters or line breaks that come from a site."""
    output = rendered(name, mixed())
    assert [c for c in output if not c.isprintable() and c != "\n"] == []
    if name in ("text", "github"):
        assert "\n::error::" not in output
        assert len(output.splitlines()) == len(list(mixed().problems())) + (2 if name == "text" else 1)


def test_json() -> None:
    """The object has a version, a summary with true counts, the sitemaps and the problems, in the order of the tree."""
    found = json.loads(rendered("json", mixed()))
    assert list(found) == [
        *("version", "target", "checked_at", "is_reached", "outcome", "notes", "summary", "sitemaps", "problems")
    ]
    assert (found["outcome"], found["notes"]) == ({"kind": "complete", "reason": ""}, [])
    assert (found["version"], found["target"], found["checked_at"]) == (1, BASE, "2026-11-15T12:00:00+00:00")
    assert found["summary"] == {
        "sitemaps": 2,
        "pages": 50_000,
        "errors": 4_732,
        "warnings": 1,
        "infos": 1,
        "codes": {"X102": 4_731, "U502": 1, "P418": 1, "P420": 1},
    }
    assert [entry["counts"] for entry in found["sitemaps"]] == [{}, {"P420": 1, "X102": 4_731}, {"P418": 1, "U502": 1}]
    assert found["problems"][0] == {**next(mixed().problems()).to_dict(), "sitemap": "sitemap.xml"}
    assert len(found["problems"]) == 23


def sarif(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(rendered("sarif", report))
    return found


def test_sarif_is_read_by_others(tmp_path: Path) -> None:
    """Microsoft's reader finds every result with its severity, code, place and message."""
    path = tmp_path / "report.sarif"
    path.write_text(rendered("sarif", mixed()), "utf-8")
    read = load_sarif_file(str(path))
    assert read.get_distinct_tool_names() == ["usp"]
    assert read.get_result_count() == 23
    counts = {level: read.get_report().get_issue_count_for_severity(level) for level in ("error", "warning", "note")}
    assert counts == {"error": 21, "warning": 1, "note": 1}
    first = read.get_records()[0]
    assert (first["Location"], first["Line"], first["Severity"]) == (f"{BASE}sitemap.xml", 10, "error")
    assert (first["Code"], first["Description"]) == ("X102", MESSAGE)


def unknown(value: object, path: str = "") -> Iterator[str]:
    """The properties in a model that it does not know."""
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from unknown(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from unknown(item, path)


def test_sarif_has_the_form_of_the_specification() -> None:
    """Every property is one of SARIF 2.1.0, with a value of its type."""
    log = Sarif.model_validate(sarif(mixed()))
    # In the specification (3.14.17 and 3.20.21), and not in this reader.
    assert set(unknown(log)) == {".runs.columnKind", ".runs.invocations.toolExecutionNotifications"}
    found = sarif(mixed())
    assert (found["$schema"], found["version"]) == ("https://json.schemastore.org/sarif-2.1.0.json", "2.1.0")
    (run,) = found["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["endTimeUtc"]) == (True, "2026-11-15T12:00:00Z")
    assert [note["message"]["text"] for note in invocation["toolExecutionNotifications"]] == [
        "and 4,711 more X102 in sitemap.xml"
    ]


def test_sarif_rules() -> None:
    """Each code with problems is a rule with its page, and results refer to it."""
    (run,) = sarif(mixed())["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("usp", __version__)
    assert [rule["id"] for rule in driver["rules"]] == ["P418", "P420", "U502", "X102"]
    levels = [rule["defaultConfiguration"]["level"] for rule in driver["rules"]]
    assert levels == ["warning", "note", "error", "error"]
    ampersand = driver["rules"][3]
    assert ampersand["name"] == "BareAmpersand"
    assert ampersand["shortDescription"]["text"] == 'bare "&"'
    assert ampersand["help"]["markdown"].startswith('# X102: bare "&"')
    assert ampersand["helpUri"].startswith("https://")
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_places() -> None:
    """A place is a line and a column; a problem without a place belongs to the whole sitemap."""
    (run,) = sarif(mixed())["runs"]
    regions = [result["locations"][0]["physicalLocation"].get("region") for result in run["results"]]
    assert regions[0] == {"startLine": 10, "startColumn": 5}
    assert regions[20] is None


@pytest.mark.parametrize(
    ("name", "is_file", "uri"),
    [
        ("sitemap.xml", False, f"{BASE}sitemap.xml"),
        ("public/maps/site map.xml", True, "public/maps/site%20map.xml"),
        ("./sitemap.xml", True, "sitemap.xml"),
        ("a/a:b#é?.xml", True, "a/a%3Ab%23%C3%A9%3F.xml"),
        ("/srv/site/sitemap.xml", True, "file:///srv/site/sitemap.xml"),
        ("-", True, "stdin"),
    ],
)
def test_sarif_locations(name: str, is_file: bool, uri: str) -> None:
    """Sitemaps of a site have their URLs, files their paths, percent-encoded; relative paths stay relative."""
    checked = sitemap(name, AMPERSAND, url=f"{BASE}sitemap.xml", is_file=is_file)
    (run,) = sarif(Report(f"{BASE}, public", (checked,)))["runs"]
    found = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert found == uri
    assert re.fullmatch(r"[\w.~:/?#\[\]@!$&'()*+,;=%-]+", found, re.ASCII)


def test_sarif_fingerprints() -> None:
    """A fingerprint stays the same when lines move, and all are different."""

    def prints(report: Report) -> list[str]:
        return [result["partialFingerprints"]["uspProblem/v1"] for result in sarif(report)["runs"][0]["results"]]

    before = [problem("X102", 3, 1, text="&"), problem("X102", 9, 1, text="&"), problem("P418", 9, 1, text=f"{BASE}a")]
    after = [problem(found.code, (found.line or 0) + 100, 7, text=found.text) for found in before]
    assert prints(Report(BASE, (sitemap("a.xml", *before),))) == prints(Report(BASE, (sitemap("a.xml", *after),)))
    assert len(set(prints(mixed()))) == 23


def test_rules_have_names() -> None:
    """The page of every code has all parts that formats show, and its title makes an identifier."""
    for code in CODES:
        rule = rule_page(code)
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]{3,}", rule.name), rule
        assert all((rule.title, rule.what, rule.why, rule.specifications)), rule


def test_github() -> None:
    """Each problem is a workflow command of its severity, with GitHub's escapes."""
    odd = problem("P420", 1, message="100% of\r\nthem")
    report = Report("a", (sitemap("a/b:c,d%.xml", odd, SAME, AMPERSAND, more=1, is_file=True),))
    assert rendered("github", report).splitlines() == [
        "::notice file=a/b%3Ac%2Cd%25.xml,line=1,title=P420::100%25 of\\r\\nthem",
        f"::warning file=a/b%3Ac%2Cd%25.xml,title=L301::{SAME.message}",
        '::error file=a/b%3Ac%2Cd%25.xml,line=4319,col=17,title=X102::bare "&" in <loc>; write "&amp;"',
        "::notice file=a/b%3Ac%2Cd%25.xml,title=P420::and 1 more P420 in a/b:c,d%25.xml",
    ]


def test_github_paths_have_no_dot() -> None:
    """The paths of a folder that was named "." are those of the repository."""
    report = Report("a", (sitemap(os.path.join(".", "maps", "a.xml"), SAME, is_file=True),))
    assert rendered("github", report).startswith("::warning file=maps/a.xml,")


class Page(HTMLParser):
    """A page as a browser reads it: which elements and links there are, and whether tags match."""

    VOID = ("meta", "br", "link", "img", "input", "hr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute)) is not None]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_html_needs_nothing_else() -> None:
    """The page loads nothing and runs nothing, and its policy forbids it."""
    text = rendered("html", mixed())
    page = Page(text)
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form", "base", "foreignobject"})
    assert page.values("src") == []
    assert not re.search(r"url\(|@import|\son\w+=", STYLE + re.sub(r"(?s)<style>.*</style>", "", text))
    assert any("default-src 'none'" in content for content in page.values("content"))


def test_html_is_accessible() -> None:
    """The page has a language, a title and headings in order; its own links lead to places in it."""
    text = rendered("html", mixed())
    page = Page(text)
    assert page.all("html") == [{"lang": "en"}]
    assert ("title", f"Sitemap check: {BASE}") in page.texts
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = set(page.values("id"))
    assert {href[1:] for href in page.values("href") if href.startswith("#")} <= ids
    assert "width=device-width, initial-scale=1" in page.values("content")


def test_html_shows_rules_and_entries() -> None:
    """Each rule has a bar that grows with the count, its problems, and an explanation."""
    page = Page(rendered("html", mixed()))
    bars = [float(found[1]) for style in page.values("style") if (found := re.match(r"width: ([\d.]+)%", style))]
    assert bars[0] == 100
    assert len(bars) == len(mixed().counts()) == len([one for one in page.all("details") if one])
    assert 0 < bars[1] == bars[2] == bars[3] < bars[0]
    words = " ".join(text for _, text in page.texts)
    assert "4,731 errors" in words
    assert "… and 4,711 more." in words
    assert words.count(MESSAGE) == 3  # equal sentences stand there once
    assert "20 times" in words
    assert "15 more places" in words
    for code in mixed().counts():
        assert f"#{code}-page" in page.values("href")
        assert " ".join(rule_page(code).why.replace("`", " ").split())[:20] in " ".join(words.split())


def test_html_does_not_trust_what_sites_say() -> None:
    """Hostile names and URLs are text, and only http and https URLs are links."""
    report = Report(f"{BASE}{HOSTILE}", (*mixed().sitemaps, sitemap("a", AMPERSAND, url=f"{BASE}?a='&b=<i>{HOSTILE}")))
    page = Page(rendered("html", report))
    assert all(href.startswith(("#", "https://")) for href in page.values("href"))
    assert {"script", "i"}.isdisjoint(tag for tag, _ in page.elements)
    shown = "".join(text for _, text in page.texts)
    assert '"><script>alert(1)</script>\\x1b[31m\\u202e' in shown
    assert all("script" not in unquote(href) for href in page.values("href"))


def test_html_links_what_is_on_a_site() -> None:
    """Sitemaps of a site are links; files are not."""
    for is_file, links in ((False, {f"{BASE}sitemap.xml"}), (True, set())):
        page = Page(rendered("html", Report(BASE, (sitemap("sitemap.xml", AMPERSAND, is_file=is_file),))))
        own = {BASE, *rule_page("X102").specifications}
        assert {href for href in page.values("href") if not href.startswith("#")} - own == links


def test_html_links_pages() -> None:
    """URLs in the text of a problem and in its message are links; other schemes, and URLs that were cut, are not."""
    texts = (f"{BASE}a?b=1&c=2", "javascript:alert(1)", f"ftp://{HOSTILE}", shortened(f"{BASE}{'long/' * 99}"))
    problems = [problem("U506", 3, 1, text=text, message=f"see {BASE}maps, or not") for text in texts]
    page = Page(rendered("html", Report(BASE, (sitemap("a.xml", *problems, is_file=True),))))
    links = {href for href in page.values("href") if not href.startswith("#")}
    assert links - set(rule_page("U506").specifications) == {BASE, f"{BASE}a?b=1&c=2", f"{BASE}maps"}


def test_html_lists_all_sitemaps_and_draws_the_worst() -> None:
    """The table has every sitemap, also those without problems. The chart has the worst, with links to their rows."""
    clean = [sitemap(f"clean-{number}.xml") for number in range(30)]
    bad = [sitemap(f"bad-{number}.xml", *[AMPERSAND] * (number + 1), SAME) for number in range(25)]
    page = Page(rendered("html", Report(BASE, (ROOT, *clean, *bad))))
    rows = {row["id"] for row in page.all("tr") if "id" in row}
    assert len(rows) == 55
    drawn = {href for href in page.values("href") if href.startswith("#sitemap-")}
    assert drawn == {f"#sitemap-{number}" for number in range(35, 55)}
    widths = [float(one["width"] or 0) for one in page.all("rect") if one["class"] == "error"]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] / widths[-1] == pytest.approx(25 / 6, rel=0.01)


def test_html_of_a_clean_site() -> None:
    """The page says so if there are no problems, or if the site was not reached."""
    assert "No problems were found." in rendered("html", CLEAN)
    assert "could not be reached" not in rendered("html", CLEAN)
    assert "could not be reached" in rendered("html", Report(BASE, (), is_reached=False))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_html_contrast() -> None:
    """Every colour of text has a contrast of 4.5 on both backgrounds, in the light and in the dark scheme."""
    light, dark, _ = (dict(re.findall(r"--(\w+): (#\w{3,6});", block)) for block in STYLE.split(":root {")[1:])
    names = ("front", "quiet", "link", "error", "warning", "info")
    for scheme, name, back in product((light, dark), names, ("back", "raised")):
        darker, lighter = sorted((luminance(scheme[name]), luminance(scheme[back])))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (name, scheme)


def test_severities_have_a_style() -> None:
    """Every severity has a style in text and a colour in HTML."""
    assert [name for name in map(str, Severity) if name not in STYLES or f".{name} {{ --tone" not in STYLE] == []


def test_unknown_formats_and_codes_are_wrong_use() -> None:
    """An unknown format or code raises an error that lists the known ones."""
    report = Report("https://www.example.org/", ())
    for name in ("csv", "views", "as_json", "__init__"):
        with pytest.raises(InvalidArgumentError, match="there are: text, json, sarif"):
            render(name, report)
    with pytest.raises(InvalidArgumentError, match="no code starts with 'Q'"):
        report.selected(select=["Q"])


def test_codes_are_selected_in_any_case() -> None:
    """Codes are a list or a text with commas, in upper or lower case."""
    found = Problems([Problem(code, "m", "https://h/") for code in ("P406", "P418", "X102")])
    report = Report("https://h/", (CheckedSitemap("s.xml", "https://h/", "PagesXMLSitemap", 1, found),))
    for select in (["p418", "x"], "P418, x"):
        assert [problem.code for problem in report.selected(select).problems()] == ["P418", "X102"]


def test_problems_with_other_counts_differ() -> None:
    """Counts are part of the equality of problems."""
    kept = [Problem("X102", "m", "https://h/")]
    assert Problems(kept, Counter(X102=30)) != Problems(kept, Counter(X102=50))
    assert Problems(kept, Counter(X102=30)) == tuple(kept)
