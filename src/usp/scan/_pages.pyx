# cython: language_level=3, cdivision=True
"""Make pages of plain entries. A page keeps the texts of its entry, and converts them when they are read.

A page, its stories and its images are made by writing their slots directly. A value that needs any repair is left to
Python. This module does not know which entries are plain, nor what is wrong with one.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._buffers cimport enlarge
from usp.scan._bytes cimport CDATA, HIGH, MAX_TEXT_BYTES, flags_of, is_space
from usp.scan._entries cimport (
    ACCESS,
    ATTRIBUTES,
    CAPTION,
    CHANGEFREQ,
    CLOSE,
    FULL,
    GENRES,
    GEO_LOCATION,
    IMAGE_TAG,
    IMAGES,
    KEYWORDS,
    LANGUAGE,
    LASTMOD,
    LICENSE,
    LINK,
    LINKS,
    LOC,
    MAX_ENTRIES,
    MORE,
    NAME,
    NEWS,
    NEWS_TAG,
    OPEN,
    PRIORITY,
    PUBLICATION,
    PUBLICATION_DATE,
    STOCK_TICKERS,
    TEXT,
    TITLE,
    VIDEO_TAG,
    VIDEOS,
    WITH_ATTRIBUTES,
    Context,
    PlainEntry,
    Reader,
    Record,
    EntryURL,
    Stop,
    GrammarTables,
    record_flags,
)
from usp.scan._lines cimport NO_LINE, URL_LINE, LineKind, Lines, next_line, open_lines
from usp.scan._seen cimport Seen
from usp.scan._texts cimport (
    Link,
    Moment,
    ascii_text,
    date_of,
    has_visible_edges,
    high_text,
    parse_link,
    parse_moment,
    text_into,
    url_into,
    utf8_text,
)

from usp.objects._lazy import slot_offset

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    object PyType_GenericAlloc(type, Py_ssize_t)

# C variables: a global name of a module is looked up in a dictionary each time.
cdef type PAGE, STORY, IMAGE
cdef object parse_date, comma_separated, parse_change_frequency, parse_priority, plain_text, text_of
cdef object DEFAULT_PRIORITY, SitemapPageChangeFrequency, Element, attributes

cdef Py_ssize_t URL_SLOT, SOURCE_SLOT, NEWS_SLOT, IMAGES_SLOT, ALTERNATES_SLOT, VIDEOS_SLOT
cdef Py_ssize_t DATE_SLOT, CHANGE_SLOT, PRIORITY_SLOT
cdef Py_ssize_t STORY_SLOTS[8]
cdef Py_ssize_t IMAGE_SLOTS[5]
STORY_FIELDS = (
    "title", "publish_date", "publication_name", "publication_language", "access", "genres", "keywords", "stock_tickers"
)
IMAGE_FIELDS = ("loc", "caption", "geo_location", "title", "license")


def bind():
    """Import what this module uses of usp."""
    global parse_date, comma_separated, parse_change_frequency, parse_priority, plain_text, text_of
    global PAGE, STORY, IMAGE, DEFAULT_PRIORITY, SitemapPageChangeFrequency, Element, attributes
    global URL_SLOT, SOURCE_SLOT, NEWS_SLOT, IMAGES_SLOT, ALTERNATES_SLOT, VIDEOS_SLOT
    global DATE_SLOT, CHANGE_SLOT, PRIORITY_SLOT
    cdef int i
    from usp.objects.page import (
        SITEMAP_PAGE_DEFAULT_PRIORITY,
        SitemapImage,
        SitemapNewsStory,
        SitemapPage,
        SitemapPageChangeFrequency,
    )
    from usp.scan.dates import parse_date
    from usp.scan.elements import Element
    from usp.scan.tokens import attributes
    from usp.scan.values import comma_separated, parse_change_frequency, parse_priority, plain_text, text_of

    PAGE, STORY, IMAGE, DEFAULT_PRIORITY = SitemapPage, SitemapNewsStory, SitemapImage, SITEMAP_PAGE_DEFAULT_PRIORITY
    URL_SLOT = slot_offset(SitemapPage.__dict__["url"])
    SOURCE_SLOT = slot_offset(SitemapPage.__mro__[1].__dict__["_source"])
    NEWS_SLOT = slot_offset(SitemapPage.__dict__["news_story"].slot)
    IMAGES_SLOT = slot_offset(SitemapPage.__dict__["images"].slot)
    ALTERNATES_SLOT = slot_offset(SitemapPage.__dict__["alternates"].slot)
    VIDEOS_SLOT = slot_offset(SitemapPage.__dict__["videos"].slot)
    DATE_SLOT = slot_offset(SitemapPage.__dict__["last_modified"].slot)
    CHANGE_SLOT = slot_offset(SitemapPage.__dict__["change_frequency"].slot)
    PRIORITY_SLOT = slot_offset(SitemapPage.__dict__["priority"].slot)
    for i in range(8):
        STORY_SLOTS[i] = slot_offset(SitemapNewsStory.__dict__[STORY_FIELDS[i]])
    for i in range(5):
        IMAGE_SLOTS[i] = slot_offset(SitemapImage.__dict__[IMAGE_FIELDS[i]])

cdef enum:
    MEMO_SLOTS = 1024
    MEMO_KEY_BYTES = 39

ctypedef struct MemoSlot:
    PyObject *value
    uint8_t size
    uint8_t key[MEMO_KEY_BYTES]


cdef class Memo:
    """Caches the values of short texts. If two texts have the same slot, the last one is kept."""

    cdef MemoSlot slots[MEMO_SLOTS]

    def __cinit__(self):
        memset(self.slots, 0, sizeof(self.slots))

    def __dealloc__(self):
        cdef int i
        for i in range(MEMO_SLOTS):
            Py_XDECREF(self.slots[i].value)

    cdef inline MemoSlot *slot(self, const uint8_t *key, Py_ssize_t size) noexcept:
        cdef uint32_t h = 2166136261u
        cdef Py_ssize_t i
        for i in range(size):
            h = (h ^ key[i]) * 16777619u
        return &self.slots[(h ^ (h >> 16)) & (MEMO_SLOTS - 1)]

    cdef inline object get(self, const uint8_t *key, Py_ssize_t size):
        """Return the value of a text, or None."""
        cdef MemoSlot *slot = self.slot(key, size)
        if slot.value != NULL and slot.size == size and memcmp(slot.key, key, size) == 0:
            return <object>slot.value
        return None

    cdef inline void put(self, const uint8_t *key, Py_ssize_t size, object value):
        cdef MemoSlot *slot
        cdef PyObject *old
        if size > MEMO_KEY_BYTES:
            return
        slot = self.slot(key, size)
        old = slot.value
        Py_INCREF(value)
        slot.value = <PyObject *>value
        slot.size = <uint8_t>size
        memcpy(slot.key, key, size)
        Py_XDECREF(old)


cdef Memo dates = Memo()
cdef Memo priorities = Memo()
cdef Memo frequencies = Memo()


cdef inline void set_slot(object made, Py_ssize_t offset, object value) noexcept:
    """Set a slot of a new object."""
    Py_INCREF(value)
    (<PyObject **>(<char *><PyObject *>made + offset))[0] = <PyObject *>value


cdef uint8_t scratch[MAX_TEXT_BYTES + 1]  # for texts without their references; only used while the GIL is held


cdef object url_of(const uint8_t *text, Py_ssize_t size, uint8_t flags):
    """Return the URL that a text means, or None to leave it to Python."""
    cdef Py_ssize_t n = url_into(scratch, text, size, &flags)
    if n < 0:
        return None
    return ascii_text(scratch, n) if not flags & HIGH else high_text(scratch, n)


ctypedef struct CellHeader:
    uint16_t size
    uint8_t kind
    uint8_t name
    uint8_t flags


cdef struct Cell:
    CellHeader row
    const uint8_t *text


cdef inline uint8_t cell_flags(Cell *cell) noexcept:
    return cell.row.flags | flags_of(cell.text, cell.row.size)


@cython.final
@cython.no_gc
@cython.freelist(512)
cdef class Entry:
    """The texts of an entry, from which the fields of its page are converted."""

    cdef uint8_t *rows
    cdef uint32_t count
    cdef Context context

    def __dealloc__(self):
        PyMem_Free(self.rows)

    cdef int fill(self, const uint8_t *data, const Record *records, uint32_t count, Py_ssize_t loc) except -1:
        """Copy the texts of these records, except the URL."""
        cdef size_t size = 0
        cdef uint32_t i
        cdef uint8_t *at
        cdef CellHeader row
        for i in range(count):
            size += sizeof(CellHeader) + records[i].size
        self.rows = at = <uint8_t *>PyMem_Malloc(size)
        if at == NULL:
            raise MemoryError
        for i in range(count):
            if i == loc:
                continue
            row.size, row.kind, row.name, row.flags = (
                records[i].size, records[i].kind, records[i].name, records[i].flags
            )
            memcpy(at, &row, sizeof(CellHeader))
            memcpy(at + sizeof(CellHeader), data + records[i].start, records[i].size)
            at += sizeof(CellHeader) + records[i].size
            self.count += 1
        return 0

    cdef inline const uint8_t *read(self, const uint8_t *at, Cell *cell) noexcept:
        memcpy(&cell.row, at, sizeof(CellHeader))
        cell.text = at + sizeof(CellHeader)
        return cell.text + cell.row.size

    cdef bint find(self, int tag, Cell *cell) noexcept:
        """Find the first text in a field of the entry itself."""
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0
        for i in range(self.count):
            at = self.read(at, cell)
            if cell.row.kind == TEXT:
                if depth == 0 and cell.row.size and self.context.grammar_tables.tags[cell.row.name] == tag:
                    return True
            elif cell.row.kind == OPEN:
                depth += 1
            elif cell.row.kind == CLOSE:
                depth -= 1
        return False

    def value(self, str name not None):
        """Return the value of a field of the page."""
        cdef Cell cell
        if name == "last_modified":
            return self.date(&cell) if self.find(LASTMOD, &cell) else None
        if name == "priority":
            return self.priority(&cell) if self.find(PRIORITY, &cell) else DEFAULT_PRIORITY
        if name == "change_frequency":
            return self.change_frequency(&cell) if self.find(CHANGEFREQ, &cell) else None
        if name == "stated_priority":
            return self.stated(&cell, "priority", parse_priority) if self.find(PRIORITY, &cell) else None
        if name == "stated_change_frequency":
            return self.stated(&cell, "change_frequency", parse_change_frequency) if self.find(CHANGEFREQ, &cell) else None
        if name == "sitemap_url":
            if self.context.sitemap_url is None:
                self.context.sitemap_url = self.context.convert(self.element(), name)
            return self.context.sitemap_url
        made = False
        if name == "news_story":
            made = self.news_story()
        elif name == "images":
            made = self.images()
        elif name == "alternates":
            made = self.alternates()
        return self.context.convert(self.element(), name) if made is False else made

    cdef object date(self, Cell *cell):
        cdef Moment moment
        found = dates.get(cell.text, cell.row.size)
        if found is None:
            if parse_moment(cell.text, cell.row.size, &moment):
                found = date_of(&moment)
            else:
                found = parse_date(plain_text(text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA))) or "")
            if found is not None and cell_flags(cell) & ~CDATA == 0:
                dates.put(cell.text, cell.row.size, found)
        return found

    cdef object priority(self, Cell *cell):
        found = priorities.get(cell.text, cell.row.size)
        if found is None:
            if cell_flags(cell):
                return self.context.convert(self.element(), "priority")
            found = parse_priority(ascii_text(cell.text, cell.row.size))
            if found is None:
                found = DEFAULT_PRIORITY
            priorities.put(cell.text, cell.row.size, found)
        return found

    cdef object stated(self, Cell *cell, str name, parse):
        """Return the value of a field; None, not a default, if it is not a valid one."""
        if cell_flags(cell):
            return self.context.convert(self.element(), f"stated_{name}")
        return parse(ascii_text(cell.text, cell.row.size))

    cdef object change_frequency(self, Cell *cell):
        found = frequencies.get(cell.text, cell.row.size)
        if found is None:
            if cell_flags(cell):
                return self.context.convert(self.element(), "change_frequency")
            found = parse_change_frequency(ascii_text(cell.text, cell.row.size))
            if found is None:
                found = SitemapPageChangeFrequency.ALWAYS
            frequencies.put(cell.text, cell.row.size, found)
        return found

    def last_modified_text(self):
        """Return the text of the last modification, as it was written."""
        cdef Cell cell
        if not self.find(LASTMOD, &cell):
            return ""
        return text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA))

    cdef object text(self, Cell *cell):
        """Return a text without HTML escapes, or None if it is empty."""
        cdef uint8_t flags
        cdef Py_ssize_t n
        if cell.row.size == 0:
            return None
        flags = cell_flags(cell)
        made = None
        if flags == 0:
            return ascii_text(cell.text, cell.row.size)
        if flags == HIGH:
            made = high_text(cell.text, cell.row.size)
        if made is None:
            n = text_into(scratch, cell.text, cell.row.size, &flags)
            if n > 0:
                return utf8_text(scratch, n)
            made = plain_text(text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA)))
        return made

    cdef list parts(self, Cell *cell):
        """Split a text at commas."""
        cdef list found = []
        cdef Py_ssize_t size = cell.row.size, start = 0, end, i
        cdef const uint8_t *text = cell.text
        cdef uint8_t flags
        if size == 0:
            return found
        flags = cell_flags(cell)
        if flags:
            text, size = scratch, text_into(scratch, cell.text, size, &flags)
        for i in range(size + 1):
            if i == size or text[i] == c',':
                end = i
                while start < end and is_space(text[start]):
                    start += 1
                while end > start and is_space(text[end - 1]):
                    end -= 1
                if flags and end > start and not has_visible_edges(text + start, end - start):
                    size = -1
                    break
                if end > start:
                    found.append(utf8_text(text + start, end - start) if flags else ascii_text(text + start, end - start))
                start = i + 1
        if size < 0:
            return comma_separated(text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA)))
        return found

    cdef object news_story(self):
        """Return the first news story, or None."""
        cdef Cell cells[VIDEO_TAG + 1]
        cdef Cell cell
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0, tag, publications = 0
        memset(cells, 0, sizeof(cells))
        for i in range(self.count):
            at = self.read(at, &cell)
            tag = self.context.grammar_tables.tags[cell.row.name]
            if cell.row.kind == OPEN:
                if depth or tag == NEWS_TAG:
                    depth += 1
                    publications += tag == PUBLICATION
            elif cell.row.kind == CLOSE and depth:
                depth -= 1
                if depth == 0:
                    break
            elif cell.row.kind == TEXT and cells[tag].row.size == 0:
                if depth == 1 or (depth == 2 and publications == 1):
                    cells[tag] = cell
        title = self.text(&cells[TITLE])
        date = self.date(&cells[PUBLICATION_DATE]) if cells[PUBLICATION_DATE].row.size else None
        if title is None or date is None:
            return None
        made = PyType_GenericAlloc(STORY, 0)
        set_slot(made, STORY_SLOTS[0], title)
        set_slot(made, STORY_SLOTS[1], date)
        set_slot(made, STORY_SLOTS[2], self.text(&cells[NAME]))
        set_slot(made, STORY_SLOTS[3], self.text(&cells[LANGUAGE]))
        set_slot(made, STORY_SLOTS[4], self.text(&cells[ACCESS]))
        set_slot(made, STORY_SLOTS[5], self.parts(&cells[GENRES]))
        set_slot(made, STORY_SLOTS[6], self.parts(&cells[KEYWORDS]))
        set_slot(made, STORY_SLOTS[7], self.parts(&cells[STOCK_TICKERS]))
        return made

    cdef object images(self):
        """Return the images, or False to leave them to Python."""
        cdef Cell cells[VIDEO_TAG + 1]
        cdef Cell cell
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0, tag
        cdef list found = []
        for i in range(self.count):
            at = self.read(at, &cell)
            tag = self.context.grammar_tables.tags[cell.row.name]
            if cell.row.kind == OPEN:
                if depth or tag == IMAGE_TAG:
                    depth += 1
                    memset(cells, 0, sizeof(cells))
            elif cell.row.kind == TEXT and depth == 1 and cells[tag].row.size == 0:
                cells[tag] = cell
            elif cell.row.kind == CLOSE and depth:
                depth -= 1
                url = url_of(cells[LOC].text, cells[LOC].row.size, cell_flags(&cells[LOC]))
                if url is None:
                    return False
                made = PyType_GenericAlloc(IMAGE, 0)
                set_slot(made, IMAGE_SLOTS[0], url)
                set_slot(made, IMAGE_SLOTS[1], self.text(&cells[CAPTION]))
                set_slot(made, IMAGE_SLOTS[2], self.text(&cells[GEO_LOCATION]))
                set_slot(made, IMAGE_SLOTS[3], self.text(&cells[TITLE]))
                set_slot(made, IMAGE_SLOTS[4], self.text(&cells[LICENSE]))
                found.append(made)
        return found or None

    cdef object alternates(self):
        """Return the pages in other languages, or False to leave them to Python."""
        cdef Cell cell
        cdef Link link
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0
        cdef list found = []
        for i in range(self.count):
            at = self.read(at, &cell)
            if cell.row.kind == OPEN:
                depth += 1
            elif cell.row.kind == CLOSE:
                depth -= 1
            elif cell.row.kind == ATTRIBUTES and depth == 0 and self.context.grammar_tables.tags[cell.row.name] == LINK:
                if not parse_link(cell.text, cell.row.size, &link):
                    return False
                if link.hreflang == NULL or link.href == NULL or not link.hreflang_size or not link.href_size:
                    continue
                url = url_of(link.href, link.href_size, flags_of(link.href, link.href_size))
                if url is None or flags_of(link.hreflang, link.hreflang_size):
                    return False
                found.append((ascii_text(link.hreflang, link.hreflang_size), url))
        return found or None

    cdef object element(self):
        """Return the element that the general scanner makes of an entry, without its URL."""
        cdef Cell cell
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef GrammarTables grammar_tables = self.context.grammar_tables
        cdef list states = [1]
        kinds, tags = grammar_tables.grammar.kinds, grammar_tables.grammar.tags
        top = Element("url", kinds[1], 0, {})
        stack = [top]
        for i in range(self.count):
            at = self.read(at, &cell)
            tag = tags[cell.row.name]
            raw = cell.text[:cell.row.size]
            holder = stack[-1]
            rule, opened = grammar_tables.grammar.rules[states[-1]][cell.row.name]
            if cell.row.kind == OPEN:
                stack.append(Element(tag, kinds[opened], 0, {}))
                states.append(opened)
                holder.children.append(stack[-1])
            elif cell.row.kind == CLOSE:
                stack.pop()
                states.pop()
            elif cell.row.kind == ATTRIBUTES:
                holder.children.append(Element(tag, kinds[0], 0, attributes(raw)))
            elif rule == WITH_ATTRIBUTES:
                holder.children[-1].text = text_of(raw, bool(cell.row.flags & CDATA))
            elif not holder.fields.get(tag):
                holder.fields[tag] = text_of(raw, bool(cell.row.flags & CDATA))
        return top


cdef class PlainPages(Reader):
    """Makes pages of plain entries. Skips URLs that were listed before."""

    cdef Seen seen
    cdef EntryURL entry_urls[MAX_ENTRIES]
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
        """Add a URL. Return false if it was added before."""
        return self.seen.is_new(url)

    def take(self, grammar, bytes buffer not None, Py_ssize_t position):
        """Return pages, where they end, whether more bytes may complete another, and whether there are others."""
        cdef list pages = []
        cdef Stop stop = self.scan(grammar, buffer, &position)
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef uint32_t i
        self.read_urls(data)
        for i in range(self.batch.entry_count):
            page = self.page(data, &self.batch.entries[i], &self.entry_urls[i])
            if page is not None:
                pages.append(page)
        return pages, position, stop == MORE, stop == FULL

    def take_lines(self, source not None, bytes buffer not None, Py_ssize_t position):
        """Return pages with this source of the lines that are URLs, where they end, and how many lines they are."""
        cdef list pages = []
        cdef Py_ssize_t count = 0
        cdef Lines lines
        cdef LineKind kind
        cdef size_t size
        open_lines(&lines, buffer, position)
        while True:
            kind = next_line(&lines, True)
            if kind == NO_LINE:
                return pages, lines.at, count
            count += 1
            size = <size_t>lines.url_size
            if kind == URL_LINE and self.seen.add(lines.url, size, self.seen.hash_and_prefetch(lines.url, size)):
                pages.append(new_page(utf8_text(lines.url, lines.url_size), source, 0))

    cdef int read_urls(self, const uint8_t *data) except -1:
        """Read and hash the URLs of the batch."""
        cdef uint32_t i
        cdef size_t room = 0
        for i in range(self.batch.entry_count):
            room += self.batch.records[self.batch.entries[i].loc].size
        if room > self.urls_room:
            enlarge(<void **>&self.urls, room)
            self.urls_room = room
        with nogil:
            self.read_urls_into(data, self.urls)
        return 0

    cdef void read_urls_into(self, const uint8_t *data, uint8_t *out) noexcept nogil:
        cdef uint32_t i
        cdef Record *loc
        cdef EntryURL *entry_url
        for i in range(self.batch.entry_count):
            loc = &self.batch.records[self.batch.entries[i].loc]
            entry_url = &self.entry_urls[i]
            entry_url.flags = record_flags(data, loc)
            entry_url.url = out
            entry_url.size = url_into(out, data + loc.start, loc.size, &entry_url.flags)
            if entry_url.size >= 0:
                entry_url.hashed = self.seen.hash_and_prefetch(out, entry_url.size)
                out += entry_url.size

    cdef object page(self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url):
        """Return the page of an entry, or None if it has no URL, or one that was listed before."""
        cdef Record *loc = &self.batch.records[entry.loc]
        cdef object url = None
        if entry_url.size >= 0 and entry_url.flags & HIGH:
            url = high_text(entry_url.url, entry_url.size)
        if entry_url.size >= 0 and (url is not None or not entry_url.flags & HIGH):
            if not self.seen.add(entry_url.url, entry_url.size, entry_url.hashed):
                return None
            if url is None:
                url = ascii_text(entry_url.url, entry_url.size)
        else:
            url = self.context.resolve(text_of(data[loc.start:loc.start + loc.size], bool(entry_url.flags & CDATA)))
            if url is None or not self.seen.is_new(url):
                return None
        return page_of(self, data, entry, url)


cdef object page_of(Reader reader, const uint8_t *data, PlainEntry *entry, url):
    """Return the page of an entry with this URL."""
    cdef Entry source = Entry.__new__(Entry)
    source.context = reader.context
    source.fill(data, &reader.batch.records[entry.first], entry.count, entry.loc - entry.first)
    return new_page(url, source, entry.extensions)


cdef inline object new_page(url, source, uint32_t extensions):
    """Return a page with this URL, which asks its source for everything else that an entry with `extensions` has."""
    return preset_page(
        url,
        source,
        (0 if extensions & NEWS else NEWS_PRESET)
        | (0 if extensions & IMAGES else IMAGES_PRESET)
        | (0 if extensions & LINKS else ALTERNATES_PRESET)
        | (0 if extensions & VIDEOS else VIDEOS_PRESET),
    )


cdef object preset_page(url, source, int presets):
    """Return a page with this URL, which asks its source for everything else except the fields that are preset."""
    page = PyType_GenericAlloc(PAGE, 0)
    set_slot(page, URL_SLOT, url)
    set_slot(page, SOURCE_SLOT, source)
    if presets & NEWS_PRESET:
        set_slot(page, NEWS_SLOT, None)
    if presets & IMAGES_PRESET:
        set_slot(page, IMAGES_SLOT, None)
    if presets & ALTERNATES_PRESET:
        set_slot(page, ALTERNATES_SLOT, None)
    if presets & VIDEOS_PRESET:
        set_slot(page, VIDEOS_SLOT, None)
    if presets & DATE_PRESET:
        set_slot(page, DATE_SLOT, None)
    if presets & CHANGE_PRESET:
        set_slot(page, CHANGE_SLOT, None)
    if presets & PRIORITY_PRESET:
        set_slot(page, PRIORITY_SLOT, DEFAULT_PRIORITY)
    return page
