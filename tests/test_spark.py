"""Crawls on a real Spark: a master and two workers, whose executors are processes, and may be killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cluster_sites import Killing, add_sites, children_named, rows_of_run, run_examples
from many_sites import Answer, Sites, serve_sites
from object_store import serve_bucket
from spark_cluster import spark_session
from support import urlset
from usp.crawl import CrawlOptions, RequestLimits, crawl, open_crawl
from usp.exceptions import InvalidArgumentError

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed; make test-cluster does that")
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.network,
    pytest.mark.export,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets of Spark itself
]

EXECUTOR = "CoarseGrainedExecutorBackend"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark with two executors of one core. A task that takes much longer than others is run twice."""
    settings = {
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "8",
        "spark.sql.shuffle.partitions": "2",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "8s",
    }
    with spark_session(tmp_path_factory.mktemp("spark"), 2, settings) as session:
        yield session


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


def frame(spark: SparkSession, *urls: str | None) -> DataFrame:
    return spark.createDataFrame([(url,) for url in urls], "url string")


def test_a_crawl_on_spark_is_as_one_on_one_machine(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """Two runs on Spark have the tables of two runs without it; the second asks only for what changed."""
    import usp.spark

    urls = add_sites(sites, 40)
    host = urls[7].split("/")[2].partition(":")[0]
    before = sites.answers[host]["/a.xml"]
    given = frame(spark, *urls, urls[0], None, "no site !")
    found = usp.spark.crawl(given, str(tmp_path / "spark"), sites_per_task=10, known_paths="never")
    assert sorted((row.site, row.outcome) for row in found.collect()) == sorted((url, "complete") for url in urls)
    sites.answers[host]["/a.xml"] = Answer(urlset(sites.url(host, "/new")))
    sites.forget()
    usp.spark.crawl(given, str(tmp_path / "spark"), sites_per_task=13, known_paths="never")
    assert sites.requests.total() - sites.not_modified.total() == 1
    sites.answers[host]["/a.xml"] = before
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    sites.answers[host]["/a.xml"] = Answer(urlset(sites.url(host, "/new")))
    crawl([], tmp_path / "local", options=CrawlOptions(known_paths="never"))
    for run in (1, 2):
        assert rows_of_run(tmp_path / "spark", run) == rows_of_run(tmp_path / "local", run)
    changes = [
        sorted((str(one.change), one.url) for one in open_crawl(tmp_path / name).changes())
        for name in ("spark", "local")
    ]
    assert changes[0] == changes[1] != []
    assert open_crawl(tmp_path / "spark").tree(urls[7]).outcome.kind == "complete"


def test_executors_that_are_killed_lose_and_double_nothing(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """Three executors are killed in a run; it has every site once, with all its pages."""
    import usp.spark

    urls = add_sites(sites, 60, first=1_000, seconds=0.3)
    sites.forget()
    # Each time that another quarter of the requests has been made, so that tasks are running.
    with Killing(lambda: children_named(EXECUTOR), lambda n: sites.requests.total() > 60 * (n + 1), 3) as killing:
        usp.spark.crawl(
            frame(spark, *urls), str(tmp_path / "k"), sites_per_task=5, known_paths="never", sites_at_once=2
        )
    assert killing.killed == 3
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    assert rows_of_run(tmp_path / "k", 1) == rows_of_run(tmp_path / "local", 1)
    assert open_crawl(tmp_path / "k").runs[0].outcomes == {"complete": 60}


def test_tasks_that_run_twice_at_once_double_nothing(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """A slow task is run a second time while the first one goes on; each site is there once."""
    import usp.spark

    urls = add_sites(sites, 24, first=2_000)
    slow = urls[5].split("/")[2].partition(":")[0]
    sites.answers[slow] = {path: Answer(one.body, seconds=3.0) for path, one in sites.answers[slow].items()}
    sites.forget()
    usp.spark.crawl(frame(spark, *urls), str(tmp_path / "s"), sites_per_task=3, known_paths="never")
    assert sites.requests[slow, "/robots.txt"] > 1  # it was run twice
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    assert rows_of_run(tmp_path / "s", 1) == rows_of_run(tmp_path / "local", 1)


def test_a_run_that_was_cut_off_goes_on(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """After a run that ended with an error, the next call crawls only the sites that are left."""
    import usp.spark
    from usp.crawl.tasks import clustered_run

    urls = add_sites(sites, 20, first=3_000)
    path = str(tmp_path / "c")
    with suppress(ZeroDivisionError), clustered_run(path, {"known_paths": "never"}, None) as run:
        run.crawl((url, None) for url in urls[:8])
        raise ZeroDivisionError
    assert [run.ended for run in open_crawl(path).runs] == [None]
    sites.forget()
    usp.spark.crawl(frame(spark, *urls), path, sites_per_task=5, known_paths="never")
    assert len({host for host, _ in sites.requests}) == 12
    assert [dict(run.outcomes) for run in open_crawl(path).runs] == [{"complete": 20}]


def test_the_limit_of_a_domain_holds_on_a_cluster(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """However many sites a domain has, no more requests run at once than its limit, counted at the server.

    The task is too short to be run twice at once: two attempts would make twice as many requests.
    """
    import usp.spark

    host = "127.1.99.1"
    sites.answers[host] = {f"/{n}.xml": Answer(urlset(sites.url(host, f"/{n}")), seconds=0.005) for n in range(500)}
    urls = [sites.url(host, path) for path in sites.answers[host]]
    limits = RequestLimits(per_host=50, per_domain=3)
    found = usp.spark.crawl(frame(spark, *urls), str(tmp_path / "d"), sites_per_task=50, requests=limits)
    assert {row.outcome for row in found.collect()} == {"complete"}
    assert found.count() == 500
    assert 1 < sites.most_running[host] <= 3


def test_pages_are_a_data_frame(spark: SparkSession, sites: Sites) -> None:
    """`pages` has the chosen columns of every page, in Spark's own types."""
    import usp.spark

    urls = add_sites(sites, 12, first=4_000)
    dead = "http://127.1.98.1:1/"
    found = usp.spark.pages(frame(spark, *urls, dead), columns="url,last_modified", known_paths="never").persist()
    expected = [page for url in urls for page in sites_pages(sites, url)]
    assert sorted(row.url for row in found.collect()) == sorted(expected)
    assert [field.dataType.simpleString() for field in found.schema] == ["string", "string", "timestamp"]
    every = usp.spark.pages(frame(spark, *urls[:2]), known_paths="never")
    assert {"site", "url", "images", "alternates", "news"} <= set(every.columns)
    assert every.count() == sum(len(sites_pages(sites, url)) for url in urls[:2])


def sites_pages(sites: Sites, url: str) -> list[str]:
    host = url.split("/")[2].partition(":")[0]
    number = 200 * int(host.split(".")[2]) + int(host.split(".")[3]) - 1
    return [f"{url}{name}{page}" for name in "ab" for page in range(number % 5 + 1)]


def test_warc_files_are_read_where_they_are(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """`warc` gives the pages of all sitemaps in WARC files, and the sitemaps that are listed, from disk or a bucket."""
    import usp.spark

    urls = add_sites(sites, 6, first=5_000)
    crawl(urls, tmp_path / "c", options=CrawlOptions(known_paths="never"))
    paths = [str(path) for path in (tmp_path / "c" / "warc").iterdir()]
    found = usp.spark.warc(spark.createDataFrame([(path,) for path in paths], "path string"), columns="url")
    assert sorted(row.url for row in found.collect()) == sorted(
        page for url in urls for page in sites_pages(sites, url)
    )
    listed = usp.spark.warc(spark.createDataFrame([(path,) for path in paths], "path string"), table="sitemaps")
    names = {(row.site, row.url.rpartition("/")[2]) for row in listed.collect()}
    assert names == {(url, name) for url in urls for name in ("index.xml", "a.xml", "b.xml")}


def test_a_cluster_crawls_into_a_bucket(spark: SparkSession, sites: Sites, tmp_path: Path) -> None:
    """Executors write to an object store; nothing but the URL of the folder leads them there."""
    from usp.crawl.tasks import clustered_run

    urls = add_sites(sites, 6, first=6_000)
    with serve_bucket() as bucket:
        path = bucket.format("spark")
        with clustered_run(path, {"known_paths": "never"}, None) as run:
            assert run.crawl((url, None) for url in urls) == run.crawl((url, None) for url in urls)
        found = rows_of_run(path, 1)
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    assert found == rows_of_run(tmp_path / "local", 1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("nope",), {}, "no column 'nope'; it has url"),
        ((), {"sites": 5}, "unexpected keyword argument 'sites'; the options of a crawl are sites_at_once"),
        ((), {"known_paths": "maybe"}, "known_paths must be auto, always or never"),
    ],
)
def test_wrong_use_is_told_at_once(
    spark: SparkSession, tmp_path: Path, arguments: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    """An unknown column or option raises before anything is fetched."""
    import usp.spark

    with pytest.raises(InvalidArgumentError, match=message):
        usp.spark.crawl(frame(spark, "example.org"), str(tmp_path / "w"), *arguments, **options)
    assert not (tmp_path / "w").exists()
    with pytest.raises(InvalidArgumentError, match=message):
        usp.spark.pages(frame(spark, "example.org"), *arguments, **options)


def test_a_list_without_sites_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """A run without sites would hide what the run before has changed."""
    import usp.spark

    with pytest.raises(InvalidArgumentError, match="no row names a site"):
        usp.spark.crawl(frame(spark, "no site !", None), str(tmp_path / "n"))
    assert not open_crawl(tmp_path / "n").runs


def test_examples_of_the_documentation_run(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python examples of the guide to clusters run on the example website, and find its pages."""
    assert run_examples("Spark", tmp_path) == 1
    out = capsys.readouterr().out
    assert " pages" in out
    assert "complete" in out or "partial" in out
