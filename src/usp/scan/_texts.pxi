# From the bytes of a field to its value, for what is as it should be. What is not is left to Python: `None` or -1 here
# means "not by me", never "no value".

cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar)
    void *PyUnicode_DATA(object)

cdef object parse_date, comma_separated, parse_change_frequency, parse_priority, plain_text, text_of

cdef object UTC = datetime_module.UTC
cdef dict zones = {}  # minutes east of Greenwich -> timezone


cdef inline object ascii_text(const uint8_t *text, Py_ssize_t size):
    cdef object made = PyUnicode_New(size, 127)
    memcpy(PyUnicode_DATA(made), text, size)
    return made


cdef struct Reference:
    Py_ssize_t size
    uint8_t character


cdef inline Reference reference_at(const uint8_t *text, Py_ssize_t left) noexcept nogil:
    """The reference to one of the five characters of XML that the text starts with; of size 0 if there is none."""
    cdef Reference found
    found.size, found.character = 0, 0
    if left >= 5 and memcmp(text, b"&amp;", 5) == 0:
        found.size, found.character = 5, c'&'
    elif left >= 4 and memcmp(text, b"&lt;", 4) == 0:
        found.size, found.character = 4, c'<'
    elif left >= 4 and memcmp(text, b"&gt;", 4) == 0:
        found.size, found.character = 4, c'>'
    elif left >= 6 and memcmp(text, b"&quot;", 6) == 0:
        found.size, found.character = 6, c'"'
    elif left >= 6 and memcmp(text, b"&apos;", 6) == 0:
        found.size, found.character = 6, c"'"
    return found


