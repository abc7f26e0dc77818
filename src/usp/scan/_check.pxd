from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from usp.scan._entries cimport MAX_ENTRIES, PlainEntry, Reader, Record, Staged
from usp.scan._texts cimport Link

cdef enum:  # the bits of the codes, in the order of `usp.scan.survey.SURVEYED`
    U503, U504, U505, U506, U507, U508, U509, U510, P418, P419, R709, L303, L305, L306, P423
    N601, N603, N604, I611, H631, H632, H634, H635, CODE_COUNT

cdef enum:
    MAX_LINKS = 256
    ANSWERS = 256  # places for two answers each
    ANSWER_KEY_BYTES = 43

cdef enum:  # what Python is asked of a text
    NO_QUESTION, WHICH_DATE, WHICH_PRIORITY, HAS_TEXT, WHERE_ELSE, IS_LANGUAGE, IS_NEWS_LANGUAGE

ctypedef struct Answer:
    int64_t date  # microseconds since 1970, in UTC
    int64_t period  # how long the time is that a date may mean
    double priority
    uint8_t question
    uint8_t size
    uint8_t is_so  # whether the text has such a value
    uint8_t code  # 1 + the bit of the code of what is wrong with it, 0 if nothing is
    uint8_t key[ANSWER_KEY_BYTES]

ctypedef struct Noticed:
    int64_t date  # of the last modification
    int64_t period  # how long the time is that it may mean; 0 if it has a zone
    int64_t published  # the end of the time that the first news story may be of; below is all of its publication
    double priority  # -1 if none is stated
    Record *name
    Record *language
    uint32_t codes
    uint32_t images
    uint32_t links
    bint is_dated
    int group  # where the check of the entry has come to: the group, and the fields that it had
    uint32_t has
    int stories
    int publications


cdef inline bint is_answer(const Answer *kept, int question, const uint8_t *text, Py_ssize_t size) noexcept nogil:
    return kept.question == question and kept.size == size and memcmp(kept.key, text, <size_t>size) == 0


cdef class PlainCheck(Reader):
    cdef readonly bint has_pages
    cdef uint32_t most  # entries to be looked at: few, where the last was not in order
    cdef bint leaves_videos  # whether somebody else looks for what is wrong in videos
    cdef bint holds  # whether the GIL is held
    cdef bint asks  # whether an entry cannot be judged without it
    cdef int64_t now
    cdef Staged staged[MAX_ENTRIES]
    cdef Link links[MAX_LINKS]  # of the entry that is looked at
    cdef Answer *answers
    cdef uint8_t *changed  # a text without its references
    cdef uint8_t *urls  # those of the batch that have references, without them
    cdef size_t urls_room

    cdef int reserve(self) except -1 nogil
    cdef void stage(self, const uint8_t *data) noexcept nogil
    cdef void expect(self, Staged *staged) noexcept nogil
    cdef int tell(self) except -1
    cdef uint32_t pass_over(self, const uint8_t *data, uint32_t i) except 0xFFFFFFFF nogil
    cdef bint passes(self, const uint8_t *data, PlainEntry *entry, Staged *staged) except -1 nogil
    cdef bint is_clean(self, const uint8_t *data, PlainEntry *entry, Staged *staged, Noticed *noticed) except -1 nogil
    cdef bint is_clean_group(self, bint opens, int tag, Noticed *noticed) noexcept nogil
    cdef bint is_clean_field(self, const uint8_t *data, Record *record, int tag, Noticed *noticed) except -1 nogil
    cdef bint is_clean_url(self, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil
    cdef bint is_clean_text(self, const uint8_t *text, Py_ssize_t size, uint8_t flags) except -1 nogil
    cdef bint is_printable(self, const uint8_t *text, Py_ssize_t size) except -1 nogil
    cdef bint is_clean_link(self, const uint8_t *text, Py_ssize_t size, Noticed *noticed) except -1 nogil
    cdef bint is_date(
        self, const uint8_t *text, Record *record, int64_t *date, int64_t *period, uint32_t *codes
    ) except -1 nogil
    cdef bint is_story_date(self, const uint8_t *text, Record *record, Noticed *noticed) except -1 nogil
    cdef bint is_priority(self, const uint8_t *text, Record *record, double *priority) except -1 nogil
    cdef bint ask(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, Answer *answer
    ) except -1 nogil
    cdef int find_out(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, Answer *answer
    ) except -1
