# The readers of plain entries: each takes what it can from a buffer, and says where the general scanner is to go on.

cdef class Reader:
    """Takes plain entries from a buffer."""

    cdef Batch *batch
    cdef Context context

    def __cinit__(self, *args, **options):
        self.context = Context.__new__(Context)
        self.batch = <Batch *>malloc(sizeof(Batch))
        if self.batch == NULL:
            raise MemoryError
        memset(self.batch.following, 0, sizeof(self.batch.following))

    def __dealloc__(self):
        free(self.batch)

    cdef Stop scan(self, grammar, bytes buffer, Py_ssize_t *at) except *:
        """Fill the batch. Afterwards `at` is behind its last entry."""
        cdef Stop stop
        cdef Py_ssize_t size = self.prepare(grammar, buffer, at[0])
        cdef const uint8_t *data = <const uint8_t *>buffer
        with nogil:
            stop = take_entries(&self.context.tabled.tables, data, size, at, self.batch, MAX_ENTRIES)
        return stop

    cdef Py_ssize_t prepare(self, grammar, bytes buffer, Py_ssize_t position) except -1:
        """Have the tables of a grammar ready; gives the size of what is scanned of the buffer."""
        cdef Py_ssize_t size = min(len(buffer), <Py_ssize_t>1 << 30)
        cdef Context context
        if not 0 <= position <= size:
            raise ValueError("the position is not in the buffer")
        if self.context.tabled is None or self.context.tabled.grammar is not grammar:
            context = Context.__new__(Context)  # entries that were made keep the one they were made with
            context.tabled = tabled(grammar)
            context.resolve, context.convert = self.context.resolve, self.context.convert
            self.context = context
        return size


cdef inline uint8_t record_flags(const uint8_t *data, Record *record) noexcept nogil:
    return record.flags | flags_of(data + record.start, record.size)


ctypedef struct Staged:
    const uint8_t *url
    Py_ssize_t size  # -1 if what the URL is, is for Python to say
    Py_ssize_t origin  # where its scheme and host end, where that matters
    uint64_t hashed
    uint8_t flags


cdef class PlainPages(Reader):
    """Makes pages of plain entries, but for those whose URL was there already."""

    cdef Seen seen
    cdef Staged staged[MAX_ENTRIES]
    cdef uint8_t *urls  # of the entries in the batch
    cdef size_t urls_room

    def __cinit__(self, *args):
        self.seen = Seen()

    def __init__(self, resolve, convert):
        self.context.resolve = resolve
        self.context.convert = convert

    def __dealloc__(self):
        free(self.urls)

    def is_new(self, str url not None):
        """Whether a URL was not there yet."""
        return self.seen.is_new(url)

    def take(self, grammar, bytes buffer not None, Py_ssize_t position):
        """Pages, where they end, and whether more of the document may bring another."""
        cdef list pages = []
        cdef Stop stop = self.scan(grammar, buffer, &position)
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef uint32_t i
        self.stage(data)
        for i in range(self.batch.entry_count):
            page = self.page(data, &self.batch.entries[i], &self.staged[i])
            if page is not None:
                pages.append(page)
        return pages, position, stop == MORE, stop == FULL

    cdef int stage(self, const uint8_t *data) except -1:
        """Find out the URLs of the batch, and have ready what tells whether they were there already."""
        cdef uint32_t i
        cdef size_t room = 0
        for i in range(self.batch.entry_count):
            room += self.batch.records[self.batch.entries[i].loc].size
        if room > self.urls_room:
            enlarge(<void **>&self.urls, room)
            self.urls_room = room
        with nogil:
            self.stage_urls(data, self.urls)
        return 0

    cdef void stage_urls(self, const uint8_t *data, uint8_t *out) noexcept nogil:
        cdef uint32_t i
        cdef Record *loc
        cdef Staged *staged
        for i in range(self.batch.entry_count):
            loc = &self.batch.records[self.batch.entries[i].loc]
            staged = &self.staged[i]
            staged.flags = record_flags(data, loc)
            staged.url = out
            staged.size = url_into(out, data + loc.start, loc.size, staged.flags)
            if staged.size >= 0:
                staged.hashed = self.seen.expect(out, staged.size)
                out += staged.size

    cdef object page(self, const uint8_t *data, PlainEntry *entry, Staged *staged):
        """The page of an entry; None if it is none, or was there already."""
        cdef Record *loc = &self.batch.records[entry.loc]
        cdef object url = None
        if staged.size >= 0 and staged.flags & HIGH:
            url = high_text(staged.url, staged.size)
        if staged.size >= 0 and (url is not None or not staged.flags & HIGH):
            if not self.seen.add(staged.url, staged.size, staged.hashed):
                return None
            if url is None:
                url = ascii_text(staged.url, staged.size)
        else:
            url = self.context.resolve(text_of(data[loc.start:loc.start + loc.size], bool(staged.flags & CDATA)))
            if url is None or not self.seen.is_new(url):
                return None
        return page_of(self, data, entry, url)


cdef object page_of(Reader reader, const uint8_t *data, PlainEntry *entry, url):
    """The page of an entry that has this URL."""
    cdef Entry source = Entry.__new__(Entry)
    source.context = reader.context
    source.fill(data, &reader.batch.records[entry.first], entry.count, entry.loc - entry.first)
    page = PyType_GenericAlloc(PAGE, 0)
    set_slot(page, URL_SLOT, url)
    set_slot(page, SOURCE_SLOT, source)
    if not entry.extras & NEWS:
        set_slot(page, NEWS_SLOT, None)
    if not entry.extras & IMAGES:
        set_slot(page, IMAGES_SLOT, None)
    if not entry.extras & LINKS:
        set_slot(page, ALTERNATES_SLOT, None)
    if not entry.extras & VIDEOS:
        set_slot(page, VIDEOS_SLOT, None)
    return page


cdef enum:
    WORTH_IT = 1 << 14  # bytes: to read fewer is over before the GIL is had back


def may_hold_sitemaps(bytes text not None):
    """Whether a text may have a tag whose name is, or begins with, sitemap, behind any prefix."""
    cdef const uint8_t *data = <const uint8_t *>text
    cdef Py_ssize_t size = len(text)
    cdef bint found
    if size < WORTH_IT:
        return has_sitemap_tag(data, data + size)
    with nogil:
        found = has_sitemap_tag(data, data + size)
    return found


cdef bint has_sitemap_tag(const uint8_t *tag, const uint8_t *end) noexcept nogil:
    cdef const uint8_t *at
    cdef const uint8_t *local
    while tag != NULL:
        local = at = tag
        while at < end and at[0] != c' ' and not 9 <= at[0] <= 13 and at[0] != c'<' and at[0] != c'>' and at[0] != c'/':
            at += 1
            if at[-1] == c':':
                local = at
        if end - local >= 7 and (local[0] | 32) == c's' and (local[1] | 32) == c'i' and (local[2] | 32) == c't':
            if (local[3] | 32) == c'e' and (local[4] | 32) == c'm' and (local[5] | 32) == c'a' and (local[6] | 32) == c'p':
                return True
        tag = <const uint8_t *>memchr(at, c'<', end - at)
        if tag != NULL:
            tag += 1
    return False
