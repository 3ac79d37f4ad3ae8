"""The lin-kv workload on the seam: what it asks for, and how it judges."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from runs.history import Op
from workloads.interface import Draft, Turn
from workloads.lin_kv import LinKvGenerator, check, explain


def history(*lines: tuple[Any, ...]) -> list[Op]:
    """Lines `process type f key argument`, as positions in time."""
    ops = []
    for index, (process, kind, f, key, argument) in enumerate(lines):
        ops.append(Op(index, index * 1_000_000, kind, process, f, [key, argument]))
    return ops


def drafts(
    generator: LinKvGenerator, workers: Sequence[Any], rounds: int = 300
) -> list[tuple[int, Draft]]:
    return [(worker, generator.next(Turn(worker, 0))) for _ in range(rounds) for worker in workers]


def test_half_of_a_group_reads_and_the_rest_contends_on_the_same_key() -> None:
    asked = drafts(LinKvGenerator(random.Random(1), node_count=2, concurrency=8), range(8))
    assert {draft.value[0] for worker, draft in asked if worker < 4} == {0}
    assert {draft.value[0] for worker, draft in asked if worker >= 4} == {1}
    assert {draft.f for worker, draft in asked if worker % 4 < 2} == {"read"}
    changes = [draft.f for worker, draft in asked if worker % 4 >= 2]
    assert set(changes) == {"write", "cas"}
    assert 0.28 < changes.count("write") / len(changes) < 0.38


def test_a_single_worker_changes_the_key_too() -> None:
    generator = LinKvGenerator(random.Random(1), node_count=1, concurrency=1)
    assert {draft.f for _, draft in drafts(generator, [0])} == {"write", "cas"}


def test_a_key_that_met_too_many_processes_is_left() -> None:
    generator = LinKvGenerator(random.Random(1), node_count=2, concurrency=4)
    for lost in range(16):
        generator.update(Op(lost, 0, "info", 4 * lost, "write", [0, 1]))
    assert generator.next(Turn(3, 0)).value[0] == 0
    generator.update(Op(16, 0, "info", 64, "write", [0, 1]))
    assert generator.next(Turn(3, 0)).value[0] == 1


ASKED_1, WROTE_1 = (0, "invoke", "write", 0, 1), (0, "ok", "write", 0, 1)
ASKED, READ_1 = (1, "invoke", "read", 0, None), (1, "ok", "read", 0, 1)
READ_NULL = (1, "ok", "read", 0, None)


@pytest.mark.parametrize(
    ("lines", "failures"),
    [
        (
            [ASKED_1, ASKED, READ_1, WROTE_1]
            + [(0, kind, "cas", 0, [1, 2]) for kind in ("invoke", "ok")],
            [],
        ),
        # Failed operations did not happen, and unknown ones may have.
        ([ASKED_1, (0, "fail", "write", 0, 1), ASKED, READ_1], [0]),
        ([ASKED_1, (0, "info", "write", 0, 1), ASKED, READ_1], []),
        ([ASKED_1, ASKED, READ_1], []),
        # Null is what a key holds before its first write. (To the real tool it is anything.)
        ([ASKED, READ_NULL, ASKED_1, WROTE_1], []),
        ([ASKED_1, WROTE_1, ASKED, READ_NULL], [0]),
        # One and true are two values, and keys are judged one by one.
        ([ASKED_1, WROTE_1, ASKED, (1, "ok", "read", 0, True)], [0]),
        ([ASKED_1, WROTE_1, (1, "invoke", "read", 1, None), (1, "ok", "read", 1, 1)], [1]),
    ],
)
def test_a_history_is_judged(lines: list[tuple[Any, ...]], failures: list[int]) -> None:
    result = check(history(*lines))
    assert (result["valid?"], result["failures"]) == (not failures, failures)
    assert {key: each["valid?"] for key, each in result["results"].items()} == {
        key: key not in failures for key in result["results"]
    }


def test_a_stale_read_is_explained_with_the_fewest_operations() -> None:
    stale = history(
        (0, "invoke", "write", "a", 1),
        (0, "ok", "write", "a", 1),
        (2, "invoke", "read", "b", None),
        (0, "invoke", "write", "a", 2),
        (0, "ok", "write", "a", 2),
        (1, "invoke", "read", "a", None),
        (2, "fail", "read", "b", None),
        (1, "ok", "read", "a", 1),
        (1, "invoke", "read", "a", None),
        (1, "ok", "read", "a", 2),
    )
    result = check(stale)
    assert (result["valid?"], result["failures"]) == (False, ["a"])
    (finding,) = explain(result, stale)
    assert (finding.type, finding.invalidating) == ("nonlinearizable", True)
    assert "process 1 read 1" in finding.sentence
    assert "could only hold 2 (process 0's write)" in finding.sentence
    assert [op.index for op in finding.witness] == [3, 5, 7]
