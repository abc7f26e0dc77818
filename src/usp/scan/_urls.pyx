# cython: language_level=3, cdivision=True
"""What a text of a document means as a URL, compiled. `absolute_url` does the same as `pure_absolute_url` of `usp.scan.urls`.

Texts that need more than a look at each character are left to Python: hosts of international names, "..", control
characters and the like. How relative URLs are resolved is taken from Python, too: it resolves one of each kind, and the
others of that kind only differ in their last part.
"""

cimport cython
from libc.stdint cimport uint32_t

from usp._interface cimport USP_INTERFACE

INTERFACE = USP_INTERFACE

cdef extern from "Python.h":
    int PyUnicode_KIND(object)
    void *PyUnicode_DATA(object)
    uint32_t PyUnicode_READ(int kind, void *data, Py_ssize_t index)
    bint PyUnicode_IS_ASCII(object)
    bint Py_UNICODE_ISALNUM(uint32_t character)
    object PyUnicode_Substring(object, Py_ssize_t start, Py_ssize_t end)
    object PyUnicode_Concat(object, object)

cdef enum:  # kinds of characters
    ODD = 1  # left to Python: control characters
    WRAPS = 2  # is removed around a URL
    HAS_COLON = 4
    HAS_DOT = 8
    HAS_SEMICOLON = 16
    ENDS_PART = 32  # "/", "?" or "#"
    HAS_HIGH = 64  # not ASCII

cdef enum:
    MAX_PLACEHOLDER = 16  # characters
    MAX_UP = 4  # "../" at the start of a text
    MAX_BASES = 64  # that are remembered

cdef enum:  # kinds of relative URLs; numbers up to MAX_UP are those that start with "../" so many times
    ROOT = MAX_UP + 1
    QUERY
    KINDS_OF_RELATIVE

cdef object ASK_PYTHON = object()

cdef unsigned char KINDS[128]
cdef bint STARTS_PLACEHOLDER[128]
cdef bint keeps_empty_parameters  # whether ";" stays at the end of a name: older versions of Python leave it out
cdef bint has_strict_schemes  # whether "1:2" is a path to Python: some versions find a scheme in it
cdef object pure_absolute_url, is_http_url, unwrapped, urljoin, own_hosts_of
cdef frozenset PLACEHOLDERS
cdef dict INNER_BREAKS
cdef Py_ssize_t MAX_BASE
cdef tuple FORMS
cdef dict FORM_NUMBERS
cdef dict BASES = {}


def bind():
    """Import what this module uses of usp."""
    global pure_absolute_url, is_http_url, unwrapped, urljoin, own_hosts_of, PLACEHOLDERS, MAX_BASE, FORMS, FORM_NUMBERS
    global has_strict_schemes, keeps_empty_parameters, INNER_BREAKS
    cdef int c
    from urllib.parse import urljoin

    from usp.scan import urls

    pure_absolute_url, is_http_url, unwrapped = urls.pure_absolute_url, urls.is_http_url, urls.unwrapped
    own_hosts_of, PLACEHOLDERS, MAX_BASE = urls._scheme_and_own_hosts, urls._PLACEHOLDERS, urls.MAX_BASE
    FORMS, INNER_BREAKS = tuple(urls.URLForm), urls._INNER_BREAKS
    if [form.name for form in FORMS] != ["ABSOLUTE", "RELATIVE", "WITHOUT_SCHEME", "PLACEHOLDER", "NOT_HTTP"]:
        raise TypeError("Form in usp/scan/_urls.pxd has other members than URLForm in usp/scan/urls.py")
    if max(map(len, PLACEHOLDERS)) >= MAX_PLACEHOLDER or not all(word.isascii() for word in PLACEHOLDERS):
        raise TypeError("MAX_PLACEHOLDER in usp/scan/_urls.pyx is too small for _PLACEHOLDERS in usp/scan/urls.py")
    FORM_NUMBERS = {form: number for number, form in enumerate(FORMS)}
    for c in range(128):
        KINDS[c] = ODD if c < 32 or c == 127 else 0
    for character in "<>\"'` ":
        KINDS[<int>ord(character)] = WRAPS
    for character in "/?#":
        KINDS[<int>ord(character)] = ENDS_PART
    for c in range(128):
        STARTS_PLACEHOLDER[c] = any(word[0] == chr(c).lower() for word in PLACEHOLDERS)
    has_strict_schemes = urljoin("http://h/", "1:2") == "http://h/1:2"
    keeps_empty_parameters = urljoin("http://h/", "a;") == "http://h/a;"
    KINDS[c':'], KINDS[c'.'], KINDS[c';'] = HAS_COLON, HAS_DOT, HAS_SEMICOLON


