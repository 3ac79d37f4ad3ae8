"""The stores of the real tool that tests read, and folders of runs made of them."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from runs import edn

STORES = Path(__file__).parent / "fixtures" / "maelstrom-stores"
# Those whose journal another reader wrote as JSON lines.
WITH_JOURNAL = sorted(file.parent for file in STORES.glob("*/net-journal.expected.jsonl.gz"))


def write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_bench_run(store: Path, folder: Path) -> Path:
    """A store of the real tool as our bench would have left it, in `folder`."""
    folder.mkdir(parents=True)
    history = (store / "history.edn").read_text().splitlines()
    write_lines(folder / "history.jsonl", map(edn.loads_json, history))
    results = edn.loads_json((store / "results.edn").read_text())
    (folder / "results.json").write_text(json.dumps(results))
    options = {"workload": "kafka", "nodes": ["n0", "n1"], "rate": 100, "latency_ms": 0}
    (folder / "test.json").write_text(json.dumps(options))
    shutil.copy(store / "net-journal.expected.jsonl.gz", folder / "net-journal.jsonl.gz")
    return folder
