# cython: language_level=3, cdivision=True
"""Collect the buffers of columns row by row, and return them in Arrow's layout without a copy.

A series holds integers, floats, booleans or the ends of texts. This module does not know which columns there are.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport HIGH
from usp.scan._entries cimport Record, record_flags
from usp.scan._texts cimport is_printable_utf8, text_into, url_into

INTERFACE = USP_INTERFACE
cdef object Column, microseconds


def bind():
    """Import what this module uses of usp."""
    global Column, microseconds
    from usp.scan.columns import Column, microseconds


@cython.final
cdef class Block:
    """Memory with Python's buffer interface, freed with this object."""

    cdef void *data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)


cdef object view(void **data, size_t size, str format):
    """Return a memoryview that owns this memory."""
    cdef Block block
    if size == 0:
        return memoryview(b"").cast(format)
    block = Block.__new__(Block)
    block.data, block.size = realloc(data[0], size), <Py_ssize_t>size
    if block.data == NULL:  # it could not be made smaller: keep it
        block.data = data[0]
    data[0] = NULL
    return memoryview(block).cast(format)


cdef int enlarge(void **data, size_t size) except -1 nogil:
    cdef void *larger = realloc(data[0], size)
    if larger == NULL:
        with gil:
            raise MemoryError
    data[0] = larger
    return 0


cdef void free_series(Series *series) noexcept:
    free(series.data)
    free(series.valid)
    memset(series, 0, sizeof(Series))


cdef void free_texts(Texts *text) noexcept:
    free_series(&text.ends)
    free(text.data)
    text.data, text.room = NULL, 0


cdef int make_room(Series *series, int kind) except -1 nogil:
    cdef size_t room = series.room * 2 + 256
    enlarge(<void **>&series.data, (room + 1) * (1 if kind == SMALL else 8))
    enlarge(<void **>&series.valid, (room >> 3) + 1)
    if kind == ENDS and series.room == 0:
        (<int64_t *>series.data)[0] = 0
    series.room = room
    return 0


cdef int pad(Series *series, size_t rows, int kind) except -1 nogil:
    """Add null rows, until there are so many rows."""
    cdef int64_t zero = 0
    while series.rows < rows:
        if kind == ENDS:
            put_end(series, last_end(series), False)
        elif kind == WORDS:
            put_word(series, &zero, False)
        else:
            put_byte(series, 255, False)
    return 0


cdef uint8_t *space_in(Texts *text, size_t size) except NULL nogil:
    """Return where the next text goes, with room for so many bytes."""
    cdef size_t end = <size_t>last_end(&text.ends)
    if end + size >= text.room:
        enlarge(<void **>&text.data, 2 * (end + size) + 256)
        text.room = 2 * (end + size) + 256
    return text.data + end


cdef int put_bytes(Texts *text, const uint8_t *data, Py_ssize_t size) except -1 nogil:
    memcpy(space_in(text, <size_t>size), data, <size_t>size)
    return put_end(&text.ends, last_end(&text.ends) + size, True)


cdef bint put_text(Texts *text, const uint8_t *data, Record *record) except -1 nogil:
    """Add the text of a record, null if there is none. Return false to leave it to Python."""
    cdef Py_ssize_t size = 0
    if record != NULL:
        size = text_into(
            space_in(text, record.size), data + record.start, record.size, record_flags(data, record)
        )
        if size < 0:
            return False
    put_end(&text.ends, last_end(&text.ends) + size, size > 0)
    return True


cdef bint put_url(Texts *text, const uint8_t *url, Py_ssize_t size, uint8_t flags) except -1 nogil:
    """Add the URL that a text means. Return false to leave it to Python."""
    cdef uint8_t *out = space_in(text, <size_t>size)
    cdef Py_ssize_t found = url_into(out, url, size, flags)
    if found < 0 or (flags & HIGH and not is_printable_utf8(out, found)):
        return False
    put_end(&text.ends, last_end(&text.ends) + found, True)
    return True


cdef int put_str(Texts *text, value) except -1:
    cdef bytes data
    if value is None:
        return put_end(&text.ends, last_end(&text.ends), False)
    data = (<str?>value).encode("utf-8", "replace")
    return put_bytes(text, <const uint8_t *>data, len(data))


cdef int put_date(Series *dates, date) except -1:
    cdef int64_t found = microseconds(date) if date is not None else 0
    return put_word(dates, &found, date is not None)


# Columns

cdef bint has_values(Series *series) noexcept:
    cdef size_t i
    for i in range(series.rows):
        if series.valid[i >> 3] >> (i & 7) & 1:
            return True
    return False


cdef object valid_view(Series *series):
    """Return the validity bits of a series, or None if all are set."""
    cdef size_t whole = series.rows >> 3, i
    cdef int rest = series.rows & 7
    cdef uint8_t all_bits = 255
    if series.rows == 0:
        return None
    for i in range(whole):
        all_bits &= series.valid[i]
    if rest:
        series.valid[whole] &= (1 << rest) - 1
        all_bits &= series.valid[whole] | <uint8_t>(255 << rest)
    return None if all_bits == 255 else view(<void **>&series.valid, (series.rows + 7) >> 3, "B")


cdef object fixed_column(Series *series, size_t rows, int kind, str format):
    pad(series, rows, kind)
    valid = valid_view(series)
    return Column(rows, view(<void **>&series.data, rows * (1 if kind == SMALL else 8), format), None, valid)


cdef object ends_view(Series *ends, size_t rows):
    pad(ends, rows, ENDS)
    if ends.room == 0:
        make_room(ends, ENDS)
    return view(<void **>&ends.data, 8 * (rows + 1), "q")


cdef object text_column(Texts *text, size_t rows):
    pad(&text.ends, rows, ENDS)
    data, valid = view(<void **>&text.data, <size_t>last_end(&text.ends), "B"), valid_view(&text.ends)
    return Column(rows, data, ends_view(&text.ends, rows), valid)


cdef object list_column(Series *ends, size_t rows, items):
    pad(ends, rows, ENDS)
    valid = valid_view(ends)
    return Column(rows, None, ends_view(ends, rows), valid, (items,))
