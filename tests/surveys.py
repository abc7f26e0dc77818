"""A plain reading of every entry, to compare surveys with; and entries with every problem."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, cast

from usp.fetch_parse.pages import URLSetPage
from usp.fetch_parse.parsers import XMLSitemapParser
from usp.objects.problem import UNLOGGED, ProblemLog
from usp.scan.columns import microseconds
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.grammar import Grammar, grammar_of
from usp.scan.plain import Taken
from usp.scan.survey import (
    MAX_IMAGES,
    PURE_SURVEYORS,
    SURVEYED,
    SURVEYORS,
    PureSurvey,
    SitemapStats,
    SurveyOptions,
    Surveyors,
    date_code,
    is_lower_frequency,
    is_old,
    same_url_key,
    url_codes,
)
from usp.scan.values import parse_change_frequency, parse_priority, plain_text

KINDS = {"in use": SURVEYORS, "pure": PURE_SURVEYORS}
BITS = {code: 1 << bit for bit, code in enumerate(SURVEYED)}
ALL = (1 << len(SURVEYED)) - 1
PREFIXES = ("image", "news", "xhtml", "video")
GRAMMAR = cast(Grammar, grammar_of((("", ""), *((prefix, prefix) for prefix in PREFIXES))))
NUMBER = 3


def moment(text: str) -> int:
    return microseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


OPTIONS = SurveyOptions(
    sites=(("http://h/a/", ""), ("http://h/", "U507"), ("https://h/", "U508"), ("http://www.h/", "U509")),
    elsewhere=lambda origin: "" if origin == "http://ok" else "U506",
    now=moment("2026-11-15T12:00:00"),
    news_since=moment("2026-11-13T12:00:00"),
    may_disallow=(("http://h/a/private",), ("http://h/", "/q", "sort="), ("http://ok",)),
    is_disallowed=lambda url: url.startswith("http://h/a/private") or "sort=" in url or "%70rivate" in url,
    is_language=lambda tag: tag.lower() in ("de", "en", "en-gb", "x-default"),
    is_news_language=lambda tag: tag in ("de", "en"),
    url="http://h/a/s.xml",
    is_expired=lambda text: text < "2026-11-13",
)


def codes_of(entry: Element, url: str) -> set[str]:
    """Return the codes of an entry, without duplicates."""
    codes = set(url_codes(url, OPTIONS))
    if (text := entry.get("lastmod")) and (date := parse_date(text)):
        codes.add(date_code(text, date, OPTIONS))
    if parse_change_frequency(text := entry.get("changefreq")) and not is_lower_frequency(text):
        codes.add("P423")
    if any(entry.fields.get(name) == "" for name in ("lastmod", "changefreq", "priority")):
        codes.add("P432")
    places = [*((at, name) for name, at in entry.offsets.items()), *((child.at, "") for child in entry.children)]
    order = [("loc", "lastmod", "changefreq", "priority", "").index(name) for _, name in sorted(places)]
    if order != sorted(order):
        codes.add("P433")
    if len(entry.all("image")) > MAX_IMAGES:
        codes.add("I611")
    if stories := entry.all("news"):
        codes |= codes_of_story(stories[0])
    return (codes | codes_of_alternates(alternates_of(entry), url)) - {""}


def codes_of_story(story: Element) -> set[str]:
    codes = set()
    if date := parse_date(text := story.get("publication_date")):
        codes.add(date_code(text, date, OPTIONS))
        if is_old(text, date, OPTIONS):
            codes.add("N601")
    publication = next(iter(story.all("publication")), story)
    name, language = (plain_text(publication.get(field)) for field in ("name", "language"))
    if not name or not language:
        codes.add("N603")
    if language and not OPTIONS.is_news_language(language):
        codes.add("N604")
    return codes


def alternates_of(entry: Element) -> list[tuple[str, str]]:
    """Return the languages and keys of its alternates."""
    found: list[tuple[str, str]] | None = URLSetPage(entry, "http://h/", UNLOGGED, "").value("alternates")
    return [(language, same_url_key(href)) for language, href in found or ()]


def codes_of_alternates(alternates: list[tuple[str, str]], url: str) -> set[str]:
    languages = {(language.lower(), href) for language, href in alternates}
    found = {
        "H631": not all(OPTIONS.is_language(language) for language, _ in alternates),
        "H632": same_url_key(url) not in (href for _, href in alternates),
        "H634": "x-default" not in (language for language, _ in languages),
        "H635": any(count > 1 for count in Counter(language for language, _ in languages).values()),
    }
    return {code for code, is_found in found.items() if is_found and alternates}


class NoSurvey:
    """A survey that stops at every entry."""

    has_pages = False

    def __init__(self) -> None:
        self.stats = SitemapStats()
        self.counts: dict[str, int] = {}

    def take(self, grammar: Grammar, buffer: bytes, position: int, /) -> Taken:
        return [], position, False, False


class Model:
    """Read a document, and do in a plain way what a survey does with the entries that it skips."""

    def __init__(self, surveyors: Surveyors, passed: int = 0, *, uses_survey: bool = True, wanted: Any = None) -> None:
        self.table, self.stories = surveyors.url_table(), surveyors.url_table()
        self.table.add("http://h/a/elsewhere", 1)
        self.stories.add("http://h/a/5", 1)
        self.clusters = surveyors.cluster_sums()
        self.reader: Any = NoSurvey()
        if uses_survey:
            self.reader = surveyors.survey(OPTIONS, self.table, self.stories, NUMBER, self.clusters, wanted)
            self.reader.passed = passed
        self.said: Counter[str] = Counter()
        self.stops: list[str] = []  # codes of the entries at which the survey stopped

    def skips_line(self, url: str, /) -> bool:
        return False

    def entry(self, entry: Element, url: str, /) -> None:
        if entry.name != "url":
            return
        codes = codes_of(entry, url)
        table = self.stories if entry.all("news") else self.table
        first = table.find(url)
        table.add(url, NUMBER)
        if first == NUMBER:
            codes.add("P418")
        elif first >= 0 and table is self.table and not entry.all("image") and not entry.all("video"):
            codes.add("P419")
        self.said.update(codes)
        self.stops.append(" ".join(sorted(codes)))
        date, priority = parse_date(entry.get("lastmod")), parse_priority(entry.get("priority"))
        is_stated = entry.get("priority") and priority is not None
        self.reader.stats.count(
            microseconds(date) if date else None,
            float(priority) if is_stated and priority is not None else None,
            bool(entry.all("news")),
        )
        if alternates := alternates_of(entry):
            self.reader.stats.linked += 1
            self.note_cluster(alternates, url)

    def note_cluster(self, alternates: list[tuple[str, str]], url: str) -> None:
        members = {same_url_key(url), *(href for language, href in alternates if language.lower() != "x-default")}
        key = sum(map(self.table.hash_of, members)) % (1 << 64)
        self.clusters.note(key, len(members), self.table.hash_of(url))

    def read(self, *pieces: bytes) -> Model:
        self.log = ProblemLog("http://h/s.xml")
        XMLSitemapParser("http://h/s.xml", lambda log: pieces).inspect(self.log, self)
        return self

    def outcome(self, urls: list[str]) -> object:
        """Return everything that must not depend on what was skipped."""
        tables = [(self.table.find(url), self.stories.find(url)) for url in urls]
        sums = self.clusters.sums_left()
        return self.said + Counter(self.reader.counts), self.reader.stats, tables, sums, self.log.counts


PAGE = "http://h/a/page"


def entry(body: str, url: str = PAGE) -> str:
    return f"<url><loc>{url}</loc>{body}</url>"


PUBLICATION = "<news:name>N</news:name><news:language>de</news:language>"


def story(date: str = "2026-11-15T10:00:00Z", publication: str = PUBLICATION) -> str:
    return (
        f"<news:news><news:publication>{publication}</news:publication>"
        f"<news:publication_date>{date}</news:publication_date><news:title>T</news:title></news:news>"
    )


def links(*pairs: tuple[str, str]) -> str:
    return "".join(f'<xhtml:link rel="alternate" hreflang="{language}" href="{url}"/>' for language, url in pairs)


IMAGE = "<image:image><image:loc>http://h/i.png</image:loc></image:image>"
OWN = (("x-default", PAGE), ("de", PAGE))
#: A code -> entries with this problem only.
BAD: dict[str, tuple[str, ...]] = {
    "U503": (entry("", "http://h/a/" + "x" * 2_037),),
    "U504": tuple(
        entry("", f"http://h/a/{text}") for text in ("b c", "&quot;", "{", "|", "%", "%a", "%g0", "a%9", "`")
    ),
    "U505": (entry("", "http://h/a/é"), entry("", "http://h/a/" + "é" * 1_500), entry("", "http://h/a/中?b&amp;c")),
    "U506": (entry("", "http://other/"), entry("", "https://other:81?a"), entry("", f"http://{'o' * 80}.h/")),
    "U507": (entry("", "http://h/b"), entry("", "http://h/")),
    "U508": (entry("", "https://h/a/b"),),
    "U509": (entry("", "http://www.h/a/"),),
    "U510": (entry("", "http://h/a/b#c"),),
    "P418": (
        entry("") + entry(""),
        entry("", "http://h/a/?b&amp;c") + entry("", "<![CDATA[http://h/a/?b&c]]>"),
        entry("", "http://ok") + entry("", "http://ok/"),
        entry("", "http://ok/?x&amp;y") + entry("", "http://ok?x&amp;y"),
        entry("", "http://ok?x=/") + entry("", "http://ok/?x=/"),
    ),
    "P419": (entry("", "http://h/a/elsewhere"),),
    "R709": tuple(entry("", f"http://h/a/{path}") for path in ("private", "q?sort=1", "private/b", "%70rivate")),
    "L303": tuple(
        entry(f"<lastmod>{date}</lastmod>")
        for date in ("2026-11-15T12:00:01Z", "2026-11-17", "2027", "Nov 17, 2026", "2026-11-16T02:00:01")
    ),
    "L305": tuple(entry(f"<lastmod>{date}</lastmod>") for date in ("May 8, 2024", "2024/05/08", "2024-05-08 10:00")),
    "L306": tuple(entry(f"<lastmod>{date}</lastmod>") for date in ("2024-05-08T10:00", "2024-05-08T24:00:00")),
    "L307": tuple(
        entry(f"<lastmod>{date}</lastmod>")
        for date in ("1994-12-31", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00", "Jan 1, 1980", "1990")
    ),
    "P432": (
        *(entry(f"<{name}></{name}>") for name in ("lastmod", "changefreq", "priority")),
        entry("<lastmod></lastmod><changefreq> </changefreq><priority></priority>", "http://h/a/" + "x" * 2_036),
    ),
    "P433": (
        entry("<priority>1</priority><lastmod>2024</lastmod>"),
        entry("<priority>1</priority><changefreq>daily</changefreq>"),
        entry(IMAGE + "<lastmod>2024</lastmod>"),
        entry(links(*OWN) + "<priority>1</priority>"),
        f"<url><lastmod>2024</lastmod><loc>{PAGE}</loc></url>",
    ),
    "U518": tuple(entry("", f"http://h/a/{text}") for text in ("a%2520b", "caf%25C3%25a9", "?a%253Fb", "%25%252f"))
    + tuple(entry("", f"http://h/a/c&amp;{text};") for text in ("quot", "lt", "gt", "apos")),
    "P423": tuple(entry(f"<changefreq>{text}</changefreq>") for text in ("Daily", "WEEKLY", "neveR")),
    "N601": tuple(entry(story(date)) for date in ("2026-11-13T11:59:59Z", "2026-11-12", "2026-10", "2025")),
    "N603": (
        entry(story(publication="")),
        entry(story(publication="<news:name>N</news:name>")),
        entry(story(publication="<news:name>&amp;nbsp;</news:name><news:language>de</news:language>")),
        entry(story(publication=f"</news:publication><news:publication>{PUBLICATION}")),
        entry(story(publication="") + story()),
    ),
    "N604": (entry(story(publication="<news:name>A &amp; B</news:name><news:language>xx</news:language>")),),
    "I611": (entry(IMAGE * 1_001),),
    "H631": (entry(links(*OWN, ("xx", "http://h/xx"))), entry(links(*OWN, ("de-", PAGE)))),
    "H632": (
        entry(links(("X-Default", "http://h/x"), ("en", "http://h/en"))),
        entry(links(("x-default", "http://ok/?a"), ("en", "http://ok#")), "http://ok"),
    ),
    "H634": (entry(links(("de", PAGE))),),
    "H635": (entry(links(*OWN, ("en", "http://h/1"), ("EN", "http://h/2"))),),
}
BAD["L303"] += tuple(entry(story(date)) for date in ("2026-11-15T12:00:01Z", "2027"))
BAD["L303"] += (entry("<lastmod>2026-11-17</lastmod>" + story("2026-11-17")),)
BAD["L305"] += (entry(story("15 Nov 2026")), entry("<lastmod>2024/05/08</lastmod>" + story("2026/11")))
BAD["L306"] += (entry(story("2026-11-15T10:00")), entry(story("2026-11-15T24:00:00")))
COMPLETE = (
    "<video:thumbnail_loc>t</video:thumbnail_loc><video:title>T</video:title><video:description>D</video:description>"
    "<video:content_loc>/c</video:content_loc>"
)


def video(text: str, complete: str = COMPLETE) -> str:
    return f"<video:video>{complete}{text}</video:video>"


#: The same for codes of entries that only the general scanner reads: the survey is asked about them afterwards.
BAD_EXTENSIONS: dict[str, tuple[str, ...]] = {
    "H637": (
        entry("<xhtml:link rel='alternate' href='http://h/a/s'/>"),
        entry("<xhtml:link rel='other alternate' hreflang='de'/>"),
        entry("<xhtml:link hreflang='' href='/&#49;'/>"),
    ),
    "V621": (entry("<video:video/>"), entry(video("", COMPLETE.replace("/c", ""))), entry(video("", COMPLETE[42:]))),
    "V622": tuple(
        entry(video(f"<video:{name}>{text}</video:{name}>"))
        for name, text in (("duration", "28801"), ("rating", "5.1"), ("expiration_date", "2024-05-08"))
    ),
    "V623": (
        entry(video(f"<video:player_loc>{PAGE}</video:player_loc>")),
        entry(video("<video:player_loc allow_embed='yes'>/a/page</video:player_loc>")),
    ),
    "V624": (entry(video("<video:tag>t</video:tag>" * 33)),),
    "V625": (entry(video("", COMPLETE.replace(">T<", f">{'T' * 101}<"))),),
    "V626": (
        entry(video("<video:restriction>DE</video:restriction>")),
        entry(video("<video:platform relationship='no'>web</video:platform>")),
    ),
}
GOOD = (
    entry(""),
    entry(
        "<lastmod>2026-11-15</lastmod><changefreq>daily</changefreq><priority>0.5</priority>", "http://h/a/1?b&amp;c"
    ),
    entry("<lastmod>2026-11-16</lastmod>", "http://h/a/2"),  # it is that day somewhere
    entry("<lastmod>2024</lastmod><priority>1e-1</priority>", "http://ok/[3]%20"),
    entry("<lastmod>2024-05</lastmod><changefreq> never </changefreq><priority>.25</priority>", "http://ok?x/"),
    entry("", "http://h/a/" + "x" * 2_036),
    entry(IMAGE * 1_000, "http://h/a/4"),
    entry(IMAGE, "http://h/a/elsewhere"),
    entry(story("2026-11-13T12:00:00Z") + IMAGE, "http://h/a/5"),
    entry(story("2026-11-13"), "http://h/a/5b"),
    entry(story("2026-11"), "http://h/a/5c"),
    entry(story("2026"), "http://h/a/5d"),
    entry(links(("x-default", "http://h/a/6"), ("de", "http://h/a/6"), ("en-GB", "http://h/a/7")), "http://h/a/6"),
    entry(links(("x-default", "http://h/a/6"), ("de", "http://h/a/6"), ("en-GB", "http://h/a/7")), "http://h/a/7"),
    entry(
        links(("x-default", "http://ok/"), ("de", "http://ok"), ("DE", "http://ok/"), ("en", "http://h/a/7b")),
        "http://ok",
    ),
    entry(links(("x-default", "http://ok"), ("de", "http://ok/"), ("en", "http://h/a/7b")), "http://h/a/7b"),
    entry(links(("x-default", PAGE), ("de", "http://h/?a&amp;b"), ("de", "http://h/?a&amp;b")) + links(*OWN[:1])),
)
ODD = (
    *("<url><loc>http://h/a/<loc></url>", "<url>", "</url>", "<url><loc>/a/b</loc></url>", "<!-- c -->", "text", "&"),
    *(entry(f"<lastmod>{year}</lastmod>") for year in ("0000", "9999", "12:4", "\u0661\u0662\u0663\u0664")),
    *(entry("<lastmod>soon</lastmod>"), entry("<priority>7</priority>"), entry("<changefreq>often</changefreq>")),
    *(entry("", "http://h/a/&#233;"), entry("", "http://é/"), entry("", "http://h/a/\u200b"), entry("<news:news/>")),
    entry(links(*(("de", f"http://h/{i}") for i in range(65)))),
    entry(links(("d&#233;", PAGE), ("", PAGE), ("de", ""))),
    entry(links(("de", "http://h/é"), ("en", "/relative"))),
    entry('<xhtml:link rel="stylesheet" href="http://h/a/s"/>'),
    entry('<xhtml:link rel="alternate" href="http://h/a/s"/>', "http://h/a/3"),
    entry("<video:video><video:title>V</video:title></video:video>"),
    entry(story() + story("1999"), "http://h/a/8"),
    entry("", "http://h/a/" + "é" * 2_037),
    entry("<lastmod><![CDATA[2024-05-08]]></lastmod>"),
    *(entry("", text) for text in ("None", "#", "#top", "www.h.example/a", "http://.h/a")),
    entry('<xhtml:link hreflang="de" href="http://h/a/s"/>', "http://h/a/11"),
    entry('<xhtml:link rel="" hreflang="de" href="undefined"/>', "http://h/a/12"),
    entry("<image:image><image:loc>null</image:loc></image:image>", "http://h/a/13"),
    entry(links(("d\r\ne", PAGE), ("en", "http://h/a\tb")), "http://h/a/14"),
    entry("", "http://h/a/\x7f"),
    entry("<lastmod>2024-05-08\x7f</lastmod><priority>\x7f</priority>", "http://h/a/9&#127;"),
    entry(story("2026-11-15T10:00:00Z\x7f") + links(("de\x7f", PAGE)), "http://h/a/10"),
)
PIECES = (*(text for texts in BAD.values() for text in texts), *GOOD, *ODD)
URLS = [PAGE, "http://h/a/elsewhere", *(f"http://h/a/{i}" for i in range(9)), "http://h/b", "http://h/a/?b&c"]
URLS += ["http://ok", "http://ok/", "http://ok/?x&y", "http://ok?x&y"]


def document(*entries: str) -> bytes:
    prefixes = " ".join(f"xmlns:{prefix}='sitemap-{prefix}'" for prefix in PREFIXES)
    return f"<urlset {prefixes}>{''.join(entries)}</urlset>".encode()


def readable_by(surveyors: Surveyors, text: str) -> bool:
    """Return whether a survey knows an entry. The one in plain Python knows only the four fields of the protocol."""
    unknown = (":news", "image:", ":link", "CDATA", "&quot;", "</priority><l", "</priority><c", "<url><lastmod")
    return surveyors.survey is not PureSurvey or (text.isascii() and not any(x in text for x in unknown))
