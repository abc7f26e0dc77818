# cython: language_level=3, cdivision=True
"""Pages of the entries that the compiled scanner reads. As `usp.scan.entry_pages.PureEntryPages`.

An entry that has anything unusual is left to its parser, before anything about it was logged. So is every problem that
the log keeps, with its text: only those beyond are counted here.
"""

cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t

from usp._interface cimport USP_INTERFACE
from usp.scan._elements cimport Element
from usp.scan._markup cimport Log
from usp.scan._pages cimport (
    ALTERNATES_PRESET,
    CHANGE_PRESET,
    DATE_PRESET,
    IMAGES_PRESET,
    NEWS_PRESET,
    PRIORITY_PRESET,
    VIDEOS_PRESET,
    preset_page,
)
from usp.scan._texts cimport Moment, date_of, parse_moment
from usp.scan._urls cimport ABSOLUTE, NOT_HTTP, PLACEHOLDER, RELATIVE, Form, WITHOUT_SCHEME, may_be_placeholder, url_of

INTERFACE = USP_INTERFACE

cdef object last_modified_text, parse_date, parse_priority, parse_change_frequency, unescape
cdef tuple FORM_CODES = ("U512", "U501", "U514", "U515", "U502")  # in the order of `Form`
cdef Py_ssize_t MAX_BASE
cdef tuple TITLES = ("title", "description", "summary", "tagline")
cdef tuple RSS_DATES = ("pubdate", "date")
cdef tuple ATOM_DATES = ("published", "issued", "updated", "modified", "created")
cdef frozenset FIELDS = frozenset({"loc", "lastmod", "changefreq", "priority"})
cdef object LEAVE = object()  # to the parser
cdef enum:
    OTHERS_PRESET = 128  # there is nothing that this module does not know
    EVERYTHING = (
        ALTERNATES_PRESET | CHANGE_PRESET | DATE_PRESET | IMAGES_PRESET | NEWS_PRESET | PRIORITY_PRESET | VIDEOS_PRESET
        | OTHERS_PRESET
    )


def bind():
    """Import what this module uses of usp."""
    global last_modified_text, parse_date, parse_priority, parse_change_frequency, unescape, MAX_BASE
    from usp.objects.page import last_modified_text
    from usp.scan.dates import parse_date
    from usp.scan.urls import MAX_BASE
    from usp.scan.values import parse_change_frequency, parse_priority, unescape


