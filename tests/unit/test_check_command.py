"""`./maelstrom check`: its forms agree, and no history does harm.

`tests/datadriven/benches/check.txt` has what a person is told, and the exit statuses.
"""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import runs.history
from bench.commands.check import check
from runs import edn
from runs.history import json_line, plain, read_history
from tests.datadriven.commands import operations
from tests.stores import STORES
from workloads import NAMES

VALID = STORES / "valid-3-nodes"
INVALID = STORES / "lost-writes-1-node"


def run(*arguments: Path | int | str) -> Result:
    return CliRunner().invoke(check, list(map(str, arguments)))


def test_json_is_one_object_a_file_and_nothing_else() -> None:
    lines = [
        json.loads(line)
        for line in run("--json", VALID / "history.edn", INVALID).stdout.splitlines()
    ]
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
        file.writelines(json_line(op) + b"\n" for op in read_history(INVALID / "history.edn"))
    ours, real = (json.loads(run("--json", each).stdout) for each in (tmp_path, INVALID))
    assert {**ours, "file": ""} == {**real, "file": ""}


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


@pytest.mark.parametrize("workload", NAMES)
def test_the_operations_say_the_workload(workload: str, tmp_path: Path) -> None:
    file = tmp_path / "history.edn"
    file.write_text(operations(GUESSED[workload]))
    guessed, named = run("--edn", file), run("--edn", "-w", workload, file)
    assert guessed.exit_code == named.exit_code in (0, 1, 2)
    assert guessed.stdout == named.stdout


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
