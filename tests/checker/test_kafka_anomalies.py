"""For each type of anomaly the smallest history that must be rejected, and one close by that must pass."""

import json
from typing import Any

import pytest

from runs.history import Op, OpType
from tests.checker.history_language import history
from workloads.interface import Placement
from workloads.kafka import judge
from workloads.kafka.checker import check, error_count, explain
from workloads.kafka.checker.compose import ALLOWED, polls
from workloads.kafka.checker.observed import Facts

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


def test_realtime_lag_counts_from_when_the_next_offset_was_known() -> None:
    text = """
    1 assign x        # 1 ms, 2 ms
    0 send x=1@0      # known at 4 ms
    1 poll            # invoked at 5 ms
    1 poll x=1@0
    """
    worst = check(history(text), {})["worst-realtime-lag"]
    assert worst == {"time": 0.005, "process": 1, "key": "x", "lag": 0.001}


def test_an_assignment_forgets_the_lag_of_other_keys() -> None:
    text = """
    1 assign x
    0 send x=1@0
    1 assign y
    1 poll
    """
    assert check(history(text), {})["worst-realtime-lag"]["lag"] == 0


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
    return {each.type: each.sentence for each in judge().findings(check(ops, {}), ops, place)}


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
