"""Language codes, as search engines take them: what is wrong with one, in words; empty if nothing is.

`language_problem` is for hreflang: a language tag of BCP 47, as far as one says anything to a search engine, or
x-default. Languages, those of two letters, and regions are looked up; scripts and variants must have the right form.
`news_language_problem` is for news, where there is a language only.

https://developers.google.com/search/docs/specialty/international/localized-versions
https://www.rfc-editor.org/rfc/rfc5646
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["X_DEFAULT", "language_problem", "news_language_problem"]

X_DEFAULT = "x-default"

#: ISO 639-1.
_LANGUAGE_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en"
    " eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja"
    " jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb"
    " nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq"
    " sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
#: Codes that were given up, and are in use all the same: search engines know what they stand for.
_FORMER_LANGUAGES = frozenset({"bh", "in", "iw", "ji", "jw", "mo", "sh"})
#: Codes of three letters, of ISO 639-2, for languages that have one of two: that is the only one in BCP 47.
_SHORTER_CODES = (
    "eng:en ger:de deu:de fre:fr fra:fr spa:es ita:it por:pt rus:ru jpn:ja chi:zh zho:zh kor:ko dut:nl nld:nl"
    " swe:sv dan:da nor:no nob:nb fin:fi pol:pl cze:cs ces:cs slo:sk slk:sk hun:hu tur:tr gre:el ell:el heb:he"
    " ara:ar hin:hi tha:th vie:vi ukr:uk rum:ro ron:ro bul:bg hrv:hr srp:sr slv:sl est:et lav:lv lit:lt cat:ca"
    " ind:id may:ms msa:ms per:fa fas:fa alb:sq sqi:sq arm:hy hye:hy baq:eu eus:eu geo:ka kat:ka ice:is isl:is"
    " mac:mk mkd:mk wel:cy cym:cy"
)
#: Languages that others are written behind, and those: the extended languages of BCP 47.
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
    " XK"  # of no standard, but in use by all for Kosovo
)
#: What is written for a language, most often the code of its country -> the code that was meant.
_MEANT_LANGUAGES = {"jp": "ja", "cz": "cs", "dk": "da", "gr": "el", "cn": "zh", "ua": "uk", "vn": "vi", "kp": "ko"}
_MEANT_LANGUAGES |= {"us": "en", "gb": "en", "at": "de", "ir": "fa", "il": "he", "rs": "sr", "kz": "kk", "mx": "es"}
_MEANT_REGIONS = {"UK": "GB", "EN": "GB", "EL": "GR"}
#: Tags that mean something, but hardly ever what was meant.
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
    """What is wrong with an hreflang, in words that follow it; empty if nothing is."""
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
    """What is wrong with the first part of a tag."""
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
    """What is wrong with a region."""
    code = region.upper()
    if code in _REGIONS or _AREA.fullmatch(code):
        return ""
    if code in _MEANT_REGIONS:
        return f'has the region "{region}", which does not exist; write {_MEANT_REGIONS[code]}'
    return f'has the region "{region}", which does not exist; write one of ISO 3166-1, like GB'


@lru_cache(maxsize=4_096)
def news_language_problem(text: str) -> str:
    """What is wrong with the language of a news publication; empty if nothing is."""
    code = text.lower()
    if code in _NEWS_LANGUAGES or code in _LANGUAGES or code in _FORMER_LANGUAGES:
        return ""
    return "" if len(code) == 3 and code.isascii() and code.isalpha() else "is not a language code"
