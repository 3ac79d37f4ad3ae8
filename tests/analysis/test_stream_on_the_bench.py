"""A Spark stream as one more reader of a log that nodes keep under the bench, while the test runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runs.history import read_history
from tests.reader import Record, problems

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
TEST = [
    "./maelstrom", "test", "-w", "kafka", "--bin", "./run.sh", "--node-count", "2", "--concurrency", "2n",
    "--rate", "60", "--time-limit", "12", "--recovery-time", "1", "--nemesis", "kill,pause",
    "--nemesis-interval", "3", "--seed", "1",
]  # fmt: skip


@pytest.mark.timeout(600)
def test_a_stream_sees_what_clients_see(tmp_path: Path) -> None:
    """Nodes are killed and paused meanwhile. Readers that skip or double a record do not pass."""
    url, seen = f"sqlite:///{tmp_path / 'log.db'}", tmp_path / "seen"
    follower = [
        sys.executable,
        "-m",
        "tests.analysis.following",
        url,
        str(tmp_path / "cp"),
        str(seen),
    ]
    with subprocess.Popen(
        follower, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdin is not None
        assert following.stdout is not None
        assert following.stdout.readline() == "ready\n"
        following.stdin.write("go\n")
        following.stdin.flush()
        command = [*TEST, "--store", str(tmp_path / "runs"), "--", "--store", url]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        following.stdin.close()
    assert following.returncode == 0
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    history = read_history(tmp_path / "runs" / "latest" / "history.jsonl")
    records = [Record(*json.loads(line)) for line in seen.read_text().splitlines()]
    assert problems(history, records) == []
    assert len(records) > 100
    assert problems(history, records[:50] + records[51:])
    assert problems(history, records[:51] + records[50:])
