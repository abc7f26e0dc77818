cdef enum Form:  # how a text states a URL, in the order of `usp.scan.urls.URLForm`
    ABSOLUTE, RELATIVE, WITHOUT_SCHEME, PLACEHOLDER, NOT_HTTP

cdef object url_of(str text, str base, Form *form)
cdef bint may_be_placeholder(str text) except -1
cdef Py_ssize_t after_http(str text, Py_ssize_t at)
cdef bint is_http(str text) except -1
cdef str unwrapped_text(str text)