cdef Py_ssize_t unescape_into(uint8_t *out, const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """The text with its references to the five characters of XML replaced; -1 if it has any other."""
    cdef const uint8_t *end = text + size
    cdef const uint8_t *ampersand
    cdef uint8_t *start = out
    cdef Reference reference
    while True:
        ampersand = <const uint8_t *>memchr(text, c'&', end - text)
        if ampersand == NULL:
            memcpy(out, text, end - text)
            return out - start + (end - text)
        memcpy(out, text, ampersand - text)
        out += ampersand - text
        reference = reference_at(ampersand, end - ampersand)
        if reference.size == 0:
            return -1
        out[0] = reference.character
        out += 1
        text = ampersand + reference.size


cdef bint has_ampersand_reference(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Whether "&amp;" stands in the text: escaped twice."""
    cdef const uint8_t *end = text + size
    while True:
        text = <const uint8_t *>memchr(text, c'&', end - text)
        if text == NULL:
            return False
        if end - text >= 5 and memcmp(text, b"&amp;", 5) == 0:
            return True
        text += 1


cdef uint8_t HOST[256]  # 1 for what a host is made of, 2 for what may stand beside it
memset(HOST, 0, 256)
for _i in range(128):
    HOST[_i] = 1 if chr(_i).isalnum() or chr(_i) == "_" else 2 if chr(_i) in "-." else 0


cdef inline bint is_http_url(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Whether this is an absolute http or https URL with a host of plain letters: nearly all are."""
    return end_of_origin(url, size) > 0


cdef Py_ssize_t end_of_origin(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    """Where the scheme and host end of an absolute http or https URL with a host of plain letters; 0 if it is none."""
    cdef Py_ssize_t i = 4
    cdef uint8_t seen = 0
    cdef int digits = 0, port = 0
    if size < 8 or (url[0] | 32) != c'h' or (url[1] | 32) != c't' or (url[2] | 32) != c't' or (url[3] | 32) != c'p':
        return 0
    if (url[4] | 32) == c's':
        i = 5
    if url[i] != c':' or url[i + 1] != c'/' or url[i + 2] != c'/':
        return 0
    i += 3
    while i < size and HOST[url[i]]:
        seen |= HOST[url[i]]
        i += 1
    if not seen & 1:
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


cdef inline int digits2(const uint8_t *text) noexcept nogil:
    """The number of two digits; far too large where they are none."""
    cdef unsigned int a = text[0] - c'0', b = text[1] - c'0'
    return a * 10 + b if a < 10 and b < 10 else 1000


ctypedef struct Moment:
    int year, month, day, hour, minute, second, microsecond
    int offset  # minutes east of Greenwich
    bint has_zone, has_time


cdef inline int days_in(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef bint parse_moment(const uint8_t *t, Py_ssize_t size, Moment *m) noexcept nogil:
    """YYYY-MM-DD, or YYYY-MM-DDThh:mm[:ss[.ffffff]][Z|+hh:mm]; false for any other form, and for impossible dates."""
    cdef Py_ssize_t i
    cdef int scale = 100000, sign, hours, minutes
    memset(m, 0, sizeof(Moment))
    if size < 10 or t[4] != c'-' or t[7] != c'-':
        return False
    if digits2(t) > 99 or digits2(t + 2) > 99:
        return False
    m.year, m.month, m.day = digits2(t) * 100 + digits2(t + 2), digits2(t + 5), digits2(t + 8)
    if not 1 <= m.year <= 9999 or not 1 <= m.month <= 12 or not 1 <= m.day <= days_in(m.year, m.month):
        return False
    if size == 10:
        return True
    if size < 16 or t[10] != c'T' or t[13] != c':':
        return False
    m.has_time = True
    m.hour, m.minute = digits2(t + 11), digits2(t + 14)
    i = 16
    if i < size and t[i] == c':':
        if size < 19:
            return False
        m.second = digits2(t + 17)
        i = 19
        if i < size and t[i] == c'.':
            i += 1
            if i == size or not c'0' <= t[i] <= c'9':
                return False
            while i < size and c'0' <= t[i] <= c'9':
                m.microsecond += (t[i] - c'0') * scale
                scale //= 10
                i += 1
    if m.hour > 23 or m.minute > 59 or m.second > 59:
        return False
    if i == size:
        return True
    m.has_zone = True
    if t[i] == c'Z':
        return i + 1 == size
    if size - i != 6 or t[i + 3] != c':' or (t[i] != c'+' and t[i] != c'-'):
        return False
    sign = 1 if t[i] == c'+' else -1
    hours, minutes = digits2(t + i + 1), digits2(t + i + 4)
    m.offset = sign * (hours * 60 + minutes)
    return hours < 24 and minutes < 60


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


cdef uint64_t FREQUENCIES[7]  # their bytes


cdef int bind_texts() except -1:
    global parse_date, comma_separated, parse_change_frequency, parse_priority, plain_text, text_of
    from usp.scan.columns import CHANGE_FREQUENCIES
    from usp.scan.dates import parse_date
    from usp.scan.values import comma_separated, parse_change_frequency, parse_priority, plain_text, text_of

    set_frequencies([frequency.value for frequency in CHANGE_FREQUENCIES])
    return 0


def set_frequencies(list words not None):
    """Set the words for change frequencies, in the order of their numbers."""
    cdef bytes word
    if len(words) != 7 or not all(5 <= len(word) <= 7 for word in words):
        raise TypeError(f"frequency_of in usp/scan/_texts.pxi knows 7 words of 5 to 7 letters, not {words}")
    for i, text in enumerate(words):
        word = text.encode().ljust(8, b"\0")
        memcpy(&FREQUENCIES[<int>i], <const char *>word, 8)


cdef inline int frequency_of(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """The number of a change frequency, -1 if it is none."""
    cdef uint8_t lower[8]
    cdef uint64_t word
    cdef Py_ssize_t i
    if not 5 <= size <= 7:
        return -1
    memset(lower, 0, 8)
    for i in range(size):
        lower[i] = text[i] | 32
    memcpy(&word, lower, 8)
    for i in range(7):
        if FREQUENCIES[i] == word:
            return <int>i
    return -1


cdef double priority_of(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """The priority, -1 if it is not written as usual. Both numbers that are divided are exact, so the result is."""
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
    """Since 1970 in UTC. http://howardhinnant.github.io/date_algorithms.html#days_from_civil"""
    cdef int64_t year = m.year - (m.month <= 2)
    cdef int64_t era = year // 400  # years are positive
    cdef int64_t year_of_era = year - era * 400
    cdef int64_t day_of_year = (153 * (m.month + (-3 if m.month > 2 else 9)) + 2) // 5 + m.day - 1
    cdef int64_t day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    cdef int64_t minutes = (era * 146097 + day_of_era - 719468) * 1440 + m.hour * 60 + m.minute - m.offset
    return (minutes * 60 + m.second) * 1000000 + m.microsecond


cdef enum:
    MAX_LINK_ATTRIBUTES = 32

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


cdef inline int next_attribute(const uint8_t *text, Py_ssize_t size, Py_ssize_t *at, Attribute *found) noexcept nogil:
    """1 for an attribute; 0 if there are no more; -1 for one that is not written as usual."""
    cdef Py_ssize_t i = at[0], start, end
    cdef const uint8_t *closing
    while i < size and is_space(text[i]):
        i += 1
    if i == size:
        return 0
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


cdef bint parse_link(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil:
    """The attributes of a link that is an alternate; false for one that is not, or is not written as usual."""
    cdef Py_ssize_t at = 0
    cdef Attribute found
    cdef int count, is_one
    memset(link, 0, sizeof(Link))
    for count in range(MAX_LINK_ATTRIBUTES):
        is_one = next_attribute(text, size, &at, &found)
        if is_one <= 0:
            return is_one == 0
        if found.name_size == 4 and memcmp(found.name, b"href", 4) == 0 and link.href == NULL:
            link.href, link.href_size = found.value, found.size
        elif found.name_size == 8 and memcmp(found.name, b"hreflang", 8) == 0 and link.hreflang == NULL:
            link.hreflang, link.hreflang_size = found.value, found.size
        elif found.name_size == 3 and memcmp(found.name, b"rel", 3) == 0:
            if found.size != 9 or memcmp(found.value, b"alternate", 9):
                return False
    return False


cdef bint has_ampersand_outside(const uint8_t *text, Py_ssize_t size, Link *link) noexcept nogil:
    """Whether "&" stands in the attributes of a link elsewhere than in its href."""
    cdef const uint8_t *at = <const uint8_t *>memchr(text, c'&', <size_t>size)
    while at != NULL:
        if link.href == NULL or at < link.href or at >= link.href + link.href_size:
            return True
        at = <const uint8_t *>memchr(at + 1, c'&', <size_t>(text + size - at - 1))
    return False


cdef enum:
    MEMO_SLOTS = 1024
    MEMO_KEY_BYTES = 39

ctypedef struct MemoSlot:
    PyObject *value
    uint8_t size
    uint8_t key[MEMO_KEY_BYTES]


cdef class Memo:
    """Values of short texts that repeat: each is converted once, or again where two texts want the same slot."""

    cdef MemoSlot slots[MEMO_SLOTS]

    def __cinit__(self):
        memset(self.slots, 0, sizeof(self.slots))

    def __dealloc__(self):
        cdef int i
        for i in range(MEMO_SLOTS):
            Py_XDECREF(self.slots[i].value)

    cdef inline MemoSlot *slot(self, const uint8_t *key, Py_ssize_t size) noexcept:
        cdef uint32_t h = 2166136261u
        cdef Py_ssize_t i
        for i in range(size):
            h = (h ^ key[i]) * 16777619u
        return &self.slots[(h ^ (h >> 16)) & (MEMO_SLOTS - 1)]

    cdef inline object get(self, const uint8_t *key, Py_ssize_t size):
        """The value of a text; None if it is not here."""
        cdef MemoSlot *slot = self.slot(key, size)
        if slot.value != NULL and slot.size == size and memcmp(slot.key, key, size) == 0:
            return <object>slot.value
        return None

    cdef inline void put(self, const uint8_t *key, Py_ssize_t size, object value):
        cdef MemoSlot *slot
        cdef PyObject *old
        if size > MEMO_KEY_BYTES:
            return
        slot = self.slot(key, size)
        old = slot.value
        Py_INCREF(value)
        slot.value = <PyObject *>value
        slot.size = <uint8_t>size
        memcpy(slot.key, key, size)
        Py_XDECREF(old)
