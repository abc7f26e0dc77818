"""HTML: one self-contained page, without scripts, pictures, fonts or network access.

It has a summary and a bar for each rule. Below each bar are the problems, equal sentences once, and an explanation of
the rule. A chart shows which sitemaps have the most problems, and a table lists all. Severities differ by word
and sign, not by colour alone. All text from a site is escaped, and only http and https URLs become links. The content
security policy of the page forbids scripts and requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from math import log1p

from usp.check.formats.chart import MOST_BARS, chart
from usp.check.formats.views import file_of, is_told, name_of, place_of
from usp.check.report import CheckedSitemap, Report
from usp.check.rules.page import RulePage, rule_page
from usp.notebook import escaped as _escaped
from usp.notebook import linked as _linked
from usp.objects.codes import CODES, GROUPS, Severity
from usp.objects.problem import Problem
from usp.objects.wording import plural, plural_noun
from usp.version import __version__

__all__ = ["STYLE", "render"]

_Entry = tuple[str, Problem]  # with the name of the sitemap, as HTML

#: How many problems are listed for one rule: a browser must be able to open the page.
MOST_ENTRIES = 1_000
#: How many sitemaps are listed, for the same reason.
MOST_SITEMAPS = 50_000
_PLACES = 5  # of one message that are shown at once
_AFTER_URL = ".,;:!?)"  # ends a sentence, and no URL

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SIGNS = {Severity.ERROR: "✖", Severity.WARNING: "▲", Severity.INFO: "●"}
_LINKED = re.compile(r"https?://[^\s<>\"'\\]+", re.IGNORECASE)
_CODE = re.compile(r"`([^`]+)`")


def render(report: Report, *, now: datetime | None = None) -> Iterator[str]:
    """Yield the page in pieces."""
    counts = report.counts()
    target = _escaped(report.target)
    yield _HEAD.format(policy=_POLICY, title=target, style=STYLE)
    yield f'<header>\n<p class="tool">Sitemap check</p>\n<h1>{_linked(report.target)}</h1>\n'
    yield f"<p>{_escaped(report.summary())}{_moment(now)}</p>\n</header>\n<main>\n"
    if not report.is_reached:
        yield '<p class="notice"><strong>The site could not be reached.</strong></p>\n'
    yield from _tiles(report)
    yield "<h2>Rules</h2>\n"
    if counts:
        yield "<p>Worst first. The length of a bar grows with the logarithm of the count.</p>\n"
    else:
        yield "<p>No problems were found.</p>\n"
    entries = _entries(report)
    longest = log1p(max(counts.values(), default=1))
    for code, count in counts.items():
        yield from _rule(rule_page(code), entries.get(code, []), count, log1p(count) / longest)
    yield from _sitemaps(report)
    yield f"</main>\n<footer><p>Made by usp {__version__}.</p></footer>\n</body>\n</html>\n"


_HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Sitemap check: {title}</title>
<style>
{style}</style>
</head>
<body>
"""


def _tiles(report: Report) -> Iterator[str]:
    """Yield the numbers of the summary."""
    severities = report.severities()
    yield '<ul class="tiles" aria-label="Summary">\n'
    for number, what in ((report.sitemap_count, "sitemap"), (report.pages, "page")):
        yield f"<li><b>{number:,}</b> {plural_noun(number, what)}</li>\n"
    for severity in reversed(Severity):
        number = severities[severity]
        style = f' class="{severity}"' if number else ""
        yield f"<li{style}><b>{number:,}</b> {_sign(severity)} {plural_noun(number, severity.noun)}</li>\n"
    yield "</ul>\n"


_ENTRIES_HEAD = """\
<table>
<thead><tr><th scope="col">Problem</th><th scope="col">Where</th></tr></thead>
<tbody>
"""


def _entries(report: Report) -> dict[str, list[_Entry]]:
    """Return the problems by code, each with the name of its sitemap."""
    entries: dict[str, list[_Entry]] = {}
    for sitemap in report.sitemaps:
        name = _name(sitemap)
        for problem in sitemap.problems:
            listed = entries.setdefault(problem.code, [])
            if len(listed) < MOST_ENTRIES:
                listed.append((name, problem))
    return entries


