# cython: language_level=3, cdivision=True
"""Convert the bytes of a field to its value: texts, URLs, dates, numbers, links. Only what needs no repair.

-1, `None` and false mean "leave it to Python", never "no value". The GIL is needed only to make Python objects. Which
field a text is from is not known here.
"""

import datetime as datetime_module

from cpython.datetime cimport datetime_new, import_datetime
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport (
    AMPERSAND,
    CDATA,
    CONTROL,
    ESCAPED_TWICE,
    HIGH,
    MAX_TEXT_BYTES,
    flags_of,
    is_space,
)
from usp.scan._references cimport decode_into, has_ampersand_reference, unescape_ampersands

import_datetime()
INTERFACE = USP_INTERFACE


def bind():
    """Import what this module uses of usp."""
    from usp.scan.columns import CHANGE_FREQUENCIES

    set_frequencies([frequency.value for frequency in CHANGE_FREQUENCIES])


cdef object UTC = datetime_module.UTC
cdef dict zones = {}  # minutes east of Greenwich -> timezone


cdef uint8_t HOST[256]  # 1 for letters, digits and "_", 2 for "-" and ".", 0 for anything else
memset(HOST, 0, 256)
for _i in range(128):
    HOST[_i] = 1 if chr(_i).isalnum() or chr(_i) == "_" else 2 if chr(_i) in "-." else 0


