# cython: language_level=3, cdivision=True
"""Skip plain entries in which nothing is wrong, and count what they have in common. As `usp.scan.survey.PureSurvey`.

See `usp.scan.survey` for what a survey does. Unlike the one in plain Python, it takes every entry of a grammar. The
rules of `usp.check` are not known here: an entry with a problem that is not only counted stops the survey.
"""

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport AMPERSAND, CDATA, HIGH, MAX_TEXT_BYTES, SPECIAL, flags_of, url_flags_of
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
    SITE_CODE,
    U506,
    PARSE_DATE,
    PythonResult,
    EntrySummary,
    PlainCheck,
    is_result_for,
)
from usp.scan._elements cimport Element
from usp.scan._entries cimport IMAGES, NEWS, PlainEntry, EntryURL, record_flags
from usp.scan._general_check cimport EntryFacts, GeneralCheck
from usp.scan._lines cimport Lines
from usp.scan._seen cimport (
    MAX_NUMBER,
    ClusterSums,
    Table,
    URLTable,
    preload,
    is_in,
    is_open_in,
    note_in,
    number_in,
    put_into,
    same_url_hash,
    slot_for,
)
from usp.scan._texts cimport Link, ascii_text, end_of_origin, text_into, url_into, utf8_text
from usp.scan._url_codes cimport codes_of_url
from usp.scan._url_patterns cimport URLPatterns

from usp.scan._check import CODE_BITS

INTERFACE = USP_INTERFACE

cdef Py_ssize_t MAX_URL_LENGTH
cdef uint32_t MAX_IMAGES
cdef object PlainElement, SitemapStats, date_code, period_of, parse_date, plain_text, text_of
cdef tuple SURVEYED

#: The fields of `usp.scan.survey.SitemapStats` that a survey fills, and the options that it follows.
STATS = ("entries", "dated", "earliest", "latest", "prioritised", "lowest", "highest", "stories", "linked")
OPTIONS = (
    "sites", "elsewhere", "own_hosts", "now", "news_since", "may_disallow", "is_disallowed", "is_language", "is_news_language",
    "url", "is_expired",
)


def bind():
    """Import what this module uses of usp, and compare tables with it."""
    global PlainElement, parse_date, plain_text, text_of
    global MAX_URL_LENGTH, MAX_IMAGES, SitemapStats, date_code, period_of, SURVEYED
    from dataclasses import fields

    from usp.scan.dates import parse_date
    from usp.scan.elements import Element as PlainElement
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


ctypedef struct BatchFacts:  # of one batch; see `usp.scan.survey.SitemapStats`
    int64_t entries, dated, earliest, latest, prioritised, stories, linked
    double lowest, highest

ctypedef struct Alternates:
    Link *links[MAX_LINKS]
    uint64_t hashes[MAX_LINKS]  # of their URLs
    int count
    uint64_t key  # of the set of pages in other languages
    uint64_t size  # of that set


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
    """Return whether a link is for all other languages."""
    cdef Link default
    default.hreflang, default.hreflang_size = <const uint8_t *>b"x-default", 9
    return is_same_language(link, &default)


