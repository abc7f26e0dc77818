"""The schedule: which request starts when, and what becomes of its answer. Every driver runs by it.

No I/O and no clock here. A driver starts each of `tasks(now)` by whatever means, hands back what came of it to
`done()`, and goes on until `is_done`; `seconds(now)` says how long it need wait at most. It calls all of these from
one thread, so the walk, the caller's callbacks and the counts need no locks.

    Fetch(job)             request job.url; gives a Document or a Failure
    Parse(...).reading()   read a large document; gives a ParsedSitemap. Small ones are read when it is `idle()`.

Retries, waits between requests, robots rules and the change from http to https live here; how one host is treated, in
`hosts`.
"""

from __future__ import annotations

import heapq
import logging
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from urllib.parse import urljoin

from usp.documents import Document, Failure
from usp.drivers.hosts import Host, Reach
from usp.drivers.options import Options
from usp.drivers.reports import Reports
from usp.drivers.robots import Rules
from usp.drivers.tasks import Fetch, Job, Parse, Task
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.logs import logger
from usp.origins import Origin, origin_of, requested_url
from usp.walk import Walk

__all__ = ["Schedule"]

log = logger(__name__)

_SMALL_BYTES = 1 << 15
_SMALL_PACKED_BYTES = 1 << 9
_HOSTS_AT_ONCE = 4  # requests at once in all, for each that one host may get
_MAX_DOUBLINGS = 30
_MAX_WAIT = 300.0


