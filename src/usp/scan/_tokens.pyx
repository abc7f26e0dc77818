# cython: language_level=3, cdivision=True
"""Tokens of XML, compiled. `Tokenizer` does the same as `usp.scan.tokens.Tokenizer`, which gives the reasons.

A token is a few pointers into the buffer: no object is made for it. `next()` returns its kind. Problems that nobody will
see are only counted.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp, memcpy

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport next_tag
from usp.scan._markup cimport (
    IN_NAME,
    STARTS_LEAF,
    STARTS_NAME,
    STRAY_AFTER,
    Log,
    classes,
    end_of,
    is_blank,
    is_void,
)

INTERFACE = USP_INTERFACE

cdef extern from *:
    """
    #if defined(__GLIBC__)
    void *memmem(const void *, size_t, const void *, size_t); /* some headers declare it for GNU sources only */
    #define usp_memmem memmem
    #else
    static const void *usp_memmem(const void *text, size_t size, const void *what, size_t what_size) {
        const char *at = (const char *)text, *end = at + size;
        while (at < end && (at = (const char *)memchr(at, *(const char *)what, (size_t)(end - at))) != NULL) {
            if ((size_t)(end - at) < what_size) return NULL;
            if (memcmp(at, what, what_size) == 0) return at;
            at++;
        }
        return NULL;
    }
    #endif
    """
    const void *memmem "usp_memmem"(const void *text, size_t size, const void *what, size_t what_size) noexcept nogil

cdef Py_ssize_t MAX_TAG, MAX_SECTION, TEXT_BYTES, SHOWN_BYTES, NEAR_BYTES, DOCTYPE_BYTES
cdef int MAX_QUOTED_ENDS
cdef const uint8_t *CLASSES  # the kinds of each byte

# What can be searched for: the numbers of `Tokenizer.searches`.
cdef enum:
    GREATER, LESS, COMMENT_END, CDATA_END, CDATA_START, END_START, INSTRUCTION_END
    COMMENT_START, INSTRUCTION_START  # never searched for
cdef const char *WHATS[9]
cdef Py_ssize_t WHAT_SIZES[9]
WHATS[:] = [b">", b"<", b"-->", b"]]>", b"<![CDATA[", b"</", b"?>", b"<!--", b"<?"]
WHAT_SIZES[:] = [1, 1, 3, 3, 9, 2, 2, 4, 2]

cdef tuple OPENINGS = tuple([(<bytes>WHATS[number]).decode() for number in range(9)])

cdef enum:
    NOWHERE = -1
    TOO_FAR = -2
    MAX_CUT_BYTES = 1000


def bind():
    """Import what this module uses of usp."""
    global MAX_TAG, MAX_SECTION, TEXT_BYTES, SHOWN_BYTES, NEAR_BYTES, DOCTYPE_BYTES, MAX_QUOTED_ENDS, CLASSES
    from usp.scan import tokens

    MAX_TAG, MAX_SECTION = tokens.MAX_TAG_BYTES, tokens.MAX_SECTION_BYTES
    TEXT_BYTES, SHOWN_BYTES, NEAR_BYTES = tokens._TEXT_BYTES, tokens._SHOWN_BYTES, tokens._NEAR_BYTES
    DOCTYPE_BYTES, MAX_QUOTED_ENDS = tokens._DOCTYPE_BYTES, tokens._MAX_QUOTED_ENDS
    CLASSES = classes()


cdef inline bint is_word(const uint8_t *text, const char *upper, Py_ssize_t size) noexcept nogil:
    """Return whether a text is a word, in any case."""
    cdef Py_ssize_t i
    for i in range(size):
        if (text[i] - 32 if c'a' <= text[i] <= c'z' else text[i]) != <uint8_t>upper[i]:
            return False
    return True


@cython.final
cdef class Tokenizer:
    """Reads the tokens of one document."""

    def __cinit__(self, chunks, Log log not None, is_cut):
        self.ask_whether_cut = is_cut
        self.chunks = iter(chunks)
        self.log = log
        self.buffer = b""
        self.data = <const uint8_t *>PyBytes_AS_STRING(self.buffer)

    def __dealloc__(self):
        PyMem_Free(self.started)

    def rest(self):
        """Yield the unread text, and some text right before it: removing that would cost a copy."""
        yield self.buffer
        yield from self.chunks

    # Reading

    cdef Kind next(self) except *:
        """Read the next token. Return its kind, `NO_TOKEN` at the end."""
        cdef Py_ssize_t position, most, end
        cdef const uint8_t *found
        cdef Kind kind
        cdef Tag tag
        while self.refused is None:
            position = self.position
            if position == self.size or self.data[position] != c'<':
                most = min(position + TEXT_BYTES, self.size)
                found = next_tag(self.data + position, self.data + most) if position < most else NULL
                end = self.position = found - self.data if found != NULL else most
                if end > position:
                    self.text, self.text_size, self.text_at = self.data + position, end - position, self.base + position
                    return TEXT
                if not self.refill():
                    return NO_TOKEN
                continue
            self.tag_at = self.base + position
            if self.match_leaf(position):
                return LEAF
            if self.match_plain(position, self.size, &tag) and CLASSES[self.data[tag.name]] & STARTS_NAME:
                return self.plain(&tag)
            kind = self.markup()
            if kind != NO_TOKEN:
                return kind
        return NO_TOKEN

    cdef bint match_leaf(self, Py_ssize_t at) except -1:
        """Read a leaf if there is one."""
        cdef const uint8_t *data = self.data
        cdef const uint8_t *closing
        cdef Py_ssize_t name = at + 1, name_end, text, end
        if name >= self.size or not CLASSES[data[name]] & STARTS_LEAF:
            return False
        name_end = end_of(CLASSES, data, name, self.size, IN_NAME)
        if name_end == self.size or data[name_end] != c'>':
            return False
        text = name_end + 1
        closing = next_tag(data + text, data + self.size) if text < self.size else NULL
        if closing == NULL:
            return False
        end = closing - data + 2 + name_end - name
        if end >= self.size or closing[1] != c'/' or memcmp(closing + 2, data + name, <size_t>(name_end - name)):
            return False
        while end < self.size and is_blank(data[end]):
            end += 1
        if end == self.size or data[end] != c'>':
            return False
        self.name, self.name_size = data + name, name_end - name
        self.text, self.text_size, self.text_at = data + text, closing - data - text, self.base + text
        self.position = end + 1
        self.leaf_text = text
        self.started_size = 0
        return True

    cdef Kind start_of_leaf(self) except *:
        """Read the start tag of the last leaf instead of the leaf. Its text and its end tag come next."""
        self.position = self.leaf_text
        self.set_started(self.name, self.name_size)
        self.text_size = 0
        return START

    cdef bint match_plain(self, Py_ssize_t at, Py_ssize_t stop, Tag *tag) noexcept:
        """Return whether there is a tag without attributes."""
        cdef const uint8_t *data = self.data
        at += 1
        tag.is_end = at < stop and data[at] == c'/'
        at += tag.is_end
        tag.name = at
        at = tag.name_end = end_of(CLASSES, data, at, stop, IN_NAME)
        if at == tag.name:
            return False
        while at < stop and is_blank(data[at]):
            at += 1
        tag.is_empty = at < stop and data[at] == c'/'
        at += tag.is_empty
        tag.end = at + 1
        return at < stop and data[at] == c'>'

    cdef Kind plain(self, Tag *tag) except *:
        """Read a tag without attributes."""
        self.position = tag.end
        self.name, self.name_size = self.data + tag.name, tag.name_end - tag.name
        self.text_size = 0
        if tag.is_end:
            self.started_size = 0
            return END
        self.set_started(self.name, self.name_size)
        return EMPTY if tag.is_empty else START

    cdef int set_started(self, const uint8_t *name, Py_ssize_t size) except -1:
        cdef void *room
        if size > self.started_room:
            room = PyMem_Realloc(self.started, 2 * <size_t>size)
            if room == NULL:
                raise MemoryError
            self.started, self.started_room = <uint8_t *>room, 2 * size
        if size:
            memcpy(self.started, name, <size_t>size)
        self.started_size = size
        return 0

    cdef int skip_to(self, Py_ssize_t position) except -1:
        """Continue at a position in the buffer."""
        if position != self.position:
            self.give_to_judge()
            self.position = position
            if not self.is_open:
                self.judged = position
            self.started_size = 0
        return 0

    cdef Py_ssize_t skip_tags(self, bint are_ends, Py_ssize_t most) noexcept:
        """Skip start tags or end tags, without attributes, that follow directly. Return how many there were."""
        cdef Py_ssize_t skipped = 0, name, end, at = self.position
        cdef const uint8_t *found
        while skipped != most and at < self.size:
            found = next_tag(self.data + at, self.data + self.size)
            if found == NULL:
                break
            name = found - self.data + 1
            if are_ends:
                if name >= self.size or self.data[name] != c'/':
                    break
                name += 1
            if name >= self.size or not CLASSES[self.data[name]] & STARTS_LEAF:
                break
            end = end_of(CLASSES, self.data, name, self.size, IN_NAME)
            if end == self.size or self.data[end] != c'>':
                break
            if not are_ends and is_void(self.data + name, end - name):
                break
            at = end + 1
            skipped += 1
            self.position = at
        return skipped

    cdef bint may_start_entry(self) noexcept:
        """Return whether an entry of a urlset may start here, or after white space. If not, a fast reader finds none."""
        cdef Py_ssize_t at = self.position, end
        while at < self.size and is_blank(self.data[at]):
            at += 1
        if at == self.size:
            return True
        if self.data[at] != c'<':
            return False
        end = end_of(CLASSES, self.data, at + 1, self.size, IN_NAME)
        return end == self.size or end - at > 3 and memcmp(self.data + end - 3, b"url", 3) == 0

    # The buffer

    cdef int continue_with(self, bytes buffer) except -1:
        """Use another buffer, which begins with the unread text of this one."""
        self.give_to_judge()
        self.base += self.position
        self.buffer = buffer
        self.data = <const uint8_t *>PyBytes_AS_STRING(buffer)
        self.size = len(buffer)
        self.position = self.judged = 0
        return 0

    cdef int give_to_judge(self) except -1:
        if self.judge is not None and self.position > self.judged:
            self.judge.read(self.buffer, self.judged, self.position, self.base + self.judged)
            self.judged = self.position
        return 0

    def finish(self):
        """Give the judge the last part of the document. Return where the document ends."""
        self.give_to_judge()
        self.judged = self.position
        return self.base + self.position

    cdef bint extend(self) except -1:
        """Read on until there is twice as much unread text. Return False at the end of the document."""
        cdef list pieces = [self.buffer[self.position :]]
        cdef Py_ssize_t size = 0, needed = self.size - self.position
        while size <= needed:
            chunk = next(self.chunks, None)
            if chunk is None:
                break
            pieces.append(chunk)
            size += len(chunk)
        self.continue_with(b"".join(pieces))
        return size > 0

    cdef bint refill(self) except -1:
        """Drop what was read and add the next piece. Return False at the end."""
        if self.has_ended:
            return False
        chunk = next(self.chunks, None)
        if chunk is None:
            self.has_ended = True
            return False
        self.continue_with(self.buffer[self.position :] + chunk)
        return True

    cdef Py_ssize_t find(self, int what, Py_ssize_t offset, Py_ssize_t most) except? -3:
        """Return where something is next, counted from the current position; else `NOWHERE` or `TOO_FAR`.

        It remembers what it has searched, so it searches no part of a document twice for the same thing.
        """
        cdef Search *search = &self.searches[what]
        cdef Py_ssize_t here = self.base + self.position, limit = here + most, size = WHAT_SIZES[what], buffered, stop, at
        cdef const void *found
        if not search.is_known or not search.start <= here + offset <= search.end:
            search.is_known, search.found = True, False
            search.start = search.end = here + offset
        while not search.found:
            buffered = self.base + self.size
            at, stop = search.end - self.base, min(max(limit - self.base, 0), self.size)
            found = NULL
            if at < stop:
                if size == 1:
                    found = memchr(self.data + at, WHATS[what][0], <size_t>(stop - at))
                else:
                    found = memmem(self.data + at, <size_t>(stop - at), WHATS[what], <size_t>size)
            if found != NULL:
                search.end = self.base + (<const uint8_t *>found - self.data)
                search.found = True
                break
            search.end = max(search.end, min(buffered, limit) - size + 1)
            if buffered >= limit:
                return TOO_FAR
            if not self.refill():
                return NOWHERE
        return search.end - here if search.end + size <= limit else TOO_FAR

    cdef int peek(self, Py_ssize_t size) except -1:
        """Read on until this much unread text is in the buffer, or all that is left."""
        while self.size - self.position < size and self.refill():
            pass
        return 0

    cdef bint is_cut(self) except -1:
        """Return whether a limit cut the document. Ask at its end."""
        return self.ask_whether_cut is not None and self.ask_whether_cut()

    # Markup

    cdef Kind markup(self) except *:
        """Read the token that starts with the "<" at the current position; `NO_TOKEN` if it has no meaning."""
        cdef const uint8_t *ahead
        cdef Py_ssize_t size
        self.peek(9)
        ahead, size = self.data + self.position, self.size - self.position
        if size >= 2 and ahead[1] == c'!':
            if size >= 4 and ahead[2] == c'-' and ahead[3] == c'-':
                self.comment()
                return NO_TOKEN
            if size >= 9 and is_word(ahead, b"<!DOCTYPE", 9):
                self.doctype()
                return NO_TOKEN
            if size >= 9 and is_word(ahead, b"<![CDATA[", 9):
                return self.cdata()
            return self.malformed(self.find(GREATER, 2, MAX_TAG))
        if size >= 2 and ahead[1] == c'?':
            self.instruction()
            return NO_TOKEN
        if size >= 2 and (ahead[1] == c'/' or CLASSES[ahead[1]] & STARTS_NAME):
            return self.tag()
        return self.strays()

    cdef Kind strays(self) except *:
        """Read the text that begins with a "<" of no tag, and goes on up to the next tag, if that is not far."""
        cdef Py_ssize_t start = self.position, stop = min(start + TEXT_BYTES, self.size), at = start, size, count = 0
        cdef const uint8_t *found
        if start + 1 == self.size and self.is_cut():
            self.position += 1
            return NO_TOKEN
        while at + 1 < stop and self.data[at] == c'<' and CLASSES[self.data[at + 1]] & STRAY_AFTER:
            count += 1
            found = next_tag(self.data + at + 1, self.data + stop)
            at = found - self.data if found != NULL else stop
        if at == start:
            at, count = start + 1, 1
        size = at - start
        self.note_strays(size, count)
        self.text, self.text_size, self.text_at = self.data + self.position, size, self.base + self.position
        self.position += size
        return TEXT

    cdef int note_strays(self, Py_ssize_t size, Py_ssize_t count) except -1:
        """Note each "<" of a text, the first ones with their places."""
        cdef Py_ssize_t at = 0, start = self.base + self.position, noted = 0
        cdef str text
        if self.log.keeps("X104"):
            self.peek(size + SHOWN_BYTES)
        while noted < count and self.log.keeps("X104"):
            text = self.shown(at, SHOWN_BYTES)
            self.log.add("X104", start + at, text, "")
            at = self.buffer.find(b"<", self.position + at + 1, self.position + size) - self.position
            noted += 1
        if noted < count:
            self.log.count("X104", count - noted, start + size - 1)
        return 0

    cdef int comment(self) except -1:
        cdef Py_ssize_t end = self.find(COMMENT_END, 4, MAX_SECTION)
        if end < 0:
            return self.unclosed(COMMENT_START, COMMENT_END, end)
        self.position += end + 3
        return 0

    cdef Kind cdata(self) except *:
        cdef Py_ssize_t again, end = self.find(CDATA_END, 9, MAX_SECTION)
        cdef bint is_closed = True
        if end < 0:
            self.unclosed(CDATA_START, CDATA_END, end)
            return NO_TOKEN
        again = self.find(CDATA_START, 9, MAX_SECTION)
        if 0 <= again < end and self.opens_field_again(again):
            self.note("X112", "<![CDATA[")
            end = self.find(END_START, 9, MAX_TAG)
            is_closed = False
            self.is_open = True
        self.text, self.text_size = self.data + self.position + 9, end - 9
        self.text_at = self.base + self.position + 9
        self.position += end + 3 * is_closed
        return CDATA

    cdef bint opens_field_again(self, Py_ssize_t again) except -1:
        """Return whether the field around a CDATA section ends, and opens again right before another section."""
        cdef Py_ssize_t ends = self.find(END_START, 9, MAX_TAG), size = self.started_size, stop, start, at
        cdef const uint8_t *data
        if not 0 <= ends < again:
            return False
        data = self.data
        at = self.position + ends + 2
        if self.size - at < size + 1 or not self.is_started(data + at) or data[at + size] != c'>':
            return False
        stop = self.position + again
        start = max(self.position, stop - NEAR_BYTES)
        while stop > start and is_blank(data[stop - 1]):
            stop -= 1
        at = stop - size - 2
        if at < start or data[at] != c'<' or data[stop - 1] != c'>':
            return False
        return self.is_started(data + at + 1)

    cdef bint is_started(self, const uint8_t *name) noexcept:
        """Return whether the name of the last start tag stands here. Before the first tag, it is empty."""
        return self.started_size == 0 or memcmp(name, self.started, <size_t>self.started_size) == 0

    cdef int unclosed(self, int opening, int closing, Py_ssize_t end) except -1:
        """Handle a section whose end is not near. If it has none, continue inside it; if it is huge or cut, skip it."""
        cdef bytes what = WHATS[closing]
        cdef Py_ssize_t found
        if end == NOWHERE and self.is_cut():
            self.position = self.size
            return 0
        self.note("X112", OPENINGS[opening])
        if end == NOWHERE:
            self.position += WHAT_SIZES[opening]
            return 0
        while True:
            found = self.buffer.find(what, self.position)
            if found >= 0:
                break
            self.position = max(self.position, self.size - len(what) + 1)
            if not self.refill():
                self.position = self.size
                return 0
        self.position = found + len(what)
        return 0

    cdef int doctype(self) except -1:
        cdef Py_ssize_t end
        self.peek(DOCTYPE_BYTES)
        end = self.end_of_doctype()
        if end < 0:
            self.refused = "its DOCTYPE has declarations of its own, or no end, which is refused for safety"
            return 0
        self.note("X110", "")
        self.position = end
        return 0

    cdef Py_ssize_t end_of_doctype(self) noexcept:
        """Return where the DOCTYPE ends, -1 if it has an internal subset or no end."""
        cdef Py_ssize_t at = self.position + 9
        cdef const uint8_t *closing
        cdef uint8_t c
        while at < self.size:
            c = self.data[at]
            if c == c'>':
                return at + 1
            if c == c'<' or c == c'[':
                return -1
            if c == c'"' or c == c"'":
                closing = <const uint8_t *>memchr(self.data + at + 1, c, <size_t>(self.size - at - 1))
                if closing == NULL:
                    return -1
                at = closing - self.data
            at += 1
        return -1

    cdef int instruction(self) except -1:
        """Skip `<?xml ...?>`. If the second question mark is missing, it ends at the first ">"."""
        cdef Py_ssize_t proper, tag, end = self.find(GREATER, 2, MAX_TAG)
        if end < 0:
            return self.unclosed(INSTRUCTION_START, INSTRUCTION_END, end)
        if self.data[self.position + end - 1] != c'?':
            proper = self.find(INSTRUCTION_END, end, MAX_TAG)
            tag = self.find(LESS, end, MAX_TAG)
            if 0 <= proper < tag or (proper >= 0 > tag):
                end = proper + 1
            else:
                self.note("X112", "<?")
                self.is_open = True
        self.position += end + 1
        return 0

    cdef Kind tag(self) except *:
        """Read a tag with attributes, or a malformed one."""
        cdef Tag tag
        cdef Py_ssize_t start, stop, end, at
        cdef uint8_t quote = 0
        cdef int i
        if self.cut_tag(&tag):
            self.note_malformed(tag.end - self.position, True)
            self.position = tag.end
            self.name, self.name_size = self.data + tag.name, tag.name_end - tag.name
            self.text, self.text_size = self.data + tag.name_end, tag.end - tag.name_end
            return NO_TOKEN if not self.name_size else END if tag.is_end else START
        end = self.find(GREATER, 1, MAX_TAG)
        if end < 0:
            return self.malformed(end)
        if self.match_plain(self.position, self.position + end + 1, &tag) and tag.end == self.position + end + 1:
            return self.plain(&tag)
        at = end_of(CLASSES, self.data, self.position + 1, self.position + end + 1, IN_NAME) - self.position
        if at == 1:
            return self.malformed(end)  # an end tag that is not plain
        tag.name_end = at
        for i in range(MAX_QUOTED_ENDS):
            if end < 0:
                break
            start, stop = self.position, self.position + end + 1
            while start + at < stop - 1:  # the last byte is a ">"
                if self.data[start + at] == c'<':
                    return self.malformed(self.find(GREATER, 1, MAX_TAG))
                if quote:
                    quote = 0 if self.data[start + at] == quote else quote
                elif self.data[start + at] == c'"' or self.data[start + at] == c"'":
                    quote = self.data[start + at]
                at += 1
            if not quote:
                self.position = stop
                self.name, self.name_size = self.data + start + 1, tag.name_end - 1
                self.text, self.text_size = self.data + start + tag.name_end, end - tag.name_end
                self.set_started(self.name, self.name_size)
                if self.text_size and self.text[self.text_size - 1] == c'/':
                    self.text_size -= 1
                    return EMPTY
                return START
            end = self.find(GREATER, end + 1, MAX_TAG)  # this one is inside quotes
        return self.malformed(self.find(GREATER, 1, MAX_TAG))

    cdef bint cut_tag(self, Tag *tag) noexcept:
        """Return whether there is a tag that has no end before the next one starts."""
        cdef const uint8_t *data = self.data
        cdef Py_ssize_t at = self.position + 1, stop
        tag.is_end = at < self.size and data[at] == c'/'
        at += tag.is_end
        tag.name = at
        at = tag.name_end = end_of(CLASSES, data, at, self.size, IN_NAME)
        stop = min(at + MAX_CUT_BYTES, self.size)
        while at < stop and data[at] != c'<' and data[at] != c'>':
            at += 1
        tag.end = at
        return at < self.size and data[at] == c'<'

    cdef Kind malformed(self, Py_ssize_t end) except *:
        """Read a malformed tag, if it has a name. It ends at the next ">" or before the next "<"."""
        cdef Py_ssize_t following = self.find(LESS, 1, MAX_TAG), length, at, start
        cdef bint is_end
        if end < 0 and following < 0:
            if following != NOWHERE:  # else the document is truncated, which is noted at its end
                self.peek(40)
                self.note_malformed(min(40, self.size - self.position), False)
                self.position += 1
            else:
                self.peek(MAX_TAG)
                self.position += min(MAX_TAG, self.size - self.position)
            return NO_TOKEN
        length = following if end < 0 or 0 <= following < end else end + 1
        self.note_malformed(length, True)
        start = self.position
        self.position += length
        at = start + 1
        is_end = at < self.position and self.data[at] == c'/'
        at += is_end
        self.name = self.data + at
        at = end_of(CLASSES, self.data, at, self.position, IN_NAME)
        self.name_size = self.data + at - self.name
        if not self.name_size:
            return NO_TOKEN
        self.text, self.text_size = self.data + at, self.position - at
        while self.text_size and self.text[self.text_size - 1] == c'>':
            self.text_size -= 1
        return END if is_end else START

    # Problems

    cdef int note_malformed(self, Py_ssize_t size, bint is_stripped) except -1:
        """Note that a tag of this size is malformed."""
        cdef str text
        if self.log.keeps("X105"):
            text = self.shown(0, min(size, 80))
            self.log.add("X105", self.base + self.position, text.rstrip() if is_stripped else text, "")
        else:
            self.log.count("X105", 1, self.base + self.position)
        return 0

    cdef int note(self, str code, str text) except -1:
        """Note a problem at the current position."""
        return self.log.add(code, self.base + self.position, text, "")

    cdef str shown(self, Py_ssize_t start, Py_ssize_t size):
        """Return the text at the current position, or behind it, for a message."""
        start += self.position
        return self.buffer[start : start + size].decode("utf-8", "replace")
