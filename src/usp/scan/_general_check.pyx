# cython: language_level=3, cdivision=True
"""What a survey needs to know of an entry that the general scanner has read: its values, and the codes of its problems.

The rules of `usp.check` are much slower. So they look only at entries with a problem that is to be reported; this module
counts the others. It finds what the rules find, by the same tables and functions of `usp.scan.survey`.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport MAX_TEXT_BYTES, flags_of
from usp.scan._check cimport (
    H631,
    H632,
    H634,
    H635,
    H637,
    I611,
    MAX_LINKS,
    N601,
    N603,
    N604,
    P423,
    P432,
    P433,
    V621,
    V622,
    V623,
    V624,
    V625,
    V626,
    EntrySummary,
    PlainCheck,
)
from usp.scan._elements cimport Element
from usp.scan._entries cimport Record
from usp.scan._seen cimport same_url_hash

INTERFACE = USP_INTERFACE

cdef enum:
    RANKS = 5  # of the children of an entry, in the order of the schema; extensions have the last

cdef object absolute_url, date_code, is_out_of_range, microseconds, parse_change_frequency, parse_date, parse_priority
cdef object period_of, plain_text, unescape, unescaped_url
cdef Py_ssize_t MAX_IMAGES, MAX_TAGS
cdef frozenset OPTIONAL, RELATIONSHIPS
cdef tuple RELATED, REQUIRED, LOCATIONS, RANGES
cdef dict CODE_BITS, LENGTHS, ORDER


def bind():
    """Import what this module uses of usp."""
    global absolute_url, date_code, is_out_of_range, microseconds, parse_change_frequency, parse_date, parse_priority
    global period_of, plain_text, unescape, unescaped_url, MAX_IMAGES, MAX_TAGS, OPTIONAL, RELATIONSHIPS
    global RELATED, REQUIRED, LOCATIONS, RANGES, CODE_BITS, LENGTHS, ORDER
    from usp.scan import survey
    from usp.scan._check import CODE_BITS
    from usp.scan.columns import microseconds
    from usp.scan.dates import parse_date
    from usp.scan.survey import MAX_IMAGES, date_code, is_out_of_range, period_of
    from usp.scan.urls import absolute_url, unescaped_url
    from usp.scan.values import parse_change_frequency, parse_priority, plain_text, unescape

    MAX_TAGS, OPTIONAL, RELATIONSHIPS = survey.MAX_VIDEO_TAGS, survey.OPTIONAL_FIELDS, survey.VIDEO_RELATIONSHIPS
    RELATED, REQUIRED, LOCATIONS = survey.VIDEO_RELATED, survey.VIDEO_REQUIRED, survey.VIDEO_LOCATIONS
    RANGES, LENGTHS, ORDER = tuple(survey.VIDEO_RANGES), survey.VIDEO_LENGTHS, survey.CHILD_ORDER


cdef inline uint64_t bit(bint is_found, int code) noexcept:
    return <uint64_t>is_found << code


cdef class GeneralCheck(PlainCheck):
    """Summarizes entries of the general scanner, beside the plain ones."""

    cdef bint summarize(self, Element entry, uint64_t own, EntryFacts *facts) except -1:
        """Summarize an entry. `own` is the hash of its URL. Return false if it has more links than can be noted."""
        cdef EntrySummary *summary = &facts.summary
        cdef Element child
        memset(facts, 0, sizeof(EntryFacts))
        summary.priority = -1
        if entry is None or entry.name == "item" or entry.name == "entry":
            return True
        if entry._fields is not None and (len(entry._fields) > 1 or "loc" not in entry._fields):
            self.add_fields(entry, summary)
        if not entry.has_children() or entry.name != "url":
            summary.codes |= bit(is_out_of_order(entry), P433)
            return True
        for child in entry._children:
            if child.name == "image":
                summary.images += 1
            elif child.name == "news":
                summary.stories += 1
            elif child.name == "link":
                summary.links += 1
            else:
                facts.may_repeat |= not child.is_empty
                self.add_video(child, own, summary)
        facts.may_repeat |= summary.images > 0
        summary.codes |= bit(summary.images > MAX_IMAGES, I611) | bit(is_out_of_order(entry), P433)
        if summary.stories:
            self.add_news(entry, facts)
        return not summary.links or self.add_links(entry, own, facts)

    cdef int add_fields(self, Element entry, EntrySummary *summary) except -1:
        """Add the values of the fields of the protocol, and the codes of their problems."""
        cdef int64_t period
        cdef str text
        for name, text in entry._fields.items():
            summary.codes |= bit(not text and name in OPTIONAL, P432)
        text = entry.text_of("lastmod")
        if text is not None and self.read_date(text, &summary.date, &period, &summary.codes):
            summary.is_dated = entry.name == "url"
        if entry.name != "url":
            return 0
        text = entry.text_of("changefreq")
        if text is not None and text != text.lower():
            summary.codes |= bit(parse_change_frequency(text) is not None, P423)
        text = entry.text_of("priority")
        if text is not None:
            priority = parse_priority(text)
            summary.priority = -1 if priority is None else float(priority)
        return 0

    cdef bint read_date(self, str text, int64_t *date, int64_t *period, uint64_t *codes) except -1:
        """Read a date, and add the code of its problem. Return false if the text is no date."""
        cdef Py_ssize_t size
        cdef const uint8_t *data = <const uint8_t *>PyUnicode_AsUTF8AndSize(text, &size)
        cdef Record record
        if size < MAX_TEXT_BYTES and not flags_of(data, <size_t>size):
            memset(&record, 0, sizeof(Record))
            record.size = <uint16_t>size
            return self.is_date(data, &record, date, period, codes)
        text = unescape(text)
        found = parse_date(text)
        if found is None:
            return False
        date[0], period[0] = microseconds(found), period_of(text, found)
        code = date_code(text, found, self.options)
        if code:
            codes[0] |= bit(True, CODE_BITS[code])
        return True

    cdef int add_news(self, Element entry, EntryFacts *facts) except -1:
        """Add the first news story of an entry."""
        cdef Element child, news = None, publication = None
        cdef uint64_t *codes = &facts.summary.codes
        cdef int64_t date, period
        for child in entry._children:
            if child.name == "news":
                news = child
                break
        text = news.text_of("publication_date")
        if text is not None and self.read_date(text, &date, &period, codes):
            codes[0] |= bit(date + period < self.news_since, N601)
            facts.is_story = is_stated(news, "title")
        if news.has_children():
            for child in news._children:
                if child.name == "publication":
                    publication = child
                    break
        if publication is None or not is_stated(publication, "name") or not is_stated(publication, "language"):
            codes[0] |= bit(True, N603)
        if publication is not None and is_stated(publication, "language"):
            codes[0] |= bit(not self.options.is_news_language(plain_text(publication.text_of("language"))), N604)
        return 0

    cdef bint add_links(self, Element entry, uint64_t own, EntryFacts *facts) except -1:
        """Add the alternates of an entry. Return false if there are too many."""
        cdef uint64_t *codes = &facts.summary.codes
        cdef uint64_t hashed
        cdef uint64_t[MAX_LINKS] others
        cdef int count = 0, i
        cdef bint is_default, has_default = False, has_own = False
        cdef dict pages = {}  # languages -> hashes of their first pages
        cdef Element link
        cdef str relation, href, language, url
        if facts.summary.links > MAX_LINKS:
            return False
        for link in entry._children:
            if link.name != "link":
                continue
            relation, href, language = link.attribute("rel"), link.attribute("href"), link.attribute("hreflang")
            if relation and relation != "alternate" and "alternate" not in relation.lower().split():
                continue
            if not href or not language:
                codes[0] |= bit(not href or not has_other_use(link), H637)
                continue
            url, _ = absolute_url(unescaped_url(href), self.options.url)
            if url is None:
                continue
            if not self.hash_text(url, &hashed):
                return False
            facts.alternates += 1
            codes[0] |= bit(not self.options.is_language(language), H631)
            language = language.lower()
            is_default = language == "x-default"
            has_default |= is_default
            has_own |= hashed == own
            codes[0] |= bit(pages.setdefault(language, hashed) != hashed, H635)
            if hashed != own and not is_default:
                for i in range(count):
                    if others[i] == hashed:
                        break
                else:
                    others[count] = hashed
                    count += 1
        if facts.alternates:
            codes[0] |= bit(not has_own, H632) | bit(not has_default, H634)
            facts.key, facts.size = own, 1 + <uint64_t>count
            for i in range(count):
                facts.key += others[i]
        return True

    cdef int add_video(self, Element video, uint64_t own, EntrySummary *summary) except -1:
        """Add the codes of the problems of a video. An empty one has only the first of them."""
        cdef uint64_t codes = 0
        cdef int64_t date, period
        cdef Py_ssize_t tags = 0
        cdef Element child
        cdef str text
        cdef bint is_complete = False
        for name in LOCATIONS:
            is_complete |= video.has_text(name)
        if video.has_children():
            for child in video._children:
                tags += child.name == "tag"
                if child.name in LOCATIONS:
                    is_complete |= len(child.text) > 0
                    codes |= bit(self.is_page_itself(child.text, own), V623)
                elif child.name in RELATED:
                    codes |= bit((child.attribute("relationship") or "").lower() not in RELATIONSHIPS, V626)
        for name in REQUIRED:
            is_complete &= video.has_text(name)
        codes |= bit(not is_complete, V621) | bit(tags > MAX_TAGS, V624)
        if video._fields is not None:
            text = video.text_of("publication_date")
            if text is not None:
                self.read_date(text, &date, &period, &codes)
            text = video.text_of("expiration_date")
            if text is not None:
                codes |= bit(self.options.is_expired(text), V622)
            for name in RANGES:
                text = video.text_of(name)
                codes |= bit(text is not None and is_out_of_range(name, text), V622)
            for name in LOCATIONS:
                text = video.text_of(name)
                codes |= bit(text is not None and self.is_page_itself(text, own), V623)
            for name, most in LENGTHS.items():
                text = video.text_of(name)
                if text is not None and len(text) > most:  # without escapes, it may be shorter
                    codes |= bit(len(plain_text(text) or "") > most, V625)
        summary.codes |= codes
        return 0

    cdef bint is_page_itself(self, str text, uint64_t own) except -1:
        """Return whether the URL in a text is the one whose hash this is."""
        cdef uint64_t hashed
        url, _ = absolute_url(unescaped_url(text), self.options.url)
        return url is not None and self.hash_text(url, &hashed) and hashed == own

    cdef bint hash_text(self, str url, uint64_t *hashed) except -1:
        """Compute the hash of a URL. Return false if it is too long."""
        cdef Py_ssize_t size
        cdef const uint8_t *data = <const uint8_t *>PyUnicode_AsUTF8AndSize(url, &size)
        if size >= MAX_TEXT_BYTES or size < 8:
            return False
        hashed[0] = same_url_hash(data, size, end_of_host(data, size), self.changed)
        return True


cdef Py_ssize_t end_of_host(const uint8_t *url, Py_ssize_t size) noexcept:
    """Return where the scheme and host of a URL end. It has at least eight bytes."""
    cdef Py_ssize_t at = 8  # behind "http://" and a character
    while at < size and url[at] != c'/' and url[at] != c'?' and url[at] != c'#':
        at += 1
    return at


cdef bint is_stated(Element element, str name) except -1:
    """Return whether a field has a text, once its HTML escapes are removed."""
    text = element.text_of(name)
    return text is not None and ("&" not in <str>text or plain_text(text) is not None)


cdef bint has_other_use(Element link) except -1:
    """Return whether a link without a language is for other screens, or a feed."""
    return link._attributes is not None and ("media" in link._attributes or "type" in link._attributes)


cdef bint is_out_of_order(Element entry) except -1:
    """Return whether children of an entry are not in the order of the schema. Extensions come last."""
    cdef Py_ssize_t[RANKS] first
    cdef Py_ssize_t[RANKS] last
    cdef Py_ssize_t at
    cdef int rank, other
    cdef Element child
    if type(entry.at) is not int:
        return False
    for rank in range(RANKS):
        first[rank] = last[rank] = -1
    if entry._offsets is not None:
        for name, at in entry._offsets.items():
            rank = ORDER.get(name, RANKS - 1)
            first[rank] = at if first[rank] < 0 else min(first[rank], at)
            last[rank] = max(last[rank], at)
    if entry._children is not None:
        for child in entry._children:
            at = child.at
            first[RANKS - 1] = at if first[RANKS - 1] < 0 else min(first[RANKS - 1], at)
    for rank in range(RANKS - 1):
        for other in range(rank + 1, RANKS):
            if first[other] >= 0 and last[rank] > first[other]:
                return True
    return False
