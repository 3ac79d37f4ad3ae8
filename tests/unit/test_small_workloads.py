"""echo, unique-ids, broadcast, g-set and the counters: requests, replies and draws.

`tests/datadriven/judgements/small.txt` has what their judges say.
"""

from itertools import combinations, pairwise
from random import Random
from typing import Any

import pytest

import workloads
from runs.history import Keyword, Op
from tests.checker.history_language import history
from workloads.echo import check, explain
from workloads.interface import (
    Client,
    Draft,
    MalformedReply,
    Rpc,
    RpcError,
    Setting,
    Turn,
    Workload,
)
from workloads.mixes import DISTRIBUTIONS, TOPOLOGIES, topology
from workloads.pn_counter import sums

NODES = ("n0", "n1", "n2", "n3", "n4")


def workload(name: str, **options: Any) -> Workload:
    return workloads.build(name, Setting(NODES, 5, options, Random))


def answered(client: Client, op: Op, reply: dict[str, Any]) -> tuple[Rpc, Any]:
    """The request of an operation, and the value with which the reply completes it."""
    steps = client.invoke(op)
    request = next(steps)
    with pytest.raises(StopIteration) as stop:
        steps.send(reply)
    return request, stop.value.value


def asked(f: str, value: Any = None) -> Op:
    return Op(0, 0, "invoke", 0, f, value)


@pytest.mark.parametrize(
    ("name", "op", "body", "reply", "value"),
    [
        ("unique-ids", asked("generate"), {"type": "generate"}, {"id": [1, "a"]}, [1, "a"]),
        ("broadcast", asked("broadcast", 7), {"type": "broadcast", "message": 7}, {}, 7),
        ("broadcast", asked("read"), {"type": "read"}, {"messages": [7, 8]}, [7, 8]),
        ("broadcast", asked("read"), {"type": "read"}, {"messages": None}, None),
        ("g-set", asked("add", 7), {"type": "add", "element": 7}, {}, 7),
        ("g-set", asked("read"), {"type": "read"}, {"value": [7]}, [7]),
        ("g-counter", asked("add", 3), {"type": "add", "delta": 3}, {}, 3),
        ("pn-counter", asked("add", -3), {"type": "add", "delta": -3}, {}, -3),
        ("pn-counter", asked("read"), {"type": "read"}, {"value": 12}, 12),
        ("lin-kv", asked("read", [7, None]), {"type": "read", "key": 7}, {"value": 3}, [7, 3]),
        ("lin-kv", asked("write", [7, 3]), {"type": "write", "key": 7, "value": 3}, {}, [7, 3]),
        (
            "lin-kv",
            asked("cas", [7, [3, 4]]),
            {"type": "cas", "key": 7, "from": 3, "to": 4},
            {},
            [7, [3, 4]],
        ),
    ],
)
def test_a_client_sends_one_request(
    name: str, op: Op, body: dict[str, Any], reply: dict[str, Any], value: Any
) -> None:
    client = workload(name).open_client("n3")
    right = {"type": f"{body['type']}_ok", "in_reply_to": 1, "msg_id": 9, **reply}
    request, completed = answered(client, op, right)
    assert (request.dest, request.body, completed) == ("n3", body, value)
    assert request.timeout_ms == (1000 if name == "lin-kv" else 5000)
    for wrong, complaint in (
        ({**right, "type": "ok"}, 'the type is "ok"'),
        ({**right, "more": 1}, "nobody asked for the field more"),
        *(({k: v for k, v in right.items() if k != name}, f"{name} is missing") for name in reply),
    ):
        with pytest.raises(MalformedReply, match=complaint):
            answered(client, op, wrong)


@pytest.mark.parametrize(
    ("name", "reply", "complaint"),
    [
        ("broadcast", {"messages": "7"}, 'messages is "7", not an array'),
        ("g-set", {"value": {"7": True}}, "not an array"),
        ("g-counter", {"value": 1.5}, "value is 1.5, not an integer"),
        ("pn-counter", {"value": True}, "not an integer"),
    ],
)
def test_a_read_of_another_kind_is_malformed(
    name: str, reply: dict[str, Any], complaint: str
) -> None:
    client = workload(name).open_client("n0")
    with pytest.raises(MalformedReply, match=complaint):
        answered(client, asked("read"), {"type": "read_ok", **reply})


