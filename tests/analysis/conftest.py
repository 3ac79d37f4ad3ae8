"""One Spark session for all of these tests: starting one takes as long as most of them together."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from analysis.finding import find_runs
from analysis.lake import Lake, ingest
from analysis.spark import LOCAL, start
from analysis.synthesise import ANOMALIES, Layout, Synthetic, synthesise
from tests.stores import STORES

SYNTHETIC_LAYOUT = Layout(operations=8_000, keys=40, processes=5, seed=1)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A local session of two threads, and of two partitions: four would cost an eighth more CPU time."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("spark.sql.shuffle.partitions", "spark.default.parallelism"):
            patch.setitem(LOCAL, name, "2")
        session = start("local[2]", brief=True)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def stores_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of all five stores."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    assert all(done.fresh for done in ingest(spark, lake, find_runs(STORES)))
    return lake


@pytest.fixture(scope="session")
def broken(spark: SparkSession) -> Synthetic:
    """A synthetic history with one anomaly of each type."""
    made = synthesise(spark, SYNTHETIC_LAYOUT, dict.fromkeys(ANOMALIES, 1))
    return Synthetic(made.operations.persist(), made.planted)
