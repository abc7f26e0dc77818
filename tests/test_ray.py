"""Crawls on a real Ray, whose workers may be killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cluster_sites import Killing, Watching, add_sites, children_named, rows_of_run, run_examples
from many_sites import Answer, Sites, serve_sites
from support import urlset
from usp.crawl import CrawlOptions, RequestLimits, crawl, open_crawl
from usp.exceptions import InvalidArgumentError

ray = pytest.importorskip("ray", reason="Ray is not installed; make test-cluster does that")
if TYPE_CHECKING:
    from ray.data import Dataset

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.network,
    pytest.mark.export,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Ray's own code, many
]

WORKER = "ray::usp.ray.crawl"  # what Ray calls a process while it runs such a task


@pytest.fixture(scope="module")
def session() -> Iterator[None]:
    """Start Ray with two CPUs."""
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        object_store_memory=200_000_000,
        _node_ip_address="127.0.0.1",
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def sites(session: None) -> Iterator[Sites]:
    with serve_sites() as served:
        yield served


def dataset(*urls: str | None) -> Dataset:
    found: Dataset = ray.data.from_items([{"url": url} for url in urls])
    return found


def test_a_crawl_on_ray_is_as_one_on_one_machine(sites: Sites, tmp_path: Path) -> None:
    """Two runs on Ray have the tables of two runs without it; the second asks only for what changed."""
    import usp.ray

    urls = add_sites(sites, 40)
    host = urls[7].split("/")[2].partition(":")[0]
    before = sites.answers[host]["/a.xml"]
    given = dataset(*urls, urls[0], None, "no site !")
    found = usp.ray.crawl(given, str(tmp_path / "ray"), sites_per_batch=10, known_paths="never")
    assert sorted((row["site"], row["outcome"]) for row in found.take_all()) == sorted((u, "complete") for u in urls)
    sites.answers[host]["/a.xml"] = Answer(urlset(sites.url(host, "/new")))
    sites.forget()
    usp.ray.crawl(given, str(tmp_path / "ray"), sites_per_batch=13, known_paths="never")
    assert sites.requests.total() - sites.not_modified.total() == 1
    sites.answers[host]["/a.xml"] = before
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    sites.answers[host]["/a.xml"] = Answer(urlset(sites.url(host, "/new")))
    crawl([], tmp_path / "local", options=CrawlOptions(known_paths="never"))
    for run in (1, 2):
        assert rows_of_run(tmp_path / "ray", run) == rows_of_run(tmp_path / "local", run)


def test_workers_that_are_killed_lose_and_double_nothing(sites: Sites, tmp_path: Path) -> None:
    """Three workers are killed in a run; it has every site once, with all its pages."""
    import usp.ray

    urls = add_sites(sites, 60, first=1_000, seconds=0.3)
    sites.forget()
    options: dict[str, Any] = {"known_paths": "never", "sites_at_once": 2}
    raylet = children_named("raylet")[0]
    with Killing(lambda: children_named(WORKER, raylet), lambda n: sites.requests.total() > 50 * (n + 1), 3) as killing:
        usp.ray.crawl(dataset(*urls), str(tmp_path / "k"), sites_per_batch=5, **options)
    assert killing.killed == 3
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    assert rows_of_run(tmp_path / "k", 1) == rows_of_run(tmp_path / "local", 1)
    assert open_crawl(tmp_path / "k").runs[0].outcomes == {"complete": 60}


def test_a_crawl_starts_few_processes(sites: Sites, tmp_path: Path) -> None:
    """Tasks run in processes that are there: to start one, and import usp in it, takes longer than many sites.

    They may reserve whole CPUs: nothing else of the crawl needs one meanwhile.
    """
    import usp.ray

    urls = add_sites(sites, 40, first=2_000, seconds=0.05)
    options: dict[str, Any] = {"known_paths": "never", "num_cpus": 1.0}
    usp.ray.crawl(dataset(*urls), str(tmp_path / "first"), sites_per_batch=20, **options)
    raylet = children_named("raylet")[0]
    with Watching(lambda: children_named("ray::", raylet)) as watching:
        usp.ray.crawl(dataset(*urls), str(tmp_path / "second"), sites_per_batch=8, **options)
    assert len(watching.new) <= 1


def test_a_crawl_that_is_interrupted_ends_its_tasks(sites: Sites, tmp_path: Path) -> None:
    """After Ctrl-C nothing goes on in the background. The same call again crawls what is missing."""
    import usp.ray

    urls = add_sites(sites, 40, first=3_000, seconds=0.2)
    sites.forget()
    path, raylet = str(tmp_path / "i"), children_named("raylet")[0]
    options: dict[str, Any] = {"known_paths": "never", "sites_at_once": 2, "sites_per_batch": 5}

    def interrupt() -> None:
        while not list(Path(path, "sites").glob("*.parquet")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        usp.ray.crawl(dataset(*urls), path, **options)
    thread.join()
    assert not children_named(WORKER, raylet)
    done = {row["site"] for row in open_crawl(path).sites().to_arrow().to_pylist()}
    assert 0 < len(done) < 40
    sites.forget()
    usp.ray.crawl(dataset(*urls), path, **options)
    assert not {url.split("/")[2].partition(":")[0] for url in done} & {host for host, _ in sites.requests}
    crawl(urls, tmp_path / "local", options=CrawlOptions(known_paths="never"))
    assert rows_of_run(path, 1) == rows_of_run(tmp_path / "local", 1)


def test_a_list_without_sites_is_an_error(session: None, tmp_path: Path) -> None:
    """A run without sites would hide what the run before has changed."""
    import usp.ray

    with pytest.raises(InvalidArgumentError, match="no row names a site"):
        usp.ray.crawl(dataset("no site !", None), str(tmp_path / "n"))
    assert not open_crawl(tmp_path / "n").runs


def test_the_limit_of_a_domain_holds_on_ray(sites: Sites, tmp_path: Path) -> None:
    """However many sites a domain has, no more requests run at once than its limit, counted at the server."""
    import usp.ray

    host = "127.1.99.1"
    sites.answers[host] = {f"/{n}.xml": Answer(urlset(sites.url(host, f"/{n}")), seconds=0.02) for n in range(500)}
    urls = [sites.url(host, path) for path in sites.answers[host]]
    limits = RequestLimits(per_host=50, per_domain=3)
    found = usp.ray.crawl(dataset(*urls), str(tmp_path / "d"), sites_per_batch=100, requests=limits)
    assert [row["outcome"] for row in found.take_all()] == ["complete"] * 500
    assert 1 < sites.most_running[host] <= 3


def test_pages_are_a_dataset(sites: Sites, tmp_path: Path) -> None:
    """`pages` has the chosen columns of every page, however often it is read."""
    import usp.ray

    urls = add_sites(sites, 10, first=4_000)
    dead = "http://127.1.98.1:1/"
    found = usp.ray.pages(dataset(*urls, dead), columns="url,last_modified", known_paths="never")
    pages = [f"{url}{name}{page}" for n, url in enumerate(urls) for name in "ab" for page in range(n % 5 + 1)]
    for _ in range(2):
        assert sorted(row["url"] for row in found.take_all()) == sorted(pages)
    assert found.columns() == ["site", "url", "last_modified"]
    every = usp.ray.pages(dataset(*urls), path=str(tmp_path / "p"), known_paths="never")
    assert every.count() == len(pages)
    with pytest.raises(InvalidArgumentError, match="has runs already"):
        usp.ray.pages(dataset(*urls), path=str(tmp_path / "p"))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("nope",), {}, "no column 'nope'; it has url"),
        ((), {"sites": 5}, "unexpected keyword argument 'sites'; the options of a crawl are sites_at_once"),
    ],
)
def test_wrong_use_is_told_at_once(
    session: None, tmp_path: Path, arguments: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    """An unknown column or option raises before anything is fetched."""
    import usp.ray

    with pytest.raises(InvalidArgumentError, match=message):
        usp.ray.crawl(dataset("example.org"), str(tmp_path / "w"), *arguments, **options)
    assert not (tmp_path / "w").exists()


def test_examples_of_the_documentation_run(session: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python examples of the guide to clusters run on the example website, and find its pages."""
    assert run_examples("Ray", tmp_path) == 1
    out = capsys.readouterr().out
    assert " pages" in out
    assert "complete" in out or "partial" in out