@pytest.mark.parametrize(
    ("name", "certain"), [("g-set", False), ("g-counter", False), ("broadcast", True)]
)
def test_a_definite_error_is_definite_where_the_real_tool_takes_it_so(
    name: str, certain: bool
) -> None:
    steps = workload(name).open_client("n0").invoke(asked("broadcast" if certain else "add", 1))
    next(steps)
    with pytest.raises(RpcError) as raised:
        steps.throw(RpcError(11, "temporarily-unavailable", None, definite=True))
    assert raised.value.definite is certain


def drafts(name: str, count: int = 2000) -> list[Draft]:
    generator = workload(name).generator
    found = [generator.next(Turn(worker % 5, 0)) for worker in range(count)]
    return [each for each in found if isinstance(each, Draft)]


@pytest.mark.parametrize(
    ("name", "add", "share", "drawn"),
    [
        ("broadcast", "broadcast", 0.5, None),  # the next number
        ("g-set", "add", 0.5, None),
        ("pn-counter", "add", 0.5, range(-5, 5)),  # any of these
        ("g-counter", "add", 1 / 3, range(5)),
    ],
)
def test_a_share_of_the_operations_adds_and_the_others_read(
    name: str, add: str, share: float, drawn: range | None
) -> None:
    found = drafts(name)
    values = [each.value for each in found if each.f == add]
    assert values == [*range(len(values))] if drawn is None else {*values} == {*drawn}
    assert len(values) / 2000 == pytest.approx(share, abs=0.05)
    assert {each.f for each in found} == {add, "read"}


