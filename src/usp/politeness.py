"""`Politeness`: how to treat hosts. Pass it as `politeness=` to the front doors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from usp.exceptions import InvalidArgumentError

__all__ = ["DEFAULT_FIRST_TRIES", "DEFAULT_RETRY_SECONDS", "DEFAULT_TRIES", "Politeness"]

#: How often to try a URL, and how long to wait before the first retry.
DEFAULT_TRIES = 5
DEFAULT_FIRST_TRIES = 2  # of a host that has never answered
DEFAULT_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Politeness:
    """How to treat hosts. The number of requests at once to one host is not here: pass it as `concurrency=`.

        from usp import Politeness, sitemap_tree_for_homepage

        politeness = Politeness(spacing=0.5, crawl_delay=True)
        tree = sitemap_tree_for_homepage("https://www.example.org/", politeness=politeness)

    :param spacing: seconds between the starts of two requests to one host.
    :param crawl_delay: whether to obey the `Crawl-delay` of a host's robots.txt, if it is longer than `spacing`.
    :param max_delay: the longest `Crawl-delay` and `Retry-After` to obey, in seconds. A URL that asks for a longer wait
        fails at once.
    :param tries: how often to try a URL if its failures look temporary.
    :param first_tries: the same for a host that has never answered.
    :param retry_seconds: seconds before the first retry; each further wait is twice as long, and all vary at random.
    """

    spacing: float = 0.0
    crawl_delay: bool = False
    max_delay: float = 120.0
    tries: int = DEFAULT_TRIES
    first_tries: int = DEFAULT_FIRST_TRIES
    retry_seconds: float = DEFAULT_RETRY_SECONDS

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "crawl_delay":
                if not isinstance(value, bool):
                    raise InvalidArgumentError(f"politeness: crawl_delay must be True or False, not {value!r}")
                continue
            is_count = field.name.endswith("tries")
            kind, least, what = (int, 1, "an integer") if is_count else ((int, float), 0, "a number")
            if not isinstance(value, kind) or isinstance(value, bool) or not least <= value < math.inf:
                raise InvalidArgumentError(f"politeness: {field.name} must be {what}, {least} or more, not {value!r}")

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))
        changed = (f"{field.name}={value!r}" for field, value in values if value != field.default)
        return f"Politeness({', '.join(changed)})"
