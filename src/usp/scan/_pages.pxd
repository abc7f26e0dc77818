from libc.stdint cimport uint8_t

from usp.scan._entries cimport PlainEntry, Reader

cdef object page_of(Reader reader, const uint8_t *data, PlainEntry *entry, url)
