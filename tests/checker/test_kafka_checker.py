"""The kafka checker agrees with the real one and answers whatever it reads; `--strict`; judging a reader.

For each type of anomaly the smallest history that must be rejected, and one close by that must pass.
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
from workloads.interface import Placement
from workloads.kafka import JUDGE
from workloads.kafka.checker import check, error_count, explain
from workloads.kafka.checker.compose import ALLOWED, polls
from workloads.kafka.checker.observed import Facts, clojure_hash, map_order, scalar, set_order

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
    ours = edn.loads(edn.dumps(check(read_history(store / "history.edn"), {})))
    assert ours == real


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


# ---------------------------------------------------------------- --strict


# Two nodes, two workers: processes 0, 2, ... talk to n0 and 1, 3, ... to n1.
OPTIONS = {"strict": True, "nodes": ["n0", "n1"], "concurrency": 2}
REPLICATED = """
0 send x=1@0
0 crash
1 crash
2 assign x rewind
3 assign x rewind
2 poll x=1@0
3 poll x=1@0
"""
UNREPLICATED = """
0 send x=1@0
1 poll x=1@0      # before the final polls: does not count
0 crash
1 crash
2 assign x rewind
3 assign x rewind
2 poll x=1@0
3 poll
"""


SHORT = "0 send x=1@0\n1 poll x=1@0"  # without final polls
ONE_NODE, THREE_NODES = {"nodes": ["n0"]}, {"nodes": ["n0", "n1", "n2"]}


@pytest.mark.parametrize(
    ("text", "options", "valid", "accused"),
    [
        (REPLICATED, {}, True, set()),
        (UNREPLICATED, {"strict": False}, True, set()),
        (UNREPLICATED, {}, False, {"n1"}),
        (UNREPLICATED, ONE_NODE, True, set()),  # its workers count together
        (REPLICATED, THREE_NODES, "unknown", set()),  # n2 has no worker
        (UNREPLICATED, THREE_NODES, False, {"n1"}),
        (SHORT, {}, "unknown", set()),
        (f"{SHORT},1@1", {}, False, set()),  # invalid anyway
    ],
)
def test_a_strict_check_asks_every_node(
    text: str, options: dict[str, Any], valid: Any, accused: set[str]
) -> None:
    ops = history(text)
    result = check(ops, OPTIONS | options)
    cases = result.get("unreplicated", {"errs": ()})["errs"]
    assert (result["valid?"], {case["node"] for case in cases}) == (valid, accused)
    assert all((case["key"], case["value"]) == ("x", 1) for case in cases)
    for finding in explain(result, ops) if accused else ():
        assert "node n1" in finding.sentence
        assert [op.f for op in finding.witness] == ["send"]


@pytest.mark.parametrize("offset", [-1, 1.5, 0.0, True, "3", [1]])
@pytest.mark.parametrize("f", ["send", "poll"])
def test_an_offset_that_cannot_be_one_is_named_with_its_operation(f: str, offset: Any) -> None:
    """The real checker gives up here, without a verdict."""
    ops = history(REPLICATED)
    told = next(op for op in ops if op.f == f and op.type == "ok")
    pair = [offset, 1]
    told.value = [["send", "x", pair] if f == "send" else ["poll", {"x": [pair]}]]
    for options in ({}, OPTIONS):
        result = check(ops, options)
        assert result["bad-error-types"] == ("malformed-offset",)
        (finding,) = explain(result, ops)
        assert f'message 1 of key "x" is at offset {edn.dumps(offset)}.' in finding.sentence
        assert finding.witness == [told]


@pytest.mark.parametrize("pairs", [5, "ab", {"a": 1}, [7], [[3]]])
def test_what_is_no_pair_of_offset_and_message_is_never_passed_over(pairs: Any) -> None:
    ops = history("0 send x=1@0\n1 poll x=1@0\n2 poll")
    ops[-1].value = [["poll", {"x": pairs}]]
    assert check(ops, {})["bad-error-types"][0] == "malformed-offset"


@pytest.mark.parametrize("offset", [None, False])
def test_an_offset_that_is_not_told_is_refused_by_a_strict_check_only(offset: Any) -> None:
    """The real checker judges the rest of such a history."""
    ops = history(REPLICATED)
    ops[-1].value = [["poll", {"x": [[offset, 1]]}]]
    assert check(ops, {})["valid?"] is True
    result = check(ops, OPTIONS)
    assert result["bad-error-types"] == ("untold-offset",)
    (finding,) = explain(result, ops)
    assert finding.sentence == 'Process 3 was not told at which offset message 1 of key "x" is.'
    assert finding.witness == [ops[-1]]


def test_strict_checking_needs_to_know_the_nodes() -> None:
    with pytest.raises(ValueError, match="nodes and the concurrency"):
        check(history(REPLICATED), {"strict": True})


# ---------------------------------------------------------------- one more reader


def op(index: int, kind: Any, f: str, value: Any) -> list[Op]:
    """An operation and its completion, by a process of its own."""
    return [Op(2 * index, 0, "invoke", index, f), Op(2 * index + 1, 0, kind, index, f, value)]


HISTORY = [
    *op(0, "ok", "send", [["send", "a", [0, 10]]]),
    *op(1, "ok", "send", [["send", "a", [1, 11]]]),
    *op(2, "info", "send", [["send", "a", 12]]),
    *op(3, "ok", "poll", [["poll", {"b": [[0, 20], [1, 21]]}]]),
    *op(4, "ok", "send", [["send", "b", [2, 22]]]),
    *op(5, "fail", "send", [["send", "b", 23]]),
]
RIGHT = [
    Record("a", 0, 10), Record("b", 0, 20), Record("a", 1, 11), Record("b", 1, 21), Record("b", 2, 22),
]  # fmt: skip


MANY = [each for at in range(9) for each in op(at, "ok", "send", [["send", "a", [at, at]]])]


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


# ----------------------------------------------------------------


# type -> (a history that shows it, one that differs in little and does not)
ANOMALIES = {
    "malformed-offset": (
        """
        0 send x=1@-1     # polls show another place, but nobody can compare the two
        0 send x=2@-2
        1 poll x=1@0,2@1
        """,
        """
        0 send x=1@0
        0 send x=2@-1 fail
        1 poll x=1@0
        """,
    ),
    "duplicate": (
        """
        0 send x=1@0
        1 poll x=1@0,1@1
        """,
        """
        0 send x=1@0
        1 poll x=1@0
        2 poll x=1@0      # read twice, but at the same offset
        """,
    ),
    "inconsistent-offsets": (
        """
        0 send x=1@0
        1 send x=2@0
        2 poll x=1@0
        3 poll x=2@0
        """,
        """
        0 send x=1@0
        1 send y=2@0      # the same offset of another key
        2 poll x=1@0 y=2@0
        """,
    ),
    "int-poll-skip": (
        """
        0 send x=1@0
        0 send x=2@1
        0 send x=3@2
        1 poll x=1@0,3@2
        2 poll x=1@0,2@1,3@2
        """,
        """
        0 send x=1@0
        0 send x=2@5      # a hole in the numbers is no hole in the log
        1 poll x=1@0,2@5
        """,
    ),
    "int-nonmonotonic-poll": (
        """
        0 send x=1@0
        0 send x=2@1
        1 poll x=2@1,1@0
        """,
        """
        0 send x=1@0
        0 send x=2@1
        1 poll x=1@0,2@1
        """,
    ),
    "int-send-skip": (
        """
        0 txn >x=1@0 >x=3@2
        1 send x=2@1
        2 poll x=1@0,2@1,3@2
        """,
        """
        0 txn >x=1@0 >x=3@1
        1 send x=2@2
        2 poll x=1@0,3@1,2@2
        """,
    ),
    "int-nonmonotonic-send": (
        """
        0 txn >x=1@1 >x=2@0
        1 poll x=2@0,1@1
        """,
        """
        0 txn >x=1@0 >x=2@1
        1 poll x=1@0,2@1
        """,
    ),
    "poll-skip": (
        """
        0 send x=1@0
        0 send x=2@1
        0 send x=3@2
        1 poll x=1@0
        1 poll x=3@2
        2 poll x=1@0,2@1,3@2
        """,
        """
        0 send x=1@0
        0 send x=2@1
        0 send x=3@2
        1 poll x=1@0
        1 assign y        # forgets x
        1 assign x
        1 poll x=3@2
        2 poll x=1@0,2@1,3@2
        """,
    ),
    "nonmonotonic-poll": (
        """
        0 send x=1@0
        1 poll x=1@0
        1 poll x=1@0
        """,
        """
        0 send x=1@0
        1 poll x=1@0 fail # the offsets stay as they were
        1 poll x=1@0
        """,
    ),
    "nonmonotonic-send": (
        """
        0 send x=1@1
        0 send x=2@0
        1 poll x=2@0,1@1
        """,
        """
        0 send x=1@1
        1 send x=2@0
        2 poll x=2@0,1@1
        """,
    ),
    "lost-write": (
        """
        0 send x=1@0
        0 send x=2@1
        1 poll x=2@1
        """,
        """
        0 send x=1 info   # may never have happened
        0 send x=2@1
        1 poll x=2@1
        """,
    ),
    "unseen": (
        """
        0 send x=1@0
        1 poll
        """,
        """
        0 send x=1 fail
        1 poll
        2 poll
        """,
    ),
    "G1a": (
        """
        0 send x=1 fail
        1 poll x=1@0
        """,
        """
        0 send x=1 info
        1 poll x=1@0
        1 poll
        """,
    ),
    "precommitted-read": (
        """
        0 txn >x=1@0 <x=1@0
        """,
        """
        0 send y=1@0
        0 txn >x=1@0 <y=1@0
        1 poll x=1@0 y=1@0
        """,
    ),
    "no-writer-of-value": (
        """
        0 send x=1@0
        1 poll x=1@0,2@1
        """,
        """
        0 send x=1@0
        2 send x=2 invoke # cut off by the end of the history
        1 poll x=1@0,2@1
        """,
    ),
    "G1c": (
        """
        0 txn >x=1@0 <y=1@0 invoke
        1 txn >y=1@0 <x=1@0
        0 txn >x=1@0 <y=1@0
        2 poll x=1@0 y=1@0
        """,
        """
        0 txn >x=1@0 invoke
        1 txn >y=1@0 <x=1@0
        0 txn >x=1@0
        2 poll x=1@0 y=1@0
        """,
    ),
    "G1c-realtime": (
        """
        1 poll x=1@0      # before it was even sent
        0 send x=1@0
        """,
        """
        0 send x=1 invoke
        1 poll x=1@0
        0 send x=1@0
        """,
    ),
    "strong-PL-2-cycle-exists": (
        """
        1 poll x=1@0
        0 send x=1@0
        """,
        """
        0 send x=1@0
        1 poll x=1@0
        """,
    ),
    "empty-transaction-graph": (
        """
        0 assign x
        """,
        """
        0 poll
        1 poll
        """,
    ),
}

WITH_WW = {
    "G0": (
        """
        0 txn >x=1@0 >y=2@1 invoke
        1 txn >x=2@1 >y=1@0
        0 txn >x=1@0 >y=2@1
        2 poll x=1@0,2@1 y=1@0,2@1
        """,
        """
        0 txn >x=1@0 >y=1@0 invoke
        1 txn >x=2@1 >y=2@1
        0 txn >x=1@0 >y=1@0
        2 poll x=1@0,2@1 y=1@0,2@1
        """,
    ),
    "G0-realtime": (
        """
        0 send x=1@1
        1 send x=2@0
        2 poll x=2@0,1@1
        """,
        """
        0 send x=1@1 invoke
        1 send x=2@0
        0 send x=1@1
        2 poll x=2@0,1@1
        """,
    ),
}
PAIRED = {  # a cycle and the statement that the model it breaks does not hold come together
    "G0": "PL-1-cycle-exists",
    "G0-realtime": "strong-PL-1-cycle-exists",
    "G1c": "PL-2-cycle-exists",
    "G1c-realtime": "strong-PL-2-cycle-exists",
}
ALL: list[tuple[str, str, str, dict[str, Any]]] = [
    (each, *pair, {}) for each, pair in ANOMALIES.items()
]
ALL += [(each, *pair, {"ww_deps": True}) for each, pair in WITH_WW.items()]


@pytest.mark.parametrize(("anomaly", "bad", "good", "options"), ALL, ids=[each[0] for each in ALL])
def test_each_anomaly_is_found_where_it_is_and_only_there(
    anomaly: str, bad: str, good: str, options: dict[str, Any]
) -> None:
    found = check(history(bad), options)
    assert anomaly in found["error-types"]
    assert (anomaly in found["bad-error-types"]) is (anomaly not in ALLOWED)
    assert check(history(good), options)["valid?"] is True


@pytest.mark.parametrize(("anomaly", "bad", "good", "options"), ALL, ids=[each[0] for each in ALL])
def test_each_anomaly_is_told_in_a_sentence_with_its_operations(
    anomaly: str, bad: str, good: str, options: dict[str, Any]
) -> None:
    ops = history(bad)
    result = check(ops, options)
    finding = next(each for each in explain(result, ops) if each.type == anomaly)
    assert finding.sentence.endswith(".")
    assert finding.count == error_count(anomaly, result[anomaly]) >= 1
    indices = {op.index for op in finding.witness}
    assert indices <= {op.index for op in ops}
    assert indices or anomaly.endswith("-cycle-exists") or anomaly == "empty-transaction-graph"
    assert explain(check(history(good), options), history(good)) == []


@pytest.mark.parametrize("anomaly", PAIRED)
def test_a_cycle_comes_with_the_model_that_it_rules_out(anomaly: str) -> None:
    bad = (ANOMALIES | WITH_WW)[anomaly][0]
    found = check(history(bad), {"ww_deps": anomaly in WITH_WW})
    assert PAIRED[anomaly] in found["error-types"]


def test_a_cycle_explains_each_of_its_steps() -> None:
    case = check(history(ANOMALIES["G1c-realtime"][0]), {})["G1c-realtime"]["errs"][0]
    assert [step["type"] for step in case["steps"]] == ["realtime", "wr"]
    assert case["cycle"][0] == case["cycle"][-1]
    assert case["steps"][1]["a-mop-index"] == case["steps"][1]["b-mop-index"] == 0


def test_a_duplicate_is_no_lost_write_when_its_last_place_lies_beyond_what_was_read() -> None:
    # 1 is at offsets 0 and 3; the highest message read is at 2, so 1 need not have been read.
    text = """
    0 send x=1@0
    0 send x=2@2
    1 poll x=2@2
    2 poll x=1@3 info
    """
    assert "lost-write" not in check(history(text), {})["error-types"]


def test_a_key_first_polled_by_the_last_operation_counts_as_unseen_like_in_the_real_checker() -> (
    None
):
    text = """
    0 send x=1 info
    1 poll x=1@0
    """
    assert check(history(text), {})["unseen"]["unseen"] == {"x": 1}
    assert "unseen" not in check(history(text + "\n1 poll"), {})["error-types"]


def test_a_message_that_nobody_sent_is_not_unseen() -> None:
    ops = history("1 assign x\n1 poll x=1@0")
    result = check(ops, {})
    assert set(result["error-types"]) == {"empty-transaction-graph", "no-writer-of-value"}
    assert len(explain(result, ops)) == 2


@pytest.mark.parametrize(
    ("text", "worst"),
    [
        (  # it counts from when the next offset was known
            """
            1 assign x        # 1 ms, 2 ms
            0 send x=1@0      # known at 4 ms
            1 poll            # invoked at 5 ms
            1 poll x=1@0
            """,
            {"time": 0.005, "process": 1, "key": "x", "lag": 0.001},
        ),
        (  # an assignment forgets the lag of other keys
            """
            1 assign x
            0 send x=1@0
            1 assign y
            1 poll
            """,
            {"lag": 0},
        ),
    ],
)
def test_the_worst_realtime_lag(text: str, worst: dict[str, Any]) -> None:
    assert check(history(text), {})["worst-realtime-lag"].items() >= worst.items()


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


def sentences(text: str, place: Placement | None = None) -> dict[str, str]:
    ops = history(text)
    return {each.type: each.sentence for each in JUDGE.findings(check(ops, {}), ops, place)}


def test_a_message_that_an_answer_held_is_not_told_as_missing_from_it() -> None:
    # 4 is at offsets 2 and 4; its last place counts, so from 2 to 4 an answer skips 4 itself and 5.
    text = """
    0 send x=1@0
    0 send x=2@1
    0 send x=4@2
    2 send x=5@3
    1 poll x=1@0,2@1,4@4
    3 poll x=1@0,2@1,4@2,5@3,4@4
    """
    told = sentences(text)
    assert (
        "in the log: 5. (4 is in the log more than once. The last place counts.)"
        in (told["int-poll-skip"])
    )
    assert "4 is in the log more than once" in told["int-nonmonotonic-poll"]


def test_what_came_out_of_order_was_not_missing() -> None:
    told = sentences("0 send x=1@0\n0 send x=2@1\n0 send x=3@2\n1 poll x=1@0,3@2,2@1")
    assert "without" not in told["int-poll-skip"]
    assert told["int-poll-skip"].endswith("at another place of that answer: 2.")


@pytest.mark.parametrize("polls", ["1 poll x=15@3,16@5", "1 poll x=15@3\n1 poll x=16@5"])
def test_what_came_behind_a_reader_does_not_acquit_the_log(polls: str) -> None:
    sends = "0 send x=15@3\n0 send x=16@5"
    behind = "8 was put at offset 4, behind a reader that had already seen 16."
    late = sentences(f"{sends}\n{polls}\n0 send x=8@4").values()
    assert any(told.endswith(f": 8. {behind}") for told in late)
    early = sentences(f"{sends}\n0 send x=8@4\n{polls}").values()
    assert any(told.endswith(": 8.") for told in early)
    assert not any(behind in told for told in early)


def test_causes_stand_before_what_follows_from_them() -> None:
    text = """
    0 send x=1@0
    1 send x=2@0
    2 poll x=1@0
    3 poll x=2@0
    0 send x=3@1
    0 send x=3@2
    2 poll x=3@2
    """
    assert list(sentences(text))[:2] == ["inconsistent-offsets", "duplicate"]


def test_processes_are_named_with_their_nodes() -> None:
    text = "0 send x=1@0\n0 send x=2@1\n3 poll x=2@1,1@0"
    place = Placement(("n0", "n1"), concurrency=2)
    assert sentences(text, place)["int-nonmonotonic-poll"].startswith("Process 3 (n1) got 2")
    assert sentences(text)["int-nonmonotonic-poll"].startswith("Process 3 got 2")
