"""`./maelstrom serve` as a process, the files that make up a report; and neither needs Spark."""

import html
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from analysis import cli
from bench.pages.report import DETAILS, make_report, write_report
from runs.files import RunsError
from tests.pages.page_stores import FIRST, REAL, SECOND, THIRD, make_store
from tests.programs import ROOT
from tests.stores import write_lines

pytestmark = pytest.mark.process  # servers, and whole pages written by commands

COMMAND = [str(ROOT / "maelstrom"), "serve"]


# What a page would load: but of itself, or what it holds as data.
LOADS = re.compile(
    r"""<[^>]*\s(?:src|href|xlink:href|data|srcset)\s*=\s*["']?(?!\#|data:|["'\s])|@import|url\((?!\#)|"""
    r"""<script|<link[ ]rel="style""",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("serve"))


RUN, DIAGRAM = "Messages per operation", "data:image/svg+xml;base64,"


@pytest.mark.parametrize(
    ("name", "there", "absent"),
    [
        (FIRST, [RUN], DIAGRAM),
        ("latest", [RUN], DIAGRAM),
        (SECOND, [RUN, DIAGRAM], "left out"),
        (REAL, [RUN, DIAGRAM], "left out"),
        # Three pictures of the sweep, and the latencies of its run.
        ("sweeps/small", ["1 crashed", 'message 15 of key "9"'], "more runs are left out"),
    ],
)
def test_a_report_holds_everything_itself(
    store: Path, name: str, there: list[str], absent: str
) -> None:
    page = make_report(store / name)
    assert LOADS.findall(page) == []
    assert [text for text in there if text not in html.unescape(page)] == []
    assert absent not in page
    assert page.count('class="plot"') == (4 if name.startswith("sweeps") else 3)
    assert page == make_report(store / name)


def test_the_report_of_a_large_sweep_says_what_it_leaves_out(tmp_path: Path) -> None:
    write_lines(tmp_path / "index.jsonl", [])
    for number in range(DETAILS + 2):
        run = tmp_path / "kafka" / f"2026010{number % 9}T{number:06d}"
        run.mkdir(parents=True)
        (run / "results.json").write_text(json.dumps({"valid?": number != DETAILS}))
    page = make_report(tmp_path)
    assert page.count("<details") == DETAILS
    assert page.count("<details open") == 1  # what is not valid comes first
    assert "2 more runs are left out" in page


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunsError, match=r"holds no run.*\n.*results/latest"):
        make_report(tmp_path)
    with pytest.raises(RunsError, match="does not exist"):
        make_report(tmp_path / "nothing")


def test_the_report_command(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    result = CliRunner().invoke(cli.main, ["report", str(store / THIRD), "-o", str(file)])
    assert result.exit_code == 0, result.output
    latency, _, rest = result.output.partition("Messages")
    assert "Latency of operations in the main phase, ms" in latency
    assert "Server messages by type" in rest
    shown = re.findall(
        r"│ (?:ok|info|fail) *│ *([\d ]+) │|^ *(\d[\d ]*) more came", latency, re.MULTILINE
    )
    (asked,) = re.findall(r"operations ([\d ]+\d)", latency)
    numbers = [int("".join(each).replace(" ", "")) for each in (*shown, asked)]
    assert sum(numbers[:-1]) == numbers[-1] > numbers[-2] > 0, "every operation is told once"
    assert file.stat().st_size > 10_000
    denied = CliRunner().invoke(cli.main, ["report", str(store / THIRD), "-o", str(tmp_path)])
    assert denied.exit_code == 2
    with pytest.raises(RunsError, match="--output"):
        write_report(store / THIRD, tmp_path / "no" / "folder" / "page.html")


@contextmanager
def serving(store: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port, and its address."""
    process = subprocess.Popen(
        [*COMMAND, "--store", str(store), "--port", "0"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    try:
        first = process.stdout.readline()
        yield process, re.search(r"http://127\.0\.0\.1:\d+", first)[0]  # type: ignore[index]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_answers_and_stops_when_asked(store: Path, number: signal.Signals) -> None:
    with serving(store) as (process, address):
        with urllib.request.urlopen(address) as answer:
            assert FIRST in answer.read().decode()
        other = ("127.0.0.2", int(address.rpartition(":")[2]))
        with pytest.raises(OSError, match="refused"):  # it listens on this machine alone
            socket.create_connection(other)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "Stopped.\n", "")


def test_a_port_that_is_taken_is_told_with_what_to_do(store: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "--store", str(store), "--port", str(port)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 254
    assert f"Port {port} is taken" in done.stderr
    assert "--port 0" in done.stderr


def test_serving_needs_neither_spark_nor_pandas() -> None:
    """It starts at once because it imports little."""
    names = "pyspark", "pandas", "matplotlib"
    code = f"import bench.commands.serve, sys; print([n for n in {names!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


# ---------------------------------------------------------------- without Spark


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


def test_pages_are_served_without_spark(store: Path) -> None:
    code = """
from bench.pages.app import create_app
from bench.pages.facts import Shelf
from runs.store import Store
from pathlib import Path

client = create_app(Shelf(Store(Path(sys.argv[1])))).test_client()
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
    (store / FIRST / "history.jsonl").unlink()
    said = run("from analysis.cli import main; main()", "report", str(store / FIRST))
    assert "There is no history" in " ".join(said.split())
    assert "Latency over time" in page
