# Which sitemap had a URL first, for millions of URLs: 8 bytes each, and as many more as it takes to find them fast.
#
# A URL is known by 56 bits of its hash, which those who write sitemaps cannot foresee. Among 5 million, two that have
# them in common are to be expected once in 6,000 times. 12 bits say on which shelf it is, and 44 stand on the shelf,
# with the number of the sitemap. Each shelf grows on its own, so that no more than one of them is there twice.

cdef enum:
    SHELVES = 4096
    HASH_BITS = 44  # of a slot; the rest are the number of the sitemap + 1
    NUMBER_BITS = 20
    MAX_NUMBER = (1 << 20) - 2
    FIRST_ROOM = 8
    MAX_TABLE = 1 << 30

ctypedef struct Shelf:
    uint64_t *slots
    uint32_t room
    uint32_t count

ctypedef struct Table:
    Shelf shelves[SHELVES]
    size_t count, most
    bint is_full


cdef inline Shelf *shelf_of(Table *table, uint64_t hashed) noexcept nogil:
    return &table.shelves[hashed & (SHELVES - 1)]


cdef inline uint32_t first_slot(uint32_t room, uint64_t kept) noexcept nogil:
    """Where a hash, of which 44 bits are kept, should stand: the greater it is the further on."""
    return <uint32_t>((kept * room) >> HASH_BITS)


cdef inline void expect_in(Table *table, uint64_t hashed) noexcept nogil:
    """Have ready what is needed to find a hash soon."""
    cdef Shelf *shelf = shelf_of(table, hashed)
    usp_prefetch(shelf.slots + first_slot(shelf.room, hashed >> NUMBER_BITS))


cdef inline uint64_t *slot_of(Shelf *shelf, uint64_t kept) noexcept nogil:
    """The slot that a hash stands in, or is to stand in; there is room for it."""
    cdef uint32_t i = first_slot(shelf.room, kept)
    while shelf.slots[i] and shelf.slots[i] >> NUMBER_BITS != kept:
        i += 1
        if i == shelf.room:
            i = 0
    return &shelf.slots[i]


cdef int find_in(Table *table, uint64_t hashed) noexcept nogil:
    """The number of the sitemap that had it first; -1 if none had."""
    cdef Shelf *shelf = shelf_of(table, hashed)
    if not shelf.room:
        return -1
    return <int>(slot_of(shelf, hashed >> NUMBER_BITS)[0] & ((1 << NUMBER_BITS) - 1)) - 1


cdef int add_to(Table *table, uint64_t hashed, int number) except -1 nogil:
    """Keep a hash, with this number whatever it had before, unless there are too many."""
    cdef Shelf *shelf = shelf_of(table, hashed)
    cdef uint64_t kept = hashed >> NUMBER_BITS
    cdef uint64_t *slot
    if (shelf.count + 1) * 5 > shelf.room * 4:
        enlarge_shelf(shelf)
    slot = slot_of(shelf, kept)
    if not slot[0]:
        if table.count >= table.most:
            table.is_full = True
            return 0
        table.count += 1
        shelf.count += 1
    slot[0] = kept << NUMBER_BITS | <uint64_t>(number + 1)
    return 0


cdef int enlarge_shelf(Shelf *shelf) except -1 nogil:
    cdef Shelf larger
    cdef uint32_t i
    larger.room = shelf.room + (shelf.room >> 1) if shelf.room else FIRST_ROOM
    larger.count = shelf.count
    larger.slots = <uint64_t *>calloc(larger.room, sizeof(uint64_t))
    if larger.slots == NULL:
        with gil:
            raise MemoryError
    for i in range(shelf.room):
        if shelf.slots[i]:
            slot_of(&larger, shelf.slots[i] >> NUMBER_BITS)[0] = shelf.slots[i]
    free(shelf.slots)
    shelf[0] = larger
    return 0


cdef inline uint64_t text_hash(str text) except? 0:
    cdef bytes encoded = text.encode("utf-8", "surrogatepass")
    return usp_hash(<const uint8_t *>encoded, <size_t>len(encoded), secret)


@cython.final
cdef class URLTable:
    """Which sitemap had a URL first. No more than `most` URLs are kept. For one thread at a time."""

    cdef Table *table

    def __cinit__(self, most=1 << 23):
        self.table = <Table *>calloc(1, sizeof(Table))
        if self.table == NULL:
            raise MemoryError
        self.table.most = min(most, MAX_TABLE)

    def __dealloc__(self):
        cdef int i
        if self.table != NULL:
            for i in range(SHELVES):
                free(self.table.shelves[i].slots)
            free(self.table)

    @property
    def is_full(self):
        """Whether a URL was left out."""
        return bool(self.table.is_full)

    def find(self, str url not None):
        """The number of the sitemap that had it first; -1 if none had."""
        return find_in(self.table, text_hash(url))

    def add(self, str url not None, number):
        """Keep a URL as one of this sitemap."""
        add_to(self.table, text_hash(url), min(number, MAX_NUMBER))

    @staticmethod
    def hash_of(str url not None):
        """A number below 2**64 that hardly any other URL has; another one in each process."""
        return text_hash(url)
