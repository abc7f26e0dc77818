# cython: language_level=3, cdivision=True
"""Skip plain entries in which nothing is wrong, and count what they have in common. As `usp.scan.survey.PureSurvey`.

See `usp.scan.survey` for what a survey does. Unlike the one there, it takes every entry of a grammar.
"""

cimport cython
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport AMPERSAND, CDATA, HIGH, SPECIAL, flags_of, url_flags_of
from usp.scan._check cimport (
    CODE_COUNT,
    H631,
    H632,
    H634,
    H635,
    HAS_TEXT,
    I611,
    IS_LANGUAGE,
    IS_NEWS_LANGUAGE,
    MAX_LINKS,
    N601,
    N603,
    N604,
    P418,
    P419,
    R709,
    U503,
    U504,
    U505,
    U510,
    WHERE_ELSE,
    WHICH_DATE,
    Answer,
    Noticed,
    PlainCheck,
    is_answer,
)
from usp.scan._entries cimport IMAGES, NEWS, PlainEntry, Staged, record_flags
from usp.scan._seen cimport (
    MAX_NUMBER,
    ClusterSums,
    Table,
    URLTable,
    expect_in,
    is_in,
    is_open_in,
    note_in,
    number_in,
    put_into,
    secret,
    slot_for,
    usp_hash,
)
from usp.scan._texts cimport Link, ascii_text, end_of_origin, url_into

from usp.scan._check import CODE_BITS

INTERFACE = USP_INTERFACE

cdef Py_ssize_t MAX_URL_LENGTH
cdef uint32_t MAX_IMAGES
cdef object SitemapStats, date_code, period_of, parse_date, plain_text, text_of
cdef tuple SURVEYED

#: The fields of `usp.scan.survey.SitemapStats` that a survey fills, and the options that it minds.
STATS = ("entries", "dated", "earliest", "latest", "prioritised", "lowest", "highest", "stories", "linked")
OPTIONS = (
    "sites", "elsewhere", "now", "news_since", "may_disallow", "is_disallowed", "is_language", "is_news_language"
)


def bind():
    """Import what this module uses of usp, and compare tables with it."""
    global parse_date, plain_text, text_of
    global MAX_URL_LENGTH, MAX_IMAGES, SitemapStats, date_code, period_of, SURVEYED
    from dataclasses import fields

    from usp.scan.dates import parse_date
    from usp.scan.survey import (
        MAX_IMAGES,
        MAX_URL_LENGTH,
        SURVEYED,
        SitemapStats,
        SurveyOptions,
        date_code,
        period_of,
    )
    from usp.scan.values import plain_text, text_of

    stats, options = ([field.name for field in fields(made)] for made in (SitemapStats, SurveyOptions))
    check_survey(SURVEYED, stats, options)


def check_survey(codes, stats, options):
    """Raise an error unless these are the codes, stats and options that a survey knows."""
    from usp.scan.columns import check_names

    there = "usp/scan/survey.py"
    check_names("CODE_BITS in usp/scan/_check.pyx", CODE_BITS, f"SURVEYED in {there}", codes)
    check_names("STATS in usp/scan/_survey.pyx", STATS, f"SitemapStats in {there}", stats)
    check_names("OPTIONS in usp/scan/_survey.pyx", OPTIONS, f"SurveyOptions in {there}", options)
    if [*codes] != sorted(codes, key=CODE_BITS.get):
        raise TypeError("the codes have another order in usp/scan/_check.pyx than in SURVEYED in usp/scan/survey.py")


cdef enum:  # what a byte of a URL may be
    UNESCAPED = 1
    PERCENT = 2
    FRAGMENT = 4
    HEXADECIMAL = 8

cdef uint8_t BYTES_OF_URLS[256]
memset(BYTES_OF_URLS, 0, 256)
for _i in range(128):
    BYTES_OF_URLS[_i] = (
        UNESCAPED if chr(_i) in ' "<>\\^`{|}'
        else PERCENT if chr(_i) == "%"
        else FRAGMENT if chr(_i) == "#"
        else HEXADECIMAL if chr(_i) in "0123456789abcdefABCDEF"
        else 0
    )

