"""docs/learn/why-prefetch-fails.md, claim by claim: it is the order, not the holes."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from leaderless.core.strategies.prefetch import PrefetchLog
from leaderless.core.strategies.prefetch_sealed import SealedLog
from runs.history import Op
from tests.checker.history_language import history
from tests.toy_log import VirtualRun, run_of
from tests.why_prefetch_fails import DOCUMENT, PICTURE, first_caught, picture, told
from workloads.kafka.checker import check
from workloads.kafka.shrink import smallest


@pytest.fixture(scope="module")
def caught() -> VirtualRun:
    return first_caught("poll-skip")


@pytest.fixture(scope="module")
def smallest_history(caught: VirtualRun) -> list[Op]:
    return smallest(caught.history, ["poll-skip"])


def in_document(after: str) -> list[str]:
    """The first indented lines of the document that follow `after`."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(after)[2]
    block = re.search(r"(^    .+\n)+", text, re.MULTILINE)
    assert block, after
    return [line.strip() for line in block.group().splitlines()]


def anomalies(ops: list[Op]) -> set[str]:
    return set(check(ops, {})["error-types"])


def test_the_bench_catches_prefetch_and_shrinks_it_to_the_document(
    smallest_history: list[Op],
) -> None:
    assert anomalies(smallest_history) == {"poll-skip"}
    assert told(smallest_history) == in_document("finds these lines again -->")


def test_none_of_its_operations_can_be_left_out(smallest_history: list[Op]) -> None:
    for index in range(0, len(smallest_history), 2):
        assert anomalies(smallest_history[:index] + smallest_history[index + 2 :]) != {"poll-skip"}


def test_without_the_last_poll_the_message_is_lost(smallest_history: list[Op]) -> None:
    assert "lost-write" in anomalies(smallest_history[:-2])


def test_the_picture_is_of_the_same_run(caught: VirtualRun, smallest_history: list[Op]) -> None:
    drawn = picture(caught, smallest_history)
    assert message_ids(drawn) == message_ids(PICTURE.read_text(encoding="utf-8")), (
        "the picture is old: run python -m tests.why_prefetch_fails"
    )


def message_ids(svg: str) -> list[str]:
    return re.findall(r"message (\d+): (\w+) to ([\w-]+)", svg)


def test_a_history_with_holes_is_valid() -> None:
    lines = in_document("the checker does not mind:")
    words = [re.sub(r"(\d+)@", r"x=\1@", line, count=1) for line in lines]
    assert check(history("\n".join(words)), {})["valid?"] is True


FOUR_WAYS: list[Any] = [
    (lambda context: PrefetchLog(context, block=16), True, {"poll-skip", "int-poll-skip"}),
    (lambda context: PrefetchLog(context, block=1), False, {"poll-skip"}),
    (lambda context: SealedLog(context, size=16), True, set()),
    (lambda context: SealedLog(context, size=1), False, set()),
]


@pytest.mark.parametrize(("strategy", "with_holes", "found"), FOUR_WAYS)
def test_it_is_the_order_and_not_the_holes(
    strategy: Callable[..., Any], with_holes: bool, found: set[Any]
) -> None:
    run = run_of(strategy, seed="1", rate=200, time_limit_s=5, latency_ms=5, latency_dist="uniform")
    assert (holes(run.history) > 0) is with_holes
    assert anomalies(run.history) == found


def holes(ops: list[Op]) -> int:
    """How many offsets below the highest of their key hold nothing."""
    offsets: defaultdict[str, set[int]] = defaultdict(set)
    for op in ops:
        if op.f == "poll" and op.type == "ok":
            for key, pairs in op.value[0][1].items():
                offsets[key].update(offset for offset, _ in pairs)
    return sum(max(each) + 1 - len(each) for each in offsets.values())
