"""Does what is measured, in the Python of one environment: reads JSON requests, a line each, and prints JSON answers.

It imports each library only when a task needs it. The tasks here read one file; those of `crawls` fetch sites. A task
has three parts: `prepare` its input, `run` it, and `check` what it found. Only `run` is timed; it is repeated until
`REPEAT_SECONDS` have passed, and the mean is the answer, so that short runs are as steady as long ones.
"""

from __future__ import annotations

import html
import json
import logging
import os
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # last: no library may find other modules there

from bench import bounds, crawls, exploring, small_sites  # after the line that makes it importable
from bench.crawls import MAX_ADDRESS_SPACE, Answer, peak_memory, read_urls, summary

REPEAT_SECONDS = 0.3
_SITEMAP_TAG = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
_PAGE_FIELDS = (
    "url",
    "priority",
    "last_modified",
    "change_frequency",
    "news_story",
    "images",
    "alternates",
    "videos",
)
_STORY_FIELDS = (
    "title",
    "publish_date",
    "publication_name",
    "publication_language",
    "access",
    "genres",
    "keywords",
    "stock_tickers",
)
_IMAGE_FIELDS = ("loc", "caption", "geo_location", "title", "license")


class Task(NamedTuple):
    """A task on one file."""

    prepare: Callable[[str], Any]  # from the path of a file
    run: Callable[[Any], Any]
    check: Callable[[Any], Answer]  # what a run gave, so that nobody wins by reading less


def _bytes(path: str) -> bytes:
    return Path(path).read_bytes()


def _text(path: str) -> str:
    return Path(path).read_text("utf-8")


# Both packages called usp


def _read_fields(sitemap: Any) -> Any:
    objects = import_module("usp.objects.page")
    page_fields = attrgetter(*(name for name in _PAGE_FIELDS if hasattr(objects.SitemapPage, name)))
    story_fields, image_fields = attrgetter(*_STORY_FIELDS), attrgetter(*_IMAGE_FIELDS)
    for page in sitemap.all_pages():
        _, _, _, _, story, images, *_ = page_fields(page)
        if story is not None:
            story_fields(story)
        for image in images or ():
            image_fields(image)
    return sitemap


def _check_urls(sitemap: Any) -> Answer:
    return summary(page.url for page in sitemap.all_pages())


def _check_fields(sitemap: Any) -> Answer:
    return summary(repr(_plain(page)) for page in sitemap.all_pages())


def _plain(page: Any) -> list[Any]:
    """Return the fields that both packages have, in types that both have."""
    story, images, frequency = page.news_story, page.images, page.change_frequency
    return [
        page.url,
        str(page.priority),
        page.last_modified and page.last_modified.isoformat(),
        frequency and frequency.value,
        story and [str(getattr(story, name)) for name in _STORY_FIELDS],
        [[getattr(image, name) for name in _IMAGE_FIELDS] for image in images or ()],
        [list(pair) for pair in page.alternates or ()],
    ]


def _from_bytes(data: bytes) -> Any:
    return import_module("usp.tree").sitemap_from_bytes(data)


def _from_str(text: str) -> Any:
    return import_module("usp.tree").sitemap_from_str(text)


def _from_gzip(data: bytes) -> Any:
    """Inflate and decode for a package that takes text only."""
    return _from_str(import_module("gzip").decompress(data).decode())


# Columns of pages, and inflating, which any reader of a compressed sitemap must do


def _columns(data: bytes, *wanted: list[str]) -> Any:
    document = import_module("usp.documents").Document("http://bench.example/s.xml", data)
    parser_of = import_module("usp.fetch_parse.opening").parser_of
    (columns,) = document.first_read(lambda: list(parser_of(document).columns(*wanted)))
    return columns


def _check_columns(columns: Any) -> Answer:
    """Summarise all that the columns hold of each page, as `_check_inflated` finds it in the text."""
    names = [frequency.value for frequency in import_module("usp.scan.columns").CHANGE_FREQUENCIES]
    named = columns.columns
    urls, ends = bytes(named["url"].data), named["url"].offsets
    dates, frequencies, priorities = (named[name].data for name in ("last_modified", "change_frequency", "priority"))
    return summary(
        f"{urls[ends[i] : ends[i + 1]].decode()} {dates[i]} {names[frequencies[i]]} {priorities[i]}"
        for i in range(columns.length)
    )


def _check_urls_and_dates(columns: Any) -> Answer:
    urls, ends = bytes(columns.columns["url"].data), columns.columns["url"].offsets
    dates = columns.columns["last_modified"].data
    return summary(f"{urls[ends[i] : ends[i + 1]].decode()} {dates[i]}" for i in range(columns.length))


def _inflate(data: bytes) -> Any:
    return import_module("isal.isal_zlib").decompress(data, 31)


def _inflated_entries(data: bytes) -> Iterator[tuple[str, int, str, float]]:
    """Yield the values of each page, as a regular expression finds them."""
    tags = ("loc", "lastmod", "changefreq", "priority")
    for url, date, frequency, priority in re.findall(
        r"\s+".join(f"<{tag}>(.*)</{tag}>" for tag in tags), data.decode()
    ):
        second = round(datetime.fromisoformat(date).timestamp())
        yield html.unescape(url), second * 1_000_000, frequency, float(priority)


