# cython: language_level=3, cdivision=True
"""What the compiled scanner builds, and its stack of open tags: as `usp.scan.elements`, but the tables are at hand.

A field with a problem that is kept, with its text and place, is left to `usp.scan.elements.value_of`.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memchr, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport AMPERSAND, CONTROL, HIGH, flags_of
from usp.scan._markup cimport Log, leading_blanks
from usp.scan._references cimport (
    DROPPED,
    NO_REFERENCE,
    ONLY_PYTHON_KNOWS,
    OTHER_NAME,
    ReferenceKind,
    decode_into,
    reference_kind,
)
from usp.scan._texts cimport ascii_text, is_utf8

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)

ctypedef struct Noted:  # problems of a text
    Py_ssize_t ampersands, names, controls, bad_bytes, invisible, too_long
    bint has_controls

cdef enum:
    MAX_NAME = 32  # characters of the name of a reference

cdef tuple NOTED_CODES = ("X102", "X103", "X108", "E203", "E205", "X115")

# C variables: a global name of a module is looked up in a dictionary each time.
cdef object plain_value_of, PlainField, Token, TEXT_KIND, CDATA_KIND, decode_bad_field, decode_field, problems_of, unescape
cdef str INVISIBLE
cdef dict CONTROLS, NAMES
cdef Py_ssize_t MAX_FIELD


def bind():
    """Import what this module uses of usp."""
    global plain_value_of, PlainField, Token, TEXT_KIND, CDATA_KIND, INVISIBLE, CONTROLS, MAX_FIELD
    global NAMES, decode_bad_field, decode_field, problems_of, unescape
    from usp.scan import elements, tokens, values
    from usp.scan.encodings import decode_bad_field, decode_field
    from usp.scan.urls import INVISIBLE

    NAMES = values._NAMED
    unescape, problems_of, CONTROLS = values.unescape, values._problems_of, values._CONTROLS
    plain_value_of, PlainField, Token = elements.value_of, elements.Field, tokens.Token
    TEXT_KIND, CDATA_KIND, MAX_FIELD = tokens.TokenKind.TEXT, tokens.TokenKind.CDATA, values.MAX_FIELD_BYTES


@cython.final
cdef class KindTable:
    """A `Kind` of the vocabulary, with its tables at hand."""

    def __cinit__(self, kind):
        self.kind, self.fields, self.elements = kind, kind.fields, kind.elements
        self.groups = {name: KindTable(inner) for name, inner in kind.groups.items()}

    cdef bint has(self, str name) except -1:
        return name in self.fields or name in self.elements or name in self.groups


@cython.final
cdef class DialectTable:
    """A `Dialect` of the vocabulary, with its tables at hand."""

    def __cinit__(self, dialect):
        self.dialect, self.home, self.implied = dialect, dialect.home, dialect.implied
        self.entries = {name: KindTable(kind) for name, kind in dialect.entries.items()}


@cython.final
cdef class Element:
    """An element that holds others, as `usp.scan.elements.Element`. Its dictionaries are made when they are used."""

    @property
    def kind(self):
        """What it may hold."""
        return self.table.kind

    @property
    def attributes(self):
        """Its attributes by lower-case name."""
        if self._attributes is None:
            self._attributes = {}
        return self._attributes

    @property
    def fields(self):
        """Its texts by the name of the field."""
        if self._fields is None:
            self._fields = {}
        return self._fields

    @property
    def offsets(self):
        """The offsets of those texts."""
        if self._offsets is None:
            self._offsets = {}
        return self._offsets

    @property
    def children(self):
        """The groups and the fields with attributes in it."""
        if self._children is None:
            self._children = []
        return self._children

    @property
    def is_empty(self):
        """Whether it holds nothing."""
        return not self._fields and not self._children

    def get(self, *names):
        """Return the first of these fields that is not empty, else an empty text."""
        if self._fields is not None:
            for name in names:
                text = self._fields.get(name)
                if text:
                    return text
        return ""

    def place_of(self, str name):
        """Return where the text of a field is; where the element is, if there is no such field."""
        return self.at if self._offsets is None else self._offsets.get(name, self.at)

    def all(self, str name):
        """Return the children of this name."""
        cdef Element child
        return [child for child in self._children if child.name == name] if self._children is not None else []

    cdef bint has_text(self, str name) except -1:
        """Return whether a field has a text."""
        return self.text_of(name) is not None

    cdef bint has_children(self) except -1:
        """Return whether it has groups or fields with attributes."""
        return self._children is not None and PyList_GET_SIZE(self._children) > 0

    cdef object text_of(self, str name):
        """Return the text of a field, None if it has none."""
        cdef PyObject *text
        if self._fields is None:
            return None
        text = PyDict_GetItemWithError(self._fields, name)
        return <object>text if text != NULL and len(<str>text) else None

    cdef object attribute(self, str name):
        """Return an attribute, None if it is not there."""
        return None if self._attributes is None else self._attributes.get(name)

    cdef int set_text(self, str name, str text) except -1:
        if self._fields is None:
            self._fields = {}
        self._fields[name] = text
        return 0

    cdef int set_offset(self, str name, Py_ssize_t offset) except -1:
        if self._offsets is None:
            self._offsets = {}
        self._offsets[name] = offset
        return 0


cdef Element new_element(str name, KindTable table, at, dict attributes):
    cdef Element element = Element.__new__(Element)
    element.name, element.table, element.at, element._attributes, element.text = name, table, at, attributes, ""
    return element


@cython.final
cdef class Field:
    """A field whose text is being collected, as `usp.scan.elements.Field`."""

    cdef int add(self, bint is_cdata, const uint8_t *text, Py_ssize_t size, Py_ssize_t at) except -1:
        """Add a piece of text, unless there is too much already."""
        if self.is_full:
            return 0
        self.size += size
        if self.size <= MAX_FIELD or not self.pieces:
            self.pieces.append((is_cdata, text[:size], at))
        else:
            del self.pieces[1:]
        return 0

    cdef Py_ssize_t at(self) except -1:
        """Return the offset of its text, after leading white space."""
        cdef Py_ssize_t blanks
        cdef bytes text
        for _, text, at in self.pieces:
            blanks = leading_blanks(<const uint8_t *>PyBytes_AS_STRING(text), len(text))
            if blanks < len(text):
                return <Py_ssize_t>at + blanks
        return <Py_ssize_t>self.pieces[0][2] if self.pieces else 0

    cdef bint has_visible_text(self) except -1:
        cdef bytes text
        for _, text, _ in self.pieces:
            if not text.isspace():
                return True
        return False


cdef Field new_field(str name, Element element, bytes written):
    cdef Field field = Field.__new__(Field)
    field.name, field.element, field.written, field.pieces = name, element, written, []
    return field


@cython.final
cdef class Frame:
    """An open tag: the name that closes it, what it opened, and the namespaces around it if it declares any."""


@cython.final
cdef class Name:
    """A name as it is written, as in the vocabulary, and as its end tag must have it."""


cdef str value_of(Field field, Log log):
    """Return the repaired text of a field, as `usp.scan.elements.value_of` does."""
    cdef list texts = [], joined
    cdef Noted noted
    cdef bint is_cdata
    cdef bytes raw
    cdef Py_ssize_t i = 0
    if not field.pieces:
        return ""
    memset(&noted, 0, sizeof(Noted))
    if field.size > MAX_FIELD:
        noted.too_long = 1
        return "" if is_counted(field, &noted, log) else repaired(field, log)
    while i < PyList_GET_SIZE(field.pieces):
        is_cdata, raw, _ = field.pieces[i]
        i += 1
        joined = None
        while i < PyList_GET_SIZE(field.pieces) and (<tuple>field.pieces[i])[0] == is_cdata:
            joined = [raw] if joined is None else joined
            joined.append((<tuple>field.pieces[i])[1])
            i += 1
        texts.append(decoded(raw if joined is None else b"".join(joined), is_cdata, &noted))
    text = clean(texts[0] if len(texts) == 1 else "".join(texts), &noted)
    return text if is_counted(field, &noted, log) else repaired(field, log)


cdef bint is_counted(Field field, Noted *noted, Log log) except -1:
    """Count the problems of a field. Return false, and count none, if the log keeps one of them, with its text."""
    cdef (Py_ssize_t)[6] numbers = [
        noted.ampersands, noted.names, noted.controls, noted.bad_bytes, noted.invisible, noted.too_long
    ]
    cdef int i
    if not log.is_used:
        return True
    for i in range(6):
        if numbers[i] and log.keeps(<str>NOTED_CODES[i]):
            return False
    for i in range(6):
        if numbers[i]:
            log.count(<str>NOTED_CODES[i], numbers[i], <Py_ssize_t>(<tuple>field.pieces[0])[2])
    return True


cdef str decoded(bytes raw, bint is_cdata, Noted *noted):
    """Return a part of a text without its references, and add what is wrong with it to the notes."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t size = len(raw), i, left = -1
    cdef uint8_t flags = flags_of(data, <size_t>size), marked = 0
    cdef bint has_returns = False, has_references
    cdef bytes room
    cdef str text
    if not flags:
        return ascii_text(data, size)
    if flags & CONTROL:
        for i in range(size):
            if data[i] < 32 and not (data[i] == 9 or data[i] == 10 or data[i] == 13):
                noted.has_controls = True
            has_returns = has_returns or data[i] == 13
    has_references = flags & AMPERSAND and not is_cdata
    if has_references:
        count_references(raw, noted)
    if has_returns:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        data, size = <const uint8_t *>PyBytes_AS_STRING(raw), len(raw)
    if has_references:
        room = PyBytes_FromStringAndSize(NULL, size)
        left = decode_into(<uint8_t *>PyBytes_AS_STRING(room), data, size, &marked)
    if flags & HIGH and not is_utf8(data, size):  # raising an error would take longer
        noted.bad_bytes += 1
        text = decode_bad_field(raw)
    elif left >= 0:
        return PyUnicode_DecodeUTF8(<const char *>PyBytes_AS_STRING(room), left, NULL)
    else:
        text = PyUnicode_DecodeUTF8(<const char *>data, size, NULL)
    return unescaped(text, noted) if has_references else text


