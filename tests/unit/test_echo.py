"""The echo workload's checker."""

from runs.history import Op
from workloads.echo import check


def history(*steps):
    return [Op(index, index, *step) for index, step in enumerate(steps)]


def test_what_came_back_must_be_what_was_sent():
    asked = ("invoke", 0, "echo", "a")
    assert check(history(asked, ("ok", 0, "echo", {"echo": "a"})), {}) == {
        "valid?": True,
        "errors": [],
    }
    result = check(history(asked, ("ok", 0, "echo", {"echo": "b"})), {})
    assert result["valid?"] is False
    assert result["errors"] == [
        ["Expected a message with :echo", "a", "But received", {"echo": "b"}]
    ]


def test_no_answer_in_time_is_an_error():
    assert check(history(("invoke", 0, "echo", "a"), ("info", 0, "echo", "a")), {})["errors"]


def test_processes_are_told_apart():
    mixed = history(
        ("invoke", 0, "echo", "a"),
        ("invoke", 1, "echo", "b"),
        ("ok", 1, "echo", {"echo": "a"}),
        ("ok", 0, "echo", {"echo": "b"}),
    )
    assert len(check(mixed, {})["errors"]) == 2


def test_faults_and_what_was_under_way_at_the_end_are_left_out():
    steps = history(("info", "nemesis", "start-partition", None), ("invoke", 0, "echo", "a"))
    assert check(steps, {})["valid?"] is True
