from libc.stdint cimport uint8_t

from usp.scan._entries cimport PlainEntry, Reader

cdef enum:  # fields of a page that are known to be empty when it is made
    NEWS_PRESET = 1
    IMAGES_PRESET = 2
    ALTERNATES_PRESET = 4
    VIDEOS_PRESET = 8
    DATE_PRESET = 16
    CHANGE_PRESET = 32
    PRIORITY_PRESET = 64

cdef object preset_page(url, source, int presets)
cdef object page_of(Reader reader, const uint8_t *data, PlainEntry *entry, url)
