# Eight bytes at a time, as in https://graphics.stanford.edu/~seander/bithacks.html: calls of memchr, and loops over bytes,
# take longer than most texts do.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
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
    static inline int usp_is_visible(uint8_t c) { return c > 32; }

    /* The next "<", NULL if there is none. */
    static inline const uint8_t *usp_next_tag(const uint8_t *at, const uint8_t *end) {
        int words;
        for (words = 0; words < 4 && end - at >= 8; words++, at += 8) {
            uint64_t word = usp_word(at) ^ USP_EACH('<'), found = USP_ZEROS(word);
            if (found) return at + usp_first(found, at, usp_is_tag);
        }
        return at < end ? (const uint8_t *)memchr(at, '<', (size_t)(end - at)) : NULL;
    }
    /* The next byte that is neither white space nor a control character; the end if there is none. */
    static inline const uint8_t *usp_next_visible(const uint8_t *at, const uint8_t *end) {
        while (end - at >= 8) {
            uint64_t word = usp_word(at), found = (((word & USP_EACH(0x7f)) + USP_EACH(0x5f)) | word) & USP_EACH(0x80);
            if (found) return at + usp_first(found, at, usp_is_visible);
            at += 8;
        }
        while (at < end && *at <= 32) at++;
        return at;
    }
    /* Which of AMPERSAND, HIGH and CONTROL are in a text. */
    static inline uint8_t usp_flags_of(const uint8_t *text, size_t size) {
        uint64_t word, ampersands = 0, highs = 0, controls = 0;
        uint8_t padded[8];
        size_t i = 0;
        if (size == 0) return 0;
        if (size < 8) {
            memset(padded, 'a', 8);
            memcpy(padded, text, size);
            text = padded;
            size = 8;
        }
        for (;;) {
            word = usp_word(text + i);
            ampersands |= USP_ZEROS(word ^ USP_EACH('&'));
            highs |= word;
            controls |= ((word - USP_EACH(32)) & ~word) | USP_ZEROS(word ^ USP_EACH(127));
            if (i + 8 == size) break;
            i = i + 16 <= size ? i + 8 : size - 8; /* the last word may overlap the one before */
        }
        return (uint8_t)((ampersands != 0) | (((highs & USP_EACH(0x80)) != 0) << 1)
                         | (((controls & USP_EACH(0x80)) != 0) << 2));
    }
    """
    const uint8_t *next_tag "usp_next_tag"(const uint8_t *at, const uint8_t *end) noexcept nogil
    const uint8_t *next_visible "usp_next_visible"(const uint8_t *at, const uint8_t *end) noexcept nogil
    uint8_t flags_of "usp_flags_of"(const uint8_t *text, size_t size) noexcept nogil
