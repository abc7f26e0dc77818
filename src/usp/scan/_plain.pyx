# cython: language_level=3, cdivision=True
"""Plain entries, compiled: the same as `usp.scan.plain`. See there for what it does.

Finding the entries needs no GIL (`_kernel.pxi`). What is not as it should be is left to Python, or to the general scanner.
"""

import datetime as datetime_module
from os import urandom

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.datetime cimport datetime_new, import_datetime
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from usp.objects._lazy import slot_offset

cdef extern from *:
    int USP_INTERFACE  # set by setup.py

import_datetime()
INTERFACE = USP_INTERFACE

include "_words.pxi"
include "_kernel.pxi"
include "_seen.pxi"
include "_texts.pxi"
include "_grammar.pxi"
include "_entry.pxi"
include "_readers.pxi"
include "_utf8.pxi"
include "_series.pxi"
include "_extensions.pxi"
include "_videos.pxi"
include "_table.pxi"
include "_check.pxi"
include "_columns.pxi"
include "_yardstick.pxi"
include "_survey.pxi"


def bind():
    """Import what the readers use of usp, and compare tables with it. `usp.scan.plain` calls this once."""
    bind_texts()
    bind_grammar()
    bind_entry()
    bind_series()
    bind_videos()
    bind_columns()
