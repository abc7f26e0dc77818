"""The rules on a `<video:video>`: what it must have, and what its numbers may be.

https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from usp.objects.problem import At
from usp.scan.elements import Element

__all__ = ["video_out_of_range", "video_without"]

_REQUIRED = ("thumbnail_loc", "title", "description")
_LOCATIONS = ("content_loc", "player_loc")
#: Numbers: the least, the most, and how the message says it.
_RANGES = {
    "duration": (Decimal(1), Decimal(28_800), "1 to 28,800 seconds"),
    "rating": (Decimal(0), Decimal(5), "0.0 to 5.0"),
}

Found = tuple[At, str, str, dict[str, object]]


def video_without(video: Element) -> Found | None:
    """V621: what a video must have and this one has not."""
    for name in _REQUIRED:
        if not video.get(name):
            return video.at, "", f"<video:{name}>", {}
    if not any(video.get(name) or any(child.text for child in video.all(name)) for name in _LOCATIONS):
        return video.at, "", "<video:content_loc> or <video:player_loc>", {}
    return None


def video_out_of_range(video: Element) -> Found | None:
    """V622: a number that is out of range. What is no number is another problem."""
    for name, (least, most, words) in _RANGES.items():
        text = video.get(name)
        if name == "duration" and not text.isdigit():
            continue
        try:
            number = Decimal(text)
        except InvalidOperation:
            continue
        if number.is_finite() and not least <= number <= most:
            return video.place_of(name), text, f"<video:{name}>", {"range": words}
    return None
