"""The cache of a probe: what was found at URLs, in a SQLite database.

Each page is written as soon as it has arrived, so a probe that is killed goes on where it ended. Facts are kept for a
day. What could not be fetched is tried again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from usp.check.probing.page import PageFacts
from usp.exceptions import InvalidArgumentError

__all__ = ["MAX_AGE", "VERSION", "FactsCache"]

VERSION = 1
#: Older facts are not used.
MAX_AGE = timedelta(days=1)


class FactsCache:
    """Facts of pages, by URL. Without a path, nothing is kept.

    :raises InvalidArgumentError: if the file is another database, or none.
    :raises OSError: if it cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, now: datetime) -> None:
        self._oldest = (now - MAX_AGE).astimezone(UTC).isoformat()
        self._path = None if path is None else os.fspath(path)
        self._database = None if self._path is None else self._opened(self._path)

    def _opened(self, path: str) -> sqlite3.Connection:
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, "No such folder", folder)
        with ExitStack() as stack:
            try:
                database = sqlite3.connect(path, isolation_level=None, timeout=10)  # each statement is a transaction
                stack.callback(database.close)
                _prepare(database, path)
            except sqlite3.OperationalError as error:
                raise OSError(f"{path} cannot be used as a cache: {error}") from None
            except sqlite3.DatabaseError:
                raise InvalidArgumentError(f"{path} is not a cache of usp; name another file") from None
            stack.pop_all()
        return database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._database is not None:
            self._database.close()

    def get(self, url: str) -> PageFacts | None:
        """Return the facts of a URL; None if there are none, or only old ones."""
        if self._database is None:
            return None
        statement = "SELECT facts FROM pages WHERE url = ? AND fetched_at >= ?"
        row = self._database.execute(statement, (_key(url), self._oldest)).fetchone()
        try:
            return None if row is None else PageFacts.from_dict(json.loads(row[0]))
        except (ValueError, TypeError, KeyError):  # written by hand, or by another version
            return None

    def put(self, facts: PageFacts) -> None:
        """Keep the facts of a URL, if something has answered there."""
        if self._database is None or facts.status is None or not facts.fetched_at:
            return
        row = _key(facts.url), facts.fetched_at, json.dumps(facts.to_dict())
        try:
            self._database.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", row)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self._path} cannot be written: {error}") from None


def _prepare(database: sqlite3.Connection, path: str) -> None:
    """Make the table if it is not there. Raise an error if the database is something else."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if version not in (0, VERSION) or (version == 0 and tables):
        raise InvalidArgumentError(f"{path} is not a cache of this version of usp; name another file")
    # Killing usp loses nothing; a crash of the machine may lose the last pages, and nothing else.
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("CREATE TABLE IF NOT EXISTS pages (url TEXT PRIMARY KEY, fetched_at TEXT, facts TEXT)")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _key(url: str) -> str:
    return url.encode("utf-8", "backslashreplace").decode()
