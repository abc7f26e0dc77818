"""From a `<video:video>` to the public `SitemapVideo`, by a table of Google's schema.

https://www.google.com/schemas/sitemap-video/1.1/sitemap-video.xsd
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from usp.objects.page import SitemapVideo, SitemapVideoTvShow
from usp.objects.problem import ProblemLog
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entities import unescape
from usp.scan.urls import absolute_url, unescaped_url
from usp.scan.vocabulary import VIDEO_URLS

__all__ = ["video"]


def _text(text: str) -> str | None:
    return unescape(text) or None


def _url(text: str) -> str | None:
    return unescaped_url(text) or None


def _words(text: str) -> list[str]:
    return unescape(text).split()


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _yes_or_no(text: str) -> bool | None:
    return {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}.get(text.lower())


def _date(text: str) -> datetime | None:
    return parse_date(unescape(text))


Convert = Callable[[str], Any]

#: Plain fields: element -> how its text is read. The attribute has the same name.
_FIELDS: dict[str, Convert] = {
    "title": _text,
    "description": _text,
    "thumbnail_loc": _url,
    "content_loc": _url,
    "duration": _integer,
    "expiration_date": _date,
    "publication_date": _date,
    "rating": _decimal,
    "view_count": _integer,
    "family_friendly": _yes_or_no,
    "requires_subscription": _yes_or_no,
    "live": _yes_or_no,
    "category": _text,
}
_TV_SHOW: dict[str, Convert] = {
    "show_title": _text,
    "video_type": _text,
    "episode_title": _text,
    "season_number": _integer,
    "episode_number": _integer,
    "premier_date": _date,
}
#: Fields with attributes: element -> (attribute of the video, how the text is read, {XML attribute: (ours, how)}).
_WITH_ATTRIBUTES: dict[str, tuple[str, Convert, dict[str, tuple[str, Convert]]]] = {
    "player_loc": (
        "player_loc",
        _url,
        {"allow_embed": ("player_allow_embed", _yes_or_no), "autoplay": ("player_autoplay", _text)},
    ),
    "gallery_loc": ("gallery_loc", _url, {"title": ("gallery_title", _text)}),
    "uploader": ("uploader", _text, {"info": ("uploader_info", _url)}),
    "restriction": ("restriction", _words, {"relationship": ("restriction_relationship", _text)}),
    "platform": ("platform", _words, {"relationship": ("platform_relationship", _text)}),
}
#: Attributes of the video that are from an element of another name.
_ELEMENTS = {"uploader_info": "uploader"}
_DATE_FORM = "YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+hh:mm"
#: Fields that may repeat, kept as pairs of text and attributes.
_REPEATED = {"price": "prices", "content_segment_loc": "content_segments", "id": "ids"}


def video(group: Element, base: str, log: ProblemLog) -> SitemapVideo:
    """The video; a field that cannot be converted is as if it were not there. Relative URLs are resolved."""
    values = _converted(group, _FIELDS, log)
    for name, (ours, convert, xml_attributes) in _WITH_ATTRIBUTES.items():
        for element in group.all(name)[:1]:
            values[ours] = convert(element.text)
            for attribute, (our_attribute, convert_attribute) in xml_attributes.items():
                if attribute in element.attributes:
                    values[our_attribute] = convert_attribute(element.attributes[attribute])
    for name in sorted(VIDEO_URLS & values.keys()):
        values[name] = _resolved(values[name] or "", base, group, name, log) or values[name]
    for name, ours in _REPEATED.items():
        values[ours] = [(unescape(element.text), element.attributes) for element in group.all(name)]
    values["tags"] = [text for tag in group.all("tag") if (text := _text(tag.text))]
    shows = group.all("tvshow")
    values["tv_show"] = SitemapVideoTvShow(**_converted(shows[0], _TV_SHOW, log)) if shows else None
    return SitemapVideo(**values)


def _resolved(text: str, base: str, group: Element, name: str, log: ProblemLog) -> str | None:
    """A URL made absolute; None if it is none. It is noted unless it was absolute."""
    url, was_absolute = absolute_url(text, base)
    if text and (url is None or not was_absolute):
        element = next(iter(group.all(_ELEMENTS.get(name, name))), None)
        at = group.place_of(name) if element is None else element.at
        where = f"<video:{_ELEMENTS.get(name, name)}>"
        log.add("U513" if url is None else "U501", at, text=text, where=where)
    return url


def _converted(group: Element, table: dict[str, Convert], log: ProblemLog) -> dict[str, Any]:
    values = {}
    for name, convert in table.items():
        if text := group.get(name):
            values[name] = convert(text)
            if values[name] is None:
                if convert is _date:
                    log.add("L302", group.place_of(name), text=text, where=f"<video:{name}>", form=_DATE_FORM)
                else:
                    log.add("P414", group.place_of(name), text=text, where=f"<video:{name}>")
    return values
