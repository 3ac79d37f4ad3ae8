"""docs/analysis/notebooks.md: its programs run as printed, and its table has every column."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analysis.lake import Lake
from analysis.schemas import TABLES

PAGE = (Path(__file__).parents[2] / "docs" / "analysis" / "notebooks.md").read_text(
    encoding="utf-8"
)
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_column_is_on_the_page() -> None:
    rows = {
        row[0]: set(row[1:]) for line in PAGE.splitlines() if (row := re.findall(r"`(\w+)`", line))
    }
    for name, schema in TABLES.items():
        assert set(schema.names) == rows[name], name


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=["spark", "duckdb", "arrow"])
def test_programs_run_as_printed(spark: SparkSession, stores_lake: Lake, program: str) -> None:
    names: dict[str, object] = {}
    exec(program.replace("results/lake", str(stores_lake.folder)), names)
    if "slow" in names:
        counted = stores_lake.table(spark, "operations").filter("latency_ns > 1e9").count()
        assert len(names["slow"]) == counted > 0  # type: ignore[arg-type]
        assert len(names["faults"]) == stores_lake.table(spark, "faults").count()  # type: ignore[arg-type]
