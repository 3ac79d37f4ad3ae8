"""The command line of the analysis."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from analysis import cli
from analysis.spark import start
from tests.stores import STORES, as_bench_run

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use the tests' session, and leave it running."""
    monkeypatch.setattr("analysis.spark.start", lambda master, **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


def test_report_command(tmp_path: Path) -> None:
    folder = as_bench_run(
        STORES / "duplicates-partition-5-nodes", tmp_path / "kafka" / "20260101T000000.000"
    )
    result = CliRunner().invoke(cli.main, ["report", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "Server messages by type" in result.output
    assert result.output.splitlines()[-1] == f"Report: {folder / 'report.html'}"
    assert (folder / "report.html").stat().st_size > 10_000
    assert (folder / "figures.json").exists()  # for ./maelstrom serve


@pytest.mark.usefixtures("same_session")
def test_ingest_command(tmp_path: Path) -> None:
    store = STORES / "lost-writes-1-node"
    command = ["ingest", str(store), "--lake", str(tmp_path / "lake")]
    for word in ("ingested", "already there"):
        result = CliRunner().invoke(cli.main, command, catch_exceptions=False)
        assert f"{store.name}: {word}" in result.output


@pytest.mark.usefixtures("same_session")
@pytest.mark.parametrize("command", ["ingest", "report"])
def test_errors_are_readable(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.main, [command, str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "holds no run" in result.output


@pytest.mark.usefixtures("same_session")
def test_executors_without_pyarrow_are_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-S hides site-packages from the Python of the workers."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    result = CliRunner().invoke(cli.main, ["check", str(STORES / "valid-3-nodes")])
    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
    assert f"{python}, lacks the package " in result.output


def test_java_missing_is_told_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from analysis.errors import AnalysisError

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(AnalysisError, match="apt-get install openjdk"):
        start("local[1]")
