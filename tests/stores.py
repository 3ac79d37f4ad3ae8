"""The stores of the real tool that tests read, and folders of runs made of them."""

import atexit
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runs import edn
from runs.history import json_line, plain, read_history

FIXTURES = Path(__file__).parent / "fixtures"


def _unpacked() -> Path:
    """The recorded stores as the tool left them, in a folder that goes when this process ends.

    Histories and results lie open in the repository, because people read and check them. The other files
    are in an archive: journals of the network, logs of nodes, and the histories as text.
    """
    folder = Path(tempfile.mkdtemp(prefix="recorded-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(FIXTURES / "maelstrom-stores", folder, dirs_exist_ok=True)
    with zipfile.ZipFile(FIXTURES / "maelstrom-stores.zip") as archive:
        archive.extractall(folder)
    return folder


def _runs() -> Path:
    """Those stores, and short runs of the embedded bench: ours under each fault, each example node."""
    folder = Path(tempfile.mkdtemp(prefix="stored-runs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for store in STORES.iterdir():
        (folder / store.name).symlink_to(store)
    with zipfile.ZipFile(FIXTURES / "runs.zip") as archive:
        archive.extractall(folder)
    return folder


STORES = _unpacked()
RUNS = _runs()
# Those whose journal another reader wrote as JSON lines.
WITH_JOURNAL = sorted(file.parent for file in STORES.glob("*/net-journal.expected.jsonl.gz"))

# 90 histories that the real tool has judged, each a packed file of an archive, and what it said.
JUDGED = FIXTURES / "judged-histories"
EXPECTED = [json.loads(line) for line in (JUDGED / "expected.jsonl").read_text().splitlines()]


def write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_bench_run(store: Path, folder: Path) -> Path:
    """A store of the real tool as our bench would have left it, in `folder`."""
    folder.mkdir(parents=True)
    with (folder / "history.jsonl").open("wb") as file:
        file.writelines(json_line(op) + b"\n" for op in read_history(store / "history.edn"))
    results = edn.loads((store / "results.edn").read_text())
    (folder / "results.json").write_text(json.dumps(results, default=plain))
    options = {"workload": "kafka", "nodes": ["n0", "n1"], "rate": 100, "latency_ms": 0}
    (folder / "test.json").write_text(json.dumps(options))
    shutil.copy(store / "net-journal.expected.jsonl.gz", folder / "net-journal.jsonl.gz")
    return folder
