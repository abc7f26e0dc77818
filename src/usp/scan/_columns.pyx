# cython: language_level=3, cdivision=True
"""Collect columns: of plain entries straight from the buffer, and page by page. As `usp.scan.columns.PureColumns`.

A column starts with its first value. Earlier and later rows are filled with nulls when the next value comes, and at
the end, so that a column without values costs nothing. An entry that turns out to need Python is dropped, and added
by way of its page. Files and formats are for `usp.export` to know.
"""

import datetime as datetime_module

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

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
    has_values,
    pad,
    put_byte,
    put_bytes,
    put_date,
    put_str,
    put_text,
    put_url,
    put_word,
    text_column,
)
from usp.scan._bytes cimport CDATA, HIGH
from usp.scan._check cimport PARSE_DATE, PARSE_PRIORITY, PythonResult, EntrySummary, PlainCheck
from usp.scan._entries cimport (
    ATTRIBUTES,
    CHANGEFREQ,
    IMAGE_TAG,
    IMAGES,
    LASTMOD,
    LINK,
    LINKS,
    NEWS,
    NEWS_TAG,
    OPEN,
    PRIORITY,
    PUBLICATION,
    PUBLICATION_DATE,
    TEXT,
    TITLE,
    VIDEO_TAG,
    VIDEOS,
    PlainEntry,
    Record,
    EntryURL,
    record_flags,
)
from usp.scan._extensions cimport (
    AS_DATE,
    AS_BOOLEAN,
    AS_TEXT,
    AS_URL,
    AS_INTEGER,
    AS_WORDS,
    IMAGE_TEXTS,
    MAX_VIDEO_FIELDS,
    READ_AS,
    STORY_LIST_TAGS,
    STORY_LISTS,
    STORY_TAGS,
    STORY_TEXTS,
    Items,
    Stories,
    Videos,
    add_image,
    add_item,
    add_link,
    add_story_values,
    add_video_values,
    begin_video,
    truncate_items,
    truncate_stories,
    truncate_videos,
    end_items,
    end_video,
    end_videos,
    free_items,
    free_stories,
    free_videos,
    items_column,
    pad_stories,
    put_boolean,
    put_number,
    put_parts,
    put_video_text,
    put_integer,
    put_words,
    stories_column,
    video_field_count,
    videos_column,
)
from usp.scan._pages cimport page_of
from usp.scan._lines cimport Lines, open_lines
from usp.scan._seen cimport Seen
from usp.scan._texts cimport (
    Moment,
    ascii_text,
    frequency_of,
    high_text,
    is_printable_utf8,
    microseconds_of,
    parse_moment,
    priority_of,
)

from usp.scan._pages import IMAGE_FIELDS, STORY_FIELDS

INTERFACE = USP_INTERFACE

cdef enum:  # bits of columns, beside NEWS, IMAGES, VIDEOS and LINKS
    DATES = 16
    DATE_TEXTS = 32
    CHANGES = 64
    PRIORITIES = 128
    PROBLEMS = 256

cdef dict WANTED = {
    "news": NEWS, "images": IMAGES, "videos": VIDEOS, "alternates": LINKS, "last_modified": DATES,
    "last_modified_text": DATE_TEXTS, "change_frequency": CHANGES, "priority": PRIORITIES, "problems": PROBLEMS,
}

cdef int64_t EARLIEST, LATEST
cdef object Column, Columns, List, Scalar, Struct, sparse_column, microseconds, parse_date, text_of
cdef object bare_page_of, stated_change_frequency, stated_priority
cdef tuple CHANGE_FREQUENCIES
cdef dict PAGE_TYPES, PAGE_COLUMNS, VALUE_GETTERS


def bind():
    """Import what this module uses of usp, and compare tables with it."""
    global Column, List, Scalar, Struct, microseconds, parse_date, text_of
    global EARLIEST, LATEST, bare_page_of, stated_change_frequency, stated_priority
    global Columns, sparse_column, CHANGE_FREQUENCIES, PAGE_TYPES, PAGE_COLUMNS, VALUE_GETTERS
    from usp.objects.page import page_of as bare_page_of
    from usp.objects.page import stated_change_frequency, stated_priority
    from usp.scan.columns import (
        CHANGE_FREQUENCIES,
        PAGE_COLUMNS,
        PAGE_TYPES,
        VALUE_GETTERS,
        Column,
        Columns,
        List,
        Scalar,
        Struct,
        check_types,
        microseconds,
        sparse_column,
    )
    from usp.scan.dates import parse_date
    from usp.scan.values import text_of

    check_types("PlainColumns in usp/scan/_columns.pyx", written_types())
    EARLIEST, LATEST = microseconds(datetime_module.datetime.min), microseconds(datetime_module.datetime.max)


