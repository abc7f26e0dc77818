# cython: language_level=3, cdivision=True
"""Remember URLs: those of one document exactly, those of millions of documents by their hashes.

Hashes have a random key in each process, so that nobody can write a sitemap of URLs that collide.
"""

from os import urandom

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from usp._interface cimport USP_INTERFACE
from usp.scan._buffers cimport obtain, release, view
from usp.scan._lines cimport NO_LINE, URL_LINE, LineKind, Lines, next_line

INTERFACE = USP_INTERFACE

cdef bytes random_bytes = urandom(32)
memcpy(secret, <const uint8_t *>random_bytes, 32)


cdef size_t last_bytes = 0  # of the texts of the last document
cdef size_t last_count = 0

cdef enum:
    MAX_FIRST_SLOTS = 1 << 17
    MANY_SLOTS = 1 << 20  # from there on, memory matters more than time


# There are more slots than texts, so the bits of a slot above the number of slots are free. They hold bits of the hash:
# a text is compared only if these are the same.
cdef inline uint32_t tag_of(uint64_t hashed, size_t slot_count) noexcept nogil:
    return <uint32_t>(hashed >> 32) & ~<uint32_t>(slot_count - 1)


cdef uint32_t *new_slots(size_t count, size_t *room) except NULL nogil:
    """Return empty slots. Write the size of their memory, which may be larger."""
    cdef size_t size = count * sizeof(uint32_t)
    cdef uint32_t *slots = <uint32_t *>obtain(size, size, room)
    memset(slots, 0, size)
    return slots