@cython.final
cdef class Base:
    """What a base puts before relative URLs of each kind; None if it cannot resolve them."""

    cdef str url
    cdef list known  # what is put before each kind, ASK_PYTHON until it is needed
    cdef object own_start, own_hosts

    def __cinit__(self, str url):
        self.url = url
        self.known = [ASK_PYTHON] * KINDS_OF_RELATIVE

    cdef object before(self, int kind):
        """Return what stands before a relative URL of a kind once it is resolved."""
        before = self.known[kind]
        if before is ASK_PYTHON:
            if kind == 0 and has_plain_path(self.url):
                before = PyUnicode_Substring(self.url, 0, self.url.rindex("/") + 1)
            elif kind == QUERY or kind == ROOT:
                before = self.resolved("", "?x" if kind == QUERY else "/x")
            else:
                before = self.resolved("../" * kind, "x")
            self.known[kind] = before
        return before

    cdef object start(self):
        """Return what stands before a URL that lacks only its scheme."""
        if self.own_start is None:
            scheme, self.own_hosts = own_hosts_of(self.url)
            self.own_start = f"{scheme}://"
        return self.own_start

    cdef bint has_host(self, str text, Py_ssize_t size) except -1:
        """Return whether a text starts with the host of the base, of this size."""
        self.start()
        return bool(self.own_hosts) and PyUnicode_Substring(text, 0, size).lower() in self.own_hosts

    cdef object resolved(self, str up, str text):
        """Return what stands before a relative URL once it is resolved, in place of "../"."""
        if len(self.url) > MAX_BASE:
            return None
        try:
            joined = urljoin(self.url, up + text)
        except ValueError:
            return None
        return joined.removesuffix(text) if is_http_url(joined) else None


cdef bint has_plain_path(str url):
    """Return whether a URL has a path of letters, digits and "/" only, in which nothing is to be resolved."""
    cdef Py_ssize_t size = len(url), at = 7 if url.startswith("http://") else 8, i
    cdef uint32_t c
    if size > MAX_BASE or not PyUnicode_IS_ASCII(url) or not url.startswith(("http://", "https://")):
        return False
    if not has_plain_host(url, at):
        return False
    while at < size and character_at(url, at) != c'/':
        at += 1
    for i in range(at + 1, size):
        c = character_at(url, i)
        if not Py_UNICODE_ISALNUM(c) and (c != c'/' or character_at(url, i - 1) == c'/'):
            return False
    return at < size


cdef Base last_base = None


cdef Base base_of(str url):
    """Return what is known of a base."""
    global last_base
    if last_base is not None and last_base.url is url:
        return last_base
    found = BASES.get(url)
    if found is None:
        if len(BASES) >= MAX_BASES:
            BASES.clear()
        found = BASES[url] = Base(url)
    last_base = <Base>found
    return last_base


def absolute_url(str text not None, str base not None):
    """Return the absolute http or https URL that a text states, None if it states none; and how it states it."""
    cdef Form form
    url = url_of(text, base, &form)
    return url, FORMS[<int>form]


