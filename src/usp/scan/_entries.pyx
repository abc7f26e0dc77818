# cython: language_level=3, cdivision=True
"""Find the plain entries of a buffer, and record where their texts lie.

The scan needs no Python object and no GIL. Every read is bounded by the size of the buffer, and only the batch is
written. An entry that is not plain ends the batch: the general scanner reads it. Names, rules and states are those of
`usp.scan.grammar`. This module does not know what the texts are used for: classes derived from `Reader` do.
"""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._bytes cimport CDATA, MAX_TEXT_BYTES, is_same, is_space, next_tag, next_visible

INTERFACE = USP_INTERFACE

# The scan


cdef inline uint32_t name_hash(const uint8_t *name, Py_ssize_t size) noexcept nogil:
    return (name[0] * 7 + name[size - 1] * 31 + name[size >> 1] * 127 + <uint32_t>size * 521) & (NAME_SLOTS - 1)


cdef inline int find_name(Tables *tables, const uint8_t *name, Py_ssize_t size) noexcept nogil:
    """Return the number of a raw name, or -1 if the grammar has none."""
    cdef uint32_t slot = name_hash(name, size)
    cdef int number
    while tables.slots[slot]:
        number = tables.slots[slot] - 1
        if tables.name_sizes[number] == size and memcmp(tables.names[number], name, size) == 0:
            return number
        slot = (slot + 1) & (NAME_SLOTS - 1)
    return -1


cdef inline bint is_closing(Tables *tables, int name, const uint8_t *at, Py_ssize_t left) noexcept nogil:
    """Return whether the text starts with a name and ">"."""
    cdef uint64_t words[2]
    cdef Py_ssize_t size = tables.name_sizes[name]
    if left >= 16 and tables.masks[name][0]:
        memcpy(words, at, 16)
        return not (
            ((words[0] ^ tables.closings[name][0]) & tables.masks[name][0])
            | ((words[1] ^ tables.closings[name][1]) & tables.masks[name][1])
        )
    return left > size and at[size] == c'>' and memcmp(at, tables.names[name], size) == 0


cdef enum:
    NO_STEP = 0xFFFF


cdef struct Cursor:
    const uint8_t *data
    Py_ssize_t size
    Py_ssize_t at
    Batch *batch
    Tables *tables
    int last  # the name of the last start tag
    uint32_t step  # the last one, NO_STEP if there is nothing to learn here
    Py_ssize_t literal  # where the next step starts
    bint is_after_text  # whether it starts behind a text, not behind an empty element
    uint32_t mark_count
    Mark marks[MAX_MARKS]


cdef inline Stop skip_space(Cursor *c) noexcept nogil:
    """Move to the next tag or text."""
    c.at = next_visible(c.data + c.at, c.data + c.size) - c.data
    return ENTRY if c.at < c.size else MORE


cdef inline bint add_record(Cursor *c, Py_ssize_t start, Py_ssize_t end, int kind, int name, int flags) noexcept nogil:
    """Record a text without the white space around it. Return false if the batch is full."""
    cdef Record *record
    while start < end and is_space(c.data[start]):
        start += 1
    while end > start and is_space(c.data[end - 1]):
        end -= 1
    if c.batch.record_count == MAX_RECORDS:
        return False
    record = &c.batch.records[c.batch.record_count]
    c.batch.record_count += 1
    record.start = <uint32_t>start
    record.size = <uint16_t>(end - start)
    record.kind = kind
    record.name = name
    record.flags = flags
    return True


cdef inline Stop take_end_tag(Cursor *c, int name) noexcept nogil:
    """Read the end tag `</name>`, with nothing else in it."""
    cdef Py_ssize_t size = c.tables.name_sizes[name], at = c.at
    if c.size - at < size + 3:
        return MORE
    if c.data[at + 1] != c'/' or not is_closing(c.tables, name, c.data + at + 2, c.size - at - 2):
        return ODD
    c.at = at + size + 3
    return ENTRY


