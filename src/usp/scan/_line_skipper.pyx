# cython: language_level=3, cdivision=True
"""Skip lines of a robots.txt or a text sitemap that say nothing, read those of a text sitemap, and count problems.

A line is skipped only if it is certain, by the texts that it lacks, that `usp.scan.lines` would find no sitemap or no
URL on it. A line with a problem that the log keeps is left to Python.
"""

cimport cython
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp

from usp._interface cimport USP_INTERFACE
from usp.scan._line_urls cimport urls_on
from usp.scan._markup cimport Log
from usp.scan._texts cimport character_at, is_utf8
from usp.scan._urls cimport Form, WITHOUT_SCHEME, url_of

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    bint Py_UNICODE_ISSPACE(uint32_t character) noexcept nogil

cdef enum:  # kinds of bytes
    BREAK = 1  # ends a line
    MAY_BREAK = 2  # the first byte of a character that does
    DROPPED = 4  # control characters, which are removed from lines
    COLON = 8
    DOT = 16
    HIGH = 32
    VISIBLE = 64

cdef enum:  # kinds of lines
    LEAVE  # to Python
    ODD
    PLAIN  # a URL and nothing else

cdef enum:
    MAX_LINES = 512  # that are read at once
    MAX_PLAIN = 8  # lines that are a URL, one after the other: the readers of such lines are faster

cdef uint8_t KINDS[256]
cdef object decode_bad_field, own_hosts_of, urls_without_scheme, Place, new_tuple, SITEMAPS, URLS_AND_PROBLEMS
cdef dict CONTROLS
cdef Py_ssize_t MAX_LINE
cdef tuple INVISIBLE  # in UTF-8


def bind():
    """Import what this module uses of usp."""
    global decode_bad_field, own_hosts_of, urls_without_scheme, Place, new_tuple, SITEMAPS, URLS_AND_PROBLEMS
    global MAX_LINE, INVISIBLE, CONTROLS
    cdef int c
    from usp.objects.problem import Place
    from usp.scan import lines, urls
    from usp.scan.encodings import decode_bad_field

    own_hosts_of, MAX_LINE = urls._scheme_and_own_hosts, lines.MAX_LINE_BYTES
    urls_without_scheme, CONTROLS, new_tuple = lines.urls_without_scheme, lines._CONTROLS, tuple.__new__
    SITEMAPS, URLS_AND_PROBLEMS = lines.LineKind.SITEMAPS, lines.LineKind.URLS_AND_PROBLEMS
    INVISIBLE = tuple(character.encode() for character in urls.INVISIBLE)
    for c in range(256):
        KINDS[c] = HIGH if c >= 128 else DROPPED if c < 32 and c != 9 or c == 127 else 0 if chr(c).isspace() else VISIBLE
    for c in (10, 11, 12, 13):
        KINDS[c] = BREAK
    KINDS[0xC2] |= MAY_BREAK
    KINDS[0xE2] |= MAY_BREAK
    KINDS[c':'] |= COLON
    KINDS[c'.'] |= DOT


