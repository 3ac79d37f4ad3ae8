"""What fails around Spark is told in a sentence, and quickly; nothing here starts Spark."""

import socket
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError, require_java, require_master, why, why_no_start
from analysis.spark import _stop, asked_settings

JAVA_TRACE = """An error occurred while calling o95.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: java.lang.IllegalStateException: the block is gone
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


@pytest.fixture
def closed() -> str:
    """An address at which nothing listens."""
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{unused.getsockname()[1]}"


@pytest.fixture
def listening() -> Iterator[str]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("scheme", "behind", "setting"),
    [("spark", "", "--master"), ("sc", "/;token=s3", "SPARK_REMOTE")],
)
def test_a_server_that_is_not_there_is_told_at_once(
    closed: str, scheme: str, behind: str, setting: str
) -> None:
    told = rf"No Spark answers at {scheme}://{closed} \(.*refused\)\.\n.*correct {setting},"
    with pytest.raises(AnalysisError, match=told):
        require_master(f"{scheme}://{closed}{behind}")


def test_one_of_several_masters_is_enough_and_others_are_not_asked(
    closed: str, listening: str
) -> None:
    for master in (
        f"spark://{closed},{listening}",
        f"sc://{listening}/;user_id=me",
        "local[*]",
        "yarn",
        "k8s://https://nowhere:443",
    ):
        require_master(master)


def test_an_address_without_a_port_is_told() -> None:
    with pytest.raises(AnalysisError, match="nowhere is no HOST:PORT"):
        require_master("spark://nowhere")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ModuleNotFoundError: No module named 'pyarrow'", "lacks the package pyarrow"),
        (
            "PyArrow >= 18.0.0 must be installed; however, it was not found",
            "lacks the package PyArrow",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/python": error=2',
            "cannot start /opt/python",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "raise spark.driver.memory"),
        ("Answer from Java side is empty", "Java process is gone"),
        ("java.io.IOException: No space left on device", "A disk is full"),
        (JAVA_TRACE, "Spark failed: IllegalStateException: the block is gone"),
        ("something else\nat line 2", "Spark failed: something else"),
    ],
)
def test_a_failed_job_is_one_sentence(text: str, sentence: str) -> None:
    told = why(RuntimeError(text))
    assert sentence in told
    assert "\n" not in told


def test_another_version_of_python_is_told() -> None:
    text = (
        "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run"
    )
    assert "is version 3.12, and this one 3.11" in why(RuntimeError(text))


@pytest.mark.process
@pytest.mark.parametrize(
    ("script", "master", "said"),
    [
        ("echo 'no libjvm.so' >&2; exit 7", "local", "ended with 7: no libjvm.so"),
        (
            """echo 'openjdk version "11.0.2" 2019-01-15' >&2""",
            "local",
            "Spark needs Java 17 or newer, and",
        ),
        ("""echo 'openjdk version "17.0.2" 2022-01-18' >&2""", "yarn", "one\nno HADOOP_CONF_DIR"),
    ],
)
def test_why_spark_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, master: str, said: str
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    require_java()
    assert said in why_no_start(master, "one\nno HADOOP_CONF_DIR")


def test_java_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(AnalysisError, match="where there is no bin/java"):
        require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AnalysisError, match="Java 17 or newer, and no `java` was found"):
        require_java()


def test_settings_that_the_user_chose_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "# ours\nspark.ui.enabled   true\nspark.driver.memory=4g\n\n"
    (tmp_path / "spark-defaults.conf").write_text(lines)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.local.dir=/big pyspark-shell")
    assert asked_settings() == {"spark.ui.enabled", "spark.driver.memory", "spark.local.dir"}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "nowhere"))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS")
    assert asked_settings() == set()


class Gone:
    """A session whose Java is not there any more: PySpark warns of it."""

    def stop(self) -> None:
        warnings.warn("Unable to cleanly shutdown Spark JVM process.", RuntimeWarning, stacklevel=1)


def test_java_that_is_gone_at_the_end_is_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    """After Ctrl-C the user reads one sentence."""
    _stop(cast(SparkSession, Gone()))
    assert not recwarn.list