@cython.final
cdef class PlainSurvey(GeneralCheck):
    """Skips plain entries in which nothing is wrong, and counts what rules on whole sitemaps need."""

    cdef readonly object table, stories, clusters, wanted, listed, number
    cdef object known_stats, known_counts  # without those of `batch_facts` and `counted`
    cdef PythonResult place  # the last result for a scheme and host
    cdef URLPatterns patterns
    cdef Table *page_table
    cdef Table *story_table
    cdef uint64_t *sums  # of clusters
    cdef uint64_t *wanted_sums
    cdef Table *listed_pages
    cdef Table *listed_stories
    cdef int table_number
    cdef uint64_t passed_codes
    cdef uint32_t counted[CODE_COUNT]
    cdef BatchFacts batch_facts

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
        self.known_stats, self.known_counts = SitemapStats(), {}
        self.patterns = URLPatterns(options)
        memset(self.counted, 0, sizeof(self.counted))
        memset(&self.place, 0, sizeof(PythonResult))
        self.reset_counts()

    def stop_wanting(self):
        """Skip entries with wanted sets, too."""
        self.wanted_sums = NULL

    @property
    def stats(self):
        """Statistics of the entries that were skipped."""
        self.report_counts()
        return self.known_stats

    @property
    def counts(self):
        """How many problems of each code were only counted."""
        self.report_counts()
        return self.known_counts

    @property
    def passed(self):
        """The bits of the codes that are only counted."""
        return self.passed_codes

    @passed.setter
    def passed(self, codes):
        self.passed_codes = <uint64_t>(codes & 0xFFFFFFFFFFFFFFFF)

    cdef void reset_counts(self) noexcept nogil:
        memset(&self.batch_facts, 0, sizeof(BatchFacts))
        self.batch_facts.earliest, self.batch_facts.latest = <int64_t>1 << 62, -(<int64_t>1 << 62)
        self.batch_facts.lowest, self.batch_facts.highest = 2, -1

    cdef int report_counts(self) except -1:
        cdef BatchFacts *batch_facts = &self.batch_facts
        cdef int bit
        if not batch_facts.entries:
            return 0
        stats = self.known_stats
        stats.entries += batch_facts.entries
        stats.stories += batch_facts.stories
        stats.linked += batch_facts.linked
        if batch_facts.dated:
            stats.dated += batch_facts.dated
            stats.earliest = min(stats.earliest, batch_facts.earliest)
            stats.latest = max(stats.latest, batch_facts.latest)
        if batch_facts.prioritised:
            stats.prioritised += batch_facts.prioritised
            stats.lowest = min(stats.lowest, batch_facts.lowest)
            stats.highest = max(stats.highest, batch_facts.highest)
        self.reset_counts()
        for bit in range(CODE_COUNT):
            if self.counted[bit]:
                code = SURVEYED[bit]
                self.known_counts[code] = self.known_counts.get(code, 0) + self.counted[bit]
                self.counted[bit] = 0
        return 0

    cdef void hash_url(self, EntryURL *entry_url) noexcept nogil:
        entry_url.hashed = same_url_hash(entry_url.url, entry_url.size, entry_url.origin, self.changed)
        if entry_url.flags & AMPERSAND:  # a reference may mean a special character
            entry_url.flags |= url_flags_of(entry_url.url, <size_t>entry_url.size) & SPECIAL

    cdef void read_urls(self, const uint8_t *data) noexcept nogil:
        PlainCheck.read_urls(self, data)
        if self.page_table != NULL:
            preload(self.page_table, self.entry_urls, self.batch.entry_count)

    cdef Py_ssize_t read_lines(self, Lines *lines, Py_ssize_t count, bint takes_fields) noexcept nogil:
        count = PlainCheck.read_lines(self, lines, count, takes_fields)
        if self.page_table != NULL:
            preload(self.page_table, self.entry_urls, self.batch.entry_count)
        return count

    cdef bint take_entry(self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url) except -1 nogil:
        cdef EntrySummary summary
        cdef Alternates alternates
        cdef uint64_t codes
        cdef uint64_t *slot = NULL
        cdef bint is_story = entry.extensions & NEWS != 0
        cdef Table *table = self.story_table if is_story else self.page_table
        if not self.is_clean(data, entry, entry_url, &summary):
            return False
        codes = summary.codes | codes_of_url(entry_url.url, entry_url.size, entry_url.flags, MAX_URL_LENGTH)
        codes |= <uint32_t>(summary.images > MAX_IMAGES) << I611
        alternates.count = 0
        if not self.add_site_code(entry_url, &codes):
            return False
        if is_story and not self.add_news_codes(data, &summary, &codes):
            return False
        if summary.links and not self.add_link_codes(&summary, entry_url.hashed, &alternates, &codes):
            return False
        if codes & ~self.passed_codes or not self.add_robots_code(entry_url, &codes):
            return False
        if table != NULL:  # not earlier: asking Python may move slots
            slot = slot_for(table, entry_url.hashed)
            codes |= self.duplicate(number_in(slot), entry.extensions)
        if codes & ~self.passed_codes:
            return False
        self.count(codes, &summary, is_story)
        self.batch_facts.linked += alternates.count > 0
        if slot != NULL:  # the next sitemap that lists it finds this one
            put_into(table, slot, entry_url.hashed, self.table_number)
        if alternates.count and self.sums != NULL:
            note_in(self.sums, alternates.key, alternates.size, entry_url.hashed)
        return True

    # Entries of the general scanner

    def skips(self, entry, str url not None, uint64_t looked_for):
        """Skip an entry of the general scanner, as `usp.scan.survey.PureSurvey` does."""
        cdef EntryURL entry_url
        cdef EntryFacts facts
        cdef Element element = None  # a line of a text, which has only a URL
        if type(entry) is Element:
            element = <Element>entry
            if element.name == "sitemap" and element.has_children():
                return False
        elif type(entry) is not PlainElement or entry.children or len(entry.fields) > 1:
            return False
        self.has_gil = True
        try:
            return (
                self.read_url(url, &entry_url)
                and self.summarize(element, entry_url.hashed, &facts)
                and self.skips_entry(&entry_url, &facts, looked_for, element is None or element.name == "url")
            )
        except UnicodeEncodeError:  # a text that cannot be written as UTF-8
            return False
        finally:
            self.has_gil = False

    cdef bint read_url(self, str url, EntryURL *entry_url) except -1:
        """Read the URL of an entry. Return false if it is too long."""
        cdef const uint8_t *data
        cdef Py_ssize_t size, origin
        data = <const uint8_t *>PyUnicode_AsUTF8AndSize(url, &size)
        if size >= MAX_TEXT_BYTES or size < 8:
            return False
        entry_url.url, entry_url.size, origin = data, size, 8  # behind "http://" and a character
        while origin < size and data[origin] != c'/' and data[origin] != c'?' and data[origin] != c'#':
            origin += 1
        entry_url.origin, entry_url.flags = origin, url_flags_of(data, <size_t>size) & (SPECIAL | AMPERSAND)
        if entry_url.flags & SPECIAL:
            entry_url.flags |= flags_of(data, <size_t>size) & HIGH
        entry_url.hashed = same_url_hash(data, size, origin, self.changed)
        return True

    cdef bint skips_entry(
        self, EntryURL *entry_url, EntryFacts *facts, uint64_t looked_for, bint is_page
    ) except -1:
        """Skip an entry, unless something is wrong with it that is not only counted."""
        cdef Table *table = self.page_table if is_page and not facts.is_story else self.story_table
        cdef uint64_t *slot = NULL
        cdef uint64_t codes = facts.summary.codes
        if facts.alternates and self.wanted_sums != NULL:
            return False
        codes |= codes_of_url(entry_url.url, entry_url.size, entry_url.flags, MAX_URL_LENGTH)
        self.add_site_code(entry_url, &codes)
        codes &= looked_for
        if codes & ~self.passed_codes:
            return False
        if looked_for >> R709 & 1:
            self.add_robots_code(entry_url, &codes)
        if table != NULL:
            slot = slot_for(table, entry_url.hashed)
            codes |= self.duplicate(number_in(slot), IMAGES if facts.may_repeat or facts.is_story else 0) & looked_for
        if codes & ~self.passed_codes:
            return False
        self.count(codes, &facts.summary, facts.is_story)
        self.batch_facts.linked += facts.alternates > 0
        if slot != NULL:
            put_into(table, slot, entry_url.hashed, self.table_number)
        if facts.alternates and self.sums != NULL:
            note_in(self.sums, facts.key, facts.size, entry_url.hashed)
        return True

    cdef uint32_t duplicate(self, int first, uint32_t extensions) noexcept nogil:
        """Return the code of a URL that this sitemap listed before.

        Sitemaps of news and of images may list the pages of others.
        """
        if first < 0:
            return 0
        return 1 << P418 if first == self.table_number else 0 if extensions & (NEWS | IMAGES) else 1 << P419

    cdef bint add_site_code(self, EntryURL *entry_url, uint64_t *codes) except -1 nogil:
        """Add the code of a URL that is not of the sitemap's site. Return false if that needs the GIL."""
        cdef int code = self.patterns.site_code(entry_url.url, entry_url.size)
        if code < 0:
            if self.patterns.is_of_others(entry_url.url, entry_url.origin):
                codes[0] |= <uint32_t>1 << U506
                return True
            if not is_result_for(&self.place, SITE_CODE, entry_url.url, entry_url.origin):
                if not self.ask_once(SITE_CODE, entry_url.url, entry_url.origin, 0, &self.place):
                    return False
            code = self.place.code
        if code:
            codes[0] |= <uint32_t>1 << (code - 1)
        return True

    cdef bint add_robots_code(self, EntryURL *entry_url, uint64_t *codes) except -1 nogil:
        """Add the code of a URL that robots.txt disallows. Return false if that needs the GIL."""
        if not self.patterns.may_be_disallowed(entry_url.url, entry_url.size, entry_url.flags):
            return True
        if not self.has_gil:
            self.needs_gil = True
            return False
        with gil:
            if self.options.is_disallowed(PyUnicode_DecodeUTF8(<const char *>entry_url.url, entry_url.size, NULL)):
                codes[0] |= 1 << R709
        return True

    cdef bint add_news_codes(self, const uint8_t *data, EntrySummary *summary, uint64_t *codes) except -1 nogil:
        """Add the codes of a news story. Return false if that needs the GIL, or the general scanner."""
        cdef PythonResult result
        cdef const uint8_t *name
        cdef uint8_t flags
        if summary.published < self.news_since:
            codes[0] |= 1 << N601
        if summary.name == NULL or summary.language == NULL:
            codes[0] |= 1 << N603
        if summary.name != NULL:
            name, flags = data + summary.name.start, record_flags(data, summary.name)
            if flags & AMPERSAND and text_into(self.changed, name, summary.name.size, &flags) <= 0:
                # Without HTML escapes, only white space may be left.
                if not self.ask_once(HAS_TEXT, name, summary.name.size, flags, &result):
                    return False
                codes[0] |= <uint32_t>(not result.is_valid) << N603
        if summary.language != NULL:
            if record_flags(data, summary.language) & ~CDATA:
                return False
            if not self.ask_once(IS_NEWS_LANGUAGE, data + summary.language.start, summary.language.size, 0, &result):
                return False
            codes[0] |= <uint32_t>(not result.is_valid) << N604
        return True

    cdef bint add_link_codes(
        self, EntrySummary *summary, uint64_t own, Alternates *found, uint64_t *codes
    ) except -1 nogil:
        """Add the codes of alternate links. Return false if that needs the GIL, or the general scanner."""
        cdef PythonResult result
        cdef uint32_t i
        cdef int j
        cdef bint has_default = False, has_own = False
        if summary.links > MAX_LINKS:
            return False
        for i in range(summary.links):
            if not self.add_alternate(&self.links[i], found):
                return False
        if not found.count:
            return True
        for j in range(found.count):
            if not self.ask_once(IS_LANGUAGE, found.links[j].hreflang, found.links[j].hreflang_size, 0, &result):
                return False
            codes[0] |= <uint32_t>(not result.is_valid) << H631
            has_default |= is_default(found.links[j])
            has_own |= found.hashes[j] == own
        codes[0] |= <uint32_t>(not has_own) << H632 | <uint32_t>(not has_default) << H634
        codes[0] |= <uint32_t>has_two_of_a_language(found) << H635
        return self.may_skip_links(found, own)

    cdef bint add_alternate(self, Link *link, Alternates *found) except -1 nogil:
        """Add a link, if it is an alternate. Return false if that needs the GIL, or the general scanner."""
        cdef const uint8_t *url = link.href
        cdef Py_ssize_t size = link.href_size
        if link.href == NULL or link.hreflang == NULL or not link.href_size or not link.hreflang_size:
            return True
        if flags_of(link.hreflang, link.hreflang_size):
            return False
        if link.href_flags & AMPERSAND:
            url, size = self.changed, url_into(self.changed, link.href, link.href_size, &link.href_flags)
        found.links[found.count] = link
        found.hashes[found.count] = same_url_hash(url, size, end_of_origin(url, size), self.changed)
        found.count += 1
        return True

    cdef bint may_skip_links(self, Alternates *found, uint64_t own) noexcept nogil:
        """Compute the key of the set of pages that an entry states. Return whether the entry may be skipped."""
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
                    is_any_listed |= is_in(self.listed_pages, found.hashes[i])
                    is_any_listed |= is_in(self.listed_stories, found.hashes[i])
        return self.wanted_sums == NULL or not is_any_listed or not is_open_in(self.wanted_sums, found.key)

    cdef void count(self, uint64_t codes, EntrySummary *summary, bint is_story) noexcept nogil:
        cdef BatchFacts *batch_facts = &self.batch_facts
        cdef int bit = 0
        while codes:
            self.counted[bit] += codes & 1
            codes >>= 1
            bit += 1
        batch_facts.entries += 1
        batch_facts.stories += is_story
        if summary.is_dated:
            batch_facts.dated += 1
            batch_facts.earliest = min(batch_facts.earliest, summary.date)
            batch_facts.latest = max(batch_facts.latest, summary.date)
        if summary.priority >= 0:
            batch_facts.prioritised += 1
            batch_facts.lowest = min(batch_facts.lowest, summary.priority)
            batch_facts.highest = max(batch_facts.highest, summary.priority)

    cdef int ask_python(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, PythonResult *result
    ) except -1:
        if question == SITE_CODE:
            code = self.options.elsewhere(utf8_text(text, size))
            result.code = <uint8_t>(CODE_BITS[code] + 1) if code else 0
        elif question == IS_LANGUAGE:
            result.is_valid = bool(self.options.is_language(ascii_text(text, size)))
        elif question == IS_NEWS_LANGUAGE:
            result.is_valid = bool(self.options.is_news_language(ascii_text(text, size)))
        elif question == HAS_TEXT:
            result.is_valid = plain_text(text_of(text[:size], bool(flags & CDATA))) is not None
        else:
            PlainCheck.ask_python(self, question, text, size, flags, result)
            if question == PARSE_DATE and result.is_valid:
                date_text = ascii_text(text, size)
                date = parse_date(date_text)
                code = date_code(date_text, date, self.options)
                result.code = <uint8_t>(CODE_BITS[code] + 1) if code else 0
                result.period = period_of(date_text, date)
        return 0


cdef bint has_two_of_a_language(Alternates *found) noexcept nogil:
    """Return whether two links of one language lead to different pages."""
    cdef int i, j
    for i in range(found.count):
        for j in range(i):
            if found.hashes[i] != found.hashes[j] and is_same_language(found.links[i], found.links[j]):
                return True
    return False
