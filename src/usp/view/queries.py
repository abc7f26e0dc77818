"""Run queries of people, each in a process that can be killed.

DuckDB cannot interrupt the computation of one value, which may take days, and some queries end their process. A process
that has answered waits for the next query.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.resources import files
from typing import Any

from usp.exceptions import InvalidArgumentError, UspError
from usp.extras import extra

__all__ = ["CANCELLED", "Queries", "QueryCancelled", "QueryProcess", "QueryTimeout"]

_START_SECONDS = 30.0
_MAX_PROCESSES = 4  # at once
_TOO_MANY = f"{_MAX_PROCESSES} queries are running. Wait for one of them, or cancel it."
CANCELLED = "The query was cancelled."
_CRASHED = "DuckDB could not run the query, and its process ended. Write a simpler one."


class QueryTimeout(UspError):
    """A query took too long."""


class QueryCancelled(UspError):
    """A query was cancelled."""


class QueryProcess:
    """A process that runs one query at a time. Any thread may interrupt it."""

    def __init__(self, parts: str, temporary: str) -> None:
        self.version = -1  # of the tables that it has
        self._spill = tempfile.mkdtemp(prefix="query-", dir=temporary)
        self._is_ready = False
        self._end: UspError | None = None  # why it was killed
        packages = str(files("usp").joinpath(os.pardir))
        paths = [os.path.abspath(packages), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(  # noqa: S603 -- our own module
            [sys.executable, "-P", "-m", "usp.view.query_process", parts, self._spill],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C is for the server, which then ends it
        )

    @property
    def is_usable(self) -> bool:
        """Return whether it can take another query."""
        return self._end is None and self._process.poll() is None

    def interrupt(self) -> None:
        """Cancel the query that runs."""
        self._kill(QueryCancelled(CANCELLED))

    def _kill(self, why: UspError) -> None:
        self._end = self._end or why
        self._process.kill()

    def ask(self, query: str, tables: Mapping[str, str], seconds: float) -> tuple[Any, bool]:
        """Run a query. Return an Arrow table, and whether rows are missing because there are too many.

        :param tables: the files of tables that have changed.
        :raises InvalidArgumentError: if it is wrong, with DuckDB's message.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self._is_ready:
            with self._within(_START_SECONDS):
                self._process.stdout.readline()
            self._is_ready = True
        with self._within(seconds):
            with suppress(OSError):  # it has ended: there is no answer
                self._process.stdin.write(json.dumps({"query": query, "tables": tables}).encode() + b"\n")
                self._process.stdin.flush()
            line = self._process.stdout.readline()
            answer = json.loads(line) if line.endswith(b"\n") else {}
            data = self._process.stdout.read(answer.get("size", 0))
        if "error" in answer:
            raise InvalidArgumentError(answer["error"])
        if not answer or len(data) < answer["size"]:
            self._end = self._end or InvalidArgumentError(_CRASHED)
            raise self._end
        return extra("pyarrow", "view").ipc.open_stream(data).read_all(), answer["is_cut"]

    @contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._kill, [QueryTimeout(f"The query took longer than {seconds:g} seconds.")])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self._spill, ignore_errors=True)


class Queries:
    """The processes for queries. Any thread may use them.

    :param start: starts a process.
    """

    def __init__(self, start: Callable[[], QueryProcess]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._idle: list[QueryProcess] = []
        self._running = 0
        self._is_closed = False

    @contextmanager
    def process(self) -> Iterator[QueryProcess]:
        """Give a process. Afterwards it waits for another query, unless one waits already.

        :raises InvalidArgumentError: if too many are running.
        """
        with self._lock:
            if self._running == _MAX_PROCESSES:
                raise InvalidArgumentError(_TOO_MANY)
            self._running += 1
            found = self._idle.pop() if self._idle else None
        try:
            if found is not None and not found.is_usable:
                found.close()
                found = None
            found = found or self._start()
            yield found
        finally:
            with self._lock:
                self._running -= 1
                is_kept = found is not None and found.is_usable and not self._idle and not self._is_closed
                if is_kept and found is not None:
                    self._idle.append(found)
            if not is_kept and found is not None:
                found.close()

    def close(self) -> None:
        """End the process that waits, and keep no more."""
        with self._lock:
            self._is_closed = True
            waiting, self._idle = self._idle, []
        for process in waiting:
            process.close()
