# cython: language_level=3, cdivision=True
"""What the compiled tokenizer and scanner share: kinds of bytes, the log of problems, and the attributes of a tag."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError, PyDict_SetItem
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memchr

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport AMPERSAND, CONTROL, HIGH, flags_of
from usp.scan._texts cimport ascii_text

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)

# C variables: a global name of a module is looked up in a dictionary each time.
cdef object EntryCodes, UNLOGGED, ProblemLog, decode_field, unescape, break_pattern
cdef Py_ssize_t MAX_ATTRIBUTES, KEPT
cdef tuple VOID_NAMES = ()
cdef uint8_t CLASSES[256]


def bind():
    """Import what this module uses of usp."""
    global EntryCodes, UNLOGGED, ProblemLog, decode_field, unescape, break_pattern, VOID_NAMES, MAX_ATTRIBUTES, KEPT
    cdef int c
    from usp.objects import problem
    from usp.scan.entry_pages import EntryCodes
    from usp.scan import tokens, values, vocabulary
    from usp.scan.encodings import decode_field

    UNLOGGED, ProblemLog, KEPT = problem.UNLOGGED, problem.ProblemLog, problem.KEPT_PER_CODE
    unescape, break_pattern, MAX_ATTRIBUTES = values.unescape, tokens._LINE_END_OR_TAB, tokens.MAX_ATTRIBUTES
    VOID_NAMES = tuple(sorted(vocabulary.VOID_TAGS))
    for c in range(256):
        CLASSES[c] = 0
        if not is_blank(c) and c not in b"<>/!?=\"'&":
            CLASSES[c] |= IN_NAME
        if chr(c).isascii() and chr(c).isalpha() or c == c'_':
            CLASSES[c] |= STARTS_LEAF | STARTS_NAME
        if c == c':' or c >= 128:
            CLASSES[c] |= STARTS_NAME
        if not CLASSES[c] & STARTS_NAME and c not in b"/!?":
            CLASSES[c] |= STRAY_AFTER
        if not is_blank(c) and c not in b"\"'<>":
            CLASSES[c] |= IN_BARE_VALUE
            if c not in b"=/":
                CLASSES[c] |= IN_ATTRIBUTE_NAME
    for name in VOID_NAMES:
        CLASSES[<int>name[0]] |= STARTS_VOID
        CLASSES[<int>name.upper()[0]] |= STARTS_VOID


cdef const uint8_t *classes() noexcept nogil:
    """Return the kinds of each byte."""
    return CLASSES


cdef Py_ssize_t leading_blanks(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    """Return how much white space a text starts with."""
    cdef Py_ssize_t i = 0
    while i < size and is_blank(text[i]):
        i += 1
    return i


cdef bint is_void(const uint8_t *name, Py_ssize_t size) noexcept:
    """Return whether this is the name of a tag that is never closed."""
    if not CLASSES[name[0]] & STARTS_VOID or size > 16:
        return False
    return PyBytes_FromStringAndSize(<const char *>name, size).lower() in VOID_NAMES


@cython.final
cdef class Log:
    """A log of problems. It makes the text of a problem only if somebody will see it."""

    def __cinit__(self, log):
        self.log = log
        self.is_used = log is not UNLOGGED
        self.counts = log.counts if type(log) is ProblemLog else None
        self.logged = log.logged if type(log) is EntryCodes else None

    cdef bint keeps(self, str code) except -1:
        """Return whether the log keeps the next problem of this code. If not, it only counts it."""
        cdef PyObject *count
        if not self.is_used:
            return False
        if self.logged is not None:
            return False
        if self.counts is None:
            return self.log.keeps(code)
        count = PyDict_GetItemWithError(self.counts, code)
        return count == NULL or <Py_ssize_t><object>count < KEPT

    cdef int count(self, str code, Py_ssize_t number, Py_ssize_t at) except -1:
        """Count problems that the log does not keep. The last of them is at an offset."""
        cdef PyObject *count
        if self.counts is not None:
            count = PyDict_GetItemWithError(self.counts, code)
            PyDict_SetItem(self.counts, code, number if count == NULL else number + <Py_ssize_t><object>count)
        elif self.logged is not None:
            PyDict_SetItem(self.logged, code, at)
        elif self.is_used:
            self.log.count(code, number, at)
        return 0

    cdef int add(self, str code, Py_ssize_t at, str text, str where) except -1:
        """Log a problem."""
        if self.keeps(code):
            self.log.add(code, at, text=text, where=where)
        else:
            self.count(code, 1, at)
        return 0


cdef dict attributes_of(const uint8_t *raw, Py_ssize_t size, note):
    """Return the attributes of a start tag by lower-case name, as `usp.scan.tokens.attributes` does."""
    cdef dict found = {}
    cdef Py_ssize_t at = 0, name, name_end, value, end, after, count = 0
    cdef const uint8_t *closing
    while True:
        while at < size and not CLASSES[raw[at]] & IN_ATTRIBUTE_NAME:
            at += 1
        if at == size or count == MAX_ATTRIBUTES:
            return found
        count += 1
        name = at
        at = name_end = end_of(CLASSES, raw, at, size, IN_ATTRIBUTE_NAME)
        after = at
        while after < size and is_blank(raw[after]):
            after += 1
        if after == size or raw[after] != c'=':
            continue
        after += 1
        while after < size and is_blank(raw[after]):
            after += 1
        if after == size:
            continue
        if raw[after] == c'"' or raw[after] == c"'":
            value = after + 1
            closing = <const uint8_t *>memchr(raw + value, raw[after], <size_t>(size - value)) if value < size else NULL
            if closing == NULL:
                continue
            end = closing - raw
            at = end + 1
        else:
            value = after
            at = end = end_of(CLASSES, raw, after, size, IN_BARE_VALUE)
            if end == value:
                at = name_end
                continue
        key = name_text(raw + name, name_end - name)
        text = value_text(raw + value, end - value, note)
        if key not in found:
            found[key] = text


cdef object name_text(const uint8_t *name, Py_ssize_t size):
    """Return a name in lower case."""
    if flags_of(name, <size_t>size) & HIGH:
        return PyUnicode_DecodeUTF8(<const char *>name, size, b"replace").lower()
    return ascii_text(name, size).lower()


cdef object value_text(const uint8_t *value, Py_ssize_t size, note):
    """Return the text of the value of an attribute."""
    cdef uint8_t flags = flags_of(value, <size_t>size)
    cdef bytes raw
    if not flags:
        while size and value[0] == c' ':
            value += 1
            size -= 1
        while size and value[size - 1] == c' ':
            size -= 1
        return ascii_text(value, size)
    raw = value[:size]
    if flags & CONTROL:
        raw = break_pattern.sub(b" ", raw)
    text = decode_field(raw)[0]
    if flags & AMPERSAND:
        text = unescape(text, note)
    return text.strip()
