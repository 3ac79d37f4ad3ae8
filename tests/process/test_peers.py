"""Programs that talk by sockets of this machine: what they gain, and whoever may not take part."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import orjson
import pytest

from leaderless import open_log_sync
from leaderless.api.log import Log
from leaderless.core.messages import Batch, Offer, PeerCall
from leaderless.errors import Definite
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, ensure_log
from leaderless.hosting.surroundings import REAL
from leaderless.peers import sockets
from leaderless.peers.lines import writer_of
from leaderless.peers.links import Link
from leaderless.peers.passes import Pass, require_writer
from leaderless.peers.reach import here
from leaderless.peers.sockets import LINKS_MAX, SocketPeers
from leaderless.store.memory import MemoryStore
from leaderless.store.names import PEERS
from leaderless.store.port import Refused, Store
from leaderless.store.wrapped import WRITES, Counted
from leaderless.upkeep.vacuum import vacuum_peers
from leaderless.wire import bodies
from leaderless.wire.codec import encode
from tests.around import Fate, Fated

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not here(), reason="sockets of a machine are Linux's"),
]
T = TypeVar("T")
NAME = "1-" + 24 * "a"  # of a program that asks
BATCH = Batch(f"{NAME}/0", 1, 0, {"k": ["handed"]}, {}, 10)


@asynccontextmanager
async def talking(store: Store) -> AsyncIterator[tuple[Log, SocketPeers]]:
    """A program whose log is in `store`."""
    made: list[SocketPeers] = []

    def make_peers(writer: str) -> SocketPeers:
        made.append(SocketPeers(store, writer))
        return made[0]

    log = Log(store, bounds_of(store, 30.0, 5.0), make_peers=make_peers)
    async with running(log.host), beside(*log.chores):
        yield log, made[0]


@asynccontextmanager
async def alone(store: Store) -> AsyncIterator[tuple[Log, None]]:
    """A program that hands over to nobody."""
    log = Log(store, bounds_of(store, 30.0, 5.0))
    async with running(log.host), beside(*log.chores):
        yield log, None


def connected(peers: SocketPeers) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(5.0)
    if link.connect_ex("\0leaderless/" + writer_of(peers.node)):
        link.close()
        raise ConnectionRefusedError
    return link


def asked(link: socket.socket, *lines: bytes) -> bytes:
    """What comes back until the other end closes, or a line of it has come."""
    said = b""
    with link:
        try:
            link.sendall(b"".join(lines))
            while not said.endswith(b"\n") and (chunk := link.recv(1 << 16)):
                said += chunk
        except (ConnectionError, TimeoutError) as error:
            said += repr(type(error)).encode()
    return said


def greeting(peers: SocketPeers, proof: Pass, **changes: Any) -> bytes:
    said = {"protocol": 1, "from": f"{NAME}@{here()}", "to": peers.node}
    said |= {"object": proof.key, "token": proof.token}
    return orjson.dumps(said | changes, option=orjson.OPT_APPEND_NEWLINE)


def hand_over(batch: Batch = BATCH, **changes: Any) -> bytes:
    body = bodies.question_of(PeerCall(7, "", Offer(0, batch)))
    return encode(f"{NAME}@{here()}", "", body | changes)


def run(work: Callable[[Log, SocketPeers, Store], Awaitable[None]]) -> None:
    async def main() -> None:
        store = MemoryStore()
        await ensure_log(store)
        async with talking(store) as (log, peers):
            await log.append("k", "first")
            peers.appends()
            await anyio.wait_all_tasks_blocked()
            await work(log, peers, store)

    anyio.run(main)


# Changes of a greeting, and the lines behind it, by what is wrong with them.
STRANGERS: dict[str, tuple[dict[str, Any], bytes]] = {
    "a token that is not asked for": ({"token": "0" * 64}, b""),
    "a token that is no text": ({"token": None}, b""),
    "an object that is not there": ({"object": f"{PEERS}/1-{NAME}"}, b""),
    "an object of another kind": ({"object": "head"}, b""),
    "another writer's object": ({"from": f"2-{24 * 'b'}@{here()}"}, b""),
    "another program": ({"to": f"{NAME}@{here()}"}, b""),
    "another machine": ({"from": f"{NAME}@elsewhere"}, b""),
    "another protocol": ({"protocol": 2}, b""),
    "lines before it is let in": ({}, hand_over()),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_who_does_not_prove_itself_is_not_let_in(name: str) -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = Pass(store, NAME, REAL.now)
        await proof.make()
        changes, more = STRANGERS[name]
        said = greeting(peers, proof, **changes) + more
        answer = await anyio.to_thread.run_sync(asked, connected(peers), said)
        assert not answer.startswith(b"{")
        assert [record.value for record in await log.read("k")] == ["first"]
        assert not peers.counts["took"]

    run(work)


BAD_LINES: dict[str, bytes] = {
    "garbage": b"\xff\x00 no line\n",
    "another's writer": hand_over(BATCH._replace(writer="2-b/0")),
    "another request": hand_over(type="fence"),
    "no number": hand_over(msg_id="x"),
    "no batch": hand_over(appends=3),
    "a long line": b"x" * (9 << 20),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_who_says_what_no_peer_says_is_let_go_of(name: str) -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = Pass(store, NAME, REAL.now)
        await proof.make()
        link = connected(peers)
        await anyio.to_thread.run_sync(link.sendall, greeting(peers, proof))
        assert (await anyio.to_thread.run_sync(link.recv, 4096)).startswith(b"{")
        answer = await anyio.to_thread.run_sync(asked, link, BAD_LINES[name])
        assert not answer.startswith(b"{")
        assert await log.append("k", "second") == 1
        assert not peers.counts["took"]

    run(work)


def test_a_batch_that_is_handed_over_twice_is_in_the_log_once_when_it_is_answered() -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = Pass(store, NAME, REAL.now)
        await proof.make()
        for _ in range(2):  # a copy comes by another link
            link = connected(peers)
            await anyio.to_thread.run_sync(link.sendall, greeting(peers, proof))
            await anyio.to_thread.run_sync(link.recv, 4096)
            answer = await anyio.to_thread.run_sync(asked, link, hand_over())
            told = bodies.answer_of(json.loads(answer)["body"])
            assert told is not None
            assert [f"{NAME}/0", 1] in [[e.writer, e.seq] for e in told.entries]  # type: ignore[union-attr]
            head = json.loads((await store.read("head")).value)  # type: ignore[union-attr]
            assert [entry[:2] for entry in head["entries"]].count([f"{NAME}/0", 1]) == 1

    run(work)


def test_silence_and_many_connections_keep_nobody_out_for_long() -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        silent = [connected(peers) for _ in range(200)]
        await anyio.lowlevel.checkpoint()
        proof = Pass(store, NAME, REAL.now)
        await proof.make()
        link = connected(peers)
        await anyio.to_thread.run_sync(link.sendall, greeting(peers, proof))
        assert (await anyio.to_thread.run_sync(link.recv, 4096)).startswith(b"{")
        assert len(silent) < LINKS_MAX
        ends = await anyio.to_thread.run_sync(asked, silent.pop())  # it was given up
        assert ends == b""
        for each in [link, *silent]:
            each.close()

    run(work)


AS_NOBODY = """
import os, socket, sys
os.setuid(65534)
link = socket.socket(socket.AF_UNIX)
link.connect("\\0leaderless/" + sys.argv[1])
link.settimeout(20)
try:
    link.sendall(sys.argv[2].encode())
    sys.exit(1 if link.recv(4096) else 0)
