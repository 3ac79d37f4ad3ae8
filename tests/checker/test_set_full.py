"""The set checker on random histories, against its definitions word by word.

`tests/datadriven/judgements/small.txt` has small ones by hand.
"""

from random import Random
from typing import Any

from runs.history import Op, completions
from workloads.set_full import SetHistory


def plainly(ops: list[Op]) -> dict[int, tuple[str, Any, Any, Any]]:
    """The definitions of `workloads.set_full`, element by element and read by read."""
    pairs = completions(ops)
    reads = [(i, c) for i, c in pairs.items() if ops[c].f == "read" and ops[c].type == "ok"]
    found = {}
    for added, op in enumerate(ops):
        if op.f != "add" or op.type != "invoke":
            continue
        mine = [(i, c) for i, c in reads if c > added]
        having = [(i, c) for i, c in mine if op.value in ops[c].value]
        lacking = [i for i, c in mine if op.value not in ops[c].value]
        acknowledged = [c for i, c in pairs.items() if i == added and ops[c].type == "ok"]
        known = min([c for _, c in having] + acknowledged, default=None)
        present = max((i for i, _ in having), default=-1)
        absent = max(lacking, default=-1)
        if present > absent:
            outcome = "stable"
        elif known is not None and absent > max(present, known):
            outcome = "lost"
        else:
            outcome = "never-read"
        found[op.value] = (outcome, known, present, absent)
    return found


def random_history(random: Random) -> list[Op]:
    """Adds and reads of a few processes; each read has any of the elements."""
    ops: list[Op] = []
    running: dict[int, Op] = {}
    elements = 0
    for _ in range(random.randrange(2, 40)):
        process = random.randrange(4)
        before = running.pop(process, None)
        now = len(ops) * 1_500_000
        if before is None:
            if random.random() < 0.4:
                before, elements = (
                    Op(len(ops), now, "invoke", process, "add", elements),
                    elements + 1,
                )
            else:
                before = Op(len(ops), now, "invoke", process, "read")
            running[process] = before
            ops.append(before)
            continue
        kind = random.choices(["ok", "info", "fail"], [8, 1, 1])[0]
        value = before.value
        if before.f == "read" and kind == "ok":
            value = [
                each for each in range(elements) if random.random() < random.choice([0.5, 0.9])
            ]
        ops.append(Op(len(ops), now, kind, process, before.f, value))  # type: ignore[arg-type]
    return ops


def test_random_histories_are_judged_by_the_definitions() -> None:
    outcomes = set()
    for seed in range(1500):
        ops = random_history(Random(seed))
        found = {
            each.value: (
                str(each.outcome),
                each.known and each.known.index,
                each.last_present.index if each.last_present else -1,
                each.last_absent.index if each.last_absent else -1,
            )
            for each in SetHistory.of(ops, "add").elements.values()
        }
        assert found == plainly(ops), seed
        outcomes |= {each[0] for each in found.values()}
    assert outcomes == {"stable", "lost", "never-read"}