ctypedef struct Gathered:  # the same as `usp.scan.survey.SitemapStats`
    int64_t entries, dated, earliest, latest, prioritised, stories, linked
    double lowest, highest

ctypedef struct Alternates:
    Link *links[MAX_LINKS]
    uint64_t hashes[MAX_LINKS]  # of where they lead
    int count
    uint64_t key  # of the pages that are said to be the same in other languages
    uint64_t size  # how many these are


cdef inline uint8_t lower(uint8_t letter) noexcept nogil:
    return letter | 32 if c'A' <= letter <= c'Z' else letter


cdef bint is_same_language(Link *one, Link *other) noexcept nogil:
    cdef Py_ssize_t i
    if one.hreflang_size != other.hreflang_size:
        return False
    for i in range(one.hreflang_size):
        if lower(one.hreflang[i]) != lower(other.hreflang[i]):
            return False
    return True


cdef bint is_default(Link *link) noexcept nogil:
    """Whether a link is that for all other languages."""
    cdef Link default
    default.hreflang, default.hreflang_size = <const uint8_t *>b"x-default", 9
    return is_same_language(link, &default)


cdef uint32_t codes_of_bytes(const uint8_t *url, Py_ssize_t size, uint8_t flags) noexcept nogil:
    """What is wrong with a URL as a text."""
    cdef uint8_t seen = 0
    cdef Py_ssize_t i, length = size
    cdef uint32_t codes = 0
    if not flags & SPECIAL and size < MAX_URL_LENGTH:
        return 0
    for i in range(size):
        seen |= BYTES_OF_URLS[url[i]]
    if flags & HIGH:
        codes |= 1 << U505
        for i in range(size):
            length -= url[i] & 0xC0 == 0x80
    if length >= MAX_URL_LENGTH:
        codes |= 1 << U503
    if seen & FRAGMENT:
        codes |= 1 << U510
    if seen & UNESCAPED or (seen & PERCENT and not is_escaped(url, size)):
        codes |= 1 << U504
    return codes


