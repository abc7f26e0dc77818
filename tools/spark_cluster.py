"""A small cluster of Spark on loopback: a master, and workers with one core each, whose executors are processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]

_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def spark_session(folder: Path, workers: int, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Start a cluster, and give a session on it. The workers keep their files in a folder."""
    wanted = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        **settings,
    }
    before = dict(os.environ)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    try:
        with _spark_master(folder, workers) as master:
            builder = import_module("pyspark.sql").SparkSession.builder.master(master).appName("usp")
            for name, value in wanted.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            try:
                yield session
            finally:
                session.stop()
    finally:
        os.environ.clear()
        os.environ |= before


@contextmanager
def _spark_master(folder: Path, workers: int) -> Iterator[str]:
    """Start a master, and workers at addresses of their own: Spark runs a task twice only on two hosts."""
    spark_class = str(Path(import_module("pyspark").__file__ or "").parent / "bin" / "spark-class")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    url = f"spark://127.0.0.1:{port}"
    small = ["--webui-port", "0"]
    worker = [f"{_DEPLOY}.worker.Worker", "--cores", "1", "--memory", "700m", "--work-dir", str(folder), *small, url]
    commands = [[f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", port, *small]]
    commands += [[worker[0], "--host", f"127.0.0.{number}", *worker[1:]] for number in range(1, workers + 1)]
    environment = {**os.environ, "SPARK_DAEMON_MEMORY": "256m"}
    del environment["SPARK_LOCAL_IP"]
    with ExitStack() as stack, open(folder / "log", "wb") as log:
        for command in commands:
            process = subprocess.Popen([spark_class, *command], stdout=log, stderr=log, env=environment)  # noqa: S603 -- our own
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield url
