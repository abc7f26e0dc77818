cimport cython
from libc.stdint cimport uint8_t

from usp.scan._markup cimport Log

cdef enum Kind:
    NO_TOKEN, START, EMPTY, END, TEXT, CDATA, LEAF  # what each has: see `usp.scan.tokens.TokenKind`

cdef enum:
    SEARCHES = 7

ctypedef struct Search:  # a part of the document that does not contain something; if `found`, that is right at the end
    Py_ssize_t start, end
    bint is_known, found

ctypedef struct Tag:  # what the pattern of a tag has found, as positions in the buffer
    bint is_end, is_empty
    Py_ssize_t name, name_end, end


@cython.final
cdef class Tokenizer:
    # The token that was read last. It points into the buffer, up to the next one.
    cdef const uint8_t *name
    cdef Py_ssize_t name_size
    cdef const uint8_t *text
    cdef Py_ssize_t text_size
    cdef Py_ssize_t text_at  # the offset of `text`
    cdef readonly Py_ssize_t tag_at  # the offset of the last tag
    cdef readonly object refused
    cdef public object judge  # is given what is read here, not what is skipped
    cdef Py_ssize_t judged  # how much of the buffer the judge has, or needs not have
    cdef bint is_open  # whether the judge may be in a section still: then it gets all that follows

    cdef object chunks
    cdef object ask_whether_cut
    cdef Log log
    cdef bint has_ended
    cdef bytes buffer
    cdef const uint8_t *data
    cdef Py_ssize_t size
    cdef Py_ssize_t base  # the offset of the buffer in the document
    cdef Py_ssize_t position  # in the buffer
    cdef Search searches[SEARCHES]
    cdef uint8_t *started  # the name of the last start tag
    cdef Py_ssize_t started_size
    cdef Py_ssize_t started_room
    cdef Py_ssize_t leaf_text  # where the text of the last leaf starts in the buffer

    cdef Kind next(self) except *
    cdef bint extend(self) except -1
    cdef int skip_to(self, Py_ssize_t position) except -1
    cdef int give_to_judge(self) except -1
    cdef Kind start_of_leaf(self) except *
    cdef Py_ssize_t skip_tags(self, bint are_ends, Py_ssize_t most) noexcept
    cdef bint may_start_entry(self) noexcept

    cdef bint match_leaf(self, Py_ssize_t at) except -1
    cdef bint match_plain(self, Py_ssize_t at, Py_ssize_t stop, Tag *tag) noexcept
    cdef Kind plain(self, Tag *tag) except *
    cdef int set_started(self, const uint8_t *name, Py_ssize_t size) except -1
    cdef int continue_with(self, bytes buffer) except -1
    cdef bint refill(self) except -1
    cdef Py_ssize_t find(self, int what, Py_ssize_t offset, Py_ssize_t most) except? -3
    cdef int peek(self, Py_ssize_t size) except -1
    cdef bint is_cut(self) except -1
    cdef Kind markup(self) except *
    cdef Kind strays(self) except *
    cdef int comment(self) except -1
    cdef Kind cdata(self) except *
    cdef bint opens_field_again(self, Py_ssize_t again) except -1
    cdef bint is_started(self, const uint8_t *name) noexcept
    cdef int unclosed(self, int opening, int closing, Py_ssize_t end) except -1
    cdef int doctype(self) except -1
    cdef Py_ssize_t end_of_doctype(self) noexcept
    cdef int instruction(self) except -1
    cdef Kind tag(self) except *
    cdef bint cut_tag(self, Tag *tag) noexcept
    cdef Kind malformed(self, Py_ssize_t end) except *
    cdef int note_strays(self, Py_ssize_t size, Py_ssize_t count) except -1
    cdef int note_malformed(self, Py_ssize_t size, bint is_stripped) except -1
    cdef int note(self, str code, str text) except -1
    cdef str shown(self, Py_ssize_t start, Py_ssize_t size)
