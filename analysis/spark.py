"""One way to start Spark: quick and quiet on one machine, with a cluster's own defaults on a cluster.

The session is one of Spark Connect where SPARK_REMOTE is set. All else in this room is the same for both kinds.
"""

import atexit
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from analysis.errors import (
    CONNECT,
    REMOTE,
    WORKERS_PYTHON,
    AnalysisError,
    Interrupted,
    require_java,
    require_master,
    why,
    why_no_start,
)

# Spark generates a method for each stage. For wide rows it is so long that Java would only interpret it.
LONG_METHODS = "-XX:-DontCompileHugeMethods"
# One compiler alone gets 48 MB for its code, which the stages of a few notebooks fill; a session was lost so.
CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
_STOP_S = 20.0  # how long a session may take to stop; its Java ends with this process anyway
# What holds unless the user chose otherwise (`asked_settings`).
COMMON = {
    "spark.ui.enabled": "false",
    "spark.executor.extraJavaOptions": LONG_METHODS,
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",  # no Hive: nothing is kept but Parquet files
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    # This rule removes a frame that turns out to be empty from the plan, with the observations on it.
    "spark.sql.adaptive.optimizer.excludedRules": (
        "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
    ),
}
LOCAL = {
    "spark.log.level": "OFF",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": LONG_METHODS,
    "spark.sql.shuffle.partitions": "4",  # the default of 200 makes small runs slow
    "spark.default.parallelism": "4",
    "spark.shuffle.compress": "false",
}

CLASSES = Path(sys.prefix) / "spark-classes.jsa"  # which `analysis.classes` makes
QUIET_JAVA = "-Xlog:disable -Xlog:all=error:stderr"  # also about an archive that it cannot use

ROOT = Path(__file__).resolve().parent.parent
# What runs in executors imports none of these rooms (docs/decisions/0006), nor the parts that the driver
# alone imports: those show, draw with templates that an archive of Python files lacks, or follow a log.
NOT_SHIPPED = {"leaderless", "performance", "simulation", "specs"}
DRIVERS = {"commands", "live", "notebooks", "pages", "plots", "printed.py"}

# For jobs of seconds: the optimising compiler would take half of their CPU time, and pay off too late.
BRIEF = {
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 {CODE_CACHE} -XX:+UseSerialGC {LONG_METHODS}"
}


@contextmanager
def session(master: str, *, brief: bool = False) -> Iterator[SparkSession]:
    """A Spark session on `master`, stopped at the end.

    Args:
        master: a Spark master URL, such as `local[*]` or `spark://host:7077`.
        brief: whether all of the work is a matter of seconds, as it is for one small run.
    Raises:
        AnalysisError: no Java, or the master cannot be reached, or Spark failed meanwhile.
        Interrupted: Ctrl-C.
    """
    spark = None
    try:
        spark = start(master, brief=brief)
        with _plain_interrupts():
            yield spark
    except KeyboardInterrupt:
        # From another thread, which has a connection to Java of its own: this one's awaits an answer.
        stopping = threading.Thread(target=_stop, args=(spark,), daemon=True)
        stopping.start()
        stopping.join(_STOP_S)
        spark = None
        raise Interrupted("Stopped by Ctrl-C.") from None
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise AnalysisError(why(error)) from error
    finally:
        _stop(spark)


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """Ctrl-C raises `KeyboardInterrupt`, and no more.

    PySpark's handler asks Java to cancel all jobs, over the connection whose answer is being waited for. The
    answers are mixed up, and end in traces of either side.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.root.addFilter(_is_no_interrupt)
    try:
        yield
    finally:
        logging.root.removeFilter(_is_no_interrupt)
        signal.signal(signal.SIGINT, former)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """py4j logs a trace of the interrupt at the root, and raises it, too."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def _stop(spark: SparkSession | None) -> None:
    if spark:
        with suppress(Py4JError, PySparkException, OSError), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unable to cleanly", RuntimeWarning)
            spark.stop()  # Java may be gone: then it raises, or warns


def start(master: str, *, brief: bool = False) -> SparkSession:
    """A session like that of `session`, which the caller stops.

    Under `spark-submit` its options count, and where SPARK_REMOTE is set, that.
    """
    remote, submitted = os.environ.get(REMOTE), _submitted()
    master = remote or submitted.get("spark.master", master)
    if not master.startswith(f"{CONNECT}:"):
        require_java()
    require_master(master)
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)  # what fails there is raised, too
    local = master.startswith("local")
    settings = COMMON | (LOCAL if local else {}) | (BRIEF if local and brief else {})
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings["spark.driver.extraJavaOptions"] += f" {archived()}"
    os.environ.setdefault(WORKERS_PYTHON, sys.executable)  # not just any on the path
    asked = asked_settings() | submitted.keys()
    ours: dict[str, bool | float | int | str | None] = {
        name: value for name, value in settings.items() if name not in asked
    }
    builder = SparkSession.builder.remote(master) if remote else SparkSession.builder.master(master)
    with _quiet_start() as java_log:
        try:
            spark = builder.appName("leaderless analysis").config(map=ours).getOrCreate()
        except (PySparkException, Py4JError, RuntimeError, OSError) as error:
            log = java_log.read_text(errors="replace") or str(error)
            raise AnalysisError(why_no_start(master, log)) from error
    # Executors get the packages, so that they need no shared file system to import them. They fetch the archive
    # when they first need it, so it exists as long as this process.
    folder = Path(tempfile.mkdtemp(prefix="spark-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    spark.addArtifacts(str(pack(folder)), pyfile=True)
    return spark


def archived() -> str:
    """The options with which Java starts with the archive of Spark's classes; none where there is none."""
    archive = shlex.quote(f"-XX:SharedArchiveFile={CLASSES}")
    return f"{QUIET_JAVA} {archive}" if CLASSES.exists() else ""


def _submitted() -> dict[str, str]:
    """The settings of `spark-submit`, which starts Java before this program; none without it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    pyspark.SparkContext._ensure_initialized()
    return dict(pyspark.SparkConf().getAll())


def asked_settings() -> set[str]:
    """The names of the settings that the user chose: in `spark-defaults.conf`, or PYSPARK_SUBMIT_ARGS."""
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    folder = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"))
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    asked = {value.partition("=")[0] for word, value in pairwise(words) if word in ("--conf", "-c")}
    with suppress(OSError):
        lines = (folder / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
        # Lines are `name value`, `name=value` or `# comment`.
        asked |= {re.split(r"[\s=:]", line.strip(), maxsplit=1)[0] for line in lines}
    return {name for name in asked if name and not name.startswith("#")}


@contextmanager
def _quiet_start() -> Iterator[Path]:
    """Redirect the standard error of the Java process that starts to a file, and yield the file.

    Java and Spark print lines about logging defaults and incubator modules at every start, and no setting
    turns them off. Later errors reach Python as exceptions. A server of Spark Connect warns of each setting
    that a session cannot change.
    """
    with tempfile.NamedTemporaryFile(prefix="spark-", suffix=".log", delete=False) as log:
        saved = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
                yield Path(log.name)
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            Path(log.name).unlink()


def pack(folder: Path) -> Path:
    """An archive of the packages that run in executors, made in `folder`."""
    archive = folder / "packages.zip"
    rooms = sorted({init.parent.name for init in ROOT.glob("*/__init__.py")} - NOT_SHIPPED)
    sources = (source for room in rooms for source in sorted((ROOT / room).rglob("*.py")))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for source in sources:
            if not DRIVERS.intersection(source.parts):
                zipped.write(source, source.relative_to(ROOT))
    return archive
