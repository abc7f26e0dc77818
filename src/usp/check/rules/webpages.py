"""W: the pages themselves, as far as they were fetched (`usp check --probe`)."""

from __future__ import annotations

import re
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING

from usp.check.rules.rule import ERROR, WARNING, Finding, PageRule

if TYPE_CHECKING:
    from usp.check.probing.page import ProbedPage

__all__ = ["MAX_SECONDS", "RULES"]

#: A page that takes longer is slow.
MAX_SECONDS = 3.0
#: Dates in sitemaps and in pages may be a day apart: many have neither a time nor a time zone.
_SLACK = timedelta(days=1)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
#: What titles and headings of pages say that do not exist, as a whole or as a part between separators.
_MISSING = re.compile(
    r"(?:http )?(?:error |fehler |erreur )?404(?: error| fehler)?(?:[ :,.!-]+(?:page |file )?not found)?|"
    r"(?:error[ :]+)?(?:sorry[, ]+)?(?:(?:this|the|that) )?(?:page|file|content|document)(?: was| is| could)?"
    r" not (?:be )?(?:found|available)|not found|(?:this |the )?page does(?: not|n.t) exist|"
    r"(?:die )?seite (?:wurde )?nicht gefunden|(?:la )?page (?:est )?(?:introuvable|non trouvée)|"
    r"(?:la )?página no encontrada|(?:la )?pagina non trovata|página não encontrada|pagina niet gevonden|"
    r"страница не найдена|strona nie (?:została )?znaleziona|sayfa bulunamad\u0131|ページが見つかりません|"
    r"(?:页面|頁面)(?:不存在|未找到)|找不到(?:页面|頁面)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"(?<!\s)\s++[|\u2013\u2014\u00b7:\u00bb-]++\s++")


def _status(page: ProbedPage) -> Finding | None:
    status = page.facts.status
    if status is None or (status < HTTPStatus.BAD_REQUEST and not page.facts.reason):
        return None
    # A redirect that leads nowhere has a reason, too.
    why = page.facts.reason if status < HTTPStatus.BAD_REQUEST else f"{status} {_PHRASES.get(status, '')}".strip()
    return Finding(page.listed.at, page.facts.url, why)


def _unreachable(page: ProbedPage) -> Finding | None:
    facts = page.facts
    return Finding(page.listed.at, facts.url, facts.reason) if facts.status is None and facts.reason else None


def _redirected(page: ProbedPage) -> Finding | None:
    facts = page.facts
    if not facts.is_redirected or facts.status is None or facts.status >= HTTPStatus.BAD_REQUEST:
        return None
    if page.disallowed_to:
        return None  # W806: that URL should not be listed, either
    return Finding(page.listed.at, facts.url, facts.answered_url)


def _noindex(page: ProbedPage) -> Finding | None:
    from usp.check.probing.page import is_noindex

    where = is_noindex(page.facts) if page.is_page else ""
    return Finding(page.listed.at, page.facts.url, where) if where else None


def _canonical(page: ProbedPage) -> Finding | None:
    from usp.origins import requested_url

    canonical = page.facts.canonical
    if not page.is_page or not canonical or requested_url(canonical) == requested_url(page.facts.url):
        return None
    return Finding(page.listed.at, page.facts.url, canonical)


def _disallowed(page: ProbedPage) -> Finding | None:
    if not page.disallowed_to:
        return None
    return Finding(page.listed.at, page.facts.url, page.disallowed_to, {"what": page.facts.answered_url})


def _soft_404(page: ProbedPage) -> Finding | None:
    facts = page.facts
    if facts.status != HTTPStatus.OK:
        return None
    if facts.text_hash and facts.text_hash == page.missing_hash:
        return Finding(page.listed.at, facts.url, "its text is that of pages that do not exist")
    for what, text in (("title", facts.title), ("heading", facts.heading)):
        if any(_MISSING.fullmatch(part.strip(" .!")) for part in _SEPARATOR.split(text)):
            return Finding(page.listed.at, facts.url, f'its {what} is "{text}"')
    return None


def _slow(page: ProbedPage) -> Finding | None:
    seconds = page.facts.seconds
    if seconds is None or seconds <= MAX_SECONDS:
        return None
    return Finding(page.listed.at, page.facts.url, values={"seconds": f"{seconds:.1f}"})


def _newer_date(page: ProbedPage) -> Finding | None:
    from usp.objects.dates import aware

    own, listed = page.facts.own_date, page.listed.last_modified
    if not page.is_page or own is None or listed is None or aware(listed) - own <= _SLACK:
        return None
    return Finding(page.listed.at, page.facts.url, f"{own:%Y-%m-%d}", {"listed": f"{listed:%Y-%m-%d}"})


def _one_way(page: ProbedPage) -> Finding | None:
    return Finding(page.listed.at, page.facts.url, page.one_way) if page.one_way else None


RULES = (
    PageRule("W801", ERROR, "the page answered {where}; list only pages that exist", _status),
    PageRule("W802", ERROR, "the page could not be fetched: {where}", _unreachable),
    PageRule("W803", WARNING, "the page redirects to {where}; list that URL", _redirected),
    PageRule(
        "W804", ERROR, "{where} of the page says noindex; remove the page from the sitemap, or the rule", _noindex
    ),
    PageRule("W805", WARNING, "the canonical URL of the page is {where}; list that URL", _canonical),
    PageRule("W806", ERROR, "robots.txt disallows {what} to {where}; allow it, or list another page", _disallowed),
    PageRule("W807", WARNING, "the page answered 200, but {where}; answer 404, or list pages that exist", _soft_404),
    PageRule("W808", WARNING, "the page took {seconds} seconds; crawlers fetch less from slow sites", _slow),
    PageRule("W809", WARNING, "<lastmod> is {listed}, but the page says {where}; state its own date", _newer_date),
    PageRule("W810", WARNING, "{where} is a version of the page, and does not link back to it", _one_way),
)
