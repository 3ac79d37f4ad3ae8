"""Pages need no Spark: they are served and written where pyspark, pandas and py4j cannot be imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.page_stores import FIRST, make_store

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
# What is installed with the extra `analysis` alone.
WITHOUT_SPARK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pandas", "py4j", "pyarrow", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK + code, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_blocker_hides_spark() -> None:
    with pytest.raises(AssertionError, match="No module named 'pyspark'"):
        run("import analysis.finding")


def test_serve_starts_without_spark() -> None:
    assert "--store" in run("from commands.main import main; main()", "serve", "--help")


def test_pages_are_served_without_spark(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    code = """
from pages.app import create_app
from pages.library import Library
from runs.store import Store
from pathlib import Path

client = create_app(Library(Store(Path(sys.argv[1])))).test_client()
for address in sys.argv[2:]:
    print(client.get(address).status_code)
"""
    addresses = ("/", f"/run/{FIRST}", f"/timeline/{FIRST}", "/sweep/sweeps/small")
    assert run(code, str(store), *addresses).split() == ["200"] * len(addresses)


def test_a_page_is_written_without_spark(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    run("from analysis.cli import main; main()", "report", str(store / FIRST))
    page = (store / FIRST / "report.html").read_text()
    assert "<svg" in page
    assert "Latency over time" in page
