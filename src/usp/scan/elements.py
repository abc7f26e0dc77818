"""What the scanner builds, and its stack of open tags: elements, fields, frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice

from usp.objects.problem import UNLOGGED, Place, ProblemLog
from usp.scan.tokens import Token, TokenKind
from usp.scan.values import MAX_FIELD_BYTES, FieldNotes, field_text
from usp.scan.vocabulary import Kind

__all__ = ["Element", "Field", "Frame", "alternate_link", "value_of"]


class Element:
    """An element that holds others: an entry, a group in it, or a field with attributes.

    `at` is the offset of its start tag. A line of a text sitemap, which is an entry too, has a place instead.
    """

    __slots__ = ("at", "attributes", "children", "cut_off", "fields", "kind", "name", "offsets", "text")

    def __init__(self, name: str, kind: Kind, at: int | Place, attributes: dict[str, str]) -> None:
        self.name = name
        self.kind = kind
        self.at = at
        self.attributes = attributes
        self.text = ""  # of a field with attributes; of an entry, its text outside of fields
        self.fields: dict[str, str] = {}  # name without prefix -> text; the first that is not empty counts
        self.offsets: dict[str, int] = {}  # of those texts
        self.children: list[Element] = []
        self.cut_off = False  # whether the document ended inside it

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self.fields and not self.children

    def get(self, *names: str) -> str:
        """Return the first of these fields that is not empty, else an empty text."""
        for name in names:
            if text := self.fields.get(name):
                return text
        return ""

    def place_of(self, name: str) -> int | Place:
        """Return where the text of a field is; where the element is, if there is no such field."""
        return self.offsets.get(name, self.at)

    def all(self, name: str) -> list[Element]:
        """Return the children of this name."""
        return [child for child in self.children if child.name == name]


def alternate_link(link: Element) -> tuple[str, str] | None:
    """Return the language and the URL of a link to a page in another language, as written; None for other links.

    A link without `rel` counts: its language says what it is for.
    """
    language, href = link.attributes.get("hreflang"), link.attributes.get("href")
    relation = link.attributes.get("rel") or "alternate"
    return (language, href) if language and href and "alternate" in relation.lower().split() else None


class Field:
    """A field whose text is being collected, into `element` if its attributes are kept too.

    `written` is its name as written in the document.
    """

    __slots__ = ("element", "is_full", "name", "size", "tokens", "written")

    def __init__(self, name: str, element: Element | None = None, written: bytes = b"") -> None:
        self.name = name
        self.written = written
        self.element = element
        self.tokens: list[Token] = []
        self.size = 0
        self.is_full = False  # whether it is complete: text that follows does not belong to it

    def add(self, token: Token) -> None:
        """Add a piece of text, unless there is too much already."""
        if self.is_full:
            return
        self.size += len(token.data)
        if self.size <= MAX_FIELD_BYTES or not self.tokens:
            self.tokens.append(token)
        else:
            del self.tokens[1:]

    def pieces(self) -> Iterator[tuple[bool, bytes]]:
        """Yield its text, and whether it is CDATA. Pieces of plain text are joined: a reference may be cut anywhere."""
        for kind, tokens in self._groups():
            yield kind is TokenKind.CDATA, b"".join(token.data for token in tokens)

    def at(self) -> int:
        """Return the offset of its text, after leading white space."""
        for token in self.tokens:
            if stripped := token.data.lstrip():
                return token.at + len(token.data) - len(stripped)
        return self.tokens[0].at if self.tokens else 0

    def offset_of(self, piece: int, index: int) -> int:
        """Return the offset of a byte in one of its pieces."""
        _, tokens = next(islice(self._groups(), piece, None))
        for token in tokens:
            if index < len(token.data):
                break
            index -= len(token.data)
        return token.at + index

    def _groups(self) -> Iterator[tuple[TokenKind, Iterator[Token]]]:
        return groupby(self.tokens, key=lambda token: token.kind)


def value_of(field: Field, log: ProblemLog) -> str:
    """Return the repaired text of a field. If it is too long, note that and return an empty text."""
    where = f"<{field.written.decode('utf-8', 'replace') or field.name}>"
    if field.size > MAX_FIELD_BYTES:
        log.add("X115", field.at, text=str(MAX_FIELD_BYTES), where=where)
        return ""
    return field_text(field.pieces(), None if log is UNLOGGED else FieldNotes(log, where, field.offset_of))


class Frame:
    """An open tag: the name that closes it, what it opened, and the namespaces around it if it declares any."""

    __slots__ = ("meaning", "outer", "tag")

    def __init__(self, tag: str, meaning: Element | Field | None, outer: dict[str, str] | None = None) -> None:
        self.tag = tag
        self.meaning = meaning
        self.outer = outer
