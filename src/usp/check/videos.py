"""The rules on a `<video:video>`: what it must have, and what its numbers and dates may be.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation

from usp.check.dates import has_passed
from usp.objects.problem import At
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entities import unescape

__all__ = ["video_of_no_use", "video_without"]

_REQUIRED = ("thumbnail_loc", "title", "description")
_LOCATIONS = ("content_loc", "player_loc")
#: Numbers: the least, the most, and how the message says it.
_RANGES = {
    "duration": (Decimal(1), Decimal(28_800), "1 to 28,800 seconds"),
    "rating": (Decimal(0), Decimal(5), "0.0 to 5.0"),
}

Found = tuple[At, str, str, dict[str, object]]


def video_without(video: Element, now: datetime) -> Found | None:
    """V621: what a video must have and this one has not."""
    for name in _REQUIRED:
        if not video.get(name):
            return video.at, "", f"<video:{name}>", {}
    if not any(video.get(name) or any(child.text for child in video.all(name)) for name in _LOCATIONS):
        return video.at, "", "<video:content_loc> or <video:player_loc>", {}
    return None


def video_of_no_use(video: Element, now: datetime) -> Found | None:
    """V622: a number that is out of range, or an end that has passed. What is neither is another problem."""
    for name, (least, most, words) in _RANGES.items():
        text = video.get(name)
        if name == "duration" and not text.isdigit():
            continue
        try:
            number = Decimal(text)
        except InvalidOperation:
            continue
        if number.is_finite() and not least <= number <= most:
            return video.place_of(name), text, f"<video:{name}>", {"why": f"is out of range; it may be {words}"}
    text = video.get("expiration_date")
    date = parse_date(unescape(text)) if text else None
    if date is None or not has_passed(date, now):
        return None
    why = "has passed, so the video is not shown any more; take it out"
    return video.place_of("expiration_date"), text, "<video:expiration_date>", {"why": why}
