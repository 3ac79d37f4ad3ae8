"""One way to start Spark: quick and quiet on one machine, with a cluster's own defaults on a cluster."""

import atexit
import os
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError

# Spark generates a method for each stage. For wide rows it is so long that Java would only interpret it.
LONG_METHODS = "-XX:-DontCompileHugeMethods"
COMMON = {
    "spark.ui.enabled": "false",
    "spark.executor.extraJavaOptions": LONG_METHODS,
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",  # no Hive: nothing is kept but Parquet files
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    # This rule removes a frame that turns out to be empty from the plan, with the observations on it.
    "spark.sql.adaptive.optimizer.excludedRules": (
        "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
    ),
}
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": LONG_METHODS,
    "spark.sql.shuffle.partitions": "4",  # the default of 200 makes small runs slow
    "spark.default.parallelism": "4",
    "spark.shuffle.compress": "false",
}

ROOT = Path(__file__).resolve().parent.parent
# `analysis` imports none of the first four (docs/adr/0006). The driver alone shows pages and draws, with
# templates that an archive of Python files lacks.
NOT_SHIPPED = {"commands", "leaderless", "simulation", "specs", "pages", "plots"}
DRIVERS = {"notebooks", "summary.py"}  # parts of `analysis` that import what is not shipped

# For jobs of seconds: the optimising compiler would take half of their CPU time, and pay off too late.
BRIEF = {
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {LONG_METHODS}"
}


@contextmanager
def session(master: str, *, brief: bool = False) -> Iterator[SparkSession]:
    """A Spark session on `master`, stopped at the end.

    Args:
        master: a Spark master URL, such as `local[*]` or `spark://host:7077`.
        brief: whether all of the work is a matter of seconds, as it is for one small run.
    Raises:
        AnalysisError: no Java, or the master cannot be reached.
    """
    spark = start(master, brief=brief)
    try:
        yield spark
    finally:
        spark.stop()


def start(master: str, *, brief: bool = False) -> SparkSession:
    """A session like that of `session`, which the caller stops."""
    _require_java()
    # PySpark imports pandas wherever it uses Arrow. This program uses no more of pandas than that.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    local = master.startswith("local")
    settings = COMMON | (LOCAL if local else {}) | (BRIEF if local and brief else {})
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # not just any on the path
    builder = SparkSession.builder.master(master).appName("leaderless analysis")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _quiet_start() as java_log:
        try:
            spark = builder.getOrCreate()
        except (PySparkException, RuntimeError, OSError) as error:
            raise AnalysisError(_start_failure(master, java_log)) from error
    spark.sparkContext.setLogLevel("OFF" if local else "ERROR")
    _ship_packages(spark)
    return spark


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java") or (home and Path(home, "bin", "java").exists())):
        raise AnalysisError(
            "Spark needs Java 17 or newer, and no `java` was found.\n"
            "On Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
        )


@contextmanager
def _quiet_start() -> Iterator[Path]:
    """Redirect the standard error of the Java process that starts to a file, and yield the file.

    Java and Spark print lines about logging defaults and incubator modules at every start, and no setting
    turns them off. Later errors reach Python as exceptions.
    """
    with tempfile.NamedTemporaryFile(prefix="spark-", suffix=".log", delete=False) as log:
        saved = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield Path(log.name)
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            Path(log.name).unlink()


def _start_failure(master: str, java_log: Path) -> str:
    last_lines = "\n".join(java_log.read_text(errors="replace").splitlines()[-5:])
    return f"Spark did not start on master {master!r}; the last lines it wrote:\n{last_lines}"


def _ship_packages(spark: SparkSession) -> None:
    """Send the packages to the executors, so that they need no shared file system to import them."""
    folder = Path(tempfile.mkdtemp(prefix="spark-packages-"))
    # Executors fetch the archive when they first need it, so it exists as long as this process.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spark.sparkContext.addPyFile(str(pack(folder)))


def pack(folder: Path) -> Path:
    """An archive of the packages that run in executors, made in `folder`."""
    archive = folder / "packages.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for package in shipped():
            for source in sorted((ROOT / package).rglob("*.py")):
                if not DRIVERS.intersection(source.parts):
                    zipped.write(source, source.relative_to(ROOT))
    return archive


def shipped() -> list[str]:
    """The packages that executors import: `analysis`, and those beside it that it may import."""
    packages = {init.parent.name for init in ROOT.glob("*/__init__.py")}
    return sorted(packages - NOT_SHIPPED)
