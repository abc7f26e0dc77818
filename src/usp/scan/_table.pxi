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
    FIRST_ROOM = 16
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


cdef void expect_in(Table *table, Staged *staged, uint32_t count) noexcept nogil:
    """Have ready what is needed to find hashes soon: as nothing else is done in between, they are waited for together.

    They are read, which was measured to be faster than to prefetch them; and so is where most would go on to.
    """
    cdef uint32_t i, at
    cdef Shelf *shelf
    for i in range(count):
        shelf = shelf_of(table, staged[i].hashed)
        if staged[i].size >= 0 and shelf.room:
            at = first_slot(shelf.room, staged[i].hashed >> NUMBER_BITS)
            usp_touch(&shelf.slots[at])
            usp_touch(&shelf.slots[min(at + 7, shelf.room - 1)])


cdef inline uint64_t *slot_of(Shelf *shelf, uint64_t kept) noexcept nogil:
    """The slot that a hash stands in, or is to stand in; there is room for it."""
    cdef uint32_t i = first_slot(shelf.room, kept)
    while shelf.slots[i] and shelf.slots[i] >> NUMBER_BITS != kept:
        i += 1
        if i == shelf.room:
            i = 0
    return &shelf.slots[i]


cdef inline int number_in(uint64_t *slot) noexcept nogil:
    """The number of the sitemap that had the hash of a slot first; -1 if none had."""
    return <int>(slot[0] & ((1 << NUMBER_BITS) - 1)) - 1


cdef int find_in(Table *table, uint64_t hashed) noexcept nogil:
    """The number of the sitemap that had it first; -1 if none had."""
    cdef Shelf *shelf = shelf_of(table, hashed)
    if not shelf.room:
        return -1
    return number_in(slot_of(shelf, hashed >> NUMBER_BITS))


cdef bint is_in(Table *table, uint64_t hashed) noexcept nogil:
    """Whether there is a table, and a hash stands in it."""
    return table != NULL and find_in(table, hashed) >= 0


cdef inline uint64_t *slot_for(Table *table, uint64_t hashed) except NULL nogil:
    """The slot that a hash stands in, or may be put into before any other is."""
    cdef Shelf *shelf = shelf_of(table, hashed)
    if (shelf.count + 1) * 10 > shelf.room * 7:  # the fuller, the longer is the way to a free slot
        enlarge_shelf(shelf)
    return slot_of(shelf, hashed >> NUMBER_BITS)


cdef inline void put_into(Table *table, uint64_t *slot, uint64_t hashed, int number) noexcept nogil:
    """Keep a hash in its slot, with this number whatever it had before, unless there are too many."""
    if not slot[0]:
        if table.count >= table.most:
            table.is_full = True
            return
        table.count += 1
        shelf_of(table, hashed).count += 1
    slot[0] = hashed >> NUMBER_BITS << NUMBER_BITS | <uint64_t>(number + 1)


cdef int enlarge_shelf(Shelf *shelf) except -1 nogil:
    cdef Shelf larger
    cdef uint32_t i
    larger.room = shelf.room + max(shelf.room >> 1, <uint32_t>8) if shelf.room else FIRST_ROOM
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


cdef object url_key = None


cdef uint64_t text_hash(str url) except? 0:
    global url_key
    if url_key is None:
        from usp.scan.survey import same_url_key as url_key  # which imports the readers
    cdef bytes encoded = url_key(url).encode("utf-8", "surrogatepass")
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
        cdef uint64_t hashed = text_hash(url)
        put_into(self.table, slot_for(self.table, hashed), hashed, min(number, MAX_NUMBER))

    @staticmethod
    def hash_of(str url not None):
        """A number below 2**64 that hardly any other URL has; another one in each process."""
        return text_hash(url)


cdef enum:
    CLUSTER_SUMS = 1 << 21  # 16 MB, of which only those are touched that are used


@cython.final
cdef class ClusterSums:
    """Which sets of pages are not complete: the same as `usp.scan.survey.PureClusterSums`."""

    cdef uint64_t *sums

    def __cinit__(self):
        self.sums = <uint64_t *>calloc(CLUSTER_SUMS, sizeof(uint64_t))
        if self.sums == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.sums)

    def note(self, key, size, own):
        """A page that states a set."""
        note_in(self.sums, <uint64_t>key, <uint64_t>size, <uint64_t>own)

    def is_open(self, key):
        """Whether a set may not be complete."""
        return is_open_in(self.sums, <uint64_t>key)

    def sums_left(self):
        """What is left in each place, where there is anything."""
        cdef size_t i
        left = {}
        for i in range(CLUSTER_SUMS):
            if self.sums[i]:
                left[i] = self.sums[i]
        return left

    @property
    def has_open(self):
        """Whether any set is not complete."""
        cdef size_t i
        for i in range(CLUSTER_SUMS):
            if self.sums[i]:
                return True
        return False


cdef inline void note_in(uint64_t *sums, uint64_t key, uint64_t size, uint64_t own) noexcept nogil:
    sums[key & (CLUSTER_SUMS - 1)] += size * own - key


cdef inline bint is_open_in(uint64_t *sums, uint64_t key) noexcept nogil:
    return sums[key & (CLUSTER_SUMS - 1)] != 0
