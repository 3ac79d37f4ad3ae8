"""Ctrl-C and other ends of commands that use Spark: a sentence, and nothing of Java's.

Spark starts with an archive of its classes, with a damaged one, and from a folder with a space.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores import STORES

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]

# A command whose job would take years; it says when the job is about to begin, and whether Spark shows a UI.
ENDLESS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this process inherited
from analysis import cli
from analysis.spark import session

@cli.main.command()
def endless():
    with session("local[1]", brief=True) as spark:
        print(spark.conf.get("spark.ui.enabled"), flush=True)
        spark.range(10**16).selectExpr("sum(id * id % 7)").collect()

cli.main(["endless"])
"""


def test_an_interrupt_is_one_sentence_and_the_users_settings_hold(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.enabled true\nspark.ui.port 0\n")
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        env=os.environ | {"SPARK_CONF_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        assert command.stdout
        assert command.stderr
        assert command.stdout.readline() == "true\n"
        # As a terminal does: Java and its workers get it, too.
        os.killpg(command.pid, signal.SIGINT)
        assert command.stderr.read() == "Error: Stopped by Ctrl-C.\n"
        assert command.stdout.read() == ""
    assert command.returncode == 130


def test_executors_without_pyarrow_are_told(tmp_path: Path) -> None:
    """-S hides site-packages from the Python of the workers."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    history = STORES / "valid-3-nodes"
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "check", str(history)],
        env=os.environ | {"PYSPARK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"{python}, lacks the package " in done.stderr


# ---------------------------------------------------------------- classes

START = """
import sys
from pathlib import Path
from analysis import spark
spark.CLASSES = Path(sys.argv[1])
session = spark.start("local[1]", brief=True)
print(session.sparkContext.getConf().get("spark.driver.extraJavaOptions"))
session.stop()
"""


def test_a_damaged_archive_is_passed_over(tmp_path: Path) -> None:
    archive = tmp_path / "a folder" / "classes.jsa"
    archive.parent.mkdir()
    archive.write_bytes(b"not an archive")
    started = [sys.executable, "-c", START, str(archive)]
    done = subprocess.run(started, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    [options] = done.stdout.splitlines()
    assert options.endswith(f"'-XX:SharedArchiveFile={archive}'")
