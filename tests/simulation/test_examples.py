"""The nodes of `examples` in the simulator, and small nodes that are wrong in one way each."""

import json
from functools import partial
from typing import Any

import pytest

from tests.scripted import ROOT, node_of
from tests.toy_log import VirtualRun

EXAMPLES, WRONG = ROOT / "workloads/examples", ROOT / "tests/nodes"
STORM = {"nemesis": ("partition",), "nemesis_interval_s": 1.0, "latency_ms": 10}
ONE = {"nodes": ("n0",)}
NODES = tuple(f"n{number}" for number in range(5))


def run(
    workload: str, script: str, folder: Any = EXAMPLES, *arguments: str, **options: Any
) -> VirtualRun:
    make = node_of(folder / script, *arguments)
    options = {"nodes": NODES, "time_limit_s": 4, "concurrency": 5, "key_count": None, **options}
    return VirtualRun(make=make, workload=workload, **options)


@pytest.mark.parametrize(
    ("workload", "script"),
    [
        ("echo", "echo.py"),
        ("unique-ids", "unique_ids.py"),
        ("broadcast", "broadcast.py"),
        ("broadcast", "broadcast_hub.py"),
        ("g-set", "g_set.py"),
        ("g-counter", "g_counter.py"),
        ("g-counter", "pn_counter.py"),
        ("pn-counter", "pn_counter.py"),
        ("txn-rw-register", "txn_rw_register.py"),
        ("txn-list-append", "txn_list_append.py"),
    ],
)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_examples_survive_partitions(workload: str, script: str, seed: str) -> None:
    models = ("read-committed",) if workload == "txn-rw-register" else ("strict-serializable",)
    outcome = run(workload, script, seed=seed, consistency_models=models, **STORM)
    assert (outcome.outcome.failure, outcome.check()["valid?"]) == (None, True)
    assert {op.type for op in outcome.history if op.process != "nemesis"} == {"invoke", "ok"}


@pytest.mark.parametrize("topology", ["line", "grid", "total", "tree4"])
def test_a_broadcast_costs_a_message_and_its_answer_for_each_edge_of_a_tree(topology: str) -> None:
    nodes = tuple(f"n{number}" for number in range(9))
    outcome = run("broadcast", "broadcast.py", nodes=nodes, topology=topology, latency_ms=10)
    broadcasts = sum(op.f == "broadcast" and op.type == "invoke" for op in outcome.history)
    edges = {"line": 8, "tree4": 8, "grid": 12, "total": 36}[topology]
    sent = outcome.network.servers.sent
    assert 2 * 8 * broadcasts <= sent <= 4 * edges * broadcasts
    assert (sent == 2 * edges * broadcasts) == (topology in ("line", "tree4"))
    result = outcome.check()
    assert result["valid?"] is True
    assert result["stable-latencies"][1] <= 10 * 8 + 10


def test_waiting_for_company_saves_messages_and_takes_longer() -> None:
    at_once = run("broadcast", "broadcast.py", latency_ms=10)
    waiting = run("broadcast", "broadcast.py", EXAMPLES, "--wait", "0.2", latency_ms=10)
    assert waiting.network.servers.sent < at_once.network.servers.sent / 2
    slower, faster = (each.check()["stable-latencies"][0.5] for each in (waiting, at_once))
    assert slower > 3 * faster


@pytest.mark.parametrize(
    ("workload", "script", "options", "anomaly"),
    [
        ("unique-ids", "unique_ids_repeats.py", {}, "duplicated"),
        ("broadcast", "broadcast_forgets.py", STORM, "lost"),
        ("g-set", "g_set_loses.py", {"latency_ms": 10}, "lost"),
        ("g-counter", "counter_counts_twice.py", {}, "wrong-sum"),
        ("pn-counter", "counter_counts_twice.py", {}, "wrong-sum"),
        ("echo", "echo_wrong.py", {}, "wrong-echo"),
        ("txn-list-append", "txn_dirty_writes.py", {"latency_ms": 10}, "incompatible-order"),
        ("txn-rw-register", "txn_dirty_reads.py", {"nodes": ("n0",)}, "G1a"),
        ("txn-list-append", "txn_from_nowhere.py", ONE, "no-writer-of-value"),
        ("txn-rw-register", "txn_from_nowhere.py", ONE | {"strict": True}, "no-writer-of-value"),
    ],
)
def test_a_wrong_node_is_caught_and_its_fault_named(
    workload: str, script: str, options: dict[str, Any], anomaly: str
) -> None:
    outcome = run(workload, script, WRONG, **options)
    result = outcome.check()
    assert result["valid?"] is False
    findings = outcome.workload.judge.explain(result, outcome.history)
    assert anomaly in {each.type for each in findings if each.invalidating}


def test_negative_offsets_end_the_run_with_a_report() -> None:
    report = str(run("kafka", "kafka_negative_offsets.py", WRONG).outcome.failure)
    assert "the field offset is -1, not an integer of 0 or more" in report


def test_ids_that_are_maps_are_unknown() -> None:
    outcome = run("unique-ids", "unique_ids_maps.py", WRONG)
    result = outcome.check()
    assert result["valid?"] == "unknown"
    (found,) = outcome.workload.judge.explain(result, outcome.history)
    assert (found.type, found.undecided) == ("incomparable", True)


def test_a_set_that_counts_twice_is_caught_by_strict_and_only_by_it() -> None:
    run_of = partial(run, "g-set", "g_set_counts_twice.py", WRONG, **ONE)
    assert run_of().check()["valid?"] is True
    strict = run_of(strict=True)
    result = strict.check()
    assert result["valid?"] is False
    (found,) = strict.workload.judge.explain(result, strict.history)
    assert (found.type, found.invalidating) == ("duplicated", True)


def test_the_example_of_a_set_is_right_when_adds_are_repeated() -> None:
    outcome = run("g-set", "g_set.py", strict=True, **STORM)
    added = [op.value for op in outcome.history if op.f == "add" and op.type == "invoke"]
    repeated = len(added) - len(set(added))
    assert len(added) / 16 < repeated < len(added) / 4
    assert outcome.check()["valid?"] is True


def test_a_node_that_forgets_is_right_without_partitions() -> None:
    assert run("broadcast", "broadcast_forgets.py", WRONG).check()["valid?"] is True


def test_every_node_is_told_its_neighbours_before_the_first_operation() -> None:
    outcome = run("broadcast", "broadcast.py", time_limit_s=1)
    journal = outcome.journal_file.content.decode().splitlines()
    kinds = [line for line in journal if '"broadcast"' in line or '"topology_ok"' in line]
    assert sum("topology_ok" in line for line in kinds[:10]) == 10, "each is sent and received"
    assert "set-up" not in {op.f for op in outcome.history}


def test_a_node_without_topology_ends_the_run_with_a_report() -> None:
    outcome = run("broadcast", "g_set.py")
    assert outcome.history == []
    assert str(outcome.outcome.failure).startswith("Node n0 answered topology with not-supported: ")


@pytest.mark.parametrize(
    ("script", "arguments", "row"),
    [
        ("broadcast.py", (), "`tree4`"),
        ("broadcast.py", ("--wait", "0.15"), "`tree4`, `--wait 0.15`"),
        ("broadcast_hub.py", (), "a hub: `broadcast_hub.py`"),
    ],
    ids=["at once", "waiting", "hub"],
)
def test_the_document_says_what_a_broadcast_costs(
    script: str, arguments: tuple[str, ...], row: str
) -> None:
    nodes = tuple(f"n{number}" for number in range(25))
    scale = {"nodes": nodes, "concurrency": 25, "time_limit_s": 20, "latency_ms": 100}
    outcome = run("broadcast", script, EXAMPLES, *arguments, topology="tree4", **scale)
    operations = sum(op.type == "invoke" for op in outcome.history)
    latencies = outcome.check()["stable-latencies"]
    figures = [f"{outcome.network.servers.sent / operations:.2f}"]
    figures += [str(latencies[share]) for share in (0.5, 0.99, 1)]
    assert f"| {row} | {' | '.join(figures)} |" in (ROOT / "docs/bench/glomers.md").read_text()


def test_the_hub_that_was_killed_loses_messages() -> None:
    outcome = run("broadcast", "broadcast_hub.py", nemesis=("kill",), nemesis_interval_s=1.0)
    assert outcome.check()["valid?"] is False


@pytest.mark.parametrize(
    ("workload", "script"), [("unique-ids", "unique_ids.py"), ("g-counter", "g_counter.py")]
)
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_examples_that_keep_nothing_in_memory_survive_kills(
    workload: str, script: str, seed: str
) -> None:
    faults = {"nemesis": ("kill", "pause"), "nemesis_interval_s": 0.7, "latency_ms": 5}
    outcome = run(workload, script, seed=seed, **faults)
    assert outcome.outcome.failure is None
    assert any(op.f == "kill" for op in outcome.history)
    assert outcome.check()["valid?"] is True


def test_a_node_that_was_killed_says_nothing_before_it_has_a_name() -> None:
    node = node_of(EXAMPLES / "broadcast.py")("n1", 1)
    gossip = b'{"src":"n0","dest":"n1","body":{"type":"gossip","messages":[1],"msg_id":7}}'
    node.receive(gossip, 0.0)
    assert node.take() == b""
    node.receive(
        b'{"src":"c0","dest":"n1","body":{"type":"init","node_id":"n1","node_ids":["n1"],"msg_id":1}}',
        0.0,
    )
    node.receive(gossip, 0.0)
    assert [line["src"] for line in map(json.loads, node.take().splitlines())] == ["n1", "n1"]


@pytest.mark.parametrize("workload", ["broadcast", "g-counter", "txn-rw-register"])
def test_the_same_seed_gives_the_same_history(workload: str) -> None:
    script = f"{workload.replace('-', '_')}.py"
    first, second = (run(workload, script, time_limit_s=2, **STORM) for _ in range(2))
    assert first.history_file.content == second.history_file.content
    other = run(workload, script, time_limit_s=2, seed="another", **STORM)
    assert other.history_file.content != first.history_file.content
