"""The same figures on a standalone cluster, whose workers have nothing of this repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analysis.lake import Lake
from analysis.spark import pack
from tests.analysis.cluster_job import means_of
from tests.analysis.standalone import DRIVER, WORKERS, cluster
from tests.stores import STORES

pytestmark = pytest.mark.spark
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
    # Executors take the driver's own Python, as docs/scale.md says.
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    with cluster(tmp_path) as master:
        done = subprocess.run(
            [sys.executable, "-m", "tests.analysis.cluster_job", master, STORES, tmp_path / "lake"],
            env=environment | DRIVER | {"SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    operations, messages = (stores_lake.table(spark, name) for name in ("operations", "messages"))
    assert told["counts"] == {"messages": messages.count(), "operations": operations.count()}
    assert told["means"] == means_of(stores_lake, spark)
    assert len(told["places"]) == WORKERS
    for folder, module in told["places"]:
        assert folder.startswith(str(tmp_path / "worker-"))
        assert "packages.zip" in module