class Schedule:
    """Runs one walk."""

    def __init__(self, walk: Walk, options: Options, homepage_url: str, now: float, user_agent: str = "usp") -> None:
        self._walk = walk
        self._options = options
        self._user_agent = user_agent
        self._is_https = origin_of(homepage_url)[0] == "https"
        self._ends_at = now + options.limits.tree_seconds
        self._most = options.concurrency * _HOSTS_AT_ONCE if options.concurrency > 1 else 1
        self._hosts: dict[str, Host] = {}
        self._reaches: dict[Origin, Reach] = {}
        self._ready: deque[Host] = deque()  # hosts that may have something to start
        self._later: list[tuple[float, int, Host | Job]] = []  # a heap: hosts and jobs that are to wait until then
        self._numbers = count()
        self._rules: dict[Origin, Rules] = {}
        self._ruled: dict[Origin, deque[Job]] = {}  # origins whose robots.txt is on its way -> jobs that wait for it
        self._same: dict[str, list[SitemapFetcher]] = {}  # https URLs on their way -> who wants them instead of http
        self._unparsed: deque[Parse] = deque()
        self._small: deque[Parse] = deque()
        self._running: set[Task] = set()
        self._is_parsing = False
        self._reports = Reports(options.progress)
        self._for_rules: dict[str, Job] = {}  # robots.txt files that were requested for their rules

    # What a driver asks

    def tasks(self, now: float) -> Iterator[Task]:
        """What is to be started now."""
        if now >= self._ends_at:
            self.stop(
                f"the tree's time is up, after {_seconds(self._options.limits.tree_seconds)} (limits.tree_seconds)"
            )
        self._wake(now)
        self._pull()
        while not self._walk.is_stopped:
            task = self._next_task(now)
            if task is not None:
                self._running.add(task)
                yield task
            elif not self._pull():
                return
        self._close()

    def seconds(self, now: float) -> float:
        """How long to wait at most before `tasks` is asked again."""
        if self._small:
            return 0.0
        at = min(self._ends_at, self._later[0][0]) if self._later else self._ends_at
        return min(max(0.0, at - now), _MAX_WAIT)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to come."""
        if self._walk.is_stopped:
            return True
        return not (self._running or self._unparsed or self._small or self._ready or self._later)

    def done(self, task: Task, outcome: Document | Failure | ParsedSitemap, now: float) -> None:
        """Take in what came of a task."""
        self._running.discard(task)
        if self._walk.is_stopped:
            return
        if isinstance(task, Parse):
            self._is_parsing = False
            assert isinstance(outcome, ParsedSitemap)
            self._receive(task.fetcher, outcome)
        elif isinstance(outcome, Document):
            self._had(task.job, outcome, now)
        elif now < self._ends_at:  # else it was cut short because the tree's time is up, and is left out for that
            assert isinstance(outcome, Failure)
            self._failed(task.job, outcome, now)

    def idle(self) -> None:
        """Read a small document. To be called when no task is done: requests are started before answers are read."""
        if self._small and not self._walk.is_stopped:
            parse = self._small.popleft()
            self._receive(parse.fetcher, parse.reading())

    def stop(self, reason: str) -> None:
        """Start nothing more, and let the walk keep what it has: documents that wait to be read, too."""
        for task in [*self._running, *self._unparsed, *self._small]:
            if isinstance(task, Parse) and not self._walk.is_stopped:
                self._receive(task.fetcher, task.fetcher.receive(task.document))
        self._walk.stop(reason)
        self._close()

    def _close(self) -> None:
        """Tell of all that is not had where the walk was stopped, by whomever."""
        self._reports.stopped(next(reversed(self._walk.cuts), ""))

    # What is started when

    def _pull(self) -> bool:
        """Take from the walk all that it gives out, if any. What it found last goes first, as in the walk itself."""
        pulled = list(iter(self._walk.next, None))
        self._tell_left_out()
        for fetcher in pulled:
            self._reports.found(fetcher)
        for fetcher in reversed(pulled):
            if (job := self._for_rules.get(requested_url(fetcher.url))) is None:
                self._enqueue(self._job_for(fetcher.url, fetcher), is_first=True)
            elif job.answer is None:
                job.fetcher = fetcher  # it is on its way already
            else:
                self._take(fetcher, job.answer)
        return bool(pulled)

    def _job_for(self, url: str, fetcher: SitemapFetcher | None) -> Job:
        origin = origin_of(url)
        host = self._hosts.get(origin[1])
        if host is None:
            host = Host(origin[1], self._options.concurrency, self._options.politeness.spacing)
            self._hosts[origin[1]] = host
        return Job(url, fetcher, host, self._reaches.setdefault(origin, Reach()))

    def _enqueue(self, job: Job, is_first: bool = False) -> None:
        """Put a job into its host's queue, unless robots rules hold it back."""
        if self._options.needs_rules and not self._may_go(job, is_first):
            return
        job.host.queue.appendleft(job) if is_first else job.host.queue.append(job)
        self._list(job.host, is_first)

    def _may_go(self, job: Job, is_first: bool) -> bool:
        origin = origin_of(job.url)
        robots_url = urljoin(requested_url(job.url), "/robots.txt")
        if requested_url(job.url) == robots_url:
            if origin not in self._rules:
                self._ruled.setdefault(origin, deque())
            return True
        if origin not in self._rules:
            if origin not in self._ruled:
                self._ruled[origin] = deque()
                self._for_rules[robots_url] = self._job_for(robots_url, None)
                self._enqueue(self._for_rules[robots_url])
            self._ruled[origin].appendleft(job) if is_first else self._ruled[origin].append(job)
            return False
        refusal = self._rules[origin].refusal(job.url) if self._options.respect_robots else None
        if self._rules[origin].unreachable is not None and refusal is not None:
            self._walk.cuts[f"the robots.txt of {job.host.name} cannot be had, so nothing else is (respect_robots)"] = (
                None
            )
        if refusal is not None and job.fetcher is not None:
            self._take(job.fetcher, Failure(f"{refusal} (respect_robots)"))
        return refusal is None

    def _list(self, host: Host, is_first: bool = False) -> None:
        if not host.is_listed:
            host.is_listed = True
            self._ready.appendleft(host) if is_first else self._ready.append(host)

    def _wake(self, now: float) -> None:
        """Bring back what was to wait until now."""
        while self._later and self._later[0][0] <= now:
            _, _, woken = heapq.heappop(self._later)
            if isinstance(woken, Job):
                woken.host.queue.appendleft(woken)
                woken = woken.host
            self._list(woken)

    def _wait(self, until: float, waiting: Host | Job) -> None:
        heapq.heappush(self._later, (until, next(self._numbers), waiting))

    def _next_task(self, now: float) -> Task | None:
        if self._unparsed and not self._is_parsing:
            self._is_parsing = True
            return self._unparsed.popleft()
        if len(self._running) >= self._most or len(self._unparsed) + len(self._small) >= self._options.concurrency:
            return None  # what was had is read before more is fetched than one host may give at once
        while self._ready:
            host = self._ready.popleft()
            host.is_listed = False
            if not host.queue or host.is_full():
                continue  # it is listed again when there is, or a request ended
            if host.free_at() > now:
                self._wait(host.free_at(), host)
                continue
            job = host.queue.popleft()
            self._list(host)
            if job.reach.is_doubtful and not job.tries:
                job.reach.held.append(job)
                continue
            if job.reach.is_gone:
                words = f"{host.name} does not answer: {job.reach.last_words}"
                self._give_up(job, Failure(words, is_retryable=True))
                continue
            job.tries += 1
            host.start(now)
            return Fetch(job)
        return None

    # What becomes of an answer

    def _had(self, job: Job, document: Document, now: float) -> None:
        self._end(job, 200, 0, now)
        job.host.succeed()
        self._answer(job, document)

    def _failed(self, job: Job, failure: Failure, now: float) -> None:
        politeness = self._options.politeness
        if not failure.is_answered:
            job.reach.last_words = failure.message
        job.partial = failure.partial or job.partial
        waits = politeness.retry_seconds * 2 ** min(job.tries - 1, _MAX_DOUBLINGS) * random.uniform(0.5, 1.5)  # noqa: S311 -- not a secret
        wait = max(min(waits, _MAX_WAIT), min(failure.retry_after or 0, politeness.max_delay))
        is_asked_to = failure.status == HTTPStatus.TOO_MANY_REQUESTS or failure.retry_after is not None
        self._end(job, (failure.status or 200) if failure.is_answered else None, wait if is_asked_to else 0, now)
        is_worth_it = failure.is_retryable and job.tries < job.reach.tries(politeness.tries)
        if is_worth_it and job.host.take_retry():
            log.info("Retrying URL %s in %.1f seconds: %s", job.url, wait, failure.message)
            job.reach.doubt()
            self._wait(now + wait, job)
        else:
            self._give_up(job, failure)

    def _end(self, job: Job, status: int | None, pause: float, now: float) -> None:
        if status is not None:
            self._settle(job.reach, has_answered=True)
        job.host.end(status, pause, now)
        self._list(job.host)

    def _give_up(self, job: Job, failure: Failure) -> None:
        """A job that is not tried any more: what came in part is used; http is tried over https, once."""
        if not failure.is_answered:
            self._settle(job.reach, is_unreached=failure.is_retryable)
            if failure.is_retryable and self._is_tried_over_https(job, failure):
                return
        if job.instead_of is not None:
            failure = replace(failure, message=f"{job.instead_of.message}; and over https: {failure.message}")
        self._answer(job, job.partial or failure)

    def _settle(self, reach: Reach, *, has_answered: bool = False, is_unreached: bool = False) -> None:
        """An origin has answered, or a URL of it was given up: let go what waited for that."""
        held = reach.settle(has_answered, is_unreached)
        while held:
            self._enqueue(held.pop(), is_first=True)

    def _is_tried_over_https(self, job: Job, failure: Failure) -> bool:
        """Have the same over https, where the homepage is, if the host never answered over http."""
        if not self._is_https or job.reach.has_answered or origin_of(job.url)[::2] != ("http", 80):
            return False
        # What an origin that is not there would disallow is not known, and does not matter.
        job.answer = Failure(failure.message, HTTPStatus.NOT_FOUND)
        self._learn(job, job.answer)
        url = f"https{requested_url(job.url)[4:]}"
        if job.fetcher is None:
            return True
        if (reading := self._walk.parsed_sitemap(url)) is not None:
            self._receive(job.fetcher, reading)
        elif self._walk.is_waiting_for(url):
            self._same.setdefault(url, []).append(job.fetcher)
        else:
            instead = self._job_for(url, job.fetcher)
            instead.instead_of = failure
            self._enqueue(instead, is_first=True)
        return True

    def _answer(self, job: Job, answer: Document | Failure) -> None:
        """A job has come to its end."""
        job.answer = answer
        if isinstance(answer, Failure):
            is_expected = job.is_guess and answer.status == HTTPStatus.NOT_FOUND
            level = logging.INFO if is_expected else logging.WARNING
            log.log(level, "Request for URL %s failed: %s", job.url, answer.message)
        self._learn(job, answer)
        if isinstance(answer, Document):
            self._reports.transferred(answer)
        if job.fetcher is not None:
            self._take(job.fetcher, answer)

    def _take(self, fetcher: SitemapFetcher, answer: Document | Failure) -> None:
        """Read an answer, at once if that takes no time; or else put it among those that are to be read."""
        if isinstance(answer, Failure):
            self._receive(fetcher, fetcher.receive(answer))
            return
        self._reports.fetched(fetcher, answer)
        is_counted = self._reports.counts_pages or self._walk.limits.max_pages is not None
        parse = Parse(fetcher, answer, is_counted)
        if answer.size > (_SMALL_PACKED_BYTES if answer.may_be_packed else _SMALL_BYTES):
            self._unparsed.append(parse)
        elif self._most == 1:
            self._receive(fetcher, parse.reading())
        else:
            self._small.append(parse)
        most = self._options.limits.max_total_bytes
        if self._reports.bytes >= most:
            self.stop(f"the tree's sitemaps have {most:,} bytes (limits.max_total_bytes)")

    def _receive(self, fetcher: SitemapFetcher, reading: ParsedSitemap) -> None:
        self._reports.received(fetcher, reading)
        self._walk.receive(fetcher, reading)
        self._tell_left_out()
        for other in self._same.pop(requested_url(fetcher.url), ()):
            self._receive(other, reading)

    def _tell_left_out(self) -> None:
        left_out, self._walk.left_out = self._walk.left_out, []
        for sitemap in left_out:
            self._reports.left_out(sitemap)

    def _learn(self, job: Job, answer: Document | Failure) -> None:
        """Take in the rules of a robots.txt, and let go what waited for them."""
        origin = origin_of(job.url)
        url = requested_url(job.url)
        if origin not in self._ruled or url != urljoin(url, "/robots.txt"):
            return
        rules = self._rules[origin] = Rules(answer, self._user_agent)
        politeness = self._options.politeness
        if politeness.crawl_delay:
            job.host.spacing = max(job.host.spacing, min(rules.delay(), politeness.max_delay))
        for waiting in self._ruled.pop(origin):
            self._enqueue(waiting)


def _seconds(number: float) -> str:
    return f"{number:g} second{'s' * (number != 1)}"
