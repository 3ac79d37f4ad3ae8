"""Exactly once although processes die: drivers and an appender are killed by SIGKILL, again and again."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

import pytest

from leaderless import LogSync, open_log_sync
from tests.analysis.loading import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]
KILLS = 3


@contextmanager
def running(module: str, *arguments: object) -> Iterator[IO[str]]:
    """The lines of a program, which is killed with its Java at the end of the block."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def copy(*arguments: object) -> list[str]:
    """Run the query to the end of the log; returns its lines."""
    command = [sys.executable, "-m", "tests.analysis.copying", *map(str, arguments), "--end"]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()


def records_of(log: LogSync) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for key, end in log.keys().items():
        values = found.setdefault(key, [])
        while len(values) < end:
            values += [each.value for each in log.read(key, len(values))]
    return found


@pytest.mark.timeout(900)
def test_a_query_whose_driver_and_source_die_copies_each_record_once(tmp_path: Path) -> None:
    """An appender is killed in each life of the driver, and the driver in the middle of its epochs."""
    url, checkpoint = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "checkpoint"
    with open_log_sync(url, runs="parquet") as log:
        log.append("k0", "first")
    epochs: list[str] = []
    for life in range(KILLS):
        with running("tests.appending", url, "", f"life{life}") as acknowledged:
            assert len([*islice(acknowledged, 200)]) == 200
        with running("tests.analysis.copying", url, checkpoint) as told:
            epochs += islice(told, 1 + life)
        with open_log_sync(url) as log:
            log.compact()
    copy(url, checkpoint)
    with (
        open_log_sync(url, create=False) as log,
        open_log_sync(url, "copy", create=False) as target,
    ):
        wanted, found = records_of(log), records_of(target)
    assert len(epochs) == sum(range(1, KILLS + 1))
    assert sum(map(len, wanted.values())) > 200 * KILLS
    assert {key: Counter(values) for key, values in found.items()} == {
        key: Counter(values) for key, values in wanted.items()
    }


def load(url: str, form: str) -> None:
    """Run the load to its end."""
    command = [sys.executable, "-m", "tests.analysis.loading", url, form]
    subprocess.run(command, check=True)


@pytest.mark.timeout(900)
def test_a_load_that_was_killed_half_way_is_finished_by_an_empty_one_of_its_name(
    tmp_path: Path,
) -> None:
    """And it stays as it is when the rows come once more, in another order."""
    url = f"sqlite:///{tmp_path / 'log.db'}"
    with open_log_sync(url, runs="parquet") as log:
        with running("tests.analysis.loading", url, "rows"):
            while not log.keys():
                time.sleep(0.02)
        assert 0 < sum(log.keys().values()) < ROWS
    for form in ("empty", "others"):
        load(url, form)
        with open_log_sync(url, create=False) as log:
            assert sum(log.keys().values()) == ROWS
            values = [value for found in records_of(log).values() for value in found]
        assert sorted(value["id"] for value in values) == [*range(ROWS)]  # type: ignore[index]
