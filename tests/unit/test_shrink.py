"""Shrinking: as small as can be, and never an anomaly that was not there."""

import pytest

from tests.checker.history_language import history
from workloads.kafka.checker import check
from workloads.kafka.shrink import smallest
from workloads.shrink import shrink


def sums(ops):
    """A toy: the numbers 3 and 5 together are wrong, and so is any history without a 1."""
    values = {op.value for op in ops if op.type == "ok"}
    wrong = {"both"} if values >= {3, 5} else set()
    return wrong | (set() if 1 in values else {"no 1"})


def toy(*values):
    ops = history("\n".join(f"{value} crash ok" for value in values))
    for op in ops:
        op.value = op.process
    return ops


def test_only_what_matters_stays():
    smaller = shrink(toy(*range(1, 40)), sums)
    assert [op.value for op in smaller if op.type == "ok"] == [1, 3, 5]


def test_what_is_wanted_is_kept():
    smaller = shrink(toy(2, 3, 4, 5), sums, wanted=lambda name: name == "both")
    assert [op.value for op in smaller if op.type == "ok"] == [3, 5]


def test_a_history_without_anomaly_is_refused():
    with pytest.raises(ValueError, match="nothing is wrong"):
        shrink(toy(1, 2), sums)


def test_no_poll_is_left_out_that_would_make_a_message_look_lost():
    ops = history("""
        0 send x=1@0
        0 send x=2@1
        0 send x=3@2
        0 send y=7@0
        0 send y=8@1
        1 poll x=1@0
        1 poll x=2@1
        1 poll x=3@2
        2 poll x=1@0,2@1,3@2
        1 poll y=8@1
        2 poll y=7@0,8@1
        2 poll x=3@2
    """)
    smaller = smallest(ops, ["nonmonotonic-poll"])
    assert check(smaller, {})["error-types"] == ("nonmonotonic-poll",)
    assert [(op.process, op.value) for op in smaller if op.f == "poll" and op.type == "ok"] == [
        (2, [["poll", {"x": [[2, 3]]}]]),
        (2, [["poll", {"x": [[2, 3]]}]]),
    ]
