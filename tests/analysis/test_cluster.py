"""The same figures on a standalone cluster, whose workers have nothing of this repository.

Spark from a program whose environment is not activated: the `python3` of the path is another, or none.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from analysis.lake import Lake
from analysis.spark import pack
from leaderless import open_log_sync
from tests.analysis.cluster_job import means_of
from tests.analysis.standalone import JAVA, WORKERS, cluster, driver
from tests.programs import ROOT, need
from tests.stores import STORES

pytestmark = pytest.mark.spark
RUNS = ["lost-writes-1-node", "valid-3-nodes"]  # one for each worker
# Imports every module of the archive's `analysis`, and prints where each module of the project came from.
IMPORT_ALL = """
import json, pkgutil, sys
archive = sys.argv[1]
sys.path.insert(0, archive)
import analysis
for module in pkgutil.walk_packages(analysis.__path__, "analysis."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
rooms = {module.name for module in pkgutil.iter_modules([archive])}
ours = {name: module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in rooms}
print(json.dumps(ours))
"""


@pytest.mark.process
def test_what_is_sent_to_executors_stands_alone(tmp_path: Path) -> None:
    archive = pack(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, str(archive)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {"analysis.checker.verdicts", "workloads.kafka.checker"} <= set(told)
    assert [name for name, file in told.items() if not file.startswith(str(archive))] == []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_computes_what_one_machine_does(
    spark: SparkSession, stores_lake: Lake, tmp_path: Path
) -> None:
    # Executors take the driver's own Python, as docs/analysis/scale.md says.
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    stores = [STORES / name for name in RUNS]
    with cluster(tmp_path) as master:
        job = ["tests.analysis.cluster_job", master, str(tmp_path / "lake"), *map(str, stores)]
        done = subprocess.run(
            [sys.executable, "-m", *job],
            env=environment | driver(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    tables = {name: stores_lake.table(spark, name, RUNS) for name in ("messages", "operations")}
    assert told["counts"] == {name: table.count() for name, table in tables.items()}
    assert told["means"] == means_of(stores_lake, spark, RUNS)
    assert len(told["places"]) == WORKERS
    for folder, module in told["places"]:
        assert folder.startswith(str(tmp_path / "worker-"))
        assert "packages.zip" in module


# ---------------------------------------------------------------- not_activated


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
        (commands / name).symlink_to(need(name))
    if other:
        (commands / "python3").write_text("#!/bin/sh\nexit 3\n")
        (commands / "python3").chmod(0o700)
    hidden = ("PYSPARK_PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= driver() | {"PATH": str(commands), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program, url],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-2:]) == (0, ["3", "rows"]), done.stderr


# ---------------------------------------------------------------- spark-submit

SUBMITTED = """
from analysis.spark import session
with session("local[*]", brief=True) as spark:
    print(spark.sparkContext.master, spark.conf.get("spark.sql.shuffle.partitions"))
"""


@pytest.mark.process
@pytest.mark.slow
def test_options_of_spark_submit_come_before_ours(tmp_path: Path) -> None:
    program, home = tmp_path / "program.py", Path(pyspark.__file__).parent
    program.write_text(SUBMITTED)
    asked = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=3"]
    asked += ["--driver-java-options", JAVA]
    paths = {"SPARK_HOME": str(home), "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [home / "bin" / "spark-submit", *asked, program],
        env=os.environ | paths | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-2:]) == (0, ["local[1]", "3"]), done.stderr
