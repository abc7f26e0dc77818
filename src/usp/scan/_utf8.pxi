# Texts that are not ASCII, or have references: which of them are as they were meant, without asking Python.

cdef extern from "Python.h":
    int Py_UNICODE_ISPRINTABLE(uint32_t character) noexcept nogil


cdef inline Py_ssize_t character_at(const uint8_t *text, Py_ssize_t left, uint32_t *found) noexcept nogil:
    """How many bytes the character has that a text begins with; 0 if it is not UTF-8."""
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
    """Whether a text is UTF-8, and all of it can be seen."""
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


cdef bint is_edged(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Whether UTF-8 begins and ends with what can be seen, so that there is nothing to be stripped."""
    cdef uint32_t character = 0
    cdef Py_ssize_t last = size - 1
    while last > 0 and text[last] & 0xC0 == 0x80:
        last -= 1
    character_at(text, size, &character)
    if not Py_UNICODE_ISPRINTABLE(character):
        return False
    character_at(text + last, size - last, &character)
    return Py_UNICODE_ISPRINTABLE(character)


cdef bint is_url_line(const uint8_t *line, Py_ssize_t size) noexcept nogil:
    """Whether a line is a URL and nothing else, with nothing in it or around it to be put right."""
    cdef uint8_t last = line[size - 1], unseen = 0, high = 0
    cdef Py_ssize_t i
    if size > MAX_TEXT_BYTES or not is_http_url(line, size):
        return False
    if last == c'<' or last == c'>' or last == c'"' or last == c"'" or last == c'`' or last == c']':
        return False
    if size > 3 and line[size - 3] == 0xE2 and line[size - 2] == 0x80 and 0x98 <= last <= 0x9D:
        return False  # perhaps a quotation mark
    for i in range(size):
        unseen |= (line[i] <= 32) | (line[i] == 127)
        high |= line[i]
    return not unseen and (high < 128 or is_printable_utf8(line, size))


cdef bint has_reference(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Whether a text may have a reference of any kind."""
    cdef const uint8_t *end = text + size
    while True:
        text = <const uint8_t *>memchr(text, c'&', <size_t>(end - text))
        if text == NULL:
            return False
        text += 1
        if text < end and text[0] == c'#':
            return True
        while text < end and (c'a' <= (text[0] | 32) <= c'z' or c'0' <= text[0] <= c'9'):
            text += 1
        if text < end and text[0] == c';':
            return True


cdef bint is_text(const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil:
    """Whether a text, of which references may be left, has nothing to be put right or stripped."""
    cdef Py_ssize_t i
    if flags & CONTROL:
        for i in range(size):
            if text[i] == 127 or (text[i] < 32 and not is_space(text[i])):
                return False
    return not flags & HIGH or (is_utf8(text, size) and is_edged(text, size))


cdef Py_ssize_t text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil:
    """The same as `Entry.text`: at most as many bytes, none for no text; -1 if that is for Python to say."""
    if flags & ~CDATA and not is_text(text, size, flags):
        return -1
    if flags & AMPERSAND and not flags & CDATA:
        size = unescape_into(out, text, size)
    else:
        memcpy(out, text, <size_t>size)
    return -1 if flags & AMPERSAND and size > 0 and has_reference(out, size) else size
