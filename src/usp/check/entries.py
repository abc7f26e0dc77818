"""The rules on one entry: each is a small function that gives what it found, if anything; a table has them all.

What is wrong is defined in `usp.scan.survey`, for the entries that are passed over at its speed; the functions here say
the same of the others, and add the place and the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from usp.check.alternates import Alternate, alternates_of
from usp.check.dates import w3c_form
from usp.check.languages import language_problem, news_language_problem
from usp.check.videos import video_of_no_use, video_without
from usp.objects.problem import At
from usp.origins import host_of
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entities import unescape
from usp.scan.survey import (
    MAX_IMAGES,
    MAX_URL_LENGTH,
    SURVEYED,
    Yardstick,
    date_code,
    elsewhere_code,
    first_unescaped,
    is_lower_frequency,
    is_old,
    may_be_disallowed,
    same_url_key,
)
from usp.scan.values import parse_change_frequency, plain_text

__all__ = ["ENTRY_RULES", "CheckedEntry", "EntryRules", "Finding", "Standard", "needs_every_entry"]


class Finding(NamedTuple):
    """What a rule found: where, the offending text, and what else the message says."""

    at: At
    text: str = ""
    where: str = ""
    values: dict[str, object] = {}  # noqa: RUF012 -- never changed


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _nobody(url: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Standard:
    """What the entries of one sitemap are measured by: the yardstick of the survey, and what messages say beside it."""

    url: str  # of the sitemap
    yardstick: Yardstick
    folder: str = ""  # that the sitemap speaks for, with its host
    now: datetime = _LONG_AGO
    disallowed_to: Callable[[str], str] = _nobody  # to whom a page is disallowed, in words


@dataclass
class CheckedEntry:
    """An entry, its URL, and what is known of it."""

    element: Element
    url: str
    standard: Standard
    duplicate: str = ""  # the code of it
    first_sitemap: str = ""  # that lists the page, if another one does

    @property
    def text(self) -> str:
        """Its URL as it stands there."""
        return self.element.get("loc") or self.url

    @property
    def at(self) -> At:
        """Where its URL stands."""
        element = self.element
        if "loc" not in element.offsets and element.children:
            return next((child.at for child in element.children if child.name == "link"), element.at)
        return element.place_of("loc")

    @cached_property
    def elsewhere(self) -> str:
        """The code of a URL that is not where those of its sitemap should be; empty if it is."""
        return elsewhere_code(self.url, self.standard.yardstick)

    @cached_property
    def alternates(self) -> list[Alternate]:
        """Its versions in other languages."""
        return alternates_of(self.element, self.standard.url) if self.element.children else []

    @cached_property
    def news(self) -> Element | None:
        """What it says of a news story."""
        return next(iter(self.element.all("news")), None)

    @property
    def is_story(self) -> bool:
        """Whether it has a news story that counts."""
        if self.news is None:
            return False
        date = parse_date(unescape(self.news.get("publication_date")))
        return date is not None and plain_text(self.news.get("title")) is not None


Rule = Callable[[CheckedEntry], Finding | None]
_UNESCAPED_WORDS = {" ": "a space", '"': "a quotation mark", "%": 'a "%" that is no escape'}


def long_url(entry: CheckedEntry) -> Finding | None:
    """U503: a URL must be shorter than 2,048 characters."""
    if len(entry.url) < MAX_URL_LENGTH:
        return None
    return Finding(entry.at, entry.text, values={"total": f"{len(entry.url):,}"})


def unescaped(entry: CheckedEntry) -> Finding | None:
    """U504: what no URL may have as it is."""
    if (at := first_unescaped(entry.url)) < 0:
        return None
    character = entry.url[at]
    what = _UNESCAPED_WORDS.get(character, f'"{character}"')
    return Finding(entry.at, entry.text, what, {"escaped": quote(character, safe="")})


def not_ascii(entry: CheckedEntry) -> Finding | None:
    """U505: what a URL may have only when it is escaped."""
    if entry.url.isascii():
        return None
    character = next(character for character in entry.url if not character.isascii())
    in_host = not (urlsplit(entry.url).hostname or "").isascii()
    escaped = host_of(entry.url) if in_host else quote(character, safe="", errors="replace")
    return Finding(entry.at, entry.text, f'"{character}"', {"escaped": escaped})


def _elsewhere(code: str, where: Callable[[CheckedEntry], str]) -> Rule:
    """U506 to U509: a URL that is not where those of its sitemap should be."""

    def rule(entry: CheckedEntry) -> Finding | None:
        if entry.elsewhere != code:
            return None
        return Finding(entry.at, entry.text, where(entry))

    return rule


def _netloc(entry: CheckedEntry) -> str:
    return urlsplit(entry.url).netloc.rpartition("@")[2]


def fragment(entry: CheckedEntry) -> Finding | None:
    """U510: search engines drop what follows a "#"."""
    _, mark, rest = entry.url.partition("#")
    return Finding(entry.at, f"#{rest}") if mark else None


def disallowed(entry: CheckedEntry) -> Finding | None:
    """R709: a page that robots.txt disallows to search engines."""
    yardstick = entry.standard.yardstick
    whom = entry.standard.disallowed_to(entry.url) if may_be_disallowed(entry.url, yardstick) else ""
    return Finding(entry.at, entry.text, whom) if whom else None


def listed_twice(entry: CheckedEntry) -> Finding | None:
    """P418: a page stands in one sitemap twice."""
    return Finding(entry.at, entry.text) if entry.duplicate == "P418" else None


def listed_elsewhere(entry: CheckedEntry) -> Finding | None:
    """P419: a page stands in another sitemap already. Those of images and videos are there to list pages of others."""
    if entry.duplicate != "P419" or entry.element.all("image") or entry.element.all("video"):
        return None
    return Finding(entry.at, entry.text, entry.first_sitemap)


def _dated(code: str) -> Rule:
    """L303, L305, L306: the first date that could be read, but is in the future or not in the right form."""

    def rule(entry: CheckedEntry) -> Finding | None:
        for element, name, where in _dates_of(entry):
            text = element.get(name)
            date = parse_date(unescape(text)) if text else None
            if date is not None and date_code(unescape(text), date, entry.standard.yardstick) == code:
                return Finding(element.place_of(name), text, where, {"iso": w3c_form(unescape(text), date)})
        return None

    return rule


def _dates_of(entry: CheckedEntry) -> Iterator[tuple[Element, str, str]]:
    """The dates of an entry: where each is, by what name, and how it is shown."""
    yield entry.element, "lastmod", "<lastmod>"
    if entry.news is not None:
        yield entry.news, "publication_date", "<news:publication_date>"
    for video in entry.element.all("video") if entry.element.children else ():
        yield video, "publication_date", "<video:publication_date>"


def upper_frequency(entry: CheckedEntry) -> Finding | None:
    """P423: a change frequency is written in lower case."""
    text = entry.element.get("changefreq")
    if not text or is_lower_frequency(text) or parse_change_frequency(text) is None:
        return None
    return Finding(entry.element.place_of("changefreq"), text, text.lower())


def old_news(entry: CheckedEntry) -> Finding | None:
    """N601: news is two days old at most."""
    if entry.news is None:
        return None
    text = entry.news.get("publication_date")
    date = parse_date(unescape(text)) if text else None
    if date is None or not is_old(unescape(text), date, entry.standard.yardstick):
        return None
    return Finding(entry.news.place_of("publication_date"), text)


def anonymous_news(entry: CheckedEntry) -> Finding | None:
    """N603: a story states its publication, with its name and language."""
    if entry.news is None:
        return None
    publication = next(iter(entry.news.all("publication")), None)
    if publication is None:
        return Finding(entry.news.at, where="<news:publication>")
    missing = next((name for name in ("name", "language") if not plain_text(publication.get(name))), None)
    return Finding(publication.at, where=f"<news:{missing}>") if missing else None


def news_language(entry: CheckedEntry) -> Finding | None:
    """N604: the language of a publication is a code."""
    publications = entry.news.all("publication") if entry.news is not None else []
    text = plain_text(publications[0].get("language")) if publications else None
    if not text or not news_language_problem(text):
        return None
    return Finding(publications[0].place_of("language"), text, "<news:language>")


def many_images(entry: CheckedEntry) -> Finding | None:
    """I611: a page has 1,000 images at most."""
    count = len(entry.element.all("image")) if entry.element.children else 0
    return Finding(entry.element.at, values={"total": f"{count:,}"}) if count > MAX_IMAGES else None


def _of_videos(problem: Callable[[Element, datetime], tuple[At, str, str, dict[str, object]] | None]) -> Rule:
    """V621, V622: the first of an entry's videos in which something is wrong."""

    def rule(entry: CheckedEntry) -> Finding | None:
        videos = entry.element.all("video") if entry.element.children else []
        now = entry.standard.now
        return next((Finding(*found) for video in videos if (found := problem(video, now)) is not None), None)

    return rule


