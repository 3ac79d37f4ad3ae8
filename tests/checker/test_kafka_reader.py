"""The judge of one more reader (`workloads.kafka.reader`): each way to be wrong is found."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.history import Op
from workloads.kafka.reader import Record, problems

Mutant = Callable[[list[Record]], list[Record]]


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


def test_a_right_reader_has_no_problems() -> None:
    assert problems(HISTORY, RIGHT) == []
    assert (
        problems(HISTORY, [*RIGHT, Record("a", 2, 12)]) == []
    )  # whether it happened, no client knows


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        (lambda seen: seen[:2] + seen[3:], "key a: the reader never saw offset 1"),
        (lambda seen: seen[:1] + seen[2:], "key b: the reader skipped offsets 0 to 0"),
        (lambda seen: seen + seen[:1], "key a: the reader saw offset 0 again"),
        (lambda seen: seen[::-1], "key b: the reader saw offset 1 again, or after a later one"),
        (lambda seen: seen[:-1], "key b: the reader never saw offset 2"),
        (lambda seen: [Record("a", 0, 11), *seen[1:]], "the reader saw 11, clients 10"),
        (lambda seen: [], "the reader never saw"),
    ],
    ids=[
        "skips",
        "skips the first",
        "doubles",
        "backwards",
        "stops early",
        "another message",
        "blind",
    ],
)
def test_a_wrong_reader_is_found(mutant: Mutant, sentence: str) -> None:
    found = problems(HISTORY, mutant(RIGHT))
    assert any(sentence in each for each in found), found


def test_few_of_many_problems_are_told() -> None:
    history = [each for at in range(9) for each in op(at, "ok", "send", [["send", "a", [at, at]]])]
    assert len(problems(history, [])) == 4
    assert problems(history, [])[-1] == "... and 6 more of this kind"