cdef Stop take_cdata(Cursor *c, Py_ssize_t *start, Py_ssize_t *end) noexcept nogil:
    """Read a CDATA section and the white space after it."""
    cdef Py_ssize_t at = c.at + 9, i
    cdef const uint8_t *bracket
    if c.size - c.at < 12:
        return MORE
    if memcmp(c.data + c.at, b"<![CDATA[", 9):
        return ODD
    start[0] = at
    while True:
        bracket = <const uint8_t *>memchr(c.data + at, c']', c.size - at)
        at = bracket - c.data if bracket != NULL else c.size
        if c.size - at < 3:
            return MORE if c.size - c.at <= MAX_TEXT_BYTES else ODD
        if c.data[at + 1] == c']' and c.data[at + 2] == c'>':
            break
        at += 1
    for i in range(start[0], at - 2):  # if another opens inside, this one was never closed
        if c.data[i] == c'<' and c.data[i + 1] == c'!' and c.data[i + 2] == c'[':
            return ODD
    end[0] = at
    c.at = at + 3
    return skip_space(c)


cdef inline Stop take_text(Cursor *c, int name) noexcept nogil:
    """Read the text of a field, up to its end tag."""
    cdef Py_ssize_t first = c.at, start = c.at, end, i
    cdef int flags = 0
    cdef Stop stop
    cdef const uint8_t *tag = next_tag(c.data + start, c.data + c.size)
    if tag == NULL:
        return MORE if c.size - start <= MAX_TEXT_BYTES else ODD
    end = c.at = tag - c.data
    if c.size - end < 2:
        return MORE
    if tag[1] == c'!':
        for i in range(start, end):
            if not is_space(c.data[i]):
                return ODD
        stop = take_cdata(c, &start, &end)
        if stop != ENTRY:
            return stop
        flags = CDATA
    if c.at - first > MAX_TEXT_BYTES or c.data[c.at] != c'<':
        return ODD
    return ENTRY if add_record(c, start, end, TEXT, name, flags) else FULL


cdef Stop take_field(Cursor *c, int name) noexcept nogil:
    """Read the text of a field, and its end tag."""
    cdef Stop stop = take_text(c, name)
    c.literal, c.is_after_text = c.at, True
    return take_end_tag(c, name) if stop == ENTRY else stop


cdef Stop take_attributes(Cursor *c, int name, bint *is_empty) noexcept nogil:
    """Read the attributes of a start tag."""
    cdef Py_ssize_t start = c.at, at = c.at, quoted, left
    cdef const uint8_t *quote
    cdef uint8_t x
    while True:
        if at >= c.size:
            return MORE if at - start < MAX_ATTRIBUTES_BYTES else ODD
        x = c.data[at]
        if x == c'<' or at - start > MAX_ATTRIBUTES_BYTES:
            return ODD
        if x == c'"' or x == c"'":
            quoted, left = at + 1, min(c.size - at - 1, <Py_ssize_t>MAX_ATTRIBUTES_BYTES)
            quote = <const uint8_t *>memchr(c.data + quoted, x, <size_t>left)
            at = quote - c.data if quote != NULL else quoted + left
            left = at - quoted
            if memchr(c.data + quoted, c'<', <size_t>left) or memchr(c.data + quoted, c'>', <size_t>left):
                return ODD
            if quote == NULL:
                continue
        elif x == c'>':
            break
        elif (x | 32) == c'x' and at + 4 < c.size and (c.data[at + 1] | 32) == c'm':
            return ODD  # it may declare a namespace
        at += 1
    c.at = at + 1
    is_empty[0] = at > start and c.data[at - 1] == c'/'
    return ENTRY if add_record(c, start, at - is_empty[0], ATTRIBUTES, name, 0) else FULL


cdef Stop take_comment(Cursor *c) noexcept nogil:
    """Read a comment. One that other parsers may refuse is odd."""
    cdef Py_ssize_t at = c.at + 4
    if c.size - c.at < 7:
        return MORE
    if memcmp(c.data + c.at, b"<!--", 4):
        return ODD
    while at + 2 < c.size:
        if c.data[at] == c'-' and c.data[at + 1] == c'-':
            if c.data[at + 2] != c'>':
                return ODD
            c.at = at + 3
            return ENTRY
        if at - c.at > MAX_COMMENT_BYTES or c.data[at] > 126 or (c.data[at] < 32 and not is_space(c.data[at])):
            return ODD
        at += 1
    return MORE


cdef inline void mark(Cursor *c, int kind, int name) noexcept nogil:
    """Note for the next step that a group opens or closes here."""
    if c.mark_count < MAX_MARKS and c.at - c.literal <= MAX_LITERAL_BYTES:
        c.marks[c.mark_count].offset = <uint8_t>(c.at - c.literal)
        c.marks[c.mark_count].kind = kind
        c.marks[c.mark_count].name = name
        c.mark_count += 1
    else:
        c.step = NO_STEP