cdef class Seen:
    """A set of texts in the order they were added: their bytes one after another, and where each ends."""

    def __cinit__(self):
        cdef size_t size
        self.data = <uint8_t *>obtain(1 << 16, last_bytes, &self.data_room)
        self.ends = <int64_t *>obtain(513 * sizeof(int64_t), (last_count + 1) * sizeof(int64_t), &size)
        self.text_room = size // sizeof(int64_t) - 1
        self.ends[0] = 0
        self.slot_count = 8192
        while last_count * 2 > self.slot_count and self.slot_count < MAX_FIRST_SLOTS:
            self.slot_count *= 4
        self.slots = new_slots(self.slot_count, &self.slots_room)

    def __dealloc__(self):
        self.note_size()
        release(self.slots, self.slots_room)
        release(self.ends, (self.text_room + 1) * sizeof(int64_t))
        release(self.data, self.data_room)

    cdef void note_size(self) noexcept:
        """Note how much memory was needed. The next document may need about as much."""
        global last_bytes, last_count
        if self.ends != NULL and self.count:
            last_bytes, last_count = <size_t>self.ends[self.count], self.count

    cdef int grow(self, size_t size) except -1 nogil:
        """Make room for one more text of this size."""
        cdef size_t needed = <size_t>self.ends[self.count] + size
        cdef void *larger
        if needed > self.data_room:
            larger = realloc(self.data, needed + (needed >> 1))
            if larger == NULL:
                with gil:
                    raise MemoryError
            self.data = <uint8_t *>larger
            self.data_room = needed + (needed >> 1)
        if self.count == self.text_room:
            larger = realloc(self.ends, (self.text_room * 2 + 1) * sizeof(int64_t))
            if larger == NULL:
                with gil:
                    raise MemoryError
            self.ends = <int64_t *>larger
            self.text_room *= 2
        if self.count * 2 >= self.slot_count:
            self.rehash()
        return 0

    cdef int rehash(self) except -1 nogil:
        cdef size_t i, slot, room, larger = self.slot_count * (4 if self.slot_count < MANY_SLOTS else 2)
        cdef int64_t start
        cdef uint64_t hashed
        cdef uint32_t *slots = new_slots(larger, &room)
        for i in range(self.count):
            start = self.ends[i]
            hashed = usp_hash(self.data + start, <size_t>(self.ends[i + 1] - start), secret)
            slot = <size_t>hashed & (larger - 1)
            while slots[slot]:
                slot = (slot + 1) & (larger - 1)
            slots[slot] = tag_of(hashed, larger) | <uint32_t>(i + 1)
        release(self.slots, self.slots_room)
        self.slots, self.slots_room = slots, room
        self.slot_count = larger
        return 0

    cdef uint64_t hash_and_prefetch(self, const uint8_t *text, size_t size) noexcept nogil:
        """Return the hash of a text that will be added soon."""
        cdef uint64_t hashed = usp_hash(text, size, secret)
        usp_prefetch(&self.slots[<size_t>hashed & (self.slot_count - 1)])
        return hashed

    cdef bint add(self, const uint8_t *text, size_t size, uint64_t hashed) except -1 nogil:
        """Add a text with its hash. Return false if it was added before."""
        cdef size_t slot, i
        cdef uint32_t tag
        cdef int64_t end = self.ends[self.count]
        if <size_t>end + size > self.data_room or self.count == self.text_room or self.count * 2 >= self.slot_count:
            self.grow(size)
        slot, tag = <size_t>hashed & (self.slot_count - 1), tag_of(hashed, self.slot_count)
        while self.slots[slot]:
            if tag_of(<uint64_t>self.slots[slot] << 32, self.slot_count) == tag:
                i = (self.slots[slot] & (self.slot_count - 1)) - 1
                if <size_t>(self.ends[i + 1] - self.ends[i]) == size:
                    if memcmp(self.data + self.ends[i], text, size) == 0:
                        return False
            slot = (slot + 1) & (self.slot_count - 1)
        memcpy(self.data + end, text, size)
        self.slots[slot] = tag | <uint32_t>(self.count + 1)
        self.ends[self.count + 1] = end + <int64_t>size
        self.count += 1
        return True

    cdef Py_ssize_t add_lines(self, Lines *lines, bint takes_fields) except -1 nogil:
        """Add the lines that are URLs. Return how many lines that are, with the blank ones."""
        cdef Py_ssize_t count = 0
        cdef LineKind kind
        while True:
            kind = next_line(lines, takes_fields)
            if kind == NO_LINE:
                return count
            if kind == URL_LINE:
                self.add(
                    lines.url, <size_t>lines.url_size, self.hash_and_prefetch(lines.url, <size_t>lines.url_size)
                )
            count += 1

    def is_new(self, str text) -> bool:
        """Add a text. Return false if it was added before."""
        cdef bytes encoded = text.encode("utf-8", "replace")
        cdef const uint8_t *data = <const uint8_t *>encoded
        return self.add(data, <size_t>len(encoded), self.hash_and_prefetch(data, <size_t>len(encoded)))

    cdef tuple views_from(self, size_t first, bint is_last):
        """Return the bytes of the texts from `first` on, and where each ends.

        If this `is_last`, the buffers are returned without a copy, and the object cannot be used any more.
        """
        cdef size_t texts = self.count - first, i
        cdef int64_t start = self.ends[first]
        cdef size_t size = <size_t>(self.ends[self.count] - start)
        cdef uint8_t *data = NULL
        cdef int64_t *ends = NULL
        cdef size_t data_room, ends_room
        if is_last and first == 0:
            self.note_size()
            ends_room = (self.text_room + 1) * 8
            return (
                view(<void **>&self.data, size, self.data_room, "B"),
                view(<void **>&self.ends, (texts + 1) * 8, ends_room, "q"),
            )
        data = <uint8_t *>obtain(size + 1, size + 1, &data_room)
        try:
            ends = <int64_t *>obtain((texts + 1) * 8, (texts + 1) * 8, &ends_room)
            memcpy(data, self.data + start, size)
            for i in range(texts + 1):
                ends[i] = self.ends[first + i] - start
            return (
                view(<void **>&data, size, data_room, "B"),
                view(<void **>&ends, (texts + 1) * 8, ends_room, "q"),
            )
        finally:
            free(data)
            free(ends)


