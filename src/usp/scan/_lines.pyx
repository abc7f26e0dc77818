# cython: language_level=3, cdivision=True
"""Find the lines of a plain text sitemap that are URLs.

The scan needs no Python object and no GIL, and every read is bounded by the size of the buffer. A line with anything to
repair ends it: `usp.scan.lines` reads that line. What the URLs are used for is not known here.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memchr

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport MAX_TEXT_BYTES
from usp.scan._texts cimport end_of_origin, is_printable_utf8

INTERFACE = USP_INTERFACE


cdef int open_lines(Lines *lines, bytes buffer, Py_ssize_t position) except -1:
    """Start at a position of a buffer."""
    if not 0 <= position <= len(buffer):
        raise ValueError("the position is not in the buffer")
    lines.data, lines.size, lines.at = <const uint8_t *>buffer, len(buffer), position
    lines.feed = lines.carriage_return = -1
    return 0


cdef LineKind next_line(Lines *lines, bint takes_fields) noexcept nogil:
    """Move behind the next line if it is blank or a URL, with spaces and tabs around it or not.

    `takes_fields` says whether other texts may follow the URL, behind a tab.
    """
    cdef const uint8_t *data = lines.data
    cdef Py_ssize_t start = lines.at, end = end_of_line(lines), stop
    if end < 0 or end - start > MAX_TEXT_BYTES:
        return NO_LINE
    stop = without_blanks(data, start, end)
    lines.has_fields = False
    while start < stop and is_blank(data[start]):
        start += 1
    if start < stop:
        lines.origin = end_of_origin(data + start, stop - start)
        if not lines.origin:
            return NO_LINE
        if not is_url_line(data + start, stop - start):
            stop = end_of_first_field(data, start, stop) if takes_fields else -1
            if stop < 0 or start + lines.origin > stop or not is_url_line(data + start, stop - start):
                return NO_LINE
            lines.has_fields = True
    lines.url, lines.url_size = data + start, stop - start
    lines.at = end + 1
    if data[end] == 13 and data[end + 1] == 10:
        lines.at += 1
    return URL_LINE if start < stop else BLANK_LINE


cdef Py_ssize_t end_of_line(Lines *lines) noexcept nogil:
    """Return where the next line ends, or -1 if that is not certain: the LF of a CR may be still to come."""
    cdef Py_ssize_t end
    if lines.feed < lines.at:
        lines.feed = position_of(lines, 10)
    if lines.carriage_return < lines.at:
        lines.carriage_return = position_of(lines, 13)
    end = min(lines.feed, lines.carriage_return)
    if end == lines.size or (end == lines.size - 1 and lines.data[end] == 13):
        return -1
    return end


cdef inline Py_ssize_t position_of(Lines *lines, int byte) noexcept nogil:
    cdef const uint8_t *found = <const uint8_t *>memchr(lines.data + lines.at, byte, <size_t>(lines.size - lines.at))
    return lines.size if found == NULL else found - lines.data


cdef inline bint is_blank(uint8_t byte) noexcept nogil:
    return byte == c' ' or byte == c'\t'


cdef inline Py_ssize_t without_blanks(const uint8_t *data, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """Return the end of a text without the blanks there."""
    while start < end and is_blank(data[end - 1]):
        end -= 1
    return end


cdef bint is_url_line(const uint8_t *line, Py_ssize_t size) noexcept nogil:
    """Return whether a line that starts with http:// and a host is a URL and nothing else, with nothing to repair."""
    cdef uint8_t last = line[size - 1], unseen = 0, high = 0
    cdef Py_ssize_t i
    if last == c'<' or last == c'>' or last == c'"' or last == c"'" or last == c'`' or last == c']':
        return False
    if size > 3 and line[size - 3] == 0xE2 and line[size - 2] == 0x80 and 0x98 <= last <= 0x9D:
        return False  # it may end with a quotation mark
    for i in range(size):
        unseen |= (line[i] <= 32) | (line[i] == 127)
        high |= line[i]
    return not unseen and (high < 128 or is_printable_utf8(line, size))


cdef Py_ssize_t end_of_first_field(const uint8_t *data, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """Return where the first of several fields ends, or -1 if there is one field, or if others may have a URL."""
    cdef const uint8_t *tab = <const uint8_t *>memchr(data + start, c'\t', <size_t>(end - start))
    cdef Py_ssize_t i
    if tab == NULL:
        return -1
    for i in range(tab - data, end):
        if (data[i] < 32 and data[i] != c'\t') or data[i] > 126:
            return -1
        if data[i] == c':' and i + 2 < end and data[i + 1] == c'/' and data[i + 2] == c'/':
            return -1
    return without_blanks(data, start, tab - data)
