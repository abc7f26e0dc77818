"""Hosts: how many requests one gets at once, when the next may start, when to give up, and what its robots.txt says.

Nothing here does I/O or reads a clock: callers pass times, as seconds of any clock that only goes forward.

- A host that answers 429 or 503 is left alone for as long as it asks. Then it gets half as many requests at once. Each
  good answer allows a little more again, up to the number at the start.
- A host that asks for too long a wait fails that one URL. After a short pause it gets one request, to see whether it
  answers others (as a half-open circuit breaker does). If it refuses again, the pause doubles; after a few refusals in
  a row the host is given up.
- Each host has a budget of seconds to wait. A pause costs them, a document gives some back. A host that asks for more
  than is left has asked for too long a wait.
- Each host has a budget of retries. A retry costs one, a document gives one back. When the budget is spent, URLs of the
  host are tried once. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
- What comes after a redirect to another host counts for that host. The one that redirects has answered. A redirect to a
  host that is left alone waits in the queue of that host.
- A host that has never answered gets fewer tries, and none after a few URLs; none after the first URL, if the failure
  says that all others would fail, too: no such host, a connection refused, a bad certificate.
- A host that answers with nothing but errors that may pass, such as 429 and 503, is tried again for one URL only. All
  others wait for that one, and are then tried once.
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from usp.documents import Document, Failure
from usp.logs import logger
from usp.objects.outcome import Cause, cause_of_status
from usp.objects.problem import UNLOGGED
from usp.objects.wording import duration
from usp.origins import Origin, origin_of
from usp.politeness import Politeness
from usp.scan.encodings import to_utf8
from usp.scan.lines import robots_text
from usp.scan.robots import robots_txt_for, rules_for

if TYPE_CHECKING:
    from protego import Protego

    from usp.drivers.tasks import Job

__all__ = ["Host", "KnownHosts", "OriginState", "RobotsRules", "why_given_up"]

log = logger(__name__)

_RETRY_BUDGET = 100.0
_MAX_UNREACHED_URLS = 3
_RECOVERY = 0.25  # of a request at once, for each good answer
_OVERLOADED = (429, 503)
_PAUSE_BUDGET = 600.0  # seconds
_MAX_DELAYS = 5  # the budget allows at least this many of the longest delays
_PAUSE_FOR_A_DOCUMENT = 10.0  # seconds that a document adds to the budget
_FIRST_PAUSE = 1.0  # before the first careful request
_MAX_REFUSALS = 5
#: Where in the queue the careful requests come from. URLs that stand together often share their trouble.
_SPREAD = (0.5, 0.99, 0.25, 0.75)
_SLOW_SECONDS = 10.0  # a request that takes longer is slow
#: Rules of a robots.txt to obey, and those with a wildcard among them. Each costs time for each URL.
_MAX_RULES = 10_000
_MAX_WILDCARDS = 1_000


_NO_FAILURE = Failure("")


class Host:
    """One host: its queue of jobs, its limit on requests at once, and its budgets of retries and of pauses."""

    def __init__(self, name: str, concurrency: int, politeness: Politeness) -> None:
        self.name = name
        self.spacing = politeness.spacing
        self.running = 0
        self.queue: deque[Job] = deque()
        self.is_listed = False  # whether the schedule has it among the hosts that may have a job to start
        self.last_refusal = _NO_FAILURE
        self._max_concurrency = float(concurrency)
        self._concurrency = float(concurrency)
        self._max_delay = politeness.max_delay
        self._retry_budget = _RETRY_BUDGET
        self._max_pauses = self._pause_budget = max(_PAUSE_BUDGET, _MAX_DELAYS * politeness.max_delay)
        self._last_start = -math.inf
        self._paused_until = -math.inf
        self._refusals = 0  # in a row, of too long a wait; since then, requests are careful
        self._refused_at = -math.inf
        self._slow_requests = 0

    @property
    def is_given_up(self) -> bool:
        """Whether the host has refused so often that no URL of it is worth a request."""
        return self._refusals >= _MAX_REFUSALS

    def is_full(self) -> bool:
        """Return whether the host has as many requests at once as it may get."""
        return self.running >= (1 if self._refusals else max(1, int(self._concurrency)))

    def free_at(self) -> float:
        """Return when the next request may start."""
        return -math.inf if self.is_given_up else max(self._paused_until, self._last_start + self.spacing)

    def is_paused(self, now: float) -> bool:
        """Return whether the host is left alone."""
        return self._paused_until > now

    def must_wait(self, now: float, *, has_turn: bool) -> bool:
        """Return whether a redirect may not go to this host now. Any thread may ask.

        :param has_turn: whether the request that is redirected counts as one of this host.
        """
        if self.is_paused(now):
            return True
        return self._refusals > 0 and not (has_turn and self.running <= 1)  # one careful request at a time

    def next_job(self) -> Job:
        """Remove and return the job to start next: the first, or one from elsewhere in the queue while careful."""
        if not self._refusals or self.is_given_up:
            return self.queue.popleft()
        at = int(len(self.queue) * _SPREAD[(self._refusals - 1) % len(_SPREAD)])
        job = self.queue[at]
        del self.queue[at]
        return job

    def start_request(self, now: float) -> None:
        """Count a request that starts."""
        self.running += 1
        self._last_start = now

    def end_request(
        self, status: int | None, pause: float, started: float, now: float, *, is_too_long: bool = False
    ) -> None:
        """Count a request that ended, and adapt the number of requests at once.

        :param status: the HTTP status; None if there was no answer.
        :param pause: seconds to leave an overloaded host alone.
        :param started: when the request started.
        :param is_too_long: whether an overloaded host has asked for too long a wait.
        """
        self.running -= 1
        self._slow_requests += now - started > _SLOW_SECONDS
        if status in _OVERLOADED:
            self._concurrency = max(1.0, min(self._concurrency, self.running + 1.0) / 2)
            self._pause_until(now + pause, now)
        elif status is not None:
            self._concurrency = min(self._max_concurrency, self._concurrency + _RECOVERY)
        if started < self._refused_at or self.is_given_up:
            return  # a request that was under way at the last refusal says nothing new
        if self._refusals and status is not None and status not in _OVERLOADED:
            self._refusals = 0
            self._concurrency = 1.0
        elif self._refusals or (is_too_long and status in _OVERLOADED):
            self._refusals += 1
            self._refused_at = now
            self._paused_until = max(self._paused_until, now + _FIRST_PAUSE * 2 ** (self._refusals - 1))

    def why_too_long(self, failure: Failure, wait: float, now: float, ends_at: float) -> str | None:
        """Return why a wait is too long that the host asks for; None if it is not, or if there is nothing to retry.

        :param ends_at: when the tree's time is up.
        """
        asked, most = failure.retry_after or 0, self._max_delay
        if not failure.is_retryable:
            return None
        if asked > most:
            return f"asked to wait {duration(asked)}, longer than {duration(most)} (max_delay)"
        if asked and now + asked >= ends_at:
            return f"asked to wait {duration(asked)}, longer than the time left (limits.tree_seconds)"
        is_pause = failure.status == HTTPStatus.TOO_MANY_REQUESTS or (
            failure.status == HTTPStatus.SERVICE_UNAVAILABLE and asked
        )
        if is_pause and now + wait - max(now, self._paused_until) > self._pause_budget:
            return f"asked to wait {duration(wait)}, after too long waits for {self.name} before"
        return None

    def _pause_until(self, until: float, now: float) -> None:
        longer = until - max(now, self._paused_until)
        if longer > 0:
            self._pause_budget -= longer
            self._paused_until = until

    def refund(self) -> None:
        """Give back one retry and some time to pause, for a document."""
        self._retry_budget = min(_RETRY_BUDGET, self._retry_budget + 1)
        self._pause_budget = min(self._max_pauses, self._pause_budget + _PAUSE_FOR_A_DOCUMENT)

    def spend_retry(self) -> bool:
        """Spend one retry. Return False if none are left."""
        if self._retry_budget < 1:
            return False
        self._retry_budget -= 1
        return True

    def fair_seconds(self, seconds_left: float) -> float:
        """Return how long a request may take, so that slow URLs leave time for the others in the queue.

        There is no limit until as many requests were slow as the host gets at once.

        :param seconds_left: the time for all of them.
        """
        if self._slow_requests < self._max_concurrency:
            return math.inf
        return max(_SLOW_SECONDS, seconds_left * self._max_concurrency / (len(self.queue) + 1))


class OriginState:
    """Whether an origin (a scheme, host and port) answers at all."""

    def __init__(self) -> None:
        self.has_answered = False
        self._has_served = False  # it has answered with something else than an error that may pass
        self.is_doubtful = False  # a try has failed: the next one shows whether the origin answers at all
        self.held_jobs: deque[Job] = deque()  # wait while it is doubtful
        self.last_failure = _NO_FAILURE
        self._unreached_urls = 0
        self._is_refusing = False  # a URL was given up after errors that may pass

    def max_tries(self, politeness: Politeness) -> int:
        """Return how often to try a URL."""
        if self.has_answered:
            return 1 if self._is_refusing and not self._has_served else politeness.tries
        return min(politeness.tries, politeness.first_tries if not self._unreached_urls else 1)

    def doubt(self) -> None:
        """Hold other jobs back until a URL is tried again, unless the origin has served something before."""
        self.is_doubtful = not self._has_served

    def answer(self, *, has_served: bool) -> None:
        """Note that the origin has answered.

        :param has_served: whether with something else than an error that may pass.
        """
        self.has_answered = True
        self._has_served |= has_served

    def resolve(self, *, is_unreached: bool = False, is_refusing: bool = False) -> deque[Job]:
        """Note that the origin has served something, or that a URL was given up. Return the jobs that were held back.

        :param is_unreached: whether the URL was given up because there was no answer.
        :param is_refusing: whether it was given up after an error that may pass.
        """
        if is_unreached:
            self._unreached_urls = _MAX_UNREACHED_URLS if self.last_failure.is_of_origin else self._unreached_urls + 1
        self._is_refusing |= is_refusing
        self.is_doubtful = False
        held, self.held_jobs = self.held_jobs, deque()
        return held

    @property
    def is_given_up(self) -> bool:
        """Whether the origin is not worth a request."""
        return not self.has_answered and self._unreached_urls >= _MAX_UNREACHED_URLS


def why_given_up(host: Host, origin: OriginState) -> Failure | None:
    """Return the failure of all URLs of a host that is not worth a request; None if it is. Any thread may ask."""
    if host.is_given_up:
        message = f"{host.name} refuses all requests: {host.last_refusal.message}"
        return Failure(message, host.last_refusal.status, is_retryable=True)
    if origin.is_given_up:
        last = origin.last_failure
        return Failure(f"{host.name} does not answer: {last.message}", is_retryable=last.is_retryable, cause=last.cause)
    return None


class KnownHosts:
    """The hosts and origins of a tree."""

    def __init__(self, concurrency: int, politeness: Politeness) -> None:
        self._concurrency = concurrency
        self._politeness = politeness
        self._hosts: dict[str, Host] = {}
        self._origins: dict[Origin, OriginState] = {}

    def place(self, url: str) -> tuple[Host, OriginState]:
        """Return the host and the origin of a URL."""
        origin = origin_of(url)
        host = self._hosts.get(origin[1])
        if host is None:
            host = self._hosts[origin[1]] = Host(origin[1], self._concurrency, self._politeness)
        return host, self._origins.setdefault(origin, OriginState())

    def host(self, url: str) -> Host | None:
        """Return the host of a URL; None if nothing of it was requested. Any thread may ask."""
        return self._hosts.get(origin_of(url)[1])

    def is_given_up(self, url: str) -> bool:
        """Return whether the host of a URL is not worth a request. Any thread may ask."""
        host, state = self.host(url), self._origins.get(origin_of(url))
        return host is not None and state is not None and why_given_up(host, state) is not None


class RobotsRules:
    """What a robots.txt says to one user agent.

    https://www.rfc-editor.org/rfc/rfc9309
    """

    def __init__(self, response: Document | Failure, user_agent: str) -> None:
        self._user_agent = user_agent
        self.unreachable: str | None = None  # why the robots.txt could not be fetched
        self.cause = Cause.DISALLOWED  # of a refusal
        text = ""
        if isinstance(response, Document):
            pieces = to_utf8(response.pieces(lambda code: None), response.charset, UNLOGGED)
            # Half of a line says something else: `Disallow: /` would be all that is left of `Disallow: /old/`.
            text = robots_text(pieces, is_cut=lambda: response.ends_early).decode("utf-8", "replace")
        elif not 400 <= (response.status or 0) < 500:  # 2.3.1.3: after a 4xx, everything is allowed
            self.unreachable = response.message  # 2.3.1.4: nothing is allowed
            self.cause = response.cause or cause_of_status(response.status)
        self._rules: Protego = _parse_rules(text, user_agent)

    def refusal(self, url: str) -> str | None:
        """Return why a URL may not be fetched; None if it may."""
        if self.unreachable is not None:
            return f"its host's robots.txt could not be fetched ({self.unreachable}), so nothing is allowed there"
        if self._rules.can_fetch(url, self._user_agent):
            return None
        return f"its host's robots.txt disallows it to {self._user_agent!r}"

    def delay(self) -> float:
        """Return the `Crawl-delay` in seconds; 0 if there is none."""
        return float(self._rules.crawl_delay(self._user_agent) or 0)


@lru_cache(16)
def _parse_rules(text: str, user_agent: str) -> Any:
    from protego import Protego  # imported only when needed

    own, is_cut = robots_txt_for(rules_for(text, [user_agent]), _MAX_RULES, _MAX_WILDCARDS)
    if is_cut:
        log.warning("A robots.txt has more than %d rules for %r: the rest is not obeyed", _MAX_RULES, user_agent)
    return Protego.parse(own)
