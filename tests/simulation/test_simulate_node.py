"""A stranger's node from a seed: the same run each time, small, and refused where a seed decides nothing."""

import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from bench.commands.main import cli
from bench.options import TestOptions, from_flags
from simulation.commands import simulate_node
from simulation.commands.simulate_node import run_seed, smallest, words_of
from simulation.strangers import Drawn, NotSimulated, ScriptedNode
from tests.scripted import ROOT
from tests.toy_log import OPTIONS

RUN = replace(
    OPTIONS,
    nodes=("n0", "n1", "n2"),
    concurrency=3,
    rate=20.0,
    time_limit_s=3,
    nemesis=("partition", "kill", "membership"),
    nemesis_interval_s=1.0,
    arrival="in-turn",
)
# For each workload the examples that do it, and a node that does it wrong, which a run must show.
EXAMPLES = {
    "broadcast": ["broadcast", "broadcast_hub"],
    "echo": ["echo"],
    "g-counter": ["g_counter"],
    "g-set": ["g_set"],
    "kafka": ["second_node"],
    "pn-counter": ["pn_counter"],
    "txn-list-append": ["txn_list_append"],
    "txn-rw-register": ["txn_rw_register"],
    "unique-ids": ["unique_ids"],
}
WRONG = {
    "broadcast": "broadcast_lucky",
    "echo": "echo_wrong",
    "g-counter": "counter_lost_updates",
    "g-set": "g_set_counts_twice",
    "kafka": "kafka_mixes_keys",
    "txn-rw-register": "txn_dirty_reads",
    "unique-ids": "unique_ids_repeats",
}
OPERATIONS_MAX = 12  # of the smallest run that shows what is wrong


def options_of(script: Path, workload: str) -> TestOptions:
    return replace(RUN, bin=str(script), workload=workload)


@pytest.mark.parametrize(
    ("workload", "script"), [(w, s) for w, scripts in EXAMPLES.items() for s in scripts]
)
def test_the_same_seed_gives_the_same_run(workload: str, script: str) -> None:
    options = options_of(ROOT / "workloads/examples" / f"{script}.py", workload)
    first, again, other = (run_seed(replace(options, seed=seed)) for seed in "774")
    assert first.digest == again.digest != other.digest


@pytest.mark.parametrize(("workload", "script"), WRONG.items())
def test_a_wrong_node_is_shown_by_few_operations(
    workload: str, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate_node, "SEEDS_OF_THE_LAST", simulate_node.SEEDS_OF_A_SIZE)
    options = options_of(ROOT / "tests/nodes" / f"{script}.py", workload)
    options = replace(options, time_limit_s=10, nemesis=("partition",))
    found = (run_seed(replace(options, seed=str(seed))) for seed in range(50))
    wrong = next(each for each in found if each.verdict not in ("valid", "unknown"))
    small = smallest(wrong)
    assert small.verdict == wrong.verdict
    assert small.operations <= OPERATIONS_MAX


DRAWS = """
import datetime, os, random, secrets, time, uuid
from maelstrom_node import Node
node = Node()
def drawn():
    return [random.random(), random.choice("abc"), random.Random().random(), uuid.uuid4().hex, uuid.uuid1().hex,
            os.urandom(4).hex(), secrets.token_hex(4), time.time(), time.monotonic_ns(),
            str(datetime.datetime.now()), str(datetime.datetime.now(datetime.UTC)), list({"x", "y", "z"})]
@node.on("echo")
def echo(request):
    node.reply(request, {"type": "echo_ok", "echo": request["body"]["echo"]})
@node.on("tick")
def tick(request):
    pass
node.every(0.3, lambda: node.send(node.id, {"type": "tick", "drawn": drawn()}))
node.run()
"""


def node_in(folder: Path, text: str) -> Path:
    (folder / "maelstrom_node.py").symlink_to(ROOT / "workloads/examples/maelstrom_node.py")
    script = folder / "node.py"
    script.write_text(text)
    return script


@pytest.mark.process
def test_clocks_and_random_numbers_of_two_processes_come_from_the_seed(tmp_path: Path) -> None:
    script = node_in(tmp_path, DRAWS)
    words = ["simulate", "--bin", script, "-w", "echo", "--node-count", "2", "--time-limit", "2"]
    digests = []
    for number, seed in enumerate("334"):
        command = [*words, "--seed", seed, "--store", tmp_path / "runs", "--no-pictures"]
        hashes = os.environ | {"PYTHONHASHSEED": str(number)}
        done = subprocess.run(
            list(map(str, [ROOT / "maelstrom", *command])),
            env=hashes,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        digests += re.findall("digest: (.+)", done.stdout)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import time; time.sleep(1)", "sleep: it would hold up the node's other work"),
        ("import threading; threading.Thread(target=print).start()", "one thread"),
        ("import subprocess; subprocess.run(['true'])", "one process"),
        ("import socket; socket.socket()", "no network but its stdin and stdout"),
        ("import sys; sys.stdin.readline()", "it reads stdin itself"),
        ("for each in __import__('sys').stdin: pass", "it reads stdin itself"),
        ("pass", "it ends before it calls `run`"),
    ],
)
def test_what_no_seed_decides_is_refused_with_its_line(tmp_path: Path, line: str, why: str) -> None:
    script = node_in(tmp_path, f"from maelstrom_node import Node\n{line}\n")
    with pytest.raises(NotSimulated, match=re.escape(why)) as refused:
        run_seed(options_of(script, "echo"))
    assert str(refused.value).startswith(f"{script}:2: " if line != "pass" else f"{script}: ")


def test_an_error_of_the_script_ends_the_run_and_is_shown(tmp_path: Path) -> None:
    broken = DRAWS.replace('request["body"]["echo"]', 'request["body"]["ech"]')
    log = 'node = Node(); print("the log", file=__import__("sys").stderr)'
    script = node_in(tmp_path, broken.replace("node = Node()", log))
    found = run_seed(options_of(script, "echo"))
    assert found.verdict == "crashed"
    assert "KeyError: 'ech'" in found.why
    assert "line 11, in echo" in found.why
    assert found.why.endswith("Its last lines on stderr:\n  the log")


def test_a_command_makes_its_run_again() -> None:
    options = options_of(ROOT / "workloads/examples/echo.py", "echo")
    options = replace(options, latency_ms=5, strict=True, args=("--wait", "1"), seed="x 1")
    command = cli.get_command(cli.make_context("maelstrom", words_of(options)), "simulate")
    assert command is not None
    flags = command.make_context("simulate", words_of(options)[1:]).params
    del flags["seeds"], flags["jobs"], flags["shrink"]
    assert from_flags(flags) == options


def test_other_threads_have_pythons_own_clock(tmp_path: Path) -> None:
    drawn, began = Drawn(tmp_path), time.monotonic()
    with ThreadPoolExecutor(1) as others:
        others.submit(int).result()  # a node may start no thread
        with drawn.in_force(), drawn.inside(ScriptedNode("n1", Random(1), drawn, print)):
            assert time.monotonic() == 0.0
            assert others.submit(time.monotonic).result() > began
