"""Crawl on Spark: `crawl` writes a crawl folder from the executors, `pages` and `warc` give data frames.

    import usp.spark

    sites = usp.spark.crawl(df, "s3://bucket/crawl", "domain")          # a row for each site, with its outcome
    pages = usp.spark.pages(df, "domain", columns="url,last_modified")  # a row for each page
    pages = usp.spark.warc(paths)                                       # pages out of WARC files

All sites of a registered domain are in one task, so the limits of requests hold across executors. Spark schedules; the
tasks of a crawl carry no pages. It needs the extra `spark`. See `docs/clusters.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

from usp.crawl.folder import CrawlFolder
from usp.crawl.page_stream import PageBatches, pages_of_sites, plain_schema
from usp.crawl.schema import TABLES
from usp.crawl.tasks import (
    ClusterRun,
    clustered_run,
    crawl_options,
    named_site,
    sites_of_part,
    state_of_part,
)
from usp.crawl.warc_tables import WARC_TABLES, warc_batches
from usp.exceptions import InvalidArgumentError
from usp.export.arrow import arrow_schema
from usp.extras import extra

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SITES_PER_TASK", "crawl", "pages", "warc"]

#: Sites of one task, on average. A task that is lost is run again. At its end it waits for its slowest sites, so with
#: smaller tasks cores wait more: see `tools/simulate_crawl.py`.
SITES_PER_TASK = 2_000
_READERS = 64  # tasks that read the parts of a folder, at most
_NAMED = "site string, target string, domain string"
_STATE = "site string, run long, part string, is_done boolean"

_Batches = Iterator["pa.RecordBatch"]


def crawl(
    df: DataFrame,
    path: str,
    column: str = "url",
    *,
    sites_per_task: int = SITES_PER_TASK,
    client_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Crawl sites into a crawl folder, from the executors. Return a data frame of the sites, with their outcomes.

    The crawl runs when this is called, not when the result is used. If the last run into the folder was cut off, this
    goes on with it. Otherwise it is a new run, which asks only for what may have changed.

    :param df: the sites. It must give the same rows if Spark computes a part of it again.
    :param path: the folder, which all executors must reach: s3://bucket/crawl, or a path on a shared disk.
    :param column: the column that has the sites: hosts or URLs. A row that names no site is skipped.
    :param sites_per_task: about how many sites a task has.
    :param client_options: keyword arguments for `AsyncioWebClient`, such as `user_agent`.
    :param options: those of `usp.crawl.CrawlOptions`.
    """
    named = _named(df, column)
    with clustered_run(path, options, client_options) as run:
        sites = _undone(named, run).persist()
        try:
            tasks = max(1, ceil(sites.count() / sites_per_task))
            sites.repartition(tasks, "domain").mapInArrow(_crawling(run), "part string").collect()
        finally:
            sites.unpersist()
    return _sites_of_run(df.sparkSession, run)


