# cython: language_level=3, cdivision=True
"""Skip plain entries in which nothing is wrong, not even a value.

Most of it needs no GIL. An entry for which Python has to be asked is looked at again with the GIL held, and so is all that
follows in the batch: to take the GIL for each such entry would be to wait for it each time.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._buffers cimport enlarge
from usp.scan._bytes cimport AMPERSAND, CDATA, CONTROL, HIGH, MAX_TEXT_BYTES, SPECIAL, flags_of, url_flags_of
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
    Staged,
    Stop,
    record_flags,
    take_entries,
)
from usp.scan._seen cimport secret, usp_hash
from usp.scan._texts cimport (
    Link,
    Moment,
    ascii_text,
    end_of_origin,
    frequency_of,
    has_ampersand_outside,
    has_ampersand_reference,
    is_http_url,
    is_printable_utf8,
    is_text,
    microseconds_of,
    parse_link,
    parse_moment,
    priority_of,
    text_into,
    unescape_into,
    url_into,
    url_text_into,
)

INTERFACE = USP_INTERFACE
cdef int64_t HOUR = 3600000000
cdef object microseconds, parse_date, parse_priority


def bind():
    """Import what this module uses of usp."""
    global microseconds, parse_date, parse_priority
    from usp.scan.columns import microseconds
    from usp.scan.dates import parse_date
    from usp.scan.values import parse_priority


CODE_BITS = {
    "U503": U503, "U504": U504, "U505": U505, "U506": U506, "U507": U507, "U508": U508, "U509": U509, "U510": U510,
    "P418": P418, "P419": P419, "R709": R709, "L303": L303, "L305": L305, "L306": L306, "P423": P423, "N601": N601,
    "N603": N603, "N604": N604, "I611": I611, "H631": H631, "H632": H632, "H634": H634, "H635": H635,
}

cdef inline bint is_lower(const uint8_t *letters, Py_ssize_t size) noexcept nogil:
    cdef uint8_t bits = 255
    cdef Py_ssize_t i
    for i in range(size):
        bits &= letters[i]
    return bits & 32


cdef class PlainCheck(Reader):
    """Passes over plain entries in which nothing is wrong, not even a value."""

    def __cinit__(self, *args, **options):
        self.now = <int64_t>1 << 62
        self.changed = <uint8_t *>malloc(MAX_TEXT_BYTES + 1)
        self.answers = <Answer *>calloc(2 * ANSWERS, sizeof(Answer))
        if self.changed == NULL or self.answers == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.answers)
        free(self.changed)
        free(self.urls)

    def take(self, grammar, bytes buffer not None, Py_ssize_t position):
        """Where those entries end that are in order; the rest as for `PlainPages`."""
        cdef Py_ssize_t size = self.prepare(grammar, buffer, position)
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef Stop stop
        cdef uint32_t passed
        self.most = min(self.most * 2 + 1, <uint32_t>MAX_ENTRIES)
        self.asks = False
        with nogil:  # once: each time the GIL may have to be waited for
            stop = take_entries(&self.context.tabled.tables, data, size, &position, self.batch, self.most)
            self.reserve()
            self.stage(data)
            passed = self.pass_over(data, 0)
        if self.asks:
            self.holds, self.asks = True, False
            try:
                passed = self.pass_over(data, passed)
            finally:
                self.holds = False
        if passed:
            self.has_pages = True
            self.tell()
        if passed < self.batch.entry_count:
            self.most = 0
            return [], self.batch.entries[passed].start, False, False
        return [], position, stop == MORE, stop == FULL

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

    cdef void stage(self, const uint8_t *data) noexcept nogil:
        """Find out the URLs of the batch."""
        cdef uint32_t i
        cdef uint8_t *out = self.urls
        cdef Record *loc
        cdef Staged *staged
        cdef const uint8_t *last = NULL  # the last URL with a path: most have their origin in common
        cdef Py_ssize_t last_origin = 0
        for i in range(self.batch.entry_count):
            loc = &self.batch.records[self.batch.entries[i].loc]
            staged = &self.staged[i]
            staged.url, staged.size = data + loc.start, loc.size
            staged.flags = loc.flags | url_flags_of(staged.url, <size_t>staged.size)
            if staged.flags & SPECIAL:
                staged.flags |= flags_of(staged.url, <size_t>staged.size)
            if staged.flags & AMPERSAND:
                staged.url, staged.size = out, url_text_into(out, staged.url, staged.size, staged.flags)
                out += loc.size
            elif staged.flags & CONTROL:
                staged.size = -1
            if last != NULL and staged.size > last_origin and not memcmp(staged.url, last, <size_t>last_origin + 1):
                staged.origin = last_origin
            elif staged.size >= 0:
                staged.origin = end_of_origin(staged.url, staged.size)
                if not staged.origin:
                    staged.size = -1
                elif staged.origin < staged.size and staged.url[staged.origin] == c'/':
                    last, last_origin = staged.url, staged.origin
            if staged.size >= 0:
                self.expect(staged)

    cdef void expect(self, Staged *staged) noexcept nogil:
        """A URL will be looked at soon."""

    cdef int tell(self) except -1:
        """Keep what was learned of the entries that were passed over."""
        return 0

    cdef uint32_t pass_over(self, const uint8_t *data, uint32_t i) except 0xFFFFFFFF nogil:
        """The first entry from this one on that is not in order, or cannot be judged yet."""
        while i < self.batch.entry_count and self.passes(data, &self.batch.entries[i], &self.staged[i]):
            i += 1
        return i

    cdef bint passes(self, const uint8_t *data, PlainEntry *entry, Staged *staged) except -1 nogil:
        """Whether an entry is in order. Where this says no, nothing has come of it."""
        cdef Noticed noticed
        return self.is_clean(data, entry, staged, &noticed)

    cdef bint is_clean(self, const uint8_t *data, PlainEntry *entry, Staged *staged, Noticed *noticed) except -1 nogil:
        cdef Record *record
        cdef uint32_t i
        cdef int tag
        memset(noticed, 0, sizeof(Noticed))
        noticed.priority = -1
        if staged.size < 0 or (entry.extras & VIDEOS and not self.leaves_videos):
            return False
        if staged.flags & HIGH and not self.is_printable(staged.url, staged.size):
            return False
        for i in range(entry.first, entry.first + entry.count):
            record = &self.batch.records[i]
            tag = self.context.tabled.tags[record.name]
            if noticed.group == VIDEO_TAG and (tag != VIDEO_TAG or record.kind != CLOSE):
                continue
            if record.kind == TEXT:
                if i != entry.loc and record.size and not self.is_clean_field(data, record, tag, noticed):
                    return False
            elif record.kind == ATTRIBUTES:
                if not self.is_clean_link(data + record.start, record.size, noticed):
                    return False
            elif not self.is_clean_group(record.kind == OPEN, tag, noticed):
                return False
        return True

    cdef bint is_clean_group(self, bint opens, int tag, Noticed *noticed) noexcept nogil:
        """The start of a group; or its end, where it must have had what it needs."""
        if tag == PUBLICATION:
            noticed.publications += opens and noticed.stories == 1
        elif opens:
            noticed.group, noticed.has = tag, 0
            noticed.images += tag == IMAGE_TAG
            noticed.stories += tag == NEWS_TAG
        else:
            noticed.group = 0
            if tag == NEWS_TAG:
                return noticed.has >> TITLE & 1 and noticed.has >> PUBLICATION_DATE & 1
            return tag != IMAGE_TAG or noticed.has >> LOC & 1
        return True

    cdef bint is_clean_field(self, const uint8_t *data, Record *record, int tag, Noticed *noticed) except -1 nogil:
        """Whether a text is a value that its field may have, and nothing in it is to be put right."""
        cdef const uint8_t *text = data + record.start
        cdef uint8_t flags
        if tag == OTHER_TAG:
            return False
        noticed.has |= <uint32_t>1 << tag
        if tag == LASTMOD:
            noticed.is_dated = True
            return self.is_date(text, record, &noticed.date, &noticed.period, &noticed.codes)
        if tag == CHANGEFREQ:
            noticed.codes |= <uint32_t>(not is_lower(text, record.size)) << P423
            return not record.flags and frequency_of(text, record.size) >= 0
        if tag == PRIORITY:
            return self.is_priority(text, record, &noticed.priority)
        if tag == PUBLICATION_DATE:
            return self.is_story_date(text, record, noticed)
        flags = record_flags(data, record)
        if tag == LOC:
            return self.is_clean_url(text, record.size, flags) and (
                not flags & HIGH or self.is_printable(text, record.size)
            )
        if tag == TITLE and noticed.group == NEWS_TAG and flags & AMPERSAND:
            if text_into(self.changed, text, record.size, flags) < 0:
                return False  # below its escaping there may be nothing but spaces
        if noticed.publications == 1 and noticed.stories == 1:
            if tag == NAME:
                noticed.name = record
            elif tag == LANGUAGE:
                noticed.language = record
        return self.is_clean_text(text, record.size, flags)

    cdef bint is_clean_url(self, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil:
        if flags & AMPERSAND:
            return url_into(self.changed, text, size, flags) >= 0
        return not flags & CONTROL and is_http_url(text, size)

    cdef bint is_clean_text(self, const uint8_t *text, Py_ssize_t size, uint8_t flags) except -1 nogil:
        """Whether nothing is to be noted of a text, whatever field it stands in."""
        cdef Py_ssize_t n
        if not is_text(text, size, flags):
            return False
        if flags & AMPERSAND and not flags & CDATA:
            n = unescape_into(self.changed, text, size)
            return n >= 0 and not has_ampersand_reference(self.changed, n)
        return True

    cdef bint is_printable(self, const uint8_t *text, Py_ssize_t size) except -1 nogil:
        """Whether a text that is not ASCII is UTF-8, and all of it can be seen."""
        return is_printable_utf8(text, size)

    cdef bint is_clean_link(self, const uint8_t *text, Py_ssize_t size, Noticed *noticed) except -1 nogil:
        cdef Link link
        if not parse_link(text, size, &link) or has_ampersand_outside(text, size, &link):
            return False
        if link.href != NULL:
            link.href_flags = flags_of(link.href, link.href_size)
            if not self.is_clean_url(link.href, link.href_size, link.href_flags):
                return False
        if noticed.links < MAX_LINKS:
            self.links[noticed.links] = link
        noticed.links += 1
        return True

    cdef bint is_date(
        self, const uint8_t *text, Record *record, int64_t *date, int64_t *period, uint32_t *codes
    ) except -1 nogil:
        """Whether a text is a date: which, and what is wrong with it."""
        cdef Moment moment
        cdef Answer answer
        if record.flags:
            return False
        if parse_moment(text, record.size, &moment):
            date[0], period[0] = microseconds_of(&moment), 0 if moment.has_zone else 24 * HOUR
            if date[0] - (0 if moment.has_zone else 14 * HOUR) > self.now:
                codes[0] |= 1 << L303
            elif moment.has_time and not moment.has_zone:
                codes[0] |= 1 << L306
            return True
        if flags_of(text, record.size) or not self.ask(WHICH_DATE, text, record.size, 0, &answer) or not answer.is_so:
            return False
        date[0], period[0] = answer.date, answer.period
        if answer.code:
            codes[0] |= <uint32_t>1 << (answer.code - 1)
        return True

    cdef bint is_story_date(self, const uint8_t *text, Record *record, Noticed *noticed) except -1 nogil:
        cdef int64_t date, period
        cdef uint32_t codes = 0
        if not self.is_date(text, record, &date, &period, &codes):
            return False
        if noticed.stories == 1:
            noticed.published = date + period
            noticed.codes |= codes
        return True

    cdef bint is_priority(self, const uint8_t *text, Record *record, double *priority) except -1 nogil:
        cdef Answer answer
        if record.flags:
            return False
        priority[0] = priority_of(text, record.size)
        if priority[0] >= 0:
            return True
        if flags_of(text, record.size) or not self.ask(WHICH_PRIORITY, text, record.size, 0, &answer):
            return False
        priority[0] = answer.priority
        return answer.is_so

    cdef bint ask(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, Answer *answer
    ) except -1 nogil:
        """What Python says of a text, which it is asked once for most; false if it cannot be asked yet."""
        cdef Answer *kept = NULL
        if size <= ANSWER_KEY_BYTES and not flags & CDATA:
            kept = &self.answers[2 * ((usp_hash(text, <size_t>size, secret) + <uint64_t>question) & (ANSWERS - 1))]
            if is_answer(&kept[0], question, text, size):
                answer[0] = kept[0]
                return True
            if is_answer(&kept[1], question, text, size):
                answer[0] = kept[1]
                return True
        if not self.holds:
            self.asks = True
            return False
        memset(answer, 0, sizeof(Answer))
        with gil:
            self.find_out(question, text, size, flags, answer)
        if kept != NULL:
            answer.question, answer.size = <uint8_t>question, <uint8_t>size
            memcpy(answer.key, text, <size_t>size)
            kept[1], kept[0] = kept[0], answer[0]  # of those in the same place, the last two are kept
        return True

    cdef int find_out(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, Answer *answer
    ) except -1:
        if question == WHICH_DATE:
            date = parse_date(ascii_text(text, size))
            if date is not None:
                answer.is_so, answer.date = True, microseconds(date)
        elif question == WHICH_PRIORITY:
            priority = parse_priority(ascii_text(text, size))
            if priority is not None:
                answer.is_so, answer.priority = True, float(priority)
        return 0