cdef void learn(Cursor *c, int kind, int name, Level *levels, int depth, PlainEntry *entry) noexcept nogil:
    """Add the step that leads from the last one to here."""
    cdef uint32_t number = c.batch.step_count
    cdef Step *step
    cdef Step *before
    if c.step == NO_STEP or number == MAX_STEPS or c.at - c.literal > MAX_LITERAL_BYTES:
        c.step = NO_STEP
        return
    before, step = &c.batch.steps[c.step], &c.batch.steps[number]
    memset(step, 0, sizeof(Step))
    step.size = <uint8_t>(c.at - c.literal)
    memcpy(step.literal, c.data + c.literal, step.size)
    step.kind, step.name, step.extensions = kind, name, entry.extensions
    step.start = <uint8_t>(entry.start - c.literal) if c.step == 0 else 0
    step.is_loc = kind == TEXT and depth == 1 and c.tables.is_loc[name]
    step.is_after_text = c.is_after_text
    step.mark_count = c.mark_count
    memcpy(step.marks, c.marks, sizeof(c.marks))
    memcpy(c.batch.levels[number], levels, sizeof(c.batch.levels[number]))
    c.batch.depths[number] = depth
    before.other, before.next = before.next, number
    c.batch.step_count += 1
    c.step = number
    c.mark_count = 0


cdef void forget_steps(Batch *batch) noexcept nogil:
    memset(&batch.steps[0], 0, sizeof(Step))
    batch.step_count, batch.steps_taken = 1, 0


cdef inline bint is_step(Cursor *c, Step *step) noexcept nogil:
    return (
        c.size - c.at >= step.size
        and step.is_after_text == c.is_after_text
        and is_same(c.data + c.at, step.literal, step.size)
        and (step.kind != ATTRIBUTES or ends_name(c, c.at + step.size))
    )


cdef inline bint ends_name(Cursor *c, Py_ssize_t at) noexcept nogil:
    """Return whether the name of a tag ends here: it may be the start of a longer one."""
    return at < c.size and (c.data[at] <= 32 or c.data[at] == c'>' or c.data[at] == c'/')


cdef inline bint add_mark(Cursor *c, Mark *found) noexcept nogil:
    """Add the record of a group that opens or closes in the next step. Return false if the batch is full."""
    return add_record(c, c.at + found.offset, c.at + found.offset, found.kind, found.name, 0)


cdef inline Step *next_step(Cursor *c) noexcept nogil:
    """Return the step that comes next in the text, if it is a known one, else NULL."""
    cdef uint32_t number = c.batch.steps[c.step].next
    if number and not is_step(c, &c.batch.steps[number]):
        number = c.batch.steps[c.step].other
        if number and not is_step(c, &c.batch.steps[number]):
            number = 0
    if not number:
        return NULL
    c.step = number
    return &c.batch.steps[number]


cdef Stop take_known_steps(Cursor *c, PlainEntry *entry, bint *is_complete) noexcept nogil:
    """Read an entry as long as its steps are known. The tag behind the last text or attributes is not read yet."""
    cdef Step *step = next_step(c)
    cdef Stop stop
    cdef bint is_empty
    cdef uint32_t i
    if step != NULL:
        entry.start = c.at + step.start
    while step != NULL:
        for i in range(step.mark_count):
            if not add_mark(c, &step.marks[i]):
                return FULL
        c.at += step.size
        entry.extensions = step.extensions
        c.batch.steps_taken += 1
        c.is_after_text = True
        if step.kind == TEXT:
            if step.is_loc:
                entry.loc = c.batch.record_count + 1
            stop = take_text(c, step.name)
        elif step.kind == CLOSE:
            is_complete[0] = True
            return ENTRY
        else:
            stop = take_attributes(c, step.name, &is_empty)
            c.is_after_text = not is_empty
            if stop == ENTRY and not is_empty:
                stop = take_text(c, step.name)
        if stop != ENTRY:
            return stop
        step = next_step(c)
    return ENTRY


