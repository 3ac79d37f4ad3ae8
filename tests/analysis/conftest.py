"""One Spark session for all of these tests: starting one takes as long as most of them together."""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analysis.formats import edn
from analysis.ingest import ingest
from analysis.lake import Lake
from analysis.session import start
from analysis.sources import find_runs
from analysis.synthesise import ANOMALIES, Layout, Synthetic, synthesise

STORES = Path(__file__).parents[1] / "fixtures" / "maelstrom-stores"
SYNTHETIC_LAYOUT = Layout(operations=8_000, keys=40, processes=5, seed=1)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two threads, to have several partitions."""
    session = start("local[2]", brief=True)
    yield session
    session.stop()


@pytest.fixture(params=sorted(folder.name for folder in STORES.iterdir()))
def store(request: pytest.FixtureRequest) -> Path:
    """Each store of the real tool in turn."""
    return STORES / request.param


@pytest.fixture(scope="session")
def stores_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of all four stores."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    assert all(done.fresh for done in ingest(spark, lake, find_runs(STORES)))
    return lake


@pytest.fixture(scope="session")
def broken(spark: SparkSession) -> Synthetic:
    """A synthetic history with one anomaly of each type."""
    made = synthesise(spark, SYNTHETIC_LAYOUT, dict.fromkeys(ANOMALIES, 1))
    return Synthetic(made.operations.persist(), made.planted)


def write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_bench_run(store: Path, folder: Path) -> Path:
    """A store of the real tool as our bench would have left it, in `folder`."""
    folder.mkdir(parents=True)
    history = (store / "history.edn").read_text().splitlines()
    write_lines(folder / "history.jsonl", map(edn.loads, history))
    results = edn.loads((store / "results.edn").read_text())
    (folder / "results.json").write_text(json.dumps(results))
    options = {"workload": "kafka", "nodes": ["n0", "n1"], "rate": 100, "latency_ms": 0}
    (folder / "test.json").write_text(json.dumps(options))
    shutil.copy(store / "net-journal.expected.jsonl.gz", folder / "net-journal.jsonl.gz")
    return folder
