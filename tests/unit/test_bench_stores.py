"""Stores under the bench: what becomes of requests, faults of stores, and what `--store-server` names."""

import sqlite3
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import h11
import pytest

from bench.failure import RunFailure
from bench.loop import RealLoop, VirtualLoop
from bench.nemesis.requests import MODES, SHARES, WAITS_NS, Fate, StoreFault, StoreFaults
from bench.stores.fates import (
    DAMAGES,
    EMPTY,
    GARBAGE,
    HALF,
    LINK,
    MODES_OF_PROXY,
    OTHER,
    Answer,
    Bodies,
    Fates,
    damaged,
)
from bench.stores.proxy import kind_of
from bench.stores.run_store import FileLock, RunStore, StoreServer, store_server
from tests.passing import pass_until

MS = 1_000_000


class Ways:
    """Links whose latency is 3 ms to the store and 4 ms back; `lost` is an end whose messages get lost."""

    def __init__(self, lost: str = "") -> None:
        self._lost = lost

    def way_ns(self, src: str, dest: str, *, spared: bool = False) -> int | None:
        if src == self._lost and not spared:
            return None
        return 3 * MS if dest == LINK else 4 * MS


def fates(mode: str = "", share: float = 1.0, lost: str = "", count: int = 200) -> list[Fate]:
    """The fates of requests of n0 while a fault is in force."""
    made = Fates(Ways(lost), Random(1))
    if mode:
        made.in_force = StoreFault(frozenset(["n0"]), mode, share)
        assert made.of("n1") == Fate(3 * MS, back_ns=4 * MS)
        assert made.of("n0", spared=True) == Fate(3 * MS, back_ns=4 * MS)
    return [made.of("n0") for _ in range(count)]


def test_without_a_fault_a_request_takes_both_ways() -> None:
    assert set(fates()) == {Fate(3 * MS, back_ns=4 * MS)}


@pytest.mark.parametrize("mode", WAITS_NS)
def test_a_late_request_waits_before_it_is_applied_or_its_answer_waits(mode: str) -> None:
    found = fates(mode)
    shortest, longest = WAITS_NS[mode]
    assert all(shortest <= f.there_ns + f.back_ns - 7 * MS <= longest for f in found)
    assert all(f.applied for f in found)
    before = [f for f in found if f.back_ns == 4 * MS]
    after = [f for f in found if f.there_ns == 3 * MS]
    assert len(before) + len(after) == 200
    assert min(len(before), len(after)) > 50


@pytest.mark.parametrize(
    ("mode", "lost", "applied"),
    [
        ("lost", "", True),
        ("reset", "", False),
        ("refused", "", False),
        ("throttled", "", False),
        ("dripping", "", True),
        ("damaged", "", True),
        # What gets lost on its way is not applied, and what is not answered is.
        ("", "n0", False),
        ("", LINK, True),
    ],
)
def test_whether_a_request_is_applied(mode: str, lost: str, applied: bool) -> None:
    found = fates(mode, lost=lost)
    assert {(f.applied, f.mode) for f in found} == {(applied, mode or "loss")}
    assert {f.damage for f in found} == ({*DAMAGES} if mode == "damaged" else {""})


def answer(body: bytes, status: int = 200) -> Answer:
    headers = [("content-length", str(len(body))), ("ETag", '"x"')]
    return Answer(h11.Response(status_code=status, headers=headers, reason=b"OK"), body)


@pytest.mark.parametrize(
    ("damage", "body"),
    [
        (HALF, b"01234"),
        (EMPTY, b""),
        (GARBAGE, b"\xff" * 10),
        (OTHER, b"another"),
    ],
)
def test_a_damaged_answer_looks_whole(damage: str, body: bytes) -> None:
    found = damaged(answer(b"0123456789"), damage, b"another")
    assert found.body == body
    assert dict(found.head.headers)[b"content-length"] == str(len(body)).encode()
    written = damaged(answer(b""), damage, None)
    assert dict(written.head.headers) == {b"content-length": b"0"}  # no ETag
    refused = answer(b"<Error/>", 412)
    assert damaged(refused, damage, None) == refused


