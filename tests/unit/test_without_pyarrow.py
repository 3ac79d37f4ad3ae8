"""A program without pyarrow opens logs of JSON as ever, and says of a log of files what to install."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from leaderless.library.place import initialise
from leaderless.store.sqlite import SqliteStore

PROGRAM = """
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
from leaderless.cli import main
sys.exit(main(sys.argv[1:]))
"""


async def _make(file: Path) -> None:
    store = SqliteStore(file)
    await initialise(store, "parquet")
    await store.aclose()


@pytest.mark.process
def test_the_package_is_asked_for_where_it_is_needed(tmp_path: Path) -> None:
    anyio.run(_make, tmp_path / "files.db")

    def call(command: str, file: str, *rest: str) -> tuple[int, str]:
        arguments = [command, *rest, "--json", "--store", f"sqlite:///{tmp_path / file}"]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    for command, *rest in (["read", "k"], ["init"], ["fsck"]):
        status, said = call(command, "files.db", *rest)
        assert (status, "leaderless[table]" in said) == (1, True), said
    assert call("init", "json.db")[0] == 0
    assert call("produce", "json.db", "k", "1")[0] == 0
    status, said = call("init", "new.db", "--runs", "parquet")
    assert (status, "leaderless[table]" in said) == (1, True), said