def _rule(rule: RulePage, entries: list[_Entry], count: int, share: float) -> Iterator[str]:
    """Yield a rule: its bar, its problems and its explanation."""
    severity, code = rule.severity, rule.code
    yield f'<details class="{severity}" id="{code}">\n<summary>\n<h3>{code} {_text(rule.title)}</h3>\n'
    yield f'<span class="count">{_sign(severity)} {plural(count, severity.noun)}</span>\n'
    yield f'<span class="track"><span class="bar" style="width: {share:.1%}"></span></span>\n</summary>\n'
    yield f'<p><a href="#{code}-page">What {code} means</a></p>\n'
    if entries:
        yield _ENTRIES_HEAD
        for message, same in _groups(entries).items():
            yield from _group(message, same)
        yield "</tbody>\n</table>\n"
    if count > len(entries):
        yield f"<p>… and {count - len(entries):,} more.</p>\n"
    yield from _page(rule)
    yield "</details>\n"


def _groups(entries: list[_Entry]) -> dict[str, list[_Entry]]:
    """Return the problems by their messages, in the order in which these come first."""
    groups: dict[str, list[_Entry]] = {}
    for entry in entries:
        groups.setdefault(entry[1].message, []).append(entry)
    return groups


def _group(message: str, entries: list[_Entry]) -> Iterator[str]:
    """Yield the row of a message, with all places that have it."""
    number = f'<br><span class="times">{len(entries):,} times</span>' if len(entries) > 1 else ""
    yield f"<tr><td>{_with_links(message)}{number}</td><td>"
    first, rest = entries[:_PLACES], entries[_PLACES:]
    yield _place_list(message, first)
    if rest:
        yield f"<details><summary>{plural(len(rest), 'more place')}</summary>{_place_list(message, rest)}</details>"
    yield "</td></tr>\n"


def _place_list(message: str, entries: list[_Entry]) -> str:
    return f'<ul class="places">{"".join(_place(message, *entry) for entry in entries)}</ul>'


def _place(message: str, name: str, problem: Problem) -> str:
    text = ""
    if not is_told(problem, message):
        text = f"<br><code>{_link(problem.text)}</code>"
    place = place_of(problem)
    return f"<li>{name}{place and f':{place}'}{text}</li>"


def _link(url: str) -> str:
    """Return a URL as a link, unless it was cut: that leads somewhere else."""
    return _escaped(url) if url.endswith("…") else _linked(url)


def _with_links(text: str) -> str:
    """Return a text with its URLs as links."""
    parts, end = [], 0
    for match in _LINKED.finditer(text):
        url = match[0].rstrip(_AFTER_URL)
        parts += [_escaped(text[end : match.start()]), _link(url)]
        end = match.start() + len(url)
    return "".join([*parts, _escaped(text[end:])])


def _page(rule: RulePage) -> Iterator[str]:
    """Yield the explanation of a rule."""
    yield f'<section id="{rule.code}-page" class="page">\n<h4>What {rule.code} means</h4>\n'
    yield f"<p>{_text(rule.what)}</p>\n<h4>Why it matters</h4>\n<p>{_text(rule.why)}</p>\n"
    yield f"<p>Specification: {', '.join(map(_linked, rule.specifications))}</p>\n"
    group = _escaped(GROUPS[rule.code[0]])
    yield f"<p>Group: {group}. With examples: <code>usp check --explain {rule.code}</code></p>\n</section>\n"


def _sitemaps(report: Report) -> Iterator[str]:
    """Yield a chart of the sitemaps with the most problems, and all sitemaps with the number of each code."""
    listed = [one for one in report.sitemaps if one.kind != "IndexWebsiteSitemap" or one.problems.counts]
    if not listed:
        return
    numbered = list(enumerate(listed[:MOST_SITEMAPS]))
    bars = "".join(chart(numbered, _SIGNS))
    if bars:
        yield "<h2>Problems by sitemap</h2>\n"
        if len(listed) > MOST_BARS:
            yield f"<p>The {MOST_BARS} sitemaps with the most problems.</p>\n"
        yield bars
    yield '<h2>Sitemaps</h2>\n<table>\n<thead><tr><th scope="col">Sitemap</th><th scope="col">Pages</th>'
    yield '<th scope="col">Problems</th></tr></thead>\n<tbody>\n'
    for number, sitemap in numbered:
        order = sorted(sitemap.problems.counts.items(), key=lambda item: (-CODES[item[0]].severity, item[0]))
        codes = ", ".join(f'<a href="#{code}">{code}</a> {count:,}' for code, count in order)
        yield f'<tr id="sitemap-{number}"><td class="sitemap">{_name(sitemap)}</td><td>{sitemap.pages:,}</td>'
        yield f"<td>{codes or 'none'}</td></tr>\n"
    yield "</tbody>\n</table>\n"
    if len(listed) > MOST_SITEMAPS:
        yield f"<p>… and {len(listed) - MOST_SITEMAPS:,} more.</p>\n"


