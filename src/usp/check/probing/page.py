"""What a web page says of itself: read with a parser of HTML, and never executed.

https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag
https://developers.google.com/search/docs/crawling-indexing/consolidate-duplicate-urls
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from usp.check.probing.sample import ListedPage
from usp.check.robots import CRAWLERS
from usp.extras import extra
from usp.objects.dates import aware
from usp.objects.problem import shortened
from usp.origins import requested_url
from usp.scan import parse_date
from usp.webpages import WebPage

__all__ = ["Html", "PageFacts", "ProbedPage", "facts_of", "html_reader", "is_noindex"]

EXTRA = "probe"
_HTML_TYPES = ("", "text/html", "application/xhtml+xml")
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_CHARSET_OF_TYPE = re.compile(r"""charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_HEAD_BYTES = 4_096  # browsers look at 1,024
_MAX_ALTERNATES = 200
_MAX_ELEMENTS = 2_000  # <meta> and <link> elements that are looked at
#: Elements that are open at once make parsing slow, with their square. Of a page with so many more start tags than end
#: tags, only the first part is read.
_MAX_OPEN = 8_000
_BYTES_IF_DEEP = 32 * 1024
_MAX_TEXT = 300
_MAX_URL = 2_048
_HEADER_LINK = re.compile(r"<([^<>]*)>([^<>]*)")
_IS_CANONICAL = re.compile(r";\s*rel\s*=\s*(?:\"[^\"]*\bcanonical\b|canonical\b)", re.IGNORECASE)
_AGENTS = frozenset({"robots", *map(str.lower, CRAWLERS)})
#: Rules of X-Robots-Tag with a value, so that what stands before their colon is not a user agent.
_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_DATES = frozenset({"article:modified_time", "og:updated_time", "datemodified", "last-modified"})
_LINKED_DATE = re.compile(r'"dateModified"\s{0,20}:\s{0,20}"([^"]{4,40})"')


