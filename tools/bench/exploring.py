"""What a worker does with a site in the explorer: reads it, filters it, and asks for rows anywhere.

The explorer runs without its web server: what takes time is behind it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from bench.crawls import Answer, peak_memory

_TIMES = 5
#: Filters that read all URLs.
_FILTERS: tuple[dict[str, str], ...] = ({"q": "7/"}, {"q": "99$", "regex": "1"}, {"q": "nothing has this"})
_PLACES = (0.1, 0.5, 0.73, 0.999)


def _read(url: str) -> tuple[Any, float]:
    """Return an explorer that has read a site, and the seconds until everything was visible."""
    sources = import_module("usp.sources").find_sources(url)
    explorer = import_module("usp.view.explorer").Explorer(
        sources, ((source, source.stream(None, pages_once=True, use_known_paths=False)) for source in sources)
    )
    started = time.perf_counter()
    explorer.start()
    explorer.loader.wait()
    return explorer, time.perf_counter() - started


def _median(ask: Callable[[dict[str, str]], Any], query: dict[str, str]) -> float:
    seconds = []
    for _ in range(_TIMES):
        started = time.perf_counter()
        ask(query)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def view_site(url: str) -> Answer:
    """Read a site; ask for the first rows of filters, and for rows anywhere."""
    explorer, ready = _read(url)
    try:
        pages = explorer.loader.pages
        explorer.overview({})
        filters = []
        for number, query in enumerate(_FILTERS):  # each once: the counts of a filter are kept
            for again in range(_TIMES):
                started = time.perf_counter()
                explorer.pages({**query, "from": f"{1970 + number}-01-0{again + 1}"} if again else query)
                filters.append(time.perf_counter() - started)
        explorer.pages({})
        places = [_median(explorer.pages, {"offset": str(int(pages * at))}) for at in _PLACES]
        return {"pages": pages, "seconds": ready, "filter": max(filters), "place": max(places), "memory": peak_memory()}
    finally:
        explorer.close()


def export_for_view(url: str) -> Answer:
    """Export a site to Parquet."""
    export_homepage = import_module("usp.export").export_homepage
    with TemporaryDirectory(prefix="usp-bench-") as folder:
        started = time.perf_counter()
        exported = export_homepage(url, f"{folder}/pages.parquet", use_known_paths=False)
        return {"pages": exported.rows, "seconds": time.perf_counter() - started}


COMMANDS: dict[str, Callable[..., Answer]] = {"view site": view_site, "export for view": export_for_view}
