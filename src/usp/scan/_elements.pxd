cimport cython
from libc.stdint cimport uint8_t

from usp.scan._markup cimport Log


@cython.final
cdef class KindTable:
    cdef object kind
    cdef object fields, elements
    cdef dict groups  # name -> KindTable

    cdef bint has(self, str name) except -1


@cython.final
cdef class DialectTable:
    cdef object dialect
    cdef str home, implied
    cdef dict entries  # name -> KindTable


@cython.final
cdef class Element:
    cdef readonly str name
    cdef readonly object at
    cdef public str text
    cdef public bint cut_off
    cdef KindTable table
    cdef dict _attributes, _fields, _offsets
    cdef list _children

    cdef bint has_text(self, str name) except -1
    cdef bint has_children(self) except -1
    cdef object text_of(self, str name)
    cdef object attribute(self, str name)
    cdef int set_text(self, str name, str text) except -1
    cdef int set_offset(self, str name, Py_ssize_t offset) except -1


@cython.final
cdef class Field:
    cdef str name
    cdef bytes written
    cdef Element element
    cdef list pieces  # each: whether it is CDATA, the text, its offset
    cdef Py_ssize_t size
    cdef bint is_full

    cdef int add(self, bint is_cdata, const uint8_t *text, Py_ssize_t size, Py_ssize_t at) except -1
    cdef Py_ssize_t at(self) except -1
    cdef bint has_visible_text(self) except -1


@cython.final
cdef class Frame:
    cdef str tag
    cdef Py_hash_t hashed  # the tag's, to compare tags
    cdef bint is_script
    cdef Element element
    cdef Field field
    cdef dict outer


@cython.final
cdef class Name:
    cdef bytes raw
    cdef str name, tag
    cdef Py_hash_t hashed  # the tag's
    cdef Py_ssize_t generation  # of namespaces


cdef Element new_element(str name, KindTable table, at, dict attributes)
cdef Field new_field(str name, Element element, bytes written)
cdef str value_of(Field field, Log log)
cdef str stripped(const uint8_t *text, Py_ssize_t size)