def test_the_body_of_another_object_is_of_another_kind() -> None:
    bodies = Bodies()
    bodies.note("GET", "/b/run/segment/1", answer(b"segment"))
    bodies.note("GET", "/b/run/none", answer(b"<Error/>", 404))
    bodies.note("PUT", "/b/run/head", answer(b"put"))
    assert bodies.other_than("GET", "/b/run/segment/2") is None
    assert bodies.other_than("GET", "/b/run/head") == b"segment"
    assert bodies.other_than("LIST", "/b?list-type=2") == b"segment"
    assert bodies.other_than("kv/txn", "/v3/kv/txn") is None


@pytest.mark.parametrize("mode", MODES_OF_PROXY)
def test_a_share_of_the_requests_is_affected(mode: str) -> None:
    assert set(MODES_OF_PROXY[mode]) <= set(SHARES)
    assert 30 < len([f for f in fates(mode, share=0.3) if f.mode]) < 90


@pytest.mark.parametrize(
    ("method", "target", "kind"),
    [
        ("PUT", "/bucket/run/head", "PUT"),
        ("GET", "/bucket/run/head", "GET"),
        ("GET", "/bucket?list-type=2&prefix=run", "LIST"),
        ("POST", "/v3/kv/txn", "kv/txn"),
    ],
)
def test_kinds_of_requests(method: str, target: str, kind: str) -> None:
    assert kind_of(method, target) == kind


# ---------------------------------------------------------------- the virtual store


class Rig:
    """A fault that affects n0; when requests were executed and answered, in ms."""

    def __init__(self, mode: str, share: float = 1.0, seed: int = 1) -> None:
        self.loop = VirtualLoop()
        self.faults = StoreFaults(self.loop, Random(seed))
        self.faults.impose(StoreFault(frozenset(["n0"]), mode, share))
        self.executed: dict[Any, float] = {}
        self.answered: dict[Any, float] = {}

    def ask(self, number: int | str, client: str = "n0") -> None:
        def execute() -> dict[str, int | str]:
            assert number not in self.executed
            self.executed[number] = self.loop.now_ns() / MS
            return {"number": number}

        def answer(reply: dict[str, int | str]) -> None:
            assert reply["number"] in self.executed
            assert number not in self.answered
            self.answered[number] = self.loop.now_ns() / MS

        self.faults.serve(client, execute, answer)

    def ask_many(self, count: int = 200) -> None:
        for number in range(count):
            self.ask(number)
        self.wait()

    def wait(self) -> None:
        pass_until(self.loop, 10_000 * MS)


@pytest.mark.parametrize("mode", MODES)
def test_every_request_is_executed_once_and_only_a_lost_one_has_no_answer(mode: str) -> None:
    rig = Rig(mode)
    rig.ask_many()
    assert (len(rig.executed), len(rig.answered)) == (200, 0 if mode == "lost" else 200)


@pytest.mark.parametrize("mode", WAITS_NS)
def test_it_waits_before_it_is_executed_or_its_answer_waits(mode: str) -> None:
    rig = Rig(mode)
    rig.ask_many()
    shortest, longest = (wait_ns / MS for wait_ns in WAITS_NS[mode])
    assert all(shortest <= at <= longest for at in rig.answered.values())
    assert 60 < sum(at == 0 for at in rig.executed.values()) < 140
    assert all(at in (0, rig.answered[number]) for number, at in rig.executed.items())


def test_abandoned_means_longer_than_a_node_waits_for_its_store() -> None:
    from leaderless.core.pace import Pace

    assert WAITS_NS["abandoned"][0] > Pace().store_timeout_s * 1e9 > WAITS_NS["late"][1]


def test_only_its_share_and_its_nodes_suffer() -> None:
    rig = Rig("lost", share=0.3)
    rig.ask_many()
    assert 110 < len(rig.answered) < 170
    rig.ask("other", client="n1")
    assert "other" in rig.answered


