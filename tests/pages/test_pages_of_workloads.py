"""Pages and pictures of runs of every workload, not of kafka alone."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

import workloads
from bench import judgement
from bench.commands.check import check
from bench.pages.app import create_app
from bench.pages.facts import Shelf
from runs import edn
from runs.plots.run import draw_all
from runs.store import Store
from tests.scripted import ROOT, node_of
from tests.toy_log import VirtualRun, judged

pytestmark = pytest.mark.simulation

STORM = {"nemesis": ("partition",), "nemesis_interval_s": 0.5, "latency_ms": 10}
# workload -> a node that is wrong, options, the anomaly, and an operation that has a tile
WRONG: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "broadcast": ("broadcast_forgets.py", STORM, "lost", "broadcast"),
    "echo": ("echo_wrong.py", {}, "wrong-echo", "echo"),
    "g-counter": ("counter_counts_twice.py", {}, "wrong-sum", "add"),
    "g-set": ("g_set_loses.py", {"latency_ms": 10}, "lost", "add"),
    "lin-kv": ("lin_kv_stale.py", {"nodes": ("n0", "n1", "n2")}, "nonlinearizable", "cas"),
    "pn-counter": ("counter_counts_twice.py", {}, "wrong-sum", "read"),
    "txn-list-append": ("txn_dirty_writes.py", {"latency_ms": 10}, "incompatible-order", "txn"),
    "txn-rw-register": ("txn_dirty_reads.py", {"nodes": ("n0",)}, "G1a", "txn"),
    "unique-ids": ("unique_ids_repeats.py", {}, "duplicated", "generate"),
}
FIRST = {"broadcast", "txn-list-append"}  # the others have nothing on a page that these have not


def write_run(store: Path, workload: str, script: str, **options: Any) -> tuple[Path, VirtualRun]:
    """A run in the simulator, with the files that the bench leaves."""
    folder = store / workload / "20260101T000000.000"
    folder.mkdir(parents=True)
    chosen = {"time_limit_s": 2, "key_count": None, **options}
    run = VirtualRun(make=node_of(ROOT / "tests/nodes" / script), workload=workload, **chosen)
    (folder / "history.jsonl").write_bytes(run.history_file.content)
    (folder / "net-journal.jsonl").write_bytes(run.journal_file.content)
    recorded = run.options.as_dict() | {"history_origin_ns": run.outcome.history_origin_ns}
    judgement.write_json(folder / "test.json", recorded)
    judgement.write_results(folder, judged(run))
    return folder, run


def test_each_workload_but_kafka_is_here() -> None:
    assert WRONG.keys() == set(workloads.NAMES) - {"kafka"}


@pytest.mark.parametrize(
    "workload",
    [
        *sorted(FIRST),
        *(pytest.param(each, marks=pytest.mark.slow) for each in sorted(WRONG.keys() - FIRST)),
    ],
)
def test_a_wrong_run_is_shown_drawn_and_judged_again(tmp_path: Path, workload: str) -> None:
    script, options, anomaly, operation = WRONG[workload]
    folder, run = write_run(tmp_path, workload, script, **options)
    client = create_app(Shelf(Store(tmp_path))).test_client()
    page = client.get(f"/run/{workload}/{folder.name}")
    assert page.status_code == 200
    text = html.unescape(page.text)
    assert re.search(rf'<h3 id="{anomaly}" class="invalid">', text)
    assert f"{operation}: p50" in text
    assert "did not pass" not in text, "what the sentences say is not said again in numbers"
    drawn = draw_all(folder, run.history, run.options.as_dict())
    assert [each for each in drawn.values() if isinstance(each, Exception)] == []
    results = edn.loads((folder / "results.edn").read_text())
    assert results["valid?"] is False
    with pytest.raises(SystemExit) as ended:
        check.main(["--json", str(folder)], standalone_mode=False)
    assert ended.value.code == 1
