"""`Options`: how a tree is fetched, as the front doors were told, and checked."""

from __future__ import annotations

from dataclasses import dataclass, field

from usp.documents import MEMORY_BYTES
from usp.exceptions import InvalidArgumentError
from usp.limits import Limits
from usp.origins import CROSS_HOST
from usp.politeness import Politeness
from usp.progress import ProgressCallbackType

__all__ = ["DEFAULT_CONCURRENCY", "Options"]

DEFAULT_CONCURRENCY = 8
_MAX_CONCURRENCY = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a tree is fetched. See `usp.tree.sitemap_tree_for_homepage` for what each means."""

    concurrency: int = DEFAULT_CONCURRENCY
    limits: Limits = field(default_factory=Limits)
    politeness: Politeness = field(default_factory=Politeness)
    respect_robots: bool = False
    cross_host: str = "allow"
    progress: ProgressCallbackType | None = None
    memory_bytes: int = MEMORY_BYTES  # of documents; the rest of them goes into a temporary file

    def __post_init__(self) -> None:
        if type(self.concurrency) is not int or not 1 <= self.concurrency <= _MAX_CONCURRENCY:
            raise InvalidArgumentError(
                f"concurrency must be a number from 1 to {_MAX_CONCURRENCY:,}, not {self.concurrency!r}"
            )
        if not isinstance(self.limits, Limits):
            raise InvalidArgumentError(f"limits must be usp.limits.Limits(...), not {self.limits!r}")
        if not isinstance(self.politeness, Politeness):
            raise InvalidArgumentError(f"politeness must be usp.politeness.Politeness(...), not {self.politeness!r}")
        if not isinstance(self.cross_host, str) or self.cross_host not in CROSS_HOST:
            raise InvalidArgumentError(f"cross_host must be one of {', '.join(CROSS_HOST)}, not {self.cross_host!r}")
        if not isinstance(self.respect_robots, bool):
            raise InvalidArgumentError(f"respect_robots must be True or False, not {self.respect_robots!r}")
        if self.progress is not None and not callable(self.progress):
            raise InvalidArgumentError(f"progress must be a function, not {self.progress!r}")

    @property
    def needs_rules(self) -> bool:
        """Whether the robots.txt of each host is read before anything else of it."""
        return self.respect_robots or self.politeness.crawl_delay
