# cython: language_level=3, cdivision=True
"""The URLs on a line of a plain text sitemap, compiled. As `usp.scan.lines.urls_on_line`."""

from libc.stdint cimport uint32_t

from usp._interface cimport USP_INTERFACE
from usp.scan._urls cimport after_http, is_http, unwrapped_text

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    int PyUnicode_KIND(object)
    void *PyUnicode_DATA(object)
    uint32_t PyUnicode_READ(int kind, void *data, Py_ssize_t index)
    bint Py_UNICODE_ISSPACE(uint32_t character)
    object PyUnicode_Substring(object, Py_ssize_t start, Py_ssize_t end)


cdef list urls_on(str line):
    """Return the URLs on a line that has "://". There may be several fields, and a comment."""
    cdef list found = []
    cdef str part
    line = before_comment(line)
    if line.startswith("- "):
        line = PyUnicode_Substring(line, 2, len(line))
    if "\t" not in line:
        add_urls(line, found)
    else:
        for part in line.split("\t"):
            if "://" in part:
                add_urls(part, found)
    if len(found) > 1:
        found = [url.rstrip(",;|") for url in found]
    return found


cdef str before_comment(str line):
    """Return a line without its comment, and without the white space before that."""
    cdef int kind = PyUnicode_KIND(line)
    cdef void *data = PyUnicode_DATA(line)
    cdef Py_ssize_t i
    for i in range(len(line)):
        if PyUnicode_READ(kind, data, i) == c'#' and (not i or Py_UNICODE_ISSPACE(PyUnicode_READ(kind, data, i - 1))):
            return PyUnicode_Substring(line, 0, i - 1 if i else 0)
    return line


cdef int add_urls(str part, list found) except -1:
    """Add the URLs of a part of a line. White space before "http://" ends the one before."""
    cdef int kind = PyUnicode_KIND(part)
    cdef void *data = PyUnicode_DATA(part)
    cdef Py_ssize_t size = len(part), start = 0, i
    for i in range(size):
        if Py_UNICODE_ISSPACE(PyUnicode_READ(kind, data, i)) and after_http(part, i + 1):
            add_url(PyUnicode_Substring(part, start, i), found)
            start = i + 1
    return add_url(PyUnicode_Substring(part, start, size) if start else part, found)


cdef int add_url(str field, list found) except -1:
    """Add a field, if it is a URL."""
    cdef str text
    if "://" in field:
        text = unwrapped_text(field)
        if is_http(text):
            found.append(text)
    return 0