class Html(NamedTuple):
    """What the HTML of a page says. Links are as written."""

    title: str = ""
    heading: str = ""
    robots: tuple[str, ...] = ()  # rules of meta elements, each after the name of its user agent
    base: str = ""
    canonical: str = ""
    modified: str = ""  # the date that the page states
    alternates: tuple[tuple[str, str], ...] = ()  # languages and links
    text_hash: str = ""  # equal for equal texts


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What was found at a URL. It is plain data: the cache keeps it as JSON."""

    url: str
    answered_url: str
    status: int | None = None
    reason: str = ""
    seconds: float | None = None
    fetched_at: str = ""
    content_type: str = ""
    size: int = 0
    robots_tag: str = ""
    last_modified: str = ""  # the header
    title: str = ""
    heading: str = ""
    robots: tuple[str, ...] = ()
    canonical: str = ""
    modified: str = ""
    alternates: tuple[tuple[str, str], ...] = ()
    text_hash: str = ""

    @property
    def is_redirected(self) -> bool:
        """Whether another URL has answered."""
        return requested_url(self.url) != requested_url(self.answered_url)

    @property
    def own_date(self) -> datetime | None:
        """When the page was modified: as it says, else as the header says."""
        for text in (self.modified, self.last_modified):
            if text and (date := parse_date(text)) is not None:
                return aware(date)
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as values of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PageFacts:
        """Return the facts that `to_dict` has given."""
        robots = tuple(values.pop("robots"))
        alternates = tuple((language, url) for language, url in values.pop("alternates"))
        return cls(**values, robots=robots, alternates=alternates)


@dataclass(slots=True)
class ProbedPage:
    """A page of the sample, for the rules.

    `disallowed_to` names the crawlers that may not fetch the page, or where it redirects to, if no other rule says so.
    `missing_hash` is that of the text with which the site answers for pages that do not exist, if it says 200 there.
    `one_way` is an alternate that does not link back.
    """

    listed: ListedPage
    facts: PageFacts
    disallowed_to: str = ""
    missing_hash: str = ""
    one_way: str = ""
    codes: list[str] = field(default_factory=list)  # of the problems that were found

    @property
    def is_page(self) -> bool:
        """Whether the listed URL itself has answered with success."""
        return self.facts.status == 200 and not self.facts.is_redirected


def html_reader(*, hashes_text: bool = True) -> Any:
    """Return a function that reads a page, for `usp.webpages.fetch_pages`.

    :param hashes_text: whether to find pages with equal texts, which takes a third of the time of reading one.
    :raises MissingExtraError: if the parser of HTML is not installed.
    """
    parser: Any = extra("selectolax.lexbor", EXTRA).LexborHTMLParser

    def read(content: bytes, content_type: str | None) -> Html:
        if (content_type or "").partition(";")[0].strip().lower() not in _HTML_TYPES:
            return Html()
        if content.count(b"<") - 2 * content.count(b"</") > _MAX_OPEN:
            content = content[:_BYTES_IF_DEEP]
        return _html_of(parser(_decoded(content, content_type or "")), hashes_text)

    return read


def facts_of(page: WebPage[Html]) -> PageFacts:
    """Return what was found at a URL."""
    transport, html = page.transport, page.content or Html()
    if transport is None:
        return PageFacts(page.url, page.url, page.status, page.reason)
    base = _joined(transport.url, html.base) or transport.url
    alternates = ((language, _joined(base, link)) for language, link in html.alternates)
    return PageFacts(
        url=page.url,
        answered_url=transport.url,
        status=page.status,
        reason=page.reason,
        seconds=None if transport.seconds is None else round(transport.seconds, 4),
        fetched_at="" if transport.fetched_at is None else transport.fetched_at.isoformat(),
        content_type=transport.content_type or "",
        size=transport.size,
        robots_tag=transport.robots_tag or "",
        last_modified="" if transport.last_modified is None else transport.last_modified.isoformat(),
        title=html.title,
        heading=html.heading,
        robots=html.robots,
        canonical=_joined(base, html.canonical) or _joined(transport.url, _canonical_of_header(transport.link or "")),
        modified=html.modified,
        alternates=tuple((language, url) for language, url in alternates if url),
        text_hash=html.text_hash,
    )


def is_noindex(facts: PageFacts) -> str:
    """Return where a page asks search engines not to list it: a header or an element; empty if nowhere."""
    if any(rule in ("noindex", "none") for rule in _rules_of_header(facts.robots_tag)):
        return "X-Robots-Tag"
    for stated in facts.robots:
        agent, _, rules = stated.partition(":")
        if any(rule.strip().lower() in ("noindex", "none") for rule in rules.split(",")):
            return f'<meta name="{agent}">'
    return ""


def _canonical_of_header(text: str) -> str:
    """Return the canonical URL that a Link header (RFC 8288) states, or an empty text."""
    links = _HEADER_LINK.findall(text)
    return next((url.strip() for url, parameters in links if _IS_CANONICAL.search(parameters)), "")


def _rules_of_header(text: str) -> Iterator[str]:
    """Yield the rules for the crawlers of search engines. Those after the name of another crawler are its own."""
    agent = "robots"
    for part in text.split(","):
        name, colon, rest = part.strip().lower().partition(":")
        if colon and name.strip() not in _WITH_VALUE:
            agent, name = name.strip(), rest
        if agent in _AGENTS:
            yield name.strip()


def _html_of(tree: Any, hashes_text: bool) -> Html:
    robots, dates, base = [], [], ""
    for number, meta in enumerate(tree.css("meta")):
        if number >= _MAX_ELEMENTS:
            break
        values = meta.attributes
        name = _lower(values.get("name") or values.get("property") or values.get("itemprop"))
        content = values.get("content") or ""
        if name in _AGENTS:
            robots.append(f"{name}:{content[:_MAX_TEXT]}")
        elif name in _DATES:
            dates.append(content)
    if (element := tree.css_first("head base[href]")) is not None:
        base = element.attributes.get("href") or ""
    canonical, alternates = _links(tree.css("head link[rel]"))
    if not dates:
        dates = list(_linked_dates(tree.css('script[type="application/ld+json"]')))
    title, heading, body = tree.css_first("title"), tree.css_first("h1"), tree.body
    text = "" if body is None or not hashes_text else " ".join(body.text(separator=" ").split())
    shown = _text(title)
    return Html(
        shown,
        _text(heading),
        tuple(robots),
        base[:_MAX_URL],
        canonical,
        max((date for date in dates if len(date) <= _MAX_TEXT and parse_date(date)), default="", key=_date_of),
        alternates,
        blake2b(f"{shown}\n{text}".encode("utf-8", "replace"), digest_size=8).hexdigest() if text else "",
    )


def _links(links: Iterable[Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the canonical link, and the alternates in other languages."""
    canonical, alternates = "", []
    for number, link in enumerate(links):
        if number >= _MAX_ELEMENTS:
            break
        values = link.attributes
        kinds, href = _lower(values.get("rel")).split(), (values.get("href") or "").strip()
        if not href or len(href) > _MAX_URL:
            continue
        if "canonical" in kinds and not canonical:
            canonical = href
        elif "alternate" in kinds and (language := _lower(values.get("hreflang"))):
            alternates.append((language[:40], href))
    return canonical, tuple(alternates[:_MAX_ALTERNATES])


def _linked_dates(scripts: Iterable[Any]) -> Iterator[str]:
    for number, script in enumerate(scripts):
        if number >= 20:
            return
        yield from _LINKED_DATE.findall(script.text(deep=True) or "")


def _date_of(text: str) -> datetime:
    date = parse_date(text)
    assert date is not None
    return aware(date)


def _text(element: Any) -> str:
    return "" if element is None else shortened(" ".join(element.text(separator=" ").split()))


def _lower(text: str | None) -> str:
    return (text or "").strip().lower()


def _joined(base: str, link: str) -> str:
    """Return a link as an absolute URL of http or https; an empty text if it is none."""
    if not link:
        return ""
    try:
        url = urljoin(base, link.strip())
        return url if urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc else ""
    except ValueError:
        return ""


def _decoded(content: bytes, content_type: str) -> str:
    """Return the text of a page, in the encoding that the page or its header states."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    stated = _CHARSET_OF_TYPE.search(content_type)
    found = stated[1] if stated else None
    if found is None and (declared := _CHARSET.search(content[:_HEAD_BYTES])):
        found = declared[1].decode("ascii")
    try:
        return content.decode(found or "utf-8", "replace")
    except (LookupError, ValueError):  # no such encoding, or one that is not of text
        return content.decode("utf-8", "replace")
