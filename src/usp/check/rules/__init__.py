"""All rules, by code. Each module of this package has the rules of one subject; `rule` says what a rule is."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from usp.check.rules import (
    dates,
    encodings,
    images,
    languages,
    limits,
    news,
    protocol,
    robots,
    transport,
    urls,
    videos,
    webpages,
    xml,
)
from usp.check.rules.rule import SURVEYED_BY_CODE, EntryRule, Rule
from usp.objects.codes import GROUPS
from usp.scan import (
    SURVEYED,
)

__all__ = ["RULES", "ensure_consistent"]

MODULES = (xml, encodings, dates, protocol, urls, news, images, videos, languages, robots, transport, webpages, limits)


def ensure_consistent(modules: Iterable[ModuleType]) -> None:
    """Check the rules of modules against each other and against the survey.

    :raises ValueError: if two rules have one code, if a code has no group, or if a rule and the survey disagree about
        its compiled form. The message names the rule and the file.
    """
    seen: dict[str, str] = {}
    for module in modules:
        for rule in module.RULES:
            if rule.code in seen:
                raise ValueError(
                    f"{module.__file__}: rule {rule.code} is also in {seen[rule.code]}; give one of them another code"
                )
            if rule.code[:1] not in GROUPS:
                raise ValueError(f"{module.__file__}: rule {rule.code} is of no group; see usp/objects/codes.py")
            seen[rule.code] = str(module.__file__)
            is_compiled = isinstance(rule, EntryRule) and rule.compiled == SURVEYED_BY_CODE
            if is_compiled and rule.code not in SURVEYED:
                raise ValueError(
                    f"{module.__file__}: rule {rule.code} says that it has a compiled form, but it is not in SURVEYED"
                    " of usp/scan/survey.py"
                )
            if not is_compiled and rule.code in SURVEYED:
                raise ValueError(
                    f"{module.__file__}: rule {rule.code} is in SURVEYED of usp/scan/survey.py, but does not say that"
                    " it has a compiled form"
                )
    if missing := [code for code in SURVEYED if code not in seen]:
        raise ValueError(f"usp/scan/survey.py: SURVEYED has {', '.join(missing)}, but there is no such rule")


ensure_consistent(MODULES)
RULES: dict[str, Rule] = {rule.code: rule for module in MODULES for rule in module.RULES}
