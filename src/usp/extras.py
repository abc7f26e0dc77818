"""Import packages that only the extras of usp install, and say how to install them where they are missing.

The advice is a command for the tool that has installed usp: what one tool has installed, another often cannot change.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from usp.exceptions import MissingExtraError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

# Some imports are inside functions: this module is imported with every export, and most miss nothing.

__all__ = ["Installation", "extra"]

_NAME = "usp"
#: Packages that conda-forge calls otherwise.
_CONDA_NAMES = {"duckdb": "python-duckdb"}


def extra(module: str, name: str) -> Any:
    """Import a module that this extra installs.

    :raises MissingExtraError: if it is not installed; the message says how to install it.
    """
    known = sys.modules.get(module)
    if known is not None and not getattr(known.__spec__, "_initializing", False):  # nor does another thread import it
        return known
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        command = Installation.here().command(name, package)
        raise MissingExtraError(f"This needs {package}; install it with: {command}") from error


@dataclass(frozen=True, slots=True)
class Installation:
    """How usp was installed: where, by which tool, and from what."""

    prefix: str  #: the environment, such as a venv
    python: str
    installer: str = ""  #: the tool, as it has noted itself: pip, uv, conda; empty if usp is not installed
    source: str = ""  #: a folder or a URL; empty for a package index
    is_editable: bool = False
    has_pip: bool = True
    requirements: tuple[str, ...] = ()  #: of all extras, as the metadata has them

    @classmethod
    def here(cls) -> Installation:
        """Return how this usp was installed."""
        from importlib.metadata import PackageNotFoundError, distribution
        from importlib.util import find_spec

        try:
            metadata: Distribution | None = distribution(_NAME)
        except PackageNotFoundError:
            metadata = None
        return cls.of(metadata, sys.prefix, sys.executable, has_pip=find_spec("pip") is not None)

    @classmethod
    def of(cls, metadata: Distribution | None, prefix: str, python: str, *, has_pip: bool) -> Installation:
        """Return what the metadata of a distribution say; None if there is no such distribution."""
        if metadata is None:
            return cls(prefix, python, has_pip=has_pip)
        import json

        try:
            origin = json.loads(metadata.read_text("direct_url.json") or "{}")
        except ValueError:
            origin = {}
        return cls(
            prefix,
            python,
            installer=(metadata.read_text("INSTALLER") or "pip").strip().lower(),
            source=_source(origin),
            is_editable=bool(origin.get("dir_info", {}).get("editable")),
            has_pip=has_pip,
            requirements=tuple(metadata.requires or ()),
        )

    def command(self, name: str, package: str) -> str:
        """Return the command that installs an extra, or at least a package of it."""
        wanted = self._wanted(name)
        if not self.installer:
            return self._pip(package)
        if self._has("pipx_metadata.json"):
            return _joined("pipx", "inject", os.path.basename(self.prefix), *self._packages(name, package))
        if self._has("uv-receipt.toml"):
            tool = os.path.basename(self.prefix)
            return _joined("uv", "tool", "install", *(wanted if tool == _NAME else (tool, "--with", wanted[-1])))
        if self.installer == "conda":
            packages = [_CONDA_NAMES.get(one, one) for one in self._packages(name, package)]
            return _joined("conda", "install", "-c", "conda-forge", *packages)
        if self.installer == "uv":
            return self._uv(*wanted)
        return self._pip(*wanted)

    def _wanted(self, name: str) -> tuple[str, ...]:
        """Return the arguments of pip for usp with this extra, from where it was installed."""
        if "://" in self.source:
            return (f"{_NAME}[{name}] @ {self.source}",)
        what = f"{self.source or _NAME}[{name}]"
        return ("-e", what) if self.is_editable else (what,)

    def _packages(self, name: str, package: str) -> list[str]:
        """Return the packages of an extra, without their versions."""
        pattern = re.compile(rf"""([\w.-]+).*\bextra == ['"]{name}['"]""")
        found = [match[1] for match in map(pattern.match, self.requirements) if match]
        return found or [package]

    def _has(self, file: str) -> bool:
        return os.path.isfile(os.path.join(self.prefix, file))

    def _pip(self, *arguments: str) -> str:
        """Return a command of pip for this environment, which may have none."""
        of_python = (self.python, "-m", "pip", "install", *arguments)
        if self.has_pip:
            return _joined("pip", "install", *arguments) if self._is_on_path("pip") else _joined(*of_python)
        if _program("uv"):
            return self._uv(*arguments)
        if _program("pip"):
            return _joined("pip", "--python", self.python, "install", *arguments)
        return f"{_joined(self.python, '-m', 'ensurepip')} && {_joined(*of_python)}"

    def _uv(self, *arguments: str) -> str:
        is_active = os.environ.get("VIRTUAL_ENV") == self.prefix
        return _joined("uv", "pip", "install", *(() if is_active else ("--python", self.python)), *arguments)

    def _is_on_path(self, program: str) -> bool:
        """Return whether a program is what a shell finds, and not that of another environment."""
        return os.path.dirname(_program(program)) == os.path.dirname(self.python)


def _program(name: str) -> str:
    """Return the path of a program that a shell would run; an empty one if there is none."""
    from shutil import which

    return which(name) or ""


def _source(origin: Any) -> str:
    """Return where a distribution is from, given its direct_url.json."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    url = str(origin.get("url", ""))
    if url.startswith("file:") and "dir_info" in origin:
        return url2pathname(urlsplit(url).path)
    version_control = origin.get("vcs_info", {})
    return f"{version_control['vcs']}+{url}" if version_control.get("vcs") else url


def _joined(*arguments: str) -> str:
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(arguments)
    from shlex import join

    return join(arguments)
