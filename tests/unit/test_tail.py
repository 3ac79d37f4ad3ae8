"""The iterator of `Log.tail` (`leaderless.library.tail`): after an error, and with many keys."""

from collections.abc import Mapping

import anyio
import pytest

from leaderless import Record, open_log
from leaderless.errors import LogError
from leaderless.library.log import Log
from leaderless.library.tail import Tail

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

LARGE = "x" * 10_000


class Slow:
    """A log of which each answer has one record of each key, of `room` keys at most; some raise, and wait."""

    def __init__(self, ends: dict[str, int], room: int = 1) -> None:
        self.ends = ends
        self.room = room
        self.errors: list[Exception] = []

    async def keys(self) -> dict[str, int]:
        return dict(self.ends)

    async def read_many(self, offsets: Mapping[str, int], limit: int) -> dict[str, list[Record]]:
        await anyio.sleep(1.0)
        if self.errors:
            raise self.errors.pop()
        ready = [(key, at) for key, at in offsets.items() if at < self.ends[key]]
        return {key: [Record(key, at, None)] for key, at in ready[: self.room]}


async def test_a_new_record_of_any_key_comes_in_the_next_round() -> None:
    log = Slow({"long": 1000, "b": 0, "c": 0})
    tail = Tail(log, ["long", "b", "c"], "earliest", 0.2, limit=100)
    for round_number in range(20):
        await anext(tail)
        for key in "bc":
            log.ends[key] += 1
        assert [(await anext(tail))[:2] for _ in "bc"] == [("b", round_number), ("c", round_number)]


async def test_a_long_backlog_delays_no_other_key(url: str, log: Log) -> None:
    for _ in range(60):
        await log.append_many("long", [LARGE] * 80)
    async with open_log(url) as other:
        tail = other.tail(["long", "late"], {"long": 0})
        await anext(tail)
        await log.append("late", "new")
        await anyio.sleep(0.001)  # or the clock says that the last look was now
        before = 1
        while (await anext(tail)).key == "long":
            before += 1
    assert before < 60 * 80 / 4


async def test_it_goes_on_after_an_error_and_a_cancellation() -> None:
    log = Slow({"a": 3})
    tail = Tail(log, ["a"], "earliest", 0.2, limit=100)
    came = []
    for _ in range(3):
        log.errors = [LogError("mishap"), LogError("mishap")]
        for _ in range(2):
            with pytest.raises(LogError):
                await anext(tail)
        with anyio.move_on_after(0.5) as scope:
            await anext(tail)
        assert scope.cancelled_caught
        came.append((await anext(tail)).offset)
    assert came == [0, 1, 2]