cdef Stop take_start_tag(Cursor *c, Level *levels, int *depth, PlainEntry *entry) noexcept nogil:
    """Read a start tag. If it is a field, read its text and end tag as well."""
    cdef Py_ssize_t at = c.at + 1, start = c.at + 1
    cdef uint8_t x = 62, state = levels[depth[0]].state
    cdef int name = c.batch.following[c.last]
    cdef bint is_empty = False
    cdef Stop stop
    if is_closing(c.tables, name, c.data + at, c.size - at):
        at += c.tables.name_sizes[name]
    else:
        while at < c.size:
            x = c.data[at]
            if x <= 32 or x == c'>' or x == c'/':
                break
            at += 1
            if at - start > MAX_NAME_BYTES:
                return ODD
        if at >= c.size:
            return MORE
        if at == start:
            return ODD
        name = find_name(c.tables, c.data + start, at - start)
        if name < 0:
            return ODD
        c.batch.following[c.last] = name
    c.last = name
    c.at = at
    if c.tables.rules[state][name] == WITH_ATTRIBUTES:
        entry.extensions |= c.tables.extensions[name] if depth[0] == 1 else 0
        learn(c, ATTRIBUTES, name, levels, depth[0], entry)
        stop = take_attributes(c, name, &is_empty)
        c.literal, c.is_after_text = c.at, False
        return stop if stop != ENTRY or is_empty else take_field(c, name)
    if x != c'>':
        return ODD
    c.at = at + 1
    if c.tables.rules[state][name] == FIELD:
        if levels[depth[0]].fields & c.tables.bits[name]:
            return ODD  # which of two fields counts depends on their texts
        levels[depth[0]].fields |= c.tables.bits[name]
        if depth[0] == 1 and c.tables.is_loc[name]:
            entry.loc = c.batch.record_count + 1
        learn(c, TEXT, name, levels, depth[0], entry)
        return take_field(c, name)
    if c.tables.rules[state][name] != GROUP or depth[0] + 1 == MAX_OPEN:
        return ODD
    if depth[0] == 1:
        entry.extensions |= c.tables.extensions[name]
    depth[0] += 1
    levels[depth[0]].name = name
    levels[depth[0]].state = c.tables.states[state][name]
    levels[depth[0]].fields = 0
    if depth[0] == 1:
        return ENTRY
    mark(c, OPEN, name)
    return ENTRY if add_record(c, c.at, c.at, OPEN, name, 0) else FULL


cdef Stop take_entry(Cursor *c, PlainEntry *entry) noexcept nogil:
    """Read the white space before an entry, and the entry. Return ENTRY only if it is plain and complete.

    `entry.start` is where the entry starts, or would start.
    """
    cdef Level levels[MAX_OPEN]
    cdef int depth = 0
    cdef bint is_complete = False
    cdef Stop stop
    entry.start = c.at
    entry.first = c.batch.record_count
    entry.loc = entry.extensions = 0
    c.step = c.mark_count = 0
    c.is_after_text = False
    stop = take_known_steps(c, entry, &is_complete)
    if stop == ENTRY and not is_complete:
        c.literal = c.at
        if c.step:
            memcpy(levels, c.batch.levels[c.step], sizeof(levels))
            depth = c.batch.depths[c.step]
            c.last = c.batch.steps[c.step].name
            stop = take_end_tag(c, c.last) if c.is_after_text else ENTRY
        else:
            levels[0].state = 0
            levels[0].fields = 0
        if stop == ENTRY:
            stop = skip_space(c)
            entry.start = entry.start if c.step else c.at
        if stop == ENTRY:
            stop = take_unknown_steps(c, entry, levels, depth)
    entry.count = c.batch.record_count - entry.first
    return stop


cdef Stop take_unknown_steps(Cursor *c, PlainEntry *entry, Level *levels, int depth) noexcept nogil:
    """Read an entry from one of its tags on to its end, and learn its steps."""
    cdef Stop stop
    while True:
        if c.data[c.at] != c'<':
            return ODD
        if c.size - c.at < 2:
            return MORE
        if c.data[c.at + 1] == c'/' and depth:
            stop = take_end_tag(c, levels[depth].name)
            depth -= 1
            if stop == ENTRY and depth == 0:
                learn(c, CLOSE, 0, levels, 0, entry)
                return ENTRY
            mark(c, CLOSE, levels[depth + 1].name)
            if stop == ENTRY and not add_record(c, c.at, c.at, CLOSE, levels[depth + 1].name, 0):
                return FULL
        elif c.data[c.at + 1] == c'!' and depth:
            stop = take_comment(c)
        else:
            stop = take_start_tag(c, levels, &depth, entry)
        if stop == ENTRY:
            stop = skip_space(c)
        if stop != ENTRY:
            return stop


