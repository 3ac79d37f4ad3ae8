"""`./maelstrom check`: what it prints, and its exit status."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import runs.history
from bench.commands.check import check
from runs import edn
from runs.history import plain, read_history, write_jsonl
from tests.stores import STORES
from workloads import NAMES

VALID = STORES / "valid-3-nodes"
INVALID = STORES / "lost-writes-1-node"


def run(*arguments: Path | int | str) -> Result:
    return CliRunner().invoke(check, list(map(str, arguments)))


@pytest.mark.parametrize(
    ("files", "status"),
    [([VALID], 0), ([INVALID], 1), ([VALID, INVALID], 1), ([INVALID, VALID], 1)],
)
def test_exit_status_is_the_worst_verdict(files: list[Path], status: int) -> None:
    assert run("--json", *files).exit_code == status


def test_json_is_one_object_a_file_and_nothing_else() -> None:
    result = run("--json", VALID / "history.edn", INVALID)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    for line, each in zip(lines, (VALID, INVALID), strict=True):
        real = edn.loads((each / "results.edn").read_text())["workload"]
        assert line.pop("workload") == json.loads(json.dumps(real, default=plain))
    bad = ["int-poll-skip", "lost-write", "unseen"]
    assert lines == [
        {"file": str(VALID / "history.edn"), "valid": True, "bad": [], "errors": {}},
        {
            "file": str(INVALID),
            "valid": False,
            "bad": bad,
            "errors": dict(zip(bad, (4, 2, 3), strict=True)),
        },
    ]


def test_json_lines_are_judged_like_edn(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    with path.open("wb") as file:
        write_jsonl(read_history(INVALID / "history.edn"), file)
    ours, real = (json.loads(run("--json", each).stdout) for each in (tmp_path, INVALID))
    assert {**ours, "file": ""} == {**real, "file": ""}


def test_an_unreadable_file_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    result = run("--json", tmp_path / "missing.edn", VALID, tmp_path)
    assert result.exit_code == 254
    assert [json.loads(line)["file"] for line in result.stdout.splitlines()] == [str(VALID)]
    assert "missing.edn: cannot be read" in result.stderr
    assert "a folder without a history" in result.stderr


def test_edn_is_what_the_real_tool_says() -> None:
    (printed,) = edn.loads_all(run("--edn", INVALID).stdout)
    real = edn.loads((INVALID / "results.edn").read_text())
    assert printed["workload"] == real["workload"]


GUESSED = {  # workload -> what its clients did: type, operation, value
    "broadcast": "ok broadcast 1, ok read [1]",
    "echo": "ok echo 1",
    "g-counter": "ok add 1, ok read 1",
    "g-set": "ok add 1, ok read [1]",
    "kafka": 'ok send [[:send "1" [0 1]]], info crash nil',
    "lin-kv": "ok cas [0 [1 2]], ok read [0 2]",
    "pn-counter": "ok add -1, fail read nil",
    "txn-list-append": "ok txn [[:r 1 nil] [:append 1 1]], info start-partition nil",
    "txn-rw-register": "ok txn [[:r 1 nil] [:w 1 1]]",
    "unique-ids": "ok generate 1",
}


def operations(told: str) -> str:
    """Lines of a history.edn: every operation is that of a process of its own, or of the nemesis."""
    lines = []
    for number, (kind, f, value) in enumerate(each.split(" ", 2) for each in told.split(", ")):
        process = ":nemesis" if f.startswith("start") else number
        rest = f":process {process}, :f :{f}, :value {value}"
        lines += [f"{{:type :invoke, {rest}}}", f"{{:type :{kind}, {rest}}}"]
    return "\n".join(lines)


@pytest.mark.parametrize("workload", NAMES)
def test_the_operations_say_the_workload(workload: str, tmp_path: Path) -> None:
    file = tmp_path / "history.edn"
    file.write_text(operations(GUESSED[workload]))
    guessed, named = run("--edn", file), run("--edn", "-w", workload, file)
    assert guessed.exit_code == named.exit_code in (0, 1, 2)
    assert guessed.stdout == named.stdout


ADD_LOST = """
{:index 0, :time 0, :type :invoke, :process 0, :f :add, :value 7}
{:index 1, :time 1, :type :ok, :process 0, :f :add, :value 7}
{:index 2, :time 2, :type :invoke, :process 1, :f :read, :value nil, :final? true}
{:index 3, :time 3, :type :ok, :process 1, :f :read, :value [], :final? true}
"""
READ_OF_ABORTED = """
{:index 0, :time 0, :type :invoke, :process 0, :f :txn, :value [[:w 1 1]]}
{:index 1, :time 1, :type :fail, :process 0, :f :txn, :value [[:w 1 1]]}
{:index 2, :time 2, :type :invoke, :process 1, :f :txn, :value [[:r 1 nil] [:w 2 2]]}
{:index 3, :time 3, :type :ok, :process 1, :f :txn, :value [[:r 1 1] [:w 2 2]]}
{:index 4, :time 4, :type :invoke, :process 1, :f :txn, :value [[:r 2 nil]]}
{:index 5, :time 5, :type :ok, :process 1, :f :txn, :value [[:r 2 2]]}
"""
ASKED = {"workload": "txn-rw-register", "consistency_models": ["read-uncommitted"]}
WHOLE, LOSSES = ((each / "history.edn").read_text() for each in (VALID, INVALID))
NO_FINAL_POLLS = "\n".join(line for line in WHOLE.splitlines() if "seek-to-beginning" not in line)
PLACED = ("--strict", "--node-count", "3", "--concurrency", "6")
THREE = {"nodes": ["n0", "n1", "n2"], "concurrency": 6}
UNWRITTEN = operations("ok txn [[:w 1 1]], ok txn [[:r 1 2] [:w 1 3]], ok txn [[:r 1 3]]")
NAME_IT = "Name the workload with -w."
# A history, the options of its run, words of the command; its exit status, and what it says.
SAID: list[tuple[str, dict[str, Any], tuple[str, ...], int, list[str]]] = [
    (
        LOSSES,
        {},
        (),
        1,
        [
            'A write is lost: message 4 of key "14" took effect at index 3',
            '[[:send "14" [3 4]]]',
            "check --edn",  # there are no results beside it
            "INVALID: int-poll-skip, lost-write, unseen",
        ],
    ),
    (WHOLE, {}, ("--strict",), 254, ["Give --node-count and --concurrency"]),
    (WHOLE, {}, PLACED, 0, []),
    (WHOLE, THREE, ("--strict",), 0, []),
    (NO_FINAL_POLLS, {}, ("--json", *PLACED), 2, ['"valid": "unknown"']),
    (operations("ok add 1, fail read nil"), {}, (), 254,
     [f"(add, read) may be those of g-counter, g-set, pn-counter. {NAME_IT}"]),
    (operations("ok txn [[:r 1 nil]]"), {}, ("--json",), 254,
     [f"(r) may be those of txn-list-append, txn-rw-register. {NAME_IT}"]),
    (operations("ok read 1, ok frob 2"), {}, (), 254,
     [f"No workload has all of its operations (frob, read). {NAME_IT}"]),
    (operations("info start-partition nil"), {}, (), 254, [f"clients did nothing. {NAME_IT}"]),
    (UNWRITTEN, {}, (), 0, []),
    (UNWRITTEN, {}, ("--strict",), 1,  # only kafka needs to know the nodes
     ["Operation 3 read [:r 1 2]. No transaction wrote 2 to key 1."]),
    (
        operations("ok generate 1, ok generate [1]"),
        {},
        (),
        2,
        [
            "? incomparable (1) Nobody can say which of the IDs 1 and [1] comes first",
            "? UNKNOWN: nothing wrong was found, but not everything could be checked",
        ],
    ),
    (ADD_LOST, {}, ("--json", "-w", "g-set"), 1, ['"errors": {"lost": 1}']),
    (READ_OF_ABORTED, ASKED, (), 0, []),
    (READ_OF_ABORTED, ASKED, ("--consistency-models", "read-committed"), 1, ["INVALID: G1a"]),
    (READ_OF_ABORTED, ASKED, ("--consistency-models", "read-comitted"), 2, ["must be one of"]),
]  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_a_person_is_told(case: Any, tmp_path: Path) -> None:
    history, options, words, status, parts = case
    (tmp_path / "history.edn").write_text(history)
    if options:
        (tmp_path / "test.json").write_text(json.dumps(options))
    result = run(*words, tmp_path)
    assert result.exit_code == status
    told = " ".join((result.stdout + result.stderr).split())
    assert [part for part in parts if part not in told] == []


def test_results_beside_a_history_have_the_rest() -> None:
    assert "results.edn under :workload :lost-write" in " ".join(run(INVALID).stdout.split())


def test_the_folder_of_the_real_tool_says_the_workload(tmp_path: Path) -> None:
    run_dir = tmp_path / "g-set" / "20260101T000000.000"
    run_dir.mkdir(parents=True)
    (run_dir / "history.edn").write_text(ADD_LOST)
    assert json.loads(run("--json", run_dir).stdout)["errors"] == {"lost": 1}


def test_a_gzip_file_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.edn.gz"
    path.write_bytes(gzip.compress((VALID / "history.edn").read_bytes()))
    assert run(path).exit_code == 0
    monkeypatch.setattr(runs.history, "_UNPACKED_BYTES", 2**16)
    result = run(path)
    assert result.exit_code == 254
    assert "it unpacks to more than 0 MiB" in result.stderr
    assert f"gunzip {path}" in result.stderr


HOSTILE = {  # a history -> why it is not judged
    "{:index "
    + "1" * 10_000
    + ", :time 0, :type :ok, :process 0, :f :txn, :value []}": "a number has",
    "{:index " + "1" * 200 + ", :time 0, :type :ok, :process 0, :f :txn, :value []}": "64 bits",
    "{:type :ok, :process 0, :f :txn, :value [[:w 1 "
    + "9" * 301
    + "]]}": "a number has at most 300",
    "{:type :ok, :process 0, :f :txn, :value [[1 " + "9" * 301 + "]]}": "a number has at most 300",
    "{:type :ok, :process 0, :f :txn, :value " + "[" * 300 + "]" * 300 + "}": "at most 200 deep",
    operations(
        "ok txn [[:w [1 2] 3]]"
    ): "operations are none that a bench writes (TypeError: unhash",
    operations(
        "ok txn [[:w 1]]"
    ): "operations are none that a bench writes (ValueError: not enough",
    operations("ok txn 7"): "operations are none that a bench writes (TypeError:",
}


@pytest.mark.parametrize("told", HOSTILE, ids=HOSTILE.values())
@pytest.mark.parametrize("form", [[], ["--json"], ["--edn"]])
def test_a_history_that_no_bench_writes_is_refused_in_a_sentence(
    told: str, form: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "history.edn"
    file.write_text(f"{told}\n")
    result = run("-w", "txn-rw-register", *form, file)
    assert (result.exit_code, result.stdout) == (254, "")
    assert result.stderr.startswith(f"{file}: not judged. ")
    assert HOSTILE[told] in result.stderr
    assert result.stderr.count("\n") == 1


STEERING = "\x1b[31m\x9b31m\u202e\x07"


@pytest.mark.parametrize("form", [[], ["--json"], ["--edn"], ["-w", "echo"]])
def test_no_text_of_a_history_steers_the_terminal(form: list[str], tmp_path: Path) -> None:
    file = tmp_path / f"{STEERING}.edn"
    read = f'"{STEERING}" [1]'
    file.write_text(
        operations(f"ok txn [[:append {read[:-4]} 1] [:r {read}]], ok txn [[:r {read}]]")
    )
    for result in (run(*form, file), run(f"{file}{STEERING}"), run("-w", STEERING, file)):
        printed = result.stdout + result.stderr
        assert printed
        assert printed.replace("\n", "").isprintable()
