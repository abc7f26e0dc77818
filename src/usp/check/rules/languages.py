"""H: versions of pages in other languages (hreflang), and language codes.

`language_problem` is for hreflang: a language tag of BCP 47 that search engines understand, or x-default. It looks up
languages of two letters and regions. Scripts and variants only need the right form. `news_language_problem` is for the
language of news.

https://developers.google.com/search/docs/specialty/international/localized-versions
https://www.rfc-editor.org/rfc/rfc5646
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from usp.check.rules.rule import (
    ERROR,
    INFO,
    PAGES,
    SURVEYED_BY_CODE,
    WARNING,
    EntryRule,
    Finding,
    Rule,
)
from usp.check.subjects import X_DEFAULT, Entry
from usp.scan import (
    same_url_key,
)

__all__ = ["RULES", "language_problem", "news_language_problem"]

#: Attributes of alternate links that are not for languages: pages for other screens, and feeds.
_OTHER_USES = frozenset({"media", "type"})
#: ISO 639-1.
_LANGUAGE_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en"
    " eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja"
    " jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb"
    " nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq"
    " sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
#: Withdrawn codes that are still in use. Search engines understand them.
_FORMER_LANGUAGES = frozenset({"bh", "in", "iw", "ji", "jw", "mo", "sh"})
#: Codes of three letters (ISO 639-2) for languages that have a code of two: BCP 47 allows only the shorter one.
_SHORTER_CODES = (
    "eng:en ger:de deu:de fre:fr fra:fr spa:es ita:it por:pt rus:ru jpn:ja chi:zh zho:zh kor:ko dut:nl nld:nl"
    " swe:sv dan:da nor:no nob:nb fin:fi pol:pl cze:cs ces:cs slo:sk slk:sk hun:hu tur:tr gre:el ell:el heb:he"
    " ara:ar hin:hi tha:th vie:vi ukr:uk rum:ro ron:ro bul:bg hrv:hr srp:sr slv:sl est:et lav:lv lit:lt cat:ca"
    " ind:id may:ms msa:ms per:fa fas:fa alb:sq sqi:sq arm:hy hye:hy baq:eu eus:eu geo:ka kat:ka ice:is isl:is"
    " mac:mk mkd:mk wel:cy cym:cy"
)
#: Languages and their extended languages (BCP 47), which may follow them.
_EXTENDED_LANGUAGES = {
    "zh": "cdo cjy cmn cnp cpx csp czh czo gan hak hsn lzh mnp nan wuu yue",
    "ar": "aao abh abv acm acq acw acx acy adf aeb aec afb ajp ajt apc apd arb arq ars ary arz auz avl ayh ayl ayn ayp"
    " bbz pga shu ssh",
    "ms": "bjn btj bve bvu coa dup hji jak jax kvb kvr kxd lce lcf liw max meo mfa mfb min mqg msi mui orn ors pel pse"
    " tmw urk vkk vkt xmm zlm zmi zsm",
    "sw": "swc swh",
    "uz": "uzn uzs",
    "lv": "ltg lvs",
    "kok": "gom knn",
}
#: ISO 3166-1 alpha-2.
_REGION_CODES = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ"
    " CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO"
    " FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE"
    " JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO"
    " MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW"
    " PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM"
    " TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"
    " XK"  # Kosovo: in no standard, but in use everywhere
)
#: A common mistake, most often the code of a country -> the language code to write.
_MEANT_LANGUAGES = {"jp": "ja", "cz": "cs", "dk": "da", "gr": "el", "cn": "zh", "ua": "uk", "vn": "vi", "kp": "ko"}
_MEANT_LANGUAGES |= {"us": "en", "gb": "en", "at": "de", "ir": "fa", "il": "he", "rs": "sr", "kz": "kk", "mx": "es"}
_MEANT_REGIONS = {"UK": "GB", "EN": "GB", "EL": "GR"}
#: Valid tags that are hardly ever what the author means.
_MISTAKEN = dict.fromkeys(("kr", "kr-kr"), "is Kanuri, a language of Nigeria; Korean is ko")
_LANGUAGES = frozenset(_LANGUAGE_CODES.split())
_SHORTER_LANGUAGES = dict(pair.split(":") for pair in _SHORTER_CODES.split())
_REGIONS = frozenset(_REGION_CODES.split())

_TAG = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
_SCRIPT = re.compile(r"[A-Za-z]{4}")
_AREA = re.compile(r"[0-9]{3}")  # UN M.49, such as 419 for Latin America
_VARIANT = re.compile(r"[A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}")
_NEWS_LANGUAGES = frozenset({"zh-cn", "zh-tw"})


@lru_cache(maxsize=4_096)  # a site has few
def language_problem(tag: str) -> str:
    """Return what is wrong with an hreflang, in words that follow it, or an empty text."""
    if tag.lower() == X_DEFAULT:
        return ""
    if "_" in tag and not language_problem(meant := tag.replace("_", "-")):
        return f'has an underscore: write "{meant}"'
    if not _TAG.fullmatch(tag):
        return "is not a language code; write one like en or en-GB"
    language, *rest = tag.split("-")
    if problem := _MISTAKEN.get(tag.lower()) or _primary_problem(language):
        return problem
    if rest and rest[0].lower() in _EXTENDED_LANGUAGES.get(language.lower(), "").split():
        rest = rest[1:]
    if rest and _SCRIPT.fullmatch(rest[0]):
        rest = rest[1:]
    if rest and not _VARIANT.fullmatch(rest[0]):
        if problem := _region_problem(rest[0]):
            return problem
        rest = rest[1:]
    surplus = [part for part in rest if not _VARIANT.fullmatch(part)]
    return f'has "{"-".join(surplus)}" at its end; leave it out' if surplus else ""


def _primary_problem(language: str) -> str:
    """Return what is wrong with the first part of a tag."""
    code = language.lower()
    if code in _SHORTER_LANGUAGES:
        short = _SHORTER_LANGUAGES[code]
        return f'starts with "{language}", a language that has a code of two letters; write {short}'
    if code in _LANGUAGES or code in _FORMER_LANGUAGES or (len(code) == 3 and code.isalpha()):
        return ""
    if code in _MEANT_LANGUAGES:
        return f'starts with "{language}", which is no language; write {_MEANT_LANGUAGES[code]}'
    if code.upper() in _REGIONS:
        return f'starts with "{language}", which is a region; write a language before it, as in en-GB'
    return f'starts with "{language}", which is no language of ISO 639; write one like en'


def _region_problem(region: str) -> str:
    """Return what is wrong with a region."""
    code = region.upper()
    if code in _REGIONS or _AREA.fullmatch(code):
        return ""
    if code in _MEANT_REGIONS:
        return f'has the region "{region}", which does not exist; write {_MEANT_REGIONS[code]}'
    return f'has the region "{region}", which does not exist; write one of ISO 3166-1, like GB'


@lru_cache(maxsize=4_096)
def news_language_problem(text: str) -> str:
    """Return what is wrong with the language of a news publication, or an empty text."""
    code = text.lower()
    if code in _NEWS_LANGUAGES or code in _LANGUAGES or code in _FORMER_LANGUAGES:
        return ""
    return "" if len(code) == 3 and code.isascii() and code.isalpha() else "is not a language code"


def _bad_language(entry: Entry) -> Finding | None:
    for alternate in entry.alternates:
        if why := language_problem(alternate.language):
            return Finding(alternate.at, alternate.language, values={"why": why})
    return None


def _without_itself(entry: Entry) -> Finding | None:
    own = same_url_key(entry.url)
    if not entry.alternates or any(alternate.url == own for alternate in entry.alternates):
        return None
    return Finding(entry.element.at, entry.text)


def _without_default(entry: Entry) -> Finding | None:
    if not entry.alternates or any(alternate.is_default for alternate in entry.alternates):
        return None
    return Finding(entry.element.at, entry.text)


def _ambiguous(entry: Entry) -> Finding | None:
    seen: dict[str, str] = {}
    for alternate in entry.alternates:
        if seen.setdefault(alternate.language.lower(), alternate.url) != alternate.url:
            return Finding(alternate.at, alternate.language)
    return None


def _unusable_link(entry: Entry) -> Finding | None:
    for link in entry.element.all("link"):
        if why := _why_unusable(link.attributes):
            return Finding(link.at, link.attributes.get("href", ""), values={"why": why})
    return None


def _why_unusable(attributes: Mapping[str, str]) -> str:
    """Return why a link of an entry leads to no page in another language, or an empty text.

    That its `href` is no URL is another problem, U502 or U515.
    """
    relations = (attributes.get("rel") or "alternate").lower().split()
    if "alternate" not in relations:
        return ""  # of another kind
    if not attributes.get("href"):
        return "has no href"
    return "" if attributes.get("hreflang") or attributes.keys() & _OTHER_USES else "has no hreflang"


RULES = (
    EntryRule("H631", ERROR, 'hreflang "{text}" {why}', _bad_language, PAGES, SURVEYED_BY_CODE),
    EntryRule(
        "H632",
        WARNING,
        "the alternates do not include the page itself; add a link with its own language",
        _without_itself,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    # `usp.check.return_links` reports this one: it takes all sitemaps of the site.
    Rule("H633", ERROR, "{text} is an alternate of this page but does not link back; add the return link there"),
    EntryRule(
        "H634",
        INFO,
        "the alternates have no x-default; add one for all other languages",
        _without_default,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "H635",
        WARNING,
        'two alternates for "{text}"; list one URL for each language',
        _ambiguous,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    EntryRule(
        "H637",
        ERROR,
        'an alternate link {why}; write rel="alternate", hreflang and href',
        _unusable_link,
        PAGES,
        SURVEYED_BY_CODE,
    ),
    Rule("H636", WARNING, 'the alternate for "{text}" has no rel, so some readers skip it; write rel="alternate"'),
)
