"""Unknown keyword arguments: an error names the one that was meant."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import usp
import usp.aio
import usp.check
import usp.crawl
import usp.export
import usp.tree
from support import urlset
from usp.crawl import watching
from usp.crawl.crawls import CrawlArguments
from usp.keywords import check_keywords
from usp.tree import sitemap_from_str

HOME = "http://127.0.0.1:9/"
TREE: Any = sitemap_from_str(urlset(f"{HOME}1"))
#: The front doors without their types, which would refuse these calls.
EXPORT: Any = usp.export
FRONT: Any = usp.tree
AIO: Any = usp.aio
CHECK: Any = usp.check
CRAWL: Any = usp.crawl
OPEN: Any = usp.open


@pytest.mark.parametrize(
    ("call", "wrong", "meant"),
    [
        (lambda **options: TREE.to_arrow(**options), "colums", "columns"),
        (lambda **options: TREE.to_arrow(**options), "tabel", "table"),
        (lambda **options: TREE.to_pandas(**options), "colums", "columns"),
        (lambda **options: TREE.to_polars(**options), "wher", "where"),
        (lambda **options: TREE.to_duckdb(**options), "databse", "database"),
        (lambda **options: EXPORT.write(TREE, "never.csv", **options), "colums", "columns"),
        (lambda **options: EXPORT.export_homepage(HOME, "never.csv", **options), "dedup", "dedupe"),
        (lambda **options: EXPORT.export_homepage(HOME, "never.csv", **options), "limit", "limits"),
        (lambda **options: FRONT.sitemap_tree_for_homepage(HOME, **options), "concurency", "concurrency"),
        (lambda **options: FRONT.sitemap_tree_for_homepage(HOME, **options), "webclient", "web_client"),
        (lambda **options: FRONT.stream_sitemaps_for_homepage(HOME, **options), "use_robot", "use_robots"),
        (lambda **options: next(FRONT.stream_pages_for_homepage(HOME, **options)), "limit", "limits"),
        (lambda **options: asyncio.run(AIO.sitemap_tree_for_homepage(HOME, **options)), "limit", "limits"),
        (lambda **options: CHECK.check_homepage(HOME, **options), "concurency", "concurrency"),
        (lambda **options: OPEN(HOME, **options), "concurency", "concurrency"),
        (lambda **options: OPEN(__file__, **options), "concurency", "concurrency"),
        (lambda **options: CRAWL.crawl(HOME, "never", **options), "retry_faild", "retry_failed"),
        (lambda **options: CRAWL.watch(HOME, "never", every=None, **options), "destination", "destinations"),
        (lambda **options: CRAWL.watch(HOME, "never", every=None, **options), "colum", "column"),
    ],
)
def test_the_nearest_name(call: Callable[..., object], wrong: str, meant: str) -> None:
    """Every front door refuses a keyword that it does not have, and names the nearest that it has."""
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{wrong}'; did you mean '{meant}'\?"):
        call(**{wrong: 1})


def test_the_keywords_of_a_crawl_are_the_same_everywhere() -> None:
    """What `crawl` and `watch` hand on is what `crawl_async` takes."""
    taken = list(inspect.signature(usp.crawl.crawl_async).parameters)
    assert taken == ["targets", "path", *CrawlArguments.__annotations__]
    own = inspect.signature(usp.crawl.watch).parameters
    assert [*watching._NAMES, "arguments"] == list(own)


def test_no_name_is_near() -> None:
    """If nothing is near, all names are there."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'zzz'; there are: columns, where, table"):
        check_keywords({"columns": 1, "zzz": 2}, ["columns", "where"], "table")
    check_keywords({"columns": 1}, ["columns", "where"])


def test_nothing_is_written(tmp_path: Path) -> None:
    """A wrong keyword is found before anything is written."""
    wrong: Any = {"colums": "url"}
    with pytest.raises(TypeError):
        usp.export.write(TREE, tmp_path / "a.csv", **wrong)
    assert list(tmp_path.iterdir()) == []
