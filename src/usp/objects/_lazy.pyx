# cython: language_level=3
"""`LazySlot`, compiled. It does the same as `usp.objects.lazy.PureLazySlot`.

It reads and writes the slots of `__slots__` at their offsets, which CPython keeps in the member descriptors. It imports
nothing of usp.
"""

from dataclasses import MISSING, fields
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
    object PyType_GenericAlloc(type, Py_ssize_t)
    bint PyObject_TypeCheck(object, type)  # unlike isinstance, objects cannot deceive it


INTERFACE = USP_INTERFACE


def slot_offset(slot):
    """Return the offset of a slot in its objects."""
    if type(slot) is not MemberDescriptorType or (<PyMemberDescrObject *>slot).d_member.type != T_OBJECT_EX:
        raise TypeError(f"{slot!r} is no slot of __slots__")
    return (<PyMemberDescrObject *>slot).d_member.offset


cdef class Maker:
    """Makes objects of a frozen dataclass with slots from a dictionary of its fields, as `pure_maker_of` does.

    A constructor of many fields sets each of them by its name, which takes most of its time.
    """

    cdef type _made
    cdef list _slots  # of each field: its name, its offset, its default, and what makes its default

    def __init__(self, type made):
        if hasattr(made, "__post_init__"):
            raise TypeError(f"{made.__name__} does more than set its fields")
        self._made = made
        self._slots = [
            (
                field.name,
                slot_offset(made.__dict__[field.name]),
                None if field.default is MISSING else field.default,
                None if field.default_factory is MISSING else field.default_factory,
            )
            for field in fields(made)
        ]
        made()  # every field has a default

    def __call__(self, dict values):
        cdef Py_ssize_t offset, used = 0
        cdef bint is_empty = not values
        made = PyType_GenericAlloc(self._made, 0)
        for name, offset, default, make_default in self._slots:
            if not is_empty and name in values:
                value = values[name]
                used += 1
            else:
                value = default if make_default is None else make_default()
            Py_INCREF(value)
            (<PyObject **>(<char *><PyObject *>made + offset))[0] = <PyObject *>value
        if used < len(values):
            raise TypeError(f"{self._made.__name__} has not all of the fields {', '.join(values)}")
        return made


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
