# A `usp.scan.survey.SurveyOptions` as C has it: the starts of URLs, and what robots.txt may disallow.

ctypedef struct Text:
    const uint8_t *start
    Py_ssize_t size
    int number  # of a site: 1 + the bit of its code, 0 for none; of the first text of a sequence: how many follow


cdef inline bint starts_with(const uint8_t *url, Py_ssize_t size, Text *text) noexcept nogil:
    return size >= text.size and memcmp(url, text.start, <size_t>text.size) == 0


cdef Py_ssize_t end_of(const uint8_t *url, Py_ssize_t at, Py_ssize_t size, Text *text) noexcept nogil:
    """The end of the first place, from `at` on, where a text stands; -1 if there is none."""
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
cdef class Measures:
    """What the URLs of a sitemap are measured by."""

    cdef list kept  # the bytes that the texts point to
    cdef Text *sites
    cdef Text *sequences  # one behind the other
    cdef int site_count, text_count
    cdef Text common  # what all sequences start with
    cdef uint8_t may_follow[256]  # which byte may stand behind that

    def __init__(self, yardstick):
        cdef int i = 0
        self.kept = []
        self.site_count = len(yardstick.sites)
        self.text_count = sum(map(len, yardstick.may_disallow))
        self.sites = <Text *>calloc(self.site_count + 1, sizeof(Text))
        self.sequences = <Text *>calloc(self.text_count + 1, sizeof(Text))
        if self.sites == NULL or self.sequences == NULL:
            raise MemoryError
        for i, (start, code) in enumerate(yardstick.sites):
            self.sites[i] = self.text(start, CODE_BITS[code] + 1 if code else 0)
        i = 0
        for first, *others in yardstick.may_disallow:
            self.sequences[i] = self.text(first, len(others))
            for number, other in enumerate(others, i + 1):
                self.sequences[<int>number] = self.text(other, 0)
            i += 1 + <int>len(others)
        self.find_common()

    def __dealloc__(self):
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
        memset(self.may_follow, 0, 256)
        i = 0
        while i < self.text_count:
            text = &self.sequences[i]
            if text.size == self.common.size:
                memset(self.may_follow, 1, 256)
            else:
                self.may_follow[text.start[self.common.size]] = 1
            i += 1 + text.number

    cdef int site_code(self, const uint8_t *url, Py_ssize_t size) noexcept nogil:
        """What the first site that a URL starts with says of it, as `Text.number`; -1 if there is none."""
        cdef int i
        for i in range(self.site_count):
            if starts_with(url, size, &self.sites[i]):
                return self.sites[i].number
        return -1

    cdef bint may_be_disallowed(self, const uint8_t *url, Py_ssize_t size, uint8_t flags) noexcept nogil:
        """See `usp.scan.survey`."""
        cdef int i = 0, j
        cdef Py_ssize_t at
        if not self.text_count:
            return False
        if flags & SPECIAL and has_escaped_ascii(url, size):
            return True
        if not starts_with(url, size, &self.common):
            return False
        if size > self.common.size and not self.may_follow[url[self.common.size]]:
            return False
        while i < self.text_count:
            if starts_with(url, size, &self.sequences[i]):
                at = self.sequences[i].size
                for j in range(i + 1, i + 1 + self.sequences[i].number):
                    at = end_of(url, at, size, &self.sequences[j])
                    if at < 0:
                        break
                if at >= 0:
                    return True
            i += 1 + self.sequences[i].number
        return False
