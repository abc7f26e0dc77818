"""Crawl on Ray Data: `crawl` writes a crawl folder from the workers, `pages` gives a dataset.

    import usp.ray

    sites = usp.ray.crawl(ds, "s3://bucket/crawl", "domain")           # a row for each site, with its outcome
    pages = usp.ray.pages(ds, "domain", columns="url,last_modified")   # a row for each page

A batch has all sites of some registered domains, and writes its own part. So the limits of requests hold across
workers, and a worker that is lost costs no site and doubles none. It needs the extra `ray`. See `docs/clusters.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from zlib import crc32

from usp.crawl.crawls import open_crawl
from usp.crawl.folder import CrawlFolder
from usp.crawl.page_stream import plain_schema
from usp.crawl.reading import CrawlTable
from usp.crawl.tasks import ClusterRun, clustered_run, named_site, sites_of_part, state_of_part
from usp.exceptions import InvalidArgumentError
from usp.extras import extra

if TYPE_CHECKING:
    import pyarrow as pa
    from ray.data import Dataset

__all__ = ["SITES_PER_BATCH", "TASK_NAME", "crawl", "pages"]

#: Sites of one batch, on average; see `usp.spark.SITES_PER_TASK`.
SITES_PER_BATCH = 2_000
#: What Ray calls the tasks that crawl, in its dashboard and in the list of processes.
TASK_NAME = "usp.ray.crawl"
_CPUS = 0.25  # a crawl waits most of its time
_ROWS_NAMED_AT_ONCE = (
    100_000  # a dataset may have a block for every few rows, and a task for each takes longer than they do
)
_END_SECONDS = 10.0  # for tasks to end after one has failed


def crawl(
    ds: Dataset,
    path: str,
    column: str = "url",
    *,
    sites_per_batch: int = SITES_PER_BATCH,
    num_cpus: float = _CPUS,
    client_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Crawl sites into a crawl folder, from the workers. Return a dataset of the sites, with their outcomes.

    The crawl runs when this is called, not when the result is used. If the last run into the folder was cut off, this
    goes on with it. Otherwise it is a new run, which asks only for what may have changed.

    :param ds: the sites. The driver holds them all, some 100 bytes for each.
    :param path: the folder, which all workers must reach: s3://bucket/crawl, or a path on a shared disk.
    :param column: the column that has the sites: hosts or URLs. A row that names no site is skipped.
    :param sites_per_batch: about how many sites a batch has.
    :param num_cpus: CPUs that Ray reserves for a batch.
    :param client_options: keyword arguments for `AsyncioWebClient`, such as `user_agent`.
    :param options: those of `usp.crawl.CrawlOptions`.
    """
    run = _crawled(ds, path, column, sites_per_batch, num_cpus, client_options, options)
    return _read_parts(run, _sites_of)


