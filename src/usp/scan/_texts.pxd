from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    void *PyUnicode_DATA(object)


ctypedef struct Moment:
    int year, month, day, hour, minute, second, microsecond
    int offset  # minutes east of Greenwich
    bint has_zone, has_time

ctypedef struct Link:
    const uint8_t *href
    const uint8_t *hreflang
    Py_ssize_t href_size
    Py_ssize_t hreflang_size
    uint8_t href_flags  # set where they matter


ctypedef struct Attribute:
    const uint8_t *name
    Py_ssize_t name_size
    const uint8_t *value  # without the white space around it
    Py_ssize_t size


cdef inline object ascii_text(const uint8_t *text, Py_ssize_t size):
    cdef object made = PyUnicode_New(size, 127)
    memcpy(PyUnicode_DATA(made), text, size)
    return made


cdef inline bint is_http_url(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Whether this is an absolute http or https URL with a host of plain letters: nearly all are."""
    return end_of_origin(url, size) > 0


cdef object high_text(const uint8_t *text, Py_ssize_t size)
cdef Py_ssize_t unescape_into(uint8_t *out, const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef bint has_ampersand_reference(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t end_of_origin(const uint8_t *url, Py_ssize_t size) noexcept nogil
cdef bint parse_moment(const uint8_t *t, Py_ssize_t size, Moment *m) noexcept nogil
cdef object date_of(Moment *m)
cdef int64_t microseconds_of(Moment *m) noexcept nogil
cdef int frequency_of(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef double priority_of(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef int next_attribute(const uint8_t *text, Py_ssize_t size, Py_ssize_t *at, Attribute *found) noexcept nogil
cdef bint parse_link(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil
cdef bint has_ampersand_outside(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil
cdef bint is_printable_utf8(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef bint is_edged(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef bint is_url_line(const uint8_t *line, Py_ssize_t size) noexcept nogil
cdef bint is_text(const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil
cdef Py_ssize_t text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil
cdef Py_ssize_t url_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil
cdef Py_ssize_t url_text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil
