"""`./maelstrom check`: what it prints, and its exit status."""

import gzip
import json
import shutil
from pathlib import Path

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


def test_a_person_reads_what_went_wrong_what_shows_it_and_where_the_rest_is() -> None:
    text = " ".join(run(INVALID).stdout.split())
    assert 'A write is lost: message 4 of key "14" took effect at index 3' in text
    assert '[[:send "14" [3 4]]]' in text
    assert "results.edn under :workload :lost-write" in text
    assert "INVALID: int-poll-skip, lost-write, unseen" in text


def test_a_history_without_results_beside_it_names_the_command_that_shows_all(
    tmp_path: Path,
) -> None:
    shutil.copy(INVALID / "history.edn", tmp_path)
    assert "check --edn" in run(tmp_path).stdout


def test_edn_is_what_the_real_tool_says() -> None:
    (printed,) = edn.loads_all(run("--edn", INVALID).stdout)
    real = edn.loads((INVALID / "results.edn").read_text())
    assert printed["workload"] == real["workload"]


def test_strict_takes_the_placement_from_the_run_or_from_options(tmp_path: Path) -> None:
    shutil.copy(VALID / "history.edn", tmp_path)
    refused = run("--strict", tmp_path)
    assert refused.exit_code == 254
    assert "Give --node-count and --concurrency" in refused.stderr
    assert run("--strict", "--node-count", 3, "--concurrency", 6, tmp_path).exit_code == 0
    (tmp_path / "test.json").write_text(json.dumps({"nodes": ["n0", "n1", "n2"], "concurrency": 6}))
    assert run("--strict", tmp_path).exit_code == 0


def test_strict_without_final_polls_is_unknown(tmp_path: Path) -> None:
    lines = (VALID / "history.edn").read_text().splitlines()
    (tmp_path / "history.edn").write_text(
        "\n".join(line for line in lines if "seek-to-beginning" not in line)
    )
    result = run("--json", "--strict", "--node-count", 3, "--concurrency", 6, tmp_path)
    assert result.exit_code == 2
    assert json.loads(result.stdout)["valid"] == "unknown"


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


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("ok add 1, fail read nil", "(add, read) may be those of g-counter, g-set, pn-counter."),
        ("ok txn [[:r 1 nil]]", "(r) may be those of txn-list-append, txn-rw-register."),
        ("ok read 1, ok frob 2", "No workload has all of its operations (frob, read)."),
        ("info start-partition nil", "Its clients did nothing."),
    ],
)
def test_where_the_operations_do_not_say_the_workload_an_option_must(
    told: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "history.edn"
    file.write_text(operations(told))
    result = run("--json", file)
    assert (result.exit_code, result.stdout) == (254, "")
    assert result.stderr.endswith(f"{why} Name the workload with -w.\n")


def test_only_kafka_needs_to_know_the_nodes_to_be_strict(tmp_path: Path) -> None:
    file = tmp_path / "history.edn"
    file.write_text(operations("ok txn [[:w 1 1]], ok txn [[:r 1 2] [:w 1 3]], ok txn [[:r 1 3]]"))
    assert run(file).exit_code == 0
    result = run("--strict", file)
    assert result.exit_code == 1
    assert "Operation 3 read [:r 1 2]. No transaction wrote 2 to key 1." in result.stdout


def test_an_unknown_verdict_says_why(tmp_path: Path) -> None:
    file = tmp_path / "history.edn"
    file.write_text(operations("ok generate 1, ok generate [1]"))
    result = run(file)
    assert result.exit_code == 2
    text = " ".join(result.stdout.split())
    assert "? incomparable (1) Nobody can say which of the IDs 1 and [1] comes first" in text
    assert "? UNKNOWN: nothing wrong was found, but not everything could be checked" in text


ADD_LOST = """
{:index 0, :time 0, :type :invoke, :process 0, :f :add, :value 7}
{:index 1, :time 1, :type :ok, :process 0, :f :add, :value 7}
{:index 2, :time 2, :type :invoke, :process 1, :f :read, :value nil, :final? true}
{:index 3, :time 3, :type :ok, :process 1, :f :read, :value [], :final? true}
"""


def test_the_folder_of_the_real_tool_or_an_option_says_the_workload(tmp_path: Path) -> None:
    run_dir = tmp_path / "g-set" / "20260101T000000.000"
    run_dir.mkdir(parents=True)
    (run_dir / "history.edn").write_text(ADD_LOST)
    result = run("--json", run_dir)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["errors"] == {"lost": 1}
    shutil.copy(run_dir / "history.edn", tmp_path)
    assert run("--json", "-w", "g-set", tmp_path / "history.edn").exit_code == 1


def test_the_runs_own_options_say_the_workload_and_the_models(tmp_path: Path) -> None:
    (tmp_path / "history.edn").write_text(
        "{:index 0, :time 0, :type :invoke, :process 0, :f :txn, :value [[:w 1 1]]}\n"
        "{:index 1, :time 1, :type :fail, :process 0, :f :txn, :value [[:w 1 1]]}\n"
        "{:index 2, :time 2, :type :invoke, :process 1, :f :txn, :value [[:r 1 nil] [:w 2 2]]}\n"
        "{:index 3, :time 3, :type :ok, :process 1, :f :txn, :value [[:r 1 1] [:w 2 2]]}\n"
        "{:index 4, :time 4, :type :invoke, :process 1, :f :txn, :value [[:r 2 nil]]}\n"
        "{:index 5, :time 5, :type :ok, :process 1, :f :txn, :value [[:r 2 2]]}\n"
    )
    options = {"workload": "txn-rw-register", "consistency_models": ["read-uncommitted"]}
    (tmp_path / "test.json").write_text(json.dumps(options))
    assert run(tmp_path).exit_code == 0
    result = run("--consistency-models", "read-committed", tmp_path)
    assert result.exit_code == 1
    assert "INVALID: G1a" in result.stdout
    assert run("--consistency-models", "read-comitted", tmp_path).exit_code == 2, "a bad argument"


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
