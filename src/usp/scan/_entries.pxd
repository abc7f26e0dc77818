cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from usp.scan._bytes cimport flags_of

cdef enum:
    MAX_NAMES = 255
    MAX_STATES = 32
    MAX_NAME_BYTES = 48
    NAME_SLOTS = 2048
    MAX_OPEN = 8
    MAX_ENTRIES = 512  # in one batch
    MAX_RECORDS = 8192
    MAX_ATTRIBUTES_BYTES = 8192
    MAX_COMMENT_BYTES = 65536
    MAX_ENTRY_BYTES = 131072  # an incomplete entry that is longer is not waited for
    MAX_STEPS = 256
    MAX_LITERAL_BYTES = 96
    MAX_MARKS = 4
    STEPS_UNTIL_FORGOTTEN = 16384  # if no more can be learned

cdef enum:
    OTHER, FIELD, WITH_ATTRIBUTES, GROUP

cdef enum:
    TEXT, ATTRIBUTES, OPEN, CLOSE  # of a step, CLOSE is the end of the entry

cdef enum Stop:
    ENTRY, MORE, ODD, FULL

ctypedef struct Record:
    uint32_t start
    uint16_t size
    uint8_t kind
    uint8_t name
    uint8_t flags  # CDATA or 0; other flags are computed where they are needed

ctypedef struct PlainEntry:
    Py_ssize_t start
    uint32_t first  # of its records
    uint32_t count
    uint32_t loc
    uint32_t extensions  # a bit for each extension that it has

ctypedef struct Level:
    int name  # of the open element
    uint8_t state
    uint64_t fields  # those that it already had

ctypedef struct Mark:  # where a literal opens or closes a group
    uint8_t offset
    uint8_t kind
    uint8_t name

# Most entries of a document have the same tags and white space, so these are compared all at once. A step is what
# stands between two texts or attributes. The steps of all entries seen so far are a tree: each has the steps that
# followed it. So the way to a step says all about the state behind it.
ctypedef struct Step:
    uint8_t literal[MAX_LITERAL_BYTES]
    uint8_t size
    uint8_t kind  # of what comes next
    uint8_t name
    uint8_t start  # of the first step: where the entry starts
    uint8_t is_loc
    uint8_t is_after_text  # not behind an empty element
    uint16_t next  # the newest of the steps that followed; 0 for none
    uint16_t other  # the one before
    uint32_t extensions
    uint32_t mark_count
    Mark marks[MAX_MARKS]

ctypedef struct Batch:
    PlainEntry entries[MAX_ENTRIES]
    Record records[MAX_RECORDS]
    uint32_t entry_count
    uint32_t record_count
    uint8_t following[MAX_NAMES]  # the name that came last after each: most documents repeat themselves
    Step steps[MAX_STEPS]  # the first is the start of every entry
    Level levels[MAX_STEPS][MAX_OPEN]  # open elements behind each step
    uint8_t depths[MAX_STEPS]
    uint32_t step_count
    uint32_t steps_taken  # since the steps were learned

ctypedef struct Tables:
    char names[MAX_NAMES][MAX_NAME_BYTES]
    uint8_t name_sizes[MAX_NAMES]
    uint64_t closings[MAX_NAMES][2]  # a name and ">", if that is no more than 16 bytes
    uint64_t masks[MAX_NAMES][2]  # which of those bytes count; 0 for a longer name
    uint8_t slots[NAME_SLOTS]  # 1 + the number of a name, by its hash
    uint8_t rules[MAX_STATES][MAX_NAMES]
    uint8_t states[MAX_STATES][MAX_NAMES]
    uint8_t extensions[MAX_NAMES]
    uint64_t bits[MAX_NAMES]  # one for each tag, whatever its prefix
    uint8_t is_loc[MAX_NAMES]  # of an entry

cdef enum:
    NEWS = 1
    IMAGES = 2
    VIDEOS = 4
    LINKS = 8

cdef enum:
    OTHER_TAG, LOC, LASTMOD, CHANGEFREQ, PRIORITY, TITLE, PUBLICATION_DATE, NAME, LANGUAGE, ACCESS, GENRES, KEYWORDS
    STOCK_TICKERS, CAPTION, GEO_LOCATION, LICENSE, NEWS_TAG, IMAGE_TAG, PUBLICATION, LINK, VIDEO_TAG

ctypedef struct EntryURL:
    const uint8_t *url
    Py_ssize_t size  # -1 to leave it to Python
    Py_ssize_t origin  # where the host ends; set only where it is needed
    uint64_t hashed
    uint8_t flags


cdef inline uint8_t record_flags(const uint8_t *data, Record *record) noexcept nogil:
    return record.flags | flags_of(data + record.start, record.size)


cdef void forget_steps(Batch *batch) noexcept nogil
cdef Stop take_entries(
    Tables *tables, const uint8_t *data, Py_ssize_t size, Py_ssize_t *at, Batch *batch, uint32_t most
) noexcept nogil


@cython.final
cdef class GrammarTables:
    cdef Tables tables
    cdef uint8_t tags[MAX_NAMES]
    cdef uint8_t video_fields[MAX_NAMES]  # 1 + the number of the field of a video, or 0
    cdef readonly object grammar

    cdef int add_name(self, int number, bytes name, str tag) except -1


@cython.final
cdef class Context:
    cdef GrammarTables grammar_tables
    cdef object resolve
    cdef object convert
    cdef object sitemap_url  # of the document; None until a page is asked for it


cdef class Reader:
    cdef Batch *batch
    cdef Context context

    cdef Stop scan(self, grammar, bytes buffer, Py_ssize_t *at) except *
    cdef Py_ssize_t prepare(self, grammar, bytes buffer, Py_ssize_t position) except -1
