"""The self-check of a client: whether the installed version of its HTTP library calls usp's guards.

Address checks and deadlines hang on private names of HTTP libraries. A release that renames one would let requests
through unchecked, and nobody would notice. So each client checks its library before its first request in a process: all
names must exist, and an attempt to connect to a loopback address, under a policy that refuses it, must end in the
guard. If not, the client raises `UnguardedClientError`, and requests nothing.

A guard that works refuses before there is a socket: the check needs no network, and takes a millisecond. Mocks of the
caller's are bypassed. `usp.web_client.requests_internals` and `usp.web_client.aiohttp_internals` make the attempts.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable
from importlib import metadata
from types import ModuleType
from typing import Any

from usp.exceptions import UnguardedClientError
from usp.web_client.http_client import _HTTPClient
from usp.web_client.http_fetch import Fetch
from usp.web_client.policy import RequestPolicy, applying

__all__ = ["REFUSED_HOST", "REFUSED_PORT", "TRIAL_SECONDS", "library_function", "refused_fetch", "require", "unguarded"]

REFUSED_HOST = "127.0.0.1"
REFUSED_PORT = 1  # where nothing listens, if a broken guard lets the attempt through
TRIAL_SECONDS = 1.0


def refused_fetch() -> Fetch:
    """Return a fetch that must not connect to `REFUSED_HOST`. Its `refused` is set if a guard has refused that."""
    with applying(RequestPolicy("http://self-check.invalid/", private="refuse")):
        fetch = Fetch(_HTTPClient(), f"http://{REFUSED_HOST}:{REFUSED_PORT}/")
    fetch.deadline = time.monotonic() + TRIAL_SECONDS
    return fetch


def require(libraries: Iterable[str], names: Iterable[tuple[object, str]]) -> None:
    """Raise `UnguardedClientError` unless each object has all the names that stand beside it."""
    for owner, texts in names:
        for name in texts.split():
            if not hasattr(owner, name):
                kind = owner if isinstance(owner, type) else type(owner)
                raise unguarded(libraries, f"{kind.__module__}.{kind.__qualname__} has no {name}")


def unguarded(libraries: Iterable[str], why: str) -> UnguardedClientError:
    """Return the error for libraries whose connections cannot be guarded. It says which versions to install."""
    versions = " and ".join(f"{name} {metadata.version(name)}" for name in libraries)
    tested = " ".join(f"'{_requirement(name)}'" for name in libraries)
    return UnguardedClientError(
        f"usp cannot check what {versions} connects to, so it requests nothing: {why}. "
        f"Install versions that usp was tested with: pip install {tested}"
    )


def library_function(module: ModuleType, owner: type, name: str) -> Any:
    """Return the function that a library defines for a method; None if a mock has put one of its own in its place."""
    function = inspect.unwrap(getattr(owner, name))
    return function if getattr(function, "__globals__", None) is vars(module) else None


def _requirement(name: str) -> str:
    """Return what usp requires of a package, such as "urllib3<2.9,>=2.2"."""
    try:
        required = metadata.requires("usp") or []
    except metadata.PackageNotFoundError:  # it was not installed, only put on the path
        required = []
    return next((line.partition(";")[0].strip() for line in required if line.startswith(name)), name)
