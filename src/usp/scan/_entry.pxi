# `Entry`: what a page's fields are converted from, when they are read. It holds the texts of one plain entry as they
# stand in the document, not the document.

cdef extern from "Python.h":
    object PyType_GenericAlloc(type, Py_ssize_t)

# C variables: a global name of a module is looked up in a dictionary each time.
cdef type PAGE, STORY, IMAGE
cdef object DEFAULT_PRIORITY, SitemapPageChangeFrequency, Element, attributes

cdef Py_ssize_t URL_SLOT, SOURCE_SLOT, NEWS_SLOT, IMAGES_SLOT, ALTERNATES_SLOT, VIDEOS_SLOT
cdef Py_ssize_t STORY_SLOTS[8]
cdef Py_ssize_t IMAGE_SLOTS[5]
STORY_FIELDS = (
    "title", "publish_date", "publication_name", "publication_language", "access", "genres", "keywords", "stock_tickers"
)
IMAGE_FIELDS = ("loc", "caption", "geo_location", "title", "license")


cdef int bind_entry() except -1:
    global PAGE, STORY, IMAGE, DEFAULT_PRIORITY, SitemapPageChangeFrequency, Element, attributes
    global URL_SLOT, SOURCE_SLOT, NEWS_SLOT, IMAGES_SLOT, ALTERNATES_SLOT, VIDEOS_SLOT
    cdef int i
    from usp.objects.page import (
        SITEMAP_PAGE_DEFAULT_PRIORITY,
        SitemapImage,
        SitemapNewsStory,
        SitemapPage,
        SitemapPageChangeFrequency,
    )
    from usp.scan.elements import Element
    from usp.scan.tokens import attributes

    PAGE, STORY, IMAGE, DEFAULT_PRIORITY = SitemapPage, SitemapNewsStory, SitemapImage, SITEMAP_PAGE_DEFAULT_PRIORITY
    URL_SLOT = slot_offset(SitemapPage.__dict__["url"])
    SOURCE_SLOT = slot_offset(SitemapPage.__mro__[1].__dict__["_source"])
    NEWS_SLOT = slot_offset(SitemapPage.__dict__["news_story"].slot)
    IMAGES_SLOT = slot_offset(SitemapPage.__dict__["images"].slot)
    ALTERNATES_SLOT = slot_offset(SitemapPage.__dict__["alternates"].slot)
    VIDEOS_SLOT = slot_offset(SitemapPage.__dict__["videos"].slot)
    for i in range(8):
        STORY_SLOTS[i] = slot_offset(SitemapNewsStory.__dict__[STORY_FIELDS[i]])
    for i in range(5):
        IMAGE_SLOTS[i] = slot_offset(SitemapImage.__dict__[IMAGE_FIELDS[i]])
    return 0

cdef Memo dates = Memo()
cdef Memo priorities = Memo()
cdef Memo frequencies = Memo()


cdef inline void set_slot(object made, Py_ssize_t offset, object value) noexcept:
    """Fill a slot of an object that was just made."""
    Py_INCREF(value)
    (<PyObject **>(<char *><PyObject *>made + offset))[0] = <PyObject *>value


cdef uint8_t scratch[MAX_TEXT_BYTES + 1]  # for texts that are changed; used with the GIL held, and not for long


@cython.final
cdef class Context:
    """What the entries of a document share: the grammar, and the help of Python.

    `resolve(text)` gives a URL, or None; `convert(element, name)` a field of a page.
    """

    cdef Tabled tabled
    cdef object resolve
    cdef object convert


cdef object url_of(const uint8_t *text, Py_ssize_t size, uint8_t flags):
    """The URL that a text means; None if that is for Python to say."""
    cdef Py_ssize_t n = url_into(scratch, text, size, flags)
    if n < 0:
        return None
    return ascii_text(scratch, n) if not flags & HIGH else high_text(scratch, n)


cdef Py_ssize_t url_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil:
    """The bytes of the URL that a text means, at most as many as it has; -1 if that is for Python to say."""
    cdef Py_ssize_t n = url_text_into(out, text, size, flags)
    return n if n >= 0 and is_http_url(out, n) else -1


cdef Py_ssize_t url_text_into(uint8_t *out, const uint8_t *text, Py_ssize_t size, uint8_t flags) noexcept nogil:
    """The same, whether it is an http or https URL or not."""
    cdef Py_ssize_t n = size
    if flags & CONTROL or size == 0:
        return -1
    if flags & AMPERSAND and not flags & CDATA:
        n = unescape_into(out, text, size)
        if n < 0:
            return -1
    else:
        memcpy(out, text, size)
    return -1 if flags & AMPERSAND and has_ampersand_reference(out, n) else n


cdef object high_text(const uint8_t *text, Py_ssize_t size):
    """Text that is not all ASCII; None if it is for Python to put right."""
    try:
        made = PyUnicode_DecodeUTF8(<const char *>text, size, NULL)
    except UnicodeDecodeError:
        return None
    return made if made.isprintable() else None


ctypedef struct Row:
    uint16_t size
    uint8_t kind
    uint8_t name
    uint8_t flags


cdef struct Cell:
    Row row
    const uint8_t *text


