"""Asks workers in turn, and does the arithmetic of ratios. What a worker does is its own business."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any

from bench import documents
from bench.environments import ROOT, python_of

HERE = Path(__file__).resolve().parent
REQUEST_SECONDS = 600
#: After this long, a comparison has as many rounds as it has.
ROUNDS_SECONDS = 150


class NotMeasured(Exception):
    """Something that gave no number; its text says why. `is_skipped` if that is nobody's fault yet."""

    def __init__(self, reason: str, is_skipped: bool = False) -> None:
        super().__init__(reason.replace(f"{ROOT}/", ""))
        self.is_skipped = is_skipped


@dataclass(frozen=True)
class Subject:
    """One side of a comparison: a worker's task on a file, in an environment."""

    environment: str
    task: str
    file: str
    is_pure: bool = False


class Worker:
    """A process of an environment's Python that answers requests."""

    def __init__(self, python: str, log: Path, is_pure: bool = False) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "USP_PURE")}
        environment |= {"TZ": "UTC"} | ({"USP_PURE": "1"} if is_pure else {})
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 -- all of it stands here
                [python, "-P", str(HERE / "worker.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is for whoever started this, who ends it
            )

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, arguments]).encode() + b"\n")
        self._process.stdin.flush()
        start, limit = time.monotonic(), Timer(REQUEST_SECONDS, self._process.kill)
        limit.start()
        try:
            line = self._process.stdout.readline()
        finally:
            limit.cancel()
        if not line:
            self.close()
            late = time.monotonic() - start >= REQUEST_SECONDS
            raise NotMeasured(f"not done after {REQUEST_SECONDS} s" if late else f"its process ended: {self._last()}")
        answer: dict[str, Any] = json.loads(line)
        if reason := answer.get("missing") or answer.get("error"):
            raise NotMeasured(reason, is_skipped="missing" in answer)
        return answer

    def is_alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def _last(self) -> str:
        """The last that it complained of."""
        lines = self._log.read_text("utf-8", "replace").split("\n")
        return next((line[:150] for line in reversed(lines) if line.strip()), "without a word")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


