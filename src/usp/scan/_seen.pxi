# Which URLs a document had already: exact, and with a hash that those who write the documents cannot foresee.

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
cdef bytes random_bytes = urandom(32)
memcpy(secret, <const uint8_t *>random_bytes, 32)


cdef class Seen:
    """The texts that were added, each once: their bytes one after another, and where each ends."""

    cdef uint8_t *data
    cdef int64_t *ends  # of text i at i + 1; 0 at 0
    cdef uint32_t *slots  # number of a text + 1
    cdef size_t data_room, text_room, slot_count
    cdef size_t count

    def __cinit__(self):
        self.slot_count = 8192
        self.text_room = 512
        self.data_room = 1 << 16
        self.slots = <uint32_t *>calloc(self.slot_count, sizeof(uint32_t))
        self.ends = <int64_t *>malloc((self.text_room + 1) * sizeof(int64_t))
        self.data = <uint8_t *>malloc(self.data_room)
        if self.slots == NULL or self.ends == NULL or self.data == NULL:
            raise MemoryError
        self.ends[0] = 0

    def __dealloc__(self):
        free(self.slots)
        free(self.ends)
        free(self.data)

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
        cdef size_t i, slot, larger = self.slot_count * 4
        cdef int64_t start
        cdef uint32_t *slots = <uint32_t *>calloc(larger, sizeof(uint32_t))
        if slots == NULL:
            with gil:
                raise MemoryError
        for i in range(self.count):
            start = self.ends[i]
            slot = <size_t>usp_hash(self.data + start, <size_t>(self.ends[i + 1] - start), secret) & (larger - 1)
            while slots[slot]:
                slot = (slot + 1) & (larger - 1)
            slots[slot] = <uint32_t>(i + 1)
        free(self.slots)
        self.slots = slots
        self.slot_count = larger
        return 0

    cdef inline uint64_t expect(self, const uint8_t *text, size_t size) noexcept nogil:
        """The hash of a text, which will be added soon."""
        cdef uint64_t hashed = usp_hash(text, size, secret)
        usp_prefetch(&self.slots[<size_t>hashed & (self.slot_count - 1)])
        return hashed

    cdef bint add(self, const uint8_t *text, size_t size, uint64_t hashed) except -1 nogil:
        """Add a text with its hash; false if it was here already."""
        cdef size_t slot, i
        cdef int64_t end = self.ends[self.count]
        if <size_t>end + size > self.data_room or self.count == self.text_room or self.count * 2 >= self.slot_count:
            self.grow(size)
        slot = <size_t>hashed & (self.slot_count - 1)
        while self.slots[slot]:
            i = self.slots[slot] - 1
            if <size_t>(self.ends[i + 1] - self.ends[i]) == size and memcmp(self.data + self.ends[i], text, size) == 0:
                return False
            slot = (slot + 1) & (self.slot_count - 1)
        memcpy(self.data + end, text, size)
        self.slots[slot] = <uint32_t>(self.count + 1)
        self.ends[self.count + 1] = end + <int64_t>size
        self.count += 1
        return True

    cdef Py_ssize_t add_lines(self, const uint8_t *data, Py_ssize_t size, Py_ssize_t *at) except -1 nogil:
        """Add the lines from `at` on that are a URL, or blank: how many they are, and where they end."""
        cdef const uint8_t *line = data + at[0]
        cdef const uint8_t *end
        cdef Py_ssize_t count = 0, length
        while True:
            end = <const uint8_t *>memchr(line, c'\n', <size_t>(data + size - line))
            if end == NULL:
                break
            length = end - line
            if length and line[length - 1] == c'\r':
                length -= 1
            while length and (line[length - 1] == c' ' or line[length - 1] == c'\t'):
                length -= 1
            if length:
                if not is_url_line(line, length):
                    break
                self.add(line, <size_t>length, self.expect(line, <size_t>length))
            line = end + 1
            count += 1
        at[0] = line - data
        return count

    def is_new(self, str text) -> bool:
        """Add a text; false if it was here already."""
        cdef bytes encoded = text.encode("utf-8", "replace")
        cdef const uint8_t *data = <const uint8_t *>encoded
        return self.add(data, <size_t>len(encoded), self.expect(data, <size_t>len(encoded)))

    cdef tuple views_from(self, size_t first, bint is_last):
        """The bytes of the texts from the first of these on, and where each ends. If these are the `last` that are asked
        for, what is there is handed out rather than copied, and this is of no more use.
        """
        cdef size_t texts = self.count - first, i
        cdef int64_t start = self.ends[first]
        cdef size_t size = <size_t>(self.ends[self.count] - start)
        cdef uint8_t *data = NULL
        cdef int64_t *ends = NULL
        if is_last and first == 0:
            return view(<void **>&self.data, size, "B"), view(<void **>&self.ends, (texts + 1) * 8, "q")
        enlarge(<void **>&data, size + 1)
        try:
            enlarge(<void **>&ends, (texts + 1) * 8)
            memcpy(data, self.data + start, size)
            for i in range(texts + 1):
                ends[i] = self.ends[first + i] - start
            return view(<void **>&data, size, "B"), view(<void **>&ends, (texts + 1) * 8, "q")
        finally:
            free(data)
            free(ends)
