"""Stores for the tests of pages, made of what real runs left; and pages, asked for as a browser does."""

import atexit
import html
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from bench.commands.serve import make_server
from bench.pages.app import create_app
from bench.pages.facts import Shelf
from runs.live import FOLDER as LIVES
from runs.live import Live, keep_live
from runs.plots.picture import Picture
from runs.store import Store
from tests.stores import STORES, as_bench_run, write_lines

DUPLICATES = "duplicates-partition-5-nodes"
VALID = "valid-3-nodes"
SKIPS = "prefetch-skips-2-nodes"

FIRST = "kafka/20260101T000000.000"  # leaderless, valid, no faults
SECOND = "kafka/20260102T000000.000"  # prefetch, invalid
THIRD = "sweeps/small/kafka/20260103T000000.000"  # cas, invalid, partitions, part of a sweep
REAL = f"real/{DUPLICATES}"  # as the real tool left it


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address at which the pages of a store are served."""
    with make_server(store, 0) as server, ThreadPoolExecutor() as pool:
        pool.submit(server.serve_forever)
        yield f"http://127.0.0.1:{server.port}"
        server.shutdown()


def make_store(root: Path, *, seen: bool = False) -> Path:
    """Three runs of the bench, one of the real tool, a sweep, and links as the bench makes them.

    `seen`: each run keeps its figures and findings, as after a first look at all pages.
    """
    return Path(shutil.copytree(_made(seen), root / "results", symlinks=True))


@cache
def _made(seen: bool) -> Path:
    """Such a store, made once, in a folder that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="page-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    store = folder / "results"
    if seen:
        make_store(folder)
        shelf = Shelf(Store(store), clock=lambda: NOW_S)
        for run in shelf.store.runs():
            shelf.figures(run)
            shelf.findings(run)
        return store
    _run(store, FIRST, VALID, started="2026-01-01T00:00:00.000+00:00", seed="11")
    args = ["--strategy", "prefetch"]
    _run(store, SECOND, SKIPS, started="2026-01-02T00:00:00.000+00:00", args=args, rate=200)
    _run(store, THIRD, DUPLICATES, nemesis=["partition"], args=["--strategy=cas"])
    kept = shutil.ignore_patterns("figures.json", "findings.json")  # by other tests
    shutil.copytree(STORES / DUPLICATES, store / REAL, ignore=kept)
    (store / REAL / "node-logs" / "n1.log").write_text("hello from n1\n")
    (store / "latest").symlink_to(FIRST)
    (store / "kafka" / "latest").symlink_to(Path(SECOND).name)
    cell = {"strategy": "cas", "faults": "partition", "nodes": 5}
    entry = {
        "sweep": "small",
        "cell": cell,
        "repetition": 1,
        "engine": "embedded",
        "run": THIRD.removeprefix("sweeps/small/"),
        "verdict": "invalid",
        "expect": "valid",
        "seconds": 12.5,
        "started": "2026-01-03T00:00:00+00:00",
        "figures": {"server_messages_per_op": 3.6, "send_p50_ms": 180.0, "send_p99_ms": 1600.0},
        "anomalies": ["duplicate"],
    }
    other = entry | {"cell": cell | {"strategy": "leaderless"}, "run": None}
    write_lines(store / "sweeps" / "small" / "index.jsonl", [entry, other | {"verdict": "crashed"}])
    return store


def _run(store: Path, name: str, source: str, **options: Any) -> None:
    folder = as_bench_run(STORES / source, store / name)
    logs = folder / "node-logs"
    logs.mkdir()
    for node in ("n0", "n1"):
        (logs / f"{node}.log").write_text(f"{node} is up\n")
    recorded = json.loads((folder / "test.json").read_text())
    recorded |= {"bin": "/somewhere/run.sh", "args": [], "nemesis": [], **options}
    (folder / "test.json").write_text(json.dumps(recorded))


def age(folder: Path) -> None:
    """Let everything in a folder have been written long ago."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (0, 0))


NOW_S = 2e9


def client_of(store: Path, now_s: float = NOW_S, list_budget_s: float = math.inf) -> FlaskClient:
    """Its list is complete at once, however slow the machine, unless it has a budget."""
    return create_app(Shelf(Store(store), clock=lambda: now_s), list_budget_s).test_client()


def text_of(client: FlaskClient, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


def listed(client: FlaskClient, query: str = "") -> list[str]:
    """Names of the runs in the list, in its order."""
    return re.findall(r'name="run" value="([^"]*)"', text_of(client, f"/?{query}"))


def not_drawn(_picture: Picture, *, transparent: bool = False) -> str:
    """In place of a picture, where it does not matter: drawing one takes a third of a second."""
    return '<svg width="1" height="1"></svg>'


FIRST_S = 1_700_000_000
QUANTILES = ("latency_ns_p50", "latency_ns_p90", "latency_ns_p99", "latency_ns_max")


def window(place: int, records: int, latency_ms: int | None) -> dict[str, int | None]:
    """A window of a log that is followed, of a second."""
    latency = None if latency_ms is None else latency_ms * 10**6
    timed = 0 if latency_ms is None else records
    start = (FIRST_S + place) * 10**9
    told = {"window_start_ns": start, "records": records, "timed": timed}
    return {**told, **dict.fromkeys(QUANTILES, latency)}


def keep(store: Path, *windows: dict[str, int | None]) -> None:
    """Keep windows of the log `orders`, as who follows it does."""
    live = Live("s3://bucket/<orders>", 10**9, time.time(), ())
    keep_live(store / LIVES / "orders", live.with_windows(windows, time.time()))
