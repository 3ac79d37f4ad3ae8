"""What `--store-server` may name, and what nodes are told of it."""

import sqlite3
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from bench.failure import RunFailure
from bench.loop import RealLoop, VirtualLoop
from bench.nemesis.store_faults import WAITS_NS, StoreFault
from bench.stores.file_lock import FileLock
from bench.stores.names import complaint
from bench.stores.run_store import RunStore
from bench.stores.servers import StoreServer, store_server
from commands.test import test as command

ENDPOINT = {"AWS_ENDPOINT_URL": "http://127.0.0.1:7480"}
MS = 1_000_000


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
        store.fault("all")
    store.close()
    loop.close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("oracle", "write moto, etcd, sqlite, or a URL"),
        ("s3:", "write moto"),
        ("s3://user:geheim@bucket", "belongs into the environment"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_run(name: str, said: str) -> None:
    wrong = complaint(name)
    assert wrong
    assert said in wrong
    assert "geheim" not in wrong
    arguments = ["-w", "kafka", "--bin", __file__, "--store-server", name]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())


def test_the_real_tool_starts_no_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "maelstrom"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("MAELSTROM", str(script))
    monkeypatch.setattr("bench.engine.shutil.which", lambda _: "java")
    arguments = ["-w", "kafka", "--bin", __file__, "--store-server", "sqlite"]
    result = CliRunner().invoke(command, arguments)
    assert "-- --store URL" in result.output


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
    rig.lock.in_force = StoreFault(frozenset(["n0"]), mode, 1.0)
    found = rig.look_for(20)
    changes = sum(before != after for before, after in pairwise(found))
    shortest, longest = WAITS_NS[mode]
    assert 20e9 / longest / 2 < changes <= 20e9 / shortest
    assert 0.3 < sum(found) / len(found) < 0.7
    rig.lock.in_force = None
    assert all(rig.look_for(5))
    rig.close()
