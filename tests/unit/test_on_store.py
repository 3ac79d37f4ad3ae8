"""A node whose log is in a store: the loop with store calls beside it, on both event loops, over real pipes."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
import trio.testing

from leaderless.runtime import kept_log
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Listed, OutcomeUnknown, Store, Version
from tests.around import UPDATES, Around, Call, Kind, Overwrites
from tests.store_nodes import INIT, POLL, Body, node_on, send


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.anyio
async def test_the_log_is_in_the_store_and_survives_its_nodes() -> None:
    store = MemoryStore()
    async with node_on(store) as client:
        client.tell(INIT, send(2, "a"), send(3, "b"))
        assert await client.hears(3) == [
            {"type": "init_ok", "in_reply_to": 1},
            {"type": "send_ok", "offset": 0, "in_reply_to": 2},
            {"type": "send_ok", "offset": 1, "in_reply_to": 3},
        ]
    async with node_on(store) as client:
        client.tell(INIT, POLL)
        [_, polled] = await client.hears(2)
    assert polled["msgs"] == {"k": [[0, "a"], [1, "b"]]}


class Troubled(Around):
    """Asks `trouble` before each read and update, and again after each update was applied."""

    def __init__(self, trouble: Callable[[str], None]) -> None:
        super().__init__()
        self._trouble = trouble

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        if kind == "read":
            self._trouble("read")
        if kind not in UPDATES:
            return await call()
        self._trouble("write")
        version = await call()
        self._trouble("applied")
        return version


@pytest.mark.anyio
@pytest.mark.parametrize("moment", ["write", "applied"])
async def test_an_append_whose_answer_was_lost_is_in_the_log_exactly_once(moment: str) -> None:
    losses = [moment]

    def lose(now: str) -> None:
        if ready and losses and losses[-1] == now:
            losses.pop()
            raise OutcomeUnknown("lost")

    ready: list[bool] = []
    async with node_on(Troubled(lose)) as client:
        client.tell(INIT)
        await client.hears(1)
        ready.append(True)
        client.tell(send(2, "once"))
        [answer] = await client.hears(1)
        client.tell(POLL)
        [polled] = await client.hears(1)
    assert not losses
    assert (answer["type"], polled["msgs"]) == ("send_ok", {"k": [[answer["offset"], "once"]]})


class Hanging(MemoryStore):
    """`head` cannot be written at all."""

    async def create(self, key: str, value: bytes) -> Version:
        if key == "head":
            await anyio.sleep_forever()
        return await super().create(key, value)


@pytest.mark.anyio
async def test_a_store_call_that_hangs_delays_no_line() -> None:
    async with node_on(Hanging()) as client:
        client.tell(INIT)
        await client.hears(1)
        client.tell(send(2, 1))
        client.tell({"type": "status", "msg_id": 3})
        [status] = await client.hears(1)
        assert (status["in_reply_to"], status["type"]) == (3, "status_ok")


def answers_after(store: Store, alive_s: float, *bodies: Body) -> list[Body]:
    """What a node says within 20 s to lines that lay in its pipe before it began; time jumps."""

    async def converse() -> list[Body]:
        async with node_on(store, alive_s=alive_s) as client:
            client.tell(INIT, *bodies)
            heard: list[Body] = []
            with anyio.move_on_after(20):
                while True:
                    heard += await client.hears(1)
            return heard

    return trio.run(converse, clock=trio.testing.MockClock(autojump_threshold=0))


class SlowToStart(Hanging):
    """Each listing takes 2 s, so a node is ready late."""

    async def list_objects(self, *args: Any, **named: Any) -> list[Listed]:
        await anyio.sleep(2)
        return await super().list_objects(*args, **named)


@pytest.mark.parametrize(
    ("alive_s", "answers"),
    [
        (0.0, ["init_ok", "error"]),  # ready after 4 s: the answer comes 4.5 s after the line did
        (0.9, ["init_ok"]),  # the client gave up before the node was ready
        (60.0, ["init_ok"]),
    ],
)
def test_a_line_that_came_before_the_node_was_ready_is_as_old_as_it_is(
    alive_s: float, answers: list[str]
) -> None:
    assert [body["type"] for body in answers_after(SlowToStart(), alive_s, send(2, 1))] == answers


def outcome_of_init(store: Store) -> tuple[Body, float]:
    """What a node answers to `init`, and after how many seconds of a clock that jumps."""

    async def converse() -> tuple[Body, float]:
        before = anyio.current_time()
        async with node_on(store) as client:
            client.tell(INIT)
            [answer] = await client.hears(1)
            return answer, anyio.current_time() - before

    return trio.run(converse, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_store_that_is_silent_for_long_is_said_at_init(caplog: pytest.LogCaptureFixture) -> None:
    def silent(_moment: str) -> None:
        raise OutcomeUnknown("connection refused")

    answer, took_s = outcome_of_init(Troubled(silent))
    assert answer == {
        "type": "error",
        "code": 11,
        "text": "the store cannot be used: no clear answer within 6 s: connection refused",
        "in_reply_to": 1,
    }
    assert kept_log.REACH_S <= took_s < 10  # as long as the bench waits
    assert [record.getMessage() for record in caplog.records] == [answer["text"]]


def test_a_store_that_answers_soon_enough_is_used() -> None:
    troubles = iter([True, True])

    def twice(_moment: str) -> None:
        if next(troubles, False):
            raise OutcomeUnknown("not yet")

    answer, _ = outcome_of_init(Troubled(twice))
    assert answer["type"] == "init_ok"


def test_a_store_without_conditional_writes_is_refused_at_init() -> None:
    answer, _ = outcome_of_init(Overwrites())
    assert answer["type"] == "error"
    assert "ignores If-None-Match" in answer["text"]


@pytest.mark.anyio
async def test_a_log_that_is_not_empty_is_said(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    async with node_on(store) as client:
        client.tell(INIT, send(2, 1))
        await client.hears(2)
        assert not caplog.records
    async with node_on(store) as client:
        client.tell(INIT)
        await client.hears(1)
    assert "is not empty, and goes on" in caplog.text
