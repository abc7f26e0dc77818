# Columns, compiled: to come.

cdef int enlarge(void **data, size_t size) except -1:
    cdef void *larger = realloc(data[0], size)
    if larger == NULL:
        raise MemoryError
    data[0] = larger
    return 0
