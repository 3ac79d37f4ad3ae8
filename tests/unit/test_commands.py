"""The commands of `leaderless` on a log, and `leaderless bench`; see `tests/datadriven/commands`, too."""

import io
import json
import logging
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from leaderless import cli
from leaderless.api.bench import Load, bench
from leaderless.api.command import COMMANDS
from leaderless.api.output import Plain
from leaderless.cli import EXAMPLES, EXIT_STATUSES, main
from leaderless.core.shape import Runs
from leaderless.errors import LogError
from leaderless.groups.members import LATENCY_S
from leaderless.store.clouds import CLOUDS
from leaderless.store.memory import MemoryStore
from leaderless.store.options import install
from leaderless.store.port import OutcomeUnknown, Store, all_of
from leaderless.store.wrapped import READ_USD, WRITE_USD, Counted, dollars
from leaderless.table import snapshot
from leaderless.upkeep.maintenance import RETENTION_S_MIN
from simulation.bucket import Bucket
from simulation.loop import VirtualEventLoop, run_virtual
from tests.around import Fate, Fated, slow_port, wrong

pytestmark = pytest.mark.anyio

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command with `--json`: its exit status and object."""
    monkeypatch.setenv("LEADERLESS_STORE", f"memory:{request.node.nodeid}")

    def run(*arguments: str, stdin: str = "") -> tuple[int, Any]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = main([*arguments, "--json"])
        objects = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
        return status, objects if "tail" in arguments else objects[0]

    return run


@pytest.fixture
def log(run: Run) -> Run:
    """As `run`, on a log that is there."""
    assert run("init")[0] == 0
    return run


@pytest.mark.parametrize("name", [*COMMANDS])
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    said = capsys.readouterr().out
    for part in ("s3://BUCKET/PREFIX", f"example:\n  leaderless {name}", EXIT_STATUSES):
        assert part in said


def test_what_a_help_says_without_an_import_is_so() -> None:
    """So that `leaderless --help` needs no other package."""
    found = {
        (name, words[-1]): given
        for name, command in COMMANDS.items()
        for words, given in command.arguments
    }
    latency, runs = found["tail", "--latency"], found["init", "--runs"]
    assert (latency["default"], f"default {LATENCY_S:g}" in latency["help"]) == (LATENCY_S, True)
    assert f"; {RETENTION_S_MIN:g} or more" in found["vacuum", "--retention"]["help"]
    assert (runs["choices"], runs["help"].endswith(install("table"))) == (get_args(Runs), True)


def test_every_example_of_the_help_can_be_written_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_run", lambda *_: 0)
    general = [line.split(maxsplit=1)[1] for line in EXAMPLES.splitlines()[1:]]
    special = [f"{name} {command.example}" for name, command in COMMANDS.items()]
    for example in [*general, *special]:
        assert main(shlex.split(example.partition("|")[0])) == 0, example


READS = sorted({*COMMANDS} - {"init", "bench", "conformance"})
WORDS = {
    "produce": ("k", "1"), "read": ("k",), "tail": ("k",), "consume": ("k",), "ack": ("k", "0"),
    "produce-batch": ("k",), "trim": ("k", "1"), "redrive": ("g",), "table": ("delta",),
    "copy": ("{}", "{}.copy"), "close": ("k",),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_typo_in_a_path_leaves_no_file(run: Run, tmp_path: Path, name: str) -> None:
    store = f"sqlite:///{tmp_path}/typo.db"
    words = [word.format(store) for word in WORDS.get(name, ())]
    status, said = run(name, *words, "--store", store, stdin="1\n")
    said = said[0] if name == "tail" else said
    if name == "fsck":
        assert (status, "there is no log at" in str(said)) == (1, True)
    else:
        assert (status, said["kind"], said["may_have_happened"]) == (1, "NotInitialised", False)
        assert re.search("there is no log at .*leaderless init", said["error"])
    assert [*tmp_path.iterdir()] == []


def test_a_batch_may_be_in_a_file(log: Run, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text("1\n2\n")
    assert log("produce-batch", "k", str(lines))[1]["count"] == 2
    assert "cannot be read" in log("produce-batch", "k", f"{lines}.none")[1]["error"]


def test_what_is_too_large_appends_nothing(log: Run) -> None:
    status, said = log("produce-batch", "k", stdin=f'"{"x" * 10_000}"\n' * 200)
    assert (status, said["kind"], said["may_have_happened"]) == (1, "Unfit", False)
    assert log("keys")[1] == {"keys": []}


@pytest.mark.parametrize(
    "arguments",
    [("ack", "k", "-1"), ("read", "k", "--limit", "0"), ("status", "--patience", "0"), ("nothing",), ("tail",)],
)  # fmt: skip
def test_wrong_arguments(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage" in capsys.readouterr().err


def test_a_path_of_a_file_is_a_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", f"sqlite:///{tmp_path}/log.db"]
    run("init", "--runs", "parquet", *store)
    assert main(["files", *store]) == 0
    assert capsys.readouterr().out == ""

    async def locations(_store: Store) -> list[str]:
        return ["/a b/1.parquet", "/2.parquet"]

    monkeypatch.setattr(snapshot, "locations", locations)
    assert main(["files", *store]) == 0
    assert capsys.readouterr().out == "/a b/1.parquet\n/2.parquet\n"


def test_an_error_is_no_part_of_what_a_pipe_takes(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["read", "k"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "there is no log" in told.err


@pytest.mark.process
def test_a_reader_that_goes_away_ends_a_tail(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "leaderless"]
    store = ["--store", f"sqlite:///{tmp_path}/x.db"]
    subprocess.run([*command, "init", *store], check=True, stdout=subprocess.DEVNULL)
    numbers = "\n".join(map(str, range(3000)))
    batch = [*command, "produce-batch", "k", *store]
    subprocess.run(batch, input=numbers, text=True, check=True, stdout=subprocess.DEVNULL)
    tail = [*command, "tail", "k", "--offset", "0", "--json", *store]
    with subprocess.Popen(
        tail, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert orjson.loads(running.stdout.readline())["offset"] == 0
        running.stdout.close()
        assert (running.stderr.read(), running.wait()) == ("", 1)


STEERING = "\x9b31m \u202e \u200f \u2028 \x7f \U000e0001 \x1b[2J"


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_nothing_that_was_written_steers_a_terminal(
    log: Run, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    value = {STEERING: [STEERING, "ü 漢 🙂"]}
    key = f"k{STEERING}"
    log("produce", key, orjson.dumps(value).decode())
    log("produce", key, STEERING, "--string")
    commands = [
        ("read", key), ("keys",), ("consume", key), ("status",), ("groups",),
        ("tail", key, "--offset", "0", "--count", "2"), ("produce-batch", "k", f"/none/{STEERING}"),
    ]  # fmt: skip
    for command in commands:
        main([*command, *flags])
        told = capsys.readouterr()
        shown = told.out + told.err
        steering = [
            each for each in shown if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")
        ]
        assert {*steering} <= {"\n", "\t"}, command  # a tab stands between the parts of a record
        assert command[0] != "read" or "ü 漢 🙂" in shown
    [first, second] = log("read", key)[1]["records"]
    assert (first["value"], second["value"]) == (value, STEERING)


def test_no_line_of_the_log_steers_a_terminal() -> None:
    record = logging.makeLogRecord({"msg": "%s", "args": (f"a{STEERING}\nü",)})
    first, second = Plain("%(message)s").format(record).split("\n")
    assert first == "a\\u009b31m \\u202e \\u200f \\u2028 \\u007f \\udb40\\udc01 \\u001b[2J"
    assert second == "ü"


# ---------------------------------------------------------------- bench


@pytest.mark.parametrize(("left", "failed"), [(1 << 30, 0), (5, 2)])
def test_it_appends_reads_counts_what_fails_and_leaves_nothing(left: int, failed: int) -> None:
    async def run(loop: VirtualEventLoop) -> None:
        unclear = OutcomeUnknown("no answer")
        fails = Fate(["compare_and_set"], ends=unclear, applied=False, passes=left)
        store = Fated(slow_port(Bucket(loop.time), "p", 20.0), fails)
        appended, read = await bench(
            store, Load(tasks=2, seconds=2.0, value_bytes=100, patience_s=5.0)
        )
        assert appended.failed == failed
        assert read.records_read == appended.appends + 1  # the first one warms up
        assert failed or 20 <= appended.p50_ms <= appended.p99_ms <= 100
        assert failed or appended.requests_an_append < 1
        assert [each async for each in all_of(store)] == []

    run_virtual(run)


async def test_a_store_that_lets_nobody_in_is_an_error() -> None:
    with pytest.raises(LogError):
        await bench(wrong(create=OutcomeUnknown("no answer")), Load(seconds=0.1, patience_s=0.2))


async def test_a_store_counts_its_requests_and_bytes() -> None:
    store = Counted(MemoryStore())
    await store.compare_and_set("a", b"12", await store.create("a", b"123"))
    await store.write("b", b"1")
    await store.read("a")
    await store.read("none")
    await store.list_objects()
    await store.delete(["a", "b"])
    assert store.requests == {"put": 3, "get": 2, "list": 1, "delete": 1}
    assert (store.bytes_written, store.bytes_read) == (6, 2)
    assert dollars(store.requests) == pytest.approx(4 * WRITE_USD + 2 * READ_USD)
    store.clear()
    assert store.requests.total() == 0
    assert dollars({"put": 1_000_000, "get": 1_000_000}) == pytest.approx(5.4)


@pytest.mark.lawless  # it deletes the log that it made
@pytest.mark.parametrize(
    ("cloud", "prices"), [("s3-express", None), ("gcs", "Google"), ("s3", "S3")]
)
def test_the_command(
    cloud: str,
    prices: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(CLOUDS, cloud, CLOUDS["s3-express"]._replace(prices=CLOUDS[cloud].prices))
    words = ["bench", "--store", "memory:test-bench", "--seconds", "0.05", "--tasks", "2", "--json"]
    assert main([*words, "--cloud", cloud]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cloud"] == cloud
    assert told["p50_ms"] > 13
    assert told["appends"] > 0
    assert {"appends_a_second", "requests_an_append", "p50_ms", "p99_ms"} <= set(told)
    assert ("usd_a_million" in told) is (prices is not None)
    assert told["prices"] == prices or told["prices"].split()[0] == prices


def test_the_environment_says_which_processes_are_peers(
    log: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEADERLESS_PEERS", "0.0.0.0")
    status, said = log("produce", "k", "1")
    assert (status, said["kind"]) == (1, "Unfit")
    assert log("produce", "k", "1", "--peers", "machine")[0] == 0