def test_what_waits_when_the_trouble_ends_still_comes() -> None:
    rig = Rig("abandoned")
    rig.ask(1)
    rig.faults.impose(None)
    rig.wait()
    assert list(rig.answered) == [1]


# ---------------------------------------------------------------- servers


ENDPOINT = {"AWS_ENDPOINT_URL": "http://127.0.0.1:7480"}


def told(name: str, folder: Path, environment: dict[str, str]) -> StoreServer:
    with store_server(name, folder, environment) as server:
        return server


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "20260101T000000.000"
    folder.mkdir()
    return folder


def test_each_run_has_a_prefix_of_its_own(run_dir: Path) -> None:
    server = told("s3://bucket/tests/", run_dir, ENDPOINT)
    assert server.url("p:1") == "s3://bucket/tests/20260101T000000.000"
    assert server.address == ("127.0.0.1", 7480)
    assert server.environment("p:1")["AWS_ENDPOINT_URL"] == "http://p:1"
    etcd = told("etcd://host:1234", run_dir, ENDPOINT)
    assert etcd.url("p:1") == "etcd://p:1/20260101T000000.000"
    assert (etcd.address, etcd.environment("p:1")) == (("host", 1234), {})
    with_tls = told("etcd://host:1234/a", run_dir, {"ETCDCTL_CACERT": "/ca.pem"})
    assert with_tls.address is None
    assert with_tls.url("") == "etcd://host:1234/a/20260101T000000.000"
    assert told("sqlite", run_dir, {}).url("") == f"sqlite:///{run_dir}/store.db"


@pytest.mark.parametrize("environment", [{}, {"AWS_ENDPOINT_URL": "https://s3.example"}])
def test_nodes_reach_a_server_with_tls_without_a_proxy(
    run_dir: Path, environment: dict[str, str]
) -> None:
    server = told("s3://bucket", run_dir, environment)
    assert (server.address, server.environment("")) == (None, {})
    loop = RealLoop()
    store = RunStore(server, loop, ["n0"], Random(1))
    assert store.own("n0").arguments == ["--store", "s3://bucket/20260101T000000.000"]
    assert set(store.result(1)) == {"valid?", "server", "url"}
    with pytest.raises(RunFailure, match="cannot stand before s3"):
        store.fault(["n0"], "all")
    store.close()
    loop.close()


class Locked:
    """A file of SQLite under a fault, on a clock that jumps."""

    def __init__(self, folder: Path) -> None:
        self.loop = VirtualLoop()
        self.file = folder / "store.db"
        self._other = sqlite3.connect(self.file, timeout=0, isolation_level=None)
        self.lock = FileLock(self.loop, self.file, Random(1))

    def can_write(self) -> bool:
        """Whether another process may write now."""
        try:
            self._other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        self._other.execute("ROLLBACK")
        return True

    def look_for(self, seconds: float) -> list[bool]:
        """Whether another process may write, every 10 ms."""
        found: list[bool] = []

        def look() -> None:
            found.append(self.can_write())
            self.loop.call_at(self.loop.now_ns() + 10 * MS, look)

        look()
        self.loop.run_until(lambda: len(found) >= seconds * 100)
        return found

    def close(self) -> None:
        self.lock.close()
        self._other.close()


@pytest.mark.parametrize("mode", WAITS_NS)
def test_the_file_is_locked_again_and_again_until_the_fault_ends(tmp_path: Path, mode: str) -> None:
    rig = Locked(tmp_path)
    assert rig.can_write()
    rig.lock.impose(StoreFault(frozenset(["n0"]), mode, 1.0))
    found = rig.look_for(20)
    changes = sum(before != after for before, after in pairwise(found))
    shortest, longest = WAITS_NS[mode]
    assert 20e9 / longest / 2 < changes <= 20e9 / shortest
    assert 0.3 < sum(found) / len(found) < 0.7
    rig.lock.impose(None)
    assert all(rig.look_for(5))
    rig.close()
