"""V: videos.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation

from usp.check.rules.dates import has_passed
from usp.check.rules.rule import ERROR, PAGES, SURVEYED_BY_VIDEO, WARNING, EntryRule, Finding
from usp.check.subjects import Entry
from usp.scan import (
    Element,
    absolute_url,
    parse_date,
    plain_text,
    same_url_key,
    unescape,
    unescaped_url,
)

__all__ = ["RULES"]

_REQUIRED = ("thumbnail_loc", "title", "description")
_LOCATIONS = ("content_loc", "player_loc")
_MAX_TAGS = 32
#: How many characters a field may have.
_LENGTHS = {"title": 100, "description": 2_048}
_RELATED = ("restriction", "platform")
#: The range of a number, and how the message shows it.
_RANGES = {
    "duration": (Decimal(1), Decimal(28_800), "1 to 28,800 seconds"),
    "rating": (Decimal(0), Decimal(5), "0.0 to 5.0"),
}


def _incomplete(entry: Entry) -> Finding | None:
    videos = entry.element.all("video")  # empty ones, too
    return next((Finding(video.at, where=missing) for video in videos if (missing := _missing(video))), None)


def _missing(video: Element) -> str:
    """Return the required field that a video lacks, or an empty text."""
    for name in _REQUIRED:
        if not video.get(name):
            return f"<video:{name}>"
    if not any(video.get(name) or any(child.text for child in video.all(name)) for name in _LOCATIONS):
        return "<video:content_loc> or <video:player_loc>"
    return ""


def _unusable(entry: Entry) -> Finding | None:
    now = entry.context.now
    for video in entry.videos:
        if (found := _out_of_range(video) or _expired(video, now)) is not None:
            return found
    return None


def _out_of_range(video: Element) -> Finding | None:
    # A text that is not a number is another problem, P414.
    for name, (least, most, words) in _RANGES.items():
        text = video.get(name)
        if not text:
            continue
        if name == "duration" and not text.isdigit():
            continue
        try:
            number = Decimal(text)
        except InvalidOperation:
            continue
        if number.is_finite() and not least <= number <= most:
            why = f"is out of range; it may be {words}"
            return Finding(video.place_of(name), text, f"<video:{name}>", {"why": why})
    return None


def _expired(video: Element, now: datetime) -> Finding | None:
    text = video.get("expiration_date")
    date = parse_date(unescape(text)) if text else None
    if date is None or not has_passed(date, now):
        return None
    why = "has passed, so search engines no longer show the video; remove it"
    return Finding(video.place_of("expiration_date"), text, "<video:expiration_date>", {"why": why})


def _same_as_page(entry: Entry) -> Finding | None:
    for video in entry.videos:
        for name in _LOCATIONS:
            places = [(child.at, child.text) for child in video.all(name)]  # those with attributes
            for at, text in ((video.place_of(name), video.get(name)), *places):
                url, _ = absolute_url(unescaped_url(text), entry.context.url)
                if url is not None and same_url_key(url) == same_url_key(entry.url):
                    return Finding(at, text, f"<video:{name}>")
    return None


def _too_many_tags(entry: Entry) -> Finding | None:
    for video in entry.videos:
        if (count := len(video.all("tag"))) > _MAX_TAGS:
            return Finding(video.at, values={"total": count})
    return None


def _too_long(entry: Entry) -> Finding | None:
    for video in entry.videos:
        for name, most in _LENGTHS.items():
            if (length := len(plain_text(video.get(name)) or "")) > most:
                words: dict[str, object] = {"total": f"{length:,}", "most": f"{most:,}"}
                return Finding(video.place_of(name), video.get(name)[:40], f"<video:{name}>", words)
    return None


def _unrelated(entry: Entry) -> Finding | None:
    for video in entry.videos:
        for name in _RELATED:
            for element in video.all(name):
                if (related := element.attributes.get("relationship", "").lower()) not in ("allow", "deny"):
                    return Finding(element.at, related, f"<video:{name}>")
    return None


RULES = (
    EntryRule("V621", ERROR, "a video without {where}, which is required", _incomplete, PAGES, SURVEYED_BY_VIDEO),
    EntryRule(
        "V623",
        ERROR,
        "the {where} is the URL of the page itself; write that of the video, or of its player",
        _same_as_page,
        PAGES,
        SURVEYED_BY_VIDEO,
    ),
    EntryRule(
        "V624", WARNING, "a video with {total} tags; it may have at most 32", _too_many_tags, PAGES, SURVEYED_BY_VIDEO
    ),
    EntryRule(
        "V625",
        WARNING,
        "{where} has {total} characters; it may have at most {most}",
        _too_long,
        PAGES,
        SURVEYED_BY_VIDEO,
    ),
    EntryRule(
        "V626",
        ERROR,
        '{where} without a relationship; write relationship="allow" or relationship="deny"',
        _unrelated,
        PAGES,
        SURVEYED_BY_VIDEO,
    ),
    EntryRule("V622", WARNING, '"{text}" in {where} {why}', _unusable, PAGES, SURVEYED_BY_VIDEO),
)
