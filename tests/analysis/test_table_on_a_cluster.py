"""Sink and source on a standalone cluster, with a log in a bucket; an executor dies, a task is repeated.

Exactly once although processes die: drivers and an appender are killed by SIGKILL, again and again.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from leaderless import LogSync, open_log_sync
from tests import servers
from tests.analysis.drivers import ROWS as LOADED
from tests.analysis.standalone import cluster, driver
from tests.analysis.started import ROOT, finish, running, wait_until
from tests.analysis.table_job import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]
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
            | driver()
            | {"SPARK_CONF_DIR": str(conf), "PYSPARK_PYTHON": sys.executable},
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


# ---------------------------------------------------------------- processes that die

KILLS = 2


def records_of(log: LogSync) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for key, end in log.keys().items():
        values = found.setdefault(key, [])
        while len(values) < end:
            values += [each.value for each in log.read(key, len(values))]
    return found


def has_committed(checkpoint: Path, epochs: int) -> bool:
    """Whether a query has come so far."""
    return len([*checkpoint.glob("commits/[0-9]*")]) >= epochs


@pytest.mark.timeout(900)
def test_a_query_whose_driver_and_source_die_copies_each_record_once(tmp_path: Path) -> None:
    """An appender is killed in each life of the driver, and the driver in the middle of its epochs."""
    url, checkpoint = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "checkpoint"
    with open_log_sync(url, runs="parquet") as log:
        log.append("k0", "first")
    epochs = 0
    for life in range(KILLS):
        with running("tests.appending", url, "", f"life{life}") as appender:
            assert len([*islice(appender.stdout, 200)]) == 200
        epochs += 1 + life
        with running("tests.analysis.drivers", "copy", url, checkpoint) as driver:
            wait_until(driver, partial(has_committed, checkpoint, epochs))
        with open_log_sync(url) as log:
            log.compact()
    finish("tests.analysis.drivers", "copy", url, checkpoint, "--end")
    with (
        open_log_sync(url, create=False) as log,
        open_log_sync(url, "copy", create=False) as target,
    ):
        wanted, found = records_of(log), records_of(target)
    assert sum(map(len, wanted.values())) > 200 * KILLS
    assert {key: Counter(values) for key, values in found.items()} == {
        key: Counter(values) for key, values in wanted.items()
    }


@pytest.mark.timeout(900)
def test_a_load_that_was_killed_half_way_is_finished_by_an_empty_one_of_its_name(
    tmp_path: Path,
) -> None:
    """And it stays as it is when the rows come once more, in another order."""
    url = f"sqlite:///{tmp_path / 'log.db'}"
    with open_log_sync(url, runs="parquet") as log:
        with running("tests.analysis.drivers", "load", url, "rows") as driver:
            wait_until(driver, lambda: bool(log.keys()))
        assert 0 < sum(log.keys().values()) < LOADED
    for form in ("empty", "others"):
        finish("tests.analysis.drivers", "load", url, form)
        with open_log_sync(url, create=False) as log:
            assert sum(log.keys().values()) == LOADED
            values = [value for found in records_of(log).values() for value in found]
        assert sorted(value["id"] for value in values) == [*range(LOADED)]  # type: ignore[index]
