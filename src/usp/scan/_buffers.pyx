# cython: language_level=3, cdivision=True
"""Collect the buffers of columns row by row, and return them in Arrow's layout without a copy.

A series holds integers, floats, booleans or the ends of texts. This module does not know which columns there are.

Freed blocks of memory are kept for the next document, up to `MAX_SPARE_BYTES` in all: getting fresh memory from the
system takes about as long as filling it.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport HIGH, NOTED
from usp.scan._entries cimport Record, record_flags
from usp.scan._texts cimport is_printable_utf8, text_into, url_into

INTERFACE = USP_INTERFACE
cdef object Column, microseconds


def bind():
    """Import what this module uses of usp."""
    global Column, microseconds
    from usp.scan.columns import Column, microseconds


# Spare blocks

cdef extern from *:
    """
    static char usp_spares_are_locked;
    #if defined(__GNUC__)
    #define usp_lock_spares() (!__atomic_test_and_set(&usp_spares_are_locked, __ATOMIC_ACQUIRE))
    #define usp_unlock_spares() __atomic_clear(&usp_spares_are_locked, __ATOMIC_RELEASE)
    #else /* nothing is kept, then */
    #define usp_lock_spares() (usp_spares_are_locked)
    #define usp_unlock_spares() ((void)0)
    #endif
    """
    bint usp_lock_spares() noexcept nogil  # false if another thread has the lock: nobody waits for it
    void usp_unlock_spares() noexcept nogil

cdef struct Spare:
    void *data
    size_t size

cdef enum:
    SPARES = 16
    MIN_SPARE_BYTES = 1 << 14
    MAX_SPARE_BYTES = 1 << 24  # of all together

cdef Spare spares[SPARES]
cdef size_t spare_bytes = 0
memset(spares, 0, sizeof(spares))


cdef void *obtain(size_t least, size_t hint, size_t *size) except NULL nogil:
    """Return memory: a spare block of about `hint` bytes or more, or a new one of `least` bytes. Write its size."""
    cdef void *found = NULL
    cdef size_t wanted = max(hint, least)
    cdef int i, best = -1
    if wanted >= MIN_SPARE_BYTES and usp_lock_spares():
        for i in range(SPARES):
            if spares[i].size >= wanted and (best < 0 or spares[i].size < spares[best].size):
                best = i
        if best >= 0 and spares[best].size >> 2 <= wanted:
            take_spare(best, &found, size)
        usp_unlock_spares()
    if found == NULL:
        found, size[0] = malloc(least), least
    if found == NULL:
        with gil:
            raise MemoryError
    return found


cdef void take_spare(int i, void **data, size_t *size) noexcept nogil:
    global spare_bytes
    data[0], size[0] = spares[i].data, spares[i].size
    spare_bytes -= spares[i].size
    spares[i].data, spares[i].size = NULL, 0


cdef void release(void *data, size_t size) noexcept nogil:
    """Keep a block as a spare one, in place of a smaller one if there are many, or free it."""
    global spare_bytes
    cdef void *smaller = NULL
    cdef size_t smaller_size
    cdef int i, least = 0
    if data != NULL and size >= MIN_SPARE_BYTES and usp_lock_spares():
        for i in range(SPARES):
            if spares[i].size < spares[least].size:
                least = i
        if spares[least].size < size and spare_bytes - spares[least].size + size <= MAX_SPARE_BYTES:
            take_spare(least, &smaller, &smaller_size)
            spares[least].data, spares[least].size = data, size
            spare_bytes += size
            data = smaller
        usp_unlock_spares()
    free(data)


def spare_sizes():
    """Return the sizes of the spare blocks, for tests."""
    return sorted([spares[i].size for i in range(SPARES) if spares[i].data != NULL])


@cython.final
cdef class Block:
    """Memory with Python's buffer interface, released with this object."""

    cdef void *data
    cdef Py_ssize_t size
    cdef size_t room

    def __dealloc__(self):
        release(self.data, self.room)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)


