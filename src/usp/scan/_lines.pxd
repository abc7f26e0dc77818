from libc.stdint cimport uint8_t

cdef enum LineKind:
    NO_LINE, BLANK_LINE, URL_LINE

ctypedef struct Lines:
    const uint8_t *data
    Py_ssize_t size
    Py_ssize_t at  # where the next line starts
    Py_ssize_t feed  # the next LF, or the size; before `at` if it is not known
    Py_ssize_t carriage_return  # the next CR, in the same way
    const uint8_t *url  # of the last line
    Py_ssize_t url_size
    Py_ssize_t origin  # where the host of that URL ends
    bint has_fields  # whether other texts follow it


cdef int open_lines(Lines *lines, bytes buffer, Py_ssize_t position) except -1
cdef LineKind next_line(Lines *lines, bint takes_fields) noexcept nogil
