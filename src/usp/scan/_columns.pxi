# Columns, compiled: the same as `usp.scan.columns.PureColumns`, and plain entries straight from the buffer.

from usp.scan.columns import Columns, form_of

cdef enum:
    NO_DATE, DATE_ONLY, NO_ZONE, WITH_ZONE
    NO_FREQUENCY = 255


@cython.final
cdef class Block:
    """Memory that is handed out as a buffer, and freed with this object."""

    cdef void *data
    cdef Py_ssize_t size

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 1, flags)


cdef object view(void **data, Py_ssize_t size, str format):
    """A memoryview of a block, which it takes over."""
    cdef Block block = Block.__new__(Block)
    block.data, block.size = data[0], size
    data[0] = NULL
    return memoryview(block).cast(format) if format != "B" else memoryview(block)


ctypedef struct Fields:
    int64_t date
    double priority
    uint8_t form
    uint8_t frequency
    uint32_t text_start
    uint32_t text_size


@cython.final
cdef class PlainColumns(PlainPages):
    """Collects columns: of plain entries, and page by page."""

    cdef int64_t *column_dates
    cdef int64_t *text_ends
    cdef double *column_priorities
    cdef uint8_t *forms
    cdef uint8_t *column_frequencies
    cdef uint8_t *texts
    cdef size_t length, room, texts_room

    def __dealloc__(self):
        free(self.column_dates)
        free(self.text_ends)
        free(self.column_priorities)
        free(self.forms)
        free(self.column_frequencies)
        free(self.texts)

    cdef int reserve(self, size_t rows, size_t text) except -1:
        """Make room for so many more rows and bytes of text."""
        cdef size_t room, end
        if self.length + rows >= self.room:
            room = (self.length + rows + 1) * 2
            enlarge(<void **>&self.column_dates, room * sizeof(int64_t))
            enlarge(<void **>&self.text_ends, (room + 1) * sizeof(int64_t))
            enlarge(<void **>&self.column_priorities, room * sizeof(double))
            enlarge(<void **>&self.forms, room)
            enlarge(<void **>&self.column_frequencies, room)
            self.room = room
            if self.length == 0:
                self.text_ends[0] = 0
        end = <size_t>self.text_ends[self.length] + text
        if end > self.texts_room:
            enlarge(<void **>&self.texts, end * 2)
            self.texts_room = end * 2
        return 0

    def take(self, grammar, bytes buffer not None, Py_ssize_t position):
        """Take plain entries; gives no pages, and the rest as for `PlainPages`."""
        cdef Py_ssize_t before = position
        cdef Stop stop = self.scan(grammar, buffer, &position)
        cdef const uint8_t *data = <const uint8_t *>buffer
        cdef uint32_t i = 0, count = self.batch.entry_count
        self.stage(data)
        self.reserve(count, <size_t>(position - before))
        while i < count:
            with nogil:
                while i < count and self.take_plainly(data, &self.batch.entries[i], &self.staged[i]):
                    i += 1
            if i < count:
                page = self.page(data, &self.batch.entries[i], &self.staged[i])
                if page is not None:
                    self.append_fields(page, (<Entry>page._source).last_modified_text())
                    self.reserve(count, <size_t>(position - before))
                i += 1
        return [], position, stop == MORE, stop == FULL

    cdef bint take_plainly(self, const uint8_t *data, PlainEntry *entry, Staged *staged) except -1 nogil:
        """One row of an entry that needs no Python; false if it does."""
        cdef Fields fields
        if staged.size < 0 or staged.flags & HIGH or not self.read_fields(data, entry, &fields):
            return False
        if self.seen.add(staged.url, <size_t>staged.size, staged.hashed):
            self.add_row(&fields, data + fields.text_start)
        return True

    cdef bint read_fields(self, const uint8_t *data, PlainEntry *entry, Fields *fields) noexcept nogil:
        cdef uint32_t i
        cdef int depth = 0, tag, number
        cdef Record *record
        cdef Moment moment
        fields.date, fields.form, fields.frequency, fields.priority = 0, NO_DATE, NO_FREQUENCY, -1
        fields.text_start = fields.text_size = 0
        for i in range(entry.first, entry.first + entry.count):
            record = &self.batch.records[i]
            tag = self.context.tabled.tags[record.name]
            if record.kind != TEXT:
                depth += record.kind == OPEN
                depth -= record.kind == CLOSE
            elif depth or not record.size:
                pass
            elif tag == LASTMOD and fields.form == NO_DATE:
                if not parse_moment(data + record.start, record.size, &moment):
                    return False
                fields.date = microseconds_of(&moment)
                fields.form = WITH_ZONE if moment.has_zone else NO_ZONE if moment.has_time else DATE_ONLY
                if not moment.has_zone:
                    fields.text_start, fields.text_size = record.start, record.size
            elif tag == CHANGEFREQ and fields.frequency == NO_FREQUENCY:
                number = frequency_of(data + record.start, record.size)
                if number < 0:
                    return False
                fields.frequency = <uint8_t>number
            elif tag == PRIORITY and fields.priority < 0:
                fields.priority = priority_of(data + record.start, record.size)
                if fields.priority < 0:
                    return False
        if fields.priority < 0:
            fields.priority = 0.5
        return True

    cdef void add_row(self, Fields *fields, const uint8_t *text) noexcept nogil:
        """Add a row, for which there is room."""
        cdef size_t i = self.length
        self.column_dates[i] = fields.date
        self.forms[i] = fields.form
        self.column_frequencies[i] = fields.frequency
        self.column_priorities[i] = fields.priority
        if fields.text_size:
            memcpy(self.texts + self.text_ends[i], text, fields.text_size)
        self.text_ends[i + 1] = self.text_ends[i] + fields.text_size
        self.length = i + 1

    def append(self, page not None, str last_modified_text not None):
        """One page, unless its URL is there already."""
        if self.seen.is_new(page.url):
            self.append_fields(page, last_modified_text)

    cdef int append_fields(self, page, str last_modified_text) except -1:
        cdef Fields fields
        cdef bytes text = b""
        date, frequency = page.last_modified, page.change_frequency
        fields.form = form_of(date, last_modified_text)
        fields.date = microseconds(date) if date is not None else 0
        if fields.form == DATE_ONLY or fields.form == NO_ZONE:
            text = last_modified_text.encode("utf-8", "replace")
        fields.text_size = <uint32_t>len(text)
        fields.frequency = CHANGE_FREQUENCIES.index(frequency) if frequency is not None else NO_FREQUENCY
        fields.priority = float(page.priority)
        self.reserve(1, <size_t>len(text))
        self.add_row(&fields, <const uint8_t *>text)
        return 0

    def columns(self):
        """All that was collected. To be called once, at the end."""
        cdef size_t n = self.length, i
        cdef uint8_t *has_date = <uint8_t *>calloc((n >> 3) + 1, 1)
        cdef uint8_t *has_frequency = <uint8_t *>calloc((n >> 3) + 1, 1)
        self.reserve(1, 0)
        if has_date == NULL or has_frequency == NULL:
            free(has_date)
            free(has_frequency)
            raise MemoryError
        for i in range(n):
            has_date[i >> 3] |= (self.forms[i] != NO_DATE) << (i & 7)
            has_frequency[i >> 3] |= (self.column_frequencies[i] != NO_FREQUENCY) << (i & 7)
        text_size, url_size = self.text_ends[n], self.seen.ends[n]
        made = Columns(
            n,
            view(<void **>&self.seen.ends, (n + 1) * 8, "q"),
            view(<void **>&self.seen.data, url_size, "B"),
            view(<void **>&self.column_dates, n * 8, "q"),
            view(<void **>&has_date, (n + 7) >> 3, "B"),
            view(<void **>&self.forms, n, "B"),
            view(<void **>&self.text_ends, (n + 1) * 8, "q"),
            view(<void **>&self.texts, text_size, "B"),
            view(<void **>&self.column_frequencies, n, "B"),
            view(<void **>&has_frequency, (n + 7) >> 3, "B"),
            view(<void **>&self.column_priorities, n * 8, "d"),
        )
        self.length = self.room = self.texts_room = 0
        self.seen = Seen()
        return made


cdef int enlarge(void **data, size_t size) except -1 nogil:
    cdef void *larger = realloc(data[0], size)
    if larger == NULL:
        with gil:
            raise MemoryError
    data[0] = larger
    return 0
