# cython: language_level=3, cdivision=True
"""The general scanner, compiled. `XMLScanner` does the same as `usp.scan.entries.XMLScanner`, which gives the reasons.

It follows the same tables of `usp.scan.vocabulary`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr, memcmp

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport flags_of
from usp.scan._elements cimport (
    DialectTable,
    Element,
    Field,
    Frame,
    KindTable,
    Name,
    new_element,
    new_field,
    stripped,
    value_of,
)
from usp.scan._markup cimport Log, attributes_of, is_void, leading_blanks
from usp.scan._tokens cimport CDATA, EMPTY, END, LEAF, NO_TOKEN, TEXT, Kind, Tokenizer

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    Py_hash_t PyObject_Hash(object) except? -1

# C variables: a global name of a module is looked up in a dictionary each time.
cdef object grammar_of, namespace_of_declaration, namespace_of_prefix, note_outside, note_root, note_unknown, TextNotes
cdef dict DIALECTS, ROOTS, UNPREFIXED
cdef frozenset PREFIXES, URL_FIELDS, REPEATABLE
cdef Py_ssize_t MAX_DEPTH, MAX_WRAPPERS, MAX_NAMESPACES, MAX_PLAIN_DEPTH, MAX_GRAMMARS, MAX_NAMES, MAX_FIELD
cdef KindTable WITH_ATTRIBUTES

cdef enum:
    NAME_SLOTS = 256
    MAX_BATCH = 64  # entries of a batch, if their problems are not wanted
    MAX_MISSES = 64  # a fast reader that took none of so many entries is tried again after as many


def bind():
    """Import what this module uses of usp."""
    global grammar_of, namespace_of_declaration, namespace_of_prefix, note_outside, note_root, note_unknown, TextNotes
    global DIALECTS, ROOTS, UNPREFIXED, PREFIXES, URL_FIELDS, REPEATABLE, WITH_ATTRIBUTES
    global MAX_DEPTH, MAX_WRAPPERS, MAX_NAMESPACES, MAX_PLAIN_DEPTH, MAX_GRAMMARS, MAX_NAMES, MAX_FIELD
    from usp.scan import entries
    from usp.scan.grammar import grammar_of
    from usp.scan.values import MAX_FIELD_BYTES, TextNotes
    from usp.scan.vocabulary import (
        DIALECTS,
        PREFIXES,
        ROOTS,
        UNPREFIXED,
        namespace_of_declaration,
        namespace_of_prefix,
        note_outside,
        note_root,
        note_unknown,
    )

    REPEATABLE = entries._REPEATABLE
    URL_FIELDS, MAX_DEPTH, MAX_WRAPPERS = entries._URL_FIELDS, entries.MAX_DEPTH, entries._MAX_WRAPPERS
    MAX_NAMESPACES, MAX_PLAIN_DEPTH = entries._MAX_NAMESPACES, entries._MAX_PLAIN_DEPTH
    MAX_GRAMMARS, MAX_NAMES, MAX_FIELD = entries._MAX_GRAMMARS, entries._MAX_NAMES, MAX_FIELD_BYTES
    WITH_ATTRIBUTES = KindTable(entries._WITH_ATTRIBUTES)


cdef dict TABLES = {}  # the root of a dialect -> its table


cdef DialectTable table_of(str root):
    if root not in TABLES:
        TABLES[root] = DialectTable(DIALECTS[root])
    return TABLES[root]


cdef class XMLScanner:
    """Yields the entries of one document, in order; see `usp.scan.entries.XMLScanner`."""

    cdef readonly Tokenizer tokens
    cdef readonly str root
    cdef readonly str unknown_root
    cdef readonly str base
    cdef object plain_log
    cdef Log log
    cdef DialectTable dialect
    cdef dict namespaces
    cdef dict names
    cdef list name_slots
    cdef Py_ssize_t generation
    cdef list frames  # the first `depth` of them are open
    cdef Py_ssize_t depth, scripts, too_deep
    cdef Element entry
    cdef Field field, loose
    cdef str called  # by its holder: the name of the last start tag
    cdef list finished
    cdef Py_ssize_t grammars, misses, skipped
    cdef object known_grammar
    cdef set undeclared
    cdef dict grammar_namespaces

    def __cinit__(self, chunks, log, is_cut=None):
        self.plain_log = log
        self.log = Log(log)
        self.tokens = Tokenizer(chunks, self.log, is_cut)
        self.base = ""
        self.namespaces = {}
        self.names = {}
        self.name_slots = [None] * NAME_SLOTS
        self.frames = []
        self.loose = new_field("", None, b"")
        self.finished = []
        self.undeclared = set()

    def find_root(self):
        """Read until the root is known, and no further."""
        while self.root is None and self.unknown_root is None and self.step():
            pass

    def __iter__(self):
        while self.step():
            if self.finished:
                yield from self.finished
                self.finished = []
        yield from self.finished

    def batches(self, reader):
        """Yield pages of the entries that a fast reader takes, if it makes pages, and all other entries; in order."""
        cdef Py_ssize_t most = 1 if self.log.is_used else MAX_BATCH, before
        cdef bint goes_on = True, full, more, is_missed
        while goes_on:
            if self.entry is None and self.may_be_plain():
                if self.finished:
                    yield [], self.finished
                    self.finished = []
                full = more = is_missed = True
                while full or (more and self.tokens.extend()):
                    before = self.tokens.position
                    pages, position, more, full = reader.take(self.known_grammar, self.tokens.buffer, before)
                    self.tokens.skip_to(position)
                    if before != self.tokens.position:
                        is_missed = False
                        yield pages, []
                self.misses = self.misses + 1 if is_missed else 0
                self.skipped = 0
            goes_on = self.step()
            if PyList_GET_SIZE(self.finished) >= most:
                yield [], self.finished
                self.finished = []
        if self.finished:
            yield [], self.finished
            self.finished = []

    cdef bint may_be_plain(self) except -1:
        """Return whether to try a fast reader here. One that has taken none of the last entries is tried less often."""
        if not self.tokens.may_start_entry() or self.grammar() is None:
            return False
        if self.misses < MAX_MISSES or self.skipped >= MAX_MISSES:
            return True
        self.skipped += 1
        return False

    cdef object grammar(self):
        """Return what a plain entry may hold here, or None if this is not right below the root of a urlset."""
        cdef bint is_urlset = self.dialect is not None and self.root == "urlset" and self.dialect is table_of("urlset")
        if not is_urlset or not 0 < self.depth <= MAX_PLAIN_DEPTH or self.too_deep or self.scripts:
            return None
        if self.grammar_namespaces is not self.namespaces:
            self.grammar_namespaces = self.namespaces
            self.grammars += 1
            if self.grammars <= MAX_GRAMMARS:
                known = frozenset(self.undeclared) if self.log.is_used else PREFIXES
                self.known_grammar = grammar_of(tuple(self.namespaces.items()), known, self.log.is_used)
            else:
                self.known_grammar = None
        return self.known_grammar

    cdef bint step(self) except -1:
        """Process the next token. Return False at the end, or if the document has no entries."""
        cdef Tokenizer tokens = self.tokens
        cdef Kind kind = tokens.next()
        if kind == TEXT or kind == CDATA:
            self.text(kind == CDATA)
        elif kind == NO_TOKEN:
            self.cut_off()
            return False
        elif kind == END:
            self.end(self.resolve())
        else:
            if kind == LEAF:
                if self.leaf():
                    return True
                kind = tokens.start_of_leaf()
            self.start()
            if kind == EMPTY or is_void(tokens.name, tokens.name_size):
                self.end(self.resolve())
        return self.unknown_root is None

    # Names and namespaces

    cdef Name resolve(self):
        """Return the meaning of the name of the last tag."""
        cdef const uint8_t *raw = self.tokens.name
        cdef Py_ssize_t size = self.tokens.name_size
        cdef uint32_t slot = <uint32_t>size * 31 + raw[0] * 7 + raw[size - 1] * 37 + raw[size // 2]
        cdef object held = <object>PyList_GET_ITEM(self.name_slots, slot % NAME_SLOTS)
        cdef Name known
        if held is not None:
            known = <Name>held
            if (
                known.generation == self.generation
                and len(known.raw) == size
                and memcmp(PyBytes_AS_STRING(known.raw), raw, <size_t>size) == 0
            ):
                return known
        written = PyBytes_FromStringAndSize(<const char *>raw, size)
        held = self.names.get(written)
        if held is None:
            known = self.meaning_of_name(written)
            if len(self.names) >= MAX_NAMES:
                return known
            self.names[written] = known
        else:
            known = <Name>held
        self.name_slots[slot % NAME_SLOTS] = known
        return known

    cdef Name meaning_of_name(self, bytes raw):
        cdef str written = raw.decode("utf-8", "replace"), prefix, colon, local, namespace
        cdef str home = "" if self.dialect is None else self.dialect.home
        cdef Name known = Name.__new__(Name)
        prefix, colon, local = written.lower().rpartition(":")
        if prefix in self.namespaces:
            namespace = self.namespaces[prefix]
        else:
            namespace = self.namespace_of_undeclared(prefix) if colon else ""
        at_home = namespace == "" or namespace == home
        if at_home and home == "sitemap" and not written.endswith(local):
            self.log.add("P410", self.tokens.tag_at, written, local)
        known.raw, known.tag, known.name = raw, local, local if at_home else f"{namespace}:{local}"
        known.hashed, known.generation = PyObject_Hash(local), self.generation
        return known

    cdef str namespace_of_undeclared(self, str prefix):
        """Return the namespace that an undeclared prefix probably means. Note the prefix the first time."""
        if prefix == "xml":
            return "xml"  # needs no declaration
        if prefix not in self.undeclared and len(self.undeclared) < MAX_NAMESPACES:
            self.undeclared.add(prefix)
            self.log.add("X117", self.tokens.tag_at, prefix, "")
            self.grammar_namespaces = None
        return namespace_of_prefix(prefix, None if self.dialect is None else self.dialect.dialect)

    cdef int forget_names(self) except -1:
        self.names.clear()
        self.generation += 1
        return 0

    cdef bint declares(self) noexcept:
        """Return whether the last tag may declare namespaces."""
        cdef const uint8_t *text = self.tokens.text
        cdef Py_ssize_t i
        for i in range(self.tokens.text_size - 4):
            if (
                text[i] | 32 == c'x'
                and text[i + 1] | 32 == c'm'
                and text[i + 2] | 32 == c'l'
                and text[i + 3] | 32 == c'n'
                and text[i + 4] | 32 == c's'
            ):
                return True
        return False

    cdef dict declare(self):
        """Apply the namespaces that a tag declares. Return those around it, to restore when it closes."""
        cdef dict declared = {}
        cdef dict outer = self.namespaces
        cdef str name
        for name, uri in attributes_of(self.tokens.text, self.tokens.text_size, None).items():
            if name == "xmlns" or name.startswith("xmlns:"):
                declared[name[6:]] = namespace_of_declaration(name[6:], uri)
        if not declared or len(outer) >= MAX_NAMESPACES:
            return None
        self.namespaces = outer | declared
        self.forget_names()
        return outer

    # Tags

    cdef int start(self) except -1:
        cdef Tokenizer tokens = self.tokens
        cdef dict outer = None
        cdef Py_ssize_t depth
        cdef Name name
        if self.depth >= MAX_DEPTH:
            if not self.too_deep:
                self.log.add("X114", tokens.tag_at, str(MAX_DEPTH), "")
                tokens.judge = None  # as `usp.scan.entries` does
            self.too_deep += 1 + tokens.skip_tags(False, -1)
            return 0
        if tokens.text_size and self.declares():
            outer = self.declare()
        name = self.resolve()
        if not self.depth:
            if name.tag in ROOTS:
                self.enter(name.tag)
                name = self.resolve()
            elif self.root is not None and self.log.is_used:
                note_outside(tokens.tag_at, False, self.plain_log)
        if self.dialect is None:
            self.unknown_root = name.tag
            return 0
        depth = self.depth
        meaning = self.meaning_of(name)
        if outer is not None and self.depth < depth:
            outer = self.declare()  # elements around the tag were closed, and their namespaces with them
        self.push(name.tag, name.hashed, meaning, outer)
        return 0

    cdef bint leaf(self) except -1:
        """Store a leaf at once if it is a field, as nearly all are. Return False if it is not."""
        cdef Tokenizer tokens = self.tokens
        cdef Name name = self.resolve()
        cdef Element holder = self.top().element if self.depth else None
        cdef Field field
        if holder is None or name.name not in holder.table.fields or holder.has_text(name.tag):
            return False
        if self.depth >= MAX_DEPTH:
            return False
        if not flags_of(tokens.text, <size_t>tokens.text_size) and tokens.text_size <= MAX_FIELD:
            holder.set_text(name.tag, stripped(tokens.text, tokens.text_size))
        else:
            field = new_field(name.tag, None, name.raw)
            field.add(False, tokens.text, tokens.text_size, tokens.text_at)
            holder.set_text(name.tag, value_of(field, self.log))
        if self.log.is_used:
            holder.set_offset(name.tag, tokens.text_at + leading_blanks(tokens.text, tokens.text_size))
        return True

    cdef int enter(self, str tag) except -1:
        """Start a document: its root says of which kind it is, or its first entry if the root is missing."""
        cdef Tokenizer tokens = self.tokens
        cdef bytes raw = PyBytes_FromStringAndSize(<const char *>tokens.name, tokens.name_size)
        cdef str prefix, p
        if self.dialect is not None and tag not in self.dialect.entries:
            self.log.add("X111", tokens.tag_at, "", "")
        stated = attributes_of(tokens.text, tokens.text_size, None) if tokens.text_size else {}
        self.base = self.base or stated.get("xml:base", "")
        if self.log.is_used:
            note_root(tag, raw, stated, tokens.tag_at, self.plain_log)
        self.root = self.root or ROOTS[tag]
        self.dialect = table_of(ROOTS[tag])
        prefix = raw.decode("utf-8", "replace").lower().rpartition(":")[0]
        home = {p: "" for p in ("", prefix) if self.namespaces.get(p, "rdf") != "rdf"}
        self.namespaces = self.namespaces | home
        return self.forget_names()

    cdef object meaning_of(self, Name name):
        """Return what a start tag opens here: an entry, a group, a field, or nothing."""
        cdef DialectTable dialect = self.dialect
        cdef Element holder
        cdef str called = name.name, parent
        if self.scripts:
            return None  # added to the document by the web server
        if called in dialect.entries:
            self.make_room()
            return self.new_entry(called, self.attributes())
        holder = self.holder_of(name)
        called = self.called
        if holder is self.entry and dialect.home == "sitemap" and name.tag in UNPREFIXED and called == name.tag:
            self.log.add("P426", self.tokens.tag_at, called, UNPREFIXED[name.tag])
        if holder is None and called == "loc" and dialect.implied and self.entry is None:
            self.log.add("P413", self.tokens.tag_at, "", dialect.implied)
            holder = self.new_entry(dialect.implied, None)
            self.push("", PyObject_Hash(""), holder, None)
        if holder is None:
            if self.field is not None and self.field.name in URL_FIELDS:
                self.field.is_full = self.field.has_visible_text()
            if self.log.is_used and dialect.home == "sitemap" and called == name.tag:
                parent = self.parent()
                if parent:
                    note_unknown(name.tag, parent, self.tokens.tag_at, self.plain_log)
            return None
        while self.top().element is not holder:  # a field or group ends where its next sibling starts
            self.log.add("X107", self.tokens.tag_at, self.top().tag, "")
            self.pop()
        if called == "loc" and holder is self.entry and holder.has_text("loc"):
            holder = self.second_entry(holder)
        return self.open(holder, called, name)

    cdef object open(self, Element holder, str called, Name name):
        """Open a field or a group in its holder."""
        cdef KindTable table = holder.table, inner
        cdef Element element = None
        if called not in table.fields:
            inner = table.groups.get(called, WITH_ATTRIBUTES)
            element = new_element(name.tag, inner, self.tokens.tag_at, self.attributes())
            holder.children.append(element)
            if inner is not WITH_ATTRIBUTES:
                return element
        elif holder is self.entry and called in REPEATABLE and holder.has_text(name.tag):
            self.log.add("P431", self.tokens.tag_at, name.tag, holder.name)
        self.field = new_field(name.tag, element, name.raw)
        return self.field

    cdef dict attributes(self):
        """Return the attributes of the last tag, None for none."""
        cdef Tokenizer tokens = self.tokens
        if not tokens.text_size:
            return None
        if not self.log.is_used or memchr(tokens.text, c'&', <size_t>tokens.text_size) == NULL:
            return attributes_of(tokens.text, tokens.text_size, None)
        written = PyBytes_FromStringAndSize(<const char *>tokens.name, tokens.name_size)
        return attributes_of(tokens.text, tokens.text_size, TextNotes.of_tag(self.plain_log, written, tokens.tag_at))

    cdef str parent(self):
        """Return the entry or the root that the next element stands in; "" if it is in something else."""
        cdef str tag
        if self.entry is not None:
            return self.entry.name if self.top().element is self.entry else ""
        tag = self.top().tag if self.depth else ""
        return tag if tag in DIALECTS else ""

    cdef Element holder_of(self, Name name):
        """Return the innermost open element that may hold this name; `called` is its name there."""
        cdef Py_ssize_t at = self.depth
        cdef Element holder
        cdef Frame frame
        cdef str prefixed
        self.called = name.name
        while at:
            at -= 1
            frame = <Frame>PyList_GET_ITEM(self.frames, at)
            if frame.field is not None:
                continue
            holder = frame.element
            if holder is None:
                return None
            if holder.table.has(name.name):
                return holder
            if holder is self.entry:
                return None
            prefixed = f"{holder.name}:{name.name}"
            if prefixed in holder.table.fields and self.entry is not None and self.entry.has_text(name.tag):
                self.log.add("P426", self.tokens.tag_at, name.name, prefixed)
                self.called = prefixed
                return holder
        return None

    cdef int make_room(self) except -1:
        """Close the open entry, and elements before it that were never closed, because a new entry starts."""
        if self.entry is not None:
            self.log.add("X107", self.tokens.tag_at, self.entry.name, "")
            self.close_entry()
        if self.depth > MAX_WRAPPERS:
            while self.depth > 1:
                self.pop()
        return 0

    cdef Element new_entry(self, str name, dict attributes):
        self.entry = new_element(name, self.dialect.entries[name], self.tokens.tag_at, attributes)
        if self.loose.pieces or self.loose.name != name or self.loose.size:
            self.loose = new_field(name, None, b"")
        return self.entry

    cdef Element second_entry(self, Element entry):
        """Start a new entry at a second `<loc>`: the tags between the two are missing."""
        cdef Element second
        cdef Frame top = self.top()
        cdef str tag = top.tag
        cdef Py_hash_t hashed = top.hashed
        self.log.add("P405", self.tokens.tag_at, "", entry.name)
        self.close_entry()
        second = self.new_entry(entry.name, None)
        self.push(tag, hashed, second, None)
        return second

    cdef int text(self, bint is_cdata) except -1:
        cdef Tokenizer tokens = self.tokens
        cdef Py_ssize_t blanks = 0
        if self.too_deep:
            return 0
        if self.field is not None:
            self.field.add(is_cdata, tokens.text, tokens.text_size, tokens.text_at)
        elif self.entry is not None and self.top().element is self.entry:
            if not self.loose.pieces:
                blanks = leading_blanks(tokens.text, tokens.text_size)
            if blanks < tokens.text_size:
                self.loose.add(is_cdata, tokens.text + blanks, tokens.text_size - blanks, tokens.text_at)
        elif not self.depth and self.log.is_used:
            blanks = leading_blanks(tokens.text, tokens.text_size)
            if blanks < tokens.text_size or not tokens.text_size:
                note_outside(tokens.text_at + blanks, self.root is None, self.plain_log)
        return 0

    cdef int end(self, Name name) except -1:
        cdef Frame frame
        cdef Py_ssize_t at = self.depth
        if self.too_deep:
            self.too_deep -= 1 + self.tokens.skip_tags(True, self.too_deep - 1)
            return 0
        while at:
            at -= 1
            frame = <Frame>PyList_GET_ITEM(self.frames, at)
            if frame.hashed == name.hashed and frame.tag == name.tag:
                break
        else:
            if self.log.is_used and not is_void_tag(name.tag):
                self.log.add("X106", self.tokens.tag_at, name.tag, "")
            return 0
        while self.depth > at + 1:
            frame = self.top()
            if frame.tag:
                self.log.add("X107", self.tokens.tag_at, frame.tag, "")
            self.pop()
        return self.pop()

    # The stack

    cdef inline Frame top(self):
        return <Frame>PyList_GET_ITEM(self.frames, self.depth - 1)

    cdef int push(self, str tag, Py_hash_t hashed, meaning, dict outer) except -1:
        cdef Frame frame
        if self.depth == PyList_GET_SIZE(self.frames):
            self.frames.append(Frame.__new__(Frame))
        self.depth += 1
        frame = self.top()
        frame.tag, frame.hashed, frame.outer = tag, hashed, outer
        frame.element = <Element>meaning if type(meaning) is Element else None
        frame.field = <Field>meaning if type(meaning) is Field else None
        frame.is_script = tag == "script"
        self.scripts += frame.is_script
        return 0

    cdef int pop(self) except -1:
        cdef Frame frame = self.top()
        cdef Element element = frame.element
        cdef Field field = frame.field
        self.depth -= 1
        self.scripts -= frame.is_script
        frame.element, frame.field = None, None
        if frame.outer is not None:
            self.namespaces, frame.outer = frame.outer, None
            self.forget_names()
        if field is not None:
            self.close_field(field)
        elif element is not None and element is self.entry:
            if self.loose.pieces and not element.has_text("loc"):
                element.text = value_of(self.loose, self.log)
            self.finished.append(element)
            self.entry = None
        return 0

    cdef int close_entry(self) except -1:
        """Close the open entry, and everything that is open in it."""
        while self.entry is not None:
            self.pop()
        return 0

    cdef int close_field(self, Field field) except -1:
        cdef str value = value_of(field, self.log)
        cdef Element holder
        self.field = None
        if field.element is not None:
            field.element.text = value
            return 0
        holder = self.top().element
        if holder is not None and not holder.has_text(field.name):
            holder.set_text(field.name, value)
            if self.log.is_used:
                holder.set_offset(field.name, field.at() or self.tokens.tag_at)
        return 0

    cdef int cut_off(self) except -1:
        """End a document with open tags. Drop a truncated field; keep a truncated entry with what it has."""
        cdef Py_ssize_t at = self.depth
        cdef str tag = ""
        if not self.depth:
            return 0
        while at and not tag:
            at -= 1
            tag = (<Frame>PyList_GET_ITEM(self.frames, at)).tag
        if not self.log.log.is_cut:  # else it is our doing
            self.log.add("X113", self.tokens.base + self.tokens.position, tag, "")
        if self.entry is not None:
            self.entry.cut_off = True
            self.loose.pieces.clear()
            while self.top().element is None:
                self.depth -= 1
            self.close_entry()
        return 0


cdef bint is_void_tag(str tag) except -1:
    cdef bytes raw = tag.encode()
    return len(raw) > 0 and is_void(<const uint8_t *>PyBytes_AS_STRING(raw), len(raw))
