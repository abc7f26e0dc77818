"""Runs the processes that are measured, in the Python environment of each library, and serves them files and sites.

The libraries that usp is compared with are installed once, each into a virtual environment of its own under `.bench/`.
What a worker process does is the business of `worker`.
"""

from __future__ import annotations

import json
import os
import platform
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

from bench import documents, servers
from bench.crowd import Crowd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / ".bench"
INSTALL_SECONDS = REQUEST_SECONDS = 600
#: A comparison starts no further round after this long.
ROUNDS_SECONDS = 150

OURS = "usp"
OLD = "1.8.1"
OLD_WITH_PANDAS = "1.8.1 with pandas"
#: What pip installs, by the name of the environment.
PEERS = {
    OLD: "ultimate-sitemap-parser==1.8.1",
    "lxml": "lxml",
    "scrapy": "scrapy",
    "advertools": "advertools",
    OLD_WITH_PANDAS: "ultimate-sitemap-parser==1.8.1 pandas pyarrow",
}

#: The sitemaps that are written, by the names of their files.
FILES = {
    "urlset": documents.urlset,
    "news": documents.news,
    "references": documents.references,
    "rss": documents.rss,
    "atom": documents.atom,
    "index": documents.index,
    "text": documents.text,
}

Answer = dict[str, Any]
Progress = Callable[[str], None]


class CannotInstall(Exception):
    """An environment could not be made; the text is one line for people."""


class NotMeasured(Exception):
    """A measurement gave no number; the text says why. `is_skipped` if a module is missing, which is no failure."""

    def __init__(self, reason: str, is_skipped: bool = False) -> None:
        super().__init__(reason.replace(f"{ROOT}/", ""))
        self.is_skipped = is_skipped


# Environments


def python_of(name: str) -> str:
    """Return the path of an environment's Python, and install the environment if it is missing."""
    if name == OURS:
        return sys.executable
    folder = FOLDER / name.replace(" ", "-")
    python = folder / "bin" / "python"
    mark, wanted = folder / "installed", f"{PEERS[name]} for Python {platform.python_version()}\n"
    if not (mark.exists() and mark.read_text("ascii") == wanted):
        print(f"installing {PEERS[name]} into {FOLDER.name}/{folder.name}/", file=sys.stderr, flush=True)
        _run(name, [sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)])
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--retries", "1"]
        _run(name, [*pip, "--quiet", "install", *PEERS[name].split()])
        mark.write_text(wanted, "ascii")
    return str(python)


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 -- the command is built here
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"cannot install {PEERS[name]}: not done after {INSTALL_SECONDS} seconds") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")] or ["pip failed"]
        reason = errors[-1].removeprefix("ERROR: ")
        raise CannotInstall(f"cannot install {PEERS[name]}: {reason}; is there a network, and a package index?")


def peer_package(name: str) -> str:
    """Return the name of the package that an environment is for."""
    return OURS if name == OURS else PEERS[name].partition("=")[0]


# Processes


