"""Bad surroundings: no room, no permission, no program, too few files, a clock that jumps.

In each the bench says what to do, keeps what it has, and leaves no process.
"""

import json
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.commands import check as check_command
from bench.commands import test as test_command
from bench.options import TestOptions
from bench.terminal import Console
from bench.verdict import checkers
from runs import store
from runs.history import Op, read_history
from tests.process.test_bench import HANGS_S, NODES, Bench

pytestmark = [pytest.mark.process, pytest.mark.slow]


def limited(which: int, soft: int, hard: int | None = None) -> Callable[[], None]:
    """What a child does first: to have less."""
    return lambda: resource.setrlimit(which, (soft, hard or soft))


def kept_history(bench: Bench) -> list[Op]:
    """The history that is there: every line of it whole."""
    return read_history(bench.store / "latest" / "history.jsonl")


@pytest.mark.parametrize("limit_bytes", [60_000, 3_000])
def test_files_that_may_not_grow(bench: Bench, limit_bytes: int) -> None:
    bench.pictures = True
    few = limited(resource.RLIMIT_FSIZE, limit_bytes)
    status, output = bench.run(bench.node(), "--rate", 1000, preexec_fn=few)
    assert status == 255, output
    for part in ("ulimit -f", "cannot be written", "CRASHED"):  # there is a verdict all the same
        assert part in output
    assert len(kept_history(bench)) > 10
    assert json.loads((bench.store / "latest/test.json").read_text())["workload"] == "echo"
    assert not list((bench.store / "latest").resolve().glob(".*.draft"))


def test_too_few_open_files_is_told_before_anything_starts(bench: Bench) -> None:
    few = limited(resource.RLIMIT_NOFILE, 90)
    status, output = bench.run(bench.node(), "--node-count", 50, preexec_fn=few)
    assert status == 255, output
    assert "50 nodes need" in output
    assert "ulimit -n" in output
    assert not bench.store.exists()


MANY = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]) + 300,) * 2)
null = os.open("/dev/null", os.O_RDONLY)
for _ in range(int(sys.argv[1])):
    os.set_inheritable(os.dup(null), True)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_ten_thousand_files_that_are_open_already(bench: Bench) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = 10_000 if hard == resource.RLIM_INFINITY or hard > 10_300 else hard - 300
    if many < 1100:
        pytest.skip("so few files may be open here that all is as usual")
    command = [sys.executable, "-c", MANY, str(many), *bench.command(bench.node())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ten_megabytes_on_stderr_do_no_harm(bench: Bench) -> None:
    node = bench.node(first="print('x' * 10**7, file=sys.stderr, flush=True)")
    status, output = bench.run(node, "--log-stderr")
    assert status == 0, output[:1000]
    assert (bench.store / "latest/node-logs/n0.log").stat().st_size == 10**7 + 1
    assert "bytes are left out; see " in output
    assert len(output) < 10**7  # of twice as much


def test_a_stdout_that_is_full_or_gone_changes_no_verdict(bench: Bench) -> None:
    command = bench.command(bench.node())
    with Path("/dev/full").open("w") as full:
        assert subprocess.run(command, stdout=full, check=False, timeout=HANGS_S).returncode == 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.close()
    assert process.wait(timeout=HANGS_S) == 0
    assert bench.results["valid?"] is True


def options(bench: Bench, **more: Any) -> TestOptions:
    own: dict[str, Any] = {
        "workload": "echo",
        "bin": str(bench.node()),
        "args": (),
        "nodes": ("n0",),
    }
    own |= {"concurrency": 2, "rate": 100.0, "time_limit_s": 1, "seed": "7"}
    return TestOptions(**own | {"recovery_time_s": 0.0, "store": str(bench.store)} | more)


def test_a_clock_of_the_day_that_jumps_changes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = random.Random(7)

    def any_time() -> Any:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=jumps.uniform(-9000, 9000))

    monkeypatch.setattr("time.time", lambda: any_time().timestamp())
    for module in (store, test_command):
        monkeypatch.setattr(module, "utc_now", any_time)
    for _ in range(2):
        assert test_command.run_test(options(bench), Console(quiet=True)) == 0
    times = [op.time for op in kept_history(bench)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] < 30e9
    assert (
        len({path.name for path in (bench.store / "echo").iterdir() if not path.is_symlink()}) == 2
    )


def test_stopped_while_judging_it_says_how_to_judge_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    chosen = options(bench, workload="kafka", bin=str(NODES / "kafka_lin_kv.py"))
    with monkeypatch.context() as patched:
        patched.setattr(checkers, "exceptions", stopped)
        status = test_command.run_test(chosen, Console(width=1000))
    said = capsys.readouterr().out
    assert status == 255
    assert "Stopped early" in said
    (line,) = [line for line in said.splitlines() if "./maelstrom check" in line]
    with pytest.raises(SystemExit) as ended:
        check_command.check.main(line.split()[2:], standalone_mode=False)
    assert ended.value.code == 0
    assert "VALID" in capsys.readouterr().out
