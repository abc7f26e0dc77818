"""X: XML syntax. The scanner reports these while it reads a document."""

from __future__ import annotations

from usp.check.rules.rule import ERROR, INFO, Rule

__all__ = ["RULES"]

RULES = (
    Rule("X101", ERROR, "there is something before the document; remove it: the document must start the file"),
    Rule("X102", ERROR, 'bare "&" in {where}; write "&amp;"'),
    Rule("X103", ERROR, 'unknown entity "{text}" in {where}; write the character itself'),
    Rule("X104", ERROR, 'stray "<" in text; write "&lt;"'),
    Rule("X105", ERROR, 'malformed tag "{text}"; write it as <name> or </name>'),
    Rule("X106", ERROR, "</{text}> closes nothing; remove it, or add the <{text}> that it closes"),
    Rule("X107", ERROR, "<{text}> is never closed; write </{text}> where it ends"),
    Rule("X108", ERROR, "control character in {where}; remove it"),
    Rule("X109", ERROR, "NUL bytes in the document; remove them"),
    Rule("X110", INFO, "a DOCTYPE was skipped; a sitemap needs none"),
    Rule("X111", ERROR, "another document starts after the first one ended; write one document to a file"),
    Rule("X112", ERROR, '"{text}" is never closed'),
    Rule("X113", ERROR, "the document is truncated; it ends inside <{text}>"),
    Rule("X114", ERROR, "nested deeper than {text} elements; deeper elements were skipped"),
    Rule("X115", ERROR, "{where} is longer than {text} bytes and was skipped"),
    Rule(
        "X116",
        ERROR,
        "a DOCTYPE inside the document has declarations of its own, or no end; everything after it was skipped",
    ),
    Rule("X117", ERROR, 'the prefix "{text}" is never declared; write xmlns:{text}="..." on the root element'),
    Rule("X118", ERROR, "there is something after the document; remove it"),
    Rule("X119", ERROR, 'the XML declaration is broken; write <?xml version="1.0" encoding="UTF-8"?>'),
    Rule("X120", ERROR, "an XML declaration inside the document; it may stand only at its very start"),
    Rule("X121", ERROR, 'a second attribute "{text}" in one tag; remove one of them'),
    Rule("X122", ERROR, 'attributes of a tag are malformed at "{text}"; write them as name="value"'),
    Rule("X123", ERROR, 'two hyphens "--" inside a comment; a comment may have them only at its end'),
    Rule("X124", ERROR, 'a "]]>" in text, with no CDATA section before it; write "]]&gt;"'),
    Rule("X125", ERROR, '"{text}" refers to a character that XML does not allow; remove it'),
    Rule("X126", ERROR, "</{text}> closes another element than the one that is open; the names must be the same"),
    Rule("X127", ERROR, 'XML parsers stop at "{text}": {where}'),
)
