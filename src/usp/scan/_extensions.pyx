# cython: language_level=3, cdivision=True
"""Collect the columns of extensions: news stories, images, pages in other languages, videos.

The usual fields are read here. An extension with rare fields, or with problems, is left to Python. Which entry an
extension belongs to is for `_columns` to know.
"""

from math import isfinite

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from usp._interface cimport USP_INTERFACE
from usp.scan._buffers cimport (
    ENDS,
    SMALL,
    WORDS,
    Series,
    Texts,
    truncate_series,
    fixed_column,
    free_series,
    free_texts,
    last_end,
    list_column,
    pad,
    put_byte,
    put_bytes,
    put_date,
    put_end,
    put_str,
    put_text,
    put_url,
    put_word,
    text_column,
    valid_view,
)
from usp.scan._bytes cimport flags_of, is_space
from usp.scan._entries cimport (
    ACCESS,
    CAPTION,
    GENRES,
    GEO_LOCATION,
    KEYWORDS,
    LANGUAGE,
    LICENSE,
    LOC,
    NAME,
    OPEN,
    STOCK_TICKERS,
    TEXT,
    TITLE,
    Record,
    record_flags,
)
from usp.scan._texts cimport Attribute, Link, has_visible_edges, next_attribute, parse_link, text_into

INTERFACE = USP_INTERFACE

# The fields, in the order of their columns.
STORY_TAGS[:] = [TITLE, NAME, LANGUAGE, ACCESS]
STORY_LIST_TAGS[:] = [GENRES, KEYWORDS, STOCK_TICKERS]
cdef int IMAGE_TAGS[IMAGE_TEXTS]
IMAGE_TAGS[:] = [LOC, CAPTION, GEO_LOCATION, TITLE, LICENSE]


cdef void free_stories(Stories *stories) noexcept:
    cdef int i
    free_series(&stories.dates)
    for i in range(STORY_TEXTS):
        free_texts(&stories.texts[i])
    for i in range(STORY_LISTS):
        free_series(&stories.lists[i].ends)
        free_texts(&stories.lists[i].items)


cdef void truncate_stories(Stories *stories, size_t rows) noexcept nogil:
    cdef int i
    truncate_series(&stories.dates, rows)
    for i in range(STORY_TEXTS):
        truncate_series(&stories.texts[i].ends, rows)
    for i in range(STORY_LISTS):
        truncate_series(&stories.lists[i].ends, rows)
        truncate_series(&stories.lists[i].items.ends, <size_t>last_end(&stories.lists[i].ends))


cdef int pad_stories(Stories *stories, size_t rows) except -1 nogil:
    cdef int i
    pad(&stories.dates, rows, WORDS)
    for i in range(STORY_TEXTS):
        pad(&stories.texts[i].ends, rows, ENDS)
    for i in range(STORY_LISTS):
        pad(&stories.lists[i].ends, rows, ENDS)
    return 0


cdef bint put_parts(TextLists *lists, const uint8_t *data, Record *record, uint8_t *text) except -1 nogil:
    """Split a text at commas and add its parts as a row. Return false to leave it to Python. `text` is scratch."""
    cdef Py_ssize_t size = 0, start = 0, end, i
    cdef uint8_t flags
    if record != NULL:
        flags = record_flags(data, record)
        size = text_into(text, data + record.start, record.size, &flags)
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
            if not has_visible_edges(text + start, end - start):
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


cdef void truncate_items(Items *items, size_t rows) noexcept nogil:
    cdef int i
    truncate_series(&items.ends, rows)
    for i in range(IMAGE_TEXTS):
        truncate_series(&items.texts[i].ends, <size_t>last_end(&items.ends))


cdef int add_item(Items *items, texts) except -1:
    for i, text in enumerate(texts):
        put_str(&items.texts[<Py_ssize_t>i], text)
    return 0


cdef bint add_image(Items *images, const uint8_t *data, Record **cells) except -1 nogil:
    """Add an image. Return false to leave it to Python."""
    cdef int i
    if cells[LOC] == NULL:
        return False
    if not put_url(&images.texts[0], data + cells[LOC].start, cells[LOC].size, record_flags(data, cells[LOC]), False):
        return False
    for i in range(1, IMAGE_TEXTS):
        if not put_text(&images.texts[i], data, cells[IMAGE_TAGS[i]], False):
            return False
    return True


