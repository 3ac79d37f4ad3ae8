"""What is put into a trace where a node could not write the outcome of its cas."""

from typing import Any

from specs.store_order import lost_switches, with_outcomes

IDS = [["n0.a", 1]]


def step(name: str, **fields: Any) -> dict[str, Any]:
    return {"step": name, "node": "n0", **fields}


def at(length: int, name: str = "Refresh") -> dict[str, Any]:
    return step(name, length=length, epoch=0)


TRY = step("Try", ids=IDS)
UNKNOWN = step("Unknown", ids=IDS)


def test_a_newer_head_learnt_first_leaves_the_outcome_unknown() -> None:
    for newer in (at(2), at(2, "Answered")):
        assert with_outcomes([at(1), TRY, newer]) == [(0, at(1)), (2, UNKNOWN), (2, newer)]


def test_a_read_of_the_same_head_says_nothing_of_the_outcome() -> None:
    commit = step("Commit", base=0, entries=[{"slot": 1, "id": IDS[0], "appends": {}}])
    taken = with_outcomes([at(1), TRY, at(1), commit, at(2)])
    assert [event["step"] for _, event in taken] == ["Refresh", "Refresh", "Commit", "Refresh"]


def test_a_conflict_found_out_by_a_newer_head_is_put_before_that_head() -> None:
    """The cas was of a head that was gone: nobody can have seen it. So it has no outcome that is unknown."""
    conflict = step("Conflict")
    taken = with_outcomes([at(1), TRY, at(2), conflict, TRY, at(3)])
    assert taken == [(0, at(1)), (2, conflict), (2, at(2)), (5, UNKNOWN), (5, at(3))]


def test_death_and_the_end_leave_the_outcome_unknown() -> None:
    restart = step("Restart", incarnation="b")
    assert with_outcomes([at(1), TRY, restart])[1:] == [(2, UNKNOWN), (2, restart)]
    assert with_outcomes([at(1), TRY])[1:] == [(1, UNKNOWN)]


def test_a_read_under_way_during_a_conflict_is_left_out() -> None:
    conflict = step("Conflict")
    taken = with_outcomes([at(1), TRY, conflict, at(1), at(2)])
    assert taken == [(0, at(1)), (2, conflict), (4, at(2))]


def test_asking_again_without_an_answer_counts_as_a_read_of_the_same_head() -> None:
    taken = with_outcomes([at(1), TRY, UNKNOWN, TRY, UNKNOWN])
    assert taken == [(0, at(1)), (2, UNKNOWN), (3, at(1)), (4, UNKNOWN)]


def test_switches_nobody_heard_of() -> None:
    events = [step("TrySwitch", epoch=1), step("Fence", epoch=1), step("TrySwitch", epoch=2)]
    assert lost_switches(events) == (2,)
