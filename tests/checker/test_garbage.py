"""No judge of a small workload raises for what nodes may answer, and every result can be written."""

import json
from random import Random
from typing import Any

import pytest

from runs import edn
from runs.history import Keyword, Op, plain, printable
from workloads import judge

# What a well-formed reply may hold, sense or not.
ANYTHING = [0, 1, 2, -7, 1.5, 2.0**70, True, None, "1", "", [1], [[1], {}], {"a": 1}]
LISTS = [None, [], [0], [0, 0, 1], [1, "1", 1.0, True], ANYTHING]
FUNCTIONS = {
    "broadcast": ("broadcast", "read"),
    "echo": ("echo",),
    "g-counter": ("add", "read"),
    "g-set": ("add", "read"),
    "pn-counter": ("add", "read"),
    "txn-list-append": ("txn",),
    "txn-rw-register": ("txn",),
    "unique-ids": ("generate",),
}


def argument(workload: str, f: str, random: Random, fresh: int) -> Any:
    match f:
        case "txn":
            write = "append" if workload == "txn-list-append" else "w"
            kinds = random.choices([Keyword("r"), Keyword(write)], k=random.randint(1, 4))
            return [
                [kind, random.randrange(3), None if kind == "r" else 10 * fresh + place]
                for place, kind in enumerate(kinds)
            ]
        case "add" if workload.endswith("counter"):
            return random.randint(-5, 4)
        case "add" | "broadcast":
            return fresh
        case "echo":
            return f"Please echo {fresh}"
    return None


def completed(workload: str, asked: Op, random: Random) -> Any:
    match asked.f:
        case "generate":
            return random.choice(ANYTHING)
        case "echo":
            return random.choice([{"echo": asked.value}, {"echo": random.choice(ANYTHING)}])
        case "read":
            return random.randint(-3, 3) if workload.endswith("counter") else random.choice(LISTS)
        case "txn":
            values = LISTS if workload == "txn-list-append" else ANYTHING
            return [
                [f, key, random.choice(values) if f == "r" else value]
                for f, key, value in asked.value
            ]
    return asked.value


def garbage(workload: str, random: Random) -> list[Op]:
    """A history of four processes, cut off anywhere, with a fault between."""
    ops: list[Op] = []
    running: dict[int, Op] = {}
    for step in range(random.randrange(60)):
        process = random.randrange(4)
        asked = running.pop(process, None)
        if asked is None:
            f = random.choice(FUNCTIONS[workload])
            extra = {"final?": True} if f == "read" and random.random() < 0.3 else {}
            value = argument(workload, f, random, step)
            running[process] = Op(step, step, "invoke", process, f, value, extra)
            ops.append(running[process])
        else:
            kind = random.choices(["ok", "info", "fail"], [8, 1, 1])[0]
            value = completed(workload, asked, random) if kind == "ok" else asked.value
            ops.append(Op(step, step, kind, process, asked.f, value, asked.extra))  # type: ignore[arg-type]
        if random.random() < 0.05:
            ops.append(Op(step, step, "info", Keyword("nemesis"), "start-partition", ":one"))
    return [
        Op(at, at * 1000, op.type, op.process, op.f, op.value, op.extra)
        for at, op in enumerate(ops)
    ]


@pytest.mark.parametrize("workload", FUNCTIONS)
def test_whatever_nodes_answer_is_judged_told_and_written(workload: str) -> None:
    random, judging = Random(workload), judge(workload)
    verdicts = set()
    for _ in range(60):
        history = garbage(workload, random)
        for options in ({}, {"strict": True}):
            result = judging.check(history, options)
            verdicts.add(str(result["valid?"]))
            findings = judging.explain(result, history)
            assert any(each.invalidating for each in findings) == (result["valid?"] is False)
            assert all(each.sentence for each in findings)
            if judging.figures:
                assert judging.figures(result)
            content = printable(result)
            assert edn.dumps(content, pretty=True)
            assert json.dumps(content, default=plain)
    assert "False" in verdicts
