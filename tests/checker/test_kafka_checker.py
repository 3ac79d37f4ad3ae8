"""The kafka checker agrees with the real one and answers whatever it reads; judging a reader.

`tests/datadriven/judgements/kafka.txt` has for each type of anomaly the smallest history that must be rejected,
and one close by that must pass.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import edn
from runs.history import Op, OpType, edn_line, read_history
from tests.checker.history_language import history
from tests.checker.random_histories import POLL, CorrectLog, broken_log, mutated_histories
from tests.reader import Record, problems
from tests.stores import EXPECTED, STORES
from workloads.kafka.checker import check, error_count, explain
from workloads.kafka.checker.clojure import clojure_hash, map_order, set_order
from workloads.kafka.checker.compose import polls
from workloads.kafka.checker.observed import Facts, scalar

# ---------------------------------------------------------------- the real tool


REAL = sorted(STORES.iterdir())


def test_there_are_90_judged_histories_and_five_stores() -> None:
    assert len(EXPECTED) == 90
    assert len(REAL) == 5


@pytest.mark.parametrize("number", range(len(EXPECTED)), ids=lambda at: EXPECTED[at]["file"])
def test_agrees_with_the_judged_history(judged: list[Path], number: int) -> None:
    expected, result = EXPECTED[number], check(read_history(judged[number]), {})
    assert result["valid?"] == expected["valid"]
    assert sorted(result["bad-error-types"]) == sorted(expected["bad"])
    counts = {each: error_count(each, result[each]) for each in result["error-types"]}
    assert counts == expected["errors"]
    assert round(result["worst-realtime-lag"]["lag"] * 1e9) == expected["lag"]
    assert _cases(result, "lost-write", "key", "value") == sorted(expected["lost"])
    assert _cases(result, "duplicate", "key", "value", "count") == sorted(expected["dups"])


def _cases(result: dict[Any, Any], anomaly: str, *fields: str) -> list[Any]:
    cases = result.get(anomaly, {"errs": ()})["errs"]
    return sorted([case[field] for field in fields] for case in cases)


@pytest.mark.parametrize("store", REAL, ids=lambda store: store.name)
def test_agrees_with_results_edn_of_a_real_run_to_the_last_witness(store: Path) -> None:
    real = edn.loads((store / "results.edn").read_text())["workload"]
    assert edn.loads(edn.dumps(check(read_history(store / "history.edn"), {}))) == real


def test_walks_maps_and_sets_in_the_order_of_the_real_one() -> None:
    # Hashes of (hash 1), (hash "a") ... in Clojure; the order of a real poll's answer with 17 keys.
    assert [clojure_hash(value) for value in (0, 1, "")] == [0, 1392991556, 0]
    printed = _largest_map(REAL[0])
    assert [key for key, _ in map_order(dict(sorted(printed.items())))] == list(printed)
    assert set_order(printed) == list(printed)


def _largest_map(store: Path) -> dict[str, list[list[int]]]:
    answers = (
        op.value[0][1]
        for op in read_history(store / "history.edn")
        if op.f == "poll" and op.type == "ok"
    )
    return max(answers, key=len)


# ---------------------------------------------------------------- any history


@given(mutated_histories(), st.booleans(), st.booleans())
def test_answers_whatever_the_history(ops: list[Any], ww_deps: bool, strict: bool) -> None:
    options = {"ww_deps": ww_deps, "strict": strict, "nodes": ["n0", "n1"], "concurrency": 3}
    result = check(ops, options)
    assert result["valid?"] in (True, False, "unknown")
    assert {each.type for each in explain(result, ops)} == set(result["error-types"])
    edn.dumps(result, pretty=True)


@given(st.integers(0, 2**32), st.integers(2, 60))
def test_a_correct_log_is_valid(seed: int, count: int) -> None:
    ops = CorrectLog(seed).run(count)
    result = check(ops, {"strict": True, "nodes": ["n0", "n1"], "concurrency": 3})
    # The final assignments carry no mark here, so a strict check has nothing to say.
    assert (result["valid?"], result["bad-error-types"]) == ("unknown", ())
    assert check(ops, {})["valid?"] is True


def _renamed(op: Op, name: Callable[..., Any], number: Callable[..., Any]) -> Op:
    """`op` with every key through `name` and every offset through `number` (key, offset)."""
    if op.f == "assign":
        value = [name(key) for key in op.value]
    elif op.f == "send":
        ((f, key, sent),) = op.value
        pair = [number(key, sent[0]), sent[1]] if isinstance(sent, list) else sent
        value = [[f, name(key), pair]]
    elif op.f == "poll" and len(op.value[0]) == 2:
        answer = {
            name(key): [[number(key, offset), message] for offset, message in run]
            for key, run in op.value[0][1].items()
        }
        value = [[POLL, answer]]
    else:
        value = op.value
    return Op(op.index, op.time, op.type, op.process, op.f, value, op.extra)


@given(st.integers(0, 2**32), st.integers(2, 40), st.permutations(["0", "1", "2"]))
def test_names_of_keys_do_not_matter(seed: int, count: int, names: list[str]) -> None:
    ops = broken_log(seed, count)
    renamed = [_renamed(op, lambda key: names[int(key)], lambda _, offset: offset) for op in ops]
    assert _summary(renamed) == _summary(ops)


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_holes_in_the_offsets_do_not_matter(seed: int, count: int) -> None:
    ops = broken_log(seed, count)
    spread = [_renamed(op, lambda key: key, lambda _, offset: 7 * offset + 3) for op in ops]
    assert _summary(spread) == _summary(ops)


def _summary(ops: list[Op]) -> tuple[object, ...]:
    result = check(ops, {})
    counts = {each: result[each].get("count") for each in result["error-types"]}
    return result["valid?"], counts


def test_the_language_of_histories_says_what_it_means() -> None:
    lines = [edn_line(op) for op in history("0 send x=1@0\n1 poll x=1@0 fail\n1 assign x rewind")]
    head = "{:index 1, :time 2000000, :type :ok, :process 0, :f :send, "
    assert lines[1] == head + ':value [[:send "x" [0 1]]]}'
    assert lines[3].endswith(':type :fail, :process 1, :f :poll, :value [[:poll {"x" [[0 1]]}]]}')
    assert lines[5].endswith(':value ["x"], :seek-to-beginning? true}')


def test_messages_are_equal_only_when_they_are_the_same_json() -> None:
    values = [1, 1.0, True, "1", "true", "1.0", [1], {"a": 1}, None, '{"a" 1}']
    assert len({scalar(value) for value in values}) == len(values)
    assert scalar({"a": [1, 2]}) == scalar({"a": [1, 2]})


@pytest.mark.parametrize("pairs", [5, "ab", {"a": 1}, [7], [[3]]])
def test_what_is_no_pair_of_offset_and_message_is_never_passed_over(pairs: Any) -> None:
    ops = history("0 send x=1@0\n1 poll x=1@0\n2 poll")
    ops[-1].value = [["poll", {"x": pairs}]]
    assert check(ops, {})["bad-error-types"][0] == "malformed-offset"


def test_strict_checking_needs_to_know_the_nodes() -> None:
    with pytest.raises(ValueError, match="nodes and the concurrency"):
        check(history("0 send x=1@0\n0 crash\n1 assign x rewind\n1 poll x=1@0"), {"strict": True})


# ---------------------------------------------------------------- one more reader


HISTORY = history("""
0 send a=10@0
1 send a=11@1
2 send a=12 info
3 poll b=20@0,21@1
4 send b=22@2
5 send b=23 fail
""")
RIGHT = [
    Record("a", 0, 10), Record("b", 0, 20), Record("a", 1, 11), Record("b", 1, 21), Record("b", 2, 22),
]  # fmt: skip


MANY = history("\n".join(f"{at} send a={at}@{at}" for at in range(9)))


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (RIGHT, []),
        ([*RIGHT, Record("a", 2, 12)], []),  # whether it happened, no client knows
        (RIGHT[:2] + RIGHT[3:], ["key a: the reader never saw offset 1"]),
        (RIGHT[:1] + RIGHT[2:], ["key b: the reader skipped offsets 0 to 0"]),
        (RIGHT + RIGHT[:1], ["key a: the reader saw offset 0 again"]),
        (RIGHT[::-1], ["key b: the reader saw offset 1 again, or after a later one"]),
        (RIGHT[:-1], ["key b: the reader never saw offset 2"]),
        ([Record("a", 0, 11), *RIGHT[1:]], ["the reader saw 11, clients 10"]),
        ([], ["the reader never saw"]),
    ],
)
def test_a_reader_is_judged(seen: list[Record], told: list[str]) -> None:
    found = problems(HISTORY, seen)
    assert bool(found) == bool(told)
    assert all(any(sentence in each for each in found) for sentence in told), found


def test_few_of_many_problems_are_told() -> None:
    assert len(problems(MANY, [])) == 4
    assert problems(MANY, [])[-1] == "... and 6 more of this kind"


def test_the_lag_of_a_poll_is_that_of_its_processes_oldest_position() -> None:
    rows: tuple[tuple[int, str, OpType, int, int, str], ...] = (
        (0, "send", "ok", 0, 10, '[["send","a",[0,7]]]'),
        (0, "send", "ok", 11, 20, '[["send","a",[1,8]]]'),
        (0, "send", "info", 12, 21, '[["send","b",1]]'),
        (0, "send", "fail", 12, 22, '[["send","a",[9,1]]]'),
        (1, "assign", "ok", 22, 23, '["a","b"]'),
        (1, "poll", "ok", 30, 31, '[["poll",{}]]'),  # offset 0 of a is known since 10
        (1, "poll", "ok", 40, 41, '[["poll",{"a":[[0,7]]}]]'),  # offset 1 since 20
        (1, "poll", "ok", 50, 51, '[["poll",{"a":[[1,{"x":[]}]],"c":[[4,"s"],[5,null]]}]]'),
        (1, "assign", "ok", 52, 53, '["b"]'),
        (1, "poll", "ok", 60, 61, '[["poll",{}]]'),
        (2, "poll", "ok", 60, 62, '[["poll",{"a":[[0,7]],"c":[[6,1]]}]]'),
        (2, "poll", "info", 70, 71, '[["poll"]]'),
        (3, "poll", "ok", 80, 81, '[["poll",{"a":[]}]]'),  # it knows that it polled nothing of a
        (3, "subscribe", "ok", 82, 83, "[]"),  # what it has is unknown
        (3, "poll", "ok", 84, 85, '[["poll",{}]]'),
    )
    ordered = sorted(rows, key=lambda row: row[4])
    ops = [Op(0, row[3], "invoke", row[0], row[1], None) for row in ordered]
    ops += [Op(0, row[4], row[2], row[0], row[1], json.loads(row[5])) for row in ordered]
    facts = Facts(ops, pairs={len(ordered) + at: at for at in range(len(ordered))})
    found = [(op.process, now_ns, position.lag(now_ns)) for op, now_ns, position in polls(facts)]
    assert sorted(found) == [
        (1, 30, 20),
        (1, 40, 20),
        (1, 50, 0),
        (1, 60, 0),
        (2, 60, 40),
        (3, 80, 70),
        (3, 84, 0),
    ]
