"""The loop, on both event loops, over real pipes and without sleeping: on trio, time jumps."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import anyio
import orjson
import pytest
import trio
import trio.testing

from leaderless.core.messages import Reply, RequestEvent, SendOk
from leaderless.core.process import Process, Sleep
from leaderless.core.strategy import Context
from leaderless.runtime import stdio
from leaderless.runtime.session import Session
from leaderless.runtime.stdio import serve
from simulation.nodes import new_session

INIT = {"type": "init", "msg_id": 1, "node_id": "n0", "node_ids": ["n0"]}
SEND = {"type": "send", "msg_id": 2, "key": "k", "msg": 1}


class Pipes(NamedTuple):
    """The four ends between a test and a node."""

    stdin: int
    to_node: int
    from_node: int
    stdout: int


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes(*os.pipe(), *os.pipe())
    yield pipes
    for fd in pipes:
        try:
            os.close(fd)
        except OSError:
            continue  # the test closed it


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


def lines(*bodies: dict[str, Any]) -> bytes:
    messages = ({"src": "c1", "dest": "n0", "body": body} for body in bodies)
    return b"".join(orjson.dumps(message) + b"\n" for message in messages)


def written(data: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line)["body"] for line in data.splitlines()]


@pytest.mark.anyio
async def test_one_chunk_one_write(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []

    def write(_fd: int, data: bytes) -> int:
        writes.append(bytes(data))
        return len(data)

    monkeypatch.setattr(os, "write", write)
    chunks = iter([lines(INIT, SEND, *[{"type": "nonsense", "msg_id": n} for n in range(50)]), b""])
    monkeypatch.setattr(os, "read", lambda fd, size: next(chunks))
    os.close(pipes.to_node)  # readable: at its end
    await serve(new_session("cas"), pipes.stdin, pipes.stdout)
    [everything] = writes
    assert len(written(everything)) == 52


@pytest.mark.anyio
async def test_nothing_to_say_is_no_write(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    os.write(pipes.to_node, b"no message\n" * 3)
    os.close(pipes.to_node)
    monkeypatch.setattr(os, "write", lambda *_: pytest.fail("an empty write"))
    await serve(new_session("cas"), pipes.stdin, pipes.stdout)


@pytest.mark.anyio
async def test_lines_of_many_chunks(pipes: Pipes) -> None:
    os.write(pipes.to_node, lines(INIT, INIT))
    os.close(pipes.to_node)
    await serve(new_session("cas"), pipes.stdin, pipes.stdout, chunk_bytes=7)
    assert written(os.read(pipes.from_node, 1 << 16)) == [{"type": "init_ok", "in_reply_to": 1}] * 2


@pytest.mark.anyio
async def test_a_full_pipe_holds_the_node_until_it_is_read(pipes: Pipes) -> None:
    asked = 3_000
    said = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, new_session("cas"), pipes.stdin, pipes.stdout)
        os.write(pipes.to_node, lines(INIT))
        os.set_blocking(pipes.to_node, False)
        left = lines(*[{"type": "nonsense", "msg_id": n} for n in range(asked)])
        while left or said.count(b"\n") < asked + 1:
            try:
                left = left[os.write(pipes.to_node, left) :] if left else left
                room = bool(left)
            except BlockingIOError:  # until something is read the node is stuck in its answers
                room = False
            if not room:
                await anyio.wait_readable(pipes.from_node)
                said += os.read(pipes.from_node, 1 << 12)
        os.close(pipes.to_node)
    assert [body["in_reply_to"] for body in written(said)] == [1, *range(asked)]


@pytest.mark.anyio
async def test_stdin_and_stdout_are_left_as_they_were(pipes: Pipes) -> None:
    os.close(pipes.to_node)
    await serve(new_session("cas"), pipes.stdin, pipes.stdout)
    assert os.get_blocking(pipes.stdin)
    assert os.get_blocking(pipes.stdout)


@pytest.mark.anyio
async def test_a_node_that_always_has_something_to_read_can_be_cancelled(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.write(pipes.to_node, b"readable")
    monkeypatch.setattr(os, "read", lambda fd, size: b"no message\n")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await serve(new_session("cas"), pipes.stdin, pipes.stdout)
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_a_reader_who_went_away_ends_the_node(pipes: Pipes) -> None:
    os.close(pipes.from_node)
    os.write(pipes.to_node, lines(INIT))
    await serve(new_session("cas"), pipes.stdin, pipes.stdout)


@pytest.mark.parametrize(
    ("alive_s", "types"),
    [
        (0.3, ["init_ok", "send_ok"]),
        (4.6, ["init_ok", "error"]),  # there is time for an error
        (4.9, ["init_ok"]),  # the client is gone, and the real tool would cut the node off
    ],
)
@pytest.mark.anyio
async def test_a_line_that_lay_in_the_pipe_while_the_node_started_counts_as_old(
    pipes: Pipes, alive_s: float, types: list[str]
) -> None:
    os.write(pipes.to_node, lines(INIT, SEND))
    os.close(pipes.to_node)
    await serve(new_session(AtOnce), pipes.stdin, pipes.stdout, alive_s=alive_s)
    assert [body["type"] for body in written(os.read(pipes.from_node, 1 << 16))] == types


def test_only_what_lay_there_at_the_first_look_counts_as_old(pipes: Pipes) -> None:
    said, _ = conversation(pipes, new_session(AtOnce), last="send_ok", alive_s=4.9, begins_s=0.1)
    assert [body["type"] for body in said] == ["init_ok", "send_ok"]


def conversation(
    pipes: Pipes, session: Session, last: str, *, alive_s: float = 0.0, begins_s: float = 0.0
) -> tuple[list[dict[str, Any]], float]:
    """What a session says to INIT and SEND up to a `last`, and the seconds that it took: of time that jumps."""
    said: list[dict[str, Any]] = []

    async def client() -> None:
        await trio.sleep(begins_s)
        os.write(pipes.to_node, lines(INIT, SEND))
        while not said or said[-1]["type"] != last:
            await trio.lowlevel.wait_readable(pipes.from_node)
            said.extend(written(os.read(pipes.from_node, 1 << 16)))
        os.close(pipes.to_node)

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, session, pipes.stdin, pipes.stdout, alive_s=alive_s))
            nursery.start_soon(client)

    clock = trio.testing.MockClock(autojump_threshold=0)
    started = clock.current_time()
    trio.run(both, clock=clock)
    return said, clock.current_time() - started


def test_a_silent_store_is_given_up_when_its_time_has_come(pipes: Pipes) -> None:
    """Four calls of a second each, in no time."""
    said, took_s = conversation(pipes, new_session("cas"), last="error")
    assert [body["type"] for body in said] == ["init_ok", "cas", *["read"] * 3, "error"]
    assert said[-1]["code"] == 0
    assert took_s == pytest.approx(4.0, abs=0.01)


class AtOnce:
    """Answers at once."""

    def __init__(self, context: Context) -> None:
        pass

    def serve(self, event: RequestEvent) -> Process[Any]:
        yield Reply(event.request, SendOk(0))


class Lingering:
    """Answers a little later."""

    def __init__(self, context: Context) -> None:
        self._clock = context.clock

    def serve(self, event: RequestEvent) -> Process[Any]:
        yield Sleep(self._clock.now + stdio.SHORT_WAIT_S / 10)
        yield Reply(event.request, SendOk(0))


def test_a_wait_that_passes_the_event_loop_by_ends_in_time_too(pipes: Pipes) -> None:
    said, took_s = conversation(pipes, new_session(Lingering), last="send_ok")
    assert [body["type"] for body in said] == ["init_ok", "send_ok"]
    assert took_s == pytest.approx(stdio.SHORT_WAIT_S / 10)
