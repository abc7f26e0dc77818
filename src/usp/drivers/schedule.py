"""`Schedule` decides which request starts when, and what to do with its result. Every driver runs by it.

It does no I/O, and reads no clock. A driver starts each of `tasks(now)`, hands the result to `done()`, and goes on
until `is_done`; `wait_seconds(now)` says how long it may wait for a result. It calls all of these from one thread, so
the walk, the caller's callbacks and the counts need no locks.

`tasks` has the tasks. Large documents are parsed by tasks, small ones by `idle()`.

When the tree's time is up, the document that is being parsed ends by itself, and what was read of it is kept. Those
that wait stay unread, and parts of those that arrive are used.

Retries, waits between requests, robots rules, the change from http to https and the sharing of redirect targets live
here. `hosts` has the rules for one host, and `requested` knows who has requested a URL.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from urllib.parse import urljoin
from weakref import ref

from usp.documents import Document, Failure
from usp.drivers.budget import ReadingBudget, time_is_up, total_bytes_reached
from usp.drivers.hosts import Host, KnownHosts, OriginState, RobotsRules, why_given_up
from usp.drivers.options import Options
from usp.drivers.reporting import ProgressReporter
from usp.drivers.requested import RequestedURLs
from usp.drivers.tasks import MAX_WAIT, Fetch, Job, Parse, Task, is_robots_txt
from usp.fetch_parse.fetcher import SitemapFetcher
from usp.fetch_parse.parsed import ParsedSitemap
from usp.logs import logger
from usp.objects.outcome import Cause
from usp.objects.wording import shortened
from usp.origins import Origin, origin_of, requested_url
from usp.walk import Walk

__all__ = ["Schedule"]

log = logger(__name__)

# Documents up to this size are parsed between two requests: that takes less time than handing them to a thread.
_SMALL_BYTES = 1 << 15
_SMALL_TEXT_BYTES = 1 << 17  # the same for the text of a compressed one
# How long to wait, when a tree ends, for the document that is being parsed: it stops before its next piece.
_SECONDS_TO_STOP = 2.0
_SECONDS_BETWEEN_LOOKS = 0.02
_HOSTS_AT_ONCE = 4  # all hosts together get this many times the requests of one host
_MAX_VAIN_WAITS = 2  # of a job, for a URL that others have requested and that has failed
_SHARE_OF_SLOW_URLS = 0.5  # of the tree's time, if many URLs are slow


class Schedule:
    """The schedule of one walk.

    :param budget: what parsing may cost; None for no limit.
    """

    def __init__(
        self,
        walk: Walk,
        options: Options,
        homepage_url: str,
        now: float,
        user_agent: str = "usp",
        budget: ReadingBudget | None = None,
    ) -> None:
        self._walk = walk
        self._budget = budget
        self._options = options
        self._user_agent = user_agent
        self._is_https = origin_of(homepage_url)[0] == "https"
        self._now = now  # when a driver said last what time it is
        self._ends_at = now + options.limits.tree_seconds
        self._max_running = options.concurrency * _HOSTS_AT_ONCE if options.concurrency > 1 else 1
        self._hosts = KnownHosts(options.concurrency, options.politeness)
        self._ready: deque[Host] = deque()  # hosts that may have a job to start
        self._later: list[tuple[float, int, Host | Job]] = []  # a heap of hosts and jobs that wait until a time
        self._numbers = count()
        self._rules: dict[Origin, RobotsRules] = {}
        self._waiting_for_rules: dict[Origin, deque[Job]] = {}
        self._rules_jobs: dict[str, Job] = {}  # requests for a robots.txt that only its rules needed
        me = ref(self)  # weakly, so that a schedule that has ended is freed at once
        self._requested = RequestedURLs(lambda url, job: (known := me()) is not None and known._is_closed(url, job))
        self._sharing: dict[str, list[SitemapFetcher]] = {}  # URL -> fetchers of others that share what it serves
        self._broken_off: list[Job] = []  # jobs of which a part has arrived
        self._large_documents: deque[Parse] = deque()
        self._small_documents: deque[Parse] = deque()
        self._running: set[Task] = set()
        self._is_parsing = False
        self._may_pull = True  # whether the walk may have fetchers that it had not when it was asked last
        self._ending = ""  # why nothing more is requested
        self._has_unread = False  # whether documents have arrived that will not be parsed
        self._reporter = ProgressReporter(options.progress)

    # What a driver calls

    def tasks(self, now: float) -> Iterator[Task]:
        """Give the tasks to start now."""
        self._now = now
        if now >= self._ends_at:
            self._stop_requests(time_is_up(self._options.limits), reads_on=False)
        if self._ending:
            yield from self._last_tasks(now)
            return
        self._wake(now)
        self._pull()
        while not self._walk.is_stopped:
            task = self._next_task(now)
            if task is not None:
                self._running.add(task)
                yield task
            elif not self._pull():
                return
        self._reporter.report_stopped(self._walk)

    def _last_tasks(self, now: float) -> Iterator[Task]:
        """Give what is left to parse, one document at a time. Stop the walk when that is done."""
        if self._large_documents and not self._is_parsing:
            self._is_parsing = True
            task = self._large_documents.popleft()
            self._running.add(task)
            yield task
        is_late = now >= self._ends_at
        is_patient = now < self._ends_at + _SECONDS_TO_STOP
        if not self._small_documents and not (self._is_parsing and is_patient):
            self.stop(self._ending, is_late=is_late)

    def wait_seconds(self, now: float) -> float:
        """Return how long to wait at most before `tasks` is called again."""
        if self._small_documents:
            return 0.0
        if self._ending:
            return _SECONDS_BETWEEN_LOOKS
        at = min(self._ends_at, self._later[0][0]) if self._later else self._ends_at
        return min(max(0.0, at - now), MAX_WAIT)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        if self._walk.is_stopped:
            return True
        return not (self._running or self._large_documents or self._small_documents or self._ready or self._later)

    def done(self, task: Task, result: Document | Failure | ParsedSitemap, now: float) -> None:
        """Take the result of a task."""
        self._now = now
        self._running.discard(task)
        if self._walk.is_stopped:
            return
        if isinstance(task, Parse):
            self._is_parsing = False
            assert isinstance(result, ParsedSitemap)
            self._take_parsed(task, result)
            return
        assert not isinstance(result, ParsedSitemap)
        self._requested.end(task)
        self._end_turn(task.job)
        self._release(task.job, only_left=True)
        self._reporter.count_bytes(result.transferred)
        if self._ending:
            return
        if isinstance(result, Document):
            self._take_document(task.job, result, now)
        elif result.moved_to is not None:
            self._take_redirect(task.job, result, now)
        elif now < self._ends_at:
            self._take_failure(task.job, result, now)
        else:  # the end of the tree's time cut it short; the next `tasks` stops the walk
            self._note_part(task.job, result)
        max_bytes = self._options.limits.max_total_bytes
        if self._reporter.total_bytes >= max_bytes:
            self._stop_requests(total_bytes_reached(max_bytes), reads_on=True)

    def idle(self) -> None:
        """Parse a small document. Call this when no task is done: requests start before documents are parsed."""
        if self._small_documents and not self._walk.is_stopped:
            parse = self._small_documents.popleft()
            self._take_parsed(parse, parse.run())

    def stop(self, reason: str, *, is_late: bool = False) -> None:
        """Start nothing more. The walk keeps what it has. Documents that are not parsed stay unread."""
        unread = [task for task in self._running if isinstance(task, Parse)]
        has_unread = self._leave_unread(reason, unread)
        self._walk.stop(reason, is_late=is_late and not has_unread)  # a site whose documents arrive is no late one
        self._reporter.report_stopped(self._walk)

    def _stop_requests(self, reason: str, *, reads_on: bool) -> None:
        """Request nothing more, and stop when nothing is left to parse.

        :param reads_on: whether to parse the documents that have arrived.
        """
        if not reads_on:
            self._leave_unread(reason)
        if not self._ending:
            self._ending = reason
            for job in self._broken_off:
                if job.partial is not None:
                    self._finish(job, job.partial)  # there is no further try

    def _leave_unread(self, reason: str, tasks: Iterable[Parse] = ()) -> bool:
        """Hand documents to the walk as unread: those that wait, and those of some tasks. Return whether there are any.

        Parsing them would take time that there is not.
        """
        unread = [*tasks, *self._large_documents, *self._small_documents]
        self._large_documents.clear()
        self._small_documents.clear()
        for task in unread:
            task.document.release_text()
        for task in unread if not self._walk.is_stopped else ():
            self._walk.cuts[reason] = None
            url = task.fetcher.url
            self._receive(task.fetcher, ParsedSitemap.invalid(url, f"Not read: {reason}.", Cause.LIMIT))
        self._has_unread |= bool(unread)
        return self._has_unread

    # Which job starts when

    def _pull(self) -> bool:
        """Take all fetchers that the walk gives. Return whether there were any. The last ones found start first."""
        if not self._may_pull:
            return False
        self._may_pull = False
        pulled = list(iter(self._walk.next, None))
        self._reporter.report_left_out(self._walk)
        for fetcher in pulled:
            self._reporter.report_found(fetcher)
        for fetcher in reversed(pulled):
            if (job := self._rules_jobs.get(fetcher.key)) is None:
                self._enqueue(self._job_for(fetcher.url, fetcher), is_first=True)
            elif job.result is None:
                job.fetcher = fetcher  # the request runs already
            else:
                self._take(fetcher, job.result)
        return bool(pulled)

    def _job_for(self, url: str, fetcher: SitemapFetcher | None) -> Job:
        return Job(url, fetcher, *self._hosts.place(url))

    def _is_closed(self, url: str, job: Job) -> bool:
        """Return whether a redirect may not lead a job to a URL: its host was given up or must be left alone.

        Any thread may ask. The time is that of the last result: if the host is free by now, the job starts again at
        once.
        """
        if self._hosts.is_given_up(url):
            return True
        host = self._hosts.host(url)
        return host is not None and host.must_wait(self._now, has_turn=host in (job.host, job.turn_at))

    def _last_place(self, job: Job) -> tuple[Host, OriginState]:
        """Return the host and the origin where the last try of a job ended: its own, or where redirects have led."""
        return (job.host, job.origin) if job.at in ("", job.url) else self._hosts.place(job.at)

    def _enqueue(self, job: Job, is_first: bool = False) -> None:
        """Put a job into its host's queue, unless it waits for robots rules or they disallow it."""
        if self._options.needs_rules and not self._passes_rules(job, is_first):
            return
        job.host.queue.appendleft(job) if is_first else job.host.queue.append(job)
        self._list(job.host, is_first)

    def _passes_rules(self, job: Job, is_first: bool) -> bool:
        origin = origin_of(job.url)
        robots_url = urljoin(requested_url(job.url), "/robots.txt")
        if requested_url(job.url) == robots_url:
            if origin not in self._rules:
                self._waiting_for_rules.setdefault(origin, deque())
            return True
        if origin not in self._rules:
            if origin not in self._waiting_for_rules:
                self._waiting_for_rules[origin] = deque()
                self._rules_jobs[robots_url] = self._job_for(robots_url, None)
                self._enqueue(self._rules_jobs[robots_url])
            waiting = self._waiting_for_rules[origin]
            waiting.appendleft(job) if is_first else waiting.append(job)
            return False
        rules = self._rules[origin]
        refusal = rules.refusal(job.url) if self._options.respect_robots else None
        if rules.unreachable is not None and refusal is not None:
            reason = f"the robots.txt of {job.host.name} could not be fetched, so nothing else is (respect_robots)"
            self._walk.cuts[reason] = None
        if refusal is not None and job.fetcher is not None:
            self._take(job.fetcher, Failure(f"{refusal} (respect_robots)", cause=rules.cause))
        return refusal is None

    def _list(self, host: Host, is_first: bool = False) -> None:
        if not host.is_listed:
            host.is_listed = True
            self._ready.appendleft(host) if is_first else self._ready.append(host)

    def _wake(self, now: float) -> None:
        """List the hosts, and queue the jobs, whose time has come. URLs that were never tried go first."""
        while self._later and self._later[0][0] <= now:
            _, _, woken = heapq.heappop(self._later)
            if isinstance(woken, Job):
                woken.host.queue.append(woken)
                woken = woken.host
            self._list(woken)

    def _wait(self, until: float, waiting: Host | Job) -> None:
        heapq.heappush(self._later, (until, next(self._numbers), waiting))

    def _next_task(self, now: float) -> Task | None:
        if self._large_documents and not self._is_parsing:
            self._is_parsing = True
            return self._large_documents.popleft()
        if len(self._running) >= self._max_running or self._unparsed() >= self._options.concurrency:
            return None  # parse before fetching more than one host may give at once, to bound memory
        while self._ready:
            host = self._ready.popleft()
            host.is_listed = False
            if not host.queue or host.is_full():
                continue  # it is listed again when it gets a job, or when a request ends
            if host.free_at() > now:
                self._wait(host.free_at(), host)
                continue
            job = host.next_job()
            self._list(host)
            if self._is_dropped(job) or self._has_arrived(job) or not self._may_go_on(job, host, now):
                continue
            host = job.host
            if not host.is_given_up and job.origin.is_doubtful and not job.tries:
                job.origin.held_jobs.append(job)
                continue
            if (given_up := why_given_up(host, job.origin)) is not None:
                job.at = job.url
                self._end_turn(job)
                self._release(job)  # they may be on another host
                self._give_up(job, given_up)
                continue
            fetch = Fetch(job, self._requested)
            if not self._requested.start(fetch):
                self._wait_for(job.key, job)
                continue
            job.tries += 1
            job.started = now
            most = self._options.limits.request_seconds
            fair = host.fair_seconds((self._ends_at - now) * _SHARE_OF_SLOW_URLS)
            job.seconds = fair if fair < most else math.inf
            host.start_request(now)
            return fetch
        return None

    def _is_dropped(self, job: Job) -> bool:
        """Return whether nothing needs the result of a job that has not started."""
        if job.fetcher is None or job.at or job.key in self._sharing:
            return False
        is_dropped = job.url == job.fetcher.url and self._walk.take_back(job.fetcher)
        self._may_pull |= is_dropped
        return is_dropped

    def _has_arrived(self, job: Job) -> bool:
        """Return whether a redirect has brought the sitemap of a job that has not started. Hand it to the walk then."""
        if job.fetcher is None or job.at:
            return False
        parsed = self._walk.parsed_sitemap(job.url)
        if parsed is not None:
            self._receive(job.fetcher, parsed)
        return parsed is not None

    # What happens with a result

    def _take_document(self, job: Job, document: Document, now: float) -> None:
        self._end_request(job, 200, 0, now, has_served=True)
        self._last_place(job)[0].refund()
        self._finish(job, document)

    def _take_failure(self, job: Job, failure: Failure, now: float) -> None:
        politeness = self._options.politeness
        host, origin = self._last_place(job)
        if not failure.is_answered:
            origin.last_failure = failure
        self._note_part(job, failure)
        if job.is_cut_short_by(failure, now):
            self._end_request(job, 200 if failure.is_answered else None, 0, now, has_served=True)
            job.is_cut_short = True
            job.tries -= 1
            self._wait(now, job)
            return
        wait = max(job.backoff(politeness.retry_seconds), failure.retry_after or 0)
        status = (failure.status or 200) if failure.is_answered else None
        if (too_long := host.why_too_long(failure, wait, now, self._ends_at)) is not None:
            failure = replace(failure, message=f"{failure.message}; {too_long}")
            self._end_request(job, status, 0, now, has_served=False, refusal=failure)
            self._give_up(job, failure)
            return
        asks_to_wait = failure.status == HTTPStatus.TOO_MANY_REQUESTS or failure.retry_after is not None
        self._end_request(job, status, wait if asks_to_wait else 0, now, has_served=not failure.may_pass)
        is_worth_it = failure.is_retryable and job.tries < origin.max_tries(politeness)
        if is_worth_it and not host.is_given_up and host.spend_retry():
            log.info("Retrying URL %s in %.1f seconds: %s", job.url, wait, failure.message)
            if origin is job.origin:  # the next try may be redirected elsewhere, and say nothing of another one
                origin.doubt()
            self._wait(now + wait, job)
        else:
            self._give_up(job, failure)

    def _note_part(self, job: Job, failure: Failure) -> None:
        """Keep what a try that broke off has brought, in case that no other one brings more."""
        if failure.partial is not None:
            job.partial = failure.partial
            self._broken_off.append(job)

    def _end_request(
        self,
        job: Job,
        status: int | None,
        pause: float,
        now: float,
        *,
        has_served: bool,
        refusal: Failure | None = None,
    ) -> None:
        """Count a request that ended. `refusal` is the failure of a host that asked for too long a wait.

        A result belongs to the host that it came from. One that redirects there has served.
        """
        host, origin = self._last_place(job)
        if origin is not job.origin:
            self._note_answer(job.origin, has_served=True)
        if host is not job.host:
            job.host.end_request(HTTPStatus.OK, 0, job.started, now)
            self._list(job.host)
            host.running += 1  # it is one of its requests, too
        if status is not None:
            self._note_answer(origin, has_served=has_served)
        if refusal is not None:
            host.last_refusal = refusal
        was_given_up = host.is_given_up
        host.end_request(status, pause, job.started, now, is_too_long=refusal is not None)
        if host.is_given_up and not was_given_up:
            log.warning("Giving up on %s, which refuses all requests: %s", host.name, host.last_refusal.message)
            self._end_waits_for(host)
        self._list(host)

    def _note_answer(self, origin: OriginState, *, has_served: bool) -> None:
        origin.answer(has_served=has_served)
        if has_served:
            self._resolve(origin)

    def _end_waits_for(self, host: Host) -> None:
        """Queue the jobs of a host that wait for their next try."""
        waiting = [job for _, _, job in sorted(self._later) if isinstance(job, Job) and job.host is host]
        host.queue.extend(waiting)
        self._later = [entry for entry in self._later if entry[2] not in waiting]
        heapq.heapify(self._later)

    def _give_up(self, job: Job, failure: Failure) -> None:
        """End a job that is not tried again. Use a partial document; try an http URL over https, once."""
        origin = self._last_place(job)[1]
        if failure.status is None:  # else all that it was redirected to end there, too
            self._release(job)
        if not failure.is_answered:
            self._resolve(origin, is_unreached=failure.is_retryable or failure.is_of_origin)
            if failure.is_retryable and self._try_over_https(job, failure):
                return
        elif failure.may_pass:
            self._resolve(origin, is_refusing=True)
        if job.http_failure is not None:
            failure = replace(failure, message=f"{job.http_failure.message}; and over https: {failure.message}")
        self._finish(job, job.partial or failure)

    def _resolve(self, origin: OriginState, *, is_unreached: bool = False, is_refusing: bool = False) -> None:
        """Note that an origin has served, or that a URL of it was given up, and queue the jobs held back for that."""
        held = origin.resolve(is_unreached=is_unreached, is_refusing=is_refusing)
        while held:
            self._enqueue(held.pop(), is_first=True)

    def _try_over_https(self, job: Job, failure: Failure) -> bool:
        """Fetch a URL over https if the homepage is https and the host never answered over http. Return whether so."""
        if not self._is_https or job.origin.has_answered or origin_of(job.url)[::2] != ("http", 80):
            return False
        # Nobody knows what an origin that does not answer would disallow, and it does not matter.
        job.result = Failure(failure.message, HTTPStatus.NOT_FOUND)
        self._take_rules(job, job.result)
        self._end(job, failure)
        url = f"https{requested_url(job.url)[4:]}"
        if job.fetcher is None:
            return True
        if (parsed := self._walk.parsed_sitemap(url)) is not None:
            self._receive(job.fetcher, parsed)
        elif self._walk.is_waiting_for(url):
            self._sharing.setdefault(url, []).append(job.fetcher)
        else:
            https_job = self._job_for(url, job.fetcher)
            https_job.http_failure = failure
            self._enqueue(https_job, is_first=True)
        return True

    def _finish(self, job: Job, result: Document | Failure | None, owner: Job | None = None) -> None:
        """End a job with its result.

        If another job, the `owner`, has requested the URL, the two share a sitemap. Then the result may be None.
        """
        if isinstance(result, Failure):
            is_expected = job.is_guess and result.status == HTTPStatus.NOT_FOUND
            level = logging.INFO if is_expected else logging.WARNING
            log.log(level, "Request for URL %s failed: %s", job.url, result.message)
        if result is not None:
            job.result = result
            self._take_rules(job, result)
        if job.fetcher is not None:
            if owner is not None and owner.fetcher is not None and not isinstance(result, Failure):
                self._share_parsed(owner.fetcher, job.fetcher)
            elif result is not None:
                self._take(job.fetcher, result)
        self._end(job, result)

    # URLs that several jobs lead to

    def _take_redirect(self, job: Job, moved: Failure, now: float) -> None:
        """Let a job wait that was redirected to where it may not go."""
        self._end_request(job, HTTPStatus.OK, 0, now, has_served=True)
        job.moved = moved
        job.hops += 1
        if not self._wait_for_another(job):
            host, _ = self._hosts.place(moved.moved_to or "")
            job.tries -= 1  # this was none: it has waited for its turn
            host.queue.append(job)
            self._list(host)

    def _wait_for_another(self, job: Job) -> bool:
        """Let a job wait for the URL that it redirects to, if another job has requested that. Return False if not.

        End the job if that URL is on a host that was given up.
        """
        assert job.moved is not None
        url = job.moved.moved_to or ""
        is_mine = job.follows_all or self._requested.owner(url) in (None, job)
        if is_mine and (given_up := why_given_up(*self._hosts.place(url))) is not None:
            message = f"redirects to {shortened(url)}; {given_up.message}"
            self._finish(job, job.partial or replace(given_up, message=message))
        elif is_mine:
            return False
        elif self._requested.is_circle(job):
            self._follow_alone(job)
        else:
            self._wait_for(url, job)
        return True

    def _may_go_on(self, job: Job, host: Host, now: float) -> bool:
        """Return whether a job may start that was redirected to a host and has waited there for its turn.

        It starts at its own URL: cookies and redirects may differ now. If its own host is busy, it is next there, and
        keeps its turn: else it might wait in both queues by turns, for ever. If its own host is to be left alone, it
        loses its turn.
        """
        if job.moved is None:
            return True
        if self._wait_for_another(job):
            return False
        job.moved = None
        own = job.host
        if own is host:
            return True
        if own.is_paused(now):
            self._wait(own.free_at(), job)
            return False
        job.turn_at = host
        host.start_request(now)
        if own.is_full() or own.free_at() > now:
            own.queue.appendleft(job)
            self._list(own)
            return False
        return True

    def _end_turn(self, job: Job) -> None:
        if job.turn_at is not None:
            job.turn_at.running -= 1
            self._list(job.turn_at)
            job.turn_at = None

    def _wait_for(self, url: str, job: Job) -> None:
        """Let a job wait for the result of a URL that another has requested, or has been redirected to."""
        owner = self._requested.owner(url)
        if owner is None:
            self._queue(job)  # the other one has just failed
        elif owner.has_ended:
            self._share(owner, job)
        else:
            self._requested.wait(job, url)

    def _end(self, job: Job, result: Document | Failure | None) -> None:
        """Hand the result of a job to those that wait for it, and keep it for those that will."""
        job.has_ended, job.shared, job.partial = True, result, None
        for waiting in self._requested.take_waiting(job):
            self._share(job, waiting)
        if isinstance(result, Document) and job.fetcher is not None and not is_robots_txt(job.url, *job.followed):
            job.result = job.shared = None  # a tree keeps no document that its sitemap does not need

    def _share(self, owner: Job, job: Job) -> None:
        """End a job with the result of another that has requested its URL, or the URL that it redirects to.

        A job that redirects follows by itself where that may give another result: if it was redirected more often in
        all, if the other one was refused, or if the other one failed and the redirect has set cookies.
        """
        result, moved = owner.shared, job.moved
        if result is None and (job.fetcher is None or is_robots_txt(job.url)):
            self._follow_alone(job)  # it needs the document itself, for its rules
            return
        if moved is not None:
            job.hops += owner.hops - owner.followed.get(moved.moved_to or "", 0)
            is_too_far = job.hops > self._options.limits.max_redirects
            if is_too_far or (isinstance(result, Failure) and (moved.has_cookies or result.cause is Cause.REFUSED)):
                self._follow_alone(job)
                return
        self._finish(job, job.shared_failure(result, owner) if isinstance(result, Failure) else result, owner)

    def _follow_alone(self, job: Job) -> None:
        """Request the URL of a job again, and follow its redirects wherever they lead."""
        self._release(job)
        job.follows_all = True
        self._queue(job)

    def _release(self, job: Job, *, only_left: bool = False) -> None:
        """Let other jobs request the URLs that a job was redirected to; see `RequestedURLs.release`.

        A job that has waited in vain a few times follows its redirects by itself. Else all that redirect to a URL that
        fails would be requested again each time, for one of them to go on.
        """
        for waiting in self._requested.release(job, only_left=only_left):
            waiting.vain_waits += waiting.moved is not None
            waiting.follows_all |= waiting.vain_waits >= _MAX_VAIN_WAITS
            self._queue(waiting)

    def _share_parsed(self, owner: SitemapFetcher, fetcher: SitemapFetcher) -> None:
        """Hand the parsed sitemap of one fetcher to another, now or when it has been parsed."""
        parsed = self._walk.parsed_sitemap(owner.url)
        if parsed is not None:
            self._receive(fetcher, parsed)
        else:
            self._sharing.setdefault(requested_url(owner.url), []).append(fetcher)

    def _queue(self, job: Job) -> None:
        """Put a job that has waited for another at the end of its host's queue."""
        job.moved = None
        job.host.queue.append(job)
        self._list(job.host)

    # Documents and rules

    def _take(self, fetcher: SitemapFetcher, result: Document | Failure) -> None:
        """Hand a failure to the walk; put a document among those to parse."""
        if isinstance(result, Failure):
            self._receive(fetcher, fetcher.receive(result))
            return
        self._reporter.report_fetched(fetcher, result)
        counts_pages = self._reporter.counts_pages or self._walk.limits.max_pages is not None
        parse = Parse(fetcher, result, self._budget, self._unparsed, counts_pages)
        is_small = result.size <= _SMALL_BYTES
        if not is_small or (result.may_be_compressed and not result.hold_text(_SMALL_TEXT_BYTES)):
            self._large_documents.append(parse)
        elif self._max_running == 1:
            self._take_parsed(parse, parse.run())
        else:
            self._small_documents.append(parse)

    def _unparsed(self) -> int:
        """Return how many documents wait to be parsed. Any thread may ask."""
        return len(self._large_documents) + len(self._small_documents)

    def _take_parsed(self, task: Parse, parsed: ParsedSitemap) -> None:
        """Hand a parsed document to the walk, and note what parsing has cost."""
        if reason := task.document.cut_reason:
            self._walk.cuts[reason] = None
        self._receive(task.fetcher, parsed)
        if self._budget is not None and self._budget.reason:
            self._stop_requests(self._budget.reason, reads_on=False)

    def _receive(self, fetcher: SitemapFetcher, parsed: ParsedSitemap) -> None:
        """Hand a parsed sitemap to the walk."""
        self._reporter.report_result(fetcher, parsed)
        self._may_pull = True
        self._walk.receive(fetcher, parsed)
        self._reporter.report_left_out(self._walk)
        for other in self._sharing.pop(fetcher.key, ()):
            self._receive(other, parsed)

    def _take_rules(self, job: Job, result: Document | Failure) -> None:
        """Learn the rules if the job is a robots.txt whose rules other jobs wait for, and queue those jobs."""
        if not self._waiting_for_rules or not is_robots_txt(job.url):
            return
        origin = origin_of(job.url)
        if origin not in self._waiting_for_rules:
            return
        rules = self._rules[origin] = RobotsRules(result, self._user_agent)
        politeness = self._options.politeness
        if politeness.crawl_delay:
            job.host.spacing = max(job.host.spacing, min(rules.delay(), politeness.max_delay))
        for waiting in self._waiting_for_rules.pop(origin):
            self._enqueue(waiting)