cdef Stop take_entries(
    Tables *tables, const uint8_t *data, Py_ssize_t size, Py_ssize_t *at, Batch *batch, uint32_t most
) noexcept nogil:
    """Find the plain entries from `at` on, up to `most`. Return why the last one was the last."""
    cdef Cursor c
    cdef Stop stop
    cdef PlainEntry *entry
    cdef uint32_t records
    c.data, c.size, c.at, c.batch, c.tables, c.last = data, size, at[0], batch, tables, 0
    batch.entry_count = batch.record_count = 0
    if batch.step_count == MAX_STEPS and batch.steps_taken > STEPS_UNTIL_FORGOTTEN:
        forget_steps(batch)
    while batch.entry_count < most:
        entry = &batch.entries[batch.entry_count]
        records = batch.record_count
        stop = take_entry(&c, entry)
        at[0] = entry.start
        if stop != ENTRY or not entry.loc or not batch.records[entry.loc - 1].size:
            batch.record_count = records
            if stop == FULL:
                return FULL if batch.entry_count else ODD
            if stop == MORE and size - at[0] <= MAX_ENTRY_BYTES:
                return MORE
            return ODD
        entry.loc -= 1
        batch.entry_count += 1
        at[0] = c.at
    return FULL


# The grammar, as tables of C

cdef dict EXTENSIONS = {"news": NEWS, "image": IMAGES, "video": VIDEOS, "link": LINKS}

cdef dict TAGS = {
    "loc": LOC, "lastmod": LASTMOD, "changefreq": CHANGEFREQ, "priority": PRIORITY, "title": TITLE,
    "publication_date": PUBLICATION_DATE, "name": NAME, "language": LANGUAGE, "access": ACCESS, "genres": GENRES,
    "keywords": KEYWORDS, "stock_tickers": STOCK_TICKERS, "caption": CAPTION, "geo_location": GEO_LOCATION,
    "license": LICENSE, "news": NEWS_TAG, "image": IMAGE_TAG, "publication": PUBLICATION, "link": LINK,
    "video": VIDEO_TAG,
}

# The rules of `usp.scan.grammar`.
RULES = {"OTHER": OTHER, "FIELD": FIELD, "WITH_ATTRIBUTES": WITH_ATTRIBUTES, "GROUP": GROUP}

cdef dict video_numbers  # elements of a video -> 1 + the number of the field that is their text
cdef frozenset known_tags  # an entry with any other element is left to the general scanner


def bind():
    """Import what this module uses of usp, and compare tables with it."""
    global video_numbers, known_tags
    from usp.scan import grammar
    from usp.scan.vocabulary import TV_SHOW_FIELDS, VIDEO_FIELDS

    check_rules(vars(grammar))
    video_numbers = {
        field.element: number for number, field in enumerate(VIDEO_FIELDS.values(), 1) if not field.attribute
    }
    known_tags = frozenset({"url", *TAGS, *video_numbers, *TV_SHOW_FIELDS})


def check_rules(known):
    """Raise an error unless the rules have these numbers."""
    for name, number in RULES.items():
        if known.get(name) != number:
            found = known.get(name)
            raise TypeError(f"{name} is {found} in usp/scan/grammar.py, but {number} in usp/scan/_entries.pxd")