def language(entry: CheckedEntry) -> Finding | None:
    """H631: an hreflang is a language, or a language and a region."""
    for alternate in entry.alternates:
        if why := language_problem(alternate.language):
            return Finding(alternate.at, alternate.language, values={"why": why})
    return None


def without_itself(entry: CheckedEntry) -> Finding | None:
    """H632: the alternates of a page include the page."""
    own = same_url_key(entry.url)
    is_so = entry.alternates and all(alternate.url != own for alternate in entry.alternates)
    return Finding(entry.element.at, entry.text) if is_so else None


def without_default(entry: CheckedEntry) -> Finding | None:
    """H634: the alternates of a page include one for all other languages."""
    is_so = entry.alternates and not any(alternate.is_default for alternate in entry.alternates)
    return Finding(entry.element.at, entry.text) if is_so else None


def ambiguous_language(entry: CheckedEntry) -> Finding | None:
    """H635: a language has one alternate only."""
    seen: dict[str, str] = {}
    for alternate in entry.alternates:
        if seen.setdefault(alternate.language.lower(), alternate.url) != alternate.url:
            return Finding(alternate.at, alternate.language)
    return None


_URL_RULES: dict[str, Rule] = {
    "U503": long_url,
    "U504": unescaped,
    "U505": not_ascii,
    "U506": _elsewhere("U506", _netloc),
    "U507": _elsewhere("U507", lambda entry: entry.standard.folder),
    "U508": _elsewhere("U508", lambda entry: urlsplit(entry.url).scheme),
    "U509": _elsewhere("U509", _netloc),
    "U510": fragment,
    "P418": listed_twice,
}
_DATE_RULES = {code: _dated(code) for code in ("L303", "L305", "L306")}
_LISTED_PAGE_RULES = {"R709": disallowed, "P419": listed_elsewhere}
_PAGE_RULES: dict[str, Rule] = {
    "P423": upper_frequency,
    "N601": old_news,
    "N603": anonymous_news,
    "N604": news_language,
    "I611": many_images,
    "V621": _of_videos(video_without),
    "V622": _of_videos(video_of_no_use),
    "H631": language,
    "H632": without_itself,
    "H634": without_default,
    "H635": ambiguous_language,
}
# Feeds link to comments, each with a fragment of its own, and to whatever they are about.
_NOT_OF_FEEDS = {"U506", "U507", "U508", "U509", "U510"}
_FEED_RULES = {code: rule for code, rule in _URL_RULES.items() if code not in _NOT_OF_FEEDS} | {"R709": disallowed}
#: Rules on videos, which the survey does not know: it stops at every entry that has a video.
_VIDEO_RULES = frozenset({"V621", "V622"})
#: The name of an entry's element -> code -> the rule that finds it.
EntryRules = dict[str, dict[str, Rule]]
ENTRY_RULES: EntryRules = {
    "url": _URL_RULES | _LISTED_PAGE_RULES | _DATE_RULES | _PAGE_RULES,
    "sitemap": _URL_RULES | _DATE_RULES,
    "item": _FEED_RULES,
    "entry": _FEED_RULES,
}


def needs_every_entry(rules: EntryRules) -> bool:
    """Return whether any rule is unknown to the survey. The survey must not skip an entry then."""
    known = _VIDEO_RULES.union(SURVEYED)
    return any(code not in known for table in rules.values() for code in table)