@cython.final
cdef class LineSkipper:
    """Skips lines that say nothing; see `usp.scan.lines.PureLineSkipper`."""

    cdef Log log
    cdef bint finds_sitemaps  # those of a robots.txt, not URLs
    cdef bint notes_lines  # whether a line without a URL is a problem
    cdef bint notes_bytes  # whether bytes that are not UTF-8 are one
    cdef bint may_have_any_host  # the document's own host is not ASCII
    cdef list hosts  # of the document, which may stand without a scheme
    cdef str base
    cdef uint8_t *cleaned

    def __cinit__(self, log, kind, str base not None):
        self.log = Log(log)
        self.finds_sitemaps = kind is SITEMAPS
        self.notes_bytes = self.log.counts is not None
        self.notes_lines = self.notes_bytes and kind is URLS_AND_PROBLEMS
        self.base = base
        hosts = own_hosts_of(base)[1]
        self.may_have_any_host = not all(host.isascii() for host in hosts)
        self.hosts = [host.encode() for host in hosts]
        self.cleaned = <uint8_t *>malloc(MAX_LINE + 1)
        if self.cleaned == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.cleaned)

    @property
    def skips_any(self):
        """Whether to ask it at all."""
        return True

    def skip(self, bytes buffer not None, Py_ssize_t position):
        """Return where the lines end that it skips, from a position on, and how many they are."""
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef Py_ssize_t size = len(buffer), count = 0, lines = 0, bad = 0, end, after
        cdef bint keeps_lines = self.notes_lines and self.log.keeps("P412")
        cdef bint keeps_bytes = self.notes_bytes and self.log.keeps("E203")
        cdef bint is_line, is_bad
        cdef uint8_t seen
        if not 0 <= position <= size:
            raise ValueError("the position is not in the buffer")
        while True:
            after = end_of_line(data, size, position, &end, &seen)
            if after < 0 or end - position > MAX_LINE:
                break
            is_line = (seen & VISIBLE) != 0
            is_bad = False
            if seen & (COLON | DOT | HIGH | DROPPED):
                is_bad = seen & HIGH and not is_utf8(data + position, end - position)
                if not self.says_nothing(data + position, end - position, seen, is_bad, &is_line):
                    break
            if is_line and keeps_lines or is_bad and keeps_bytes:
                break
            lines += is_line
            bad += is_bad
            count += 1
            position = after
        if lines and self.notes_lines:
            self.log.count("P412", lines, 0)
        if bad and self.notes_bytes:
            self.log.count("E203", bad, 0)
        return position, count

    def find(self, bytes buffer not None, Py_ssize_t position, Py_ssize_t number):
        """Return the URLs on some lines of a text sitemap, where these lines end, and how many they are.

        The first of them has this number. Each URL comes with its place and the codes of its problems.
        """
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef Py_ssize_t size = len(buffer), count = 0, end, after
        cdef list found = []
        cdef bint is_line, is_bad
        cdef int plain = 0, kind
        cdef uint8_t seen
        if not 0 <= position <= size:
            raise ValueError("the position is not in the buffer")
        while count < MAX_LINES and plain < MAX_PLAIN:
            after = end_of_line(data, size, position, &end, &seen)
            if after < 0 or end - position > MAX_LINE:
                break
            is_line = (seen & VISIBLE) != 0
            is_bad = seen & HIGH and not is_utf8(data + position, end - position)
            if seen & (COLON | DOT | HIGH | DROPPED) and not self.says_nothing(
                data + position, end - position, seen, is_bad, &is_line
            ):
                kind = self.read(data + position, end - position, is_bad, number + count, found)
                if kind == LEAVE:
                    break
                plain = plain + 1 if kind == PLAIN else 0
            elif not self.may_count(is_line, is_bad):
                break
            count += 1
            position = after
        return found, position, count

    cdef bint may_count(self, bint is_line, bint is_bad) except -1:
        """Count the problems of a line without URLs. Return false, and count none, if the log keeps one of them."""
        if is_line and self.notes_lines and self.log.keeps("P412") or is_bad and self.notes_bytes and self.log.keeps("E203"):
            return False
        if is_line and self.notes_lines:
            self.log.count("P412", 1, 0)
        if is_bad and self.notes_bytes:
            self.log.count("E203", 1, 0)
        return True

    cdef int read(self, const uint8_t *data, Py_ssize_t size, bint is_bad, Py_ssize_t number, list found) except -1:
        """Add the URLs on a line that may have some. Return what kind of line it is."""
        cdef str whole, line, text
        cdef list texts = []
        cdef tuple codes = ()
        cdef Py_ssize_t column
        cdef Form form
        cdef bint has_schemes
        whole = decode_bad_field(data[:size]) if is_bad else PyUnicode_DecodeUTF8(<const char *>data, size, NULL)
        line = (whole if whole.isprintable() else whole.translate(CONTROLS)).strip()
        if not line:
            return ODD if self.may_count(False, is_bad) else LEAVE
        if "://" in line:
            texts = urls_on(line)
        has_schemes = len(texts) > 0
        if not has_schemes and "." in line:
            if not line.isprintable() or "\t" in line or "#" in line or line.startswith("- "):  # white space, too
                texts = urls_without_scheme(line, self.base)
            else:
                text = url_of(line, self.base, &form)
                if form == WITHOUT_SCHEME and " " in line:
                    texts = urls_without_scheme(line, self.base)
                elif form == WITHOUT_SCHEME:
                    texts = [text[text.index("://") + 3:]]
        if not texts:
            return ODD if self.may_count(True, is_bad) else LEAVE
        if len(texts) > 1 or texts[0] != line:
            codes = ("P427",) if has_schemes else ("P427", "U514")
        elif not has_schemes:
            codes = ("U514",)
        if is_bad:
            codes = ("E203", *codes)
        if self.notes_bytes:
            for code in codes:
                if self.log.keeps(code):
                    return LEAVE
            for code in codes:
                self.log.count(code, len(texts) if code == "U514" else 1, 0)
        column = max(whole.find(line[0]), 0) + 1
        for text in texts:
            at = new_tuple(Place, (number, column + max(line.find(text), 0)))
            url = text if has_schemes else url_of(text, self.base, &form)
            if url is not None:
                found.append((at, url, codes))
        return ODD if codes else PLAIN

    cdef bint says_nothing(
        self, const uint8_t *line, Py_ssize_t size, uint8_t seen, bint is_bad, bint *is_line
    ) except -1:
        """Return whether a line certainly names no sitemap, or has no URL; `is_line` becomes whether it is not blank."""
        if seen & (HIGH | DROPPED):
            size = clean(self.cleaned, line, size, is_bad)
            line = self.cleaned
            is_line[0] = is_visible(line, size, is_bad)
        if self.finds_sitemaps:
            return not seen & COLON or not (has(line, size, b"map", 3) or has(line, size, b"xml", 3))
        if seen & COLON:
            if has(line, size, b"http", 4) and (has(line, size, b"p://", 4) or has(line, size, b"s://", 4)):
                return False
            if seen & HIGH and has(line, size, b"\xc5\xbf", 2):  # to a pattern, the letter of old for "s" is one
                return False
        if seen & DOT:
            if has(line, size, b"www.", 4) or seen & HIGH and self.may_have_any_host:
                return False
            if seen & HIGH and has(line, size, b"\xe2\x84\xaa", 3):  # the sign of the kelvin, whose lower case is "k"
                return not self.hosts
            for host in self.hosts:
                if has(line, size, <const uint8_t *><bytes>host, len(<bytes>host)):
                    return False
        return True


