"""E: encodings. The scanner reports these while it reads a document."""

from __future__ import annotations

from usp.check.rules.rule import ERROR, WARNING, Rule

__all__ = ["RULES"]

RULES = (
    Rule("E201", WARNING, 'the document says its encoding is "{text}", but it is not; read as {where}'),
    Rule("E202", WARNING, 'the encoding "{text}" is not known; read as UTF-8'),
    Rule("E203", ERROR, "bytes in {where} that are not {text}; read as Windows-1252"),
    Rule("E204", WARNING, "the document is in {text}; a sitemap must be in UTF-8"),
    Rule("E205", WARNING, "invisible characters around the text in {where}; they were removed"),
)