cdef bint add_link(Items *linked, const uint8_t *data, Record *record) except -1 nogil:
    """Add the page of an alternate link. Return false to leave it to Python."""
    cdef Link link
    if not parse_link(data + record.start, record.size, &link):
        return False
    if link.hreflang == NULL or link.href == NULL or not link.hreflang_size or not link.href_size:
        return True
    if flags_of(link.hreflang, <size_t>link.hreflang_size):
        return False
    put_bytes(&linked.texts[0], link.hreflang, link.hreflang_size)
    return put_url(&linked.texts[1], link.href, link.href_size, flags_of(link.href, <size_t>link.href_size), False)


cdef int end_items(Items *items, size_t row) except -1 nogil:
    """Put the items that were added since the last call into this row, if there are any."""
    if items.texts[0].ends.rows > <size_t>last_end(&items.ends):
        pad(&items.ends, row, ENDS)
        put_end(&items.ends, <int64_t>items.texts[0].ends.rows, True)
    return 0


cdef object items_column(Items *items, Py_ssize_t texts, size_t rows):
    cdef Py_ssize_t i
    cdef size_t count = items.texts[0].ends.rows
    parts = tuple([text_column(&items.texts[i], count) for i in range(texts)])
    return list_column(&items.ends, rows, Column(count, None, None, None, parts))


# Videos

ctypedef struct VideoAttribute:
    int element  # the field that is the text of its element
    int field
    Py_ssize_t size
    char name[MAX_ATTRIBUTE_NAME]

cdef object Column, MIN_INTEGER, MAX_INTEGER, column_of, Struct, List, Scalar
cdef int video_attribute_count = 0
cdef VideoAttribute VIDEO_ATTRIBUTES[MAX_VIDEO_ATTRIBUTES]
cdef tuple VIDEO_NAMES
cdef object NO_VIDEO
cdef object RARE_TYPE  # the type of the fields that only Python reads


def bind():
    """Import what this module uses of usp, and compare tables with it."""
    global Column, MIN_INTEGER, MAX_INTEGER, column_of, Struct, List, Scalar, VIDEO_NAMES, NO_VIDEO, RARE_TYPE
    from usp.objects.page import SitemapVideo
    from usp.scan.columns import MIN_INTEGER, MAX_INTEGER, PAGE_TYPES, Column, List, Scalar, Struct, column_of
    from usp.scan.vocabulary import VIDEO_FIELDS

    types = PAGE_TYPES["videos"].item.fields
    NO_VIDEO, VIDEO_NAMES = SitemapVideo(), tuple(VIDEO_FIELDS)
    set_video_fields(VIDEO_FIELDS)
    RARE_TYPE = Struct({name: types[name] for i, name in enumerate(VIDEO_FIELDS) if READ_AS[<int>i] == BY_PYTHON})


cdef int set_video_fields(fields) except -1:
    """Set how each field of a video is read."""
    global video_field_count, video_attribute_count
    cdef bytes attribute
    cdef VideoAttribute *place
    ways = check_video_fields(fields)
    names = list(fields)
    video_field_count = video_attribute_count = 0
    for name, field in fields.items():
        READ_AS[video_field_count] = ways.get(field.form, BY_PYTHON)
        video_field_count += 1
        if field.attribute:
            attribute = field.attribute.encode()
            place = &VIDEO_ATTRIBUTES[video_attribute_count]
            place.element = next(
                i for i, other in enumerate(fields.values()) if other.element == field.element and not other.attribute
            )
            place.field, place.size = names.index(name), len(attribute)
            memcpy(place.name, <const char *>attribute, len(attribute))
            video_attribute_count += 1
    return 0