cdef bint is_escaped(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Whether two digits stand behind each "%"."""
    cdef Py_ssize_t i
    for i in range(size):
        if url[i] == c'%':
            if size - i < 3 or not BYTES_OF_URLS[url[i + 1]] & BYTES_OF_URLS[url[i + 2]] & HEXADECIMAL:
                return False
    return True


# The options of a survey, as C has them

ctypedef struct Text:
    const uint8_t *start
    Py_ssize_t size
    int number  # of a site: 1 + the bit of its code, 0 for none; of the first text of a sequence: how many follow


cdef inline bint starts_with(const uint8_t *url, Py_ssize_t size, Text *text) noexcept nogil:
    return size >= text.size and memcmp(url, text.start, <size_t>text.size) == 0


cdef Py_ssize_t end_of(const uint8_t *url, Py_ssize_t at, Py_ssize_t size, Text *text) noexcept nogil:
    """The end of the first place, from `at` on, where a text stands; -1 if there is none."""
    cdef const uint8_t *found
    if text.size == 0:
        return at
    while size - at >= text.size:
        found = <const uint8_t *>memchr(url + at, text.start[0], <size_t>(size - at - text.size + 1))
        if found == NULL:
            return -1
        at = found - url
        if memcmp(found, text.start, <size_t>text.size) == 0:
            return at + text.size
        at += 1
    return -1


cdef bint has_escaped_ascii(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    cdef const uint8_t *end = url + size
    while True:
        url = <const uint8_t *>memchr(url, c'%', <size_t>(end - url))
        if url == NULL or end - url < 2:
            return False
        if c'0' <= url[1] <= c'7':
            return True
        url += 1


@cython.final
cdef class Measures:
    """What the URLs of a sitemap are measured by."""

    cdef list kept  # the bytes that the texts point to
    cdef Text *sites
    cdef Text *sequences  # one behind the other
    cdef int site_count, text_count
    cdef Text common  # what all sequences start with
    cdef uint8_t may_follow[256]  # which byte may stand behind that

    def __init__(self, options):
        cdef int i = 0
        self.kept = []
        self.site_count = len(options.sites)
        self.text_count = sum(map(len, options.may_disallow))
        self.sites = <Text *>calloc(self.site_count + 1, sizeof(Text))
        self.sequences = <Text *>calloc(self.text_count + 1, sizeof(Text))
        if self.sites == NULL or self.sequences == NULL:
            raise MemoryError
        for i, (start, code) in enumerate(options.sites):
            self.sites[i] = self.text(start, CODE_BITS[code] + 1 if code else 0)
        i = 0
        for first, *others in options.may_disallow:
            self.sequences[i] = self.text(first, len(others))
            for number, other in enumerate(others, i + 1):
                self.sequences[<int>number] = self.text(other, 0)
            i += 1 + <int>len(others)
        self.find_common()

    def __dealloc__(self):
        free(self.sites)
        free(self.sequences)

    cdef Text text(self, str text, int number) except *:
        cdef Text made
        cdef bytes encoded = text.encode("utf-8", "surrogatepass")
        self.kept.append(encoded)
        made.start, made.size, made.number = <const uint8_t *>encoded, len(encoded), number
        return made

    cdef void find_common(self) noexcept:
        cdef int i = 0
        cdef Py_ssize_t same
        cdef Text *text
        self.common = self.sequences[0]
        while i < self.text_count:
            text, same = &self.sequences[i], 0
            while same < self.common.size and same < text.size and text.start[same] == self.common.start[same]:
                same += 1
            self.common.size = same
            i += 1 + text.number
        memset(self.may_follow, 0, 256)
        i = 0
        while i < self.text_count:
            text = &self.sequences[i]
            if text.size == self.common.size:
                memset(self.may_follow, 1, 256)
            else:
                self.may_follow[text.start[self.common.size]] = 1
            i += 1 + text.number

    cdef int site_code(self, const uint8_t *url, Py_ssize_t size) noexcept nogil:
        """What the first site that a URL starts with says of it, as `Text.number`; -1 if there is none."""
        cdef int i
        for i in range(self.site_count):
            if starts_with(url, size, &self.sites[i]):
                return self.sites[i].number
        return -1

    cdef bint may_be_disallowed(self, const uint8_t *url, Py_ssize_t size, uint8_t flags) noexcept nogil:
        """See `usp.scan.survey`."""
        cdef int i = 0, j
        cdef Py_ssize_t at
        if not self.text_count:
            return False
        if flags & SPECIAL and has_escaped_ascii(url, size):
            return True
        if not starts_with(url, size, &self.common):
            return False
        if size > self.common.size and not self.may_follow[url[self.common.size]]:
            return False
        while i < self.text_count:
            if starts_with(url, size, &self.sequences[i]):
                at = self.sequences[i].size
                for j in range(i + 1, i + 1 + self.sequences[i].number):
                    at = end_of(url, at, size, &self.sequences[j])
                    if at < 0:
                        break
                if at >= 0:
                    return True
            i += 1 + self.sequences[i].number
        return False


@cython.final
cdef class PlainSurvey(PlainCheck):
    """Passes over plain entries in which nothing is wrong, and counts what they have in common."""

    cdef readonly object options, stats, counts, table, stories, clusters, wanted, listed, number
    cdef Answer place  # what was last said of a scheme and host
    cdef Measures measures
    cdef Table *page_table
    cdef Table *story_table
    cdef uint64_t *sums  # of clusters
    cdef uint64_t *wanted_sums
    cdef Table *listed_pages
    cdef Table *listed_stories
    cdef int table_number
    cdef int64_t news_since
    cdef uint32_t passed_codes
    cdef uint32_t counted[CODE_COUNT]
    cdef Gathered gathered

    def __init__(
        self,
        options,
        URLTable table=None,
        URLTable stories=None,
        number=0,
        ClusterSums clusters=None,
        ClusterSums wanted=None,
        tuple listed=(),
    ):
        cdef URLTable listing
        self.options, self.clusters, self.wanted, self.listed = options, clusters, wanted, listed
        self.sums = clusters.sums if clusters is not None else NULL
        self.wanted_sums = wanted.sums if wanted is not None else NULL
        self.listed_pages = self.listed_stories = NULL
        for listing in listed:
            self.listed_pages, self.listed_stories = listing.table, self.listed_pages
        self.table, self.stories, self.number = table, stories, number
        self.page_table = table.table if table is not None else NULL
        self.story_table = stories.table if stories is not None else NULL
        self.table_number = min(number, MAX_NUMBER)
        self.now, self.news_since = options.now, options.news_since
        self.stats, self.counts = SitemapStats(), {}
        self.measures = Measures(options)
        memset(self.counted, 0, sizeof(self.counted))
        memset(&self.place, 0, sizeof(Answer))
        self.gather_anew()

    def stop_wanting(self):
        """Pass over what was wanted, too."""
        self.wanted_sums = NULL

    @property
    def passed(self):
        """The bits of those codes that are only counted."""
        return self.passed_codes

    @passed.setter
    def passed(self, codes):
        self.passed_codes = <uint32_t>(codes & 0xFFFFFFFF)

    cdef void gather_anew(self) noexcept nogil:
        memset(&self.gathered, 0, sizeof(Gathered))
        self.gathered.earliest, self.gathered.latest = <int64_t>1 << 62, -(<int64_t>1 << 62)
        self.gathered.lowest, self.gathered.highest = 2, -1

    cdef int tell(self) except -1:
        cdef Gathered *gathered = &self.gathered
        cdef int bit
        stats = self.stats
        stats.entries += gathered.entries
        stats.stories += gathered.stories
        stats.linked += gathered.linked
        if gathered.dated:
            stats.dated += gathered.dated
            stats.earliest = min(stats.earliest, gathered.earliest)
            stats.latest = max(stats.latest, gathered.latest)
        if gathered.prioritised:
            stats.prioritised += gathered.prioritised
            stats.lowest = min(stats.lowest, gathered.lowest)
            stats.highest = max(stats.highest, gathered.highest)
        self.gather_anew()
        for bit in range(CODE_COUNT):
            if self.counted[bit]:
                code = SURVEYED[bit]
                self.counts[code] = self.counts.get(code, 0) + self.counted[bit]
                self.counted[bit] = 0
        return 0

    cdef void expect(self, Staged *staged) noexcept nogil:
        staged.hashed = self.hash_of(staged.url, staged.size, staged.origin)
        if staged.flags & AMPERSAND:  # references stand for what may be special
            staged.flags |= url_flags_of(staged.url, <size_t>staged.size) & SPECIAL

    cdef void stage(self, const uint8_t *data) noexcept nogil:
        PlainCheck.stage(self, data)
        if self.page_table != NULL:
            expect_in(self.page_table, self.staged, self.batch.entry_count)

    cdef inline uint64_t hash_of(self, const uint8_t *url, Py_ssize_t size, Py_ssize_t origin) noexcept nogil:
        """The hash of a URL, whose scheme and host end there: that of `usp.scan.survey.same_url_key`."""
        if origin < size and url[origin] == c'/':
            return usp_hash(url, <size_t>size, secret)
        memmove(self.changed + origin + 1, url + origin, <size_t>(size - origin))
        if url != self.changed:
            memcpy(self.changed, url, <size_t>origin)
        self.changed[origin] = c'/'
        return usp_hash(self.changed, <size_t>size + 1, secret)

    cdef bint passes(self, const uint8_t *data, PlainEntry *entry, Staged *staged) except -1 nogil:
        cdef Noticed noticed
        cdef Alternates alternates
        cdef uint32_t codes
        cdef uint64_t *slot = NULL
        cdef bint is_story = entry.extras & NEWS != 0
        cdef Table *table = self.story_table if is_story else self.page_table
        if not self.is_clean(data, entry, staged, &noticed):
            return False
        codes = noticed.codes | codes_of_bytes(staged.url, staged.size, staged.flags)
        codes |= <uint32_t>(noticed.images > MAX_IMAGES) << I611
        alternates.count = 0
        if not self.add_site_code(staged, &codes):
            return False
        if is_story and not self.add_news_codes(data, &noticed, &codes):
            return False
        if noticed.links and not self.add_link_codes(&noticed, staged.hashed, &alternates, &codes):
            return False
        if codes & ~self.passed_codes or not self.add_robots_code(staged, &codes):
            return False
        if table != NULL:  # only now: while Python was asked, slots may have moved
            slot = slot_for(table, staged.hashed)
            codes |= self.duplicate(number_in(slot), entry.extras)
        if codes & ~self.passed_codes:
            return False
        self.count(codes, &noticed, is_story)
        self.gathered.linked += alternates.count > 0
        if slot != NULL:  # from now on it is this sitemap that lists it, so that a second time shows
            put_into(table, slot, staged.hashed, self.table_number)
        if alternates.count and self.sums != NULL:
            note_in(self.sums, alternates.key, alternates.size, staged.hashed)
        return True

    cdef uint32_t duplicate(self, int first, uint32_t extras) noexcept nogil:
        """The code of a URL that was listed already, by the sitemap of this number.

        Sitemaps of news and of images may list the pages of others.
        """
        if first < 0:
            return 0
        return 1 << P418 if first == self.table_number else 0 if extras & (NEWS | IMAGES) else 1 << P419

    cdef bint add_site_code(self, Staged *staged, uint32_t *codes) except -1 nogil:
        """Whether a URL is where it should be; false if that cannot be said yet."""
        cdef int code = self.measures.site_code(staged.url, staged.size)
        if code < 0:
            if not is_answer(&self.place, WHERE_ELSE, staged.url, staged.origin):
                if not self.ask(WHERE_ELSE, staged.url, staged.origin, 0, &self.place):
                    return False
            code = self.place.code
        if code:
            codes[0] |= <uint32_t>1 << (code - 1)
        return True

    cdef bint add_robots_code(self, Staged *staged, uint32_t *codes) except -1 nogil:
        """Whether robots.txt disallows a URL; false if that cannot be said yet."""
        if not self.measures.may_be_disallowed(staged.url, staged.size, staged.flags):
            return True
        if not self.holds:
            self.asks = True
            return False
        with gil:
            if self.options.is_disallowed(PyUnicode_DecodeUTF8(<const char *>staged.url, staged.size, NULL)):
                codes[0] |= 1 << R709
        return True

    cdef bint add_news_codes(self, const uint8_t *data, Noticed *noticed, uint32_t *codes) except -1 nogil:
        """What is wrong with a news story; false if that cannot be said yet, or not here."""
        cdef Answer answer
        cdef uint8_t flags
        if noticed.published < self.news_since:
            codes[0] |= 1 << N601
        if noticed.name == NULL or noticed.language == NULL:
            codes[0] |= 1 << N603
        if noticed.name != NULL:
            flags = record_flags(data, noticed.name)
            if flags & AMPERSAND:  # below its escaping there may be nothing but spaces
                if not self.ask(HAS_TEXT, data + noticed.name.start, noticed.name.size, flags, &answer):
                    return False
                codes[0] |= <uint32_t>(not answer.is_so) << N603
        if noticed.language != NULL:
            if record_flags(data, noticed.language) & ~CDATA:
                return False
            if not self.ask(IS_NEWS_LANGUAGE, data + noticed.language.start, noticed.language.size, 0, &answer):
                return False
            codes[0] |= <uint32_t>(not answer.is_so) << N604
        return True

    cdef bint add_link_codes(self, Noticed *noticed, uint64_t own, Alternates *found, uint32_t *codes) except -1 nogil:
        """What is wrong with the pages in other languages; false if that cannot be said yet, or not here."""
        cdef Answer answer
        cdef uint32_t i
        cdef int j
        cdef bint has_default = False, has_own = False
        if noticed.links > MAX_LINKS:
            return False
        for i in range(noticed.links):
            if not self.add_alternate(&self.links[i], found):
                return False
        if not found.count:
            return True
        for j in range(found.count):
            if not self.ask(IS_LANGUAGE, found.links[j].hreflang, found.links[j].hreflang_size, 0, &answer):
                return False
            codes[0] |= <uint32_t>(not answer.is_so) << H631
            has_default |= is_default(found.links[j])
            has_own |= found.hashes[j] == own
        codes[0] |= <uint32_t>(not has_own) << H632 | <uint32_t>(not has_default) << H634
        codes[0] |= <uint32_t>has_two_of_a_language(found) << H635
        return self.is_of_no_interest(found, own)

    cdef bint add_alternate(self, Link *link, Alternates *found) except -1 nogil:
        """Add a link, if it is to a page in another language; false if that cannot be said yet, or not here."""
        cdef const uint8_t *url = link.href
        cdef Py_ssize_t size = link.href_size
        if link.href == NULL or link.hreflang == NULL or not link.href_size or not link.hreflang_size:
            return True
        if flags_of(link.hreflang, link.hreflang_size):
            return False
        if link.href_flags & HIGH and not self.is_printable(link.href, link.href_size):
            return False
        if link.href_flags & AMPERSAND:
            url, size = self.changed, url_into(self.changed, link.href, link.href_size, link.href_flags)
        found.links[found.count] = link
        found.hashes[found.count] = self.hash_of(url, size, end_of_origin(url, size))
        found.count += 1
        return True

    cdef bint is_of_no_interest(self, Alternates *found, uint64_t own) noexcept nogil:
        """Find out the key of all pages that an entry says to be the same; whether it may be passed over."""
        cdef int i, j
        cdef bint is_any_listed = self.listed_pages == NULL
        found.key, found.size = own, 1
        if self.sums == NULL and self.wanted_sums == NULL:
            return True
        for i in range(found.count):
            if found.hashes[i] != own and not is_default(found.links[i]):
                for j in range(i):
                    if found.hashes[j] == found.hashes[i] and not is_default(found.links[j]):
                        break
                else:
                    found.key += found.hashes[i]
                    found.size += 1
                    is_any_listed |= is_in(self.listed_pages, found.hashes[i]) or is_in(self.listed_stories, found.hashes[i])
        return self.wanted_sums == NULL or not is_any_listed or not is_open_in(self.wanted_sums, found.key)

    cdef void count(self, uint32_t codes, Noticed *noticed, bint is_story) noexcept nogil:
        cdef Gathered *gathered = &self.gathered
        cdef int bit = 0
        while codes:
            self.counted[bit] += codes & 1
            codes >>= 1
            bit += 1
        gathered.entries += 1
        gathered.stories += is_story
        if noticed.is_dated:
            gathered.dated += 1
            gathered.earliest = min(gathered.earliest, noticed.date)
            gathered.latest = max(gathered.latest, noticed.date)
        if noticed.priority >= 0:
            gathered.prioritised += 1
            gathered.lowest = min(gathered.lowest, noticed.priority)
            gathered.highest = max(gathered.highest, noticed.priority)

    cdef int find_out(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, Answer *answer
    ) except -1:
        if question == WHERE_ELSE:
            code = self.options.elsewhere(ascii_text(text, size))
            answer.code = <uint8_t>(CODE_BITS[code] + 1) if code else 0
        elif question == IS_LANGUAGE:
            answer.is_so = bool(self.options.is_language(ascii_text(text, size)))
        elif question == IS_NEWS_LANGUAGE:
            answer.is_so = bool(self.options.is_news_language(ascii_text(text, size)))
        elif question == HAS_TEXT:
            answer.is_so = plain_text(text_of(text[:size], bool(flags & CDATA))) is not None
        else:
            PlainCheck.find_out(self, question, text, size, flags, answer)
            if question == WHICH_DATE and answer.is_so:
                date_text = ascii_text(text, size)
                date = parse_date(date_text)
                code = date_code(date_text, date, self.options)
                answer.code = <uint8_t>(CODE_BITS[code] + 1) if code else 0
                answer.period = period_of(date_text, date)
        return 0


cdef bint has_two_of_a_language(Alternates *found) noexcept nogil:
    """Whether two of the same language lead to different pages."""
    cdef int i, j
    for i in range(found.count):
        for j in range(i):
            if found.hashes[i] != found.hashes[j] and is_same_language(found.links[i], found.links[j]):
                return True
    return False
