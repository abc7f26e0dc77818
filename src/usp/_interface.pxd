# The number in `usp.compiled.INTERFACE` that the compiled modules were built with.
cdef extern from *:
    int USP_INTERFACE  # set by setup.py