def check_video_fields(fields not None):
    """Raise an error unless videos with these fields can be read. `usp.scan.vocabulary.VIDEO_FIELDS` is such a table.

    Return the forms that are read here. Fields in any other form are left to Python.
    """
    from usp.scan.vocabulary import Form

    attributes = {name: field for name, field in fields.items() if field.attribute}
    elements = [field.element for field in fields.values() if not field.attribute]
    if len(fields) > MAX_VIDEO_FIELDS or len(attributes) > MAX_VIDEO_ATTRIBUTES:
        raise TypeError("videos have too many fields: raise MAX_VIDEO_FIELDS in usp/scan/_extensions.pxd")
    if len(elements) != len({*elements}):
        raise TypeError("usp/scan/_extensions.pyx knows one field for each element of a video: change VIDEO_FIELDS")
    for name, field in attributes.items():
        if field.form not in (Form.TEXT, Form.URL, Form.YES_NO):
            message = f"put_attribute in usp/scan/_extensions.pyx cannot read {field.form}, the form of {name!r}"
            raise TypeError(f"{message}: add it there")
        if field.element not in elements:
            raise TypeError(f"VIDEO_FIELDS has {name!r}, an attribute of <{field.element}>, but no field for its text")
        if len(field.attribute) > MAX_ATTRIBUTE_NAME:
            raise TypeError(f"the attribute of {name!r} is too long for VideoAttribute in usp/scan/_extensions.pyx")
    return {
        Form.TEXT: AS_TEXT, Form.URL: AS_URL, Form.DATE: AS_DATE, Form.INTEGER: AS_INTEGER, Form.DECIMAL: AS_NUMBER,
        Form.YES_NO: AS_BOOLEAN, Form.WORDS: AS_WORDS, Form.TEXTS: AS_TEXTS,
    }


cdef void free_videos(Videos *videos) noexcept:
    cdef int i
    free_series(&videos.ends)
    videos.count = 0
    for i in range(video_field_count):
        free_texts(&videos.texts[i])
        free_series(&videos.fixed[i])
        free_series(&videos.lists[i].ends)
        free_texts(&videos.lists[i].items)


cdef void truncate_videos(Videos *videos, size_t rows) noexcept nogil:
    cdef int i
    truncate_series(&videos.ends, rows)
    videos.count = <size_t>last_end(&videos.ends)
    for i in range(video_field_count):
        truncate_series(&videos.texts[i].ends, videos.count)
        truncate_series(&videos.fixed[i], videos.count)
        truncate_series(&videos.lists[i].ends, videos.count)
        truncate_series(&videos.lists[i].items.ends, <size_t>last_end(&videos.lists[i].ends))


cdef int end_videos(Videos *videos, size_t row) except -1 nogil:
    """Put the videos that were added since the last call into this row, if there are any."""
    if videos.count > <size_t>last_end(&videos.ends):
        pad(&videos.ends, row, ENDS)
        put_end(&videos.ends, <int64_t>videos.count, True)
    return 0


cdef bint put_video_text(Texts *texts, const uint8_t *data, Record *record) except -1 nogil:
    """Add a text that is not empty and has no problems. Return false to leave it to Python."""
    cdef int64_t end = last_end(&texts.ends)
    return put_text(texts, data, record, True) and last_end(&texts.ends) > end


cdef bint put_words(Texts *words, const uint8_t *text, Py_ssize_t size) except -1 nogil:
    """Add the words of a text. Return false to leave it to Python."""
    cdef Py_ssize_t start = 0, end
    if flags_of(text, <size_t>size):
        return False
    while start < size:
        end = start
        while end < size and not is_space(text[end]):
            end += 1
        if end > start:
            put_bytes(words, text + start, end - start)
        start = end + 1
    return True


cdef bint put_integer(Series *series, const uint8_t *text, Py_ssize_t size) except -1 nogil:
    cdef int64_t number = 0
    cdef Py_ssize_t i
    if size > 18:
        return False
    for i in range(size):
        if not c'0' <= text[i] <= c'9':
            return False
        number = number * 10 + (text[i] - c'0')
    put_word(series, &number, True)
    return True


