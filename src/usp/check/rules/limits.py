"""C: limits of usp that cut a tree or a check. The walk and the check report these."""

from __future__ import annotations

from usp.check.rules.rule import INFO, WARNING, Rule

__all__ = ["RULES"]

RULES = (
    Rule("C901", WARNING, "{text}; the rest was skipped"),
    Rule("C902", INFO, "more than {total} {where}; usp looked for {text} among the first of them only"),
)