cdef str unescaped(str text, Noted *noted):
    """Replace the references of a text, with all names that Python knows."""
    cdef Py_ssize_t at = 0, start, end
    cdef list parts
    cdef str name
    if not noted.names or "&#" in text:
        return unescape(text)
    parts = []
    while True:
        start = text.find("&", at)
        if start < 0:
            parts.append(text[at:])
            return "".join(parts)
        end = text.find(";", start + 3, start + MAX_NAME + 2)
        name = text[start + 1:end] if end > 0 else ""
        if name and name.isascii() and name.isalnum() and name[0].isalpha():
            parts.append(text[at:start])
            parts.append(NAMES.get(name) or text[start:end + 1])
            at = end + 1
        else:
            parts.append(text[at:start + 1])
            at = start + 1


cdef int count_references(bytes raw, Noted *noted) except -1:
    """Add the problems of the references of a text to the notes, as `usp.scan.values` has them."""
    cdef const uint8_t *text = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef const uint8_t *end = text + len(raw)
    cdef Noted found = noted[0]
    cdef ReferenceKind kind
    while True:
        text = <const uint8_t *>memchr(text, c'&', <size_t>(end - text))
        if text == NULL:
            noted[0] = found
            return 0
        kind = reference_kind(text, end - text)
        if kind == ONLY_PYTHON_KNOWS:
            break
        found.ampersands += kind == NO_REFERENCE
        found.names += kind == OTHER_NAME
        found.controls += kind == DROPPED
        text += 1
    counts = problems_of(decode_field(raw)[0])
    noted.ampersands += <Py_ssize_t>counts.get("X102", 0)
    noted.names += <Py_ssize_t>counts.get("X103", 0)
    noted.controls += <Py_ssize_t>counts.get("X108", 0)
    return 0


cdef str clean(str text, Noted *noted):
    """Return a text without control characters and outer white space."""
    cdef str bare
    if not noted.has_controls and text.isprintable():
        return text.strip()
    if noted.has_controls:
        noted.controls += 1
    if noted.has_controls or "\x7f" in text:
        text = text.translate(CONTROLS)
    text = text.strip()
    bare = text.strip(INVISIBLE).strip()
    noted.invisible += bare != text
    return bare


cdef str repaired(Field field, Log log):
    """Return the repaired text of a field, and note what is wrong with it."""
    plain = PlainField(field.name, None, field.written)
    plain.size = field.size
    plain.tokens = [Token(CDATA_KIND if is_cdata else TEXT_KIND, b"", raw, at) for is_cdata, raw, at in field.pieces]
    return plain_value_of(plain, log.log)


cdef str stripped(const uint8_t *text, Py_ssize_t size):
    """Return printable ASCII without outer spaces."""
    while size and text[0] == c' ':
        text += 1
        size -= 1
    while size and text[size - 1] == c' ':
        size -= 1
    return ascii_text(text, size)
