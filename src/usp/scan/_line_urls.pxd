cdef list urls_on(str line)