except ConnectionError:
    pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_is_not_let_in() -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = Pass(store, NAME, REAL.now)
        await proof.make()
        words = [writer_of(peers.node), greeting(peers, proof).decode()]
        command = [sys.executable, "-c", AS_NOBODY, *words]
        call = partial(subprocess.run, command, check=False)
        assert (await anyio.to_thread.run_sync(call)).returncode == 0

    run(work)


def test_the_object_that_a_vacuum_deleted_is_made_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        proof = Pass(store, NAME, REAL.now)
        await proof.make()
        await proof.make()
        peer = f"{NAME}@{here()}"
        await require_writer(store, peer, proof.key, proof.token)
        for after_s in (0.0, 1000.0):
            assert [each.key for each in await store.list_objects(PEERS)] == [proof.key]
            await vacuum_peers(store, REAL.now() + after_s, 600.0)
        assert not await store.list_objects(PEERS)
        proof.missed()
        await proof.make()
        await require_writer(store, peer, proof.key, proof.token)

    anyio.run(main)


def test_a_key_that_may_only_read_gets_nothing_in_and_learns_so_at_once() -> None:
    """Others commit all the while, and would take along what it has."""

    async def main() -> None:
        store = MemoryStore()
        await ensure_log(store)
        readonly = Fated(store, Fate(WRITES, ends=Refused("AccessDenied"), applied=False))
        async with talking(store) as (log, peers), talking(readonly) as (reader, asks):
            await log.append("k", 0)
            stop = anyio.Event()

            async def others() -> None:
                while not stop.is_set():
                    await log.append("k", 0)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(others)
                for _ in range(3):
                    with pytest.raises(Definite, match="refused it"):
                        await reader.append("k", "no")
                stop.set()
            assert {record.value for record in await log.read("k", limit=100_000)} == {0}
            assert not peers.counts["took"]
            assert asks.node in peers

    anyio.run(main)


