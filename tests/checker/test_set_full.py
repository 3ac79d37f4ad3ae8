"""The set checker: small histories by hand, and random ones against the definitions word by word."""

import json
from random import Random
from typing import Any

import pytest

from runs import edn
from runs.history import Op, OpType, completions, printable
from workloads import judge
from workloads.set_full import SetHistory


def history(text: str) -> list[Op]:
    """A history of one word each: `a0` invokes the add of 0, `a0+` acknowledges it; `r2` invokes a read of
    process 2, `r2=01` completes it with 0 and 1. An add has its element for its process, plus 100.
    """
    ops: list[Op] = []
    for index, word in enumerate(text.split()):
        name, is_read, value = word[0], word[0] == "r", word[1:]
        if is_read:
            process, done, elements = value.partition("=")
            found: Any = [int(each) for each in elements] if done else None
            kind, op_process = ("ok" if done else "invoke"), int(process)
        else:
            kind = {"+": "ok", "?": "info", "-": "fail"}.get(value[-1], "invoke")
            found = int(value.rstrip("+?-"))
            op_process = 100 + found
        f = "read" if name == "r" else "add"
        ops.append(Op(index, index * 1_000_000, kind, op_process, f, found))  # type: ignore[arg-type]
    return ops


def check(text: str, **options: Any) -> dict[Any, Any]:
    return judge("g-set").check(history(text), options)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("a0 a0+", "never-read"),
        ("a0 r1 r1=", "never-read"),
        # A read that sees it, before, around, inside or after the add's completion.
        ("r1 a0 r1=0 a0+", "stable"),
        ("r1 a0 a0+ r1=0", "stable"),
        ("a0 r1 r1=0 a0+", "stable"),
        ("a0 r1 a0+ r1=0", "stable"),
        ("a0 a0+ r1 r1=0", "stable"),
        # A read that misses it proves something only if it was invoked when the element was known.
        ("r1 a0 r1= a0+", "never-read"),
        ("r1 a0 a0+ r1=", "never-read"),
        ("a0 r1 a0+ r1=", "never-read"),
        ("a0 a0+ r1 r1=", "lost"),
        # Known by a read, although nobody acknowledged the add.
        ("a0 r1 r1=0 a0? r1 r1=", "lost"),
        ("a0 a0? r1 r1=", "never-read"),
        ("a0 a0- r1 r1=0", "stable"),
        # It was missing, and came back; or came, and went.
        ("a0 a0+ r1 r1= r1 r1=0", "stable"),
        ("a0 a0+ r1 r1=0 r1 r1=", "lost"),
        # Invocations count: the read that lacks it was invoked before the one that has it.
        ("a0 a0+ r1 r2 r2=0 r1=", "stable"),
        # A read that nobody finished, and one before the add, say nothing.
        ("a0 a0+ r1 r1=0 r2", "stable"),
        ("r1 r1= a0 a0+ r2 r2=0", "stable"),
    ],
)
def test_what_became_of_an_element(text: str, outcome: str) -> None:
    result = check(text)
    counts = {name: result[f"{name}-count"] for name in ("stable", "lost", "never-read")}
    assert counts == {"stable": 0, "lost": 0, "never-read": 0} | {outcome: 1}
    assert result["valid?"] == {"stable": True, "lost": False, "never-read": "unknown"}[outcome]


def test_the_result_has_the_real_tools_entries() -> None:
    assert check("a0 a0+ r1 r1=0") == {
        "valid?": True,
        "attempt-count": 1,
        "stable-count": 1,
        "lost-count": 0,
        "lost": [],
        "never-read-count": 0,
        "never-read": [],
        "stale-count": 0,
        "stale": [],
        "worst-stale": [],
        "stable-latencies": {0: 0, 0.5: 0, 0.95: 0, 0.99: 0, 1: 0},
        "duplicated-count": 0,
        "duplicated": {},
        "unexpected-count": 0,
        "unexpected": [],
    }


def test_latencies_of_loss_are_from_known_to_the_last_read_that_has_it() -> None:
    """0 is known at 4 ms and read last at 8; 1 was read before that (known at 3) and read last at 6."""
    result = check("a0 a1 r2 r2=1 a0+ a1+ r2 r2=01 r2 r2=0 r2 r2=")
    assert result["lost"] == [0, 1]
    assert result["lost-latencies"] == {0: 3, 0.5: 4, 0.95: 4, 0.99: 4, 1: 4}
    assert "stable-latencies" not in result


def test_an_element_that_was_missing_for_a_time_is_stale_and_described() -> None:
    ops = history("a0 a0+ a1 r2 r2=1 a1+ r2 r3 r3=1 r2=0")
    result = judge("g-set").check(ops, {})
    assert (result["lost"], result["stale"], result["stable-count"]) == ([0], [1], 1)
    stale = {"element": 1, "outcome": "stable", "stable-latency": 2, "lost-latency": None}
    assert result["worst-stale"] == [stale | {"known": ops[4], "last-absent": ops[6]}]
    assert (result["stable-latencies"][0.5], result["lost-latencies"][1]) == (2, 5)
    written = printable(result)
    assert ":last-absent #jepsen.history.Op{:index 6" in edn.dumps(written, pretty=True)
    assert edn.loads(edn.dumps(written)) == written
    assert json.loads(json.dumps(written))["worst-stale"][0]["known"]["index"] == 4


@pytest.mark.parametrize("strict", [False, True])
def test_elements_that_come_twice_or_from_nowhere_are_invalid_only_if_strict(strict: bool) -> None:
    text = "a0 a0+ r1 r1=0007"
    result = check(text, strict=strict)
    assert (result["valid?"], result["duplicated"], result["unexpected"]) == (
        not strict,
        {0: 3},
        [7],
    )
    found = judge("g-set").explain(result, history(text))
    assert [(each.type, each.invalidating) for each in found] == [
        ("duplicated", strict),
        ("unexpected", strict),
    ]


def test_a_loss_is_told_with_the_operations_that_show_it() -> None:
    ops = history("a0 a1 a0+ a1+ r1 r1=01 r2 r2=1")
    (found,) = judge("g-set").explain(judge("g-set").check(ops, {}), ops)
    assert (found.type, found.count, found.invalidating) == ("lost", 1, True)
    assert [(op.index, op.value) for op in found.witness] == [(0, 0), (2, 0), (5, [0]), (7, [])]
    assert "Element 0 is lost: it was acknowledged at 0.002 s" in found.sentence
    assert "process 2 at 0.006 s" in found.sentence


def test_broadcast_is_judged_alike() -> None:
    ops = history("a0 a0+ r1 r1=")
    for op in ops:
        op.f = "broadcast" if op.f == "add" else op.f
    result = judge("broadcast").check(ops, {})
    assert result["lost"] == [0]
    figures = judge("broadcast").figures
    assert figures
    assert figures(result) == "1 elements: 0 stable, 1 lost, 0 never-read"


def test_elements_may_be_any_json_and_null_is_no_elements() -> None:
    values = [1, 1.0, True, "1", [1], {"a": 1}]
    kinds: tuple[OpType, ...] = ("invoke", "ok")
    ops = [Op(0, 0, kind, at, "add", value) for at, value in enumerate(values) for kind in kinds]
    ops += [Op(20, 1, "invoke", 9, "read"), Op(21, 1, "ok", 9, "read", [1, "1", [1], [1]])]
    ops += [Op(22, 2, "invoke", 8, "read"), Op(23, 2, "ok", 8, "read", None)]
    result = judge("g-set").check(ops, {})
    assert result["attempt-count"] == result["lost-count"] == 6
    assert result["duplicated"] == {"[1]": 2}


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
