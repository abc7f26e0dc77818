"""The settings of `usp check` in a file: `[tool.usp.check]` in pyproject.toml, or `[check]` in usp.toml.

The nearest file counts: usp looks in the current folder and then in those above it. A pyproject.toml without
`[tool.usp]` is skipped. In one folder, usp.toml comes first. The command line wins over the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from usp.check.report import CheckedSitemap, Report
from usp.cli.check_options import LEVELS, NEVER
from usp.exceptions import InvalidArgumentError

__all__ = ["CheckSettings", "find_settings", "read_settings"]

_OWN_FILE = "usp.toml"
_PROJECT_FILE = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """What a file sets for `usp check`. None means that it says nothing. `folder` is that of the file."""

    select: list[str] | None = None
    ignore: list[str] | None = None
    fail_on: str | None = None
    url: str | None = None
    per_path_ignores: Mapping[str, list[str]] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)

    def without_ignored(self, report: Report) -> Report:
        """Return a report without the problems that `per-path-ignores` hides."""
        if not self.per_path_ignores:
            return report

        def is_wanted(sitemap: CheckedSitemap, code: str) -> bool:
            names = self._names(sitemap)
            return not any(
                code.startswith(tuple(codes)) and any(fnmatchcase(name, pattern) for name in names)
                for pattern, codes in self.per_path_ignores.items()
            )

        return report.filtered(is_wanted)

    def _names(self, sitemap: CheckedSitemap) -> set[str]:
        """Return what the patterns are matched against: the path from the folder of the settings, or the URL."""
        if not sitemap.is_file:
            return {sitemap.name, sitemap.url}
        path = os.path.relpath(os.path.abspath(sitemap.name), self.folder)
        return {PurePath(sitemap.name).as_posix(), PurePath(path).as_posix()}


def find_settings(start: Path) -> CheckSettings:
    """Return the settings of the nearest file, in a folder or above it; without any, settings that say nothing."""
    for folder in (start, *start.parents):
        for name in (_OWN_FILE, _PROJECT_FILE):
            path = folder / name
            if path.is_file() and (content := _content(path)) is not None:
                return _settings(content, path)
    return CheckSettings()


def read_settings(path: str) -> CheckSettings:
    """Return the settings of one file.

    :raises OSError: if it cannot be read.
    :raises InvalidArgumentError: if it is not TOML, or sets something that there is not.
    """
    return _settings(_content(Path(path)) or {}, Path(path))


def _content(path: Path) -> dict[str, Any] | None:
    """Return the table of usp in a file; None for a pyproject.toml that has none."""
    try:
        content = tomllib.loads(path.read_text("utf-8-sig"))  # some editors write a byte order mark
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgumentError(f"{path} is not valid TOML: {error}; correct it, or add --no-config") from None
    if path.name != _PROJECT_FILE:
        return content
    tool = content.get("tool")
    own = tool.get("usp") if isinstance(tool, dict) else None
    if own is not None and not isinstance(own, dict):
        raise InvalidArgumentError(f"{path}: tool.usp must be a table; write [tool.usp.check]")
    return own


def _settings(content: dict[str, Any], path: Path) -> CheckSettings:
    prefix = "tool.usp." if path.name == _PROJECT_FILE else ""
    for name in content:
        if name != "check":
            raise InvalidArgumentError(
                f"{path}: usp has no settings named {name!r}; those of usp check are in [{prefix}check]"
            )
    table = content.get("check", {})
    if not isinstance(table, dict):
        raise InvalidArgumentError(f"{path}: {prefix}check must be a table; write [{prefix}check]")
    found: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{path}: {key} in [{prefix}check]"
        if key not in _KEYS:
            near = get_close_matches(key.replace("_", "-"), _KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(_KEYS)}"
            raise InvalidArgumentError(f"{path}: there is no setting {key!r} in [{prefix}check]; {hint}")
        found[key.replace("-", "_")] = _KEYS[key](value, where)
    return CheckSettings(**found, folder=path.resolve().parent)


def _codes(value: object, where: str) -> list[str]:
    from usp.objects.codes import CODES  # imports all rules

    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidArgumentError(f'{where} must be a list of codes, such as ["X102", "P4"], not {value!r:.100}')
    codes = [one.strip().upper() for one in value]
    for start in codes:
        if not start or not any(code.startswith(start) for code in CODES):
            raise InvalidArgumentError(f"{where}: no code starts with {start!r:.100}")
    return codes


def _level(value: object, where: str) -> str:
    if not isinstance(value, str) or value not in (*LEVELS, NEVER):
        raise InvalidArgumentError(f"{where} must be one of {', '.join((*LEVELS, NEVER))}, not {value!r:.100}")
    return value


def _url(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.lower().startswith(("http://", "https://")):
        raise InvalidArgumentError(f'{where} must be a URL, such as "https://www.example.org/", not {value!r:.100}')
    return value


def _paths(value: object, where: str) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise InvalidArgumentError(f'{where} must be a table, such as {{ "archive/*" = ["P418"] }}, not {value!r:.100}')
    return {pattern: _codes(codes, f"{where}, {pattern!r:.100},") for pattern, codes in value.items()}


#: The settings that there are, each with the function that checks its value.
_KEYS: dict[str, Callable[[object, str], Any]] = {
    "select": _codes,
    "ignore": _codes,
    "per-path-ignores": _paths,
    "fail-on": _level,
    "url": _url,
}