cdef inline uint8_t cell_flags(Cell *cell) noexcept:
    return cell.row.flags | flags_of(cell.text, cell.row.size)


@cython.final
@cython.no_gc
@cython.freelist(512)
cdef class Entry:
    """The texts of one entry."""

    cdef uint8_t *rows
    cdef uint32_t count
    cdef Context context

    def __dealloc__(self):
        PyMem_Free(self.rows)

    cdef int fill(self, const uint8_t *data, const Record *records, uint32_t count, Py_ssize_t loc) except -1:
        """Copy the texts of these records, but for the URL's."""
        cdef size_t size = 0
        cdef uint32_t i
        cdef uint8_t *at
        cdef Row row
        for i in range(count):
            size += sizeof(Row) + records[i].size
        self.rows = at = <uint8_t *>PyMem_Malloc(size)
        if at == NULL:
            raise MemoryError
        for i in range(count):
            if i == loc:
                continue
            row.size, row.kind, row.name, row.flags = (
                records[i].size, records[i].kind, records[i].name, records[i].flags
            )
            memcpy(at, &row, sizeof(Row))
            memcpy(at + sizeof(Row), data + records[i].start, records[i].size)
            at += sizeof(Row) + records[i].size
            self.count += 1
        return 0

    cdef inline const uint8_t *read(self, const uint8_t *at, Cell *cell) noexcept:
        memcpy(&cell.row, at, sizeof(Row))
        cell.text = at + sizeof(Row)
        return cell.text + cell.row.size

    cdef bint find(self, int tag, Cell *cell) noexcept:
        """The first text of the entry itself in a field of this tag."""
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0
        for i in range(self.count):
            at = self.read(at, cell)
            if cell.row.kind == TEXT:
                if depth == 0 and cell.row.size and self.context.tabled.tags[cell.row.name] == tag:
                    return True
            elif cell.row.kind == OPEN:
                depth += 1
            elif cell.row.kind == CLOSE:
                depth -= 1
        return False

    def value(self, str name not None):
        """The page's field of this name, converted."""
        cdef Cell cell
        if name == "last_modified":
            return self.date(&cell) if self.find(LASTMOD, &cell) else None
        if name == "priority":
            return self.priority(&cell) if self.find(PRIORITY, &cell) else DEFAULT_PRIORITY
        if name == "change_frequency":
            return self.change_frequency(&cell) if self.find(CHANGEFREQ, &cell) else None
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
        """The text of the last modification, as it was written."""
        cdef Cell cell
        if not self.find(LASTMOD, &cell):
            return ""
        return text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA))

    cdef object text(self, Cell *cell):
        """A text without the HTML escaping below that of XML; None if it is empty."""
        if cell.row.size == 0:
            return None
        cdef uint8_t flags = cell_flags(cell)
        made = None
        if flags == 0:
            return ascii_text(cell.text, cell.row.size)
        if flags == HIGH:
            made = high_text(cell.text, cell.row.size)
        if made is None:
            made = plain_text(text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA)))
        return made

    cdef list parts(self, Cell *cell):
        """The parts of a text, split at commas."""
        cdef list found = []
        cdef Py_ssize_t start = 0, end, i
        if cell.row.size == 0:
            return found
        if cell_flags(cell):
            return comma_separated(text_of(cell.text[:cell.row.size], bool(cell.row.flags & CDATA)))
        for i in range(cell.row.size + 1):
            if i == cell.row.size or cell.text[i] == c',':
                end = i
                while start < end and cell.text[start] == c' ':
                    start += 1
                while end > start and cell.text[end - 1] == c' ':
                    end -= 1
                if end > start:
                    found.append(ascii_text(cell.text + start, end - start))
                start = i + 1
        return found

    cdef object news_story(self):
        """The story of the first news group; False if that is for Python."""
        cdef Cell cells[VIDEO_TAG + 1]
        cdef Cell cell
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0, tag, publications = 0
        memset(cells, 0, sizeof(cells))
        for i in range(self.count):
            at = self.read(at, &cell)
            tag = self.context.tabled.tags[cell.row.name]
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
        """The images; False if they are for Python."""
        cdef Cell cells[VIDEO_TAG + 1]
        cdef Cell cell
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef int depth = 0, tag
        cdef list found = []
        for i in range(self.count):
            at = self.read(at, &cell)
            tag = self.context.tabled.tags[cell.row.name]
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
        """The pages in other languages; False if they are for Python."""
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
            elif cell.row.kind == ATTRIBUTES and depth == 0 and self.context.tabled.tags[cell.row.name] == LINK:
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
        """The same as the general scanner makes of an entry, but for its URL."""
        cdef Cell cell
        cdef const uint8_t *at = self.rows
        cdef uint32_t i
        cdef Tabled tabled = self.context.tabled
        cdef list states = [1]
        kinds, tags = tabled.grammar.kinds, tabled.grammar.tags
        top = Element("url", kinds[1], 0, {})
        stack = [top]
        for i in range(self.count):
            at = self.read(at, &cell)
            tag = tags[cell.row.name]
            raw = cell.text[:cell.row.size]
            holder = stack[-1]
            rule, opened = tabled.grammar.rules[states[-1]][cell.row.name]
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
