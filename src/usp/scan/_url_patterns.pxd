cimport cython
from libc.stdint cimport uint8_t

ctypedef struct Text:
    const uint8_t *start
    Py_ssize_t size
    int number  # of a site: 1 + the bit of its code, or 0; of the first text of a sequence: how many follow


@cython.final
cdef class URLPatterns:
    cdef list kept  # keeps the bytes of the texts alive
    cdef Text *sites
    cdef Text *sequences  # one after the other
    cdef Text *hosts  # of the sites, without "www."
    cdef bint has_hosts
    cdef int site_count, text_count, host_count
    cdef Text common  # what all sequences start with
    cdef uint8_t next_bytes[256]  # which bytes may follow that

    cdef Text text(self, str text, int number) except *
    cdef void find_common(self) noexcept
    cdef int site_code(self, const uint8_t *url, Py_ssize_t size) noexcept nogil
    cdef bint is_of_others(self, const uint8_t *url, Py_ssize_t origin) noexcept nogil
    cdef bint may_be_disallowed(self, const uint8_t *url, Py_ssize_t size, uint8_t flags) noexcept nogil
