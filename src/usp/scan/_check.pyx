# cython: language_level=3, cdivision=True
"""Skip plain entries in which nothing is wrong, not even a value.

Most entries need no GIL. If Python has to be asked about an entry, the rest of the batch is read with the GIL held:
taking the GIL for each such entry would mean waiting for it each time. This module does not know the rules of
`usp.check`: an entry that may have a problem is left to the general scanner.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._buffers cimport enlarge
from usp.scan._bytes cimport (
    AMPERSAND,
    CDATA,
    CONTROL,
    ESCAPED_TWICE,
    HIGH,
    MAX_TEXT_BYTES,
    NOTED,
    SPECIAL,
    flags_of,
    is_same,
    url_flags_of,
)
from usp.scan._entries cimport (
    ATTRIBUTES,
    CHANGEFREQ,
    CLOSE,
    FULL,
    IMAGE_TAG,
    LANGUAGE,
    LASTMOD,
    LOC,
    MAX_ENTRIES,
    MORE,
    NAME,
    NEWS_TAG,
    OPEN,
    OTHER_TAG,
    PRIORITY,
    PUBLICATION,
    PUBLICATION_DATE,
    TEXT,
    TITLE,
    VIDEO_TAG,
    VIDEOS,
    PlainEntry,
    Record,
    EntryURL,
    Stop,
    record_flags,
    take_entries,
)
from usp.scan._lines cimport NO_LINE, URL_LINE, LineKind, Lines, next_line, open_lines
from usp.scan._seen cimport secret, usp_hash
from usp.scan._texts cimport (
    Link,
    Moment,
    ascii_text,
    decoded_into,
    end_of_origin,
    frequency_of,
    has_ampersand_outside,
    is_http_url,
    is_printable_utf8,
    is_text,
    microseconds_of,
    parse_link,
    parse_moment,
    priority_of,
    unescape_html,
    url_into,
    url_text_into,
)

INTERFACE = USP_INTERFACE
cdef int64_t HOUR = 3600000000
cdef int64_t EARLIEST  # see `usp.scan.dates`
cdef object microseconds, parse_date, parse_priority


def bind():
    """Import what this module uses of usp."""
    global EARLIEST, microseconds, parse_date, parse_priority
    from usp.scan.columns import microseconds
    from usp.scan.dates import EARLIEST as earliest, parse_date
    from usp.scan.values import parse_priority

    EARLIEST = microseconds(earliest)


CODE_BITS = {
    "U503": U503, "U504": U504, "U505": U505, "U506": U506, "U507": U507, "U508": U508, "U509": U509, "U510": U510,
    "P418": P418, "P419": P419, "R709": R709, "L303": L303, "L305": L305, "L306": L306, "P423": P423, "N601": N601,
    "N603": N603, "N604": N604, "I611": I611, "H631": H631, "H632": H632, "H634": H634, "H635": H635,
    "L307": L307, "P432": P432, "P433": P433, "U518": U518, "H637": H637, "V621": V621,
    "V622": V622, "V623": V623, "V624": V624, "V625": V625, "V626": V626,
}

cdef inline int64_t days_of_year(int year) noexcept nogil:
    return 366 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 365


cdef inline bint is_lower(const uint8_t *letters, Py_ssize_t size) noexcept nogil:
    cdef uint8_t bits = 255
    cdef Py_ssize_t i
    for i in range(size):
        bits &= letters[i]
    return bits & 32


cdef int RANKS[32]  # of tags: the order of the schema
for _i in range(32):
    RANKS[_i] = 0 if _i == LOC else 1 if _i == LASTMOD else 2 if _i == CHANGEFREQ else 3 if _i == PRIORITY else 4


cdef inline void note_order(EntrySummary *summary, int tag) noexcept nogil:
    """Note a child of an entry that should stand before the last one."""
    cdef int rank = RANKS[tag]
    summary.codes |= <uint32_t>(rank < summary.rank) << P433
    summary.rank = rank


cdef bint ends_cdata(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return whether a text has "]]>" in it, which other parsers refuse."""
    cdef const uint8_t *end = text + size
    cdef const uint8_t *at = <const uint8_t *>memchr(text, c'>', <size_t>size)
    while at != NULL:
        if at - text >= 2 and at[-1] == c']' and at[-2] == c']':
            return True
        at = <const uint8_t *>memchr(at + 1, c'>', <size_t>(end - at - 1))
    return False


