"""Filters of pages: query parameters as a condition in SQL. Values are parameters of the query, not of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from usp.exceptions import InvalidArgumentError
from usp.objects.codes import CODES

__all__ = ["FILTERS", "HAS", "Condition", "condition_of", "is_set", "known_code", "rest_of_path", "section_of"]

#: What pages may have -> the condition.
HAS = {
    "news": "news is not null",
    "images": "len(images) > 0",
    "videos": "len(videos) > 0",
    "alternates": "len(alternates) > 0",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in SQL, and the values of its parameters."""

    sql: str = "true"
    values: tuple[object, ...] = ()


def condition_of(parameters: Mapping[str, str], sitemap_url: Callable[[str], tuple[str, str | None]]) -> Condition:
    """Return the condition that query parameters ask for. Unknown ones are skipped.

    :param sitemap_url: returns the URL and the source of the sitemap with a number or a URL.
    :raises InvalidArgumentError: if a value makes no sense; the message says what to do.
    """
    conditions: list[str] = []
    values: list[object] = []
    for name, make in FILTERS.items():
        if text := parameters.get(name, ""):
            found = make(text, parameters)
            conditions.append(f"({found.sql})")
            values += found.values
    if text := parameters.get("sitemap", ""):
        url, source = sitemap_url(text)
        conditions.append("sitemap_url = ?" if source is None else "sitemap_url = ? and source = ?")
        values += [url] if source is None else [url, source]
    return Condition(" and ".join(conditions), tuple(values)) if conditions else Condition()


def section_of(text: str) -> tuple[str, str]:
    """Return the host and the path of a section, such as www.example.org/blog: the path is "/blog", or "" for all."""
    host, slash, path = text.partition("/")
    return host, slash + path.rstrip("/") if path.strip("/") else ""


def rest_of_path(path: str) -> str:
    """Return SQL for what follows the path of a section in the path of its pages. Deeper sections end with a slash."""
    return f"substr(path, {len(path) + 2})"


def _text(text: str, parameters: Mapping[str, str]) -> Condition:
    if is_set("regex", parameters.get("regex", "")):
        return Condition("regexp_matches(url, ?)", (text,))
    return Condition("contains(lower(url), lower(?))", (text,))


def is_set(name: str, text: str) -> bool:
    """Return whether a parameter that says yes or no says yes."""
    if text not in ("", "0", "1"):
        raise InvalidArgumentError(f"{name} is 1 or 0, not {text!r:.40}")
    return text == "1"


def _undated(text: str, parameters: Mapping[str, str]) -> Condition:
    return Condition("last_modified is null" if is_set("undated", text) else "true")


def _problem(text: str, parameters: Mapping[str, str]) -> Condition:
    return Condition("list_contains(problems, ?)", (known_code(text),))


def known_code(text: str) -> str:
    """Return a code in upper case."""
    if (code := text.upper()) not in CODES:
        raise InvalidArgumentError(f"there is no code {text!r:.40}; usp check --explain X102 shows one")
    return code


def _section(text: str, parameters: Mapping[str, str]) -> Condition:
    host, path = section_of(text)
    if not path:
        return Condition("host = ?", (host,))
    return Condition("host = ? and (path = ? or starts_with(path, ?))", (host, path, path + "/"))


def _direct(text: str, parameters: Mapping[str, str]) -> Condition:
    _, path = section_of(parameters.get("section", ""))
    return Condition(f"not contains({rest_of_path(path)}, '/')" if is_set("direct", text) else "true")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidArgumentError(f"{text!r:.40} is not a day; write it as 2024-05-08") from None


def _from(text: str, parameters: Mapping[str, str]) -> Condition:
    return Condition("last_modified >= ?::timestamptz", (_day(text).isoformat(),))


def _to(text: str, parameters: Mapping[str, str]) -> Condition:
    day = _day(text)
    if day == date.max:
        return Condition("last_modified is not null")
    return Condition("last_modified < ?::timestamptz", ((day + timedelta(days=1)).isoformat(),))


def _has(text: str, parameters: Mapping[str, str]) -> Condition:
    names = text.split(",")
    for name in names:
        if name not in HAS:
            raise InvalidArgumentError(f"pages have {', '.join(HAS)}, not {name!r:.40}")
    return Condition(" and ".join(f"coalesce({HAS[name]}, false)" for name in names))


def _language(text: str, parameters: Mapping[str, str]) -> Condition:
    language = text.lower()
    return Condition(
        "list_contains(list_transform(alternates, lambda one: lower(one.hreflang)), ?)"
        " or lower(news.publication_language) = ?",
        (language, language),
    )


#: Query parameters -> the function that makes a condition of the value.
FILTERS: dict[str, Callable[[str, Mapping[str, str]], Condition]] = {
    "q": _text,
    "section": _section,
    "direct": _direct,
    "from": _from,
    "to": _to,
    "undated": _undated,
    "language": _language,
    "problem": _problem,
    "has": _has,
}