cdef Py_ssize_t end_of_origin(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Return where the host of an http or https URL ends, or 0 if it is no absolute URL with an ASCII host."""
    cdef Py_ssize_t i = 4
    cdef const uint8_t *host
    cdef uint8_t seen = 0
    cdef int digits = 0, port = 0
    if size < 8 or (url[0] | 32) != c'h' or (url[1] | 32) != c't' or (url[2] | 32) != c't' or (url[3] | 32) != c'p':
        return 0
    if (url[4] | 32) == c's':
        i = 5
    if url[i] != c':' or url[i + 1] != c'/' or url[i + 2] != c'/':
        return 0
    i += 3
    host = url + i
    while i < size and HOST[url[i]]:
        seen |= HOST[url[i]]
        i += 1
    if not seen & 1 or host[0] == c'.':
        return 0
    if i < size and url[i] == c':':
        i += 1
        while i < size and digits < 6 and c'0' <= url[i] <= c'9':
            port = port * 10 + (url[i] - c'0')
            i += 1
            digits += 1
        if not 1 <= digits <= 5 or port > 65535:
            return 0
    return i if i == size or url[i] == c'/' or url[i] == c'?' or url[i] == c'#' else 0


cdef extern from *:
    """
    /* Whether eight bytes are digits where `form` has '0', and the same as `form` elsewhere. `mask` has 0xf0 and 0xff
       there. Digits become 0 to 9, to which 6 can be added without a carry into the high bits. */
    static inline int usp_has_form(const uint8_t *text, const char *form, const char *mask) {
        uint64_t word, forms, masks;
        memcpy(&word, text, 8);
        memcpy(&forms, form, 8);
        memcpy(&masks, mask, 8);
        word ^= forms;
        return !((word | ((word + UINT64_C(0x0606060606060606)) & UINT64_C(0xf0f0f0f0f0f0f0f0))) & masks);
    }
    """
    bint usp_has_form(const uint8_t *text, const char *form, const char *mask) noexcept nogil


cdef inline int digits2(const uint8_t *text) noexcept nogil:
    """Return the number that two digits mean."""
    return (text[0] - c'0') * 10 + (text[1] - c'0')


cdef inline bint are_digits2(const uint8_t *text) noexcept nogil:
    return c'0' <= text[0] <= c'9' and c'0' <= text[1] <= c'9'


cdef inline int days_in(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef bint parse_moment(const uint8_t *t, Py_ssize_t size, Moment *m) noexcept nogil:
    """Parse YYYY-MM-DD or YYYY-MM-DDThh:mm[:ss[.ffffff]][Z|+hh:mm]. Return false for other forms and wrong dates."""
    cdef Py_ssize_t i = 16
    cdef int hours, minutes
    if size < 10 or not usp_has_form(t, b"0000-00-", b"\xf0\xf0\xf0\xf0\xff\xf0\xf0\xff") or not are_digits2(t + 8):
        return False
    memset(m, 0, sizeof(Moment))
    m.year, m.month, m.day = digits2(t) * 100 + digits2(t + 2), digits2(t + 5), digits2(t + 8)
    if not m.year or not 1 <= m.month <= 12 or not m.day or (m.day > 28 and m.day > days_in(m.year, m.month)):
        return False
    if size == 10:
        return True
    if size < 16 or not usp_has_form(t + 8, b"00T00:00", b"\xf0\xf0\xff\xf0\xf0\xff\xf0\xf0"):
        return False
    m.has_time = True
    m.hour, m.minute = digits2(t + 11), digits2(t + 14)
    if i < size and t[i] == c':':
        if size < 19 or not are_digits2(t + 17):
            return False
        m.second = digits2(t + 17)
        i = 19
        if i < size and t[i] == c'.':
            i = parse_fraction(t, size, m)
            if i < 0:
                return False
    if m.hour > 23 or m.minute > 59 or m.second > 59:
        return False
    if i == size:
        return True
    m.has_zone = True
    if t[i] == c'Z':
        return i + 1 == size
    if size - i != 6 or t[i + 3] != c':' or (t[i] != c'+' and t[i] != c'-'):
        return False
    if not are_digits2(t + i + 1) or not are_digits2(t + i + 4):
        return False
    hours, minutes = digits2(t + i + 1), digits2(t + i + 4)
    m.offset = (hours * 60 + minutes) * (1 if t[i] == c'+' else -1)
    return hours < 24 and minutes < 60


cdef Py_ssize_t parse_fraction(const uint8_t *t, Py_ssize_t size, Moment *m) noexcept nogil:
    """Parse the digits behind the dot of a second. Return where they end, or -1 if there are none."""
    cdef Py_ssize_t i = 20
    cdef int scale = 100000
    if i == size or not c'0' <= t[i] <= c'9':
        return -1
    while i < size and c'0' <= t[i] <= c'9':
        m.microsecond += (t[i] - c'0') * scale
        scale //= 10
        i += 1
    return i


cdef object zone_of(int minutes):
    if minutes == 0:
        return UTC
    zone = zones.get(minutes)
    if zone is None:
        zone = zones[minutes] = datetime_module.timezone(datetime_module.timedelta(minutes=minutes))
    return zone


cdef object date_of(Moment *m):
    return datetime_new(
        m.year, m.month, m.day, m.hour, m.minute, m.second, m.microsecond, zone_of(m.offset) if m.has_zone else None, 0
    )


cdef uint64_t FREQUENCIES[7]  # the words, as `word_of` has them


def set_frequencies(list words not None):
    """Set the words for change frequencies, in the order of their numbers."""
    cdef bytes word
    if len(words) != 7 or not all(5 <= len(word) <= 7 for word in words):
        raise TypeError(f"frequency_of in usp/scan/_texts.pyx knows 7 words of 5 to 7 letters, not {words}")
    for i, text in enumerate(words):
        word = text.encode()
        FREQUENCIES[<int>i] = word_of(<const uint8_t *>word, len(word))


cdef inline uint64_t word_of(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return up to eight letters as one number, as if they were in lower case."""
    cdef uint64_t word = 0
    cdef Py_ssize_t i
    for i in range(size):
        word = word << 8 | text[i] | 32
    return word


cdef int frequency_of(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return the index of a change frequency, or -1 if the text is none."""
    cdef uint64_t word
    cdef int i
    if not 5 <= size <= 7:
        return -1
    word = word_of(text, size)
    for i in range(7):
        if FREQUENCIES[i] == word:
            return i
    return -1


cdef double priority_of(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return the priority, or -1 if it is written in an unusual way. The division is exact, as both numbers are."""
    cdef double number, scale = 1
    cdef Py_ssize_t i
    if not 1 <= size <= 12 or (text[0] != c'0' and text[0] != c'1'):
        return -1
    number = text[0] - c'0'
    if size == 1:
        return number
    if text[1] != c'.' or size == 2:
        return -1
    for i in range(2, size):
        if not c'0' <= text[i] <= c'9':
            return -1
        number = number * 10 + (text[i] - c'0')
        scale *= 10
    return number / scale if number <= scale else -1


cdef int64_t microseconds_of(Moment *m) noexcept nogil:
    """Return the microseconds since 1970 in UTC. http://howardhinnant.github.io/date_algorithms.html#days_from_civil"""
    cdef uint32_t year = <uint32_t>m.year - (m.month <= 2)  # it starts in March, so that a leap day is its last
    cdef uint32_t day_of_year = (153 * <uint32_t>(m.month + (-3 if m.month > 2 else 9)) + 2) // 5 + <uint32_t>m.day - 1
    cdef int64_t days = <int64_t>(year * 365 + year // 4 - year // 100 + year // 400 + day_of_year) - 719468
    cdef int64_t minutes = days * 1440 + m.hour * 60 + m.minute - m.offset
    return (minutes * 60 + m.second) * 1000000 + m.microsecond


cdef enum:
    MAX_LINK_ATTRIBUTES = 32


cdef bint parse_link(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil:
    """Read the attributes of an alternate link. Return false for other links, and for unusual ones."""
    cdef Py_ssize_t at = 0
    cdef Attribute found
    cdef int count, is_one
    memset(link, 0, sizeof(Link))
    for count in range(MAX_LINK_ATTRIBUTES):
        is_one = next_attribute(text, size, &at, &found)
        if is_one <= 0:
            return is_one == 0
        if found.name_size == 4 and memcmp(found.name, b"href", 4) == 0:
            link.is_odd |= link.href != NULL
            if link.href == NULL:
                link.href, link.href_size = found.value, found.size
        elif found.name_size == 8 and memcmp(found.name, b"hreflang", 8) == 0:
            link.is_odd |= link.hreflang != NULL or flags_of(found.value, found.size) & (CONTROL | HIGH) != 0
            if link.hreflang == NULL:
                link.hreflang, link.hreflang_size = found.value, found.size
        elif found.name_size == 3 and memcmp(found.name, b"rel", 3) == 0:
            if found.size != 9 or memcmp(found.value, b"alternate", 9):
                return False
            link.is_odd |= link.has_rel
            link.has_rel = True
        else:
            link.is_odd |= link.has_more or flags_of(found.value, found.size) != 0
            link.has_more = True
    return False


cdef bint has_ampersand_outside(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil:
    """Return whether the attributes of a link have "&" outside its href."""
    cdef const uint8_t *at = <const uint8_t *>memchr(text, c'&', <size_t>size)
    while at != NULL:
        if link.href == NULL or at < link.href or at >= link.href + link.href_size:
            return True
        at = <const uint8_t *>memchr(at + 1, c'&', <size_t>(text + size - at - 1))
    return False


cdef extern from "Python.h":
    int Py_UNICODE_ISPRINTABLE(uint32_t character) noexcept nogil


cdef Py_ssize_t character_at(const uint8_t *text, Py_ssize_t left, uint32_t *found) noexcept nogil:
    """Read the first character of a text. Return its number of bytes, or 0 if it is not UTF-8."""
    cdef uint8_t a = text[0]
    cdef Py_ssize_t size, i
    if a < 0x80:
        found[0] = a
        return 1
    size = 2 if 0xC2 <= a < 0xE0 else 3 if 0xE0 <= a < 0xF0 else 4 if 0xF0 <= a < 0xF5 else 0
    if size == 0 or size > left:
        return 0
    found[0] = a & (0xFF >> (size + 1))
    for i in range(1, size):
        if text[i] & 0xC0 != 0x80:
            return 0
        found[0] = found[0] << 6 | text[i] & 0x3F
    if size == 3 and (found[0] < 0x800 or 0xD800 <= found[0] < 0xE000):
        return 0
    return 0 if size == 4 and not 0x10000 <= found[0] < 0x110000 else size


cdef bint is_printable_utf8(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return whether a text is UTF-8 and all its characters are printable."""
    cdef uint32_t character
    cdef Py_ssize_t i = 0, step
    while i < size:
        step = character_at(text + i, size - i, &character)
        if step == 0 or not Py_UNICODE_ISPRINTABLE(character):
            return False
        i += step
    return True


cdef bint is_utf8(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    cdef uint32_t character
    cdef Py_ssize_t i = 0, step
    while i < size:
        step = character_at(text + i, size - i, &character)
        if step == 0:
            return False
        i += step
    return True


cdef bint has_visible_edges(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return whether UTF-8 begins and ends with printable characters, so that there is nothing to strip."""
    cdef uint32_t character = 0
    cdef Py_ssize_t last = size - 1
    while last > 0 and text[last] & 0xC0 == 0x80:
        last -= 1
    character_at(text, size, &character)
    if not Py_UNICODE_ISPRINTABLE(character):
        return False
    character_at(text + last, size - last, &character)
    return Py_UNICODE_ISPRINTABLE(character)


cdef bint is_text(const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil:
    """Return whether a text has nothing to repair or to strip, apart from references."""
    cdef Py_ssize_t i
    if flags & CONTROL:
        for i in range(size):
            if text[i] == 127 or (text[i] < 32 and not is_space(text[i])):
                return False
    if not flags & HIGH:
        return True
    return is_utf8(text, size) and not has_forbidden(text, size) and has_visible_edges(text, size)


cdef bint has_forbidden(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return whether UTF-8 has U+FFFE or U+FFFF, which XML forbids: https://www.w3.org/TR/xml/#charsets."""
    cdef const uint8_t *end = text + size
    cdef const uint8_t *at = <const uint8_t *>memchr(text, 0xEF, <size_t>size)
    while at != NULL:
        if at[1] == 0xBF and at[2] >= 0xBE:
            return True
        at = <const uint8_t *>memchr(at + 3, 0xEF, <size_t>(end - at - 3))
    return False


cdef Py_ssize_t unify_line_ends(uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Make CR LF, and CR alone, to LF in place. Return the new size. https://www.w3.org/TR/xml/#sec-line-ends"""
    cdef uint8_t *at = <uint8_t *>memchr(text, 13, <size_t>size)
    cdef Py_ssize_t i, n
    if at == NULL:
        return size
    i = n = at - text
    while i < size:
        if text[i] == 13:
            text[n] = 10
            i += i + 1 < size and text[i + 1] == 10
        else:
            text[n] = text[i]
        i += 1
        n += 1
    return n


cdef bint is_stripped(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return whether a text is not empty, and begins and ends with characters that nothing strips."""
    return size > 0 and text[0] != c' ' and text[size - 1] != c' ' and has_visible_edges(text, size)


cdef Py_ssize_t decoded_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil:
    """Write a text as `text_of` returns it. Return its size, or -1 to leave it to Python.

    `flags` are those of the text. NOTED is added if one of its references is a problem.
    """
    if flags[0] & ~CDATA and not is_text(text, size, flags[0]):
        return -1
    if flags[0] & CONTROL:  # first: a reference may mean a CR, which stays
        memcpy(out, text, <size_t>size)
        size = unify_line_ends(out, size)
        text = out
    if flags[0] & AMPERSAND and not flags[0] & CDATA:
        size = decode_into(out, text, size, flags)
        return size if is_stripped(out, size) else -1
    if text != out:
        memcpy(out, text, <size_t>size)
    return size


cdef Py_ssize_t unescape_html(uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Remove the escapes of HTML below those of XML, in place. Return the new size, or -1 to leave it to Python."""
    cdef uint8_t flags = 0
    if memchr(text, c'&', <size_t>size) == NULL:
        return size
    size = decode_into(text, text, size, &flags)
    return size if is_stripped(text, size) else -1


cdef Py_ssize_t text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil:
    """Write a text as `plain_text` returns it. Return its size, 0 for no text, or -1 to leave it to Python.

    `flags` are those of the text. NOTED is added if one of its references is a problem.
    """
    size = decoded_into(out, text, size, flags)
    return unescape_html(out, size) if flags[0] & AMPERSAND and size > 0 else size


cdef Py_ssize_t url_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil:
    """Write the URL that a text means, never longer than the text. Return its size, or -1 to leave it to Python.

    `flags` are those of the text. They become those of the URL, with NOTED if one of its references is a problem.
    """
    cdef Py_ssize_t n = url_text_into(out, text, size, flags)
    return n if n >= 0 and is_http_url(out, n) else -1


cdef Py_ssize_t url_text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil:
    """Write a URL as `url_into` does, whatever its scheme."""
    cdef Py_ssize_t n = size
    if flags[0] & CONTROL or size == 0:
        return -1
    if not flags[0] & AMPERSAND:
        memcpy(out, text, <size_t>size)
        return size
    if flags[0] & CDATA:
        memcpy(out, text, <size_t>size)
    else:
        n = decode_into(out, text, size, flags)
        if n <= 0:
            return -1
        flags[0] |= flags_of(out, <size_t>n)
        if flags[0] & CONTROL or out[0] == c' ' or out[n - 1] == c' ':
            return -1
    if has_ampersand_reference(out, n):
        flags[0] |= ESCAPED_TWICE
        n = unescape_ampersands(out, n)
    return n


cdef object utf8_text(const uint8_t *text, Py_ssize_t size):
    """Return a text that is UTF-8."""
    if flags_of(text, <size_t>size) & HIGH:
        return PyUnicode_DecodeUTF8(<const char *>text, size, NULL)
    return ascii_text(text, size)


cdef object high_text(const uint8_t *text, Py_ssize_t size):
    """Return a text that is not ASCII, or None if it needs repair."""
    try:
        made = PyUnicode_DecodeUTF8(<const char *>text, size, NULL)
    except UnicodeDecodeError:
        return None
    return made if made.isprintable() else None