cdef object url_of(str text, str base, Form *form):
    """Return the absolute URL that a text states, or None; `form` becomes how it states it."""
    cdef int seen
    cdef str whole = text, without_breaks
    cdef Py_ssize_t size = len(text), start, end
    cdef Py_ssize_t rest = after_http(text, 0)
    seen = kinds_in(text)
    if seen & ODD:
        without_breaks = text.translate(INNER_BREAKS)
        if kinds_in(without_breaks) & ODD:
            return left_to_python(text, base, form)
        return url_of(without_breaks, base, form)
    if rest:
        if has_plain_host(text, rest) or is_http_url(text):
            form[0] = ABSOLUTE
            return text
    if size and (wraps(text, 0) or wraps(text, size - 1)):
        if rest or seen & HAS_HIGH:
            return left_to_python(text, base, form)
        start, end = 0, size
        while start < end and wraps(text, start):
            start += 1
        while start < end and wraps(text, end - 1):
            end -= 1
        text, size = PyUnicode_Substring(text, start, end), end - start
        if size and character_at(text, size - 1) == c']':
            return left_to_python(whole, base, form)  # that of a CDATA section is removed, too
        rest = after_http(text, 0)
        if rest:
            if has_plain_host(text, rest) or is_http_url(text):
                form[0] = ABSOLUTE
                return text
    form[0] = NOT_HTTP
    if not size:
        return None
    if character_at(text, size - 1) == c']' or seen & HAS_HIGH and not (is_word(text, 0) and is_word(text, size - 1)):
        return left_to_python(whole, base, form)  # there may be something else to remove around it
    if rest:  # "http://" is a scheme, so it is not relative
        return None
    return relative(text, base, seen, form)


cdef object relative(str text, str base, int seen, Form *form):
    """Return the URL that a text means if it is not absolute. There is nothing to remove around it."""
    cdef int kind = PyUnicode_KIND(text)
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t size = len(text), first = 0, up = 0
    cdef uint32_t c = PyUnicode_READ(kind, data, 0)
    cdef Base known
    cdef object before
    cdef bint is_www
    if c == c'!' and size > 1 and PyUnicode_READ(kind, data, 1) == c'[':
        return left_to_python(text, base, form)  # it may be the start of a CDATA section
    if c == c'#' or may_start_placeholder(c) and size < MAX_PLACEHOLDER and text.lower() in PLACEHOLDERS:
        form[0] = PLACEHOLDER
        return None
    known = base_of(base)
    if seen & HAS_DOT:
        while first < size and not ends_part(PyUnicode_READ(kind, data, first)):
            first += 1
        is_www = starts_with_www(text)
        if is_www and seen & HAS_HIGH:
            return left_to_python(text, base, form)
        if is_www and is_www_host(text, first) or known.has_host(text, first):
            if not has_plain_host(text, 0):
                return left_to_python(text, base, form)
            form[0] = WITHOUT_SCHEME
            return PyUnicode_Concat(known.start(), text)
    if seen & HAS_COLON:
        if seen & HAS_HIGH:
            return left_to_python(text, base, form)
        if has_scheme(text) or "://" in text.partition("?")[0]:
            return None
        if not has_strict_schemes:
            return left_to_python(text, base, form)
    if seen & HAS_SEMICOLON and not seen & (HAS_DOT | ENDS_PART) and has_no_parameters(text):
        before = known.before(0)
        if before is None:
            return None
        form[0] = RELATIVE
        return PyUnicode_Concat(before, text if keeps_empty_parameters else PyUnicode_Substring(text, 0, size - 1))
    if c == c'/' and not seen & (HAS_HIGH | HAS_SEMICOLON) and is_other_host(text) and known.before(ROOT) is not None:
        before = known.before(ROOT)
        form[0] = RELATIVE
        return PyUnicode_Concat(before[:before.index("/")], text)
    if seen & HAS_SEMICOLON and seen & HAS_DOT or c == c'/' and size > 1 and PyUnicode_READ(kind, data, 1) == c'/':
        return left_to_python(text, base, form)
    if c == c'/':
        before = known.before(ROOT)
    elif c == c'?':
        before = known.before(QUERY)
    else:
        while up < MAX_UP and size > 3 * up + 3 and starts_with_up(kind, data, 3 * up):
            up += 1
        before = known.before(up)
    if not is_as_written(text, 3 * up):
        return left_to_python(text, base, form)
    if before is None:
        return None
    form[0] = RELATIVE
    return PyUnicode_Concat(before, PyUnicode_Substring(text, 3 * up, size) if up else text)


cdef object left_to_python(str text, str base, Form *form):
    url, found = pure_absolute_url(text, base)
    form[0] = <Form><int>FORM_NUMBERS[found]
    return url


