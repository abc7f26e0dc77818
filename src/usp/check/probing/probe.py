"""What to probe: the options of a probe, and the events of its progress."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from usp.exceptions import InvalidArgumentError

__all__ = ["Probe", "ProbeProgress", "probe_of"]


class ProbeProgress(NamedTuple):
    """How far a probe is: pages done of all in the sample, and the last URL."""

    done: int
    total: int
    url: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Which pages to fetch, and what to do with the results.

    :param pages: how many, or "all".
    :param seed: another seed gives another sample. The same seed gives the same one, as long as the site lists the same
        pages.
    :param cache: a file for results. Pages that are in it, and not older than a day, are not fetched again.
    :param table: a file to write a table of the pages to, in the format of its name.
    :param progress: called when a page is done.
    """

    pages: int | Literal["all"]
    seed: int = 0
    cache: str | os.PathLike[str] | None = None
    table: str | os.PathLike[str] | None = None
    progress: Callable[[ProbeProgress], object] | None = None

    def __post_init__(self) -> None:
        if self.pages != "all" and (type(self.pages) is not int or self.pages < 1):
            raise InvalidArgumentError(f'pages of a probe must be a number, 1 or more, or "all", not {self.pages!r}')
        if type(self.seed) is not int:
            raise InvalidArgumentError(f"seed of a probe must be an integer, not {self.seed!r}")


def probe_of(probe: Probe | int | str) -> Probe:
    """Return the options of a probe, also if only the number of pages is given."""
    return probe if isinstance(probe, Probe) else Probe(probe)  # type: ignore[arg-type]  # it checks them
