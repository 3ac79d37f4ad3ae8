"""Sink and source on a standalone cluster, with a log in a bucket; an executor dies, a task is repeated."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests import servers
from tests.analysis.standalone import DRIVER, cluster
from tests.analysis.table_job import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
# The driver tells more than it does by default, for its log must not have the secret then either.
LOGGING = """
logger.spark.name = org.apache.spark
logger.spark.level = info
rootLogger.level = info
rootLogger.appenderRef.all.ref = all
appender.all.type = Console
appender.all.name = all
appender.all.target = SYSTEM_ERR
appender.all.layout.type = PatternLayout
appender.all.layout.pattern = %d %p %c: %m%n%ex
"""


def pack(archive: Path) -> None:
    """What executors need of this repository."""
    with ZipFile(archive, "w") as packed:
        for source in sorted((ROOT / "leaderless").rglob("*.py")):
            packed.write(source, source.relative_to(ROOT))


@pytest.mark.timeout(900)
def test_rows_are_in_the_log_once_although_an_executor_dies_and_a_task_is_repeated(
    tmp_path: Path,
) -> None:
    pack(tmp_path / "packages.zip")
    conf = tmp_path / "conf"
    conf.mkdir()
    Path(conf, "log4j2.properties").write_text(LOGGING)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    with servers.moto() as endpoint, cluster(tmp_path, apart=True) as master:
        job = [
            "tests.analysis.table_job",
            master,
            f"s3://{servers.BUCKET}/log",
            endpoint,
            str(tmp_path),
        ]
        done = subprocess.run(
            [sys.executable, "-m", *job],
            env=environment
            | DRIVER
            | {
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_CONF_DIR": str(conf),
                "PYSPARK_PYTHON": sys.executable,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(done.stdout.splitlines()[-1])
    _require_once(told["rows"])
    # Both happened: an executor was killed, and two attempts of one task ran side by side.
    assert {path.name for path in tmp_path.iterdir()} >= {"killed", "attempt-0", "attempt-1"}
    for folder, module in told["places"]:
        assert folder.startswith(str(tmp_path / "worker-"))
        assert "packages.zip" in module
    _require_no_secret(tmp_path, told["plan"], done.stderr)


def _require_once(rows: list[list[Any]]) -> None:
    written = sorted((name, number) for _, _, name, number in rows)
    assert written == [(name, number) for name in ("killed", "repeated") for number in range(ROWS)]
    for key in ("k0", "k1", "k2"):
        offsets = sorted(offset for found, offset, *_ in rows if found == key)
        assert offsets == [*range(len(offsets))]


def _require_no_secret(folder: Path, plan: str, driver_log: str) -> None:
    secret = servers.s3_options("").secret_key
    assert secret
    logs = [file.read_text(errors="replace") for file in folder.glob("worker-*/*/*/std*")]
    assert len(logs) >= 4
    assert "leaderless" in plan
    assert "INFO" in driver_log
    assert not any(secret in text for text in (plan, driver_log, *logs))
