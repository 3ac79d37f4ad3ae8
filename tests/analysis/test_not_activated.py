"""Spark from a program whose environment is not activated: the `python3` of the path is another, or none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leaderless import open_log_sync
from tests.analysis.standalone import DRIVER

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
NEEDED = ("bash", "dirname", "java", "ps", "rm")  # by Spark's own scripts

OWN_SESSION = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
from leaderless.spark import LeaderlessDataSource
spark.dataSource.register(LeaderlessDataSource)
print(spark.read.format("leaderless").load(sys.argv[1]).count(), "rows")
"""
IMPORTED_FIRST = "from leaderless.spark import LeaderlessDataSource\n" + OWN_SESSION
ANALYSIS = """
from analysis.spark import session
with session("local[1]", brief=True) as spark:
    print(len(spark.sparkContext.parallelize([1, 2, 3]).map(lambda each: each).collect()), "rows")
"""


@pytest.mark.parametrize(
    ("program", "other"),
    [(OWN_SESSION, True), (IMPORTED_FIRST, False), (ANALYSIS, False)],
    ids=["session first, another python3", "import first, no python3", "analysis, no python3"],
)
def test_the_workers_run_the_python_of_the_program(
    tmp_path: Path, program: str, other: bool
) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with open_log_sync(url) as log:
        log.append_many("k", [1, 2, 3])
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found, name
        (commands / name).symlink_to(found)
    if other:
        (commands / "python3").write_text("#!/bin/sh\nexit 3\n")
        (commands / "python3").chmod(0o700)
    hidden = ("PYSPARK_PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= DRIVER | {
        "PATH": str(commands),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program, url],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-2:]) == (0, ["3", "rows"]), done.stderr
