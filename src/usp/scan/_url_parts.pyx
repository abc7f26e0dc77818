# cython: language_level=3, cdivision=True
"""Split a column of URLs into columns of their hosts, paths and sections. As `usp.scan.url_parts.pure_split_urls`."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy

from usp._interface cimport USP_INTERFACE
from usp.scan._buffers cimport Texts, free_texts, has_values, last_end, put_bytes, put_end, text_column

INTERFACE = USP_INTERFACE

cdef enum:
    MAX_KEPT_HOST = 256  # bytes

ctypedef struct Span:
    const uint8_t *text
    Py_ssize_t size


cdef inline bint is_letter(uint8_t byte) noexcept nogil:
    return c"a" <= byte | 0x20 <= c"z"


cdef inline bint is_of_scheme(uint8_t byte) noexcept nogil:
    return is_letter(byte) or c"0" <= byte <= c"9" or byte == c"+" or byte == c"." or byte == c"-"


cdef const uint8_t *after_scheme(const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return where the scheme and its colon end; the start of the text if there are none."""
    cdef const uint8_t *start = at
    if at == end or not is_letter(at[0]):
        return start
    while at < end and is_of_scheme(at[0]):
        at += 1
    return at + 1 if at < end and at[0] == c":" else start


cdef inline bint ends_authority(uint8_t byte) noexcept nogil:
    return byte == c"/" or byte == c"?" or byte == c"#"


cdef Span host_in(const uint8_t *start, const uint8_t *end) noexcept nogil:
    """Return the host of an authority, without user, port, brackets and dots at the end."""
    cdef Span host
    cdef const uint8_t *at
    cdef uint8_t closing = c":"
    at = end
    while at > start and (at - 1)[0] != c"@":
        at -= 1
    start = at
    if start < end and start[0] == c"[":
        start += 1
        closing = c"]"
    at = start
    while at < end and at[0] != closing:
        at += 1
    while at > start and (at - 1)[0] == c".":
        at -= 1
    host.text, host.size = start, at - start
    return host


cdef inline bint is_ascii(Span span) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint8_t all_bits = 0
    for i in range(span.size):
        all_bits |= span.text[i]
    return all_bits < 128


cdef inline int put_span(Texts *texts, const uint8_t *start, const uint8_t *end) except -1 nogil:
    """Add a text; null if it is empty."""
    if start == end:
        return put_end(&texts.ends, last_end(&texts.ends), False)
    return put_bytes(texts, start, end - start)


cdef int put_host(Texts *texts, Span host, dict known, normalized_host) except -1 nogil:
    """Add a host in lower case, or as the caller normalizes it if it is not ASCII; null if it is empty."""
    cdef uint8_t *written
    cdef Py_ssize_t i
    if not is_ascii(host):
        with gil:
            return put_foreign_host(texts, host, known, normalized_host)
    put_span(texts, host.text, host.text + host.size)
    if host.size:
        written = texts.data + last_end(&texts.ends) - host.size
        for i in range(host.size):
            if c"A" <= written[i] <= c"Z":
                written[i] |= 0x20
    return 0


cdef int put_foreign_host(Texts *texts, Span host, dict known, normalized_host) except -1:
    cdef bytes raw = host.text[:host.size]
    cdef bytes made
    cdef const uint8_t *text
    if raw not in known:
        known[raw] = normalized_host(raw.decode()).encode()
    made = known[raw]
    text = <const uint8_t *>made
    return put_span(texts, text, text + len(made))


