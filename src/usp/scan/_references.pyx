# cython: language_level=3, cdivision=True
"""Replace the references of a text: XML's five names, the names of HTML 4, and numbers. As `usp.scan.values.unescape`.

All of it works on UTF-8, without the GIL. A reference that is dropped, or that only Python knows, is left to Python.
Which references are problems is only marked here, with NOTED.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport NOTED, is_space

INTERFACE = USP_INTERFACE
XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})  # https://www.w3.org/TR/xml/#sec-predefined-ent


def bind():
    """Set the names that are known here: those of HTML 4 and of XML. Other names are hardly ever used."""
    from html.entities import html5, name2codepoint

    set_entities({name: html5[f"{name};"] for name in (*name2codepoint, "apos")})


cdef enum:
    MAX_ENTITY_BYTES = 8  # of a name
    MAX_NAME_BYTES = 32  # a longer name is not one, as in `usp.scan.values`
    ENTITY_SLOTS = 1024
    MAX_DECIMAL_DIGITS = 8
    MAX_HEX_DIGITS = 6

ctypedef struct Character:
    uint8_t size
    uint8_t utf8[4]
    uint8_t flags  # NOTED, or 0

ctypedef struct Entity:
    uint64_t name  # padded with zeros; 0 in a free slot
    Character character

cdef struct Reference:
    Py_ssize_t size  # 0 if there is none, -1 to leave it to Python
    Character character

cdef Entity ENTITIES[ENTITY_SLOTS]


cdef inline uint32_t entity_slot(uint64_t name) noexcept nogil:
    return <uint32_t>((name * <uint64_t>0x9E3779B97F4A7C15) >> 54)


def set_entities(dict named not None):
    """Set the characters that names of HTML stand for. References to other names are left to Python."""
    cdef bytes name, utf8
    cdef Entity entity
    cdef uint32_t slot
    memset(ENTITIES, 0, sizeof(ENTITIES))
    for key, character in named.items():
        name, utf8 = key.encode(), character.encode()
        if len(name) > MAX_ENTITY_BYTES or len(utf8) > 4 or len(utf8) > len(name) + 2:
            raise ValueError(f"set_entities in usp/scan/_references.pyx has no room for &{key};")
        memset(&entity, 0, sizeof(Entity))
        memcpy(&entity.name, <const char *>name, len(name))
        memcpy(entity.character.utf8, <const char *>utf8, len(utf8))
        entity.character.size = <uint8_t>len(utf8)
        entity.character.flags = 0 if key in XML_NAMES else NOTED
        slot = entity_slot(entity.name)
        while ENTITIES[slot].name:
            slot = (slot + 1) & (ENTITY_SLOTS - 1)
        ENTITIES[slot] = entity


cdef inline bint is_letter(uint8_t c) noexcept nogil:
    return c'a' <= (c | 32) <= c'z'


cdef inline bint is_digit(uint8_t c) noexcept nogil:
    return c'0' <= c <= c'9'


cdef Reference named_reference(const uint8_t *text, Py_ssize_t left) noexcept nogil:
    """Read `&name;`."""
    cdef Reference found
    cdef uint64_t name = 0
    cdef Py_ssize_t end = 1
    cdef uint32_t slot
    memset(&found, 0, sizeof(Reference))
    while end < left and end <= MAX_NAME_BYTES and (is_letter(text[end]) or is_digit(text[end])):
        end += 1
    if end < 3 or end >= left or text[end] != c';' or not is_letter(text[1]):
        return found
    found.size = -1
    if end - 1 <= MAX_ENTITY_BYTES:
        memcpy(&name, text + 1, <size_t>(end - 1))
        slot = entity_slot(name)
        while ENTITIES[slot].name:
            if ENTITIES[slot].name == name:
                found.size, found.character = end + 1, ENTITIES[slot].character
                break
            slot = (slot + 1) & (ENTITY_SLOTS - 1)
    return found


cdef Reference numeric_reference(const uint8_t *text, Py_ssize_t left) noexcept nogil:
    """Read `&#8217;` or `&#x2019;`."""
    cdef Reference found
    cdef Py_ssize_t at = 2, first
    cdef uint32_t code = 0
    cdef uint8_t c
    memset(&found, 0, sizeof(Reference))
    if (text[2] | 32) == c'x':
        at = first = 3
        while at < left and at - first <= MAX_HEX_DIGITS:
            c = text[at]
            if is_digit(c):
                code = code * 16 + (c - c'0')
            elif c'a' <= (c | 32) <= c'f':
                code = code * 16 + ((c | 32) - c'a' + 10)
            else:
                break
            at += 1
        if at - first > MAX_HEX_DIGITS:
            return found
    else:
        first = 2
        while at < left and at - first <= MAX_DECIMAL_DIGITS and is_digit(text[at]):
            code = code * 10 + (text[at] - c'0')
            at += 1
        if at < left and text[at] >= 0x80:
            found.size = -1  # Python knows other digits, too
            return found
        if at - first > MAX_DECIMAL_DIGITS:
            return found
    if at == first or at >= left or text[at] != c';':
        return found
    found.size = at + 1 if put_character(&found.character, code) else -1
    if text[2] == c'X' or not is_allowed(code):
        found.character.flags = NOTED
    return found


cdef inline bint is_allowed(uint32_t code) noexcept nogil:
    """Return whether XML allows references to a character, which is no control: https://www.w3.org/TR/xml/#charsets."""
    return code < 0xD800 or 0xE000 <= code < 0xFFFE or 0xFFFF < code <= 0x10FFFF


