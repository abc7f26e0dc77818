# The grammar as tables of C, and the numbers of the names that the readers know by heart.

cdef enum:
    NEWS = 1
    IMAGES = 2
    VIDEOS = 4
    LINKS = 8

cdef dict EXTRAS = {"news": NEWS, "image": IMAGES, "video": VIDEOS, "link": LINKS}

cdef enum:
    OTHER_TAG, LOC, LASTMOD, CHANGEFREQ, PRIORITY, TITLE, PUBLICATION_DATE, NAME, LANGUAGE, ACCESS, GENRES, KEYWORDS
    STOCK_TICKERS, CAPTION, GEO_LOCATION, LICENSE, NEWS_TAG, IMAGE_TAG, PUBLICATION, LINK, VIDEO_TAG

cdef dict TAGS = {
    "loc": LOC, "lastmod": LASTMOD, "changefreq": CHANGEFREQ, "priority": PRIORITY, "title": TITLE,
    "publication_date": PUBLICATION_DATE, "name": NAME, "language": LANGUAGE, "access": ACCESS, "genres": GENRES,
    "keywords": KEYWORDS, "stock_tickers": STOCK_TICKERS, "caption": CAPTION, "geo_location": GEO_LOCATION,
    "license": LICENSE, "news": NEWS_TAG, "image": IMAGE_TAG, "publication": PUBLICATION, "link": LINK,
    "video": VIDEO_TAG,
}

# The rules of `usp.scan.grammar`: what an element is where it stands.
RULES = {"OTHER": OTHER, "FIELD": FIELD, "WITH_ATTRIBUTES": WITH_ATTRIBUTES, "GROUP": GROUP}

cdef dict video_numbers  # elements of a video -> 1 + the number of the field that is their text
cdef frozenset known_tags  # an entry with any other element is left to the general scanner


cdef int bind_grammar() except -1:
    global video_numbers, known_tags
    from usp.scan import grammar
    from usp.scan.vocabulary import TV_SHOW_FIELDS, VIDEO_FIELDS

    check_rules(vars(grammar))
    video_numbers = {
        field.element: number for number, field in enumerate(VIDEO_FIELDS.values(), 1) if not field.attribute
    }
    known_tags = frozenset({"url", *TAGS, *video_numbers, *TV_SHOW_FIELDS})
    return 0


def check_rules(known):
    """Raise an error unless the rules have these numbers."""
    for name, number in RULES.items():
        if known.get(name) != number:
            raise TypeError(f"{name} is {known.get(name)} in usp/scan/grammar.py, but {number} in usp/scan/_kernel.pxi")


@cython.final
cdef class Tabled:
    """A grammar, as tables of C."""

    cdef Tables tables
    cdef uint8_t tags[MAX_NAMES]
    cdef uint8_t video_fields[MAX_NAMES]  # 1 + the number of the field of a video; 0 if it is none that is known here
    cdef readonly object grammar

    def __init__(self, grammar):
        memset(&self.tables, 0, sizeof(Tables))
        memset(self.video_fields, 0, sizeof(self.video_fields))
        bits = {tag: number for number, tag in enumerate(dict.fromkeys(grammar.tags))}
        if len(grammar.names) >= MAX_NAMES or len(grammar.kinds) > MAX_STATES or len(bits) > 64:
            raise ValueError("the grammar is too large")  # the vocabulary has grown: so must the tables
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
            return 0  # elements of this name are left to the general scanner
        memcpy(self.tables.names[number], <const uint8_t *>name, len(name))
        self.tables.name_sizes[number] = len(name)
        if len(name) < 16:
            memcpy(self.tables.closings[number], <const uint8_t *>closing, len(closing))
            memset(self.tables.masks[number], 255, len(closing))
        slot = name_hash(<const uint8_t *>name, len(name))
        while self.tables.slots[slot]:
            slot = (slot + 1) & (NAME_SLOTS - 1)
        self.tables.slots[slot] = number + 1
        self.tables.extras[number] = EXTRAS.get(tag, 0)
        self.tables.is_loc[number] = tag == "loc" and self.grammar.rules[1][number][0] == FIELD
        self.tags[number] = TAGS.get(tag, OTHER_TAG)
        self.video_fields[number] = video_numbers.get(tag, 0)
        return 0


cdef dict tabled_grammars = {}  # id of a grammar -> its tables, which keep the grammar alive


cdef Tabled tabled(grammar):
    cdef Tabled found = tabled_grammars.get(id(grammar))
    if found is None:
        if len(tabled_grammars) >= 64:
            tabled_grammars.clear()
        found = tabled_grammars[id(grammar)] = Tabled(grammar)
    return found
