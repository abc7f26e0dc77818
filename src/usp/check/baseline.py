"""Baselines: the problems that were there before, so that a check reports only new ones.

A baseline is a JSON file to keep in your repository. It has a version. For each sitemap and code, it holds how many
problems there are, and their texts:

    {
      "version": 1,
      "problems": {
        "public/sitemap.xml": {
          "P418": {"count": 2, "texts": {"https://www.example.org/rivers": 2}}
        }
      }
    }

It has no lines, so it does not matter where a problem moves. Files have the path that you give, sitemaps of a site
their URL. A check keeps only the first problems of each code in a sitemap. Where there are more, counts decide: those
that are more than before are new.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any, NamedTuple

from usp.check.report import CheckedSitemap, Report
from usp.exceptions import InvalidArgumentError
from usp.objects.problem import Problem, Problems

__all__ = ["VERSION", "Baseline", "Compared"]

VERSION = 1


class _Known(NamedTuple):
    """The known problems of a code in a sitemap: how many, and how many of them have which text."""

    number: int
    texts: Mapping[str, int]

    @property
    def is_whole(self) -> bool:
        """Whether every problem has its text here."""
        return sum(self.texts.values()) == self.number


_NONE = _Known(0, {})


class Compared(NamedTuple):
    """A report without the problems of a baseline, how many these are, and how many of the baseline are gone."""

    report: Report
    known: int
    gone: int


class Baseline:
    """Known problems, by sitemap and code."""

    def __init__(self, known: Mapping[str, Mapping[str, _Known]]) -> None:
        self._known = known

    @classmethod
    def of(cls, report: Report) -> Baseline:
        """Return a baseline with all problems of a report."""
        known: dict[str, dict[str, _Known]] = {}
        for sitemap in report.sitemaps:
            if sitemap.problems.counts:
                known[_key(sitemap)] = {
                    code: _Known(count, Counter(found.text for found in sitemap.problems if found.code == code))
                    for code, count in sorted(sitemap.problems.counts.items())
                }
        return cls(known)

    @classmethod
    def from_json(cls, text: str, name: str) -> Baseline:
        """Read a baseline.

        :param name: that of the file, for errors.
        :raises InvalidArgumentError: if it is not a baseline, or one of a later version.
        """
        try:
            content = json.loads(text)
            version = content["version"]
            if type(version) is not int or version < 1:
                raise ValueError("there is no such version")
            known = (
                {} if version > VERSION else {key: dict(_codes(codes)) for key, codes in content["problems"].items()}
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidArgumentError(f"{name} is not a baseline; write one with --write-baseline") from None
        if version > VERSION:
            raise InvalidArgumentError(
                f"{name}: version {version} of baselines is newer than this usp knows ({VERSION}); install a newer usp,"
                " or write the file again with --write-baseline"
            )
        return cls(known)

    def to_json(self) -> str:
        """Return the text of the file. Equal baselines have equal texts."""
        problems = {
            key: {code: {"count": one.number, "texts": dict(sorted(one.texts.items()))} for code, one in codes.items()}
            for key, codes in sorted(self._known.items())
        }
        return json.dumps({"version": VERSION, "problems": problems}, indent=2) + "\n"

    def compare(self, report: Report) -> Compared:
        """Return a report of the problems that are not in the baseline."""
        sitemaps, checked = [], set()
        for sitemap in report.sitemaps:
            key = _key(sitemap)
            sitemaps.append(replace(sitemap, problems=_new(sitemap.problems, self._known.get(key, {}))))
            checked.add(key)
        new = replace(report, sitemaps=tuple(sitemaps))
        known = report.counts().total() - new.counts().total()
        before = sum(one.number for key, codes in self._known.items() if key in checked for one in codes.values())
        return Compared(new, known, max(0, before - known))


def _key(sitemap: CheckedSitemap) -> str:
    return PurePath(sitemap.name).as_posix() if sitemap.is_file else sitemap.url


def _codes(codes: Mapping[str, Any]) -> Iterator[tuple[str, _Known]]:
    for code, known in codes.items():
        texts = known["texts"]
        numbers = (known["count"], *texts.values())
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError(f"{code} has something else than counts")
        yield code, _Known(known["count"], texts)


def _new(problems: Problems, known: Mapping[str, _Known]) -> Problems:
    """Return the problems that are new, with their counts."""
    kept: list[Problem] = []
    counts: Counter[str] = Counter()
    for code, count in problems.counts.items():
        before = known.get(code, _NONE)
        found = [problem for problem in problems if problem.code == code]
        left = Counter(before.texts)
        unknown = []
        for problem in found:
            if left[problem.text] > 0:
                left[problem.text] -= 1
            else:
                unknown.append(problem)
        # Where not all texts are known, before or now, a text that is missing there may be a known one.
        is_certain = before.is_whole and len(found) == count
        number = len(unknown) if is_certain else max(0, count - before.number)
        if number:
            counts[code] = number
            kept += unknown[:number]
    kept.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
    return Problems(kept, counts)
