"""The transactional checkers: known anomalies by hand, and random histories against all serial orders."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random
from typing import Any

import pytest

from runs import edn
from runs.history import Op, printable
from runs.keyword import Keyword
from workloads import judge
from workloads.interface import Finding
from workloads.txn.cycles import LEVELS
from workloads.txn.models import NAMES, forbidden_by, ruled_out

LIST, REGISTER = "txn-list-append", "txn-rw-register"


def mops(text: str) -> list[list[Any]]:
    """`r1=12` reads 1 and 2 of key 1 (`r1=` nothing), `a1=3` appends 3 to it, `w1=3` writes 3."""
    found: list[list[Any]] = []
    for word in text.split():
        name, key, value = word[0], int(word[1]), word[3:]
        if name == "a":
            found.append([Keyword("append"), key, int(value)])
        elif name == "w":
            found.append([Keyword("w"), key, int(value)])
        else:
            found.append([Keyword("r"), key, [int(each) for each in value] if value else None])
    return found


def history(*lines: str, concurrent: bool = True, register: bool = False) -> list[Op]:
    """Transactions of one process each, all at the same time or one after the other.

    `!` before a transaction: it failed. `?`: nobody knows.
    """
    texts = [line.lstrip("!?") for line in lines]
    kinds = [{"!": "fail", "?": "info"}.get(line[0], "ok") for line in lines]
    values = [mops(text) for text in texts]
    for value in values if register else ():
        for mop in value:
            mop[2] = mop[2][0] if isinstance(mop[2], list) else mop[2]
    halves: list[tuple[str, int]] = []
    for number, kind in enumerate(kinds):
        halves += [("invoke", number), (kind, number)]
    if concurrent:
        halves.sort(key=lambda half: half[0] != "invoke")
    ops = []
    for index, (kind, number) in enumerate(halves):
        value = values[number]
        if kind != "ok":
            value = [[f, key, None if f == "r" else v] for f, key, v in value]
        ops.append(Op(index, index, kind, number, "txn", value))  # type: ignore[arg-type]
    return ops


def types(name: str, ops: Sequence[Op], *models: str) -> tuple[Any, set[str]]:
    result = judge(name).check(ops, {"consistency_models": models})
    assert len(judge(name).explain(result, ops)) == len(result.get("anomaly-types", ()))
    assert edn.dumps(printable(result))
    return result["valid?"], set(map(str, result.get("anomaly-types", ())))


CASES: list[tuple[str, list[str], str, str, str]] = [
    # name, transactions, the anomaly, a model that allows it, one that does not
    ("dirty write", ["a1=1 a2=1", "a1=2 a2=2", "r1=12 r2=21"], "G0", "", "read-uncommitted"),
    (
        "circular information",
        ["a1=1 r2=1", "a2=1 r1=1"],
        "G1c",
        "read-uncommitted",
        "read-committed",
    ),
    ("aborted read", ["!a1=1", "r1=1"], "G1a", "read-uncommitted", "read-committed"),
    ("intermediate read", ["a1=1 a1=2", "r1=1"], "G1b", "read-uncommitted", "read-committed"),
    (
        "read skew",
        ["a1=1 a2=1", "r1= r2=1"],
        "G-single-item",
        "read-committed",
        "snapshot-isolation",
    ),
    ("lost update", ["r1= a1=1", "r1= a1=2"], "lost-update", "read-committed", "cursor-stability"),
    (
        "long fork",
        ["a1=1", "a2=1", "r1=1 r2=", "r1= r2=1"],
        "G-nonadjacent-item",
        "read-committed",
        "snapshot-isolation",
    ),
    (
        "write skew",
        ["r1= r2= a1=1", "r1= r2= a2=1"],
        "G2-item",
        "snapshot-isolation",
        "repeatable-read",
    ),
    ("internal", ["a1=1 r1="], "internal", "read-committed", "read-atomic"),
    ("internal, of a read", ["a1=1", "r1=1 a1=2 r1=2"], "internal", "", "read-atomic"),
    ("future read", ["r1=1 a1=1"], "future-read", "read-uncommitted", "read-committed"),
    ("twice", ["a1=1", "r1=11"], "duplicate-elements", "", "read-uncommitted"),
    ("two orders", ["a1=1", "a1=2", "r1=12", "r1=21"], "incompatible-order", "", "read-committed"),
    ("dirty update", ["!a1=1", "a1=2", "r1=12"], "dirty-update", "", "read-committed"),
    ("from nowhere", ["a1=1", "r1=12"], "no-writer-of-value", "", "monotonic-reads"),
]


STALE = ["a1=1", "r1=", "r1=1"]
OF_SESSIONS = "strong-session-serializable"
APART = {"concurrent": False}


@pytest.mark.parametrize(
    ("lines", "how", "model", "expected"),
    [
        (STALE, {}, "strict-serializable", (True, set())),
        # Stale reads are wrong only in real time.
        (STALE, APART, OF_SESSIONS, (True, set())),
        (STALE, APART, "", (False, {"G-single-item-realtime"})),
        # Elle names this cycle by both missed writes: G-nonadjacent-item-realtime.
        (["a1=1", "r2=", "a2=1", "r1="], APART, "", (False, {"G-single-item-realtime"})),
        # An unknown transaction may have happened or not.
        (["?a1=1", "r1=1"], {}, "", (True, set())),
        (["?a1=1", "r1="], {}, "", (True, set())),
        (["?a1=1 a2=1", "r1=1 r2="], {}, "serializable", (False, {"G-single-item"})),
        # A history without dependencies proves nothing.
        (["a1=1", "a2=1"], {}, "", ("unknown", {"empty-transaction-graph"})),
        ([], {}, "", ("unknown", {"empty-transaction-graph"})),
    ],
)
def test_verdicts_on_lists(
    lines: list[str], how: dict[str, Any], model: str, expected: tuple[Any, set[str]]
) -> None:
    assert types(LIST, history(*lines, **how), *filter(None, [model])) == expected


def test_the_order_of_a_process_matters_to_sessions() -> None:
    ops = history(*STALE, concurrent=False)
    for op in ops:
        op.process = 0
    assert types(LIST, ops, OF_SESSIONS) == (False, {"G-single-item-process"})
    assert types(LIST, ops, "serializable") == (True, set())


REGISTERS: list[tuple[str, list[str], str, str, str]] = [
    ("aborted read", ["!w1=1", "r1=1"], "G1a", "read-uncommitted", "read-committed"),
    ("intermediate read", ["w1=1 w1=2", "r1=1"], "G1b", "read-uncommitted", "read-committed"),
    (
        "circular information",
        ["w1=1 r2=1", "w2=1 r1=1"],
        "G1c",
        "read-uncommitted",
        "read-committed",
    ),
    ("dirty write", ["w1=1 r2=1 w2=2", "w2=1 r1=1 w1=2"], "G0", "", "read-uncommitted"),
    (
        "read skew",
        ["w1=1 w2=1", "r1= r2=1"],
        "G-single-item",
        "read-committed",
        "snapshot-isolation",
    ),
    (
        "write skew",
        ["r1= r2= w1=1", "r1= r2= w2=1"],
        "G2-item",
        "snapshot-isolation",
        "serializable",
    ),
    ("lost update", ["r1= w1=1", "r1= w1=2"], "lost-update", "read-committed", "repeatable-read"),
    ("internal", ["w1=1 r1=2", "w1=2"], "internal", "read-committed", "read-atomic"),
    ("two orders", ["r1=1 w1=2", "r1=2 w1=1"], "cyclic-versions", "", "read-uncommitted"),
]


@pytest.mark.parametrize(
    ("name", "lines", "anomaly", "allows", "forbids"),
    [(LIST, *case[1:]) for case in CASES] + [(REGISTER, *case[1:]) for case in REGISTERS],
    ids=[case[0] for case in (*CASES, *REGISTERS)],
)
def test_anomalies(name: str, lines: list[str], anomaly: str, allows: str, forbids: str) -> None:
    ops = history(*lines, register=name == REGISTER)
    valid, found = types(name, ops, forbids)
    assert valid is False
    assert anomaly in found
    assert not allows or types(name, ops, allows)[0] is not False


def told(name: str, ops: list[Op], **options: Any) -> list[Finding]:
    return judge(name).explain(judge(name).check(ops, options), ops)


@pytest.mark.parametrize(
    ("lines", "type_", "count", "sentence", "witness"),
    [
        (
            ["a1=1", "a1=2", "r1=12", "r1=21"],
            "incompatible-order",
            1,
            "Key 1 was read as [[1 2] [2 1]]; neither is the beginning of the other.",
            [6, 7],
        ),
        (
            ["a1=1 a2=1", "r1= r2=1"],
            "G-single-item",
            2,
            "T3 read 1 of key 2 from T2|T3 read nothing of key 1 before T2 wrote 1",
            [2, 3],
        ),
        # The real checker stops here with an exception, and without a verdict.
        (
            ["a1=1", "?a1=2", "r1=12", "r1=123", "r1=123"],
            "no-writer-of-value",
            1,
            "Operation 8 read [:r 1 [1 2 3]]. No transaction wrote 3 to key 1.",
            [8],
        ),
    ],
)
def test_an_anomaly_is_told_with_the_operations_that_show_it(
    lines: list[str], type_: str, count: int, sentence: str, witness: list[int]
) -> None:
    found = {each.type: each for each in told(LIST, history(*lines))}[type_]
    assert found.invalidating
    assert found.count == count
    assert all(part in found.sentence for part in sentence.split("|"))
    assert sorted(op.index for op in found.witness) == witness


def test_a_cycle_rules_out_models() -> None:
    result = judge(LIST).check(history("a1=1 a2=1", "r1= r2=1"), {})
    assert result["not"] == {"consistent-view", "repeatable-read"}
    assert "strong-serializable" in result["also-not"]


@pytest.mark.parametrize("element", [1.0, True, "1", [1], {"a": 1}])
def test_an_element_is_only_what_was_appended(element: Any) -> None:
    ops = history("a1=1", "a1=2", "r1=12")
    ops[-1].value[0][2][0] = element
    assert "no-writer-of-value" in types(LIST, ops)[1]


def test_an_element_beside_the_order_of_its_key_matters_to_a_strict_check_only() -> None:
    """The real checker looks for writers of the longest list alone, and these models let lists differ."""
    ops = history("a1=1", "a1=2", "r1=12", "r1=3")
    assert types(LIST, ops, "read-uncommitted") == (True, set())
    models = {"consistency_models": ("read-uncommitted",), "strict": True}
    assert [each.type for each in told(LIST, ops, **models)] == ["no-writer-of-value"]


def test_a_value_that_nobody_wrote_is_refused_by_a_strict_check_only() -> None:
    ops = history("w1=1", "r1=1 w2=1", "r1=3", "r3=", register=True)
    assert types(REGISTER, ops) == (True, set())
    (found,) = told(REGISTER, ops, strict=True)
    assert (found.type, found.invalidating, found.count) == ("no-writer-of-value", True, 1)
    assert found.sentence == "Operation 6 read [:r 1 3]. No transaction wrote 3 to key 1."
    assert [op.index for op in found.witness] == [6]


@pytest.mark.parametrize("name", [LIST, REGISTER])
def test_null_is_a_value_that_later_reads_must_see(name: str) -> None:
    """The real checker starts with the first value that is not null, and calls this register valid."""
    write = "a1=1" if name == LIST else "w1=1"
    ops = history(write, "r1= r1=1", "r1=1 w1=2", register=name == REGISTER)
    assert types(name, ops, "read-committed")[0] is True
    assert types(name, ops, "read-atomic") == (False, {"internal"})


def test_a_dirty_read_of_an_intermediate_value_is_both() -> None:
    for name, ops in (
        (LIST, history("!a1=1 a1=2", "r1=1")),
        (REGISTER, history("!w1=1 w1=2", "r1=1 w2=2", "r2=2", register=True)),
    ):
        assert {"G1a", "G1b"} <= types(name, ops)[1]


# ---------------------------------------------------------------- models


def test_the_models_forbid_what_elle_says() -> None:
    assert forbidden_by(("read-committed",)) == {
        "dirty-update",
        "G1a",
        "G1b",
        "G1c",
        "G1",
        "G0",
        "PL-1-cycle-exists",
        "PL-2-cycle-exists",
        "cyclic-versions",
        "duplicate-elements",
        "incompatible-order",
        "future-read",
    }


@pytest.mark.parametrize(
    ("anomalies", "weakest"),
    [
        ([], set()),
        (["cyclic-versions"], {"read-uncommitted"}),
        (["internal"], {"read-atomic"}),
        (["G1a"], {"read-committed"}),
        (["G-single"], {"consistent-view"}),
        (["G2", "internal"], {"read-atomic"}),
        (["lost-update"], {"update-atomic", "cursor-stability"}),
        (["G-single-realtime"], {"strong-snapshot-isolation"}),
    ],
)
def test_anomalies_rule_out_what_elle_says(anomalies: list[str], weakest: set[str]) -> None:
    assert ruled_out(anomalies)[0] == weakest


def test_what_rules_out_a_model_rules_out_the_stronger_ones() -> None:
    assert ruled_out(["G-single"])[1] == {
        "forward-consistent-view",
        "strong-serializable",
        "serializable",
        "snapshot-isolation",
        "strong-session-serializable",
        "strong-session-snapshot-isolation",
        "strong-snapshot-isolation",
        "update-serializable",
    }


def test_every_level_is_a_model_that_forbids_its_cycles() -> None:
    for level in LEVELS:
        assert level.model in NAMES
        assert f"{level.model}-cycle-exists" in forbidden_by((level.model,))


# ---------------------------------------------------------------- against all serial orders


def serial_orders(txns: Sequence[Op], before: set[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    for order in permutations(range(len(txns))):
        place = {number: at for at, number in enumerate(order)}
        if all(place[a] < place[b] for a, b in before):
            yield order


def explains(order: Sequence[int], txns: Sequence[Op]) -> bool:
    """Whether one after the other, the transactions read what they read."""
    state: dict[Any, Any] = {}
    for number in order:
        for f, key, value in txns[number].value:
            if f == "append":
                state[key] = [*(state.get(key) or []), value]
            elif f == "w":
                state[key] = value
            elif state.get(key) != value:
                return False
    return True


def is_serializable(ops: Sequence[Op], strict: bool) -> bool:
    txns = [op for op in ops if op.type == "ok"]
    invoked = {op.process: op.index for op in ops if op.type == "invoke"}
    before = {
        (a, b)
        for a, first in enumerate(txns)
        for b, second in enumerate(txns)
        if strict and first.index < invoked[second.process]
    }
    return any(explains(order, txns) for order in serial_orders(txns, before))


def random_history(random: Random, write: str) -> list[Op]:
    """Up to five transactions on two keys, some reads of them stale; for lists, a read of all at the end."""
    count = random.randint(2, 4)
    state: dict[int, list[Any]] = {0: [[]], 1: [[]]}  # every state that a key had
    running: list[tuple[int, list[list[Any]]]] = []
    ops: list[Op] = []

    def record(kind: str, process: int, value: Any) -> None:
        ops.append(Op(len(ops), len(ops), kind, process, "txn", value))  # type: ignore[arg-type]

    def end() -> None:
        process, value = running.pop(random.randrange(len(running)))
        record("ok", process, value)

    for process in range(count):
        if running and random.random() < 0.6:
            end()
        value: list[list[Any]] = []
        for _ in range(random.randint(1, 3)):
            key = random.randrange(2)
            if random.random() < 0.5:
                seen = random.choice([state[key][-1], state[key][-1], random.choice(state[key])])
                value.append([Keyword("r"), key, _seen(seen, write)])
            else:
                value.append([Keyword(write), key, len(state[key])])
                state[key].append([*state[key][-1], len(state[key])])
        record("invoke", process, value)
        running.append((process, value))
    while running:
        end()
    final = [[Keyword("r"), key, _seen(lists[-1], write)] for key, lists in state.items()]
    record("invoke", count, final)
    record("ok", count, final)
    return ops


def _seen(elements: list[int], write: str) -> Any:
    if write == "append":
        return elements or None
    return elements[-1] if elements else None


@pytest.mark.parametrize(
    ("model", "strict"), [("serializable", False), ("strict-serializable", True)]
)
def test_lists_are_valid_exactly_if_a_serial_order_explains_them(model: str, strict: bool) -> None:
    verdicts = set()
    for seed in range(400):
        ops = random_history(Random(seed), "append")
        result = judge(LIST).check(ops, {"consistency_models": (model,)})
        expected = is_serializable(ops, strict)
        assert (result["valid?"] is not False) == expected, (seed, result)
        verdicts.add(expected)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("model", "strict"), [("serializable", False), ("strict-serializable", True)]
)
def test_registers_that_a_serial_order_explains_are_never_invalid(model: str, strict: bool) -> None:
    """The other way does not hold: the order of values is known only in part."""
    caught = 0
    for seed in range(400):
        ops = random_history(Random(seed), "w")
        valid = judge(REGISTER).check(ops, {"consistency_models": (model,)})["valid?"]
        if is_serializable(ops, strict):
            assert valid is not False, seed
        else:
            caught += valid is False
    assert caught > 50
