# cython: language_level=3, cdivision=True
"""The patterns that a survey compares URLs with: the starts of its sites, and the texts of robots.txt rules."""

cimport cython
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memchr, memcmp, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport SPECIAL, is_same

from usp.scan._check import CODE_BITS

INTERFACE = USP_INTERFACE


cdef inline bint starts_with(const uint8_t *url, Py_ssize_t size, Text *text) noexcept nogil:
    return size >= text.size and is_same(url, text.start, <size_t>text.size)


cdef Py_ssize_t find_end(const uint8_t *url, Py_ssize_t at, Py_ssize_t size, Text *text) noexcept nogil:
    """Find a text in a URL, from `at` on. Return where it ends, or -1."""
    cdef const uint8_t *found
    if text.size == 0:
        return at
    while size - at >= text.size:
        found = <const uint8_t *>memchr(url + at, text.start[0], <size_t>(size - at - text.size + 1))
        if found == NULL:
            return -1
        at = found - url
        if memcmp(found, text.start, <size_t>text.size) == 0:
            return at + text.size
        at += 1
    return -1


cdef bint has_escaped_ascii(const uint8_t *url, Py_ssize_t size) noexcept nogil:
    cdef const uint8_t *end = url + size
    while True:
        url = <const uint8_t *>memchr(url, c'%', <size_t>(end - url))
        if url == NULL or end - url < 2:
            return False
        if c'0' <= url[1] <= c'7':
            return True
        url += 1


@cython.final
cdef class URLPatterns:
    """The patterns of `SurveyOptions` that URLs are compared with: starts of sites, and texts of robots.txt rules."""

    def __init__(self, options):
        cdef int i = 0
        self.kept = []
        self.site_count = len(options.sites)
        self.text_count = sum(map(len, options.may_disallow))
        self.sites = <Text *>calloc(self.site_count + 1, sizeof(Text))
        self.sequences = <Text *>calloc(self.text_count + 1, sizeof(Text))
        own_hosts = sorted(options.own_hosts or ())
        self.has_hosts, self.host_count = options.own_hosts is not None, len(own_hosts)
        self.hosts = <Text *>calloc(self.host_count + 1, sizeof(Text))
        if self.sites == NULL or self.sequences == NULL or self.hosts == NULL:
            raise MemoryError
        for i, host in enumerate(own_hosts):
            self.hosts[i] = self.text(host, 0)
        for i, (start, code) in enumerate(options.sites):
            self.sites[i] = self.text(start, CODE_BITS[code] + 1 if code else 0)
        i = 0
        for first, *others in options.may_disallow:
            self.sequences[i] = self.text(first, len(others))
            for number, other in enumerate(others, i + 1):
                self.sequences[<int>number] = self.text(other, 0)
            i += 1 + <int>len(others)
        self.find_common()

    def __dealloc__(self):
        free(self.hosts)
        free(self.sites)
        free(self.sequences)

    cdef Text text(self, str text, int number) except *:
        cdef Text made
        cdef bytes encoded = text.encode("utf-8", "surrogatepass")
        self.kept.append(encoded)
        made.start, made.size, made.number = <const uint8_t *>encoded, len(encoded), number
        return made

    cdef void find_common(self) noexcept:
        cdef int i = 0
        cdef Py_ssize_t same
        cdef Text *text
        self.common = self.sequences[0]
        while i < self.text_count:
            text, same = &self.sequences[i], 0
            while same < self.common.size and same < text.size and text.start[same] == self.common.start[same]:
                same += 1
            self.common.size = same
            i += 1 + text.number
        memset(self.next_bytes, 0, 256)
        i = 0
        while i < self.text_count:
            text = &self.sequences[i]
            if text.size == self.common.size:
                memset(self.next_bytes, 1, 256)
            else:
                self.next_bytes[text.start[self.common.size]] = 1
            i += 1 + text.number

    cdef int site_code(self, const uint8_t *url, Py_ssize_t size) noexcept nogil:
        """Return the number of the first site that a URL starts with, or -1."""
        cdef int i
        for i in range(self.site_count):
            if starts_with(url, size, &self.sites[i]):
                return self.sites[i].number
        return -1

    cdef bint is_of_others(self, const uint8_t *url, Py_ssize_t origin) noexcept nogil:
        """Return whether a URL certainly has the code U506, by its scheme and host. A port needs a closer look."""
        cdef Py_ssize_t start, i
        cdef int k
        if not self.has_hosts or origin < 8 or memcmp(url, b"http", 4):
            return False
        start = 8 if url[4] == c's' else 7
        if memcmp(url + start - 3, b"://", 3) or start == origin:
            return False
        for i in range(start, origin):
            if url[i] == c'.':
                if i == start or i == origin - 1 or url[i - 1] == c'.':
                    return False
            elif not (c'a' <= url[i] <= c'z' or c'0' <= url[i] <= c'9' or url[i] == c'-'):
                return False
        if origin - start > 4 and memcmp(url + start, b"www.", 4) == 0:
            start += 4
        for k in range(self.host_count):
            if self.hosts[k].size == origin - start and memcmp(self.hosts[k].start, url + start, origin - start) == 0:
                return False
        return True

    cdef bint may_be_disallowed(self, const uint8_t *url, Py_ssize_t size, uint8_t flags) noexcept nogil:
        """Do as `usp.scan.survey.may_be_disallowed`."""
        cdef int i = 0, j
        cdef Py_ssize_t at
        if not self.text_count:
            return False
        if flags & SPECIAL and has_escaped_ascii(url, size):
            return True
        if not starts_with(url, size, &self.common):
            return False
        if size > self.common.size and not self.next_bytes[url[self.common.size]]:
            return False
        while i < self.text_count:
            if starts_with(url, size, &self.sequences[i]):
                at = self.sequences[i].size
                for j in range(i + 1, i + 1 + self.sequences[i].number):
                    at = find_end(url, at, size, &self.sequences[j])
                    if at < 0:
                        break
                if at >= 0:
                    return True
            i += 1 + self.sequences[i].number
        return False
