"""V: videos.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
"""

from __future__ import annotations

from datetime import datetime

from usp.check.rules.dates import has_passed
from usp.check.rules.rule import ERROR, PAGES, SURVEYED_BY_CODE, WARNING, EntryRule, Finding
from usp.check.subjects import Entry
from usp.scan import (
    MAX_VIDEO_TAGS,
    VIDEO_LENGTHS,
    VIDEO_LOCATIONS,
    VIDEO_RANGES,
    VIDEO_RELATED,
    VIDEO_RELATIONSHIPS,
    VIDEO_REQUIRED,
    Element,
    absolute_url,
    is_out_of_range,
    parse_date,
    plain_text,
    same_url_key,
    unescape,
    unescaped_url,
)

__all__ = ["RULES", "is_expired"]


def _incomplete(entry: Entry) -> Finding | None:
    videos = entry.element.all("video")  # empty ones, too
    return next((Finding(video.at, where=missing) for video in videos if (missing := _missing(video))), None)


def _missing(video: Element) -> str:
    """Return the required field that a video lacks, or an empty text."""
    for name in VIDEO_REQUIRED:
        if not video.get(name):
            return f"<video:{name}>"
    if not any(video.get(name) or any(child.text for child in video.all(name)) for name in VIDEO_LOCATIONS):
        return "<video:content_loc> or <video:player_loc>"
    return ""


def _unusable(entry: Entry) -> Finding | None:
    now = entry.context.now
    for video in entry.videos:
        if (found := _out_of_range(video) or _expired(video, now)) is not None:
            return found
    return None


def _out_of_range(video: Element) -> Finding | None:
    for name, (_, _, words) in VIDEO_RANGES.items():
        text = video.get(name)
        if text and is_out_of_range(name, text):
            why = f"is out of range; it may be {words}"
            return Finding(video.place_of(name), text, f"<video:{name}>", {"why": why})
    return None


def is_expired(text: str, now: datetime) -> bool:
    """Return whether a text is a date that has passed."""
    date = parse_date(unescape(text)) if text else None
    return date is not None and has_passed(date, now)


def _expired(video: Element, now: datetime) -> Finding | None:
    text = video.get("expiration_date")
    if not is_expired(text, now):
        return None
    why = "has passed, so search engines no longer show the video; remove it"
    return Finding(video.place_of("expiration_date"), text, "<video:expiration_date>", {"why": why})


def _same_as_page(entry: Entry) -> Finding | None:
    for video in entry.videos:
        for name in VIDEO_LOCATIONS:
            places = [(child.at, child.text) for child in video.all(name)]  # those with attributes
            for at, text in ((video.place_of(name), video.get(name)), *places):
                url, _ = absolute_url(unescaped_url(text), entry.context.url)
                if url is not None and same_url_key(url) == same_url_key(entry.url):
                    return Finding(at, text, f"<video:{name}>")
    return None


def _too_many_tags(entry: Entry) -> Finding | None:
    for video in entry.videos:
        if (count := len(video.all("tag"))) > MAX_VIDEO_TAGS:
            return Finding(video.at, values={"total": count})
    return None


def _too_long(entry: Entry) -> Finding | None:
    for video in entry.videos:
        for name, most in VIDEO_LENGTHS.items():
            if (length := len(plain_text(video.get(name)) or "")) > most:
                words: dict[str, object] = {"total": f"{length:,}", "most": f"{most:,}"}
                return Finding(video.place_of(name), video.get(name)[:40], f"<video:{name}>", words)
    return None


def _unrelated(entry: Entry) -> Finding | None:
    for video in entry.videos:
        for name in VIDEO_RELATED:
            for element in video.all(name):
                if (related := element.attributes.get("relationship", "").lower()) not in VIDEO_RELATIONSHIPS:
                    return Finding(element.at, related, f"<video:{name}>")
    return None


RULES = (
    EntryRule("V621", ERROR, "a video without {where}, which is required", _incomplete, PAGES, SURVEYED_BY_CODE),
    EntryRule(
        "V623",
        ERROR,
        "the {where} is the URL of the page itself; write that of the video, or of its player",
        _same_as_page,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "V624", WARNING, "a video with {total} tags; it may have at most 32", _too_many_tags, PAGES, SURVEYED_BY_CODE
    ),
    EntryRule(
        "V625",
        WARNING,
        "{where} has {total} characters; it may have at most {most}",
        _too_long,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "V626",
        ERROR,
        '{where} without a relationship; write relationship="allow" or relationship="deny"',
        _unrelated,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    EntryRule("V622", WARNING, '"{text}" in {where} {why}', _unusable, PAGES, SURVEYED_BY_CODE),
)
