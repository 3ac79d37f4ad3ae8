"""A node whose log is in a store: the loop with store calls beside it, on both event loops, over real pipes."""

from functools import partial

import anyio
import pytest
import trio.testing

from leaderless.runtime import kept_log
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Store
from tests.around import READS, Fate, Fated, Overwrites, in_turn
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


@pytest.mark.anyio
@pytest.mark.parametrize("fate", ["call lost", "answer lost"])
async def test_an_append_whose_answer_was_lost_is_in_the_log_exactly_once(fate: str) -> None:
    store = Fated()
    async with node_on(store) as client:
        client.tell(INIT)
        await client.hears(1)
        store.fates = in_turn([fate, "ok"])
        client.tell(send(2, "once"))
        [answer] = await client.hears(1)
        client.tell(POLL)
        [polled] = await client.hears(1)
    assert store.fates[0].happened
    assert (answer["type"], polled["msgs"]) == ("send_ok", {"k": [[answer["offset"], "once"]]})


HANGS = Fate(["create"], "head", before=anyio.sleep_forever)  # it cannot be written at all


@pytest.mark.anyio
async def test_a_store_call_that_hangs_delays_no_line() -> None:
    async with node_on(Fated(None, HANGS)) as client:
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
    slow = Fate(["list_objects"], before=partial(anyio.sleep, 2))  # a node is ready late
    said = answers_after(Fated(None, HANGS, slow), alive_s, send(2, 1))
    assert [body["type"] for body in said] == answers


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
    silent = Fate(READS, ends=OutcomeUnknown("connection refused"), applied=False)
    answer, took_s = outcome_of_init(Fated(None, silent))
    assert answer == {
        "type": "error",
        "code": 11,
        "text": "the store cannot be used: no clear answer within 6 s: connection refused",
        "in_reply_to": 1,
    }
    assert kept_log.REACH_S <= took_s < 10  # as long as the bench waits
    assert [record.getMessage() for record in caplog.records] == [answer["text"]]


def test_a_store_that_answers_soon_enough_is_used() -> None:
    twice = Fate(READS, ends=OutcomeUnknown("not yet"), applied=False, times=2)
    answer, _ = outcome_of_init(Fated(None, twice))
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
