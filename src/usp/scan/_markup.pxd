cimport cython
from libc.stdint cimport uint8_t

# Kinds of bytes: the classes of the patterns in `usp.scan.tokens`.
cdef enum:
    IN_NAME = 1  # [^\s<>/!?="'&]
    STARTS_NAME = 2  # [A-Za-z_:\x80-\xff]
    STARTS_LEAF = 4  # [A-Za-z_]
    IN_ATTRIBUTE_NAME = 8  # [^\s="'<>/]
    IN_BARE_VALUE = 16  # [^\s"'<>]
    STRAY_AFTER = 32  # [^A-Za-z_:\x80-\xff/!?]
    STARTS_VOID = 64  # the first letter of a tag that is never closed


cdef inline bint is_blank(uint8_t c) noexcept nogil:
    """White space of bytes, as Python has it."""
    return c == c' ' or 9 <= c <= 13


cdef inline Py_ssize_t end_of(const uint8_t *kinds, const uint8_t *data, Py_ssize_t at, Py_ssize_t stop, uint8_t wanted) noexcept nogil:
    """Return where a run of bytes of some class ends."""
    while at < stop and kinds[data[at]] & wanted:
        at += 1
    return at


cdef const uint8_t *classes() noexcept nogil
cdef bint is_void(const uint8_t *name, Py_ssize_t size) noexcept
cdef Py_ssize_t leading_blanks(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef dict attributes_of(const uint8_t *raw, Py_ssize_t size, note)


@cython.final
cdef class Log:
    cdef object log
    cdef object counts  # of an ordinary log, which keeps the first few problems of a code and counts the others
    cdef dict logged  # of a log that only remembers where each code was last: `EntryCodes`
    cdef readonly bint is_used

    cdef bint keeps(self, str code) except -1
    cdef int count(self, str code, Py_ssize_t number, Py_ssize_t at) except -1
    cdef int add(self, str code, Py_ssize_t at, str text, str where) except -1