cdef bint put_number(Series *series, const uint8_t *text, Py_ssize_t size) except -1 nogil:
    """Add a decimal number. Return false if it has too many digits: the division would not be exact."""
    cdef double number = 0, scale = 1
    cdef Py_ssize_t i, point = -1
    if size > 15 or not c'0' <= text[0] <= c'9' or not c'0' <= text[size - 1] <= c'9':
        return False
    for i in range(size):
        if text[i] == c'.' and point < 0:
            point = i
        elif c'0' <= text[i] <= c'9':
            number = number * 10 + (text[i] - c'0')
            scale *= 10 if point >= 0 else 1
        else:
            return False
    number /= scale
    put_word(series, &number, True)
    return True


cdef bint put_boolean(Series *series, const uint8_t *text, Py_ssize_t size) except -1 nogil:
    cdef uint8_t lower[5]
    cdef Py_ssize_t i
    cdef int found = -1
    if size > 5:
        return False
    for i in range(size):
        lower[i] = text[i] | 32  # digits have this bit already
    if size == 1:
        found = text[0] - c'0' if c'0' <= text[0] <= c'1' else -1
    elif (size == 3 and memcmp(lower, b"yes", 3) == 0) or (size == 4 and memcmp(lower, b"true", 4) == 0):
        found = 1
    elif (size == 2 and memcmp(lower, b"no", 2) == 0) or (size == 5 and memcmp(lower, b"false", 5) == 0):
        found = 0
    if found >= 0:
        put_byte(series, <uint8_t>found, True)
    return found >= 0


cdef bint begin_video(
    Videos *videos, const uint8_t *data, Record *records, uint32_t count, const uint8_t *numbers, Record **texts
) except -1 nogil:
    """Add the tags and attributes of a video, and find the texts of its fields. Return false to leave it to Python.

    `numbers` are those of fields, plus 1, by the names of records.
    """
    cdef Record *record
    cdef uint32_t i
    cdef uint64_t had = 0  # fields whose element was already read
    cdef int field
    if not count:
        return False  # an empty one is no video
    for i in range(count):
        record = &records[i]
        field = numbers[record.name] - 1
        if field < 0 or READ_AS[field] == BY_PYTHON or record.kind == OPEN:
            return False
        if record.kind == TEXT and READ_AS[field] != AS_TEXTS:
            texts[field] = record
        elif record.kind == TEXT:
            if record.size and not put_video_text(&videos.lists[field].items, data, record):
                return False
        elif READ_AS[field] == AS_TEXTS:
            if record.size:
                return False
        elif had >> field & 1 or not put_attributes(videos, data + record.start, record.size, field):
            return False
        else:
            had |= <uint64_t>1 << field
    return True


cdef bint put_attributes(Videos *videos, const uint8_t *text, Py_ssize_t size, int element) except -1 nogil:
    """Add the attributes of an element of a video. Return false to leave it to Python."""
    cdef Attribute found
    cdef Py_ssize_t at = 0
    cdef int is_one, i
    while True:
        is_one = next_attribute(text, size, &at, &found)
        if is_one <= 0:
            return is_one == 0
        if not found.size or flags_of(found.value, <size_t>found.size):
            return False
        for i in range(video_attribute_count):
            if VIDEO_ATTRIBUTES[i].element != element or VIDEO_ATTRIBUTES[i].size != found.name_size:
                continue
            if memcmp(VIDEO_ATTRIBUTES[i].name, found.name, <size_t>found.name_size) == 0:
                if not put_attribute(videos, VIDEO_ATTRIBUTES[i].field, &found):
                    return False


cdef bint put_attribute(Videos *videos, int field, Attribute *found) except -1 nogil:
    cdef Texts *texts = &videos.texts[field]
    cdef Series *flags = &videos.fixed[field]
    if texts.ends.rows > videos.count or flags.rows > videos.count:
        return False  # of two attributes, the first counts
    if READ_AS[field] == AS_BOOLEAN:
        pad(flags, videos.count, SMALL)
        return put_boolean(flags, found.value, found.size)
    pad(&texts.ends, videos.count, ENDS)
    if READ_AS[field] == AS_URL:
        return put_url(texts, found.value, found.size, 0, True)
    put_bytes(texts, found.value, found.size)
    return True


cdef int end_video(Videos *videos) except -1 nogil:
    """End a video: everything that was added since the last one belongs to it."""
    cdef int i
    for i in range(video_field_count):
        if READ_AS[i] == AS_WORDS or READ_AS[i] == AS_TEXTS:
            put_end(&videos.lists[i].ends, <int64_t>videos.lists[i].items.ends.rows, True)
    videos.count += 1
    return 0