@cython.final
cdef class Splitter:
    """Collects the wanted parts of URLs."""

    cdef Texts hosts
    cdef Texts paths
    cdef Texts sections
    cdef bint wants_host
    cdef bint wants_path
    cdef bint wants_section
    cdef dict known  # hosts that are not ASCII -> as the caller normalizes them
    cdef object normalized_host
    # Neighbours mostly have the same host, so the last one is kept.
    cdef const uint8_t *prefix  # scheme and authority of the last URL
    cdef Py_ssize_t prefix_size
    cdef uint8_t last_host[MAX_KEPT_HOST]  # as it was added
    cdef Py_ssize_t last_host_size  # 0 if there is none to use again

    def __cinit__(self, wanted, normalized_host):
        self.wants_host, self.wants_path, self.wants_section = "host" in wanted, "path" in wanted, "section" in wanted
        self.known = {}
        self.normalized_host = normalized_host

    def __dealloc__(self):
        free_texts(&self.hosts)
        free_texts(&self.paths)
        free_texts(&self.sections)

    cdef int split(self, const uint8_t *at, const uint8_t *end) except -1 nogil:
        """Add the parts of a URL."""
        cdef const uint8_t *start
        cdef bint has_host
        if self.is_of_last_host(at, end):
            has_host = True
            at += self.prefix_size
            if self.wants_host:
                put_bytes(&self.hosts, self.last_host, self.last_host_size)
        else:
            at = self.split_authority(at, end, &has_host)
        start = at
        while at < end and at[0] != c"?" and at[0] != c"#":
            at += 1
        if self.wants_path:
            if start == at and has_host:
                put_bytes(&self.paths, b"/", 1)
            else:
                put_span(&self.paths, start, at)
        if self.wants_section:
            while start < at and start[0] == c"/":
                start += 1
            end = start
            while end < at and end[0] != c"/":
                end += 1
            put_span(&self.sections, start, end)
        return 0

    cdef inline bint is_of_last_host(self, const uint8_t *at, const uint8_t *end) noexcept nogil:
        cdef Py_ssize_t size = self.prefix_size
        if not self.last_host_size or end - at < size or memcmp(at, self.prefix, <size_t>size):
            return False
        return end - at == size or ends_authority(at[size])

    cdef const uint8_t *split_authority(
        self, const uint8_t *at, const uint8_t *end, bint *has_host
    ) except NULL nogil:
        """Add the host of a URL. Return where its authority ends."""
        cdef Span host
        cdef const uint8_t *start
        cdef const uint8_t *first = at
        cdef int64_t before
        at = after_scheme(at, end)
        host.text, host.size = at, 0
        if end - at >= 2 and at[0] == c"/" and at[1] == c"/":
            at += 2
            start = at
            while at < end and not ends_authority(at[0]):
                at += 1
            host = host_in(start, at)
        has_host[0] = host.size > 0
        if not self.wants_host:
            return at
        before = last_end(&self.hosts.ends)
        put_host(&self.hosts, host, self.known, self.normalized_host)
        self.last_host_size = last_end(&self.hosts.ends) - before
        if self.last_host_size > MAX_KEPT_HOST:
            self.last_host_size = 0
        if self.last_host_size:
            memcpy(self.last_host, self.hosts.data + before, <size_t>self.last_host_size)
        self.prefix, self.prefix_size = first, at - first
        return at

    cdef int split_all(self, const uint8_t *data, const int64_t *offsets, size_t rows) except -1 nogil:
        cdef size_t row
        for row in range(rows):
            self.split(data + offsets[row], data + offsets[row + 1])
        return 0

    cdef dict columns(self, size_t rows):
        cdef dict made = {}
        if has_values(&self.hosts.ends):
            made["host"] = text_column(&self.hosts, rows)
        if has_values(&self.paths.ends):
            made["path"] = text_column(&self.paths, rows)
        if has_values(&self.sections.ends):
            made["section"] = text_column(&self.sections, rows)
        return made


def split_urls(urls, wanted, normalized_host):
    """Return the wanted columns. One without any value is left out."""
    cdef Splitter splitter = Splitter(wanted, normalized_host)
    cdef Py_buffer data, offsets
    cdef size_t rows = urls.length
    if rows == 0:
        return {}
    PyObject_GetBuffer(urls.data if urls.data is not None else b"", &data, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(urls.offsets, &offsets, PyBUF_SIMPLE)
        try:
            if <size_t>offsets.len < 8 * (rows + 1) or (<int64_t *>offsets.buf)[rows] > data.len:
                raise ValueError("the offsets do not fit the texts")
            with nogil:
                splitter.split_all(<const uint8_t *>data.buf, <const int64_t *>offsets.buf, rows)
        finally:
            PyBuffer_Release(&offsets)
    finally:
        PyBuffer_Release(&data)
    return splitter.columns(rows)
