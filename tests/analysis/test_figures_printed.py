"""`analysis report` prints the figures of a run without Spark, and says what it did not read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from analysis.cli import main
from tests.pages.page_stores import FIRST, make_store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("printed")) / FIRST


def test_the_tables_of_a_run_are_printed_and_its_page_written(run: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(run)])
    assert result.exit_code == 0, result.output
    assert "Latency of operations, ms" in result.output
    assert "Messages" in result.output
    assert (run / "report.html").is_file()


def test_a_run_without_a_history_says_so(run: Path) -> None:
    (run / "history.jsonl").unlink()
    result = CliRunner().invoke(main, ["report", str(run)])
    assert result.exit_code == 0, result.output
    assert "There is no history" in " ".join(result.output.split())
