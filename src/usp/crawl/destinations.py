"""Where a watched crawl delivers its changes: a command, a webhook, an Atom feed."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from usp.crawl.change_formats import ATOM_END, atom_entry, atom_head
from usp.crawl.changes import Change, ChangeKind
from usp.crawl.deliveries import DeliveryError, RunChanges
from usp.crawl.folder import CrawlFolder
from usp.exceptions import InvalidArgumentError
from usp.export.files import ensure_writable, open_whole
from usp.objects.wording import printable
from usp.origins import masked_url, origin_of, split_credentials, split_url
from usp.version import __version__
from usp.web_client.failures import failure_of, retry_after_seconds, status_line
from usp.web_client.settings import getproxies, proxy_for_origin, split_authorization, tls_context

if TYPE_CHECKING:
    import aiohttp

__all__ = ["SECRET", "AtomFeed", "Command", "Webhook"]

#: The environment variable with the secret that signs webhooks.
SECRET = "USP_WEBHOOK_SECRET"  # noqa: S105 -- its name, not its value
_GRACE = 5.0  # seconds that a command has to end before it is killed
_BATCH = 1_000  # changes in one request
_TRIES = 5
_MAX_PAUSE = 60.0  # seconds between two tries
_PASSING = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)  # and those from 500
_ENTRY = re.compile(rb"<entry>\n<id>([^<]*+)</id>\n(?:[^<]|<(?!/?entry>))*+</entry>\n")


def _mark(text: str) -> str:
    """Return a short text that differs for different texts, and does not give them away."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Command:
    """A command that gets the changes on standard input, a JSON object on each line. No shell is involved.

    :param arguments: the program and its arguments.
    :param timeout: seconds after which it is ended, with all processes of its group.
    """

    arguments: Sequence[str]
    timeout: float = 600.0

    @classmethod
    def parse(cls, text: str, timeout: float = 600.0) -> Command:
        """Split a text into a program and its arguments, as a shell does.

        :raises InvalidArgumentError: if it is empty, or a quote is not closed.
        """
        try:
            arguments = shlex.split(text)
        except ValueError as error:
            raise InvalidArgumentError(f"the command {text!r:.200} cannot be read: {error}") from None
        if not arguments:
            raise InvalidArgumentError("the command is empty; name a program")
        return cls(tuple(arguments), timeout)

    @property
    def key(self) -> str:
        """The program, and a mark of its arguments, which may be secret."""
        return f"command {self.arguments[0]} {_mark(shlex.join(self.arguments))}"

    @property
    def name(self) -> str:
        """The program."""
        return f"the command {printable(self.arguments[0])}"

    def prepare(self, folder: CrawlFolder) -> None:
        """Check that the program exists."""
        if shutil.which(self.arguments[0]) is None:
            raise InvalidArgumentError(f"there is no program {self.arguments[0]!r:.200} that can be run")

    def deliver(self, changes: RunChanges) -> None:
        """Run the command, and wait for its end."""
        with open(changes.path, "rb") as file:
            process = subprocess.Popen(  # noqa: S603 -- the command of the user, without a shell
                list(self.arguments),
                stdin=file,
                env=self._environment(changes),
                start_new_session=True,  # so that Ctrl-C does not end it half-way, and all of it can be ended
            )
        try:
            code = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise DeliveryError(f"it did not end within {self.timeout:g} seconds, and was ended") from None
        except BaseException:
            _end(process)
            raise
        if code:
            why = f"it exited with {code}" if code > 0 else f"signal {-code} ended it"
            raise DeliveryError(why)

    def _environment(self, changes: RunChanges) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != SECRET}
        counts = {f"USP_{kind.upper()}": str(changes.counts[kind]) for kind in ChangeKind}
        return {
            **kept,
            **counts,
            "USP_CRAWL": changes.crawl,
            "USP_RUN": str(changes.run.run),
            "USP_DELIVERY": changes.delivery_id(self.key),
        }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group."""
    ends: tuple[tuple[Callable[[], None], float | None], ...] = (
        (lambda: os.killpg(process.pid, signal.SIGTERM), _GRACE),
        (lambda: os.killpg(process.pid, signal.SIGKILL), None),
    )
    if not hasattr(os, "killpg"):  # Windows
        ends = ((process.kill, None),)
    for end, seconds in ends:
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            end()
            process.wait(seconds)


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that gets the changes as JSON documents, in POST requests of at most 1,000 changes.

    You chose the URL, so it may be at a private address. Redirects are not followed.

    :param secret: signs the requests; None signs nothing.
    :param timeout: seconds for one request.
    :param pause: seconds after the first failure; doubled after each.
    """

    url: str
    secret: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    pause: float = 1.0

    def __post_init__(self) -> None:
        try:
            parts = split_url(self.url)
            is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_good = False
        if not is_good:
            raise InvalidArgumentError(f"a webhook is an http or https URL, not {masked_url(self.url)}")

    @property
    def key(self) -> str:
        """The host, and a mark of the URL, whose path is often a secret."""
        return f"webhook {self._origin} {_mark(self.url)}"

    @property
    def name(self) -> str:
        """The host."""
        return f"the webhook at {printable(self._origin)}"

    @property
    def _origin(self) -> str:
        parts = split_url(split_credentials(self.url)[0])
        return f"{parts.scheme}://{parts.netloc}"

    def prepare(self, folder: CrawlFolder) -> None:
        """Do nothing: only a request shows whether the server answers."""

    def deliver(self, changes: RunChanges) -> None:
        """Send all changes."""
        asyncio.run(self._send(changes))

    async def _send(self, changes: RunChanges) -> None:
        import aiohttp  # imported only when needed: it is heavy

        url, authorization = split_authorization(self.url)
        headers = {"Authorization": authorization} if authorization else {}
        session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            connector=aiohttp.TCPConnector(ssl=tls_context(True)),
            headers={"User-Agent": f"usp/{__version__}", **headers},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        async with session:
            for number, body in self._batches(changes):
                await self._send_batch(session, url, changes.delivery_id(self.key, number), body)

    def _batches(self, changes: RunChanges) -> Iterator[tuple[int, bytes]]:
        """Give the body of each request, with its number."""
        run, batches = changes.run, -(-changes.counts.total() // _BATCH)
        of_all = {
            "crawl": changes.name,
            "run": run.run,
            "started": run.started.isoformat(),
            "ended": run.ended and run.ended.isoformat(),
            "counts": {kind: changes.counts[kind] for kind in ChangeKind},
            "batches": batches,
        }
        lines = changes.lines()
        for number in range(1, batches + 1):
            about = {"delivery": changes.delivery_id(self.key, number), **of_all, "batch": number}
            found = b",".join(line.rstrip(b"\n") for line in islice(lines, _BATCH))
            yield number, json.dumps(about).encode()[:-1] + b', "changes": [' + found + b"]}"

    async def _send_batch(self, session: aiohttp.ClientSession, url: str, delivery: str, body: bytes) -> None:
        """Send one request, and again if the failure may pass."""
        pause = self.pause
        for tries_left in reversed(range(_TRIES)):
            why, wait = await self._post(session, url, delivery, body)
            if not why:
                return
            if wait is None or not tries_left:
                raise DeliveryError(why)
            await asyncio.sleep(min(max(wait, pause), _MAX_PAUSE))
            pause *= 2

    async def _post(
        self, session: aiohttp.ClientSession, url: str, delivery: str, body: bytes
    ) -> tuple[str, float | None]:
        """Return why a request failed, empty if it did not, and how long to wait for the next; None for no other."""
        import aiohttp

        headers = {"Content-Type": "application/json", "Usp-Delivery": delivery, **self._signature(body)}
        try:
            proxy = proxy_for_origin(getproxies(), origin_of(url))
            async with session.post(url, data=body, headers=headers, allow_redirects=False, proxy=proxy) as answer:
                if 200 <= answer.status < 300:
                    return "", None
                why = f"it answered {printable(status_line(answer.status, answer.reason))}"
                if answer.status in _PASSING or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    return why, retry_after_seconds(answer.headers.get("Retry-After")) or 0.0
                is_redirect = 300 <= answer.status < 400
                return why + "; redirects are not followed" * is_redirect, None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            failure = failure_of(error)
            return failure.message, 0.0 if failure.retryable else None

    def _signature(self, body: bytes) -> dict[str, str]:
        if self.secret is None:
            return {}
        moment = str(int(time.time()))
        signed = hmac.new(self.secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {"Usp-Timestamp": moment, "Usp-Signature": f"sha256={signed}"}


@dataclass(frozen=True, slots=True)
class AtomFeed:
    """An Atom feed of new pages, the newest first. The file is replaced at once.

    :param entries: how many entries to keep.
    :param with_changed: whether pages that changed are in it, too.
    """

    path: str
    entries: int = 500
    with_changed: bool = False

    @property
    def key(self) -> str:
        """The path."""
        return f"feed {os.path.abspath(self.path)}"

    @property
    def name(self) -> str:
        """The path, as it was given."""
        return f"the feed {printable(self.path)}"

    def prepare(self, folder: CrawlFolder) -> None:
        """Write an empty feed if there is none, so that readers find it."""
        ensure_writable(self.path)
        if not os.path.exists(self.path):
            with open_whole(self.path) as file:
                self._write_head(file, folder.path, datetime.now().astimezone())
                file.write(ATOM_END)

    def deliver(self, changes: RunChanges) -> None:
        """Put the new pages before the entries of the feed. The same run twice leaves the same feed."""
        kinds = (ChangeKind.ADDED, ChangeKind.CHANGED) if self.with_changed else (ChangeKind.ADDED,)
        moment = changes.run.ended or changes.run.started
        found: dict[str, bytes] = {}
        for line in changes.lines():
            if len(found) >= self.entries:
                break
            change = _change_of(line)
            if change.change in kinds:
                found.update([atom_entry(change, moment)])
        if not found:
            return
        for mark, entry in self._kept():
            found.setdefault(mark, entry)
        with open_whole(self.path) as file:
            self._write_head(file, changes.crawl, moment)
            file.writelines(islice(found.values(), self.entries))
            file.write(ATOM_END)

    def _write_head(self, file: BinaryIO, crawl: str, moment: datetime) -> None:
        subject = os.path.abspath(crawl)
        file.write(atom_head(f"watch {subject}", f"New pages of {os.path.basename(subject)}", moment))

    def _kept(self) -> list[tuple[str, bytes]]:
        """Return the entries of the feed with their ids. Only those that usp has written are found."""
        try:
            with open(self.path, "rb") as file:
                return [(match[1].decode(), match[0]) for match in _ENTRY.finditer(file.read())]
        except FileNotFoundError:
            return []


def _change_of(line: bytes) -> Change:
    """Return the change that a line has."""
    row = json.loads(line)
    dates = {name: row[name] and datetime.fromisoformat(row[name]) for name in ("last_modified", "old_last_modified")}
    return Change.of_row({**row, **dates})
