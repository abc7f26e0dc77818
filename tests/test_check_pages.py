"""The pages of rules: every code has one, all have one form, and their examples are true."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from importlib.resources import files
from urllib.parse import urljoin

import pytest

from support import FakeClient, FakeResponse
from usp.check import check
from usp.check.rules import RULES
from usp.check.rules.page import Example, explain, rule_page
from usp.exceptions import InvalidArgumentError
from usp.objects.codes import CODES
from usp.objects.problem import Problem
from usp.web_client.abstract_client import AbstractWebClientResponse, WebClientErrorResponse

pytestmark = pytest.mark.wheel

PAGES = files("usp") / "check" / "pages"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
HOMEPAGE = "https://www.example.org/"
CONTENT_TYPES = {
    "xml": "application/xml",
    "txt": "text/plain",
    "gz": "application/gzip",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
}
# Codes whose bad example is no file: it would be too long, is no text, or depends on time, transfer or limits.
ILLUSTRATED = {
    *("X108", "X109", "X114", "X115", "E203", "E204", "E205"),
    *("P415", "P416", "U503", "N602", "I611"),
    *("L304", "U507", "R704", "R708", "T801", "T802", "T804", "T805", "T808", "C901", "C902", "R711", "R713", "R714"),
    *("W802", "W808"),
    "R715",
}

_PARAGRAPH = r"(?:(?!#|```).+\n)+"
_FENCES = r"(?:```\w+(?: \S+(?: \d+:\d+)?)?\n(?:.*\n)*?```\n\n)+"
_FORM = re.compile(
    rf"# [A-Z]\d{{3}}: .+\n\nWhat: {_PARAGRAPH}\nWhy: {_PARAGRAPH}\n## Bad\n\n{_FENCES}## Good\n\n{_FENCES}"
    r"Specification: https://\S+(?:, https://\S+)*\n"
)
_CHILD = re.compile(r"<sitemap>\s*<loc>(.*?)</loc>")


def site_of(shown: list[Example]) -> dict[str, AbstractWebClientResponse]:
    """Return the files of an example as a site. If it has no robots.txt, add one that names all sitemaps."""
    site: dict[str, AbstractWebClientResponse] = {}
    moved: dict[str, str] = {}
    for example in shown:
        assert example.file is not None
        url = HOMEPAGE + example.file
        status, headers, body = 200, {"Content-Type": content_type(example.file)}, example.text
        if example.language == "http":
            status, headers, body = answer(example.text)
        if status == 200:
            site[url] = FakeResponse(body.encode(), url, headers)
        elif "Location" in headers:
            moved[url] = urljoin(url, headers["Location"])
        else:
            site[url] = WebClientErrorResponse(f"{status} as in the example", retryable=False, status=status)
    site |= {url: site[target] for url, target in moved.items()}
    if HOMEPAGE + "robots.txt" not in site:
        listed = {url for example in shown for url in _CHILD.findall(example.text)}
        lines = [f"Sitemap: {url}" for url in site if url not in listed]
        robots = "\n".join(["User-agent: *", "Allow: /", "", *lines])
        site[HOMEPAGE + "robots.txt"] = FakeResponse(
            robots.encode(), HOMEPAGE + "robots.txt", {"Content-Type": "text/plain"}
        )
    return site


def content_type(file: str) -> str:
    return CONTENT_TYPES.get(file.rpartition(".")[2], "text/html")


def answer(text: str) -> tuple[int, dict[str, str], str]:
    """Return the status, headers and body of a response in an example."""
    head, _, body = text.partition("\n\n")
    status, *headers = head.split("\n")
    return int(status.split(" ")[1]), dict(header.split(": ", 1) for header in headers), body


def problems_of(shown: list[Example], code: str) -> list[Problem]:
    """Return the problems in the files of an example; for a code of pages, also in the pages."""
    client = FakeClient(site_of(shown))
    report = check(HOMEPAGE, client, read_as="site", now=NOW, probe="all" if code.startswith("W") else None)
    return list(report.problems())


def is_run(shown: list[Example]) -> bool:
    return all(example.file for example in shown)


def test_every_code_has_a_page_and_nothing_else_is_there() -> None:
    """Each code has its page, and there are no other files."""
    present = {page.name for page in PAGES.iterdir()}
    expected = {f"{code}.md" for code in CODES}
    assert sorted(expected - present) == [], "write these files in src/usp/check/pages"
    assert sorted(present - expected) == [], "these files in src/usp/check/pages are of no rule"


@pytest.mark.parametrize("code", CODES)
def test_pages_are_of_one_form(code: str) -> None:
    """A page has a title with its code, What, Why, Bad, Good and Specification, in this order and nothing else."""
    text = (PAGES / f"{code}.md").read_text("utf-8")
    assert _FORM.fullmatch(text)
    assert text.startswith(f"# {code}: {text[8]}")
    assert max(len(line) for line in text.split("\n")) <= 200
    assert rule_page(code).specifications == re.findall(r"https://[^\s,]+", text.split("\nSpecification: ")[1])
    assert len([example for example in rule_page(code).examples("Bad") if example.line]) <= 1
    assert not [example for example in rule_page(code).examples("Good") if example.line]


@pytest.mark.parametrize("code", CODES)
def test_tags_in_prose_are_marked_as_code(code: str) -> None:
    """Outside of examples, tags are in backquotes, because Markdown hides bare tags."""
    prose = re.sub(r"```.*?\n```", "", explain(code), flags=re.DOTALL)
    assert re.findall(r"<[\w/!?]", re.sub(r"`[^`]*`", "", prose)) == []


@pytest.mark.parametrize("code", CODES)
def test_prose_has_no_markup_that_the_explorer_cannot_show(code: str) -> None:
    """Outside of examples there are headings, paragraphs and code: no lists, no bold text, no links with a name."""
    prose = re.sub(r"```.*?\n```", "", explain(code), flags=re.DOTALL)
    assert re.findall(r"(?m)^\s*(?:[-*+]|\d+\.)\s|^>|\*\*|\]\(", re.sub(r"`[^`]*`", "", prose)) == []


@pytest.mark.parametrize("code", CODES)
def test_examples_are_all_run_or_all_illustrate(code: str) -> None:
    """The bad example is a complete site, or all of it only illustrates the problem."""
    bad = rule_page(code).examples("Bad")
    assert is_run(bad) is (code not in ILLUSTRATED)
    assert [example for example in bad if code in ILLUSTRATED and example.file] == []


@pytest.mark.parametrize("code", [code for code in CODES if code not in ILLUSTRATED])
def test_bad_examples_have_this_problem_only(code: str) -> None:
    """The bad example has exactly this problem, once, at the place that the page states, in a complete message."""
    shown = rule_page(code).examples("Bad")
    (problem,) = problems_of(shown, code)
    assert problem.code == code
    assert not re.search(r"{\w+}", problem.message), "the rule gives no value for this name"
    placed = [example for example in shown if example.line] or [Example("", None, None, None, "")]
    assert (problem.line, problem.column) == (placed[0].line, placed[0].column)
    assert problem.url in {HOMEPAGE + str(example.file) for example in (placed if placed[0].file else shown)}


@pytest.mark.parametrize("code", CODES)
def test_good_examples_have_no_problem(code: str) -> None:
    """The good example has no problem."""
    shown = rule_page(code).examples("Good")
    if is_run(shown):
        assert problems_of(shown, code) == []


@pytest.mark.parametrize("code", CODES)
def test_explain_states_the_severity(code: str) -> None:
    """`explain` adds the severity below the title."""
    lines = explain(code).split("\n")
    assert lines[2:4] == [f"Severity: {CODES[code].severity}", ""]
    assert lines[0].replace("`", "") == f"# {code}: {rule_page(code).title}"
    assert lines[4].startswith("What: ")


def test_codes_may_be_written_in_any_case() -> None:
    """Codes may be in upper or lower case, with or without spaces around them."""
    assert explain("x102") == explain(" X102\n") == explain("X102")
    assert rule_page("x102").title == 'bare "&"'
    assert RULES["X102"].title == 'bare "&"'
    assert RULES["X102"].page == rule_page("X102")


@pytest.mark.parametrize(
    ("code", "named"), [("H699", "H631, H632, H633, H634, H635"), ("z1", "X, E, L"), ("", "X102"), ("../X102", "X102")]
)
def test_unknown_codes_are_refused(code: str, named: str) -> None:
    """For an unknown code, the error lists the codes of its group, or the letters that codes start with."""
    for function in (explain, rule_page):
        with pytest.raises(InvalidArgumentError, match=named):
            function(code)


def test_places_are_read_from_the_page() -> None:
    """An example has its language, its file, the place of its problem, and its text as shown."""
    (example,) = rule_page("X102").examples("Bad")
    assert (example.language, example.file) == ("xml", "sitemap.xml")
    assert example.line is not None
    assert example.column is not None
    assert example.text.split("\n")[example.line - 1][example.column - 1] == "&"
