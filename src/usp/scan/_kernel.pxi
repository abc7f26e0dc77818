# The kernel: finds the plain entries of a buffer and records where their texts lie. No Python object, no GIL.
#
# Every read is bounded by `size`, the number of bytes in the buffer; nothing is written but the batch. What is not plain
# ends the batch: the general scanner reads it. Names, rules and states are those of `usp.scan.grammar`.

cdef enum:
    MAX_NAMES = 255
    MAX_STATES = 32
    MAX_NAME_BYTES = 48
    NAME_SLOTS = 2048
    MAX_OPEN = 8
    MAX_ENTRIES = 512  # in one batch
    MAX_RECORDS = 8192
    MAX_TEXT_BYTES = 65535
    MAX_ATTRIBUTES_BYTES = 8192
    MAX_COMMENT_BYTES = 65536
    MAX_ENTRY_BYTES = 131072  # that are waited for

cdef enum:
    OTHER, FIELD, WITH_ATTRIBUTES, GROUP

cdef enum:
    TEXT, ATTRIBUTES, OPEN, CLOSE

cdef enum:
    AMPERSAND = 1
    HIGH = 2  # bytes that are not ASCII
    CONTROL = 4
    CDATA = 8
    SPECIAL = 16  # of a URL only: what may not stand in one as it is, or has a meaning there

cdef enum Stop:
    ENTRY, MORE, ODD, FULL

ctypedef struct Record:
    uint32_t start
    uint16_t size
    uint8_t kind
    uint8_t name
    uint8_t flags  # CDATA or nothing: the others are found out where they matter

ctypedef struct PlainEntry:
    Py_ssize_t start
    uint32_t first  # of its records
    uint32_t count
    uint32_t loc
    uint32_t extras  # a bit for each kind of group and of element with attributes that it has

ctypedef struct Batch:
    PlainEntry entries[MAX_ENTRIES]
    Record records[MAX_RECORDS]
    uint32_t entry_count
    uint32_t record_count
    uint8_t following[MAX_NAMES]  # the name that came last behind each: most documents repeat themselves

ctypedef struct Tables:
    char names[MAX_NAMES][MAX_NAME_BYTES]
    uint8_t name_sizes[MAX_NAMES]
    uint64_t closings[MAX_NAMES][2]  # a name and ">", if they are 16 bytes at most
    uint64_t masks[MAX_NAMES][2]  # which of those bytes count; none of a longer name
    uint8_t slots[NAME_SLOTS]  # number of a name + 1, by its hash
    uint8_t rules[MAX_STATES][MAX_NAMES]
    uint8_t states[MAX_STATES][MAX_NAMES]
    uint8_t extras[MAX_NAMES]
    uint64_t bits[MAX_NAMES]  # one for each tag, whatever its prefix
    uint8_t is_loc[MAX_NAMES]  # of an entry


cdef inline bint is_space(uint8_t c) noexcept nogil:
    """White space of XML. What else Python calls so is a control character, to be noted."""
    return c == c' ' or c == 10 or c == 9 or c == 13


cdef inline uint32_t name_hash(const uint8_t *name, Py_ssize_t size) noexcept nogil:
    return (name[0] * 7 + name[size - 1] * 31 + name[size >> 1] * 127 + <uint32_t>size * 521) & (NAME_SLOTS - 1)


cdef inline int number_of(Tables *tables, const uint8_t *name, Py_ssize_t size) noexcept nogil:
    """The number of a raw name, -1 if it is none of the grammar's."""
    cdef uint32_t slot = name_hash(name, size)
    cdef int number
    while tables.slots[slot]:
        number = tables.slots[slot] - 1
        if tables.name_sizes[number] == size and memcmp(tables.names[number], name, size) == 0:
            return number
        slot = (slot + 1) & (NAME_SLOTS - 1)
    return -1


cdef inline bint is_closing(Tables *tables, int name, const uint8_t *at, Py_ssize_t left) noexcept nogil:
    """Whether a name and ">" stand here."""
    cdef uint64_t words[2]
    cdef Py_ssize_t size = tables.name_sizes[name]
    if left >= 16 and tables.masks[name][0]:
        memcpy(words, at, 16)
        return not (
            ((words[0] ^ tables.closings[name][0]) & tables.masks[name][0])
            | ((words[1] ^ tables.closings[name][1]) & tables.masks[name][1])
        )
    return left > size and at[size] == c'>' and memcmp(at, tables.names[name], size) == 0


cdef struct Cursor:
    const uint8_t *data
    Py_ssize_t size
    Py_ssize_t at
    Batch *batch
    Tables *tables
    int last  # the name of the last start tag


cdef inline Stop skip_space(Cursor *c) noexcept nogil:
    """To the next tag or text. Control characters between elements mean nothing, as white space does."""
    c.at = next_visible(c.data + c.at, c.data + c.size) - c.data
    return ENTRY if c.at < c.size else MORE


