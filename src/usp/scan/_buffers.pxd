from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from usp.scan._entries cimport Record

cdef enum:  # the size of a row: eight bytes, an offset of eight bytes (with a 0 before the first), or one byte
    WORDS, ENDS, SMALL

ctypedef struct Series:
    uint8_t *data
    uint8_t *valid  # a bit for each row
    size_t rows
    size_t room

ctypedef struct Texts:
    Series ends
    uint8_t *data
    size_t room


cdef void *obtain(size_t least, size_t hint, size_t *size) except NULL nogil
cdef void release(void *data, size_t size) noexcept nogil
cdef object view(void **data, size_t size, size_t room, str format)
cdef int enlarge(void **data, size_t size) except -1 nogil
cdef void free_series(Series *series) noexcept
cdef void free_texts(Texts *text) noexcept
cdef int make_room(Series *series, int kind) except -1 nogil
cdef int pad(Series *series, size_t rows, int kind) except -1 nogil
cdef int put_bytes(Texts *text, const uint8_t *data, Py_ssize_t size) except -1 nogil
cdef bint put_text(Texts *text, const uint8_t *data, Record *record, bint is_clean) except -1 nogil
cdef bint put_url(Texts *text, const uint8_t *url, Py_ssize_t size, uint8_t flags, bint is_clean) except -1 nogil
cdef int put_str(Texts *text, value) except -1
cdef int put_date(Series *dates, date) except -1
cdef bint has_values(Series *series) noexcept
cdef object valid_view(Series *series)
cdef object fixed_column(Series *series, size_t rows, int kind, str format)
cdef object text_column(Texts *text, size_t rows)
cdef object list_column(Series *ends, size_t rows, items)


cdef inline void add_row(Series *series, bint is_valid) noexcept nogil:
    cdef uint8_t *byte = &series.valid[series.rows >> 3]
    cdef int bit = series.rows & 7
    byte[0] = <uint8_t>((byte[0] & ~(1 << bit)) | is_valid << bit)
    series.rows += 1


cdef inline int put_word(Series *series, const void *word, bint is_valid) except -1 nogil:
    if series.rows == series.room:
        make_room(series, WORDS)
    memcpy(series.data + 8 * series.rows, word, 8)
    add_row(series, is_valid)
    return 0


cdef inline int put_end(Series *series, int64_t end, bint is_valid) except -1 nogil:
    if series.rows == series.room:
        make_room(series, ENDS)
    (<int64_t *>series.data)[series.rows + 1] = end
    add_row(series, is_valid)
    return 0


cdef inline int put_byte(Series *series, uint8_t byte, bint is_valid) except -1 nogil:
    if series.rows == series.room:
        make_room(series, SMALL)
    series.data[series.rows] = byte
    add_row(series, is_valid)
    return 0


cdef inline int64_t last_end(Series *ends) noexcept nogil:
    return (<int64_t *>ends.data)[ends.rows] if ends.room else 0


cdef inline void truncate_series(Series *series, size_t rows) noexcept nogil:
    if series.rows > rows:
        series.rows = rows
