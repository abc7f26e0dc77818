"""What the scanner builds and what it has open: elements, fields, and the stack of tags."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from usp.scan.tokens import Token, TokenKind
from usp.scan.values import MAX_FIELD_BYTES
from usp.scan.vocabulary import Kind

__all__ = ["Element", "Field", "Frame"]


class Element:
    """An element that holds others: an entry, a group in it, or a field with attributes."""

    __slots__ = ("attributes", "children", "cut_off", "fields", "kind", "line", "name", "text")

    def __init__(self, name: str, kind: Kind, line: int, attributes: dict[str, str]) -> None:
        self.name = name
        self.kind = kind
        self.line = line
        self.attributes = attributes
        self.text = ""  # of a field with attributes; of an entry, what stands in it outside its fields
        self.fields: dict[str, str] = {}  # plain name -> text; the first that is not empty counts
        self.children: list[Element] = []
        self.cut_off = False  # whether the document ended inside it

    def get(self, *names: str) -> str:
        """The first of these fields that is there and not empty, else an empty text."""
        for name in names:
            if text := self.fields.get(name):
                return text
        return ""

    def all(self, name: str) -> list[Element]:
        """The children of this name."""
        return [child for child in self.children if child.name == name]


class Field:
    """A field whose text is being collected, into `element` where its attributes are wanted too."""

    __slots__ = ("element", "is_full", "name", "size", "tokens")

    def __init__(self, name: str, element: Element | None = None) -> None:
        self.name = name
        self.element = element
        self.tokens: list[Token] = []
        self.size = 0
        self.is_full = False  # whether what follows is no part of it any more

    def add(self, token: Token) -> None:
        """One more piece of text, unless there is too much already."""
        if self.is_full:
            return
        self.size += len(token.data)
        if self.size <= MAX_FIELD_BYTES:
            self.tokens.append(token)
        else:
            self.tokens.clear()

    def pieces(self) -> Iterator[tuple[bool, bytes]]:
        """The text, and whether it is CDATA; pieces of plain text are joined, as a reference may be cut anywhere."""
        for kind, tokens in groupby(self.tokens, key=lambda token: token.kind):
            yield kind is TokenKind.CDATA, b"".join(token.data for token in tokens)


class Frame:
    """An open tag: the name that closes it, what it opened, and the namespaces that were in force around it."""

    __slots__ = ("meaning", "outer", "tag")

    def __init__(self, tag: str, meaning: Element | Field | None, outer: dict[str, str] | None = None) -> None:
        self.tag = tag
        self.meaning = meaning
        self.outer = outer
