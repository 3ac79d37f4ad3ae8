"""A process that is stopped inside a write of a SQLite file, as docs/log/storage.md tells it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leaderless import open_log
from leaderless.errors import Indefinite

PATIENCE_S = 2.0  # more than the other calls take on a busy machine
WRITER = """
import os, signal, sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
os.kill(os.getpid(), signal.SIGSTOP)
"""
pytestmark = pytest.mark.anyio


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It is stopped by itself once it has begun its write."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "log.db"])
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    yield child
    child.kill()
    child.wait()


@pytest.mark.parametrize("ends_by", [signal.SIGCONT, signal.SIGKILL])
async def test_reads_go_on_and_appends_may_have_happened_until_it_goes_on_or_ends(
    tmp_path: Path, request: pytest.FixtureRequest, ends_by: signal.Signals
) -> None:
    async with open_log(f"sqlite:///{tmp_path}/log.db", patience_s=PATIENCE_S) as log:
        await log.append("k", 0)
        stopped = request.getfixturevalue("writer")
        with pytest.raises(Indefinite):
            await log.append("k", 1)
        assert [record.value for record in await log.read("k")] == [0]
        stopped.send_signal(ends_by)
        stopped.wait()
        await log.append("k", 2)
        assert [record.value for record in await log.read("k")][-1] == 2
