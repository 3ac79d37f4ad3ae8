"""A standalone Spark cluster on this machine: one master and two workers, each a process of its own.

The workers start in a folder of their own and without PYTHONPATH: what they import of this repository can
only have been sent to them.
"""

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from analysis.spark import BRIEF, archived

WORKERS = 2
# Each of these programs lives for seconds: the optimising compiler and the loading of classes would take most
# of their CPU time, and a shuffle into Spark's 200 partitions most of the rest.
JAVA = f"{BRIEF['spark.driver.extraJavaOptions']} {archived()}"
_HOST = "127.0.0.1"


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of a running master with its workers; all of them are gone at the end.

    Each worker has an address of its own, for Spark repeats no slow task on the same host.
    """
    with ExitStack() as stack:
        started = r"Starting Spark master at (spark://\S+)"
        url = stack.enter_context(_process(folder, "master.Master", started))
        for number in range(WORKERS):
            work = folder / f"worker-{number}"
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(work), url)
            host = f"127.0.0.{2 + number}"
            registered = "Successfully registered with master (.*)"
            stack.enter_context(
                _process(folder, "worker.Worker", registered, *arguments, host=host)
            )
        yield url


def driver(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables of a driver, with more settings of its Spark."""
    settings = {
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.sql.shuffle.partitions": "4",
        **(settings or {}),
    }
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return {"PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]), "SPARK_LOCAL_IP": _HOST}


def places_of(spark: SparkSession, module: str) -> list[tuple[str, str]]:
    """Where tasks run, and where they import a module from."""

    def place(
        _: Iterable[int],
    ) -> Iterator[tuple[str, str]]:  # sent as it is: executors lack this file
        yield os.getcwd(), str(import_module(module).__file__)  # noqa: PTH109 - as the process has it

    tasks = spark.sparkContext.range(8, numSlices=8)
    return sorted(set(tasks.mapPartitions(place).collect()))


@contextmanager
def _process(
    folder: Path, name: str, pattern: str, *arguments: str, host: str = _HOST
) -> Iterator[str]:
    """A process of Spark, as soon as it says what has a pattern: the pattern's group."""
    home = Path(pyspark.__file__).parent
    where = ("--host", host, "--port", "0", "--webui-port", "0")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with subprocess.Popen(
        [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *where, *arguments],
        cwd=folder,
        env=environment
        | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_JAVA_OPTS": JAVA},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield _wait_for(process, pattern)
        finally:
            process.terminate()
            process.wait()


def _wait_for(process: "subprocess.Popen[str]", pattern: str) -> str:
    """The group of `pattern` in the first line of its output that matches."""
    assert process.stdout
    seen = []
    for line in process.stdout:
        seen.append(line)
        if found := re.search(pattern, line):
            # A full pipe would stop it: somebody must go on reading.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return found[1]
    raise AssertionError("it ended early:\n" + "".join(seen[-20:]))
