"""The transactional checkers: what models forbid, and random histories against all serial orders.

`tests/datadriven/judgements/txn.txt` has known anomalies by hand.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random
from typing import Any

import pytest

from runs.history import Keyword, Op
from workloads import judge
from workloads.txn.cycles import LEVELS
from workloads.txn.models import NAMES, forbidden_by, ruled_out

LIST, REGISTER = "txn-list-append", "txn-rw-register"


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
