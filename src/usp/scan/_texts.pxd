from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcpy

from usp.scan._bytes cimport is_space

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
    uint8_t href_flags  # set only where they are needed
    bint has_rel
    bint has_more  # another attribute
    bint is_odd  # whether an attribute may stand there twice, or have odd characters


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
    """Return whether this is an absolute http or https URL with an ASCII host. Nearly all are."""
    return end_of_origin(url, size) > 0


cdef object utf8_text(const uint8_t *text, Py_ssize_t size)
cdef object high_text(const uint8_t *text, Py_ssize_t size)
cdef Py_ssize_t end_of_origin(const uint8_t *url, Py_ssize_t size) noexcept nogil
cdef bint parse_moment(const uint8_t *t, Py_ssize_t size, Moment *m) noexcept nogil
cdef object date_of(Moment *m)
cdef int64_t microseconds_of(Moment *m) noexcept nogil
cdef int frequency_of(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef double priority_of(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef bint parse_link(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil
cdef bint has_ampersand_outside(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil
cdef bint is_utf8(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t character_at(const uint8_t *text, Py_ssize_t left, uint32_t *found) noexcept nogil
cdef bint is_printable_utf8(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef bint has_visible_edges(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef bint is_text(const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil
cdef Py_ssize_t decoded_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil
cdef Py_ssize_t unescape_html(uint8_t *text, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil
cdef Py_ssize_t url_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil
cdef Py_ssize_t url_text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil


# Inlined: four attributes for each link make a call that shows.
cdef inline int next_attribute(const uint8_t *text, Py_ssize_t size, Py_ssize_t *at, Attribute *found) noexcept nogil:
    """Read the next attribute. Return 1 if there is one, 0 at the end, -1 if it is written in an unusual way."""
    cdef Py_ssize_t i = at[0], start, end
    cdef const uint8_t *closing
    while i < size and is_space(text[i]):
        i += 1
    if i == size:
        return 0
    if i and i == at[0]:
        return -1  # nothing stands between it and the last one
    found.name = text + i
    while i < size and (c'a' <= text[i] <= c'z' or text[i] == c'_'):
        i += 1
    found.name_size = text + i - found.name
    if i + 2 >= size or text[i] != c'=' or not found.name_size or (text[i + 1] != c'"' and text[i + 1] != c"'"):
        return -1
    start = i + 2
    closing = <const uint8_t *>memchr(text + start, text[i + 1], <size_t>(size - start))
    if closing == NULL:
        return -1
    end = closing - text
    at[0] = end + 1
    while start < end and is_space(text[start]):
        start += 1
    while end > start and is_space(text[end - 1]):
        end -= 1
    found.value, found.size = text + start, end - start
    return 1
