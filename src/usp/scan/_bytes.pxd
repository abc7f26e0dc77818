"""Search bytes, eight or sixteen at a time, and say which kinds of bytes a text has. No Python object, no GIL.

All of it is inlined into the modules that use it: it knows nothing of them.
"""

from libc.stdint cimport uint8_t

cdef enum:
    MAX_TEXT_BYTES = 65535  # of a field

cdef enum:
    AMPERSAND = 1
    HIGH = 2  # bytes that are not ASCII
    CONTROL = 4
    CDATA = 8
    SPECIAL = 16  # of a URL only: what may not stand in one as it is, or has a meaning there
    NOTED = 32  # of a text without its references only: one of them is a problem, such as a bare "&"
    ESCAPED_TWICE = 64  # of a URL without its references only

cdef inline bint is_space(uint8_t c) noexcept nogil:
    """White space of XML. What else Python calls so is a control character, to be noted."""
    return c <= 32 and (c == c' ' or c == 10 or c == 9 or c == 13)


# Eight bytes at a time, as in https://graphics.stanford.edu/~seander/bithacks.html, or sixteen as vectors: calls of
# memchr, and loops over bytes, take longer than most texts do.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__) && defined(__GNUC__)
    #include <emmintrin.h>
    #endif
    #define USP_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
    /* Whether any byte of the word is 0; the lowest bit that is set is in the first byte that is. */
    #define USP_ZEROS(word) (((word) - USP_EACH(1)) & ~(word) & USP_EACH(0x80))
    static inline uint64_t usp_word(const uint8_t *at) {
        uint64_t word;
        memcpy(&word, at, 8);
        return word;
    }
    static inline int usp_first(uint64_t found, const uint8_t *at, int (*is_it)(uint8_t)) {
    #if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        (void)at;
        (void)is_it;
        return __builtin_ctzll(found) >> 3;
    #else
        int i = 0;
        (void)found;
        while (!is_it(at[i])) i++;
        return i;
    #endif
    }
    static inline int usp_is_tag(uint8_t c) { return c == '<'; }
    static inline int usp_is_blank(uint8_t c) { return c == ' ' || c == 10 || c == 9 || c == 13; }

    /* The next "<", NULL if there is none. */
    #if defined(__SSE2__) && defined(__GNUC__)
    static inline const uint8_t *usp_next_tag(const uint8_t *at, const uint8_t *end) {
        const __m128i tag = _mm_set1_epi8('<');
        int blocks;
        for (blocks = 0; blocks < 16 && end - at >= 16; blocks++, at += 16) {
            int found = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)at), tag));
            if (found) return at + __builtin_ctz((unsigned)found);
        }
        return at < end ? (const uint8_t *)memchr(at, '<', (size_t)(end - at)) : NULL;
    }
    #else
    static inline const uint8_t *usp_next_tag(const uint8_t *at, const uint8_t *end) {
        int words;
        for (words = 0; words < 4 && end - at >= 8; words++, at += 8) {
            uint64_t word = usp_word(at) ^ USP_EACH('<'), found = USP_ZEROS(word);
            if (found) return at + usp_first(found, at, usp_is_tag);
        }
        return at < end ? (const uint8_t *)memchr(at, '<', (size_t)(end - at)) : NULL;
    }
    #endif
    /* Whether two short texts of the same size are the same. */
    static inline int usp_is_same(const uint8_t *a, const uint8_t *b, size_t size) {
        size_t i;
        if (size < 8) return memcmp(a, b, size) == 0;
        for (i = 0; i + 8 < size; i += 8)
            if (usp_word(a + i) != usp_word(b + i)) return 0;
        return usp_word(a + size - 8) == usp_word(b + size - 8);
    }
    /* The next byte that is no white space; the end if there is none. */
    static inline const uint8_t *usp_next_visible(const uint8_t *at, const uint8_t *end) {
    #if defined(__SSE2__) && defined(__GNUC__)
        const __m128i space = _mm_set1_epi8(' '), tab = _mm_set1_epi8(9);
        const __m128i feed = _mm_set1_epi8(10), carriage = _mm_set1_epi8(13);
        while (end - at >= 16) {
            const __m128i block = _mm_loadu_si128((const __m128i *)at);
            const __m128i breaks = _mm_or_si128(_mm_cmpeq_epi8(block, feed), _mm_cmpeq_epi8(block, carriage));
            const __m128i blanks = _mm_or_si128(_mm_cmpeq_epi8(block, space), _mm_cmpeq_epi8(block, tab));
            unsigned visible = ~(unsigned)_mm_movemask_epi8(_mm_or_si128(breaks, blanks)) & 0xffff;
            if (visible) return at + __builtin_ctz(visible);
            at += 16;
        }
    #endif
        while (at < end && usp_is_blank(*at)) at++;
        return at;
    }
    #if defined(__GNUC__)
    typedef uint8_t usp_block __attribute__((vector_size(16)));
    #define USP_FOUR(byte) (byte), (byte), (byte), (byte)
    #define USP_ALL(byte) ((usp_block){USP_FOUR(byte), USP_FOUR(byte), USP_FOUR(byte), USP_FOUR(byte)})
    #define USP_IF(condition, flag) ((usp_block)(condition) & USP_ALL(flag))
    static inline uint8_t usp_any(usp_block flags) { /* those that any byte has; a loop over bytes takes longer */
        uint64_t words[2];
        memcpy(words, &flags, 16);
        words[0] |= words[1];
        words[0] |= words[0] >> 32;
        words[0] |= words[0] >> 16;
        return (uint8_t)(words[0] | words[0] >> 8);
    }
    #else
    typedef uint8_t usp_block; /* one byte, then */
    #define USP_ALL(byte) ((uint8_t)(byte))
    #define USP_IF(condition, flag) ((usp_block)((condition) ? (flag) : 0))
    #define usp_any(flags) (flags)
    #endif
    /* The flags of a text, of which `flags` gives those of a block. */
    static inline uint8_t usp_gather(const uint8_t *text, size_t size, usp_block (*flags)(usp_block)) {
        usp_block block, found = USP_ALL(0);
        uint8_t padded[sizeof(usp_block)];
        size_t i = 0, step = sizeof(usp_block);
        if (size == 0) return 0;
        if (size < step) {
            memset(padded, 'a', step);
            memcpy(padded, text, size);
            text = padded;
            size = step;
        }
        for (;;) {
            memcpy(&block, text + i, step);
            found |= flags(block);
            if (i + step == size) break;
            i = i + 2 * step <= size ? i + step : size - step; /* the last block may overlap the one before */
        }
        return usp_any(found);
    }
    static inline usp_block usp_text_flags(usp_block c) {
        return USP_IF(c == USP_ALL('&'), 1) | USP_IF(c > USP_ALL(127), 2)
            | USP_IF((c < USP_ALL(32)) | (c == USP_ALL(127)), 4);
    }
    static inline usp_block usp_url_flags(usp_block c) {
        usp_block even = c | USP_ALL(2);
        return USP_IF(c == USP_ALL('&'), 1)
            | USP_IF((c < USP_ALL('&')) | (c > USP_ALL('z')) | (even == USP_ALL('>')) | (even == USP_ALL('^'))
                     | (c == USP_ALL('`')), 16);
    }
    /* Which of AMPERSAND, HIGH and CONTROL are in a text. */
    static inline uint8_t usp_flags_of(const uint8_t *text, size_t size) {
        return usp_gather(text, size, usp_text_flags);
    }
    /* AMPERSAND, and SPECIAL if there may be anything else in a URL that does not just stand for itself. */
    static inline uint8_t usp_url_flags_of(const uint8_t *url, size_t size) {
        return usp_gather(url, size, usp_url_flags);
    }
    """
    const uint8_t *next_tag "usp_next_tag"(const uint8_t *at, const uint8_t *end) noexcept nogil
    bint is_same "usp_is_same"(const uint8_t *a, const uint8_t *b, size_t size) noexcept nogil
    const uint8_t *next_visible "usp_next_visible"(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint8_t flags_of "usp_flags_of"(const uint8_t *text, size_t size) noexcept nogil
    uint8_t url_flags_of "usp_url_flags_of"(const uint8_t *url, size_t size) noexcept nogil