cdef class PlainCheck(Reader):
    """Skips plain entries in which nothing is wrong, not even a value."""

    def __cinit__(self, *args, **options):
        self.now = <int64_t>1 << 62
        self.changed = <uint8_t *>malloc(MAX_TEXT_BYTES + 1)
        self.results = <PythonResult *>calloc(2 * RESULT_SLOTS, sizeof(PythonResult))
        if self.changed == NULL or self.results == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.results)
        free(self.changed)
        free(self.urls)

    def take(self, grammar, bytes buffer not None, Py_ssize_t position):
        """Return where the clean entries end. The rest is as in `PlainPages.take`."""
        cdef Py_ssize_t size = self.prepare(grammar, buffer, position)
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef Stop stop
        cdef uint32_t passed
        self.most = min(self.most * 2 + 1, <uint32_t>MAX_ENTRIES)
        self.needs_gil = False
        with nogil:  # only once: taking the GIL back may take long
            stop = take_entries(&self.context.grammar_tables.tables, data, size, &position, self.batch, self.most)
            self.reserve()
            self.read_urls(data)
            passed = self.skip_clean_entries(data, 0)
        passed = self.finish(data, passed)
        if passed < self.batch.entry_count:
            return [], self.batch.entries[passed].start, False, False
        return [], position, stop == MORE, stop == FULL

    def take_lines(self, bytes buffer not None, Py_ssize_t position, bint takes_fields):
        """Skip lines that are blank, or URLs without problems; see `usp.scan.plain.CheckingReader`."""
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef Lines lines
        cdef Py_ssize_t count = 0, with_fields = 0
        cdef uint32_t passed, i
        open_lines(&lines, buffer, position)
        while True:
            self.most = min(self.most * 2 + 1, <uint32_t>MAX_ENTRIES)
            self.needs_gil = False
            with nogil:
                count = self.read_lines(&lines, count, takes_fields)
                passed = self.skip_clean_entries(data, 0)
            passed = self.finish(data, passed)
            for i in range(passed):
                with_fields += self.batch.entries[i].loc
            if passed < self.batch.entry_count:
                return self.batch.entries[passed].start, <Py_ssize_t>self.batch.entries[passed].first, with_fields
            if self.batch.entry_count < self.most:
                return lines.at, count, with_fields

    cdef Py_ssize_t read_lines(self, Lines *lines, Py_ssize_t count, bint takes_fields) noexcept nogil:
        """Fill the batch with lines. Each is an entry without records.

        `first` says how many lines are before it, and `loc` is 1 if it has several fields.

        Return how many lines there were until now: `count` before this batch.
        """
        cdef PlainEntry *entry
        cdef EntryURL *entry_url
        cdef LineKind kind
        cdef Py_ssize_t start
        self.batch.entry_count = 0
        while self.batch.entry_count < self.most:
            start = lines.at
            kind = next_line(lines, takes_fields)
            if kind == NO_LINE:
                break
            if kind == URL_LINE:
                entry, entry_url = &self.batch.entries[self.batch.entry_count], &self.entry_urls[self.batch.entry_count]
                memset(entry, 0, sizeof(PlainEntry))
                entry.start, entry.first, entry.loc = start, <uint32_t>count, lines.has_fields
                entry_url.url, entry_url.size, entry_url.origin = lines.url, lines.url_size, lines.origin
                entry_url.flags = url_flags_of(lines.url, <size_t>lines.url_size) & (SPECIAL | AMPERSAND)
                if entry_url.flags & SPECIAL:
                    entry_url.flags |= flags_of(lines.url, <size_t>lines.url_size) & HIGH
                self.hash_url(entry_url)
                self.batch.entry_count += 1
            count += 1
        return count

    cdef uint32_t finish(self, const uint8_t *data, uint32_t passed) except 0xFFFFFFFF:
        """Go on from the entry that needs the GIL, if one does. Return the first entry that is not clean."""
        if self.needs_gil:
            self.has_gil, self.needs_gil = True, False
            try:
                passed = self.skip_clean_entries(data, passed)
            finally:
                self.has_gil = False
        if passed:
            self.has_pages = True
            self.report_counts()
        if passed < self.batch.entry_count:
            self.most = 0
        return passed

    cdef int reserve(self) except -1 nogil:
        """Make room for the URLs of the batch."""
        cdef uint32_t i
        cdef size_t room = 0
        for i in range(self.batch.entry_count):
            room += self.batch.records[self.batch.entries[i].loc].size
        if room > self.urls_room:
            enlarge(<void **>&self.urls, room * 2)
            self.urls_room = room * 2
        return 0

    cdef void read_urls(self, const uint8_t *data) noexcept nogil:
        """Read the URLs of the batch."""
        cdef uint32_t i
        cdef uint8_t *out = self.urls
        cdef Record *loc
        cdef EntryURL *entry_url
        cdef const uint8_t *last = NULL  # the last URL with a path: most have the same origin
        cdef Py_ssize_t last_origin = 0
        for i in range(self.batch.entry_count):
            loc = &self.batch.records[self.batch.entries[i].loc]
            entry_url = &self.entry_urls[i]
            entry_url.url, entry_url.size = data + loc.start, loc.size
            entry_url.flags = loc.flags | url_flags_of(entry_url.url, <size_t>entry_url.size)
            if entry_url.flags & SPECIAL:
                entry_url.flags |= flags_of(entry_url.url, <size_t>entry_url.size)
            if entry_url.flags & AMPERSAND:
                entry_url.url, entry_url.size = out, url_text_into(out, entry_url.url, entry_url.size, &entry_url.flags)
                out += loc.size
            elif entry_url.flags & CONTROL:
                entry_url.size = -1
            if (
                last != NULL and entry_url.size > last_origin
                and is_same(entry_url.url, last, <size_t>last_origin + 1)
            ):
                entry_url.origin = last_origin
            elif entry_url.size >= 0:
                entry_url.origin = end_of_origin(entry_url.url, entry_url.size)
                if not entry_url.origin:
                    entry_url.size = -1
                elif entry_url.origin < entry_url.size and entry_url.url[entry_url.origin] == c'/':
                    last, last_origin = entry_url.url, entry_url.origin
            if entry_url.size >= 0:
                self.hash_url(entry_url)

    cdef void hash_url(self, EntryURL *entry_url) noexcept nogil:
        """Compute the hash of a URL, in a class that needs it."""

    cdef int report_counts(self) except -1:
        """Add the counts of this batch to the totals, in a class that counts."""
        return 0

    cdef uint32_t skip_clean_entries(self, const uint8_t *data, uint32_t i) except 0xFFFFFFFF nogil:
        """Return the first entry, from this one on, that has problems or needs the GIL."""
        while i < self.batch.entry_count and self.take_entry(data, &self.batch.entries[i], &self.entry_urls[i]):
            i += 1
        return i

    cdef bint take_entry(self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url) except -1 nogil:
        """Take an entry if it is clean. Return false, and change nothing, if it is not."""
        cdef EntrySummary summary
        return self.is_clean(data, entry, entry_url, &summary)

    cdef bint is_clean(
        self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url, EntrySummary *summary
    ) except -1 nogil:
        """Return whether an entry has no problems, and summarize it."""
        cdef Record *record
        cdef uint32_t i
        cdef int tag
        memset(summary, 0, sizeof(EntrySummary))
        summary.priority = -1
        if entry_url.size < 0 or entry_url.flags & (NOTED | ESCAPED_TWICE):
            return False
        if entry.extensions & VIDEOS and not self.skips_videos:
            return False
        if entry_url.flags & HIGH and not self.is_printable(entry_url.url, entry_url.size):
            return False
        if entry_url.flags & SPECIAL and ends_cdata(entry_url.url, entry_url.size):
            return False
        for i in range(entry.first, entry.first + entry.count):
            record = &self.batch.records[i]
            tag = self.context.grammar_tables.tags[record.name]
            if summary.group == VIDEO_TAG and (tag != VIDEO_TAG or record.kind != CLOSE):
                continue
            if not summary.group and record.kind != CLOSE:
                note_order(summary, tag)
            if record.kind == TEXT:
                if not record.size and not summary.group and (tag == LASTMOD or tag == CHANGEFREQ or tag == PRIORITY):
                    summary.codes |= <uint32_t>1 << P432
                if i != entry.loc and record.size and not self.is_clean_field(data, record, tag, summary):
                    return False
            elif record.kind == ATTRIBUTES:
                if not self.is_clean_link(data + record.start, record.size, summary):
                    return False
            elif not self.is_clean_group(record.kind == OPEN, tag, summary):
                return False
        return True

    cdef bint is_clean_group(self, bint opens, int tag, EntrySummary *summary) noexcept nogil:
        """Check the start of a group, or at its end that it had its required fields."""
        if tag == PUBLICATION:
            summary.publications += opens and summary.stories == 1
        elif opens:
            summary.group, summary.has = tag, 0
            summary.images += tag == IMAGE_TAG
            summary.stories += tag == NEWS_TAG
        else:
            summary.group = 0
            if tag == NEWS_TAG:
                return summary.has >> TITLE & 1 and summary.has >> PUBLICATION_DATE & 1
            return tag != IMAGE_TAG or summary.has >> LOC & 1
        return True

    cdef bint is_clean_field(self, const uint8_t *data, Record *record, int tag, EntrySummary *summary) except -1 nogil:
        """Return whether a text is a valid value of its field and needs no repair."""
        cdef const uint8_t *text = data + record.start
        cdef uint8_t flags
        if tag == OTHER_TAG:
            return False
        summary.has |= <uint32_t>1 << tag
        if tag == LASTMOD:
            summary.is_dated = True
            return self.is_date(text, record, &summary.date, &summary.period, &summary.codes)
        if tag == CHANGEFREQ:
            summary.codes |= <uint32_t>(not is_lower(text, record.size)) << P423
            return not record.flags and frequency_of(text, record.size) >= 0
        if tag == PRIORITY:
            return self.is_priority(text, record, &summary.priority)
        if tag == PUBLICATION_DATE:
            return self.is_story_date(text, record, summary)
        flags = record_flags(data, record)
        if ends_cdata(text, record.size):
            return False
        if tag == LOC:  # of an image, where a URL that is escaped twice is no problem
            return self.is_clean_url(text, record.size, &flags)
        if summary.publications == 1 and summary.stories == 1:
            if tag == NAME:
                summary.name = record
            elif tag == LANGUAGE:
                summary.language = record
        return self.is_clean_text(text, record.size, flags, tag == TITLE and summary.group == NEWS_TAG)

    cdef bint is_clean_url(self, const uint8_t *text, Py_ssize_t size, uint8_t *flags) except -1 nogil:
        """Return whether a text is a URL and needs no repair. `flags` become those of the URL."""
        if flags[0] & AMPERSAND:
            size = url_into(self.changed, text, size, flags)
            text = self.changed
            if size < 0 or flags[0] & NOTED:
                return False
        elif flags[0] & CONTROL or not is_http_url(text, size):
            return False
        return not flags[0] & HIGH or self.is_printable(text, size)

    cdef bint is_clean_text(
        self, const uint8_t *text, Py_ssize_t size, uint8_t flags, bint is_required
    ) except -1 nogil:
        """Return whether a text, in any field, needs no repair and, if it `is_required`, is not empty."""
        if not flags & AMPERSAND:
            return is_text(text, size, flags)
        size = decoded_into(self.changed, text, size, &flags)
        if size < 0 or flags & NOTED:
            return False
        return not is_required or unescape_html(self.changed, size) > 0  # only white space may be left

    cdef bint is_printable(self, const uint8_t *text, Py_ssize_t size) except -1 nogil:
        """Return whether a text is UTF-8 and all its characters are printable."""
        return is_printable_utf8(text, size)

    cdef bint is_clean_link(self, const uint8_t *text, Py_ssize_t size, EntrySummary *summary) except -1 nogil:
        cdef Link link
        if not parse_link(text, size, &link) or has_ampersand_outside(text, size, &link):
            return False
        if link.is_odd or (not link.has_rel and link.href_size and link.hreflang_size):
            return False
        if not link.href_size or (not link.hreflang_size and not link.has_more):
            return False  # it is of no use
        if not link.href_size and link.hreflang_size and flags_of(link.hreflang, link.hreflang_size):
            return False
        if link.href != NULL:
            link.href_flags = flags_of(link.href, link.href_size)
            if not self.is_clean_url(link.href, link.href_size, &link.href_flags):
                return False
            if link.href_flags & ESCAPED_TWICE:
                return False
        if summary.links < MAX_LINKS:
            self.links[summary.links] = link
        summary.links += 1
        return True

    cdef bint is_date(
        self, const uint8_t *text, Record *record, int64_t *date, int64_t *period, uint64_t *codes
    ) except -1 nogil:
        """Read a date, and the codes of its problems. Return false if the text is no date."""
        cdef Moment moment
        cdef PythonResult result
        cdef uint8_t first_day[10]
        if record.flags:
            return False
        if record.size == 4:
            memcpy(first_day, text, 4)
            memcpy(first_day + 4, b"-01-01", 6)
            if parse_moment(first_day, 10, &moment):
                date[0], period[0] = microseconds_of(&moment), days_of_year(moment.year) * 24 * HOUR
                if date[0] - 14 * HOUR > self.now:
                    codes[0] |= <uint32_t>1 << L303
                elif date[0] < EARLIEST:
                    codes[0] |= <uint32_t>1 << L307
                return True
        if parse_moment(text, record.size, &moment):
            date[0], period[0] = microseconds_of(&moment), 0 if moment.has_zone else 24 * HOUR
            if date[0] - (0 if moment.has_zone else 14 * HOUR) > self.now:
                codes[0] |= 1 << L303
            elif date[0] < EARLIEST:
                codes[0] |= <uint32_t>1 << L307
            elif moment.has_time and not moment.has_zone:
                codes[0] |= 1 << L306
            return True
        if flags_of(text, record.size) or not self.ask_once(PARSE_DATE, text, record.size, 0, &result):
            return False
        if not result.is_valid:
            return False
        date[0], period[0] = result.date, result.period
        if result.code:
            codes[0] |= <uint32_t>1 << (result.code - 1)
        return True

    cdef bint is_story_date(self, const uint8_t *text, Record *record, EntrySummary *summary) except -1 nogil:
        cdef int64_t date, period
        cdef uint64_t codes = 0
        if not self.is_date(text, record, &date, &period, &codes):
            return False
        if summary.stories == 1:
            summary.published = date + period
            summary.codes |= codes
        return True

    cdef bint is_priority(self, const uint8_t *text, Record *record, double *priority) except -1 nogil:
        cdef PythonResult result
        if record.flags:
            return False
        priority[0] = priority_of(text, record.size)
        if priority[0] >= 0:
            return True
        if flags_of(text, record.size) or not self.ask_once(PARSE_PRIORITY, text, record.size, 0, &result):
            return False
        priority[0] = result.priority
        return result.is_valid

    cdef bint ask_once(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, PythonResult *result
    ) except -1 nogil:
        """Look up what Python says of a text, or ask it. Return false if that needs the GIL."""
        cdef PythonResult *kept = NULL
        if size <= RESULT_KEY_BYTES and not flags & CDATA:
            kept = &self.results[2 * ((usp_hash(text, <size_t>size, secret) + <uint64_t>question) & (RESULT_SLOTS - 1))]
            if is_result_for(&kept[0], question, text, size):
                result[0] = kept[0]
                return True
            if is_result_for(&kept[1], question, text, size):
                result[0] = kept[1]
                return True
        if not self.has_gil:
            self.needs_gil = True
            return False
        memset(result, 0, sizeof(PythonResult))
        with gil:
            self.ask_python(question, text, size, flags, result)
        if kept != NULL:
            result.question, result.size = <uint8_t>question, <uint8_t>size
            memcpy(result.key, text, <size_t>size)
            kept[1], kept[0] = kept[0], result[0]  # a place keeps the last two
        return True

    cdef int ask_python(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, PythonResult *result
    ) except -1:
        if question == PARSE_DATE:
            date = parse_date(ascii_text(text, size))
            if date is not None:
                result.is_valid, result.date = True, microseconds(date)
        elif question == PARSE_PRIORITY:
            priority = parse_priority(ascii_text(text, size))
            if priority is not None:
                result.is_valid, result.priority = True, float(priority)
        return 0