cdef bint put_character(Character *character, uint32_t code) noexcept nogil:
    """Encode the character of a number as UTF-8. Return false for controls, which are dropped or noted."""
    cdef uint8_t *utf8 = character.utf8
    if code < 0x80:
        utf8[0], character.size = <uint8_t>code, 1
        return is_space(<uint8_t>code) or 32 < code < 127
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        code = 0xFFFD
    if code < 0x800:
        utf8[0], character.size = <uint8_t>(0xC0 | code >> 6), 2
    elif code < 0x10000:
        utf8[0], utf8[1], character.size = <uint8_t>(0xE0 | code >> 12), <uint8_t>(0x80 | code >> 6 & 0x3F), 3
    else:
        utf8[0], utf8[1] = <uint8_t>(0xF0 | code >> 18), <uint8_t>(0x80 | code >> 12 & 0x3F)
        utf8[2], character.size = <uint8_t>(0x80 | code >> 6 & 0x3F), 4
    utf8[character.size - 1] = <uint8_t>(0x80 | code & 0x3F)
    return True


cdef inline Reference reference_at(const uint8_t *text, Py_ssize_t left) noexcept nogil:
    """Read the reference at the start of a text, which starts with "&"."""
    cdef Reference found
    if left >= 5 and memcmp(text, b"&amp;", 5) == 0:
        found.size, found.character.size, found.character.utf8[0], found.character.flags = 5, 1, c'&', 0
        return found
    if left >= 4:
        return numeric_reference(text, left) if text[1] == c'#' else named_reference(text, left)
    found.size = 0
    return found


cdef ReferenceKind reference_kind(const uint8_t *text, Py_ssize_t left) noexcept nogil:
    """Return what kind of reference starts with the "&" at the start of a text."""
    cdef Reference found
    if left < 4:
        return NO_REFERENCE
    if text[1] != c'#':
        found = named_reference(text, left)
        if found.size == 0:
            return NO_REFERENCE
        return GOOD_REFERENCE if found.size > 0 and not found.character.flags & NOTED else OTHER_NAME
    found = numeric_reference(text, left)
    if found.size >= 0:
        return GOOD_REFERENCE if found.size else NO_REFERENCE
    return DROPPED if is_dropped(text, left) else ONLY_PYTHON_KNOWS


cdef bint is_dropped(const uint8_t *text, Py_ssize_t left) noexcept nogil:
    """Return whether `&#1;` stands for a control character. It is known to be a number of ASCII digits, or no number."""
    cdef Py_ssize_t at = 3 if (text[2] | 32) == c'x' else 2
    cdef uint32_t code = 0
    while at < left and text[at] != c';':
        if text[at] >= 0x80:
            return False
        code = code * (16 if (text[2] | 32) == c'x' else 10)
        code += text[at] - c'0' if is_digit(text[at]) else (text[at] | 32) - c'a' + 10
        at += 1
    return code < 32


cdef Py_ssize_t decode_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t *flags) noexcept nogil:
    """Write a text with its references replaced. Return its size, or -1 to leave it to Python.

    It never becomes longer, so `out` may be the text. Any other "&" stays, and sets NOTED, as names of HTML do.
    """
    cdef const uint8_t *end = text + size
    cdef const uint8_t *ampersand
    cdef uint8_t *start = out
    cdef Reference reference
    cdef int i
    while True:
        ampersand = <const uint8_t *>memchr(text, c'&', <size_t>(end - text))
        if ampersand == NULL:
            ampersand = end
        memmove(out, text, <size_t>(ampersand - text))
        out += ampersand - text
        if ampersand == end:
            return out - start
        reference = reference_at(ampersand, end - ampersand)
        if reference.size < 0:
            return -1
        if reference.size == 0:
            flags[0] |= NOTED
            out[0] = c'&'
            out += 1
            text = ampersand + 1
            continue
        flags[0] |= reference.character.flags
        text = ampersand + reference.size
        for i in range(reference.character.size):
            out[i] = reference.character.utf8[i]
        out += reference.character.size


cdef bint has_ampersand_reference(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return whether a text has "&amp;", that is, was escaped twice."""
    cdef const uint8_t *end = text + size
    while True:
        text = <const uint8_t *>memchr(text, c'&', end - text)
        if text == NULL:
            return False
        if end - text >= 5 and memcmp(text, b"&amp;", 5) == 0:
            return True
        text += 1


cdef Py_ssize_t unescape_ampersands(uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Replace each "&amp;" by "&", in place. Return the new size."""
    cdef const uint8_t *at = text
    cdef const uint8_t *end = text + size
    cdef const uint8_t *ampersand
    cdef uint8_t *out = text
    while True:
        ampersand = <const uint8_t *>memchr(at, c'&', <size_t>(end - at))
        if ampersand == NULL:
            memmove(out, at, <size_t>(end - at))
            return out - text + (end - at)
        memmove(out, at, <size_t>(ampersand + 1 - at))
        out += ampersand + 1 - at
        at = ampersand + (5 if end - ampersand >= 5 and memcmp(ampersand, b"&amp;", 5) == 0 else 1)
