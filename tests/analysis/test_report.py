"""The summary, its page and the command line."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from analysis import cli
from analysis.lake import Lake
from analysis.report import render
from analysis.session import start
from analysis.summary import summarise
from tests.analysis.conftest import STORES, as_bench_run

pytestmark = pytest.mark.spark


class References(HTMLParser):
    """Collects what a page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loads = ("src", "href", "xlink:href", "data", "srcset")
        self.found += [value for name, value in attrs if name in loads and value]


def test_page_holds_everything_itself(spark: SparkSession, stores_lake: Lake, store: Path) -> None:
    summary = summarise(spark, stores_lake, store.name)
    page = render(summary)
    references = References()
    references.feed(page)
    assert all(reference.startswith("#") for reference in references.found)
    assert not re.search(r"@import|url\((?!#)|<script", page)
    assert summary.disagreements == []
    assert "These counts equal the bench's own" in page
    for row in summary.by_type:
        if row.link != "client":
            assert f">{row.type}</text>" in page
    assert page.count("<svg") == (4 if any(row.link != "client" for row in summary.by_type) else 3)


def test_page_is_reproducible(spark: SparkSession, stores_lake: Lake) -> None:
    summary = summarise(spark, stores_lake, "valid-3-nodes")
    assert render(summary) == render(summary)


def test_page_of_an_invalid_run_names_anomalies_and_shades_faults(
    spark: SparkSession, stores_lake: Lake
) -> None:
    page = render(summarise(spark, stores_lake, "duplicates-partition-5-nodes"))
    assert "Invalid" in page
    assert "nonmonotonic-poll" in page
    assert "minority-third" in page
    assert ">fault</text>" in page


@pytest.fixture
def same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use the tests' session, and leave it running."""
    monkeypatch.setattr("analysis.session.start", lambda master, **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)


@pytest.mark.usefixtures("same_session")
def test_summary_command(tmp_path: Path) -> None:
    folder = as_bench_run(
        STORES / "duplicates-partition-5-nodes", tmp_path / "kafka" / "20260101T000000.000"
    )
    command = ["summary", str(folder), "--lake", str(tmp_path / "lake")]
    result = CliRunner().invoke(cli.main, command, catch_exceptions=False)
    assert result.exit_code == 0
    assert "Server messages by type" in result.output
    assert "counts disagree" not in result.output
    assert result.output.splitlines()[-1] == f"Report: {folder / 'report.html'}"
    assert (folder / "report.html").stat().st_size > 10_000


@pytest.mark.usefixtures("same_session")
def test_ingest_command(tmp_path: Path) -> None:
    store = STORES / "lost-writes-1-node"
    command = ["ingest", str(store), "--lake", str(tmp_path / "lake")]
    for word in ("ingested", "already there"):
        result = CliRunner().invoke(cli.main, command, catch_exceptions=False)
        assert f"{store.name}: {word}" in result.output


@pytest.mark.parametrize("command", ["ingest", "summary"])
def test_errors_are_readable(command: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli.main, [command, str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert "holds no run" in result.output


def test_java_missing_is_told_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from analysis.errors import AnalysisError

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(AnalysisError, match="apt-get install openjdk"):
        start("local[1]")