def _name(sitemap: CheckedSitemap) -> str:
    """Return the name of a sitemap, as a link if it is on a site."""
    name = name_of(sitemap)
    return _linked(sitemap.url, name) if file_of(sitemap) is None else _escaped(name)


def _sign(severity: Severity) -> str:
    return f'<span class="sign" aria-hidden="true">{_SIGNS[severity]}</span>'


def _moment(now: datetime | None) -> str:
    if now is None:
        return ""
    written = now.isoformat(sep=" ", timespec="minutes")
    return f', checked <time datetime="{now.isoformat(timespec="seconds")}">{written}</time>'


def _text(text: str) -> str:
    """Return a text of a page with its `code` marked up."""
    return _CODE.sub(r"<code>\1</code>", _escaped(text))


# Light and dark, narrow and wide, and on paper. Text has a contrast of at least 4.5 in both schemes. The colours of
# severities can be told apart with any kind of colour vision, and never stand alone.
STYLE = """\
:root {
  color-scheme: light dark;
  --back: #ffffff; --front: #1b1f24; --quiet: #57606a; --line: #d0d7de; --raised: #f6f8fa; --link: #0550ae;
  --error: #b42318; --warning: #8a5a00; --info: #0550ae;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #101418; --front: #e6edf3; --quiet: #9da7b1; --line: #353c44; --raised: #1a2027; --link: #79b8ff;
    --error: #ff8f85; --warning: #e3b341; --info: #79b8ff;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem; background: var(--back); color: var(--front);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
a { color: var(--link); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; }
h4 { font-size: 1rem; margin: 1rem 0 0; }
p { margin: .25rem 0 .75rem; }
code { font: .9em ui-monospace, monospace; background: var(--raised); padding: .1em .3em; border-radius: .2rem; }
.tool { color: var(--quiet); margin: 0; }
.notice { border-left: .3rem solid var(--error); padding-left: .75rem; }
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .75rem; list-style: none;
  margin: 1.25rem 0; padding: 0;
}
.tiles li { border: 1px solid var(--line); border-radius: .4rem; padding: .75rem 1rem; background: var(--raised); }
.tiles b { display: block; font-size: 1.6rem; line-height: 1.2; white-space: nowrap; }
.error { --tone: var(--error); }
.warning { --tone: var(--warning); }
.info { --tone: var(--info); }
.sign, .tiles b { color: var(--tone, inherit); }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .6rem .9rem; }
details > :last-child { margin-bottom: 0; }
summary { cursor: pointer; display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem 1rem; }
summary::-webkit-details-marker { display: none; }
summary h3::before { content: "+"; display: inline-block; width: 1.1em; color: var(--quiet); }
details[open] > summary { margin-bottom: .75rem; }
details[open] > summary h3::before { content: "\\2212"; }
summary:focus-visible, a:focus-visible { outline: .15rem solid var(--link); outline-offset: .15rem; }
.count { white-space: nowrap; font-variant-numeric: tabular-nums; }
.track { flex: 0 0 100%; }
.bar { display: block; height: .5rem; border-radius: .25rem; background: var(--tone); }
.chart { overflow-x: auto; }
.chart svg { display: block; width: 100%; min-width: 40rem; }
.chart text { font: 13px system-ui, sans-serif; fill: var(--front); }
.chart a text { fill: var(--link); }
.chart .numbers { fill: var(--quiet); white-space: pre; }
.chart rect { fill: var(--tone); }
.times { color: var(--quiet); font-size: .9rem; }
.places { margin: 0; padding: 0; list-style: none; }
td details { border: 0; margin: 0; padding: 0; }
td details > summary { justify-content: start; color: var(--link); }
.page { border-top: 1px solid var(--line); margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--quiet); }
th, td { padding: .35rem .75rem .35rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }
td { font-variant-numeric: tabular-nums; }
th, td.sitemap + td { white-space: nowrap; }
td:first-child { width: 50%; }
footer { color: var(--quiet); margin-top: 2rem; }
@media (max-width: 40rem) {
  .tiles { grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .5rem; }
  .tiles li { padding: .5rem .75rem; }
  .tiles b { font-size: 1.2rem; }
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td, td.sitemap { display: block; width: auto; padding: 0; border: 0; }
  td:first-child { width: auto; }
  td + td { color: var(--quiet); font-size: .9rem; }
}
@media print {
  :root {
    color-scheme: light; --back: #fff; --front: #000; --quiet: #444; --line: #999; --raised: #fff; --link: #000;
    --error: #b42318; --warning: #8a5a00; --info: #0550ae;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; block-size: auto; opacity: 1; }
  .bar, .chart rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  tr, .tiles li, summary { break-inside: avoid; }
}
"""
