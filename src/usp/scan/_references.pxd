from libc.stdint cimport uint8_t

cdef enum ReferenceKind:
    NO_REFERENCE  # just an ampersand
    GOOD_REFERENCE
    OTHER_NAME  # not one of XML's
    DROPPED  # the number of a control character
    ONLY_PYTHON_KNOWS

cdef ReferenceKind reference_kind(const uint8_t *text, Py_ssize_t left) noexcept nogil
cdef Py_ssize_t decode_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil
cdef bint has_ampersand_reference(const uint8_t *text, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t unescape_ampersands(uint8_t *text, Py_ssize_t size) noexcept nogil
