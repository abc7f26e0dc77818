"""Every code of a problem: how severe it is, and its message. Codes are stable: a code never changes its meaning.

A message says what is wrong and what to do. `{text}` is the offending text, `{where}` the element that it is in.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

__all__ = ["CODES", "GROUPS", "Code", "Severity"]


class Severity(IntEnum):
    """How much a problem matters to those who read the sitemap; a worse one is greater."""

    INFO = 1  # worth knowing; nothing is lost
    WARNING = 2  # read all the same, or partly, or not by everyone
    ERROR = 3  # refused, left out or misread

    def __str__(self) -> str:
        return self.name.lower()


class Code(NamedTuple):
    """What a code stands for."""

    severity: Severity
    message: str


#: The first letter of a code -> what such codes are about.
GROUPS = {
    "X": "XML syntax",
    "E": "Encodings",
    "L": "Dates",
    "P": "The sitemaps.org protocol, its extensions, feeds and texts",
    "U": "URLs",
    "N": "News",
    "I": "Images",
    "V": "Videos",
    "H": "Languages (hreflang)",
    "R": "robots.txt and discovery",
    "T": "Transport",
    "C": "Where a tree was cut at one of its limits",
}

_INFO, _WARNING, _ERROR = Severity

CODES: dict[str, Code] = {
    "X101": Code(_ERROR, "something stands before the document; it must be the very first thing"),
    "X102": Code(_ERROR, 'bare "&" in {where}; write "&amp;"'),
    "X103": Code(_ERROR, 'unknown entity "{text}" in {where}; write the character itself'),
    "X104": Code(_ERROR, 'stray "<" in text; write "&lt;"'),
    "X105": Code(_ERROR, 'malformed tag "{text}"; write it as <name> or </name>'),
    "X106": Code(_ERROR, "</{text}> closes nothing; remove it, or add the <{text}> that it closes"),
    "X107": Code(_ERROR, "<{text}> is never closed; write </{text}> where it ends"),
    "X108": Code(_ERROR, "control character in {where}; remove it"),
    "X109": Code(_ERROR, "NUL bytes in the document; remove them"),
    "X110": Code(_INFO, "a DOCTYPE was skipped; a sitemap needs none"),
    "X111": Code(_ERROR, "another document starts after the first one ended; only one may stand in a file"),
    "X112": Code(_ERROR, '"{text}" is never closed'),
    "X113": Code(_ERROR, "the document is cut off; it ends inside <{text}>"),
    "X114": Code(_ERROR, "nested deeper than {text} elements; what lies below was passed over"),
    "X115": Code(_ERROR, "{where} is longer than {text} bytes and was left out"),
    "X116": Code(
        _ERROR, "a DOCTYPE that declares entities of its own stands inside the document; what follows it was left out"
    ),
    "X117": Code(_ERROR, 'the prefix "{text}" is never declared; write xmlns:{text}="..." on the root element'),
    "X118": Code(_ERROR, "something stands behind the document; remove it"),
    "E201": Code(_WARNING, 'the document says its encoding is "{text}", but it is not; read as {where}'),
    "E202": Code(_WARNING, 'the encoding "{text}" is not known; read as UTF-8'),
    "E203": Code(_ERROR, "bytes in {where} that are not {text}; read as Windows-1252"),
    "E204": Code(_WARNING, "the document is in {text}; a sitemap must be in UTF-8"),
    "E205": Code(_WARNING, "invisible characters around the text in {where}; they were taken out"),
    "L301": Code(_WARNING, "{count} of {total} entries have the same lastmod; write when each page last changed"),
    "L302": Code(_ERROR, '"{text}" in {where} is not a date; write {form}'),
    "L303": Code(_WARNING, '"{text}" in {where} is in the future; write when it really was'),
    "L304": Code(
        _WARNING,
        "{count} of {total} entries were last modified when the sitemap was made; write when each page last changed",
    ),
    "L305": Code(_WARNING, '"{text}" in {where} is a date that search engines may not read; write it as {iso}'),
    "L306": Code(_WARNING, '"{text}" in {where} is a time without a zone; add Z or +hh:mm'),
    "P401": Code(_ERROR, "<{where}> has no <loc>; the entry was left out"),
    "P402": Code(_ERROR, "a <sitemap> stands in a urlset; it belongs into a sitemapindex"),
    "P403": Code(_ERROR, "a <url> stands in a sitemapindex; it belongs into a urlset"),
    "P404": Code(_ERROR, "the URL stands in <{where}> itself; put it into a <loc>"),
    "P405": Code(_ERROR, "a second <loc> in one <{where}>; read as an entry of its own"),
    "P406": Code(_ERROR, 'priority "{text}" is not a number from 0.0 to 1.0; 0.5 is used'),
    "P407": Code(
        _ERROR,
        'change frequency "{text}" is not known; write always, hourly, daily, weekly, monthly, yearly or never',
    ),
    "P408": Code(_ERROR, "a news story without {where}; it was left out"),
    "P409": Code(_ERROR, "an image without a <loc>; it was left out"),
    "P410": Code(_ERROR, 'the tag <{text}> is not in the right case; write "{where}"'),
    "P411": Code(_WARNING, "a feed entry without a link; it was left out"),
    "P412": Code(_ERROR, 'a line that is no URL: "{text}"'),
    "P413": Code(_ERROR, "a <loc> outside any <{where}>; read as an entry of its own"),
    "P414": Code(_ERROR, '"{text}" in {where} is not a value that it may have; it was left out'),
    "P415": Code(
        _ERROR, "{total} entries; a sitemap may have 50,000 at most: split it, and list the parts in an index"
    ),
    "P416": Code(_ERROR, "{total} bytes inflated; a sitemap may have 52,428,800 (50 MB) at most: split it"),
    "P417": Code(_ERROR, "an index inside the index {where}; an index may list sitemaps of pages only"),
    "P418": Code(_WARNING, "listed already in this sitemap; list a page once"),
    "P419": Code(_INFO, "listed already in {where}; list a page in one sitemap only"),
    "P420": Code(_INFO, "{count} of {total} entries have the priority {text}; it says nothing so, and may be left out"),
    "P421": Code(_WARNING, "the sitemap lists nothing"),
    "P422": Code(
        _ERROR, 'the namespace is "{text}"; write xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" on the root'
    ),
    "P423": Code(_WARNING, 'change frequency "{text}" is not in lower case; write "{where}"'),
    "P424": Code(_ERROR, "<{text}> stands at the top of the document; put all of it into a <{where}>"),
    "P425": Code(_WARNING, 'the namespace of "{where}" is "{text}"; write "{uri}"'),
    "P426": Code(_WARNING, "<{text}> is not in the namespace that it should be in; write <{where}>"),
    "P427": Code(_WARNING, "more than a URL on a line; a text sitemap may have one URL on each, and nothing else"),
    "U501": Code(_ERROR, 'relative URL "{text}" in {where}; a sitemap needs absolute ones'),
    "U502": Code(_ERROR, '"{text}" in {where} is not an http or https URL; it was left out'),
    "U503": Code(_ERROR, "a URL of {total} characters; it must be shorter than 2,048"),
    "U504": Code(_WARNING, '{where} in a URL; write it as "{escaped}"'),
    "U505": Code(_INFO, '{where} in a URL; not every reader takes it: write it as "{escaped}"'),
    "U506": Code(
        _ERROR, "the URL is on {where}; a sitemap may list those of its own host only, unless robots.txt there names it"
    ),
    "U507": Code(
        _WARNING,
        "the URL is outside {where}, the folder that the sitemap speaks for; name it in robots.txt, or move it up",
    ),
    "U508": Code(_WARNING, "the URL is {where}, the site is not; list the URLs that pages really have"),
    "U509": Code(_WARNING, "the URL is on {where}, the site is not; list the URLs that pages really have"),
    "U510": Code(_INFO, 'the URL has a fragment, "{text}", which search engines drop; list the page without'),
    "U511": Code(_WARNING, "the URL in {where} is escaped twice; write &amp; once for each &"),
    "U512": Code(_ERROR, "characters around or inside the URL in {where} that are no part of it; they were taken out"),
    "U513": Code(_ERROR, '"{text}" in {where} is not an http or https URL'),
    "N601": Code(_WARNING, 'published "{text}", more than two days ago; take it out of the news sitemap'),
    "N602": Code(_ERROR, "{total} news stories; a news sitemap may have 1,000 at most: split it"),
    "N603": Code(_ERROR, "a news story without {where}, which is required"),
    "N604": Code(_ERROR, '"{text}" in {where} is not a language code; write one like en, or zh-cn or zh-tw'),
    "I611": Code(_WARNING, "{total} images; a page may have 1,000 at most"),
    "V621": Code(_ERROR, "a video without {where}, which is required"),
    "V622": Code(_WARNING, '"{text}" in {where} {why}'),
    "H631": Code(_ERROR, 'hreflang "{text}" {why}'),
    "H632": Code(_WARNING, "the alternates do not include the page itself; add a link with its own language"),
    "H633": Code(_ERROR, "{text} is an alternate of this page but does not link back; add the return link there"),
    "H634": Code(_INFO, "the alternates have no x-default; add one for all other languages"),
    "H635": Code(_WARNING, 'two alternates for "{text}"; only one URL may be given for a language'),
    "R701": Code(_ERROR, "an HTML page is served in place of robots.txt"),
    "R702": Code(_ERROR, 'relative URL "{text}" on a Sitemap line; it must be absolute'),
    "R703": Code(_ERROR, "a Sitemap line without a URL"),
    "R704": Code(_ERROR, "{text}; sitemaps that only robots.txt names are missing here"),
    "R705": Code(_WARNING, 'no robots.txt names this sitemap; add the line "Sitemap: {text}" to robots.txt'),
    "R706": Code(_ERROR, "robots.txt names {text}, which cannot be had: {reason}"),
    "R707": Code(_WARNING, "robots.txt names {text}, which redirects here; name this URL"),
    "R708": Code(_WARNING, "robots.txt is longer than 512,000 bytes (500 KiB); neither Google nor usp reads the rest"),
    "R709": Code(_ERROR, "robots.txt disallows this page to {where}; take it out of the sitemap, or allow it"),
    "R710": Code(_WARNING, 'not every reader understands this line; write "Sitemap: {text}" on a line of its own'),
    "R711": Code(
        _ERROR,
        "no sitemap was found: robots.txt names none, and there is none at the usual places; make one and name it in"
        " robots.txt",
    ),
    "R712": Code(_WARNING, 'this line does not name a sitemap to anyone; write "Sitemap: {text}"'),
    "T801": Code(_ERROR, "the gzip data is cut short or damaged; what could be inflated was used"),
    "T802": Code(_WARNING, "other data follows the gzip data; it was left out"),
    "T803": Code(_WARNING, "the name ends in .gz but the data is not compressed"),
    "T804": Code(_ERROR, "the document is larger than the limit; what follows was left out"),
    "T805": Code(_ERROR, "the transfer broke off; what came of the document was used"),
    "T806": Code(_WARNING, "the Content-Type is {what}; it should be {where}"),
    "T807": Code(_ERROR, "{lister}{listed}{what}: {reason}"),  # all but the reason may be empty
    "T808": Code(_WARNING, "the answer took {seconds} seconds; crawlers may not wait that long"),
    "T809": Code(_WARNING, "{where} lists {text}, which redirects here; list this URL"),
    "C901": Code(_WARNING, "{text}; what follows was left out"),
    "C902": Code(_INFO, "more than {total} {where}; {text} were looked for among the first of them only"),
}
