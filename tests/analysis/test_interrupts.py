"""Ctrl-C and other ends of commands that use Spark: a sentence, and nothing of Java's.

Java passes over a damaged archive of Spark's classes, and says nothing of it.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores import STORES

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]

# A command whose job would take years; its argument is an archive of classes. When the job is about to begin it
# says whether Spark shows a UI, and the options of its Java.
ENDLESS = """
import signal
import sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this process inherited
from analysis import cli, spark as started
started.CLASSES = Path(sys.argv.pop())

@cli.main.command()
def endless():
    with started.session("local[1]", brief=True) as spark:
        print(spark.conf.get("spark.ui.enabled"))
        print(spark.conf.get("spark.driver.extraJavaOptions"), flush=True)
        spark.range(10**16).selectExpr("sum(id * id % 7)").collect()

cli.main(["endless"])
"""


def test_an_interrupt_is_one_sentence_and_the_users_settings_hold(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.enabled true\nspark.ui.port 0\n")
    damaged = tmp_path / "a folder" / "classes.jsa"
    damaged.parent.mkdir()
    damaged.write_bytes(b"not an archive")
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(damaged)],
        env=os.environ | {"SPARK_CONF_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        assert command.stdout
        assert command.stderr
        assert command.stdout.readline() == "true\n"
        options = command.stdout.readline().rstrip()
        assert options.endswith(f"'-XX:SharedArchiveFile={damaged}'")
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
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{python}, lacks the package " in done.stderr
