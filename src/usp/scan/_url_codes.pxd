from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t codes_of_url(const uint8_t *url, Py_ssize_t size, uint8_t flags, Py_ssize_t too_long) noexcept nogil
