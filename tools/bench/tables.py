"""Makes tables of a site's pages, in the Python of one environment: what a worker does for the rows of exports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.answers import Answer, peak_memory, unordered_summary
from bench.crawls import tree_of_site


def _ours(tree: Any, path: str) -> None:
    import_module("usp.export").write(tree, path)


def _with_pandas(tree: Any, path: str) -> None:
    """As users of 1.8.1 do it."""
    table = import_module("pandas").DataFrame([page.to_dict() for page in tree.all_pages()])
    if path.endswith(".parquet"):
        table.to_parquet(path)
    elif path.endswith(".csv"):
        table.to_csv(path, index=False)
    else:
        table.to_json(path, orient="records", lines=True)


def _exported(write: Callable[[Any, str], None]) -> Callable[..., Answer]:
    def export(url: str, warm_up: str, formats: Iterable[str]) -> Answer:
        """The time of writing a file of each format, from a tree that is there, and what the files hold."""
        small, tree, answer = tree_of_site(warm_up), tree_of_site(url), {}
        with TemporaryDirectory(prefix="usp-bench-") as folder:
            for name in formats:
                path = f"{folder}/pages.{name}"
                write(small, path)
                start = time.perf_counter()
                write(tree, path)
                seconds = time.perf_counter() - start
                answer[name] = {"seconds": seconds, "size": Path(path).stat().st_size, **_urls_in(path)}
        return answer

    return export


def _urls_in(path: str) -> Answer:
    pandas = import_module("pandas")
    if path.endswith(".parquet"):
        table = pandas.read_parquet(path, columns=["url"])
    elif path.endswith(".csv"):
        table = pandas.read_csv(path, usecols=["url"])
    else:
        table = pandas.concat(part[["url"]] for part in pandas.read_json(path, lines=True, chunksize=100_000))
    return unordered_summary(table["url"])


def export_site(url: str) -> Answer:
    """The memory of fetching a site and writing its pages to a file of Parquet meanwhile."""
    export_homepage = import_module("usp.export").export_homepage
    with TemporaryDirectory(prefix="usp-bench-") as folder:
        exported = export_homepage(url, f"{folder}/pages.parquet", use_known_paths=False)
    return {"memory": peak_memory(), "pages": exported.rows}


def to_arrow(url: str) -> Answer:
    """The time of a table of Arrow, from a tree that is there."""
    tree = tree_of_site(url)
    tree.sub_sitemaps[0].to_arrow()  # imports all that it needs, and has all be settled
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        table = tree.to_arrow()
        seconds.append(time.perf_counter() - start)
        rows = table.num_rows
        del table
    return {"seconds": min(seconds), "pages": rows}


def inflate(files: list[str]) -> Answer:
    """The time of inflating documents one after the other.

    In a process that does nothing else: beside others it takes a third of that, or not, as memory happens to be there.
    """
    bodies = [Path(file).read_bytes() for file in files]
    decompress = import_module("isal.isal_zlib").decompress
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        for body in bodies:
            decompress(body, 31)
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "pages": sum(decompress(body, 31).count(b"<url>") for body in bodies)}


COMMANDS: dict[str, Callable[..., Answer]] = {
    "export": _exported(_ours),
    "export with pandas": _exported(_with_pandas),
    "export site": export_site,
    "to arrow": to_arrow,
    "inflate": inflate,
}