@pytest.mark.parametrize("name", ["broadcast", "g-set", "g-counter", "pn-counter"])
def test_every_worker_reads_once_at_the_end(name: str) -> None:
    final = workload(name).final_generator
    assert final
    asked_for = [final.next(Turn(worker, 0)) for worker in (0, 1, 1, 2, 3, 4, 0)]
    extra = {} if name == "g-set" else {"final?": True}
    read = Draft("read", None, extra)
    assert asked_for == [read, read, None, read, read, read, None]
    assert workload("unique-ids").final_generator is None


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 10, 25])
def test_neighbours_are_mutual_and_everybody_can_be_reached(name: str, count: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    neighbours = topology(name, nodes)
    assert set(neighbours) == set(nodes)
    for node, others in neighbours.items():
        assert node not in others
        assert len(others) == len(set(others))
        assert all(node in neighbours[other] for other in others)
    reached, border = {"n0"}, {"n0"}
    while border:
        border = {other for node in border for other in neighbours[node]} - reached
        reached |= border
    assert reached == set(nodes)


def test_the_shapes_of_topologies() -> None:
    assert topology("grid", NODES)["n1"] == ["n4", "n2", "n0"]
    assert max(map(len, topology("grid", [f"n{n}" for n in range(25)]).values())) == 4
    assert topology("line", NODES)["n1"] == ["n0", "n2"]
    assert topology("line", NODES)["n4"] == ["n3"]
    assert topology("line", ["n0"]) == {}
    assert (
        topology("grid", ["n0"])
        == topology("total", ["n0"])
        == topology("tree", ["n0"])
        == {"n0": []}
    )
    assert topology("tree3", NODES) == {
        "n0": ["n1", "n2", "n3"],
        "n1": ["n0", "n4"],
        "n2": ["n0"],
        "n3": ["n0"],
        "n4": ["n1"],
    }


def test_every_node_is_told_the_topology() -> None:
    with pytest.raises(KeyError):
        workload("os")
    set_up = workload("broadcast", topology="line").set_up
    assert set_up
    for nodes in (NODES, ("n0", "n3", "n9")):  # at the start, and when n9 has joined
        request, _ = answered(set_up(nodes, "n0"), asked("set-up"), {"type": "topology_ok"})
        assert request.body == {"type": "topology", "topology": topology("line", nodes)}


def test_the_possible_sums_are_those_of_all_subsets() -> None:
    random = Random(4)
    for _ in range(300):
        deltas = [random.randint(-9, 9) for _ in range(random.randrange(8))]
        ranges = sums(7, deltas)
        chosen = (some for count in range(len(deltas) + 1) for some in combinations(deltas, count))
        found = {each for low, high in ranges for each in range(low, high + 1)}
        assert found == {7 + sum(some) for some in chosen}
        assert all(high + 1 < low for (_, high), (low, _) in pairwise(ranges))


TXN = [["r", 1, None], ["w", 1, 6]]


def test_a_transaction_is_sent_and_comes_back_with_its_reads() -> None:
    build = workload("txn-rw-register", max_txn_length=4, max_writes_per_key=16)
    right = {"type": "txn_ok", "txn": [["r", 1, 8], ["w", 1, 6]]}
    request, value = answered(build.open_client("n1"), asked("txn", TXN), right)
    assert request.body == {"type": "txn", "txn": TXN}
    assert value == right["txn"]
    for wrong in (
        None,
        [["r", 1, 8]],
        [["r", 2, 8], ["w", 1, 6]],
        [["r", 1, 8], ["w", 1, 7]],
        [1, 2],
    ):
        with pytest.raises(
            MalformedReply, match=r'not (the transaction, its reads filled in|\["[rw]", 1, )'
        ):
            answered(build.open_client("n1"), asked("txn", TXN), {"type": "txn_ok", "txn": wrong})
    lists = workload("txn-list-append", max_txn_length=4, max_writes_per_key=16)
    with pytest.raises(MalformedReply):
        answered(
            lists.open_client("n1"),
            asked("txn", [["r", 1, None]]),
            {"type": "txn_ok", "txn": [["r", 1, 8]]},
        )


def test_transactions_are_as_long_and_keys_as_many_as_asked() -> None:
    options = {"max_txn_length": 3, "max_writes_per_key": 4, "key_dist": "uniform"}
    generator = workload("txn-list-append", **options).generator
    found = [generator.next(Turn(0, 0)) for _ in range(600)]
    values = [each.value for each in found if isinstance(each, Draft)]
    assert {len(value) for value in values} == {1, 2, 3}
    appends = [(key, value) for txn in values for f, key, value in txn if f == "append"]
    assert len(appends) == len(set(appends))
    assert {value for _, value in appends} == {1, 2, 3, 4}
    assert {key for txn in values[:5] for _, key, _ in txn} <= {0, 1, 2}, "three keys if uniform"


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("exponential", [1 / 7, 2 / 7, 4 / 7]),
        ("uniform", [1 / 3] * 3),
        ("zipf", [36 / 49, 9 / 49, 4 / 49]),
    ],
)
def test_keys_are_drawn_by_their_distribution(name: str, shares: list[float]) -> None:
    draw, random = DISTRIBUTIONS[name], Random(2)
    drawn = [draw(3, random) for _ in range(5000)]
    assert [drawn.count(key) / 5000 for key in range(3)] == pytest.approx(shares, abs=0.03)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Keyword("net-timeout"), "no answer came in time."),
        (
            'indeterminate: the type is "echo_okay", not "echo_ok"',
            'what came back is no echo: the type is "echo_okay", not "echo_ok".',
        ),
        ([Keyword("not-supported"), "no"], "what came back is no echo: not-supported: no."),
    ],
)
def test_what_came_in_place_of_an_echo_is_told(error: Any, told: str) -> None:
    ops = history('0 echo "a" invoke\n0 echo {"echo":"a"}\n0 echo "a" info')
    ops[-1].extra["error"] = error
    (finding,) = explain(check(ops), ops)
    assert finding.sentence == f'"a" was sent, and {told}'
    assert finding.witness == ops[2:]  # not the right echo of the same text