def _check_inflated(data: bytes) -> Answer:
    return summary(" ".join(map(str, entry)) for entry in _inflated_entries(data))


def _check_inflated_dates(data: bytes) -> Answer:
    return summary(f"{url} {date}" for url, date, _, _ in _inflated_entries(data))


# Other libraries


def _lxml_entries(data: bytes) -> Iterator[dict[str, str]]:
    start = len(_SITEMAP_TAG)
    for _, element in import_module("lxml.etree").iterparse(BytesIO(data), events=("end",), tag=f"{_SITEMAP_TAG}url"):
        yield {child.tag[start:]: child.text for child in element}
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]


def _scrapy_entries(data: bytes) -> Iterable[dict[str, str]]:
    entries: Iterable[dict[str, str]] = import_module("scrapy.utils.sitemap").Sitemap(data)
    return entries


def _read_entries(entries: Callable[[bytes], Iterable[dict[str, str]]]) -> Task:
    def run(data: bytes) -> bytes:
        for entry in entries(data):
            entry["loc"]
        return data

    return Task(_bytes, run, lambda data: summary(entry["loc"] for entry in entries(data)))


def _advertools_table(url: str) -> Any:
    return import_module("advertools").sitemap_to_df(url)


def _read_children(sitemap: Any) -> Any:
    for child in sitemap.sub_sitemaps:
        _ = child.url
    return sitemap


def _check_children(sitemap: Any) -> Answer:
    return summary(child.url for child in sitemap.sub_sitemaps)


TASKS = {
    "children": Task(_bytes, lambda data: _read_children(_from_bytes(data)), _check_children),
    "children of text": Task(_text, lambda text: _read_children(_from_str(text)), _check_children),
    "urls": Task(_bytes, lambda data: read_urls(_from_bytes(data)), _check_urls),
    "urls of text": Task(_text, lambda text: read_urls(_from_str(text)), _check_urls),
    "urls of gzip": Task(_bytes, lambda data: read_urls(_from_gzip(data)), _check_urls),
    "fields": Task(_bytes, lambda data: _read_fields(_from_bytes(data)), _check_fields),
    "fields of any texts": Task(_bytes, lambda data: _read_fields(_from_bytes(data)), _check_urls),
    "fields of text": Task(_text, lambda text: _read_fields(_from_str(text)), _check_fields),
    "columns": Task(_bytes, _columns, _check_columns),
    "urls and dates": Task(_bytes, lambda data: _columns(data, ["url", "last_modified"]), _check_urls_and_dates),
    "inflate": Task(_bytes, _inflate, _check_inflated),
    "inflate for urls and dates": Task(_bytes, _inflate, _check_inflated_dates),
    "lxml": _read_entries(_lxml_entries),
    "scrapy": _read_entries(_scrapy_entries),
    "advertools": Task(lambda path: Path(path).as_uri(), _advertools_table, lambda table: summary(table["loc"])),
}


def timed(task: str, file: str, check: bool = False) -> Answer:
    """Time a task; or, with `check`, run it once and return what it found."""
    prepare, run, check_it = TASKS[task]
    given = prepare(file)
    if check:
        return check_it(run(given))
    runs, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < REPEAT_SECONDS or not runs:
        run(given)
        runs += 1
    return {"seconds": passed / runs, "runs": runs}


def hostile(file: str) -> Answer:
    """Time the reading of a hostile document, with all fields of its pages. A process does this once."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    _read_fields(_from_bytes(b"<urlset><url><loc>http://bench.example/</loc></url></urlset>"))  # imports
    before, data = peak_memory(), _bytes(file)
    start = time.perf_counter()
    sitemap = _read_fields(_from_bytes(data))
    seconds = time.perf_counter() - start
    peak = peak_memory()
    return {"seconds": seconds, "grown": peak - before, "memory": peak, "pages": _check_urls(sitemap)["pages"]}


def about(package: str) -> Answer:
    """Return the version of Python and of a package."""
    return {"python": platform.python_version(), "version": version(package)}


def is_compiled() -> Answer:
    """Return whether usp uses its compiled parts."""
    return {"compiled": import_module("usp.compiled").IS_COMPILED}


COMMANDS: dict[str, Callable[..., Answer]] = {
    "timed": timed,
    "hostile": hostile,
    "about": about,
    "compiled": is_compiled,
    **crawls.COMMANDS,
    **small_sites.COMMANDS,
    **bounds.COMMANDS,
    **exploring.COMMANDS,
}


def main() -> None:
    """Answer until there are no more requests."""
    logging.disable(logging.CRITICAL)
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # so that nothing a library prints is taken for an answer
    for line in sys.stdin:
        command, arguments = json.loads(line)
        try:
            answer = COMMANDS[command](**arguments)
        except ImportError as error:
            answer = {"missing": str(error)}
        except Exception as error:  # a library that fails loses its row, not the run
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
