# cython: language_level=3, cdivision=True
"""The problems of the characters of a URL: what `url_codes` of `usp.scan.survey` finds without knowing the site."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport AMPERSAND, HIGH, SPECIAL
from usp.scan._check cimport U503, U504, U505, U510, U518

INTERFACE = USP_INTERFACE


cdef enum:  # kinds of bytes in a URL
    UNESCAPED = 1
    PERCENT = 2
    FRAGMENT = 4
    HEXADECIMAL = 8

cdef uint8_t BYTES_OF_URLS[256]
memset(BYTES_OF_URLS, 0, 256)
for _i in range(128):
    BYTES_OF_URLS[_i] = (
        UNESCAPED if chr(_i) in ' "<>\\^`{|}'
        else PERCENT if chr(_i) == "%"
        else FRAGMENT if chr(_i) == "#"
        else HEXADECIMAL if chr(_i) in "0123456789abcdefABCDEF"
        else 0
    )


cdef uint32_t codes_of_url(const uint8_t *url, Py_ssize_t size, uint8_t flags, Py_ssize_t too_long) noexcept nogil:
    """Return the bits of the codes of a URL. `flags` say which bytes it may have."""
    cdef uint8_t seen = 0
    cdef Py_ssize_t i, length = size
    cdef uint32_t codes = 0
    if flags & AMPERSAND and has_reference(url, size):
        codes |= <uint32_t>1 << U518
    if not flags & SPECIAL and size < too_long:
        return codes
    for i in range(size):
        seen |= BYTES_OF_URLS[url[i]]
    if flags & HIGH:
        codes |= 1 << U505
        for i in range(size):
            length -= url[i] & 0xC0 == 0x80
    if length >= too_long:
        codes |= 1 << U503
    if seen & FRAGMENT:
        codes |= 1 << U510
    if seen & PERCENT and has_double_escape(url, size):
        codes |= <uint32_t>1 << U518
    if seen & UNESCAPED or (seen & PERCENT and not is_escaped(url, size)):
        codes |= 1 << U504
    return codes


cdef bint has_reference(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Return whether `usp.scan.survey._REFERENCE_LEFT` finds something in a URL."""
    cdef const uint8_t *end = url + size
    cdef const uint8_t *at = url
    cdef const uint8_t *digit
    cdef Py_ssize_t count
    cdef bint is_hexadecimal
    if memchr(url, c';', <size_t>size) == NULL:
        return False
    while True:
        at = <const uint8_t *>memchr(at, c'&', <size_t>(end - at))
        if at == NULL:
            return False
        at += 1
        if starts_with(at, end, b"quot;", 5) or starts_with(at, end, b"apos;", 5):
            return True
        if starts_with(at, end, b"lt;", 3) or starts_with(at, end, b"gt;", 3):
            return True
        if at < end and at[0] == c'#':
            digit = at + 1
            is_hexadecimal = digit < end and digit[0] | 32 == c'x'
            digit += is_hexadecimal
            count = 0
            while digit < end and count < 8 and (
                c'0' <= digit[0] <= c'9' or (is_hexadecimal and BYTES_OF_URLS[digit[0]] & HEXADECIMAL)
            ):
                digit += 1
                count += 1
            if 1 <= count <= (6 if is_hexadecimal else 7) and digit < end and digit[0] == c';':
                return True


cdef inline bint starts_with(const uint8_t *at, const uint8_t *end, const char *text, Py_ssize_t size) noexcept nogil:
    return end - at >= size and memcmp(at, text, <size_t>size) == 0


cdef bint has_double_escape(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Return what `usp.scan.survey.has_double_escape` does."""
    cdef Py_ssize_t i
    cdef uint8_t a, b
    for i in range(size - 4):
        if url[i] != c'%' or url[i + 1] != c'2' or url[i + 2] != c'5':
            continue
        a, b = url[i + 3], url[i + 4]
        if not BYTES_OF_URLS[a] & BYTES_OF_URLS[b] & HEXADECIMAL:
            continue
        if a == c'2' or (a == c'3' and b > c'9'):
            return True
        if a < c'8' or size - i < 10 or url[i + 5] != c'%' or url[i + 6] != c'2' or url[i + 7] != c'5':
            continue
        a, b = url[i + 8], url[i + 9]
        if BYTES_OF_URLS[b] & HEXADECIMAL and (a == c'8' or a == c'9' or a | 32 == c'a' or a | 32 == c'b'):
            return True
    return False


cdef bint is_escaped(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Return whether two hexadecimal digits follow each "%"."""
    cdef Py_ssize_t i
    for i in range(size):
        if url[i] == c'%':
            if size - i < 3 or not BYTES_OF_URLS[url[i + 1]] & BYTES_OF_URLS[url[i + 2]] & HEXADECIMAL:
                return False
    return True