@cython.final
cdef class EntryPages:
    """Makes pages of entries."""

    cdef object parser
    cdef object plain_log
    cdef object bare_source
    cdef dict strays, sources
    cdef Log log
    cdef str url, base
    cdef str entry_base  # the base of the last entry whose URL was asked for

    def __cinit__(self, parser):
        self.parser, self.plain_log, self.bare_source = parser, parser.log, parser.bare_source
        self.strays, self.sources = dict(parser.strays), dict(parser.sources)
        self.log = Log(parser.log)
        self.url, self.base = parser.url, parser.base
        self.entry_base = self.base

    def page(self, entry):
        """Return the page of an entry, or None if it has no usable URL."""
        url = self.url_of_entry(entry)
        if url is LEAVE:
            return self.parser.page(entry)
        return None if url is None else self.made(<Element>entry, url)

    def pages(self, list entries, is_new):
        """Return the pages of those entries that are pages, and whose URLs are new."""
        cdef list pages = []
        for entry in entries:
            if entry.name == "sitemap":
                continue
            url = self.url_of_entry(entry)
            if url is LEAVE:
                page = self.parser.page(entry)
                if page is not None and is_new(page.url):
                    pages.append(page)
            elif url is not None and is_new(url):
                pages.append(self.made(<Element>entry, url))
        return pages

    def inspect(self, entry):
        """Convert every field of the page of an entry, to log its problems. Return its URL, None if it has no page."""
        url = self.url_of_entry(entry)
        if url is None:
            return None
        if url is LEAVE:
            page = self.parser.page(entry)
            if page is None:
                return None
            url = page.url
        elif self.has_no_problem_to_keep(<Element>entry):
            return url
        else:
            page = self.made(<Element>entry, url)
        for name in self.parser.fields_of(entry):
            getattr(page, name)
        return url

    def declared(self, entry):
        """Return the URL and the date of the sitemap that an entry declares, or None if it has no usable URL."""
        cdef Element element
        if type(entry) is not Element:
            return self.parser.declared(entry)
        element = <Element>entry
        text = element.text_of("lastmod")
        date = None
        if text is not None:
            date = date_in(<str>text)
            if date is None and self.log.keeps("L302"):
                return self.parser.declared(entry)
        self.entry_base = self.base
        url = self.url_in_loc(element)
        if url is LEAVE:
            return self.parser.declared(entry)
        if url is None:
            return None
        if text is not None and date is None:
            self.log.count("L302", 1, <Py_ssize_t>element.place_of("lastmod"))
        return url, date

    def add_rows(self, list entries, reader, codes):
        """Add the pages of those entries that are pages to columns, with the codes of their problems if asked for."""
        for entry in entries:
            url = self.url_of_entry(entry) if entry.name != "sitemap" else None
            if url is None:
                if codes is not None:
                    self.log.logged.clear()
            elif url is not LEAVE and self.presets_of(<Element>entry) == EVERYTHING:
                reader.append_url(url, self.bare_source, self.codes_of(<Element>entry) if codes is not None else ())
            else:
                page = self.parser.page(entry) if url is LEAVE else self.made(<Element>entry, url)
                found = self.codes_of_page(entry, page, codes) if codes is not None else ()
                if page is not None:
                    reader.append(page, last_modified_text(page), found)

    cdef object codes_of_page(self, entry, page, codes):
        """Convert the fields of the page of an entry. Return the codes of its problems, as `EntryCodes.end_entry`."""
        if page is None or type(entry) is not Element:
            return codes.end_entry(entry.at, page, self.parser.fields_of(entry))
        for name in self.parser.fields_of(entry):
            getattr(page, name)
        for at in self.log.logged.values():
            if at is not None and type(at) is not int:
                return codes.end_entry(entry.at, page, ())
        return self.codes_of(<Element>entry)

    cdef object codes_of(self, Element entry):
        """Return the codes of the problems of an entry, as `EntryCodes` does. All of them have offsets here."""
        cdef list found
        cdef Py_ssize_t start
        if not self.log.logged:
            return ()
        start = <Py_ssize_t>entry.at
        found = [code for code, at in self.log.logged.items() if type(at) is int and <Py_ssize_t>at >= start]
        found.sort()
        self.log.logged.clear()
        return found

    # URLs

    cdef object url_of_entry(self, entry):
        """Return the URL of the page of an entry, None if it has no usable one, or LEAVE."""
        cdef Element element
        if type(entry) is not Element:
            return LEAVE
        element = <Element>entry
        self.entry_base = self.base
        if element._attributes is not None and element._attributes.get("xml:base"):
            self.entry_base = self.resolved_base(element._attributes["xml:base"])
        if element.name == "url":
            return self.url_in_loc(element)
        if element.name == "item" or element.name == "entry":
            return self.url_in_link(element)
        return LEAVE

    cdef str resolved_base(self, str written):
        """Return what an `xml:base` makes of the base around it. One that is too long is ignored."""
        cdef Form form
        if len(written) > MAX_BASE:
            return self.base
        return url_of(written, self.base, &form) or self.base

    cdef int log_stray(self, Element entry) except -1:
        if self.strays and entry.name in self.strays:
            self.log.add(self.strays[entry.name], entry.at, "", "")
        return 0

    cdef object url_in_loc(self, Element entry):
        """Return the URL of a `<url>` or `<sitemap>`."""
        cdef object text = entry.text_of("loc")
        cdef Form form
        if text is None:
            if entry.text and (entry.text[0] == "h" or entry.text[0] == "H"):
                if not entry.text.isprintable():
                    return LEAVE  # it may be the URL
                if url_of(entry.text, self.entry_base, &form) == entry.text and form == ABSOLUTE:
                    self.log_stray(entry)
                    self.log.add("P404", entry.at, "", entry.name)
                    return self.resolved(entry.text, "<loc>", entry.place_of("loc"), False)
            self.log_stray(entry)
            if not entry.cut_off:
                self.log.add("P401", entry.at, "", entry.name)
            return None
        self.log_stray(entry)
        return self.resolved(<str>text, "<loc>", entry.place_of("loc"), False)

    cdef object url_in_link(self, Element entry):
        """Return the URL of an `<item>` or `<entry>`."""
        cdef object link = self.rss_link(entry) if entry.name == "item" else self.atom_link(entry)
        if link is LEAVE:
            return LEAVE
        self.log_stray(entry)
        if link is None:
            if not entry.cut_off:
                self.log.add("P411", entry.at, "", "")
            return None
        return self.resolved(<str>link, "<link>", entry.at, self.entry_base != self.url)

    cdef object rss_link(self, Element entry):
        """Return the link of an item, None if it has none, or LEAVE if it may be a placeholder."""
        cdef Element child
        cdef Form form
        cdef object link
        if entry._children is not None:
            for child in entry._children:
                if child.name == "link":
                    link = child.text or child.attribute("href")
                    if link:
                        return LEAVE if may_be_placeholder(<str>link) else link
            for child in entry._children:
                if child.name == "guid" and child.text:
                    permanent = child.attribute("ispermalink")
                    if permanent is None or (<str>permanent).lower() == "true":
                        if url_of(child.text, "", &form) is not None:
                            return LEAVE if may_be_placeholder(child.text) else child.text
        link = entry.attribute("rdf:about")
        if not link:
            return None
        return LEAVE if may_be_placeholder(<str>link) else link

    cdef object atom_link(self, Element entry):
        """Return the link of an entry of Atom, None if it has none, or LEAVE if it is unusual."""
        cdef Element child
        cdef object link, relation, of_self = None
        if entry._children is None:
            return None
        for child in entry._children:
            if child.name != "link":
                continue
            relation = child.attribute("rel")
            link = child.attribute("href") or child.text
            if not relation or relation == "alternate":
                if link:
                    return LEAVE if may_be_placeholder(<str>link) else link
            elif relation == "self":
                of_self = of_self or link
            elif may_be_usual_relation(<str>relation):
                return LEAVE
        if not of_self:
            return None
        return LEAVE if may_be_placeholder(<str>of_self) else of_self

    cdef object resolved(self, str text, str where, at, bint may_be_relative):
        """Return a URL made absolute; log a problem and return None if the text is no URL."""
        cdef Form form
        cdef str written = text
        cdef object url
        if "&amp;" in text:
            text = text.replace("&amp;", "&")
        url = url_of(text, self.entry_base, &form)
        if not self.log.is_used:
            return url
        if (form != ABSOLUTE or url != text) and not (form == RELATIVE and may_be_relative):
            self.log.add(<str>FORM_CODES[<int>form], at, text, where)
        if text is not written:
            self.log.add("U511", at, written, where)
        return url

    # Pages

    cdef object made(self, Element entry, url):
        """Return the page of an entry that has this URL."""
        cdef int presets = self.presets_of(entry)
        if presets == EVERYTHING:
            return preset_page(url, self.bare_source, presets)
        return preset_page(url, self.sources[entry.name](entry, self.entry_base, self.plain_log, self.url), presets)

    cdef int presets_of(self, Element entry) except -1:
        """Return which fields the page of an entry does not have."""
        cdef int presets = EVERYTHING
        cdef Element child
        if entry.name == "url":
            if entry._fields is not None and len(entry._fields) > 1:
                if not entry._fields.keys() <= FIELDS:
                    presets &= ~OTHERS_PRESET
                if entry.text_of("lastmod") is not None:
                    presets &= ~DATE_PRESET
                if entry.text_of("changefreq") is not None:
                    presets &= ~CHANGE_PRESET
                if entry.text_of("priority") is not None:
                    presets &= ~PRIORITY_PRESET
            if entry._children is not None:
                for child in entry._children:
                    if child.name == "image":
                        presets &= ~IMAGES_PRESET
                    elif child.name == "link":
                        presets &= ~ALTERNATES_PRESET
                    elif child.name == "video":
                        presets &= ~VIDEOS_PRESET
                    elif child.name == "news":
                        presets &= ~NEWS_PRESET
                    else:
                        presets &= ~OTHERS_PRESET
        elif self.has_story(entry):
            presets &= ~NEWS_PRESET
        return presets

    cdef bint has_story(self, Element entry) except -1:
        """Return whether an item or entry may have a news story, or a date."""
        return entry._fields is not None and (
            has_any(entry, TITLES) or has_any(entry, RSS_DATES if entry.name == "item" else ATOM_DATES)
        )

    cdef bint has_no_problem_to_keep(self, Element entry) except -1:
        """Count the problems of an entry with a page. Return false, and count none, if a text may have to be kept."""
        cdef object text
        cdef bint is_date_wrong = False, is_change_wrong = False, is_priority_wrong = False
        if entry.name != "url":
            return not self.has_story(entry)
        if entry.has_children():
            return False
        if entry._fields is None or len(entry._fields) == 1:
            return True
        if not entry._fields.keys() <= FIELDS:
            return False
        text = entry.text_of("lastmod")
        if text is not None and date_in(<str>text) is None:
            is_date_wrong = True
        text = entry.text_of("changefreq")
        if text is not None and parse_change_frequency(text) is None:
            is_change_wrong = True
        text = entry.text_of("priority")
        if text is not None and parse_priority(text) is None:
            is_priority_wrong = True
        if (
            is_date_wrong and self.log.keeps("L302")
            or is_change_wrong and self.log.keeps("P407")
            or is_priority_wrong and self.log.keeps("P406")
        ):
            return False
        if is_date_wrong:
            self.log.count("L302", 1, entry.place_of("lastmod"))
        if is_change_wrong:
            self.log.count("P407", 1, entry.place_of("changefreq"))
        if is_priority_wrong:
            self.log.count("P406", 1, entry.place_of("priority"))
        return True


cdef bint has_any(Element entry, tuple names) except -1:
    cdef str name
    for name in names:
        if entry.text_of(name) is not None:
            return True
    return False


cdef bint may_be_usual_relation(str relation) except -1:
    """Return whether a relation may be "alternate" or "self", written otherwise."""
    cdef str lower = relation.lower()
    return lower.endswith("alternate") or lower.endswith("self")


cdef object date_in(str text):
    """Return the date that a text states, or None."""
    cdef Py_ssize_t size
    cdef const char *raw = PyUnicode_AsUTF8AndSize(text, &size)
    cdef Moment moment
    if parse_moment(<const uint8_t *>raw, size, &moment):
        return date_of(&moment)
    return parse_date(unescape(text))
