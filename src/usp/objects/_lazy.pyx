# cython: language_level=3
"""`LazySlot`, compiled. It does the same as `usp.objects.lazy.PureLazySlot`.

It reads and writes the slots of `__slots__` at their offsets, which CPython keeps in the member descriptors. It imports
nothing of usp.
"""

from types import MemberDescriptorType

from cpython.ref cimport Py_INCREF, PyObject

from usp._interface cimport USP_INTERFACE

cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        int type
        Py_ssize_t offset
    int T_OBJECT_EX

cdef extern from "Python.h":
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member
    bint PyObject_TypeCheck(object, type)  # unlike isinstance, objects cannot deceive it


INTERFACE = USP_INTERFACE


def slot_offset(slot):
    """Return the offset of a slot in its objects."""
    if type(slot) is not MemberDescriptorType or (<PyMemberDescrObject *>slot).d_member.type != T_OBJECT_EX:
        raise TypeError(f"{slot!r} is no slot of __slots__")
    return (<PyMemberDescrObject *>slot).d_member.offset


cdef class LazySlot:
    """A slot of a class whose value comes from the slot `source` when it is first read."""

    cdef Py_ssize_t _offset
    cdef Py_ssize_t _source_offset
    cdef type _owner
    cdef readonly object slot
    cdef str _name

    def __init__(self, slot, source):
        self._offset = slot_offset(slot)
        self._source_offset = slot_offset(source)
        self._owner = slot.__objclass__
        if not issubclass(self._owner, source.__objclass__):
            raise TypeError(f"{source!r} is no slot of {self._owner.__name__}")
        self._name = slot.__name__
        self.slot = slot

    def __get__(self, instance, owner):
        if instance is None:
            return self
        if not PyObject_TypeCheck(instance, self._owner):
            raise TypeError(f"{self._name!r} is a field of {self._owner.__name__}, not of {type(instance).__name__}")
        cdef PyObject **place = <PyObject **>(<char *><PyObject *>instance + self._offset)
        cdef PyObject *source
        if place[0] == NULL:
            source = (<PyObject **>(<char *><PyObject *>instance + self._source_offset))[0]
            if source == NULL:
                raise AttributeError(self._name)
            value = (<object>source).value(self._name)
            if place[0] == NULL:  # the source may have set it
                Py_INCREF(value)
                place[0] = <PyObject *>value
        return <object>place[0]

    def __set__(self, instance, value):
        self.slot.__set__(instance, value)

    def __delete__(self, instance):
        raise AttributeError(f"{self._name!r} cannot be deleted")