def written_types():
    """Return the types of the columns as `PlainColumns` writes them. Videos are written as their table says."""
    texts = List(Scalar.TEXT)
    story = dict.fromkeys(STORY_FIELDS, Scalar.TEXT) | dict.fromkeys(STORY_FIELDS[5:], texts)
    story["publish_date"] = Scalar.TIME
    return {
        "url": Scalar.TEXT,
        "last_modified": Scalar.TIME,
        "last_modified_text": Scalar.TEXT,
        "change_frequency": Scalar.FREQUENCY,
        "priority": Scalar.NUMBER,
        "news": Struct(story),
        "images": List(Struct(dict.fromkeys(IMAGE_FIELDS, Scalar.TEXT))),
        "alternates": List(Struct(dict.fromkeys(("hreflang", "url"), Scalar.TEXT))),
        "problems": texts,
    }


cdef inline int64_t clamp_date(int64_t date) noexcept nogil:
    """Return the date, or the nearest one in the years 1 to 9999 UTC."""
    return EARLIEST if date < EARLIEST else LATEST if date > LATEST else date


@cython.final
cdef class PlainColumns(PlainCheck):
    """Collects columns from plain entries, and page by page.

    If problems are wanted, it takes only entries that have none.
    """

    cdef Seen seen  # the URLs
    cdef size_t returned_rows  # how many of them `columns` returned before
    cdef uint32_t wants
    cdef Series dates
    cdef Texts date_texts
    cdef Series changes
    cdef Series priorities
    cdef Stories stories
    cdef Items images
    cdef Items linked
    cdef Videos videos
    cdef dict rare_videos  # number of a video -> the video, if it has rare fields
    cdef dict problems  # row -> codes
    cdef dict others  # columns that only Python knows -> their values, by row
    cdef bint needs_pages  # whether each page may have a value in one of them

    def __cinit__(self, *args):
        self.seen = Seen()
        self.rare_videos = {}
        self.problems = {}

    def __init__(self, resolve, convert, wanted=None):
        wanted = PAGE_TYPES if wanted is None else wanted
        self.others = {name: {} for name in VALUE_GETTERS if name in wanted and name not in WANTED}
        self.needs_pages = not all([PAGE_COLUMNS[name].element for name in self.others])
        self.context.resolve = resolve
        self.context.convert = convert
        for name, bit in WANTED.items():
            if name in wanted:
                self.wants |= <uint32_t>bit
        self.skips_videos = True  # `add_video` takes only videos without problems

    def __dealloc__(self):
        self.clear()

    cdef void clear(self) noexcept:
        """Drop everything but the URLs."""
        free_series(&self.dates)
        free_texts(&self.date_texts)
        free_series(&self.changes)
        free_series(&self.priorities)
        free_stories(&self.stories)
        free_items(&self.images)
        free_items(&self.linked)
        free_videos(&self.videos)

    cdef void drop_row(self) noexcept nogil:
        """Drop the values of the row that was begun."""
        cdef size_t rows = self.seen.count - self.returned_rows
        truncate_series(&self.dates, rows)
        truncate_series(&self.date_texts.ends, rows)
        truncate_series(&self.changes, rows)
        truncate_series(&self.priorities, rows)
        truncate_stories(&self.stories, rows)
        truncate_items(&self.images, rows)
        truncate_items(&self.linked, rows)
        truncate_videos(&self.videos, rows)

    cdef void hash_url(self, EntryURL *entry_url) noexcept nogil:
        entry_url.hashed = self.seen.hash_and_prefetch(entry_url.url, <size_t>entry_url.size)

    cdef int ask_python(
        self, int question, const uint8_t *text, Py_ssize_t size, uint8_t flags, PythonResult *result
    ) except -1:
        """Ask as `PlainCheck` does. The period of a date is 0 if it has a zone, else 1."""
        PlainCheck.ask_python(self, question, text, size, flags, result)
        if question == PARSE_DATE and result.is_valid:
            result.period = parse_date(ascii_text(text, size)).tzinfo is None
        return 0

    # Plain entries

    cdef bint take_entry(self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url) except -1 nogil:
        cdef EntrySummary summary
        if self.wants & PROBLEMS and not self.is_clean(data, entry, entry_url, &summary):
            return False
        if self.add_entry(data, entry, entry_url, &summary if self.wants & PROBLEMS else NULL):
            return True
        self.drop_row()
        if not self.has_gil:
            self.needs_gil = True
            return False
        if self.wants & PROBLEMS and entry.extensions & VIDEOS:
            return False  # they may have problems
        with gil:
            self.add_entry_with_python(data, entry, entry_url)
        return True

    cdef bint add_entry(
        self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url, EntrySummary *summary
    ) except -1 nogil:
        """Add an entry, unless its URL was added before. Return false to leave it to Python. `summary` may be NULL."""
        if entry_url.size < 0 or self.needs_pages:
            return False
        if entry_url.flags & HIGH and not is_printable_utf8(entry_url.url, entry_url.size):
            return False
        if not self.add_fields(data, entry, summary, self.seen.count - self.returned_rows):
            return False
        if not self.seen.add(entry_url.url, <size_t>entry_url.size, entry_url.hashed):
            self.drop_row()
        return True

    cdef bint add_fields(
        self, const uint8_t *data, PlainEntry *entry, EntrySummary *summary, size_t row
    ) except -1 nogil:
        cdef Record *own[PRIORITY + 1]
        cdef Record *cells[VIDEO_TAG + 1]  # of the open group
        cdef Record *record
        cdef int depth = 0, group = 0, stories = 0, publications = 0, tag
        cdef uint32_t i, opened = 0
        memset(own, 0, sizeof(own))
        for i in range(entry.first, entry.first + entry.count):
            record = &self.batch.records[i]
            tag = self.context.grammar_tables.tags[record.name]
            if record.kind == TEXT:
                if depth == 0:
                    if tag <= PRIORITY and record.size:
                        own[tag] = record
                elif record.size and cells[tag] == NULL and (depth == 1 or publications == 1):
                    cells[tag] = record
            elif record.kind == ATTRIBUTES:
                if tag == LINK and depth == 0 and self.wants & LINKS and not add_link(&self.linked, data, record):
                    return False
            elif record.kind == OPEN:
                if depth == 0:
                    memset(cells, 0, sizeof(cells))
                    group, publications, opened = tag, 0, i + 1
                    stories += tag == NEWS_TAG
                publications += tag == PUBLICATION
                depth += 1
            else:
                depth -= 1
                if depth == 0 and group == IMAGE_TAG and self.wants & IMAGES:
                    if not add_image(&self.images, data, cells):
                        return False
                if depth == 0 and group == NEWS_TAG and self.wants & NEWS and stories == 1:
                    if not self.add_story(data, cells, row):
                        return False
                if depth == 0 and group == VIDEO_TAG and self.wants & (VIDEOS | PROBLEMS):
                    if not self.add_video(data, opened, i):
                        return False
        if entry.extensions:
            end_items(&self.images, row)
            end_items(&self.linked, row)
            end_videos(&self.videos, row)
        return self.add_own_fields(data, own, summary, row)

    cdef bint add_own_fields(
        self, const uint8_t *data, Record **own, EntrySummary *summary, size_t row
    ) except -1 nogil:
        cdef int found = 1
        cdef int64_t date
        cdef bint has_zone
        cdef double priority
        if own[LASTMOD] != NULL and self.wants & (DATES | DATE_TEXTS):
            if summary != NULL:
                date, has_zone = clamp_date(summary.date), summary.period == 0
            else:
                found = self.read_date(data, own[LASTMOD], &date, &has_zone)
            if found < 0:
                return False
            if found and self.wants & DATES:
                pad(&self.dates, row, WORDS)
                put_word(&self.dates, &date, True)
            if found and not has_zone and self.wants & DATE_TEXTS:
                pad(&self.date_texts.ends, row, ENDS)
                put_bytes(&self.date_texts, data + own[LASTMOD].start, own[LASTMOD].size)
        if own[CHANGEFREQ] != NULL and self.wants & CHANGES:
            found = frequency_of(data + own[CHANGEFREQ].start, own[CHANGEFREQ].size)
            if found < 0 and record_flags(data, own[CHANGEFREQ]) & ~CDATA:
                return False
            if found >= 0:
                pad(&self.changes, row, SMALL)
                put_byte(&self.changes, <uint8_t>found, True)
        if own[PRIORITY] != NULL and self.wants & PRIORITIES:
            if summary != NULL:
                priority = summary.priority
            elif not self.read_priority(data, own[PRIORITY], &priority):
                return False
            if priority >= 0:
                pad(&self.priorities, row, WORDS)
                put_word(&self.priorities, &priority, True)
        return True

    cdef int read_date(self, const uint8_t *data, Record *record, int64_t *date, bint *has_zone) except -2 nogil:
        """Read a date. Return whether the text is one, or -1 to leave it to Python."""
        cdef const uint8_t *text = data + record.start
        cdef Moment moment
        cdef PythonResult result
        if parse_moment(text, record.size, &moment):
            date[0], has_zone[0] = clamp_date(microseconds_of(&moment)), moment.has_zone
            return 1
        if record_flags(data, record) or not self.ask_once(PARSE_DATE, text, record.size, 0, &result):
            return -1
        date[0], has_zone[0] = result.date, not result.period
        return result.is_valid

    cdef bint read_priority(self, const uint8_t *data, Record *record, double *priority) except -1 nogil:
        """Read a priority, -1 if it is not a valid one. Return false to leave it to Python."""
        cdef const uint8_t *text = data + record.start
        cdef double found = priority_of(text, record.size)
        cdef PythonResult result
        if found >= 0:
            priority[0] = found
            return True
        if record_flags(data, record) or not self.ask_once(PARSE_PRIORITY, text, record.size, 0, &result):
            return False
        priority[0] = result.priority if result.is_valid else -1
        return True

    cdef bint add_story(self, const uint8_t *data, Record **cells, size_t row) except -1 nogil:
        """Add a news story, if it has a title and a date. Return false to leave it to Python."""
        cdef int64_t date
        cdef bint has_zone
        cdef int found, i
        if cells[TITLE] == NULL or cells[PUBLICATION_DATE] == NULL:
            return True
        found = self.read_date(data, cells[PUBLICATION_DATE], &date, &has_zone)
        if found <= 0:
            return found == 0
        pad_stories(&self.stories, row)
        put_word(&self.stories.dates, &date, True)
        for i in range(STORY_TEXTS):
            if not put_text(&self.stories.texts[i], data, cells[STORY_TAGS[i]], False):
                return False
        for i in range(STORY_LISTS):
            if not put_parts(&self.stories.lists[i], data, cells[STORY_LIST_TAGS[i]], self.changed):
                return False
        return True

    cdef bint add_video(self, const uint8_t *data, uint32_t first, uint32_t end) except -1 nogil:
        """Add a video without problems. Return false to leave it to Python."""
        cdef Record *texts[MAX_VIDEO_FIELDS]
        cdef int field
        memset(texts, 0, sizeof(texts))
        if not begin_video(
            &self.videos, data, &self.batch.records[first], end - first, self.context.grammar_tables.video_fields, texts
        ):
            return False
        for field in range(video_field_count):
            if texts[field] != NULL and texts[field].size and not self.add_video_field(data, field, texts[field]):
                return False
        return end_video(&self.videos) == 0

    cdef bint add_video_field(self, const uint8_t *data, int field, Record *record) except -1 nogil:
        cdef const uint8_t *text = data + record.start
        cdef Texts *texts = &self.videos.texts[field]
        cdef Series *fixed = &self.videos.fixed[field]
        cdef int how = READ_AS[field]
        cdef int64_t date
        cdef bint has_zone
        if how == AS_WORDS:
            return put_words(&self.videos.lists[field].items, text, record.size)
        if how == AS_TEXT or how == AS_URL:
            pad(&texts.ends, self.videos.count, ENDS)
            if how == AS_TEXT:
                return put_video_text(texts, data, record)
            return put_url(texts, text, record.size, record_flags(data, record), True)
        pad(fixed, self.videos.count, SMALL if how == AS_BOOLEAN else WORDS)
        if how == AS_DATE:
            if self.read_date(data, record, &date, &has_zone) != 1:
                return False
            put_word(fixed, &date, True)
            return True
        if how == AS_BOOLEAN:
            return put_boolean(fixed, text, record.size)
        return put_integer(fixed, text, record.size) if how == AS_INTEGER else put_number(fixed, text, record.size)

    # Lines

    def take_lines(self, bytes buffer not None, Py_ssize_t position):
        """Take lines that are URLs or blank. Return where they end, and how many they are."""
        cdef Lines lines
        cdef Py_ssize_t count
        cdef bint takes_fields = not self.wants & PROBLEMS  # behind a URL, they are a problem
        open_lines(&lines, buffer, position)
        with nogil:
            count = self.seen.add_lines(&lines, takes_fields)
        return lines.at, count

    # Pages

    cdef int add_entry_with_python(self, const uint8_t *data, PlainEntry *entry, EntryURL *entry_url) except -1:
        """Add an entry by way of its page, unless its URL was added before."""
        cdef Record *loc = &self.batch.records[entry.loc]
        cdef object url = None
        if entry_url.size >= 0:
            url = (high_text if entry_url.flags & HIGH else ascii_text)(entry_url.url, entry_url.size)
        if url is None:
            url = self.context.resolve(text_of(data[loc.start:loc.start + loc.size], bool(entry_url.flags & CDATA)))
        if url is not None and self.seen.is_new(url):
            page = page_of(self, data, entry, url)
            self.add_values(page, page._source.last_modified_text())
        return 0

    def append(self, page not None, str last_modified_text not None, problems=()):
        """Add a page and the codes of its problems, unless its URL was added before."""
        if self.seen.is_new(page.url):
            self.add_values(page, last_modified_text)
            if problems and self.wants & PROBLEMS:
                self.problems[self.seen.count - self.returned_rows - 1] = problems

    def append_url(self, str url not None, source not None, problems=()):
        """Add a page that has only a URL, and the codes of its problems, unless its URL was added before."""
        if self.others:
            self.append(bare_page_of(url, source), "", problems)
        elif self.seen.is_new(url) and problems and self.wants & PROBLEMS:
            self.problems[self.seen.count - self.returned_rows - 1] = problems

    cdef int add_values(self, page, str last_modified_text) except -1:
        """Add the values of the last URL."""
        cdef size_t row = self.seen.count - self.returned_rows - 1
        cdef double priority
        if self.wants & (DATES | DATE_TEXTS):
            date = page.last_modified
            if date is not None and self.wants & DATES:
                pad(&self.dates, row, WORDS)
                put_date(&self.dates, date)
            if date is not None and date.tzinfo is None and self.wants & DATE_TEXTS:
                pad(&self.date_texts.ends, row, ENDS)
                put_str(&self.date_texts, last_modified_text)
        if self.wants & CHANGES and (frequency := stated_change_frequency(page)) is not None:
            pad(&self.changes, row, SMALL)
            put_byte(&self.changes, <uint8_t>CHANGE_FREQUENCIES.index(frequency), True)
        if self.wants & PRIORITIES and (stated := stated_priority(page)) is not None:
            priority = stated
            pad(&self.priorities, row, WORDS)
            put_word(&self.priorities, &priority, True)
        if self.wants & NEWS and page.news_story is not None:
            add_story_values(&self.stories, page.news_story, row)
        if self.wants & IMAGES and page.images:
            for image in page.images:
                texts = image.loc, image.caption, image.geo_location, image.title, image.license
                add_item(&self.images, texts)
            end_items(&self.images, row)
        if self.wants & LINKS and page.alternates:
            for alternate in page.alternates:
                add_item(&self.linked, alternate)
            end_items(&self.linked, row)
        if self.wants & VIDEOS and page.videos:
            for video in page.videos:
                add_video_values(&self.videos, self.rare_videos, video)
            end_videos(&self.videos, row)
        for name, values in self.others.items():
            value = VALUE_GETTERS[name](page)
            if value is not None:
                values[row] = value
        return 0

    # Results

    @property
    def rows(self):
        """The number of rows collected since the last call of `columns`."""
        return self.seen.count - self.returned_rows

    def columns(self, bint goes_on=False):
        """Return what was collected since the last call. Remember the URLs only if the document `goes_on`."""
        cdef size_t n = self.seen.count - self.returned_rows
        cdef dict made = {}
        if n:
            made["url"] = Column(n, *self.seen.views_from(self.returned_rows, not goes_on))
        if goes_on:
            self.returned_rows = self.seen.count
        else:
            self.seen, self.returned_rows = Seen(), 0
        if has_values(&self.dates):
            made["last_modified"] = fixed_column(&self.dates, n, WORDS, "q")
        if has_values(&self.date_texts.ends):
            made["last_modified_text"] = text_column(&self.date_texts, n)
        if has_values(&self.changes):
            made["change_frequency"] = fixed_column(&self.changes, n, SMALL, "B")
        if has_values(&self.priorities):
            made["priority"] = fixed_column(&self.priorities, n, WORDS, "d")
        if has_values(&self.stories.texts[0].ends):
            made["news"] = stories_column(&self.stories, n)
        if has_values(&self.images.ends):
            made["images"] = items_column(&self.images, IMAGE_TEXTS, n)
        if self.wants & VIDEOS and has_values(&self.videos.ends):
            made["videos"] = videos_column(&self.videos, self.rare_videos, n)
        if has_values(&self.linked.ends):
            made["alternates"] = items_column(&self.linked, 2, n)
        if self.problems:
            made["problems"] = sparse_column(PAGE_TYPES["problems"], n, self.problems)
        for name, values in self.others.items():
            if values:
                made[name] = sparse_column(PAGE_TYPES[name], n, values)
                values.clear()
        self.clear()
        self.rare_videos.clear()
        self.problems.clear()
        return Columns(n, made)
