"""Notice that files change, by looking at them again and again.

Looking costs little and works on every file system, also on those of containers and networks, where systems do not
always tell of changes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

__all__ = ["State", "changes", "state_of"]

#: The files below some paths -> when they were changed last, and their size.
State = dict[str, tuple[int, int]]

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_SETTLE = 0.3  # a build writes many files: wait until no more change
_MAX_LOOKS_TO_SETTLE = 100  # files that change all the time are checked all the same


def state_of(paths: Sequence[str], ignored: frozenset[str] = frozenset()) -> State:
    """Return the state of files, and of all files in folders. What is gone meanwhile is left out.

    :param ignored: real paths that do not count, such as that of the output.
    """
    found: State = {}
    for path in paths:
        for file in _files(path):
            if os.path.realpath(file) in ignored:
                continue
            try:
                stat = os.stat(file)
            except OSError:
                continue
            found[file] = stat.st_mtime_ns, stat.st_size
    return found


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(folder, name) for name in names if not name.startswith("."))


def changes(
    paths: Sequence[str],
    ignored: frozenset[str] = frozenset(),
    *,
    last: State | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[State]:
    """Wait for a change again and again, and yield the state each time. A burst of changes counts as one.

    :param last: the state that you know. Give the one before a check, so that no change during it is missed.
    """
    last = state_of(paths, ignored) if last is None else last
    while True:
        now = state_of(paths, ignored)
        if now == last:
            sleep(_SECONDS_BETWEEN_LOOKS)
            continue
        for _ in range(_MAX_LOOKS_TO_SETTLE):
            sleep(_SECONDS_TO_SETTLE)
            settled, now = now, state_of(paths, ignored)
            if now == settled:
                break
        last = now
        yield now
