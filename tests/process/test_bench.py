"""The bench on real processes: what it leaves behind, and nodes that misbehave outside of the
protocol.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
NODES = ROOT / "tests/nodes"
HANGS_S = 300  # a process that takes so long hangs; a busy machine may take a minute

# Answers init and echo, and does what is spliced in: before all else, and on each message.
NODE = """#!{python}
import json, os, signal, subprocess, sys, time
{first}
for number, line in enumerate(sys.stdin):
    message = json.loads(line)
    body = message["body"]
    {each}
    reply = dict(body, type=body["type"] + "_ok", in_reply_to=body["msg_id"])
    reply = {{key: reply[key] for key in ("type", "echo", "in_reply_to") if key in reply}}
    print(json.dumps(dict(src=message["dest"], dest=message["src"], body=reply)), flush=True)
"""


class Bench:
    """Runs `./maelstrom test -w echo` in a store of its own, with `pictures` or without."""

    pictures = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"

    def node(self, *, first: str = "", each: str = "pass") -> Path:
        path = self.folder / "node.py"
        path.write_text(NODE.format(python=sys.executable, first=first, each=each))
        path.chmod(0o755)
        return path

    def command(self, node: Path | str, *flags: object, workload: str = "echo") -> list[str]:
        words = [ROOT / "maelstrom", "test", "-w", workload, "--bin", node, "--store", self.store]
        words += ["--node-count", 2, "--time-limit", 1, "--rate", 100, "--recovery-time", 0]
        words += [] if self.pictures else ["--no-pictures"]
        return [str(word) for word in (*words, *flags)]

    def run(
        self, node: Path | str, *flags: object, workload: str = "echo", **more: Any
    ) -> tuple[int, str]:
        done = subprocess.run(
            self.command(node, *flags, workload=workload),
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS_S,
            **more,
        )
        return done.returncode, done.stdout + done.stderr

    def start(self, node: Path | str, *flags: object) -> subprocess.Popen[str]:
        """Start a long run and wait until operations are under way."""
        process = subprocess.Popen(
            self.command(node, "--time-limit", 60, *flags), stdout=subprocess.PIPE, text=True
        )
        history = self.store / "latest" / "history.jsonl"
        wait_until(lambda: history.exists() and history.stat().st_size > 1000)
        return process

    @property
    def results(self) -> Any:
        return json.loads((self.store / "latest/results.json").read_text())


def leftovers(folder: Path) -> list[psutil.Process]:
    """Processes that still run the node of this test."""
    return [p for p in psutil.process_iter(["cmdline"]) if runs_node(p, folder)]


def runs_node(process: psutil.Process, folder: Path) -> bool:
    words = process.info["cmdline"] or []
    return any(word == str(folder / "node.py") for word in words[:2])


def wait_until(condition: Callable[[], object], limit_s: float = HANGS_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_what_a_run_leaves_behind(bench: Bench) -> None:
    bench.pictures = True
    flags = ["--nemesis", "partition", "--seed", "7", "--latency", "1", "--nemesis-interval", "0.3"]
    status, output = bench.run(NODES / "kafka_lin_kv.py", *flags, workload="kafka")
    assert status == 0, output
    assert output.startswith("engine: embedded (seed 7)")
    run = bench.store / "latest"
    assert run.resolve() == (bench.store / "kafka/latest").resolve()
    names = {path.name for path in run.iterdir()}
    assert {
        "history.edn",
        "history.jsonl",
        "results.edn",
        "results.json",
        "figures.json",
        "findings.json",
        "net-journal.jsonl",
        "node-logs",
        "test.json",
        "latency-raw.png",
        "rate.png",
        "timeline.html",
    } <= names
    assert {path.name for path in (run / "node-logs").iterdir()} == {"n0.log", "n1.log"}
    test = json.loads((run / "test.json").read_text())
    assert (test["seed"], test["workload"], test["nemesis"]) == ("7", "kafka", ["partition"])
    assert test["versions"]["python"]
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    assert [op["index"] for op in history] == list(range(len(history)))
    assert len((run / "history.edn").read_text().splitlines()) == len(history)
    assert str(run.resolve().name) in output


def test_results_agree_with_the_journal(bench: Bench) -> None:
    bench.run(NODES / "kafka_lin_kv.py", workload="kafka")
    journal = (bench.store / "latest/net-journal.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in journal]
    net = bench.results["net"]
    for kind, count in (("send", "send-count"), ("recv", "recv-count")):
        assert sum(event["type"] == kind for event in events) == net["all"][count]
    ends = [
        {e["message"][end][0] for end in ("src", "dest")} for e in events if e["type"] == "send"
    ]
    assert sum("c" in each for each in ends) == net["clients"]["msg-count"]


FLOOD = (
    "if number == 2:\n"
    "        ask = dict(src=message['dest'], dest='lin-kv', body=dict(type='read', key=1))\n"
    "        sys.stdout.write((json.dumps(ask) + '\\n') * 20000)"  # more than a pipe of the bench holds
    "\n    if 'in_reply_to' in body: continue"
)
ARGUMENTS = "print('arguments', sys.argv[1:], os.getcwd(), file=sys.stderr)"
NO_BODY = "if number: print(json.dumps(dict(src='n0', dest='c0')), flush=True)"
BOOM = "if number == 9: print('boom', file=sys.stderr) or sys.exit(7)"
# What a node does, flags of the bench, its exit status, and what it says.
NODES_OF_A_KIND: dict[str, tuple[dict[str, str], list[Any], int, list[str]]] = {
    "ends at once": ({"first": "sys.exit('no libfoo')"}, [], 255, ["exit status 1", "no libfoo"]),
    "ends midway": ({"each": BOOM}, [], 255, ["exit status 7", "boom", "echo_ok"]),
    "is killed": (
        {"each": "if number == 3: os.kill(os.getpid(), signal.SIGSEGV)"}, [], 255, ["killed by SIGSEGV"],
    ),
    "logs on stdout": (
        {"first": "print('Listening', flush=True)"}, [], 255, ["not one JSON object", "Listening"],
    ),
    "prints half JSON": ({"each": "if number == 3: print('{', flush=True)"}, [], 255, ["not one JSON object"]),
    "prints a line of 10 MB": ({"each": "print('x' * 10**7, flush=True)"}, [], 255, ["stdout"]),
    "closes stdout": (
        {"first": "os.close(1); time.sleep(60)"}, [], 255, ["closed its stdout", "still running"],
    ),
    "sends no body": ({"each": NO_BODY}, [], 255, ["`body` is missing"]),
    "floods": ({"each": FLOOD}, ["--time-limit", 3], 0, []),
    "has arguments and a log": (
        {"first": ARGUMENTS}, ["--log-stderr", "--log-net-send", "--", "--fast", "-x"], 0,
        ["n0: arguments ['--fast', '-x']", '"dest":"n0","body":{"type":"init"'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NODES_OF_A_KIND)
def test_what_a_node_does_is_told_with_its_last_words(bench: Bench, kind: str) -> None:
    node, flags, status, parts = NODES_OF_A_KIND[kind]
    found, output = bench.run(bench.node(**node), *flags)
    assert found == status, output
    assert [part for part in (*parts, *["Node n"][:status]) if part not in output] == []
    assert len(output) < 20_000 or status == 0
    assert status == 0 or bench.results["valid?"] in ("unknown", False)


@pytest.mark.parametrize(
    ("workload", "node", "flags", "fault"),
    [
        ("echo", "echo_wrong.py", ["--node-count", 1], "wrong-echo"),
        ("kafka", "kafka_loses.py", ["--node-count", 1], "lost-write"),
        ("kafka", "kafka_never_replicates.py", ["--strict"], "unreplicated"),
        ("lin-kv", "lin_kv_stale.py", [], "nonlinearizable"),
    ],
)
def test_a_wrong_node_is_caught_and_its_fault_named(
    bench: Bench, workload: str, node: str, flags: list[Any], fault: str
) -> None:
    more = ["--concurrency", 4, "--rate", 150, "--time-limit", 2, "--seed", 1]
    status, output = bench.run(NODES / node, *flags, *more, workload=workload)
    assert (status, f"✘ {fault} (" in output) == (1, True), output


def test_lines_of_ten_megabytes_go_through(bench: Bench) -> None:
    big = "\n    if 'echo' in body and number == 1: body['echo'] = 'x' * 10**7"
    status, _ = bench.run(bench.node(each="pass" + big))
    assert status == 1  # it is not what was asked for, which is how we know that it came through
    errors = bench.results["workload"]["errors"]
    assert max(len(str(each[3])) for each in errors) > 10**7


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_keeps_and_judges_it_and_leaves_no_process(
    bench: Bench, number: int
) -> None:
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"
    process = bench.start(bench.node(first=stubborn))
    process.send_signal(number)
    output, _ = process.communicate(timeout=HANGS_S)
    assert process.returncode == 2, output
    assert "Stopped early" in output
    assert bench.results["stats"]["ok-count"] > 3
    assert bench.results["workload"]["valid?"] in (True, False)


def test_what_a_wrapper_started_does_not_outlive_a_killed_bench(
    bench: Bench, tmp_path: Path
) -> None:
    wrapper, stubborn = tmp_path / "wrapper", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    # No exec: the node is a grandchild.
    wrapper.write_text(f"#!/bin/sh\n{bench.node(first=stubborn)}\n:\n")
    wrapper.chmod(0o755)
    process = bench.start(wrapper)
    assert len(leftovers(tmp_path)) == 2
    process.kill()
    process.communicate()
    wait_until(lambda: not leftovers(tmp_path))
    assert (bench.store / "latest/history.jsonl").read_text()


def test_what_left_the_group_of_a_node_does_not_outlive_the_run(bench: Bench) -> None:
    stray = "[sys.executable, __file__, 'stray'], start_new_session=True, stdout=subprocess.DEVNULL"
    first = f"import subprocess\nif sys.argv[1:]: time.sleep(600)\nsubprocess.Popen({stray})"
    status, output = bench.run(bench.node(first=first))
    assert status == 0, output


def test_two_benches_can_share_a_store(bench: Bench) -> None:
    node = bench.node()
    both = [subprocess.Popen(bench.command(node), stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [each.wait(timeout=HANGS_S) for each in both] == [0, 0]
    runs = [path for path in (bench.store / "echo").iterdir() if not path.is_symlink()]
    assert len(runs) == 2
    assert all((run / "results.edn").exists() for run in runs)
    assert (bench.store / "latest").resolve() in [run.resolve() for run in runs]


def test_a_store_that_cannot_be_written_is_told(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, output = bench.run(bench.node(), "--store", tmp_path / "file" / "store")
    assert status == 255
    assert "cannot be written" in output
    assert "--store" in output


def test_the_script_finds_its_project_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT / "maelstrom")
    command = [str(tmp_path / "link"), "test", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "--node-count" in done.stdout


def test_the_script_says_how_to_make_a_missing_environment(tmp_path: Path) -> None:
    script = tmp_path / "maelstrom"
    script.write_bytes((ROOT / "maelstrom").read_bytes())
    script.chmod(0o755)
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert f"make -C {tmp_path} setup" in done.stderr
