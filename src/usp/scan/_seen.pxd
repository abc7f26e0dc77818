cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from usp.scan._entries cimport EntryURL
from usp.scan._lines cimport Lines

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline uint64_t usp_mix(uint64_t a, uint64_t b) {
    #ifdef __SIZEOF_INT128__
        __uint128_t product = (__uint128_t)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    #else
        uint64_t ah = a >> 32, al = (uint32_t)a, bh = b >> 32, bl = (uint32_t)b;
        uint64_t high = ah * bh, mid1 = ah * bl, mid2 = al * bh, low = al * bl;
        uint64_t carry = (low >> 32) + (uint32_t)mid1 + (uint32_t)mid2;
        return (low + (mid1 << 32) + (mid2 << 32)) ^ (high + (mid1 >> 32) + (mid2 >> 32) + (carry >> 32));
    #endif
    }
    #if defined(__GNUC__)
    #define usp_prefetch(address) __builtin_prefetch(address)
    #else
    #define usp_prefetch(address) ((void)(address))
    #endif
    #define usp_touch(address) ((void)*(const volatile uint64_t *)(address))  /* a read that is not left out */
    /* In the manner of wyhash (public domain): both factors of each product hold a part of the secret. What is read
       last may overlap what was read before, as the size is a part of the hash. */
    static inline uint64_t usp_hash(const uint8_t *data, size_t size, const uint64_t *secret) {
        uint64_t hash = secret[0] ^ size, other = secret[3], a = 0, b = 0, c, d;
        const uint8_t *end = data + size;
        size_t whole = size;
        while (size > 32) {
            memcpy(&a, data, 8);
            memcpy(&b, data + 8, 8);
            memcpy(&c, data + 16, 8);
            memcpy(&d, data + 24, 8);
            hash = usp_mix(a ^ secret[1] ^ hash, b ^ secret[2]);
            other = usp_mix(c ^ secret[0] ^ other, d ^ secret[3]);
            data += 32;
            size -= 32;
        }
        hash ^= other;
        if (size > 16) {
            memcpy(&a, data, 8);
            memcpy(&b, data + 8, 8);
            hash = usp_mix(a ^ secret[1] ^ hash, b ^ secret[2]);
            data += 16;
            size -= 16;
        }
        if (whole >= 8) {
            memcpy(&a, whole >= 16 ? end - 16 : data, 8);
            memcpy(&b, end - 8, 8);
        } else if (whole >= 4) {
            memcpy(&a, data, 4);
            memcpy(&b, end - 4, 4);
        } else {
            memcpy(&a, data, whole);
        }
        return usp_mix(usp_mix(a ^ secret[1] ^ hash, b ^ secret[2]), secret[3]);
    }
    """
    uint64_t usp_hash(const uint8_t *data, size_t size, const uint64_t *secret) noexcept nogil
    void usp_prefetch(const void *address) noexcept nogil
    void usp_touch(const uint64_t *address) noexcept nogil

cdef uint64_t secret[4]


cdef inline uint64_t same_url_hash(
    const uint8_t *url, Py_ssize_t size, Py_ssize_t origin, uint8_t *room
) noexcept nogil:
    """Return the hash of `usp.scan.survey.same_url_key` of a URL. `room` is for a longer one; the URL may be there."""
    if origin < size and url[origin] == c'/':
        return usp_hash(url, <size_t>size, secret)
    memmove(room + origin + 1, url + origin, <size_t>(size - origin))
    if url != room:
        memcpy(room, url, <size_t>origin)
    room[origin] = c'/'
    return usp_hash(room, <size_t>size + 1, secret)


cdef class Seen:
    cdef uint8_t *data
    cdef int64_t *ends  # of text i at i + 1; 0 at 0
    cdef uint32_t *slots  # number of a text + 1, below bits of its hash
    cdef size_t data_room, text_room, slot_count
    cdef size_t slots_room  # in bytes
    cdef size_t count

    cdef void note_size(self) noexcept
    cdef int grow(self, size_t size) except -1 nogil
    cdef int rehash(self) except -1 nogil
    cdef uint64_t hash_and_prefetch(self, const uint8_t *text, size_t size) noexcept nogil
    cdef bint add(self, const uint8_t *text, size_t size, uint64_t hashed) except -1 nogil
    cdef Py_ssize_t add_lines(self, Lines *lines, bint takes_fields) except -1 nogil
    cdef tuple views_from(self, size_t first, bint is_last)


# Which sitemap listed a URL, for millions of URLs: a hash table with slots of 8 bytes.
#
# A URL is known by 56 bits of its hash. Among 5 million URLs, two collide once in 6,000 runs. 12 bits choose the
# partition; the slot there has the other 44, and the number of the sitemap. Each partition grows on its own, so that
# growing needs little memory at once.

cdef enum:
    PARTITIONS = 4096
    HASH_BITS = 44  # of a slot; the rest are the number of the sitemap + 1
    NUMBER_BITS = 20
    MAX_NUMBER = (1 << 20) - 2
    FIRST_ROOM = 16
    MAX_TABLE = 1 << 30

ctypedef struct Partition:
    uint64_t *slots
    uint32_t room
    uint32_t count

ctypedef struct Table:
    Partition partitions[PARTITIONS]
    size_t count, most
    bint is_full


@cython.final
cdef class URLTable:
    cdef Table *table


cdef enum:
    CLUSTER_SUMS = 1 << 21  # 16 MB; pages of memory that are not used are not allocated


@cython.final
cdef class ClusterSums:
    cdef uint64_t *sums


cdef void preload(Table *table, EntryURL *entry_url, uint32_t count) noexcept nogil
cdef int find_in(Table *table, uint64_t hashed) noexcept nogil
cdef bint is_in(Table *table, uint64_t hashed) noexcept nogil
cdef int enlarge_partition(Partition *partition) except -1 nogil


cdef inline Partition *partition_of(Table *table, uint64_t hashed) noexcept nogil:
    return &table.partitions[hashed & (PARTITIONS - 1)]


cdef inline uint32_t first_slot(uint32_t room, uint64_t kept) noexcept nogil:
    """Return the slot where the search for a hash starts. Slots are in the order of hashes."""
    return <uint32_t>((kept * room) >> HASH_BITS)


cdef inline uint64_t *slot_of(Partition *partition, uint64_t kept) noexcept nogil:
    """Return the slot of a hash, or the free slot for it. There must be one."""
    cdef uint32_t i = first_slot(partition.room, kept)
    while partition.slots[i] and partition.slots[i] >> NUMBER_BITS != kept:
        i += 1
        if i == partition.room:
            i = 0
    return &partition.slots[i]


cdef inline int number_in(uint64_t *slot) noexcept nogil:
    """Return the number of the sitemap in a slot, or -1 if the slot is free."""
    return <int>(slot[0] & ((1 << NUMBER_BITS) - 1)) - 1


cdef inline uint64_t *slot_for(Table *table, uint64_t hashed) except NULL nogil:
    """Return the slot of a hash, or a free slot for it, which is valid until the next call."""
    cdef Partition *partition = partition_of(table, hashed)
    if (partition.count + 1) * 10 > partition.room * 7:  # in a fuller table, searches take too long
        enlarge_partition(partition)
    return slot_of(partition, hashed >> NUMBER_BITS)


cdef inline void put_into(Table *table, uint64_t *slot, uint64_t hashed, int number) noexcept nogil:
    """Write a hash and the number of its sitemap into its slot, unless the table is full."""
    if not slot[0]:
        if table.count >= table.most:
            table.is_full = True
            return
        table.count += 1
        partition_of(table, hashed).count += 1
    slot[0] = hashed >> NUMBER_BITS << NUMBER_BITS | <uint64_t>(number + 1)


cdef inline void note_in(uint64_t *sums, uint64_t key, uint64_t size, uint64_t own) noexcept nogil:
    sums[key & (CLUSTER_SUMS - 1)] += size * own - key


cdef inline bint is_open_in(uint64_t *sums, uint64_t key) noexcept nogil:
    return sums[key & (CLUSTER_SUMS - 1)] != 0
