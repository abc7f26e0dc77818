from libc.stdint cimport int64_t, uint8_t, uint32_t

from usp.scan._buffers cimport Series, Texts
from usp.scan._entries cimport Record

cdef enum:
    STORY_TEXTS = 4
    STORY_LISTS = 3
    IMAGE_TEXTS = 5

cdef enum:
    MAX_VIDEO_FIELDS = 40
    MAX_VIDEO_ATTRIBUTES = 16
    MAX_ATTRIBUTE_NAME = 16

cdef enum:  # how the value of a field of a video is read
    BY_PYTHON, AS_TEXT, AS_URL, AS_DATE, AS_INTEGER, AS_NUMBER, AS_BOOLEAN, AS_WORDS, AS_TEXTS

cdef int STORY_TAGS[STORY_TEXTS]
cdef int STORY_LIST_TAGS[STORY_LISTS]
cdef int READ_AS[MAX_VIDEO_FIELDS]
cdef int video_field_count

ctypedef struct TextLists:
    Series ends
    Texts items

ctypedef struct Stories:
    Texts texts[STORY_TEXTS]
    Series dates
    TextLists lists[STORY_LISTS]

ctypedef struct Items:  # lists of structs of texts
    Series ends
    Texts texts[IMAGE_TEXTS]

ctypedef struct Videos:  # `ends` has a row for each page, everything else a row for each video
    Series ends
    size_t count
    Texts texts[MAX_VIDEO_FIELDS]
    Series fixed[MAX_VIDEO_FIELDS]  # dates, numbers and booleans
    TextLists lists[MAX_VIDEO_FIELDS]


cdef void free_stories(Stories *stories) noexcept
cdef void truncate_stories(Stories *stories, size_t rows) noexcept nogil
cdef int pad_stories(Stories *stories, size_t rows) except -1 nogil
cdef bint put_parts(TextLists *lists, const uint8_t *data, Record *record, uint8_t *text) except -1 nogil
cdef int add_story_values(Stories *stories, story, size_t row) except -1
cdef object stories_column(Stories *stories, size_t rows)
cdef void free_items(Items *items) noexcept
cdef void truncate_items(Items *items, size_t rows) noexcept nogil
cdef int add_item(Items *items, texts) except -1
cdef bint add_image(Items *images, const uint8_t *data, Record **cells) except -1 nogil
cdef bint add_link(Items *linked, const uint8_t *data, Record *record) except -1 nogil
cdef int end_items(Items *items, size_t row) except -1 nogil
cdef object items_column(Items *items, Py_ssize_t texts, size_t rows)
cdef void free_videos(Videos *videos) noexcept
cdef void truncate_videos(Videos *videos, size_t rows) noexcept nogil
cdef int end_videos(Videos *videos, size_t row) except -1 nogil
cdef bint put_video_text(Texts *texts, const uint8_t *data, Record *record) except -1 nogil
cdef bint put_words(Texts *words, const uint8_t *text, Py_ssize_t size) except -1 nogil
cdef bint put_integer(Series *series, const uint8_t *text, Py_ssize_t size) except -1 nogil
cdef bint put_number(Series *series, const uint8_t *text, Py_ssize_t size) except -1 nogil
cdef bint put_boolean(Series *series, const uint8_t *text, Py_ssize_t size) except -1 nogil
cdef bint begin_video(
    Videos *videos, const uint8_t *data, Record *records, uint32_t count, const uint8_t *numbers, Record **texts
) except -1 nogil
cdef int end_video(Videos *videos) except -1 nogil
cdef int add_video_values(Videos *videos, dict rare, video) except -1
cdef object videos_column(Videos *videos, dict rare, size_t rows)
