"""Convert a `<video:video>` to a `SitemapVideo`.

`usp.scan.vocabulary.VIDEO_FIELDS` says which fields there are and how each is written. A new one changes nothing here.

https://www.google.com/schemas/sitemap-video/1.1/sitemap-video.xsd
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from usp.objects.page import SitemapVideo, SitemapVideoTvShow
from usp.objects.problem import ProblemLog
from usp.scan.dates import parse_date
from usp.scan.elements import Element
from usp.scan.entities import unescape
from usp.scan.urls import absolute_url, unescaped_url
from usp.scan.vocabulary import TV_SHOW_FIELDS, VIDEO_FIELDS, VIDEO_URLS, Form

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

#: How the value of a field is converted, by the form that it is written in.
_CONVERTERS: dict[Form, Convert] = {
    Form.TEXT: _text,
    Form.URL: _url,
    Form.DATE: _date,
    Form.INTEGER: _integer,
    Form.DECIMAL: _decimal,
    Form.YES_NO: _yes_or_no,
    Form.WORDS: _words,
}
_WITH_ATTRIBUTES = {field.element for field in VIDEO_FIELDS.values() if field.attribute}
#: Fields that are elements without attributes -> the element, and how its text is converted.
_PLAIN = {
    name: (field.element, _CONVERTERS[field.form])
    for name, field in VIDEO_FIELDS.items()
    if field.form in _CONVERTERS and field.element not in _WITH_ATTRIBUTES
}
#: Elements with attributes -> fields, the attribute that each is or "" for the text, and how it is converted.
_ATTRIBUTED = {
    element: [
        (name, field.attribute, _CONVERTERS[field.form])
        for name, field in VIDEO_FIELDS.items()
        if field.element == element
    ]
    for element in sorted(_WITH_ATTRIBUTES)
}
#: Fields that are groups, or elements that repeat.
_REPEATED = {name: field for name, field in VIDEO_FIELDS.items() if field.form not in _CONVERTERS}
_TV_SHOW = {name: (name, _CONVERTERS[form]) for name, form in TV_SHOW_FIELDS.items()}
_DATE_FORM = "YYYY-MM-DD or YYYY-MM-DDThh:mm:ss+hh:mm"


def video(group: Element, base: str, log: ProblemLog) -> SitemapVideo:
    """Return the video of a group. A field that cannot be converted is missing. Relative URLs are resolved."""
    values = _converted(group, _PLAIN, log)
    for tag, fields in _ATTRIBUTED.items():
        for element in group.all(tag)[:1]:
            for name, attribute, convert in fields:
                text = element.attributes.get(attribute) if attribute else element.text
                if text is not None:
                    values[name] = convert(text)
    for name in sorted(VIDEO_URLS & values.keys()):
        values[name] = _resolved(values[name] or "", base, group, name, log) or values[name]
    for name, field in _REPEATED.items():
        elements = group.all(field.element)
        if field.form is Form.TEXTS:
            values[name] = [text for element in elements if (text := _text(element.text))]
        elif field.form is Form.TEXTS_WITH_ATTRIBUTES:
            values[name] = [(unescape(element.text), element.attributes) for element in elements]
        else:
            values[name] = SitemapVideoTvShow(**_converted(elements[0], _TV_SHOW, log)) if elements else None
    return SitemapVideo(**values)


def _resolved(text: str, base: str, group: Element, name: str, log: ProblemLog) -> str | None:
    """Return a URL made absolute, None if it is no URL. Log a problem unless it was absolute."""
    url, was_absolute = absolute_url(text, base)
    if text and (url is None or not was_absolute):
        tag = VIDEO_FIELDS[name].element
        element = next(iter(group.all(tag)), None)
        at = group.place_of(tag) if element is None else element.at
        where = f"<video:{tag}>"
        log.add("U513" if url is None else "U501", at, text=text, where=where)
    return url


def _converted(group: Element, table: Mapping[str, tuple[str, Convert]], log: ProblemLog) -> dict[str, Any]:
    values = {}
    for name, (tag, convert) in table.items():
        if text := group.get(tag):
            values[name] = convert(text)
            if values[name] is None:
                at, where = group.place_of(tag), f"<video:{tag}>"
                if convert is _date:
                    log.add("L302", at, text=text, where=where, form=_DATE_FORM)
                else:
                    log.add("P414", at, text=text, where=where)
    return values
