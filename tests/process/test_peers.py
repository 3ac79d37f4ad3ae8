"""Programs that talk by sockets of this machine: what they gain, and whoever may not take part."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from ssl import PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER, SSLContext
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import orjson
import pytest

from leaderless import open_log_sync
from leaderless.api.log import Log
from leaderless.cli import main
from leaderless.core.messages import Batch, Offer, PeerCall
from leaderless.core.strategy import Clock
from leaderless.errors import Definite, Unfit
from leaderless.hosting.host import beside, running
from leaderless.hosting.place import bounds_of, ensure_log
from leaderless.hosting.surroundings import REAL
from leaderless.peers import sockets
from leaderless.peers.lines import Stranger, writer_of
from leaderless.peers.links import Link, _mac
from leaderless.peers.passes import Pass
from leaderless.peers.reach import Endpoint, Tls, alone, here, way_to
from leaderless.peers.sockets import LINKS_MAX, SocketPeers, peers_of
from leaderless.store.memory import MemoryStore
from leaderless.store.names import PEERS
from leaderless.store.port import Refused, Store
from leaderless.store.wrapped import WRITES, Counted
from leaderless.upkeep.maintenance import RETENTION_S_MIN
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
CERTIFICATE = Path(__file__).parents[1] / "fixtures" / "peers.pem"  # and its key
BATCH = Batch(f"{NAME}/0", 1, 0, {"k": ["handed"]}, {}, 10)


everywhere = pytest.mark.parametrize("where", ["machine", "127.0.0.1"])


@asynccontextmanager
async def talking(
    store: Store, where: str | None = "machine", tls: Tls | None = None
) -> AsyncIterator[tuple[Log, Any]]:
    """A program whose log is in `store`, and its peers."""
    log = Log(store, bounds_of(store, 30.0, 5.0), make_peers=await peers_of(store, where, tls))
    async with running(log.host), beside(*log.chores):
        yield log, log._peers


async def connected(peers: SocketPeers) -> Link:
    link, (family, at) = Link(), way_to(peers.node)
    link.socket = socket.socket(family)
    try:
        link.socket.connect(at)
    except OSError:
        link.socket.close()
        raise
    alone(link.socket)
    return link


def hand_over(batch: Batch = BATCH, **changes: Any) -> bytes:
    body = bodies.question_of(PeerCall(7, "", Offer(0, batch)))
    return encode(NAME, "", body | changes)


async def made(store: Store, *, sealed: bool = False) -> Pass:
    await (proof := Pass(store, NAME, REAL.now, sealed=sealed)).shown()
    return proof


def hello_of(peers: SocketPeers, proof: Pass) -> dict[str, Any]:
    told = {"protocol": 1, "from": f"{NAME}@{peers._reach.address}", "to": peers.node}
    shown = {"nonce": "0"} if peers._reach.sealed else {"token": proof.token}
    return told | {"object": proof.key} | shown


async def greeted(peers: SocketPeers, proof: Pass, more: bytes = b"", **changes: Any) -> Link:
    """A link on which a program has proved itself. Raises when it is not let in."""
    link, hello = await connected(peers), hello_of(peers, proof) | changes
    try:
        link.socket.send(orjson.dumps(hello) + b"\n" + more)
        said = await link.said()
        if peers._reach.sealed:
            link.seal(await proof.secret_with(peers.node, said), hello, said)
        await link.say({})
        await link.said()
    except BaseException:
        link.socket.close()
        raise
    return link


async def let_in(peers: SocketPeers, proof: Pass, more: bytes, changes: dict[str, Any]) -> None:
    """Raise when a link is not let in, or ends at once."""
    link = await greeted(peers, proof, more, **changes)
    with link.socket, anyio.move_on_after(2.0):
        await link.said()


async def answer_on(link: Link) -> bytes:
    """The next line that comes on a link, b"" if it ends before."""
    heard = [b""]

    def hear(line: bytes) -> None:
        heard.append(line)
        link.scope.cancel()

    with link.socket, suppress(Exception), link.scope:
        await link.run(hear)
    return heard[-1]


def run(
    work: Callable[[Log, SocketPeers, Store], Awaitable[None]],
    where: str = "machine",
    tls: Tls | None = None,
) -> None:
    async def main() -> None:
        store = MemoryStore()
        await ensure_log(store)
        async with talking(store, where, tls) as (log, peers):
            await log.append("k", "first")
            peers.appends()
            await anyio.wait_all_tasks_blocked()
            await work(log, peers, store)

    anyio.run(main)


# Changes of a greeting, and the lines behind it, by what is wrong with them.
STRANGERS: dict[str, tuple[dict[str, Any], bytes]] = {
    "a proof that is no text": ({"token": None, "object": None}, b""),
    "an object that is not there": ({"object": f"{PEERS}/1-{NAME}"}, b""),
    "an object of another kind": ({"object": "head"}, b""),
    "another writer's object": ({"from": f"2-{24 * 'b'}@"}, b""),
    "another program": ({"to": f"{NAME}@"}, b""),
    "another machine": ({"from": f"{NAME}@elsewhere"}, b""),
    "another protocol": ({"protocol": 2}, b""),
    "lines before it is let in": ({}, hand_over()),
    "a token that is not asked for": ({}, b""),
}


@everywhere
@pytest.mark.parametrize("name", STRANGERS)
def test_who_does_not_prove_itself_is_not_let_in(name: str, where: str) -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = await made(store, sealed=peers._reach.sealed)
        changes, more = STRANGERS[name]
        at = peers._reach.address
        changes = {k: f"{v}{at}" if f"{v}".endswith("@") else v for k, v in changes.items()}
        if name == "a token that is not asked for":  # that of whoever may read the object
            proof.token = 64 * "1"
        with pytest.raises((OSError, Stranger)):
            await let_in(peers, proof, more, changes)
        assert [record.value for record in await log.read("k")] == ["first"]
        assert not peers.counts["took"]

    run(work, where)


BAD_LINES: dict[str, bytes] = {
    "garbage": b"\xff\x00 no line\n",
    "another's writer": hand_over(BATCH._replace(writer="2-b/0")),
    "another request": hand_over(type="fence"),
    "no number": hand_over(msg_id="x"),
    "no batch": hand_over(appends=3),
    "a long line": b"x" * (9 << 20),
}


@everywhere
@pytest.mark.parametrize("name", BAD_LINES)
def test_who_says_what_no_peer_says_is_let_go_of(name: str, where: str) -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        link = await greeted(peers, await made(store, sealed=peers._reach.sealed))
        link.send(BAD_LINES[name])
        assert not await answer_on(link)
        assert await log.append("k", "second") == 1
        assert not peers.counts["took"]

    run(work, where)


# What is sent of two lines with their MACs and of one of another link, and how many are taken at most.
FORGED: dict[str, tuple[Callable[[bytes, bytes, bytes], bytes], int]] = {
    "nothing": (lambda one, two, _: one + two, 2),
    "a line again": (lambda one, *_: one + one, 1),
    "a line left out": (lambda _, two, __: two, 0),
    "another order": (lambda one, two, _: two + one, 0),
    "a changed line": (lambda one, *_: one.replace(b"handed", b"forged"), 0),
    "a line without its MAC": (lambda one, *_: one.partition(b" ")[2], 0),
    "a line of another link": (lambda _, __, other: other, 0),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_line_at_a_port_is_the_next_one_that_the_peer_says(name: str) -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = await made(store, sealed=True)
        other, link = await greeted(peers, proof), await greeted(peers, proof)
        change, taken = FORGED[name]
        ways: Any = (link, 1), (link, 2), (other, 3)
        lines = [(way._says, hand_over(msg_id=number)) for way, number in ways]
        link.socket.send(change(*(b"%b %b" % (_mac(says, line), line) for says, line in lines)))
        assert bool(await answer_on(link)) == (name == "nothing") or taken
        assert peers.counts["took"] == 2 if name == "nothing" else peers.counts["took"] <= taken
        other.socket.close()

    run(work, "127.0.0.1")


@everywhere
def test_a_batch_that_is_handed_over_twice_is_in_the_log_once_when_it_is_answered(
    where: str,
) -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        proof = await made(store, sealed=peers._reach.sealed)
        for _ in range(2):  # a copy comes by another link
            link = await greeted(peers, proof)
            link.send(hand_over())
            told = bodies.answer_of(json.loads(await answer_on(link))["body"])
            assert told is not None
            assert [f"{NAME}/0", 1] in [[e.writer, e.seq] for e in told.entries]  # type: ignore[union-attr]
            head = json.loads((await store.read("head")).value)  # type: ignore[union-attr]
            assert [entry[:2] for entry in head["entries"]].count([f"{NAME}/0", 1]) == 1

    run(work, where)


def test_silence_and_many_connections_keep_nobody_out_for_long() -> None:
    async def work(log: Log, peers: SocketPeers, store: Store) -> None:
        silent = [await connected(peers) for _ in range(200)]
        await anyio.lowlevel.checkpoint()
        link = await greeted(peers, await made(store, sealed=peers._reach.sealed))
        assert len(silent) < LINKS_MAX
        assert not await answer_on(silent.pop())  # it was given up
        for each in [link, *silent]:
            each.socket.close()

    run(work, "127.0.0.1")


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
        proof = await made(store)
        words = [writer_of(peers.node), json.dumps(hello_of(peers, proof)) + "\n"]
        command = [sys.executable, "-c", AS_NOBODY, *words]
        call = partial(subprocess.run, command, check=False)
        assert (await anyio.to_thread.run_sync(call)).returncode == 0

    run(work)


def test_the_object_that_a_vacuum_deleted_is_made_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        clock = Clock()
        clock.now = REAL.now()
        proof = Pass(store, NAME, lambda: clock.now, sealed=False)
        peer, shown = f"{NAME}@{here()}", await proof.shown()
        await proof.secret_with(peer, shown)
        for after_s in (0.0, 1000.0):
            assert [each.key for each in await store.list_objects(PEERS)] == [proof.key]
            clock.now += after_s
            await vacuum_peers(store, clock.now, RETENTION_S_MIN)
        assert not await store.list_objects(PEERS)
        assert await proof.shown() == shown
        await proof.secret_with(peer, shown)

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
        link = await connected(peers)
        with link.socket:
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
            async with talking(store, "machine" if talks else None) as (log, peers):
                for number in range(appends):
                    assert await log.append("k", number) == number
                await anyio.wait_all_tasks_blocked()
                if talks and appends == 1:
                    with pytest.raises(ConnectionRefusedError):
                        await connected(peers)
                elif talks:
                    (await connected(peers)).socket.close()
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


@pytest.mark.parametrize(
    ("dead", "error"),
    [("", "Refused"), ("127.0.0.1:1", "Refused"), ("[::1]:1", ""), ("silent", "Timeout")],
)
def test_who_can_ask_nobody_for_long_says_so_once(
    dead: str, error: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "ALONE_S", 0.0)
    monkeypatch.setattr(sockets, "GREETING_S", 0.1)

    async def main() -> None:
        silent = await Endpoint.at("127.0.0.1")
        where = "127.0.0.1" if dead else "machine"
        with silent.listening(""):
            async with talking(MemoryStore(), where) as (_, peers):
                await anyio.wait_all_tasks_blocked()
                at = silent.address if dead == "silent" else dead or here()
                for call in range(3):
                    peers.ask(f"{call}-dead@{at}", call, b"")
                    with anyio.move_on_after(5.0):
                        while peers._links:
                            await anyio.lowlevel.checkpoint()

    anyio.run(main)
    [told] = [each for each in caplog.messages if each.startswith("no peer could be asked")]
    assert error in told


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("127.0.0.1:0", "no address"),
        ("127.0.0.1:65536", "out of range"),
        ("::1", "no address"),
        ("192.0.2.7", "Cannot assign"),
        ("0.0.0.0", "others reach no such address"),
        ("a/b", "no address"),
        ("", "no address"),
    ],
)
def test_where_nobody_can_listen_is_told(where: str, error: str) -> None:
    with (
        pytest.raises(Unfit, match=f"peers: .*{where!r:.6}.*{error}"),
        open_log_sync("memory:x", peers=where),
    ):
        pass


def contexts() -> Tls:
    listens, asks = SSLContext(PROTOCOL_TLS_SERVER), SSLContext(PROTOCOL_TLS_CLIENT)
    listens.load_cert_chain(CERTIFICATE)
    asks.load_verify_locations(CERTIFICATE)
    return listens, asks


@pytest.mark.parametrize(
    ("where", "tls"),
    [("machine", None), ("127.0.0.1", None), ("[::1]", None), ("127.0.0.1", contexts())],
)
def test_programs_hand_over_to_each_other(where: str, tls: Tls | None) -> None:
    """Two that append at once to one log: each record is there once, and some came by way of the other."""

    async def main() -> None:
        store = MemoryStore()
        await ensure_log(store)
        both = talking(store, where, tls), talking(store, where, tls)
        async with both[0] as (one, its), both[1] as (other, others):

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


def test_a_bench_of_several_processes_counts_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"--store sqlite:///{tmp_path}/log.db --tasks 1 --seconds 0.3 --json".split()
    assert not main(["bench", "--processes", "2", *words])
    told = json.loads(capsys.readouterr().out)
    assert told["records_read"] == told["appends"] + 1 > 2
    assert not told["failed"]
    assert main(["bench", "--processes", "2", *words, "--store", "memory:x"])


IN_A_NAMESPACE = """
import ctypes, sys
if ctypes.CDLL(None).unshare(int(sys.argv[1], 16)):
    sys.exit(3)
from leaderless.peers.reach import here
print(here())
"""


@pytest.mark.parametrize(("namespace", "is_here"), [("40000000", False), ("4000000", True)])
def test_who_has_another_network_is_not_here(namespace: str, is_here: bool) -> None:
    """As containers do (CLONE_NEWNET). Another hostname (CLONE_NEWUTS) keeps nobody apart."""
    command = [sys.executable, "-c", IN_A_NAMESPACE, namespace]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("only root makes namespaces")
    assert (done.stdout.strip() == here()) == is_here
