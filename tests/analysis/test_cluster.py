"""One driver on a standalone cluster, whose workers have nothing of this repository.

The analysis gives the figures of plain Python there. Sink and source work on a log in a bucket while an
executor dies and a task is repeated.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

from analysis.finding import find_runs
from analysis.rows import read
from analysis.spark import pack
from tests import servers
from tests.analysis.cluster_job import PACKED, ROWS
from tests.analysis.standalone import cluster, driver
from tests.programs import ROOT
from tests.stores import STORES

pytestmark = [pytest.mark.spark, pytest.mark.process]
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
# The driver tells more than it does by default, for its log must not have the secret then either.
LOGGING = """
rootLogger.level = error
rootLogger.appenderRef.all.ref = all
appender.all.type = File
appender.all.name = all
appender.all.fileName = {file}
appender.all.layout.type = PatternLayout
appender.all.layout.pattern = %d %p %c: %m%n%ex
"""
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "3s",  # the tasks before do their work once
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.5",
}


class Job(NamedTuple):
    """What the driver told, and where it worked."""

    told: dict[str, Any]
    folder: Path


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("cluster")
    with ZipFile(folder / PACKED, "w") as packed:
        for source in sorted((ROOT / "leaderless").rglob("*.py")):
            packed.write(source, source.relative_to(ROOT))
    (folder / "log4j2.properties").write_text(LOGGING.format(file=folder / "driver.log"))
    # Executors take the driver's own Python, as docs/analysis/scale.md says.
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= driver(SPECULATION) | {"SPARK_CONF_DIR": str(folder)}
    with servers.moto() as endpoint, cluster(folder) as master:
        place = (master, folder, f"s3://{servers.BUCKET}/log", endpoint)
        stores = (STORES / name for name in RUNS)
        done = subprocess.run(
            [sys.executable, "-m", "tests.analysis.cluster_job", *map(str, (*place, *stores))],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    return Job(json.loads(done.stdout.splitlines()[-1]), folder)


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


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_computes_what_plain_python_does(job: Job) -> None:
    runs = (run for name in RUNS for run in find_runs(STORES / name))
    rows = [
        (keys["program"], *row)
        for keys, its in (read(run, STORES / run.run_id) for run in runs)
        for row in its
    ]
    assert job.told["analysis"]["counts"] == Counter(
        t for _, t, _ in rows if t in ("messages", "operations")
    )
    assert job.told["analysis"]["means"] == pytest.approx(
        {  # each program has one run
            f"{program} {row['figure']}": row["value"]
            for program, table, row in rows
            if table == "figures" and row.get("of") is None
        }
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_executors_work_where_there_is_only_what_was_sent(job: Job) -> None:
    for part, archive in (("analysis", "packages.zip"), ("table", PACKED)):
        # That both workers take part is shown by the task that is repeated: Spark takes another host for it.
        assert job.told[part]["places"]
        for folder, module in job.told[part]["places"]:
            assert folder.startswith(str(job.folder / "worker-"))
            assert archive in module


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rows_are_in_the_log_once_although_an_executor_dies_and_a_task_is_repeated(
    job: Job,
) -> None:
    # Both happened: an executor was killed, and two attempts of one task ran side by side.
    assert {path.name for path in job.folder.iterdir()} >= {"killed", "attempt-0", "attempt-1"}
    rows = job.told["table"]["rows"]
    written = sorted((name, number) for _, _, name, number in rows)
    assert written == [(name, number) for name in ("killed", "repeated") for number in range(ROWS)]
    for key in ("k0", "k1", "k2"):
        offsets = sorted(offset for found, offset, *_ in rows if found == key)
        assert offsets == [*range(len(offsets))]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_secret_is_in_no_plan_and_no_log(job: Job) -> None:
    secret, plan = servers.s3_options("").secret_key, job.told["table"]["plan"]
    files = [job.folder / "driver.log", *job.folder.glob("worker-*/*/*/std*")]
    driver_log, *logs = (file.read_text(errors="replace") for file in files)
    assert secret
    assert len(logs) >= 4
    assert "leaderless" in plan
    assert "INFO" in driver_log
    assert not any(secret in text for text in (plan, driver_log, *logs))