def closed_in_a_child(link: Link) -> bool:
    if not (child := os.fork()):
        os._exit(link.socket.fileno() != -1)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_process_keeps_no_socket_of_its_parent() -> None:
    """Who asks the parent would find nobody behind the child's, and wait."""

    async def work(_: Log, peers: SocketPeers, __: Store) -> None:
        with connected(peers) as made:
            link = Link(made)
            assert closed_in_a_child(link)
            assert link.socket.fileno() != -1

    run(work)


@pytest.mark.parametrize("appends", [1, 20])
def test_a_program_alone_asks_the_store_for_nothing_more(appends: int) -> None:
    """And others cannot ask one that appends once."""

    async def main() -> None:
        requests: list[dict[str, int]] = []
        for talks in (True, False):
            store = Counted(MemoryStore())
            await ensure_log(store)
            async with talking(store) if talks else alone(store) as (log, peers):
                for number in range(appends):
                    assert await log.append("k", number) == number
                await anyio.wait_all_tasks_blocked()
                if peers and appends == 1:
                    with pytest.raises(ConnectionRefusedError):
                        connected(peers)
                elif peers:
                    connected(peers).close()
            requests.append(dict(store.requests))
        assert requests[0] == requests[1]

    anyio.run(main)


@pytest.mark.parametrize(("given", "counts"), [({}, {"appends": 2}), ({"peers": None}, {})])
def test_a_log_hands_over_unless_it_is_told_not_to(
    given: dict[str, Any], counts: dict[str, int], tmp_path: Path
) -> None:
    with open_log_sync(f"sqlite:///{tmp_path}/log.db", **given) as log:
        for number in range(2):
            assert log.append("k", number) == number
        assert log.hand_overs == counts


def test_who_can_ask_nobody_for_long_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "ALONE_S", 0.0)

    async def main() -> None:
        async with talking(MemoryStore()) as (_, peers):
            await anyio.wait_all_tasks_blocked()
            for call in range(5):
                peers.ask(f"{call}-dead@{here()}", call, b"")
                await anyio.wait_all_tasks_blocked()

    anyio.run(main)
    [told] = [each for each in caplog.messages if each.startswith("no peer could be asked")]
    assert "ConnectionRefusedError" in told


def test_programs_hand_over_to_each_other() -> None:
    """Two that append at once to one log: each record is there once, and some came by way of the other."""

    async def main() -> None:
        store = MemoryStore()
        await ensure_log(store)
        async with talking(store) as (one, its), talking(store) as (other, others):

            async def append(log: Log, name: str) -> None:
                for number in range(100):
                    await log.append("k", f"{name}{number}")

            async with anyio.create_task_group() as tasks:
                for log, name in ((one, "a"), (other, "b")):
                    tasks.start_soon(append, log, name)
            values = [record.value for record in await one.read("k", limit=1000)]
            assert sorted(values) == sorted(f"{name}{n}" for name in "ab" for n in range(100))
            counts = its.counts + others.counts
            assert counts["asked"] >= counts["took"] > 0
            assert counts["asked"] >= counts["answered"] > 0
            assert counts["appends"] == 200

    anyio.run(main)
