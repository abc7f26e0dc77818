# cython: language_level=3, cdivision=True
"""What the compiled scanner builds, and its stack of open tags: as `usp.scan.elements`, but the tables are at hand.

The text of a field that needs repair is left to `usp.scan.elements.value_of`.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport uint8_t

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport AMPERSAND, CONTROL, NOTED, flags_of
from usp.scan._markup cimport Log, leading_blanks
from usp.scan._references cimport decode_into
from usp.scan._texts cimport ascii_text

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)

# C variables: a global name of a module is looked up in a dictionary each time.
cdef object plain_value_of, PlainField, Token, TEXT_KIND, CDATA_KIND
cdef str INVISIBLE
cdef Py_ssize_t MAX_FIELD


def bind():
    """Import what this module uses of usp."""
    global plain_value_of, PlainField, Token, TEXT_KIND, CDATA_KIND, INVISIBLE, MAX_FIELD
    from usp.scan import elements, tokens, values
    from usp.scan.urls import INVISIBLE

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
        return self._fields is not None and bool(self._fields.get(name))

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
    cdef bint is_cdata, is_next_cdata
    cdef bytes raw
    cdef str text
    cdef Py_ssize_t i = 0
    if not field.pieces:
        return ""
    if field.size <= MAX_FIELD:
        while i < PyList_GET_SIZE(field.pieces):
            is_cdata, raw, _ = field.pieces[i]
            i += 1
            joined = None
            while i < PyList_GET_SIZE(field.pieces) and (<tuple>field.pieces[i])[0] == is_cdata:
                joined = [raw] if joined is None else joined
                joined.append((<tuple>field.pieces[i])[1])
                i += 1
            text = decoded(raw if joined is None else b"".join(joined), is_cdata, log.is_used)
            if text is None:
                return repaired(field, log)
            texts.append(text)
        text = clean(texts[0] if len(texts) == 1 else "".join(texts), log.is_used)
        if text is not None:
            return text
    return repaired(field, log)


cdef str decoded(bytes raw, bint is_cdata, bint is_logged):
    """Return a part of a text, None if it must be repaired."""
    cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(raw)
    cdef Py_ssize_t size = len(raw), i, left
    cdef uint8_t flags = flags_of(data, <size_t>size), noted = 0
    cdef bint has_returns = False
    cdef bytes room
    cdef str text
    if not flags:
        return ascii_text(data, size)
    if flags & CONTROL:
        for i in range(size):
            if data[i] < 32 and not (data[i] == 9 or data[i] == 10 or data[i] == 13) or data[i] == 127:
                return None
            has_returns = has_returns or data[i] == 13
    if flags & AMPERSAND and not is_cdata:
        if has_returns:
            return None
        room = PyBytes_FromStringAndSize(NULL, size)
        left = decode_into(<uint8_t *>PyBytes_AS_STRING(room), data, size, &noted)
        if left < 0 or noted & NOTED and is_logged:
            return None
        data, size = <const uint8_t *>PyBytes_AS_STRING(room), left
    try:
        text = PyUnicode_DecodeUTF8(<const char *>data, size, NULL)
    except UnicodeDecodeError:
        return None
    if has_returns:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


cdef str clean(str text, bint is_logged):
    """Return a text without outer white space, None if it must be repaired."""
    cdef str bare
    if text.isprintable():
        return text.strip()
    if "\x7f" in text:
        return None
    text = text.strip()
    bare = text.strip(INVISIBLE).strip()
    return None if is_logged and bare != text else bare


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
