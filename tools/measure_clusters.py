"""Measure crawls on Spark and Ray against the crawl of one process, on the same sites, on this machine.

    python tools/measure_clusters.py                                 # 2,000 sites: local, Spark, Ray; 1 and 2 workers
    python tools/measure_clusters.py --sites 20000 --rows spark-2
    python tools/measure_clusters.py --rows spark-2 --sites 600 --seconds 0.3 --sites-at-once 20 --sites-per-task 50

Each row is a process of its own: it starts the engine and crawls some other sites first, so that all workers have
started and imported what they need; then it times the crawl. A worker has one core. The server and, with clusters, the
driver and the Java machines take their share of the same cores, so this shows what an engine costs, not how it scales.

What is timed is the whole call: sharing out the list, the tasks, and the end of the run. To make the data frame or
dataset from a list of Python counts; reading the sites that the call returns does not. On a busy machine only the
processor time says much: that of the workers, and that of all processes of the engine together.

Sites are those of `drawn_sites.py`, each with a domain of its own, and none is silent. Every site must be in the result
once. The memory of a worker is the peak of its resident set (VmHWM), that of Python, as the kernel counts it. If
answers take time (`--seconds`), the row also has what `simulate_crawl.py` says about the same sites.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.crawls import peak_memory
from drawn_sites import draw_sites
from simulate_crawl import Rules, simulate, task_seconds, tasks_of
from spark_cluster import spark_session

_SEED = 1
_WARM_UP = 40  # sites, the last of those that are served
_MB = 1_000_000
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.5  # each look takes some milliseconds of the driver
#: What the commands of Python workers have in them.
_WORKERS = {"spark": "pyspark.daemon", "ray": "ray::"}

Answer = dict[str, Any]
#: Crawls sites into a folder.
Crawl = Callable[[list[str], str], object]


@contextmanager
def served(count: int, seconds: float) -> Iterator[int]:
    """Serve the sites in a process, and give the port."""
    command = [sys.executable, str(Path(__file__).with_name("drawn_sites.py")), str(count), str(_SEED), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603 -- our own
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.communicate()


class Workers:
    """Looks now and then what the workers below this process have taken: their peak memory, and processor time."""

    def __init__(self, name: str) -> None:
        self.peak = 0
        self._name = name
        self._times: dict[str, tuple[float, float]] = {}  # process -> at the start, and when it was last seen
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Workers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def start(self) -> None:
        """Start to count processor time. What a process has taken before counts only if the process is new."""
        self._times = {name: (last, last) for name, (_, last) in self._times.items()}

    @property
    def cpu(self) -> float:
        """Processor time since the start, of all workers, in seconds."""
        return sum(last - first for first, last in self._times.values())

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            for entry in Path("/proc").iterdir():
                if entry.name.isdecimal():
                    self._look_at(entry)

    def _look_at(self, entry: Path) -> None:
        try:
            if self._name not in (entry / "cmdline").read_text(errors="replace").replace("\0", " ") or not _is_ours(
                entry
            ):
                return
            peak = int((entry / "status").read_text(errors="replace").partition("VmHWM:")[2].split()[0]) * 1024
            user, system = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[11:13]
        except (OSError, IndexError):  # it has ended
            return
        seconds = (int(user) + int(system)) / _TICKS
        self.peak = max(self.peak, peak)
        self._times[entry.name] = self._times.get(entry.name, (0.0,))[0], seconds


class ThisProcess:
    """The same for a crawl in this process. A thread that looks would wait for the crawl, and slow it down."""

    _start = 0.0

    def __enter__(self) -> ThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        """Start to count processor time."""
        self._start = time.process_time()

    @property
    def cpu(self) -> float:
        """Processor time since the start, in seconds."""
        return time.process_time() - self._start

    @property
    def peak(self) -> int:
        """The peak memory, in bytes."""
        return peak_memory()


def _is_ours(entry: Path) -> bool:
    """Return whether a process is this one, or below it."""
    while entry.name not in ("0", str(os.getpid())):
        entry = entry.with_name((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return entry.name != "0"


def total_cpu() -> float:
    """Return the processor time of this process and all below it, and of those of them that have ended, in seconds."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and _is_ours(entry):
                ticks += sum(map(int, (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[11:15]))
        except OSError:  # it has ended
            continue
    return ticks / _TICKS


# Engines


@contextmanager
def local(_: argparse.Namespace, options: Answer) -> Iterator[Crawl]:
    """Crawl in this process."""
    module = import_module("usp.crawl")
    yield lambda urls, path: module.crawl(urls, path, options=module.CrawlOptions(**options))


@contextmanager
def spark(arguments: argparse.Namespace, options: Answer) -> Iterator[Crawl]:
    """Crawl on a cluster of Spark: workers are processes with one core."""
    module = import_module("usp.spark")
    with (
        TemporaryDirectory(prefix="usp-spark-") as folder,
        spark_session(Path(folder), arguments.workers, {}) as session,
    ):

        def crawl(urls: list[str], path: str) -> None:
            sites = session.createDataFrame([(url,) for url in urls], "url string")
            module.crawl(sites, path, sites_per_task=task_size(arguments, len(urls)), **options)

        yield crawl


@contextmanager
def ray(arguments: argparse.Namespace, options: Answer) -> Iterator[Crawl]:
    """Crawl on Ray. A batch reserves a whole CPU, so as many run as there are workers."""
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 -- with its own, 15, it measures what else runs
    engine, module = import_module("ray"), import_module("usp.ray")
    engine.init(
        num_cpus=arguments.workers,
        include_dashboard=False,
        logging_level="ERROR",
        log_to_driver=False,
        object_store_memory=200 * _MB,
        _node_ip_address="127.0.0.1",
    )
    data = import_module("ray.data")
    data.DataContext.get_current().enable_progress_bars = False

    def crawl(urls: list[str], path: str) -> None:
        sites = data.from_items([{"url": url} for url in urls])
        module.crawl(sites, path, sites_per_batch=task_size(arguments, len(urls)), num_cpus=1.0, **options)

    yield crawl
    engine.shutdown()


_ENGINES = {"local": local, "spark": spark, "ray": ray}


def task_size(arguments: argparse.Namespace, sites: int) -> int:
    """Return how many sites a task has: no worker is without one."""
    return int(min(arguments.sites_per_task, max(1, sites // arguments.workers)))


def measure(engine: str, arguments: argparse.Namespace) -> Answer:
    """Time a crawl in this process."""
    sites = draw_sites(arguments.sites + _WARM_UP, _SEED, arguments.seconds)
    urls = [f"http://{site.address}:{arguments.port}/" for site in sites]
    options = {"known_paths": "never", "sites_at_once": arguments.sites_at_once}
    answer: Answer = {"requests": sum(site.requests for site in sites[: arguments.sites])}
    with TemporaryDirectory(prefix="usp-clusters-") as folder:
        start = time.monotonic()
        looks = Workers(_WORKERS[engine]) if engine in _WORKERS else ThisProcess()
        with _ENGINES[engine](arguments, options) as crawl, looks as workers:
            crawl(urls[arguments.sites :], f"{folder}/warm-up")
            answer["start-up"] = time.monotonic() - start
            cpu, start = total_cpu(), time.monotonic()
            workers.start()
            crawl(urls[: arguments.sites], f"{folder}/crawl")
            answer["seconds"] = time.monotonic() - start
            answer |= {"cpu": workers.cpu, "total-cpu": total_cpu() - cpu}
        answer |= {"memory": workers.peak / _MB, **_checked(f"{folder}/crawl", urls[: arguments.sites])}
    return answer


def _checked(path: str, urls: list[str]) -> Answer:
    """Check that each site is there once, complete. Return how much the folder holds."""
    read = import_module("pyarrow.parquet").read_table
    parts = [read(part, columns=["site", "outcome"]) for part in Path(path, "sites").iterdir()]
    rows = [row for part in parts for row in part.to_pylist()]
    assert sorted(row["site"] for row in rows) == sorted(urls), f"there are {len(rows)} sites"
    assert {row["outcome"] for row in rows} == {"complete"}
    total = sum(file.stat().st_size for file in Path(path).rglob("*-*"))
    return {"bytes": total, "parts": len(parts)}


def simulated(arguments: argparse.Namespace) -> float:
    """Return how long the simulation says that the crawl takes."""
    rules = Rules(sites_per_task=task_size(arguments, arguments.sites), sites_at_once=arguments.sites_at_once)
    drawn = draw_sites(arguments.sites, _SEED, arguments.seconds)
    sites = [replace(site, domain=site.address, is_silent=False) for site in drawn]
    return simulate([task_seconds(task, rules) for task in tasks_of(sites, rules)], arguments.workers).seconds


# The table


def main() -> None:
    """Measure the rows that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", nargs="+", default=["local-1", "spark-1", "spark-2", "ray-1", "ray-2"])
    parser.add_argument("--sites", type=int, default=2_000)
    parser.add_argument("--sites-per-task", type=int, default=500)
    parser.add_argument("--sites-at-once", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.0, help="median of the time until an answer")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        engine, _, workers = arguments.row.partition("-")
        arguments.workers = int(workers)
        print(json.dumps(measure(engine, arguments) | {"simulated": simulated(arguments)}))
        return
    with served(arguments.sites + _WARM_UP, arguments.seconds) as port:
        for row in arguments.rows * arguments.rounds:
            command = [sys.executable, *sys.argv, "--row", row, "--port", str(port)]
            found = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)  # noqa: S603 -- our own
            _show(row, arguments, json.loads(found.stdout.splitlines()[-1]))


def _show(row: str, arguments: argparse.Namespace, answer: Answer) -> None:
    sites, load = arguments.sites, os.getloadavg()[0]
    print(
        f"{row:8} {sites:,} sites, {answer['requests']:,} requests, {answer['parts']} parts:"
        f" {answer['seconds']:.1f} s, {sites / answer['seconds']:.0f} sites/s;"
        f" CPU of the workers {answer['cpu'] / sites * 1000:.1f} ms per site, with driver and engine"
        f" {answer['total-cpu'] / sites * 1000:.1f} ms; start-up {answer['start-up']:.1f} s;"
        f" peak of a worker {answer['memory']:.0f} MB; {answer['bytes'] / sites / 1000:.1f} kB per site;"
        f" load {load:.1f}",
        f"; simulated {answer['simulated']:.1f} s" if arguments.seconds else "",
        flush=True,
    )


if __name__ == "__main__":
    main()
