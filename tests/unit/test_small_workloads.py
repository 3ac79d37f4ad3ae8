"""echo, unique-ids, broadcast, g-set and the counters: requests, replies, draws and judgements."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

import workloads
from runs.history import Op
from runs.keyword import Keyword
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
        ({**right, "type": "ok"}, "the type is 'ok'"),
        ({**right, "more": 1}, "nobody asked for the field more"),
        *(({k: v for k, v in right.items() if k != name}, f"{name} is missing") for name in reply),
    ):
        with pytest.raises(MalformedReply, match=complaint):
            answered(client, op, wrong)


@pytest.mark.parametrize(
    ("name", "reply", "complaint"),
    [
        ("broadcast", {"messages": "7"}, "messages is '7', not an array"),
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


def ids(*values: Any, kind: str = "ok") -> list[Op]:
    ops: list[Op] = []
    for process, value in enumerate(values):
        ops.append(Op(2 * process, 0, "invoke", process, "generate"))
        ops.append(Op(2 * process + 1, 0, kind, process, "generate", value))  # type: ignore[arg-type]
    return ops


IDS = workloads.judge("unique-ids")


def test_ids_are_counted_and_one_that_came_twice_is_told() -> None:
    assert IDS.check([*ids(3, 1, 2), *ids(None, kind="info")], {}) == {
        "valid?": True,
        "attempted-count": 4,
        "acknowledged-count": 3,
        "duplicated-count": 0,
        "duplicated": {},
        "range": [1, 3],
    }
    ops = ids("b", "a", "b", "a", "b")
    result = IDS.check(ops, {})
    assert (result["valid?"], result["duplicated"]) == (False, {"b": 3, "a": 2})
    assert result["range"] == ["a", "b"]
    (found,) = IDS.explain(result, ops)
    assert (found.count, [op.index for op in found.witness]) == (2, [1, 5, 9])
    assert found.sentence == 'ID "b" was given out 3 times; processes 0, 2, 4 got it.'


@pytest.mark.parametrize(
    ("values", "duplicated"),
    [
        ((1, 1.0, True, "1", [1], {"a": 1}, None, 0, False), {}),
        (([1, {"a": 1, "b": 2}], [1, {"b": 2, "a": 1}]), {'[1,{"a":1,"b":2}]': 2}),
        ((None, None), {"null": 2}),
    ],
)
def test_ids_are_compared_as_json_values(
    values: tuple[Any, ...], duplicated: dict[Any, int]
) -> None:
    assert IDS.check(ids(*values), {})["duplicated"] == duplicated


@pytest.mark.parametrize(
    "values",
    [
        ({"a": 1}, {"a": 2}),
        (1, "1"),
        (0, True),
        ("a", ["a"]),
        ([1, 2], [1, "2"]),
        ([[1]], [[{}]]),
        (None, 5, [5]),
    ],
)
def test_ids_without_an_order_are_unknown_as_in_the_real_tool(values: tuple[Any, ...]) -> None:
    ops = ids(*values)
    result = IDS.check(ops, {})
    (found,) = IDS.explain(result, ops)
    assert (result["valid?"], found.type, found.invalidating) == ("unknown", "incomparable", False)
    assert [op.value for op in found.witness] == list(values[-2:])
    assert "Make all IDs numbers" in found.sentence
    assert IDS.check(ids(*values, values[0]), {})["valid?"] is False


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ((3, 1.5, 2), 1.5, 3),
        (("b", "a", None), None, "b"),
        ((True, False), False, True),
        (([2, "b"], [9], [1, "x"]), [9], [2, "b"]),  # the length comes first
        (([1, "b"], [2, 7]), [1, "b"], [2, 7]),  # the second places are never compared
        (({"a": 1},), {"a": 1}, {"a": 1}),
        (({"a": 1}, None), None, {"a": 1}),
        ((), None, None),
    ],
)
def test_ids_with_an_order_are_valid(values: tuple[Any, ...], least: Any, greatest: Any) -> None:
    result = IDS.check(ids(*values), {})
    assert (result["valid?"], result["range"]) == (True, [least, greatest])


def test_numbers_that_were_rounded_on_the_way_prove_nothing() -> None:
    ops = ids(2.0**80, 2.0**80)
    rounded = IDS.check(ops, {})
    (found,) = IDS.explain(rounded, ops)
    assert (rounded["valid?"], found.invalidating) == ("unknown", False)
    assert "strings" in found.sentence
    assert IDS.check(ids(2.0**80, 2.0**80, 1, 1), {})["valid?"] is False


def counter(*steps: tuple[str, Any]) -> list[Op]:
    """Completed operations of one process each: `add+`, `add?`, `add-`, `add`, `read`, `final`."""
    ops: list[Op] = []
    for process, (word, value) in enumerate(steps):
        f = word.strip("+?-") if word.startswith("add") else "read"
        extra = {"final?": True} if word == "final" else {}
        invoked = value if f == "add" else None
        ops.append(Op(len(ops), 0, "invoke", process, f, invoked, extra))
        kind = {"?": "info", "-": "fail"}.get(word[-1], "ok")
        if word != "add":
            ops.append(Op(len(ops), 0, kind, process, f, value, extra))  # type: ignore[arg-type]
    return ops


@pytest.mark.parametrize(
    ("steps", "valid", "acceptable", "wrong"),
    [
        ([], "unknown", [[0, 0]], []),
        ([("add+", 2), ("add+", 3), ("final", 5), ("final", 4)], False, [[5, 5]], [4]),
        ([("add+", 2), ("read", 7), ("final", 2)], True, [[2, 2]], []),
        ([("add+", 2), ("add-", 3), ("final", 2)], True, [[2, 2]], []),
        ([("add+", 2), ("read", 2)], "unknown", [[2, 2]], []),
        (
            [("add+", 10), ("add?", 5), ("add?", -1), ("add?", -1), ("final", 11), ("final", 15)],
            False,
            [[8, 10], [13, 15]],
            [11],
        ),
        # An add that was under way when the run ended may have happened.
        ([("add+", 1), ("add", 4), ("final", 5)], True, [[1, 1], [5, 5]], []),
    ],
)
def test_final_reads_are_possible_sums(
    steps: list[tuple[str, Any]], valid: Any, acceptable: list[list[int]], wrong: list[int]
) -> None:
    ops = counter(*steps)
    judge = workloads.judge("pn-counter")
    result = judge.check(ops, {})
    assert (result["valid?"], result["acceptable"]) == (valid, acceptable)
    assert [op.value for op in result["errors"] or ()] == wrong
    assert [each.count for each in judge.explain(result, ops)] == [len(wrong)] * bool(wrong)


def test_a_wrong_sum_is_told() -> None:
    ops = counter(("add+", 2), ("add?", 3), ("final", 4))
    judge = workloads.judge("g-counter")
    (found,) = judge.explain(judge.check(ops, {}), ops)
    assert found.sentence == (
        "Process 2 read 4 at the end. The acknowledged adds (1) make 2, and others (1) may have happened: "
        "right is 2 or 5."
    )
    assert judge.figures
    assert judge.figures(judge.check(ops, {})) == "final reads: 4; acceptable: 2, 5"


def subsets(base: int, deltas: list[int]) -> set[int]:
    found = {base}
    for delta in deltas:
        found |= {each + delta for each in found}
    return found


def test_the_possible_sums_are_those_of_all_subsets() -> None:
    random = Random(4)
    for _ in range(300):
        deltas = [random.randint(-9, 9) for _ in range(random.randrange(8))]
        ranges = sums(7, deltas)
        assert {each for low, high in ranges for each in range(low, high + 1)} == subsets(7, deltas)
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
        with pytest.raises(MalformedReply, match="not the transaction, its reads filled in"):
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


# ---------------------------------------------------------------- echo


def history(*steps: tuple[Any, ...]) -> list[Op]:
    return [Op(index, index, *step) for index, step in enumerate(steps)]


ASK_A, ASK_B = ("invoke", 0, "echo", "a"), ("invoke", 1, "echo", "b")


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [
        ([ASK_A, ("ok", 0, "echo", {"echo": "a"})], []),
        ([ASK_A, ("ok", 0, "echo", {"echo": "b"})], [("a", {"echo": "b"})]),
        ([ASK_A, ("info", 0, "echo", "a")], [("a", "a")]),  # no answer in time
        (
            [ASK_A, ASK_B, ("ok", 1, "echo", {"echo": "a"}), ("ok", 0, "echo", {"echo": "b"})],
            [("b", {"echo": "a"}), ("a", {"echo": "b"})],
        ),
        ([("info", "nemesis", "start-partition", None), ASK_A], []),  # under way at the end
    ],
)
def test_what_came_back_must_be_what_was_sent(
    steps: list[tuple[Any, ...]], wrong: list[tuple[str, Any]]
) -> None:
    errors = [["Expected a message with :echo", sent, "But received", got] for sent, got in wrong]
    assert check(history(*steps)) == {"valid?": not wrong, "errors": errors}


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Keyword("net-timeout"), "no answer came in time."),
        (
            "indeterminate: the type is 'echo_okay', not 'echo_ok'",
            "what came back is no echo: the type is 'echo_okay', not 'echo_ok'.",
        ),
        ([Keyword("not-supported"), "no"], "what came back is no echo: not-supported: no."),
    ],
)
def test_what_came_in_place_of_an_echo_is_told(error: Any, told: str) -> None:
    steps = history(
        ("invoke", 0, "echo", "a"),
        ("ok", 0, "echo", {"echo": "a"}),
        ("invoke", 0, "echo", "a"),
        ("info", 0, "echo", "a", {"error": error}),
    )
    (finding,) = explain(check(steps), steps)
    assert finding.sentence == f'"a" was sent, and {told}'
    assert finding.witness == steps[2:]  # not the right echo of the same text