cdef int add_video_values(Videos *videos, dict rare, video) except -1:
    """Add a video that Python has read. If it has rare fields, keep it in `rare`, by its number."""
    cdef int i, how
    cdef double number
    cdef int64_t integer
    for i in range(video_field_count):
        how, value = READ_AS[i], getattr(video, VIDEO_NAMES[i])
        if how == AS_WORDS or how == AS_TEXTS:
            for part in value:
                put_str(&videos.lists[i].items, part)
        elif value is None:
            pass
        elif how == BY_PYTHON:
            if value:
                rare[videos.count] = video
        elif how == AS_TEXT or how == AS_URL:
            pad(&videos.texts[i].ends, videos.count, ENDS)
            put_str(&videos.texts[i], value)
        elif how == AS_BOOLEAN:
            pad(&videos.fixed[i], videos.count, SMALL)
            put_byte(&videos.fixed[i], bool(value), True)
        else:
            pad(&videos.fixed[i], videos.count, WORDS)
            if how == AS_DATE:
                put_date(&videos.fixed[i], value)
            elif how == AS_INTEGER:
                integer = min(max(value, MIN_INTEGER), MAX_INTEGER)
                put_word(&videos.fixed[i], &integer, True)
            else:
                number = float(value) if isfinite(value) else 0
                put_word(&videos.fixed[i], &number, isfinite(value))
    return end_video(videos)


cdef object boolean_column(Series *flags, size_t rows):
    cdef bytearray data = bytearray((rows + 7) >> 3)
    cdef size_t i
    pad(flags, rows, SMALL)
    for i in range(rows):
        if flags.data[i] == 1:
            data[i >> 3] |= 1 << (i & 7)
    return Column(rows, memoryview(bytes(data)), None, valid_view(flags))


cdef tuple rare_columns(dict rare, size_t n):
    """Return the columns of the rare fields."""
    if rare:
        return column_of(RARE_TYPE, [rare.get(number, NO_VIDEO) for number in range(n)]).children
    return tuple([column_of_nothing(kind, n, isinstance(kind, List)) for kind in RARE_TYPE.fields.values()])


cdef object column_of_nothing(kind, size_t n, bint is_valid):
    """Return a column of nulls, or of empty lists."""
    valid = None if is_valid or n == 0 else memoryview(bytes((n + 7) >> 3))
    if isinstance(kind, Struct):
        parts = tuple([column_of_nothing(part, n, False) for part in kind.fields.values()])
        return Column(n, None, None, valid, parts)
    zeros = memoryview(bytes(8 * (n + 1))).cast("q")
    if isinstance(kind, List):
        return Column(n, None, zeros, valid, (column_of(kind.item, []),))
    if kind is Scalar.TEXT:
        return Column(n, memoryview(b""), zeros, valid)
    return Column(n, zeros[:n], None, valid)  # rare fields are texts, lists, times and integers


cdef object videos_column(Videos *videos, dict rare, size_t rows):
    cdef Py_ssize_t i
    cdef size_t n = videos.count
    cdef list parts = []
    of_rare = iter(rare_columns(rare, n))
    for i in range(video_field_count):
        if READ_AS[i] == BY_PYTHON:
            parts.append(next(of_rare))
        elif READ_AS[i] == AS_WORDS or READ_AS[i] == AS_TEXTS:
            items = text_column(&videos.lists[i].items, videos.lists[i].items.ends.rows)
            parts.append(list_column(&videos.lists[i].ends, n, items))
        elif READ_AS[i] == AS_TEXT or READ_AS[i] == AS_URL:
            parts.append(text_column(&videos.texts[i], n))
        elif READ_AS[i] == AS_BOOLEAN:
            parts.append(boolean_column(&videos.fixed[i], n))
        else:
            parts.append(fixed_column(&videos.fixed[i], n, WORDS, "d" if READ_AS[i] == AS_NUMBER else "q"))
    return list_column(&videos.ends, rows, Column(n, None, None, None, tuple(parts)))