def pages(
    ds: Dataset,
    column: str = "url",
    columns: Sequence[str] | str | None = None,
    *,
    path: str | None = None,
    sites_per_batch: int = SITES_PER_BATCH,
    num_cpus: float = _CPUS,
    client_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """Return a dataset of the pages of sites: the column `site`, and those of `usp export`.

    The sites are fetched when this is called. Their pages are written to a new crawl folder, and read from there.

    :param ds: the sites.
    :param column: the column that has them.
    :param columns: the columns to read, as for `usp.export.write`; all if None.
    :param path: a new folder, which all workers must reach. On one machine it may be None: then the folder is a
        temporary one, which is removed when the program ends.
    :param sites_per_batch: about how many sites a batch has.
    :param num_cpus: CPUs that Ray reserves for a batch.
    :param client_options: keyword arguments for `AsyncioWebClient`.
    :param options: those of `usp.crawl.CrawlOptions`.
    """
    names = columns.split(",") if isinstance(columns, str) else columns
    chosen = None if names is None else ["site", *(name.strip() for name in names if name.strip() != "site")]
    folder = CrawlFolder.create(_temporary_folder() if path is None else path)
    CrawlTable(folder, "pages", None, chosen)  # for its error, if there is no such column
    if folder.runs:
        raise InvalidArgumentError(f"{folder.path} has runs already; give a new folder, or use usp.ray.crawl")
    given = {"with_warc": False, **options}
    run = _crawled(ds, folder.path, column, sites_per_batch, num_cpus, client_options, given)
    return _read_parts(run, partial(_pages_of, chosen))


def _crawled(
    ds: Dataset,
    path: str,
    column: str,
    sites_per_batch: int,
    num_cpus: float,
    client_options: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> ClusterRun:
    """Crawl sites, and return the run."""
    names = ds.columns() or []
    if column not in names:
        raise InvalidArgumentError(f"the dataset has no column {column!r}; it has {', '.join(names)}")
    with clustered_run(path, options, client_options) as run:
        tasks = _tasks_of(_undone(_named_sites(ds, column), run), sites_per_batch)
        _run_tasks(run, tasks, num_cpus)
    return run


def _named_sites(ds: Dataset, column: str) -> pa.Table:
    """Return the sites of a dataset: `site`, `target` and `domain`."""
    named = ds.select_columns([column]).map_batches(
        partial(_named, column), batch_size=_ROWS_NAMED_AT_ONCE, batch_format="pyarrow"
    )
    tables: list[pa.Table] = extra("ray", "ray").get(named.to_arrow_refs())
    return extra("pyarrow", "ray").concat_tables(tables)


def _named(column: str, batch: pa.Table) -> pa.Table:
    """Return the sites of a column: `site`, `target` and `domain`. Rows that name none are left out."""
    texts = (None if value is None else str(value) for value in batch.column(column).to_pylist())
    found = [site for site in map(named_site, texts) if site is not None]
    pa_ = extra("pyarrow", "ray")
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    return pa_.table([pa_.array(values, pa_.string()) for values in columns], names=["site", "target", "domain"])


def _undone(sites: pa.Table, run: ClusterRun) -> pa.Table:
    """Return the sites that are not in the run yet, with the latest part that knows something about each."""
    compute = extra("pyarrow.compute", "ray")
    state = _state(run)
    places = compute.index_in(sites["site"], state["site"])
    found = sites.append_column("known", state["known"].take(places))
    return found.filter(compute.invert(compute.fill_null(state["is_done"].take(places), False)))


def _state(run: ClusterRun) -> pa.Table:
    """Return a row for each site of the folder: the latest part that knows it, and whether it is done in this run."""
    known: dict[str, str | None] = {}
    done: set[str] = set()
    for part in run.earlier:  # oldest first
        for row in state_of_part(run.path, part, run.run).to_pylist():
            known[row["site"]] = row["part"] or known.get(row["site"])
            if row["is_done"]:
                done.add(row["site"])
    pa_ = extra("pyarrow", "ray")
    columns = [list(known), list(known.values()), [site in done for site in known]]
    types = (pa_.string(), pa_.string(), pa_.bool_())
    arrays = [pa_.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    return pa_.table(arrays, names=["site", "known", "is_done"])


def _tasks_of(sites: pa.Table, sites_per_batch: int) -> list[pa.Table]:
    """Share out sites by their domain, those with the most sites first, so that none of them starts last.

    A domain is with the same others again in the next run, if that has as many tasks: so few parts tell what is known.
    """
    count = ceil(sites.num_rows / sites_per_batch)
    tasks: list[list[int]] = [[] for _ in range(count)]
    for row, domain in enumerate(sites["domain"].to_pylist()):
        tasks[crc32(domain.encode("utf-8", "surrogatepass")) % count].append(row)
    wanted = sites.select(["target", "known"])
    return [wanted.take(rows) for rows in sorted(tasks, key=len, reverse=True) if rows]


def _run_tasks(run: ClusterRun, tasks: list[pa.Table], num_cpus: float) -> None:
    """Crawl tasks on the cluster, and wait for all of them. If one fails, the others are ended.

    They are plain tasks, and so run in the processes that are there. Ray Data has other processes for each step of a
    shuffle than for what follows it, and starting one takes longer than a hundred sites.
    """
    ray = extra("ray", "ray")
    crawl_task = ray.remote(_crawl_task).options(
        name=TASK_NAME, num_cpus=num_cpus, max_retries=-1, scheduling_strategy="SPREAD"
    )
    shared = ray.put(run)
    running = [crawl_task.remote(shared, sites) for sites in tasks]
    try:
        ray.get(running)
    except BaseException:
        for task in running:
            ray.cancel(task, force=True)
        ray.wait(running, num_returns=len(running), timeout=_END_SECONDS)
        raise


def _crawl_task(run: ClusterRun, sites: pa.Table) -> None:
    run.crawl(zip(sites["target"].to_pylist(), sites["known"].to_pylist(), strict=True))


def _read_parts(run: ClusterRun, read: Callable[[str, str], pa.Table]) -> Dataset:
    """Return a dataset that reads the parts of a run: a task for each."""
    parts = [str(part) for part in CrawlFolder(run.path).parts(run.run)]

    def read_all(batch: pa.Table) -> Any:
        for part in batch["part"].to_pylist():
            yield from read(run.path, part)

    pa_, data = extra("pyarrow", "ray"), extra("ray.data", "ray")
    named = data.from_arrow(pa_.table([pa_.array(parts, pa_.string())], names=["part"]))
    found: Dataset = named.repartition(max(1, len(parts)))
    return found.map_batches(read_all, batch_size=None, batch_format="pyarrow")


def _sites_of(path: str, part: str) -> Any:
    yield sites_of_part(path, part)


def _pages_of(columns: list[str] | None, path: str, part: str) -> Any:
    table = open_crawl(path).pages(columns=columns)
    schema = plain_schema(table.schema)
    for batch in table.of_part(part):
        yield extra("pyarrow", "ray").Table.from_batches([batch]).cast(schema)


def _temporary_folder() -> str:
    import atexit
    import shutil

    nodes = [node for node in extra("ray", "ray").nodes() if node["Alive"]]
    if len(nodes) > 1:
        raise InvalidArgumentError("the cluster has several machines: give a path that all of them reach, like s3://")
    folder = mkdtemp(prefix="usp-ray-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