cdef Py_ssize_t end_of_line(
    const uint8_t *data, Py_ssize_t size, Py_ssize_t at, Py_ssize_t *end, uint8_t *seen
) noexcept nogil:
    """Return where the next line starts, or -1 if that is not certain. Set where this one ends, and what it has."""
    cdef uint8_t kinds = 0, kind
    while at < size:
        kind = KINDS[data[at]]
        if kind & BREAK:
            end[0], seen[0] = at, kinds
            if data[at] != 13:
                return at + 1
            if at + 1 == size:
                return -1
            return at + 2 if data[at + 1] == 10 else at + 1
        if kind & MAY_BREAK:
            if at + 2 >= size:
                return -1
            if data[at] == 0xC2 and data[at + 1] == 0x85:
                end[0], seen[0] = at, kinds
                return at + 2
            if data[at] == 0xE2 and data[at + 1] == 0x80 and (data[at + 2] | 1) == 0xA9:
                end[0], seen[0] = at, kinds
                return at + 3
        kinds |= kind
        at += 1
    return -1


cdef Py_ssize_t clean(uint8_t *out, const uint8_t *line, Py_ssize_t size, bint is_bad):
    """Write a line without control characters and invisible marks. Return its size."""
    cdef Py_ssize_t i = 0, n = 0, length
    cdef bytes mark
    while i < size:
        if KINDS[line[i]] & DROPPED or is_bad and line[i] == 0xAD:
            i += 1
            continue
        if KINDS[line[i]] & HIGH and not is_bad:
            length = 0
            for mark in INVISIBLE:
                if size - i >= len(mark) and memcmp(line + i, <const char *>mark, <size_t>len(mark)) == 0:
                    length = len(mark)
            if length:
                i += length
                continue
        out[n] = line[i]
        n += 1
        i += 1
    return n


cdef bint is_visible(const uint8_t *line, Py_ssize_t size, bint is_bad) noexcept nogil:
    """Return whether a line has anything but white space."""
    cdef uint32_t character
    cdef Py_ssize_t i = 0, step
    while i < size:
        if line[i] < 128:
            if KINDS[line[i]] & VISIBLE:
                return True
            i += 1
        elif is_bad:
            if line[i] != 0xA0:
                return True
            i += 1
        else:
            step = character_at(line + i, size - i, &character)
            if step == 0 or not Py_UNICODE_ISSPACE(character):
                return True
            i += step
    return False


cdef inline uint8_t lower(uint8_t c) noexcept nogil:
    return c | 32 if c'A' <= c <= c'Z' else c


cdef bint has(const uint8_t *line, Py_ssize_t size, const uint8_t *text, Py_ssize_t length) noexcept nogil:
    """Return whether a line has a text of lower case, in any case."""
    cdef Py_ssize_t i, k
    for i in range(size - length + 1):
        k = 0
        while k < length and lower(line[i + k]) == text[k]:
            k += 1
        if k == length:
            return True
    return False