cdef inline bint add_record(Cursor *c, Py_ssize_t start, Py_ssize_t end, int kind, int name, int flags) noexcept nogil:
    """Record a text, without the white space around it; false if the batch is full."""
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
    """`</name>`, with nothing more in it, at the cursor."""
    cdef Py_ssize_t size = c.tables.name_sizes[name], at = c.at
    if c.size - at < size + 3:
        return MORE
    if c.data[at + 1] != c'/' or not is_closing(c.tables, name, c.data + at + 2, c.size - at - 2):
        return ODD
    c.at = at + size + 3
    return ENTRY


cdef Stop take_cdata(Cursor *c, Py_ssize_t *start, Py_ssize_t *end) noexcept nogil:
    """A CDATA section at the cursor, and white space behind it: where its text lies."""
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
    for i in range(start[0], at - 2):  # one that opens inside another was never closed
        if c.data[i] == c'<' and c.data[i + 1] == c'!' and c.data[i + 2] == c'[':
            return ODD
    end[0] = at
    c.at = at + 3
    return skip_space(c)


cdef Stop take_text(Cursor *c, int name) noexcept nogil:
    """The text of a field, and its end tag."""
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
    stop = take_end_tag(c, name)
    if stop == ENTRY and not add_record(c, start, end, TEXT, name, flags):
        return FULL
    return stop


cdef Stop take_attributes(Cursor *c, int name, bint *is_empty) noexcept nogil:
    """The attributes of a start tag, to its end."""
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
            return ODD  # perhaps a declaration of a namespace
        at += 1
    c.at = at + 1
    is_empty[0] = at > start and c.data[at - 1] == c'/'
    return ENTRY if add_record(c, start, at - is_empty[0], ATTRIBUTES, name, 0) else FULL


cdef Stop take_comment(Cursor *c) noexcept nogil:
    cdef Py_ssize_t at = c.at + 4
    if c.size - c.at < 7:
        return MORE
    if memcmp(c.data + c.at, b"<!--", 4):
        return ODD
    while at + 2 < c.size:
        if c.data[at] == c'-' and c.data[at + 1] == c'-' and c.data[at + 2] == c'>':
            c.at = at + 3
            return ENTRY
        if at - c.at > MAX_COMMENT_BYTES:
            return ODD
        at += 1
    return MORE


cdef struct Level:
    int name  # of the element that is open
    uint8_t state
    uint64_t fields  # that it had already


cdef Stop take_start_tag(Cursor *c, Level *levels, int *depth, PlainEntry *entry) noexcept nogil:
    """A start tag and, of a field, its text and end tag."""
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
        name = number_of(c.tables, c.data + start, at - start)
        if name < 0:
            return ODD
        c.batch.following[c.last] = name
    c.last = name
    c.at = at
    if c.tables.rules[state][name] == WITH_ATTRIBUTES:
        entry.extras |= c.tables.extras[name] if depth[0] == 1 else 0
        stop = take_attributes(c, name, &is_empty)
        return stop if stop != ENTRY or is_empty else take_text(c, name)
    if x != c'>':
        return ODD
    c.at = at + 1
    if c.tables.rules[state][name] == FIELD:
        if levels[depth[0]].fields & c.tables.bits[name]:
            return ODD  # which of two counts depends on what they are
        levels[depth[0]].fields |= c.tables.bits[name]
        if depth[0] == 1 and c.tables.is_loc[name]:
            entry.loc = c.batch.record_count + 1
        return take_text(c, name)
    if c.tables.rules[state][name] != GROUP or depth[0] + 1 == MAX_OPEN:
        return ODD
    if depth[0] == 1:
        entry.extras |= c.tables.extras[name]
    depth[0] += 1
    levels[depth[0]].name = name
    levels[depth[0]].state = c.tables.states[state][name]
    levels[depth[0]].fields = 0
    if depth[0] == 1:
        return ENTRY
    return ENTRY if add_record(c, c.at, c.at, OPEN, name, 0) else FULL


cdef Stop take_entry(Cursor *c, PlainEntry *entry) noexcept nogil:
    """One entry, from its start tag to its end tag. Only if it is plain and whole is the cursor behind it."""
    cdef Level levels[MAX_OPEN]
    cdef int depth = 0
    cdef Stop stop
    levels[0].state = 0
    levels[0].fields = 0
    entry.start = c.at
    entry.first = c.batch.record_count
    entry.loc = entry.extras = 0
    while True:
        if c.data[c.at] != c'<':
            return ODD
        if c.size - c.at < 2:
            return MORE
        if c.data[c.at + 1] == c'/' and depth:
            stop = take_end_tag(c, levels[depth].name)
            depth -= 1
            if stop == ENTRY and depth == 0:
                entry.count = c.batch.record_count - entry.first
                return ENTRY
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
    """The plain entries from `at` on, at most so many. Why there are no more."""
    cdef Cursor c
    cdef Stop stop
    cdef PlainEntry *entry
    cdef uint32_t records
    c.data, c.size, c.at, c.batch, c.tables, c.last = data, size, at[0], batch, tables, 0
    batch.entry_count = batch.record_count = 0
    while batch.entry_count < most:
        entry = &batch.entries[batch.entry_count]
        records = batch.record_count
        stop = skip_space(&c)
        at[0] = c.at
        if stop == ENTRY:
            stop = take_entry(&c, entry)
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
