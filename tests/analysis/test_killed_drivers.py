"""Exactly once although drivers and an appender are killed by SIGKILL; the next driver goes on."""

from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from leaderless import LogSync, open_log_sync
from leaderless.spark import LeaderlessDataSource
from tests.analysis.drivers import ROWS, copy, load
from tests.analysis.started import module, running, wait_until

pytestmark = [
    *(pytest.mark.spark, pytest.mark.process, pytest.mark.slow),
    pytest.mark.timeout(900),
]
LIFE = 200  # records that an appender writes before it is killed


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


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(LeaderlessDataSource)
    return spark


def test_a_query_whose_driver_and_source_die_copies_each_record_once(
    tmp_path: Path, session: SparkSession
) -> None:
    """An appender is killed, then the driver in the middle of its epochs, and an appender once more."""
    url, checkpoint = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "checkpoint"
    with open_log_sync(url, runs="parquet") as log:
        log.append("k0", "first")
    for life in range(2):
        with running(*module("tests.appending", url, "", f"life{life}")) as appender:
            assert len([*islice(appender.stdout, LIFE)]) == LIFE
        if life == 0:
            with running(*module("tests.analysis.drivers", "copy", url, checkpoint)) as driver:
                wait_until(driver, partial(has_committed, checkpoint, 2))
            assert not has_committed(checkpoint, LIFE // 60 + 1), "the driver was at the end"
        with open_log_sync(url) as log:
            log.compact()
    copy(session, url, str(checkpoint), end=True)
    with (
        open_log_sync(url, create=False) as log,
        open_log_sync(url, "copy", create=False) as target,
    ):
        wanted, found = records_of(log), records_of(target)
    assert sum(map(len, wanted.values())) > 2 * LIFE
    assert {key: Counter(values) for key, values in found.items()} == {
        key: Counter(values) for key, values in wanted.items()
    }


def test_a_load_that_was_killed_half_way_is_finished_by_an_empty_one_of_its_name(
    tmp_path: Path, session: SparkSession
) -> None:
    """And it stays as it is when the rows come once more, in another order and other tasks."""
    url, rows = f"sqlite:///{tmp_path / 'log.db'}", session.range(ROWS)
    with open_log_sync(url, runs="parquet") as log:
        with running(*module("tests.analysis.drivers", "load", url)) as driver:
            wait_until(driver, lambda: bool(log.keys()))
        assert 0 < sum(log.keys().values()) < ROWS
    for frame in (rows.where("id < 0"), rows.orderBy(F.desc("id")).repartition(3)):
        load(frame, url)
        with open_log_sync(url, create=False) as log:
            assert sum(log.keys().values()) == ROWS
            values = [value for found in records_of(log).values() for value in found]
        assert sorted(value["id"] for value in values) == [*range(ROWS)]  # type: ignore[index]