def pages(
    df: DataFrame,
    column: str = "url",
    columns: Sequence[str] | str | None = None,
    *,
    sites_per_task: int = SITES_PER_TASK,
    client_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Return a data frame of the pages of sites: the column `site`, and those of `usp export`.

    Every action on it fetches all sites again: persist it, or write it first. To keep what was fetched and ask only for
    changes the next time, use `crawl`.

    :param df: the sites.
    :param column: the column that has them.
    :param columns: the columns to read, as for `usp.export.write`; all if None.
    :param sites_per_task: about how many sites a task has.
    :param client_options: keyword arguments for `AsyncioWebClient`.
    :param options: those of `usp.crawl.CrawlOptions`.
    """
    wanted = crawl_options(options)
    schema = _spark_schema(PageBatches(columns).schema)

    def fetch(batches: _Batches) -> _Batches:
        targets = [target for batch in batches for target in batch.column("target").to_pylist()]
        yield from pages_of_sites(targets, columns, wanted, client_options)

    sites = _named(df, column)
    tasks = max(1, ceil(df.count() / sites_per_task))
    return sites.repartition(tasks, "domain").mapInArrow(fetch, schema)


def warc(
    df: DataFrame, column: str = "path", table: str = "pages", columns: Sequence[str] | str | None = None
) -> DataFrame:
    """Return what the sitemaps and robots.txt files in WARC files say, as a data frame.

    :param df: the paths or URLs of the files; a task for each.
    :param column: the column that has them.
    :param table: "pages" for the pages of sitemaps; "sitemaps" for the sitemaps that robots.txt files and indexes list.
    :param columns: the columns of pages to read; all if None.
    """
    if table not in WARC_TABLES:
        raise InvalidArgumentError(f"there is no table {table!r} of WARC files; there are {', '.join(WARC_TABLES)}")
    schema = _spark_schema(WARC_TABLES[table](columns).schema)

    def read(batches: _Batches) -> _Batches:
        for batch in batches:
            for path in batch.column(0).to_pylist():
                yield from warc_batches(path, table, columns)

    paths = df.select(df[column].cast("string").alias("path"))
    return paths.repartition(max(1, df.count()), "path").mapInArrow(read, schema)


def _named(df: DataFrame, column: str) -> DataFrame:
    """Return the sites of a column: `site`, `target` and `domain`. Rows that name none are left out."""
    if column not in df.columns:
        raise InvalidArgumentError(f"the data frame has no column {column!r}; it has {', '.join(df.columns)}")

    def name(batches: _Batches) -> _Batches:
        pa_ = extra("pyarrow", "spark")
        for batch in batches:
            found = [site for site in map(named_site, batch.column(0).to_pylist()) if site is not None]
            columns = list(zip(*found, strict=True)) or [(), (), ()]
            yield pa_.RecordBatch.from_arrays(
                [pa_.array(values, pa_.string()) for values in columns], ["site", "target", "domain"]
            )

    return df.select(df[column].cast("string")).mapInArrow(name, _NAMED)


def _undone(sites: DataFrame, run: ClusterRun) -> DataFrame:
    """Return the sites that are not in the run yet, with the latest part that knows something about each."""
    functions = extra("pyspark.sql.functions", "spark")
    if not run.earlier:
        return sites.withColumn("known", functions.lit(None).cast("string"))

    def read(batches: _Batches) -> _Batches:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from state_of_part(run.path, part, run.run).cast(_arrow_state()).to_batches()

    parts = _parts(sites.sparkSession, run.earlier).mapInArrow(read, _STATE)
    latest = functions.when(functions.col("part").isNotNull(), functions.struct("run", "part"))
    state = parts.groupBy("site").agg(
        functions.max(latest)["part"].alias("known"), functions.bool_or("is_done").alias("is_done")
    )
    found = sites.join(state, "site", "left")
    return found.where(~functions.coalesce("is_done", functions.lit(False))).drop("is_done")


def _crawling(run: ClusterRun) -> Any:
    """Return the function that crawls the sites of a task."""

    def crawl_task(batches: _Batches) -> _Batches:
        pa_ = extra("pyarrow", "spark")
        rows = (row for batch in batches for row in batch.select(["target", "known"]).to_pylist())
        part = run.crawl((row["target"], row["known"]) for row in rows)
        if part is not None:
            yield pa_.RecordBatch.from_arrays([pa_.array([part], pa_.string())], ["part"])

    return crawl_task


def _sites_of_run(spark: SparkSession, run: ClusterRun) -> DataFrame:
    """Return the table of sites of a run. It is read where it is needed, from the folder."""
    folder = CrawlFolder(run.path)
    parts = [str(part) for part in folder.parts(run.run)]
    schema = _sites_schema()

    def read(batches: _Batches) -> _Batches:
        for batch in batches:
            for part in batch.column(0).to_pylist():
                yield from sites_of_part(run.path, part).cast(schema).to_batches()

    return _parts(spark, parts).mapInArrow(read, _spark_schema(schema))


def _parts(spark: SparkSession, parts: Sequence[str]) -> DataFrame:
    named = spark.createDataFrame([(part,) for part in parts], "part string")
    return named.repartition(max(1, min(len(parts), _READERS)), "part")


def _arrow_state() -> pa.Schema:
    pa_ = extra("pyarrow", "spark")
    return pa_.schema([("site", pa_.string()), ("run", pa_.int64()), ("part", pa_.string()), ("is_done", pa_.bool_())])


def _sites_schema() -> pa.Schema:
    return plain_schema(arrow_schema(TABLES["sites"], "sites"))


def _spark_schema(schema: pa.Schema) -> Any:
    return extra("pyspark.sql.pandas.types", "spark").from_arrow_schema(schema)