cdef int kinds_in(str text):
    """Return which kinds of characters a text has."""
    cdef int kind = PyUnicode_KIND(text), seen = 0
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t i
    cdef uint32_t c
    for i in range(len(text)):
        c = PyUnicode_READ(kind, data, i)
        seen |= KINDS[c] if c < 128 else HAS_HIGH
    return seen


cdef inline uint32_t character_at(str text, Py_ssize_t at):
    return PyUnicode_READ(PyUnicode_KIND(text), PyUnicode_DATA(text), at)


cdef inline bint may_start_placeholder(uint32_t c):
    return c < 128 and STARTS_PLACEHOLDER[c]


cdef bint starts_with_www(str text):
    cdef Py_ssize_t i
    for i in range(3):
        if len(text) < 4 or character_at(text, i) | 32 != c'w':
            return False
    return character_at(text, 3) == c'.'


cdef bint is_www_host(str text, Py_ssize_t size):
    """Return whether ASCII that starts with "www." goes on with two names or more, maybe a dot, and maybe a port."""
    cdef int kind = PyUnicode_KIND(text), dots = 0
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t i = 4, name = 4, port
    cdef uint32_t c
    while i < size:
        c = PyUnicode_READ(kind, data, i)
        if c == c'.':
            if i == name:
                return False
            dots += 1
            name = i + 1
        elif c == c':':
            break
        elif not (c == c'-' or c == c'_' or Py_UNICODE_ISALNUM(c)):
            return False
        i += 1
    if dots < 1 or i == name and dots < 2:
        return False
    if i == size:
        return True
    port = i + 1
    for i in range(port, size):
        if not c'0' <= PyUnicode_READ(kind, data, i) <= c'9':
            return False
    return 1 <= size - port <= 5


cdef inline bint wraps(str text, Py_ssize_t at):
    cdef uint32_t c = character_at(text, at)
    return c < 128 and KINDS[c] & WRAPS


cdef inline bint is_word(str text, Py_ssize_t at):
    """Return whether a character is not one that is removed around a URL."""
    cdef uint32_t c = character_at(text, at)
    return Py_UNICODE_ISALNUM(c) if c >= 128 else not KINDS[c] & (WRAPS | ODD)


cdef inline bint ends_part(uint32_t c):
    return c == c'/' or c == c'?' or c == c'#'


cdef inline bint starts_with_up(int kind, void *data, Py_ssize_t at):
    return (
        PyUnicode_READ(kind, data, at) == c'.'
        and PyUnicode_READ(kind, data, at + 1) == c'.'
        and PyUnicode_READ(kind, data, at + 2) == c'/'
    )


cdef Py_ssize_t after_http(str text, Py_ssize_t at):
    """Return where a text goes on behind "http://" or "https://" at a position, or 0 if that is not there."""
    cdef int kind = PyUnicode_KIND(text), i
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t size = len(text)
    cdef const char *http = b"http"
    cdef uint32_t c
    if size < at + 7:
        return 0
    for i in range(4):
        c = PyUnicode_READ(kind, data, at + i)
        if c >= 128 or c | 32 != <uint32_t>http[i]:
            return 0
    at += 4
    c = PyUnicode_READ(kind, data, at)
    if c | 32 == c's' or c == 0x17F:  # to a pattern, the letter of old for "s" is one
        at += 1
    if (
        size < at + 3
        or PyUnicode_READ(kind, data, at) != c':'
        or PyUnicode_READ(kind, data, at + 1) != c'/'
        or PyUnicode_READ(kind, data, at + 2) != c'/'
    ):
        return 0
    return at + 3


cdef bint is_http(str text) except -1:
    """Return whether this is an absolute http or https URL, as `usp.scan.urls.is_http_url`."""
    cdef Py_ssize_t rest = after_http(text, 0)
    return rest > 0 and has_plain_host(text, rest) or bool(is_http_url(text))


cdef str unwrapped_text(str text):
    """Remove what is around a URL, as `usp.scan.urls.unwrapped`."""
    cdef Py_ssize_t start = 0, end = len(text)
    while start < end and wraps(text, start):
        start += 1
    while start < end and wraps(text, end - 1):
        end -= 1
    if start < end and (
        not is_word(text, start) or not is_word(text, end - 1)
        or character_at(text, start) == c'!' or character_at(text, end - 1) == c']'
    ):
        return unwrapped(text)
    return PyUnicode_Substring(text, start, end) if end - start < len(text) else text