@cython.final
cdef class GrammarTables:
    """A grammar, as C tables."""

    def __init__(self, grammar):
        memset(&self.tables, 0, sizeof(Tables))
        memset(self.video_fields, 0, sizeof(self.video_fields))
        bits = {tag: number for number, tag in enumerate(dict.fromkeys(grammar.tags))}
        if len(grammar.names) >= MAX_NAMES or len(grammar.kinds) > MAX_STATES or len(bits) > 64:
            raise ValueError("the grammar is too large")  # the vocabulary has grown: enlarge the tables
        self.grammar = grammar
        cdef int number, state
        for number, name in enumerate(grammar.names):
            self.add_name(number, name, grammar.tags[number])
            self.tables.bits[number] = <uint64_t>1 << <int>bits[grammar.tags[number]]
            for state in range(len(grammar.kinds)):
                rule, opened = grammar.rules[state][number]
                self.tables.rules[state][number] = rule if grammar.tags[number] in known_tags else OTHER
                self.tables.states[state][number] = opened

    cdef int add_name(self, int number, bytes name, str tag) except -1:
        cdef uint32_t slot
        cdef bytes closing = name + b">"
        if not 0 < len(name) < MAX_NAME_BYTES:
            return 0  # the general scanner reads elements of this name
        memcpy(self.tables.names[number], <const uint8_t *>name, len(name))
        self.tables.name_sizes[number] = len(name)
        if len(name) < 16:
            memcpy(self.tables.closings[number], <const uint8_t *>closing, len(closing))
            memset(self.tables.masks[number], 255, len(closing))
        slot = name_hash(<const uint8_t *>name, len(name))
        while self.tables.slots[slot]:
            slot = (slot + 1) & (NAME_SLOTS - 1)
        self.tables.slots[slot] = number + 1
        self.tables.extensions[number] = EXTENSIONS.get(tag, 0)
        self.tables.is_loc[number] = tag == "loc" and self.grammar.rules[1][number][0] == FIELD
        self.tags[number] = TAGS.get(tag, OTHER_TAG)
        self.video_fields[number] = video_numbers.get(tag, 0)
        return 0


cdef dict known_tables = {}  # id of a grammar -> its tables, which keep the grammar alive


cdef GrammarTables grammar_tables(grammar):
    cdef GrammarTables found = known_tables.get(id(grammar))
    if found is None:
        if len(known_tables) >= 64:
            known_tables.clear()
        found = known_tables[id(grammar)] = GrammarTables(grammar)
    return found


@cython.final
cdef class Context:
    """What the entries of a document share: the grammar, and two functions of Python.

    `resolve(text)` gives a URL, or None; `convert(element, name)` a field of a page.
    """


cdef class Reader:
    """Finds plain entries in a buffer. Base class of the readers."""

    def __cinit__(self, *args, **options):
        self.context = Context.__new__(Context)
        self.batch = <Batch *>malloc(sizeof(Batch))
        if self.batch == NULL:
            raise MemoryError
        memset(self.batch.following, 0, sizeof(self.batch.following))
        forget_steps(self.batch)

    def __dealloc__(self):
        free(self.batch)

    cdef Stop scan(self, grammar, bytes buffer, Py_ssize_t *at) except *:
        """Fill the batch, and move `at` behind its last entry."""
        cdef Stop stop
        cdef Py_ssize_t size = self.prepare(grammar, buffer, at[0])
        cdef const uint8_t *data = <const uint8_t *>buffer
        with nogil:
            stop = take_entries(&self.context.grammar_tables.tables, data, size, at, self.batch, MAX_ENTRIES)
        return stop

    cdef Py_ssize_t prepare(self, grammar, bytes buffer, Py_ssize_t position) except -1:
        """Prepare the tables of a grammar. Return how much of the buffer is scanned."""
        cdef Py_ssize_t size = min(len(buffer), <Py_ssize_t>1 << 30)
        cdef Context context
        if not 0 <= position <= size:
            raise ValueError("the position is not in the buffer")
        if self.context.grammar_tables is None or self.context.grammar_tables.grammar is not grammar:
            context = Context.__new__(Context)  # existing entries keep the old one
            context.grammar_tables = grammar_tables(grammar)
            forget_steps(self.batch)
            context.resolve, context.convert = self.context.resolve, self.context.convert
            self.context = context
        return size


cdef enum:
    MIN_BYTES_WITHOUT_GIL = 1 << 14  # shorter texts are read before the GIL could be taken back


def may_hold_sitemaps(bytes text not None):
    """Return whether a text may have a tag whose name starts with "sitemap", with or without a prefix."""
    cdef const uint8_t *data = <const uint8_t *>text
    cdef Py_ssize_t size = len(text)
    cdef bint found
    if size < MIN_BYTES_WITHOUT_GIL:
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
            if (local[3] | 32) == c'e' and (local[4] | 32) == c'm' and (local[5] | 32) == c'a':
                if (local[6] | 32) == c'p':
                    return True
        tag = <const uint8_t *>memchr(at, c'<', end - at)
        if tag != NULL:
            tag += 1
    return False
