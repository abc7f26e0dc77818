"""`Politeness`: how hosts are treated. Passed as `politeness=` to the front doors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from usp.exceptions import InvalidArgumentError

__all__ = ["Politeness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Politeness:
    """How hosts are treated, beside how many requests are made to one of them at once (`concurrency=`).

    `spacing`: seconds between the starts of two requests to one host.
    `crawl_delay`: whether the `Crawl-delay` of a host's robots.txt is kept, where that is longer.
    `max_delay`: seconds that a host's `Crawl-delay` and `Retry-After` may ask for at most.
    `tries`: how often a URL is tried, where the failure is worth it.
    `retry_seconds`: before the second try; each wait after that is twice as long, and each is varied at random.

    Example: `Politeness(spacing=0.5, crawl_delay=True)`
    """

    spacing: float = 0.0
    crawl_delay: bool = False
    max_delay: float = 120.0
    tries: int = 5
    retry_seconds: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "crawl_delay":
                if not isinstance(value, bool):
                    raise InvalidArgumentError(f"politeness: crawl_delay must be True or False, not {value!r}")
                continue
            kind, least, what = (int, 1, "a whole number") if field.name == "tries" else ((int, float), 0, "a number")
            if not isinstance(value, kind) or isinstance(value, bool) or not least <= value < math.inf:
                raise InvalidArgumentError(f"politeness: {field.name} must be {what}, {least} or more, not {value!r}")
