from libc.stdint cimport uint8_t

cdef Py_ssize_t decode_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil
cdef bint has_ampersand_reference(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t unescape_ampersands(uint8_t *text, Py_ssize_t size) noexcept nogil
