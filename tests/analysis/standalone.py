"""A standalone Spark cluster on this machine: one master and two workers, each a process of its own.

The workers start in a folder of their own and without PYTHONPATH: what they import of this repository can
only have been sent to them.
"""

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from analysis.spark import BRIEF

WORKERS = 2
# Each of these programs lives for seconds: the optimising compiler would take half of their CPU time, and a
# shuffle into Spark's 200 partitions most of the rest.
_JAVA = BRIEF["spark.driver.extraJavaOptions"]
_SMALL = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.sql.shuffle.partitions": "4",
}
_WORDS = [word for name, value in _SMALL.items() for word in ("--conf", f"{name}={value}")]
DRIVER = {"PYSPARK_SUBMIT_ARGS": shlex.join([*_WORDS, "pyspark-shell"])}  # variables of a driver
_CLASSES = "org.apache.spark.deploy"
_HOST = "127.0.0.1"


@contextmanager
def cluster(folder: Path, *, apart: bool = False) -> Iterator[str]:
    """The URL of a running master with its workers; all of them are gone at the end.

    `apart`: each worker has an address of its own, for Spark repeats no slow task on the same host.
    """
    with ExitStack() as stack:
        master = stack.enter_context(_process(folder, f"{_CLASSES}.master.Master", "--port", "0"))
        url = master.wait_for(r"Starting Spark master at (spark://\S+)")
        for number in range(WORKERS):
            work = folder / f"worker-{number}"
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(work))
            host = f"127.0.0.{2 + number}" if apart else _HOST
            worker = stack.enter_context(
                _process(folder, f"{_CLASSES}.worker.Worker", "--port", "0", *size, url, host=host)
            )
            worker.wait_for("Successfully registered with master (.*)")
        yield url


def places_of(spark: SparkSession, module: str) -> list[tuple[str, str]]:
    """Where tasks run, and where they import a module from."""

    def place(
        _: Iterable[int],
    ) -> Iterator[tuple[str, str]]:  # sent as it is: executors lack this file
        yield os.getcwd(), str(import_module(module).__file__)  # noqa: PTH109 - as the process has it

    tasks = spark.sparkContext.range(8, numSlices=8)
    return sorted(set(tasks.mapPartitions(place).collect()))


class _Process:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._seen: list[str] = []

    def wait_for(self, pattern: str) -> str:
        """The group of `pattern` in the first line of its output that matches."""
        assert self._process.stdout
        for line in self._process.stdout:
            self._seen.append(line)
            if found := re.search(pattern, line):
                # A full pipe would stop it: somebody must go on reading.
                threading.Thread(target=self._process.stdout.read, daemon=True).start()
                return found[1]
        raise AssertionError("it ended early:\n" + "".join(self._seen[-20:]))


@contextmanager
def _process(folder: Path, name: str, *arguments: str, host: str = _HOST) -> Iterator[_Process]:
    home = Path(pyspark.__file__).parent
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    process = subprocess.Popen(
        [home / "bin" / "spark-class", name, "--host", host, "--webui-port", "0", *arguments],
        cwd=folder,
        env=environment
        | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_JAVA_OPTS": _JAVA},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _Process(process)
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()