cdef object view(void **data, size_t size, size_t room, str format):
    """Return a memoryview that owns this memory. `room` is its size, of which `size` bytes are used."""
    cdef Block block
    cdef void *smaller
    if size == 0:
        return memoryview(b"").cast(format)
    if room - size > size >> 2:
        smaller = realloc(data[0], size)
        if smaller != NULL:  # else it could not be made smaller: keep it
            data[0], room = smaller, size
    block = Block.__new__(Block)
    block.data, block.size, block.room = data[0], <Py_ssize_t>size, room
    data[0] = NULL
    return memoryview(block).cast(format)


cdef int enlarge(void **data, size_t size) except -1 nogil:
    cdef void *larger = realloc(data[0], size)
    if larger == NULL:
        with gil:
            raise MemoryError
    data[0] = larger
    return 0


cdef size_t last_rows = 0  # of the last column: the columns of the next document are about as long


cdef inline size_t row_bytes(int kind) noexcept nogil:
    return 1 if kind == SMALL else 8


cdef void free_series(Series *series) noexcept:
    free(series.data)
    free(series.valid)
    memset(series, 0, sizeof(Series))


cdef void free_texts(Texts *text) noexcept:
    free_series(&text.ends)
    free(text.data)
    text.data, text.room = NULL, 0


cdef int make_room(Series *series, int kind) except -1 nogil:
    cdef size_t room = series.room * 2 + 256, size = 0
    if series.room == 0:
        series.data = <uint8_t *>obtain((room + 1) * row_bytes(kind), (last_rows + 1) * row_bytes(kind), &size)
        room = size // row_bytes(kind) - 1
        if kind == ENDS:
            (<int64_t *>series.data)[0] = 0
    else:
        enlarge(<void **>&series.data, (room + 1) * row_bytes(kind))
    enlarge(<void **>&series.valid, (room >> 3) + 1)
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


cdef bint put_text(Texts *text, const uint8_t *data, Record *record, bint is_clean) except -1 nogil:
    """Add the text of a record, null if there is none. Return false to leave it to Python.

    If `is_clean`, a text with references that are problems is left to Python.
    """
    cdef Py_ssize_t size = 0
    cdef uint8_t flags
    if record != NULL:
        flags = record_flags(data, record)
        size = text_into(space_in(text, record.size), data + record.start, record.size, &flags)
        if size < 0 or (is_clean and flags & NOTED):
            return False
    put_end(&text.ends, last_end(&text.ends) + size, size > 0)
    return True


cdef bint put_url(Texts *text, const uint8_t *url, Py_ssize_t size, uint8_t flags, bint is_clean) except -1 nogil:
    """Add the URL that a text means. Return false to leave it to Python.

    If `is_clean`, a text with references that are problems is left to Python.
    """
    cdef uint8_t *out = space_in(text, <size_t>size)
    cdef Py_ssize_t found = url_into(out, url, size, &flags)
    if found < 0 or (is_clean and flags & NOTED) or (flags & HIGH and not is_printable_utf8(out, found)):
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
    return None if all_bits == 255 else view(
        <void **>&series.valid, (series.rows + 7) >> 3, (series.room >> 3) + 1, "B"
    )


cdef object fixed_column(Series *series, size_t rows, int kind, str format):
    global last_rows
    pad(series, rows, kind)
    valid, last_rows = valid_view(series), rows
    data = view(<void **>&series.data, rows * row_bytes(kind), (series.room + 1) * row_bytes(kind), format)
    return Column(rows, data, None, valid)


cdef object ends_view(Series *ends, size_t rows):
    pad(ends, rows, ENDS)
    if ends.room == 0:
        make_room(ends, ENDS)
    return view(<void **>&ends.data, 8 * (rows + 1), 8 * (ends.room + 1), "q")


cdef object text_column(Texts *text, size_t rows):
    pad(&text.ends, rows, ENDS)
    data, valid = view(<void **>&text.data, <size_t>last_end(&text.ends), text.room, "B"), valid_view(&text.ends)
    return Column(rows, data, ends_view(&text.ends, rows), valid)


cdef object list_column(Series *ends, size_t rows, items):
    pad(ends, rows, ENDS)
    valid = valid_view(ends)
    return Column(rows, None, ends_view(ends, rows), valid, (items,))
