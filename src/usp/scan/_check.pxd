from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from usp.scan._entries cimport MAX_ENTRIES, PlainEntry, Reader, Record, EntryURL
from usp.scan._lines cimport Lines
from usp.scan._texts cimport Link

cdef enum:  # the bits of the codes, in the order of `usp.scan.survey.SURVEYED`
    U503, U504, U505, U506, U507, U508, U509, U510, P418, P419, R709, L303, L305, L306, P423
    N601, N603, N604, I611, H631, H632, H634, H635, L307, P432, P433, U518
    H637, V621, V622, V623, V624, V625, V626, CODE_COUNT

cdef enum:
    MAX_LINKS = 256
    RESULT_SLOTS = 256  # each has room for two
    RESULT_KEY_BYTES = 43

cdef enum:  # what Python can be asked about a text
    NOTHING_ASKED, PARSE_DATE, PARSE_PRIORITY, HAS_TEXT, SITE_CODE, IS_LANGUAGE, IS_NEWS_LANGUAGE

ctypedef struct PythonResult:
    int64_t date  # microseconds since 1970, in UTC
    int64_t period  # how long after that the date may still mean, without a zone
    double priority
    uint8_t question
    uint8_t size
    uint8_t is_valid  # whether the text is valid
    uint8_t code  # 1 + the bit of the code of its problem, or 0
    uint8_t key[RESULT_KEY_BYTES]

ctypedef struct EntrySummary:
    int64_t date  # of the last modification
    int64_t period  # how long after that it may still mean; 0 if it has a zone
    int64_t published  # the latest time that the date of the first news story may mean
    double priority  # -1 if none is stated
    Record *name
    Record *language
    uint64_t codes
    uint32_t images
    uint32_t links
    bint is_dated
    int rank  # of its last child, in the order of the schema
    int group  # the open group, and below a bit for each field that it had
    uint32_t has
    int stories
    int publications


cdef inline bint is_result_for(
    const PythonResult *kept, int question, const uint8_t *text, Py_ssize_t size
) noexcept nogil:
    return kept.question == question and kept.size == size and memcmp(kept.key, text, <size_t>size) == 0


cdef class PlainCheck(Reader):
    cdef readonly bint has_pages
    cdef uint32_t most  # the size of the next batch: small after an entry with problems
    cdef bint skips_videos  # whether a derived class checks videos
    cdef bint has_gil  # whether this thread holds the GIL
    cdef bint needs_gil  # whether an entry needs it
    cdef int64_t now
    cdef EntryURL entry_urls[MAX_ENTRIES]
    cdef Link links[MAX_LINKS]  # of the current entry
    cdef PythonResult *results
    cdef uint8_t *changed  # room for a text without its references
    cdef uint8_t *urls  # URLs of the batch without their references
    cdef size_t urls_room

    cdef int reserve(self) except -1 nogil
    cdef void read_urls(self, const uint8_t *data) noexcept nogil
    cdef void hash_url(self, EntryURL *entry_url) noexcept nogil
    cdef Py_ssize_t read_lines(self, Lines *lines, Py_ssize_t count, bint takes_fields) noexcept nogil
    cdef uint32_t finish(self, const uint8_t *data, uint32_t passed) except 0xFFFFFFFF
    cdef int report_counts(self) except -1
    cdef uint32_t skip_clean_entries(self, const uint8_t *data, uint32_t i) except 0xFFFFFFFF nogil
    cdef bint take_entry(self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url) except -1 nogil
    cdef bint is_clean(
        self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url, EntrySummary *summary
    ) except -1 nogil
    cdef bint is_clean_group(self, bint opens, int tag, EntrySummary *summary) noexcept nogil
    cdef bint is_clean_field(self, const uint8_t *data, Record *record, int tag, EntrySummary *summary) except -1 nogil
    cdef bint is_clean_url(self, const uint8_t *text, Py_ssize_t size, uint8_t *flags) except -1 nogil
    cdef bint is_clean_text(
        self, const uint8_t *text, Py_ssize_t size, uint8_t flags, bint is_required
    ) except -1 nogil
    cdef bint is_printable(self, const uint8_t *text, Py_ssize_t size) except -1 nogil
    cdef bint is_clean_link(self, const uint8_t *text, Py_ssize_t size, EntrySummary *summary) except -1 nogil
    cdef bint is_date(
        self, const uint8_t *text, Record *record, int64_t *date, int64_t *period, uint64_t *codes
    ) except -1 nogil
    cdef bint is_story_date(self, const uint8_t *text, Record *record, EntrySummary *summary) except -1 nogil
    cdef bint is_priority(self, const uint8_t *text, Record *record, double *priority) except -1 nogil
    cdef bint ask_once(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, PythonResult *result
    ) except -1 nogil
    cdef int ask_python(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, PythonResult *result
    ) except -1
