# The columns of news stories, and of lists of images and of pages in other languages.

cdef enum:
    STORY_TEXTS = 4
    STORY_LISTS = 3
    IMAGE_TEXTS = 5

# The fields, in the order of their columns.
cdef int STORY_TAGS[STORY_TEXTS]
STORY_TAGS[:] = [TITLE, NAME, LANGUAGE, ACCESS]
cdef int STORY_LIST_TAGS[STORY_LISTS]
STORY_LIST_TAGS[:] = [GENRES, KEYWORDS, STOCK_TICKERS]
cdef int IMAGE_TAGS[IMAGE_TEXTS]
IMAGE_TAGS[:] = [LOC, CAPTION, GEO_LOCATION, TITLE, LICENSE]

ctypedef struct TextLists:
    Series ends
    Texts items

ctypedef struct Stories:
    Texts texts[STORY_TEXTS]
    Series dates
    TextLists lists[STORY_LISTS]

ctypedef struct Items:  # lists of things that have some texts each
    Series ends
    Texts texts[IMAGE_TEXTS]


cdef void free_stories(Stories *stories) noexcept:
    cdef int i
    free_series(&stories.dates)
    for i in range(STORY_TEXTS):
        free_texts(&stories.texts[i])
    for i in range(STORY_LISTS):
        free_series(&stories.lists[i].ends)
        free_texts(&stories.lists[i].items)


cdef void cut_stories(Stories *stories, size_t rows) noexcept nogil:
    cdef int i
    cut_series(&stories.dates, rows)
    for i in range(STORY_TEXTS):
        cut_series(&stories.texts[i].ends, rows)
    for i in range(STORY_LISTS):
        cut_series(&stories.lists[i].ends, rows)
        cut_series(&stories.lists[i].items.ends, <size_t>last_end(&stories.lists[i].ends))


cdef int pad_stories(Stories *stories, size_t rows) except -1 nogil:
    cdef int i
    pad(&stories.dates, rows, WORDS)
    for i in range(STORY_TEXTS):
        pad(&stories.texts[i].ends, rows, ENDS)
    for i in range(STORY_LISTS):
        pad(&stories.lists[i].ends, rows, ENDS)
    return 0


cdef bint put_parts(TextLists *lists, const uint8_t *data, Record *record, uint8_t *text) except -1 nogil:
    """The parts of a text, split at commas, as a row; false if they are for Python to say. `text` is room for it."""
    cdef Py_ssize_t size = 0, start = 0, end, i
    if record != NULL:
        size = text_into(text, data + record.start, record.size, record_flags(data, record))
    if size < 0:
        return False
    for i in range(size + 1):
        if i < size and text[i] != c',':
            continue
        end = i
        while start < end and is_space(text[start]):
            start += 1
        while end > start and is_space(text[end - 1]):
            end -= 1
        if end > start:
            if not is_edged(text + start, end - start):
                return False
            put_bytes(&lists.items, text + start, end - start)
        start = i + 1
    put_end(&lists.ends, <int64_t>lists.items.ends.rows, True)
    return True


cdef int add_story_values(Stories *stories, story, size_t row) except -1:
    cdef int i
    texts = (story.title, story.publication_name, story.publication_language, story.access)
    lists = (story.genres, story.keywords, story.stock_tickers)
    pad_stories(stories, row)
    put_date(&stories.dates, story.publish_date)
    for i in range(STORY_TEXTS):
        put_str(&stories.texts[i], texts[i])
    for i in range(STORY_LISTS):
        for part in lists[i]:
            put_str(&stories.lists[i].items, part)
        put_end(&stories.lists[i].ends, <int64_t>stories.lists[i].items.ends.rows, True)
    return 0


cdef object stories_column(Stories *stories, size_t rows):
    cdef Py_ssize_t i
    parts = [text_column(&stories.texts[i], rows) for i in range(STORY_TEXTS)]
    parts.insert(1, fixed_column(&stories.dates, rows, WORDS, "q"))
    for i in range(STORY_LISTS):
        items = text_column(&stories.lists[i].items, stories.lists[i].items.ends.rows)
        parts.append(list_column(&stories.lists[i].ends, rows, items))
    return Column(rows, None, None, parts[0].valid, tuple(parts))  # every story has a title


cdef void free_items(Items *items) noexcept:
    cdef int i
    free_series(&items.ends)
    for i in range(IMAGE_TEXTS):
        free_texts(&items.texts[i])


cdef void cut_items(Items *items, size_t rows) noexcept nogil:
    cdef int i
    cut_series(&items.ends, rows)
    for i in range(IMAGE_TEXTS):
        cut_series(&items.texts[i].ends, <size_t>last_end(&items.ends))


cdef int add_item(Items *items, texts) except -1:
    for i, text in enumerate(texts):
        put_str(&items.texts[<Py_ssize_t>i], text)
    return 0


cdef bint add_image(Items *images, const uint8_t *data, Record **cells) except -1 nogil:
    """An image; false if it is for Python to say."""
    cdef int i
    if cells[LOC] == NULL:
        return False
    if not put_url(&images.texts[0], data + cells[LOC].start, cells[LOC].size, record_flags(data, cells[LOC])):
        return False
    for i in range(1, IMAGE_TEXTS):
        if not put_text(&images.texts[i], data, cells[IMAGE_TAGS[i]]):
            return False
    return True


cdef bint add_link(Items *linked, const uint8_t *data, Record *record) except -1 nogil:
    """A page in another language, if a link is one; false if that is for Python to say."""
    cdef Link link
    if not parse_link(data + record.start, record.size, &link):
        return False
    if link.hreflang == NULL or link.href == NULL or not link.hreflang_size or not link.href_size:
        return True
    if flags_of(link.hreflang, <size_t>link.hreflang_size):
        return False
    put_bytes(&linked.texts[0], link.hreflang, link.hreflang_size)
    return put_url(&linked.texts[1], link.href, link.href_size, flags_of(link.href, <size_t>link.href_size))


cdef int end_items(Items *items, size_t row) except -1 nogil:
    """All items that are in no row yet are in this one; if there are any."""
    if items.texts[0].ends.rows > <size_t>last_end(&items.ends):
        pad(&items.ends, row, ENDS)
        put_end(&items.ends, <int64_t>items.texts[0].ends.rows, True)
    return 0


cdef object items_column(Items *items, Py_ssize_t texts, size_t rows):
    cdef Py_ssize_t i
    cdef size_t count = items.texts[0].ends.rows
    parts = tuple([text_column(&items.texts[i], count) for i in range(texts)])
    return list_column(&items.ends, rows, Column(count, None, None, None, parts))
