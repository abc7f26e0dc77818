"""Entries of an XML document: the content of each `<url>`, `<sitemap>`, `<item>` or `<entry>`.

`XMLScanner` turns tokens into `Element`s by the tables of `vocabulary`. It keeps every good entry of a bad document. A
tag that is not closed, closed twice, or in the wrong case, prefix or namespace costs at most its own field. An entry
ends where the next one starts, so nothing leaks from one into the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from usp.objects.page import SitemapPage
from usp.objects.problem import UNLOGGED, ProblemLog
from usp.scan.elements import Element, Field, Frame, value_of
from usp.scan.encodings import IsCut, never_cut
from usp.scan.grammar import Grammar, grammar_of
from usp.scan.tokens import END_TAG, START_TAG, Token, Tokenizer, TokenKind, attributes
from usp.scan.values import TextNotes, plain_text_of
from usp.scan.vocabulary import (
    DIALECTS,
    PREFIXES,
    ROOTS,
    UNPREFIXED,
    VOID_TAGS,
    Dialect,
    Kind,
    namespace_of_declaration,
    namespace_of_prefix,
    note_outside,
    note_root,
    note_unknown,
)

if TYPE_CHECKING:
    from usp.scan.plain import Reader

__all__ = ["XMLScanner"]

MAX_DEPTH = 256
_MAX_WRAPPERS = 32  # elements around an entry; if there are more, some were never closed
_URL_FIELDS = frozenset({"loc", "link", "guid"})  # text after a tag inside them is not part of the URL
_MAX_NAMESPACES = 64  # in force at once
_MAX_PLAIN_DEPTH = 8  # elements around a plain entry
_MAX_GRAMMARS = 16  # changes of namespaces; after that, no plain entries are looked for
_MAX_NAMES = 1_000  # distinct tag names to remember
_WITH_ATTRIBUTES = Kind()
_REPEATABLE = frozenset({"lastmod", "changefreq", "priority"})  # fields that sites write twice by mistake


class XMLScanner:
    """Yields the entries of one document, in order. `root` is known once the first entry, or the end, is reached.

    `root` is one of the keys of `vocabulary.DIALECTS`, or None if the document has no known root. Then `unknown_root`
    is its name, if it has one. `tokens.refused` says if the whole document is refused.
    """

    def __init__(self, chunks: Iterable[bytes], log: ProblemLog, is_cut: IsCut = never_cut) -> None:
        self.tokens = Tokenizer(chunks, log, is_cut)
        self._token_iterator = iter(self.tokens)
        self._log = log
        self._is_logged = log is not UNLOGGED
        self.root: str | None = None
        self.unknown_root: str | None = None
        self.base = ""  # the root's xml:base, the base of relative URLs
        self._dialect: Dialect | None = None
        self._namespaces: dict[str, str] = {}  # prefix -> our name of its namespace
        self._names: dict[bytes, tuple[str, str]] = {}  # cache of `_resolve`, for the namespaces in force
        self._stack: list[Frame] = []
        self._open_tags: Counter[str] = Counter()
        self._too_deep = 0
        self._entry: Element | None = None
        self._field: Field | None = None
        self._loose = Field("")  # text in the open entry, outside its fields
        self._finished: list[Element] = []
        self._grammars = 0  # how many there were
        self._known_grammar: Grammar | None = None
        self._undeclared: set[str] = set()  # prefixes that are used but not declared
        self._grammar_namespaces: dict[str, str] | None = None  # the namespaces of `_known_grammar`

    def find_root(self) -> None:
        """Read until the root is known, and no further."""
        while self.root is None and self.unknown_root is None and self._step():
            pass

    def __iter__(self) -> Iterator[Element]:
        while self._step():
            if self._finished:
                yield from self._finished
                self._finished.clear()
        yield from self._finished

    def batches(self, reader: Reader) -> Iterator[tuple[list[SitemapPage], list[Element]]]:
        """Yield pages of the entries that a fast reader takes, if it makes pages, and all other entries; in order."""
        goes_on = True
        while goes_on:
            if self._entry is None and (grammar := self._grammar()) is not None:
                yield from self._plain(reader, grammar)
            goes_on = self._step()
            if self._finished:
                yield [], self._finished
                self._finished = []

    def _plain(self, reader: Reader, grammar: Grammar) -> Iterator[tuple[list[SitemapPage], list[Element]]]:
        full = more = True
        while full or (more and self.tokens.extend()):
            pages, position, more, full = reader.take(grammar, *self.tokens.unread)
            self.tokens.skip_to(position)
            yield pages, []

    def _grammar(self) -> Grammar | None:
        """Return what a plain entry may hold here, or None if this is not right below the root of a urlset."""
        is_urlset = self.root == "urlset" and self._dialect is DIALECTS["urlset"]
        is_here = is_urlset and 0 < len(self._stack) <= _MAX_PLAIN_DEPTH
        if not is_here or self._too_deep or self._open_tags["script"]:
            return None
        if self._grammar_namespaces is not self._namespaces:
            self._grammar_namespaces = self._namespaces
            self._grammars += 1
            is_usual = self._grammars <= _MAX_GRAMMARS
            known = frozenset(self._undeclared) if self._is_logged else PREFIXES
            namespaces = tuple(self._namespaces.items())
            self._known_grammar = grammar_of(namespaces, known, self._is_logged) if is_usual else None
        return self._known_grammar

    def _step(self) -> bool:
        """Process the next token. Return False at the end, or if the document has no entries."""
        token = next(self._token_iterator, None)
        if token is None:
            self._cut_off()
            return False
        if token.kind is TokenKind.LEAF:
            if self._leaf(token):
                return True
            token = self.tokens.start_of_leaf(token)
        kind = token.kind
        if kind is TokenKind.TEXT or kind is TokenKind.CDATA:
            self._text(token)
        elif kind is TokenKind.END:
            self._end(self._resolve(token.name)[1])
        else:
            self._start(token)
            if kind is TokenKind.EMPTY or token.name.lower() in VOID_TAGS:
                self._end(self._resolve(token.name)[1])
        return self.unknown_root is None

    def _resolve(self, raw: bytes) -> tuple[str, str]:
        """Return a name as in the vocabulary, and as its end tag must have it: lower case, without prefix."""
        known = self._names.get(raw)
        if known is None:
            written = raw.decode("utf-8", "replace")
            prefix, colon, local = written.lower().rpartition(":")
            if prefix in self._namespaces:
                namespace = self._namespaces[prefix]
            else:
                namespace = self._namespace_of_undeclared(prefix) if colon else ""
            home = self._dialect.home if self._dialect else ""
            at_home = namespace in ("", home)
            if at_home and home == "sitemap" and not written.endswith(local):
                self._log.add("P410", self.tokens.tag_at, text=written, where=local)
            known = (local if at_home else f"{namespace}:{local}", local)
            if len(self._names) < _MAX_NAMES:
                self._names[raw] = known
        return known

    def _namespace_of_undeclared(self, prefix: str) -> str:
        """Return the namespace that an undeclared prefix probably means.

        Note the prefix the first time. After that, plain entries may have it.
        """
        if prefix == "xml":
            return "xml"  # needs no declaration
        if prefix not in self._undeclared and len(self._undeclared) < _MAX_NAMESPACES:
            self._undeclared.add(prefix)
            self._log.add("X117", self.tokens.tag_at, text=prefix)
            self._grammar_namespaces = None
        return namespace_of_prefix(prefix, self._dialect)

    def _declare(self, raw: bytes) -> dict[str, str] | None:
        """Apply the namespaces that a tag declares. Return those around it, to restore when it closes."""
        declared = {
            name[6:]: namespace_of_declaration(name[6:], uri)
            for name, uri in attributes(raw).items()
            if name == "xmlns" or name.startswith("xmlns:")
        }
        if not declared or len(self._namespaces) >= _MAX_NAMESPACES:
            return None
        outer, self._namespaces = self._namespaces, self._namespaces | declared
        self._names.clear()
        return outer

    def _start(self, token: Token) -> None:
        if len(self._stack) >= MAX_DEPTH:
            if not self._too_deep:
                self._log.add("X114", self.tokens.tag_at, text=str(MAX_DEPTH))
                self.tokens.judge = None  # expat keeps every element that is open
            self._too_deep += 1 + self.tokens.skip_tags(START_TAG)
            return
        outer = self._declare(token.data) if b"xmlns" in token.data.lower() else None
        name, tag = self._resolve(token.name)
        if not self._stack and tag in ROOTS:
            self._enter(tag, token)
            name, tag = self._resolve(token.name)
        elif not self._stack and self.root is not None:
            note_outside(self.tokens.tag_at, False, self._log)
        if self._dialect is None:
            self.unknown_root = tag
            return
        depth = len(self._stack)
        meaning = self._meaning_of(name, tag, token, self._dialect)
        if outer is not None and len(self._stack) < depth:
            outer = self._declare(token.data)  # elements around the tag were closed, and their namespaces with them
        self._push(tag, meaning, outer)

    def _leaf(self, token: Token) -> bool:
        """Store a leaf at once if it is a field, as nearly all are. Return False if it is not."""
        name, tag = self._resolve(token.name)
        holder = self._stack[-1].meaning if self._stack else None
        is_here = isinstance(holder, Element) and name in holder.kind.fields and not holder.fields.get(tag)
        if isinstance(holder, Element) and is_here and len(self._stack) < MAX_DEPTH:
            value = plain_text_of(token.data)
            if value is None:
                field = Field(tag, None, token.name)
                field.add(Token(TokenKind.TEXT, b"", token.data, token.at))
                value = value_of(field, self._log)
            holder.fields[tag] = value
            if self._is_logged:
                holder.offsets[tag] = token.at + len(token.data) - len(token.data.lstrip())
            return True
        return False

    def _enter(self, tag: str, token: Token) -> None:
        """Start a document: its root says of which kind it is, or its first entry if the root is missing."""
        if self._dialect is not None and tag not in self._dialect.entries:
            self._log.add("X111", self.tokens.tag_at)
        stated = attributes(token.data)
        self.base = self.base or stated.get("xml:base", "")
        note_root(tag, token.name, stated, self.tokens.tag_at, self._log)
        self.root = self.root or ROOTS[tag]
        self._dialect = DIALECTS[ROOTS[tag]]
        # The namespace of the root and the default one are the document's own, whatever their URIs.
        prefix = token.name.decode("utf-8", "replace").lower().rpartition(":")[0]
        home = {p: "" for p in ("", prefix) if self._namespaces.get(p, "rdf") != "rdf"}
        self._namespaces = self._namespaces | home
        self._names.clear()

    def _meaning_of(self, name: str, tag: str, token: Token, dialect: Dialect) -> Element | Field | None:
        """Return what a start tag opens here: an entry, a group, a field, or nothing."""
        if self._open_tags["script"]:
            return None  # added to the document by the web server
        if name in dialect.entries:
            self._make_room()
            return self._new_entry(name, dialect, self._attributes(token))
        holder, name = self._holder_of(name, tag)
        if holder is self._entry and dialect.home == "sitemap" and tag in UNPREFIXED and name == tag:
            self._log.add("P426", self.tokens.tag_at, text=name, where=UNPREFIXED[tag])
        if holder is None and name == "loc" and dialect.implied and self._entry is None:
            self._log.add("P413", self.tokens.tag_at, where=dialect.implied)
            holder = self._new_entry(dialect.implied, dialect)
            self._push("", holder)
        if holder is None:
            if self._field is not None and self._field.name in _URL_FIELDS:
                self._field.is_full = any(not token.data.isspace() for token in self._field.tokens)
            if dialect.home == "sitemap" and name == tag and (parent := self._parent()):
                note_unknown(tag, parent, self.tokens.tag_at, self._log)
            return None
        while self._stack[-1].meaning is not holder:  # a field or group ends where its next sibling starts
            self._log.add("X107", self.tokens.tag_at, text=self._stack[-1].tag)
            self._pop()
        if name == "loc" and holder is self._entry and holder.fields.get("loc"):
            holder = self._second_entry(holder, dialect)
        return self._open(holder, name, tag, token)

    def _open(self, holder: Element, name: str, tag: str, token: Token) -> Element | Field:
        """Open a field or a group in its holder."""
        kind = holder.kind
        element = None
        if name not in kind.fields:
            inner = kind.groups.get(name, _WITH_ATTRIBUTES)
            element = Element(tag, inner, self.tokens.tag_at, self._attributes(token))
            holder.children.append(element)
            if name in kind.groups:
                return element
        elif holder is self._entry and name in _REPEATABLE and holder.fields.get(tag):
            self._log.add("P431", self.tokens.tag_at, text=tag, where=holder.name)
        self._field = Field(tag, element, token.name)
        return self._field

    def _attributes(self, token: Token) -> dict[str, str]:
        if not token.data:
            return {}
        notes = None
        if self._is_logged and b"&" in token.data:
            notes = TextNotes.of_tag(self._log, token.name, self.tokens.tag_at)
        return attributes(token.data, notes)

    def _parent(self) -> str:
        """Return the entry or the root that the next element stands in; nothing if it is in something else."""
        if self._entry is not None:
            return self._entry.name if self._stack[-1].meaning is self._entry else ""
        tag = self._stack[-1].tag if self._stack else ""
        return tag if tag in DIALECTS else ""

    def _holder_of(self, name: str, tag: str) -> tuple[Element | None, str]:
        """Return the innermost open element that may hold this name, if nothing unknown is between, and its name there.

        A plain `<loc>` in an `<image:image>` belongs to the image if the page already has one, else to the page.
        """
        for frame in reversed(self._stack):
            holder = frame.meaning
            if holder is None:
                break
            if isinstance(holder, Field):
                continue
            if name in holder.kind:
                return holder, name
            if holder is self._entry:
                break
            prefixed = f"{holder.name}:{name}"
            if prefixed in holder.kind.fields and self._entry is not None and self._entry.fields.get(tag):
                self._log.add("P426", self.tokens.tag_at, text=name, where=prefixed)
                return holder, prefixed
        return None, name

    def _make_room(self) -> None:
        """Close the open entry, and elements before it that were never closed, because a new entry starts."""
        if self._entry is not None:
            self._log.add("X107", self.tokens.tag_at, text=self._entry.name)
            self._close_entry()
        if len(self._stack) > _MAX_WRAPPERS:
            while len(self._stack) > 1:
                self._pop()

    def _new_entry(self, name: str, dialect: Dialect, attributes: dict[str, str] | None = None) -> Element:
        self._entry = Element(name, dialect.entries[name], self.tokens.tag_at, attributes or {})
        self._loose = Field(name)
        return self._entry

    def _second_entry(self, entry: Element, dialect: Dialect) -> Element:
        """Start a new entry at a second `<loc>`: the tags between the two are missing."""
        self._log.add("P405", self.tokens.tag_at, where=entry.name)
        tag = self._stack[-1].tag
        self._close_entry()
        second = self._new_entry(entry.name, dialect)
        self._push(tag, second)
        return second

    def _text(self, token: Token) -> None:
        if self._too_deep:
            return
        if self._field is not None:
            self._field.add(token)
        elif self._entry is not None and self._stack[-1].meaning is self._entry:
            if not self._loose.tokens:
                token = token._replace(data=token.data.lstrip())
            if token.data:
                self._loose.add(token)
        elif not self._stack and not token.data.isspace():
            note_outside(token.at + len(token.data) - len(token.data.lstrip()), self.root is None, self._log)

    def _end(self, tag: str) -> None:
        if self._too_deep:
            self._too_deep -= 1 + self.tokens.skip_tags(END_TAG, self._too_deep - 1)
            return
        if not self._open_tags[tag]:
            if tag.encode() not in VOID_TAGS:
                self._log.add("X106", self.tokens.tag_at, text=tag)
            return
        while self._stack[-1].tag != tag:
            if self._stack[-1].tag:
                self._log.add("X107", self.tokens.tag_at, text=self._stack[-1].tag)
            self._pop()
        self._pop()

    # The stack

    def _push(self, tag: str, meaning: Element | Field | None, outer: dict[str, str] | None = None) -> None:
        self._stack.append(Frame(tag, meaning, outer))
        self._open_tags[tag] += 1

    def _pop(self) -> None:
        frame = self._stack.pop()
        self._open_tags[frame.tag] -= 1
        if frame.outer is not None:
            self._namespaces = frame.outer
            self._names.clear()
        if frame.meaning is None:
            return
        if frame.meaning is self._entry:
            if self._loose.tokens and not self._entry.get("loc"):
                self._entry.text = value_of(self._loose, self._log)
            self._finished.append(self._entry)
            self._entry = None
        elif isinstance(frame.meaning, Field):
            self._close_field(frame.meaning)

    def _close_entry(self) -> None:
        """Close the open entry, and everything that is open in it."""
        while self._entry is not None:
            self._pop()

    def _close_field(self, field: Field) -> None:
        self._field = None
        value = value_of(field, self._log)
        holder = self._stack[-1].meaning
        if field.element is not None:
            field.element.text = value
        elif isinstance(holder, Element) and not holder.fields.get(field.name):
            holder.fields[field.name] = value
            if self._is_logged:
                holder.offsets[field.name] = field.at() or self.tokens.tag_at

    def _cut_off(self) -> None:
        """End a document with open tags. Drop a truncated field; keep a truncated entry with what it has."""
        if not self._stack:
            return
        if not self._log.is_cut:  # else it is our doing
            self._log.add("X113", self.tokens.offset, text=next((f.tag for f in reversed(self._stack) if f.tag), ""))
        if self._entry is not None:
            self._entry.cut_off = True
            self._loose.tokens.clear()
            while isinstance(self._stack[-1].meaning, Field) or self._stack[-1].meaning is None:
                self._stack.pop()
            self._close_entry()