cdef bint has_plain_host(str text, Py_ssize_t at):
    """Return whether a URL goes on with a host, and maybe a port, that need no closer look."""
    cdef int kind = PyUnicode_KIND(text), digits = 0
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t size = len(text)
    cdef bint has_letter = False
    cdef uint32_t c
    if at < size and PyUnicode_READ(kind, data, at) == c'.':
        return False
    while at < size:
        c = PyUnicode_READ(kind, data, at)
        if Py_UNICODE_ISALNUM(c) or c == c'_':
            has_letter = True
        elif c != c'.' and c != c'-':
            break
        at += 1
    if not has_letter:
        return False
    if at < size and PyUnicode_READ(kind, data, at) == c':':
        at += 1
        while at < size and c'0' <= PyUnicode_READ(kind, data, at) <= c'9':
            at += 1
            digits += 1
        if not 0 < digits < 5:
            return False
    return at == size or ends_part(PyUnicode_READ(kind, data, at))


cdef bint has_scheme(str text):
    """Return whether ASCII starts with a scheme and a colon."""
    cdef int kind = PyUnicode_KIND(text)
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t i
    cdef uint32_t c
    for i in range(len(text)):
        c = PyUnicode_READ(kind, data, i)
        if c == c':':
            return i > 0
        if not c'a' <= c | 32 <= c'z' and (not i or not (c'0' <= c <= c'9' or c == c'+' or c == c'.' or c == c'-')):
            return False
    return False


cdef bint is_other_host(str text):
    """Return whether a text is "//", a host that needs no closer look, and maybe a path."""
    cdef Py_ssize_t at
    for at in range(len(text)):
        if character_at(text, at) == c'?' or character_at(text, at) == c'#':
            return False
    return len(text) > 2 and character_at(text, 1) == c'/' and has_plain_host(text, 2)


cdef bint has_no_parameters(str text):
    """Return whether a name ends with its only semicolon."""
    cdef Py_ssize_t at
    for at in range(len(text)):
        if character_at(text, at) == c';':
            return at > 0 and at == len(text) - 1
    return False


cdef bint is_as_written(str text, Py_ssize_t start):
    """Return whether resolving a relative URL changes nothing in it, from `start` on.

    Its path has no "." and no "..", no empty parts, and nothing is empty: neither parameters, query nor fragment.
    """
    cdef int kind = PyUnicode_KIND(text)
    cdef void *data = PyUnicode_DATA(text)
    cdef Py_ssize_t size = len(text), i = start, part = start
    cdef uint32_t c
    while i < size:
        c = PyUnicode_READ(kind, data, i)
        if c == c'?' or c == c'#':
            break
        if c == c'/':
            if i == part and i or is_dots(kind, data, part, i):
                return False
            part = i + 1
        i += 1
    if is_dots(kind, data, part, i) or i and PyUnicode_READ(kind, data, i - 1) == c';':
        return False
    if i < size and PyUnicode_READ(kind, data, i) == c'?':
        i += 1
        if i == size or PyUnicode_READ(kind, data, i) == c'#':
            return False
        while i < size and PyUnicode_READ(kind, data, i) != c'#':
            i += 1
    return i + 1 != size


cdef inline bint is_dots(int kind, void *data, Py_ssize_t start, Py_ssize_t end):
    """Return whether a part of a path is "." or ".."."""
    if end == start or end - start > 2 or PyUnicode_READ(kind, data, start) != c'.':
        return False
    return end - start == 1 or PyUnicode_READ(kind, data, start + 1) == c'.'


cdef bint may_be_placeholder(str text) except -1:
    """Return whether a text may stand in place of a URL, once what is around it is removed."""
    cdef uint32_t c
    if not text:
        return True
    c = character_at(text, 0)
    if c >= 128 or KINDS[c] & (WRAPS | ODD) or c == c'#' or c == c'!':
        return True
    return len(text) < MAX_PLACEHOLDER + 4 and (text.lower() in PLACEHOLDERS or not is_word(text, len(text) - 1))
