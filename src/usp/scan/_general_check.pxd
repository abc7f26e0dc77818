from libc.stdint cimport int64_t, uint64_t

from usp.scan._check cimport EntrySummary, PlainCheck
from usp.scan._elements cimport Element
from usp.scan._seen cimport Table

ctypedef struct EntryFacts:  # what rules and statistics need of an entry, beside its URL
    EntrySummary summary
    bint is_story
    bint may_repeat  # whether its page may be in other sitemaps too: it has images or videos
    int alternates
    uint64_t key  # of the set of pages in other languages
    uint64_t size  # of that set


cdef class GeneralCheck(PlainCheck):
    cdef readonly object options
    cdef int64_t news_since

    cdef bint summarize(self, Element entry, uint64_t own, EntryFacts *facts) except -1
    cdef int add_fields(self, Element entry, EntrySummary *summary) except -1
    cdef bint read_date(self, str text, int64_t *date, int64_t *period, uint64_t *codes) except -1
    cdef int add_news(self, Element entry, EntryFacts *facts) except -1
    cdef bint add_links(self, Element entry, uint64_t own, EntryFacts *facts) except -1
    cdef int add_video(self, Element video, uint64_t own, EntrySummary *summary) except -1
    cdef bint is_page_itself(self, str text, uint64_t own) except -1
    cdef bint hash_text(self, str url, uint64_t *hashed) except -1