@dataclass
class Workshop:
    """Where measuring happens: a temporary folder, the files in it, and the processes, all gone when it is closed."""

    folder: Path
    rounds: int
    _stack: ExitStack = field(default_factory=ExitStack)
    _workers: dict[str, Worker] = field(default_factory=dict)
    _servers: dict[tuple[str, ...], list[str]] = field(default_factory=dict)  # their homepages
    _ports: dict[Path, int] = field(default_factory=dict)
    _logs: int = 0

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def fresh_worker(self, environment: str, is_pure: bool = False) -> Iterator[Worker]:
        """A worker for one use."""
        self._logs += 1
        worker = Worker(python_of(environment), self.folder / f"{self._logs}.log", is_pure)
        try:
            yield worker
        finally:
            worker.close()

    def worker(self, environment: str) -> Worker:
        """A worker for what is not measured, for as long as the workshop is open."""
        if environment not in self._workers or not self._workers[environment].is_alive():
            self._workers[environment] = self._stack.enter_context(self.fresh_worker(environment))
        return self._workers[environment]

    def file(self, name: str) -> str:
        """The path of `urlset.xml`, `news.xml`, or one of them with `.gz`, written when it is first asked for."""
        path = self.folder / name
        if not path.exists():
            data = {"urlset": documents.urlset, "news": documents.news}[name.partition(".")[0]]()
            path.write_bytes(documents.compressed(data) if name.endswith(".gz") else data)
        return str(path)

    def site(self, sitemaps: int, pages: int, delay: float = 0) -> str:
        """The homepage of a site that a process of its own serves from now on, each answer after a delay in seconds."""
        folder = self.folder / f"site-{sitemaps}-{pages}"
        if not folder.exists():
            documents.write_site(folder, sitemaps, pages)
        served = (
            self._served("delayed.py", str(delay), str(folder)) if delay else self._served("server.py", str(folder))
        )
        return served[0]

    def proper_site(self, sitemaps: int, pages: int) -> str:
        """The same, where the pages are the site's own: such as have nothing wrong with them."""
        folder = self.folder / f"proper-{sitemaps}-{pages}"
        if folder not in self._ports:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self._ports[folder] = free.getsockname()[1]
            documents.write_site(folder, sitemaps, pages, f"http://127.0.0.1:{self._ports[folder]}/")
        return self._served("server.py", str(folder), str(self._ports[folder]))[0]

    def sites(self, count: int, delay: float) -> list[str]:
        """The homepages of sites of one page, all served by one process."""
        return self._served("delayed.py", str(delay), str(count))

    def _served(self, script: str, *arguments: str) -> list[str]:
        """The homepages that a server prints, started when it is first asked for."""
        if (script, *arguments) not in self._servers:
            server = subprocess.Popen(  # noqa: S603 -- all of it stands here
                [sys.executable, "-P", str(HERE / script), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            self._stack.callback(server.communicate)
            self._stack.callback(server.kill)
            assert server.stdout is not None
            homepages = server.stdout.readline().decode().split()
            if not homepages:
                raise NotMeasured("the server of sites did not start")
            self._servers[script, *arguments] = homepages
        return self._servers[script, *arguments]

    def rounds_in_time(self) -> Iterator[int]:
        """Numbers of rounds, until there are enough or the time is up; at least one."""
        end = time.monotonic() + ROUNDS_SECONDS
        for number in range(self.rounds):
            if number and time.monotonic() > end:
                return
            yield number


@dataclass(frozen=True)
class Measured:
    """What is known of a subject: what it found when it was checked, and the seconds of each round."""

    found: dict[str, Any]
    seconds: list[float]


def interleaved(
    subjects: list[Subject], workshop: Workshop, progress: Callable[[str], None]
) -> dict[Subject, Measured | NotMeasured]:
    """Measure subjects in turn, round by round, after each was warmed up and checked; one that fails is left out.

    Each has a process of its own: what an allocator did before makes a large difference to what comes after.
    """
    results: dict[Subject, Measured | NotMeasured] = {}
    with ExitStack() as stack:
        workers = {
            subject: stack.enter_context(workshop.fresh_worker(subject.environment, subject.is_pure))
            for subject in dict.fromkeys(subjects)
        }
        for subject, worker in workers.items():
            progress(f"{subject.environment}: {subject.task}, checked")
            try:
                found = worker.ask("timed", task=subject.task, file=workshop.file(subject.file), check=True)
                _check_compiled(worker, subject)
                results[subject] = Measured(found, [])
            except NotMeasured as reason:
                results[subject] = reason
        for number in workshop.rounds_in_time():
            for subject, result in results.items():
                progress(f"{subject.environment}: {subject.task}, round {number + 1} of {workshop.rounds}")
                if isinstance(result, Measured):
                    try:
                        answer = workers[subject].ask("timed", task=subject.task, file=workshop.file(subject.file))
                        result.seconds.append(answer["seconds"])
                    except NotMeasured as reason:
                        results[subject] = reason
    return results


def _check_compiled(worker: Worker, subject: Subject) -> None:
    """Plain Python must be that, or it is not what was measured."""
    if subject.is_pure and (compiled := worker.ask("compiled")["compiled"]):
        raise NotMeasured(f"compiled parts are used despite USP_PURE=1: {', '.join(compiled)}")


@dataclass(frozen=True)
class Ratio:
    """How many times one list of numbers is the other: the best of each, and the least and most of any round."""

    best: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: list[float], others: list[float]) -> Ratio:
        """From the same rounds of both."""
        of_rounds = [number / other for number, other in zip(numbers, others, strict=True)]
        return cls(min(numbers) / min(others), min(of_rounds), max(of_rounds))