class Worker:
    """A process of an environment's Python that answers requests."""

    def __init__(self, python: str, log: Path, variables: dict[str, str]) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 -- the command is built here
                [python, "-P", str(HERE / "worker.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=variables,
                start_new_session=True,  # Ctrl-C is for the process that started this one, which then ends it
            )

    def ask(self, command: str, **arguments: Any) -> Answer:
        """Send a request and return its answer."""
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
        answer: Answer = json.loads(line)
        if reason := answer.get("missing") or answer.get("error"):
            raise NotMeasured(reason, is_skipped="missing" in answer)
        return answer

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def _last(self) -> str:
        """Return the last line of its log."""
        lines = self._log.read_text("utf-8", "replace").split("\n")
        return next((line[:150] for line in reversed(lines) if line.strip()), "without a word")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


@dataclass
class Workshop:
    """A temporary folder, the files in it, and the processes that run; all of it is gone after `with`.

    `checkout` is the working copy of usp that is measured; it may change between measurements.
    """

    folder: Path
    rounds: int
    checkout: Path = ROOT
    #: Results that several rows share.
    shared: dict[str, Answer] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _workers: dict[str, Worker] = field(default_factory=dict)
    _homepages: dict[tuple[str, ...], list[str]] = field(default_factory=dict)  # by the server's arguments
    _ports: dict[Path, int] = field(default_factory=dict)
    _logs: int = 0

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def variables(self, environment: str, is_pure: bool = False) -> dict[str, str]:
        """Return the environment variables for a process of an environment."""
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "USP_PURE")}
        ours = {"PYTHONPATH": str(self.checkout / "src")} if environment == OURS else {}
        return kept | {"TZ": "UTC"} | ours | ({"USP_PURE": "1"} if is_pure else {})

    @contextmanager
    def fresh_worker(self, environment: str, is_pure: bool = False) -> Iterator[Worker]:
        """Start a worker, and end it after `with`."""
        self._logs += 1
        log = self.folder / f"{self._logs}.log"
        worker = Worker(python_of(environment), log, self.variables(environment, is_pure))
        try:
            yield worker
        finally:
            worker.close()

    def worker(self, environment: str) -> Worker:
        """Return a worker for requests that are not measured. It runs until the workshop is closed."""
        if environment not in self._workers or not self._workers[environment].is_alive():
            self._workers[environment] = self._stack.enter_context(self.fresh_worker(environment))
        return self._workers[environment]

    def ask_fresh(self, environment: str, command: str, **arguments: Any) -> Answer:
        """Return the answer of a new process."""
        with self.fresh_worker(environment) as worker:
            try:
                return worker.ask(command, **arguments)
            except NotMeasured as reason:
                raise NotMeasured(f"{environment}: {reason}", reason.is_skipped) from None

    def ask_ours(self, pages: int, command: str, **arguments: Any) -> Answer:
        """Return the answer of a new process of usp, which must find this many pages."""
        answer = self.ask_fresh(OURS, command, **arguments)
        if answer["pages"] != pages:
            raise NotMeasured(f"found {answer['pages']:,.0f} of {pages:,} pages")
        return answer

    def file(self, name: str) -> str:
        """Return the path of one of `FILES` with `.xml`, `.xml.gz` or `.txt`. Write it at the first call."""
        path = self.folder / name
        if not path.exists():
            data = FILES[name.partition(".")[0]]()
            path.write_bytes(documents.compressed(data) if name.endswith(".gz") else data)
        return str(path)

    def site_folder(self, sitemaps: int, pages: int) -> Path:
        """Return the folder with the gzipped sitemaps of a site. Write them at the first call."""
        folder = self.folder / f"site-{sitemaps}-{pages}"
        if not folder.exists():
            documents.write_site(folder, sitemaps, pages)
        return folder

    def site(self, sitemaps: int, pages: int, delay: float = 0) -> str:
        """Serve a site from a process of its own, each response after a delay in seconds; return its homepage."""
        folder = str(self.site_folder(sitemaps, pages))
        return self._served("delayed", str(delay), folder)[0] if delay else self._served("threads", folder)[0]

    def own_pages_site(self, sitemaps: int, pages: int) -> str:
        """Serve a site whose sitemaps list its own pages, so that `usp check` has nothing to report."""
        folder = self.folder / f"own-{sitemaps}-{pages}"
        if folder not in self._ports:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self._ports[folder] = free.getsockname()[1]
            documents.write_site(folder, sitemaps, pages, f"http://127.0.0.1:{self._ports[folder]}/")
        return self._served("threads", str(folder), str(self._ports[folder]))[0]

    def listed_pages(self, count: int, delay: float) -> str:
        """Serve a site with a sitemap and all of its pages; return its homepage."""
        return self._served("pages", str(delay), str(count))[0]

    def sites(self, count: int, delay: float) -> list[str]:
        """Serve sites of one page, all from one process; return their homepages."""
        return self._served("delayed", str(delay), str(count))

    def small_sites(self, count: int, pages: int) -> list[str]:
        """Serve sites of two to five sitemaps, all from one process; return their homepages."""
        folder = self.site_folder(max(servers.SMALL_SITEMAPS), pages)
        return self._served("small", str(folder), str(count))

    def crowd(self, delay: float, *kinds: str) -> Crowd:
        """Serve a crowd of sites, small ones after a delay; make what these kinds need beforehand."""
        return Crowd(int(self._served(str(delay), *kinds, script="crowd.py")[0]))

    def _served(self, *arguments: str, script: str = "servers.py") -> list[str]:
        """Start a server unless it runs already; return the homepages that it printed."""
        if arguments not in self._homepages:
            server = subprocess.Popen(  # noqa: S603 -- the command is built here
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
            self._homepages[arguments] = homepages
        return self._homepages[arguments]

    def rounds_in_time(self) -> Iterator[int]:
        """Yield the numbers of the rounds, until all are done or the time is up; at least one."""
        end = time.monotonic() + ROUNDS_SECONDS
        for number in range(self.rounds):
            if number and time.monotonic() > end:
                return
            yield number