cdef void preload(Table *table, EntryURL *entry_url, uint32_t count) noexcept nogil:
    """Load the slots of hashes into the cache, all at once, so that the searches need not wait for memory.

    Reading them was measured to be faster than prefetching them. So is reading where most searches go on.
    """
    cdef uint32_t i, at
    cdef Partition *partition
    for i in range(count):
        partition = partition_of(table, entry_url[i].hashed)
        if entry_url[i].size >= 0 and partition.room:
            at = first_slot(partition.room, entry_url[i].hashed >> NUMBER_BITS)
            usp_touch(&partition.slots[at])
            usp_touch(&partition.slots[min(at + 7, partition.room - 1)])


cdef int find_in(Table *table, uint64_t hashed) noexcept nogil:
    """Return the number of the sitemap that listed a URL, or -1."""
    cdef Partition *partition = partition_of(table, hashed)
    if not partition.room:
        return -1
    return number_in(slot_of(partition, hashed >> NUMBER_BITS))


cdef bint is_in(Table *table, uint64_t hashed) noexcept nogil:
    """Return whether there is a table that has a hash."""
    return table != NULL and find_in(table, hashed) >= 0


cdef int enlarge_partition(Partition *partition) except -1 nogil:
    cdef Partition larger
    cdef uint32_t i
    larger.room = partition.room + max(partition.room >> 1, <uint32_t>8) if partition.room else FIRST_ROOM
    larger.count = partition.count
    larger.slots = <uint64_t *>calloc(larger.room, sizeof(uint64_t))
    if larger.slots == NULL:
        with gil:
            raise MemoryError
    for i in range(partition.room):
        if partition.slots[i]:
            slot_of(&larger, partition.slots[i] >> NUMBER_BITS)[0] = partition.slots[i]
    free(partition.slots)
    partition[0] = larger
    return 0


cdef object url_key = None


cdef uint64_t text_hash(str url) except? 0:
    global url_key
    if url_key is None:
        from usp.scan.survey import same_url_key as url_key  # not at import: that module imports this one
    cdef bytes encoded = url_key(url).encode("utf-8", "surrogatepass")
    return usp_hash(<const uint8_t *>encoded, <size_t>len(encoded), secret)


@cython.final
cdef class URLTable:
    """Which sitemap listed a URL. It keeps at most `most` URLs, and is for one thread at a time."""

    def __cinit__(self, most=1 << 23):
        self.table = <Table *>calloc(1, sizeof(Table))
        if self.table == NULL:
            raise MemoryError
        self.table.most = min(most, MAX_TABLE)

    def __dealloc__(self):
        cdef int i
        if self.table != NULL:
            for i in range(PARTITIONS):
                free(self.table.partitions[i].slots)
            free(self.table)

    @property
    def is_full(self):
        """Whether the table was too full for a URL."""
        return bool(self.table.is_full)

    def find(self, str url not None):
        """Return the number of the sitemap that listed a URL, or -1."""
        return find_in(self.table, text_hash(url))

    def add(self, str url not None, number):
        """Remember that this sitemap lists a URL."""
        cdef uint64_t hashed = text_hash(url)
        put_into(self.table, slot_for(self.table, hashed), hashed, min(number, MAX_NUMBER))

    @staticmethod
    def hash_of(str url not None):
        """Return the hash of a URL, below 2**64. It differs from process to process."""
        return text_hash(url)


@cython.final
cdef class ClusterSums:
    """Finds incomplete sets of pages, as `usp.scan.survey.PureClusterSums` does."""

    def __cinit__(self):
        self.sums = <uint64_t *>calloc(CLUSTER_SUMS, sizeof(uint64_t))
        if self.sums == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.sums)

    def note(self, key, size, own):
        """Add a page that states a set."""
        note_in(self.sums, <uint64_t>key, <uint64_t>size, <uint64_t>own)

    def is_open(self, key):
        """Return whether a set may be incomplete."""
        return is_open_in(self.sums, <uint64_t>key)

    def sums_left(self):
        """Return the sums that are not 0, by their places."""
        cdef size_t i
        left = {}
        for i in range(CLUSTER_SUMS):
            if self.sums[i]:
                left[i] = self.sums[i]
        return left

    @property
    def has_open(self):
        """Whether any set is incomplete."""
        cdef size_t i
        for i in range(CLUSTER_SUMS):
            if self.sums[i]:
                return True
        return False
