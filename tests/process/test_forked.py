"""A child that was forked while a log was open: it is told so at once, and leaves the log to its parent."""

import subprocess
import sys
from pathlib import Path

import pytest

SYNC = """
with open_log_sync(url) as log, log.consumer("g", ["a"]) as consumer:
    log.append_many("a", [1, 2])
    records = iter(log.tail(["a"], "earliest"))
    next(records)
    child = os.fork()
    if child == 0:
        for call in (
            lambda: log.append("a", 3), lambda: log.commit("g", {"a": 0}), lambda: next(records),
            lambda: next(consumer), log.status,
        ):
            told(call)
        sys.exit(7)  # through both `with`
    ended(child)
    print(log.append("a", 3), next(records).offset, next(consumer).offset)
"""
ASYNC = """
async def main():
    async with open_log(url) as log:
        child = os.fork()
        if child == 0:
            for call in (
                lambda: log.append("a", 3), lambda: log.commit("g", {"a": 0}), lambda: log.read("a"),
                lambda: log.committed("g", ["a"]), log.status,
            ):
                told(lambda: asyncio.run(call()))
            os._exit(7)
        ended(child)
        print(await log.append("a", 3), 1, 0)

anyio.run(main)
"""
BEGIN = """
import asyncio, os, sys
import anyio
from leaderless import open_log, open_log_sync
from leaderless.errors import Definite

url = sys.argv[1]

def told(call):
    try:
        print(call())
    except Definite as error:
        print("forked" if "was forked" in str(error) else error, flush=True)

def ended(child):
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.parametrize(("program", "offset"), [(SYNC, 2), (ASYNC, 0)], ids=["sync", "async"])
def test_a_forked_child_is_told_at_once_and_leaves_the_log_to_its_parent(
    tmp_path: Path, program: str, offset: int
) -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        BEGIN + program,
        f"sqlite:///{tmp_path}/log.db",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [*["forked"] * 5, "7", f"{offset} 1 0"], done.stderr
