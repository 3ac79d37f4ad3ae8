"""etcd as a store: TLS, users, compaction, a full database, and kill -9 of etcd itself."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import anyio
import pytest

from leaderless import open_log
from leaderless.api.log import Log
from leaderless.errors import Definite
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, ensure_log, initialise, place_of
from leaderless.store.options import StoreOptions
from leaderless.store.port import OutcomeUnknown, Refused, Store, Version
from leaderless.store.urls import open_store
from tests import servers
from tests.process.test_log_on_stores import Killed, require_kept, require_whole, whole_log

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # etcd must be installed
PASSWORD = "secret-of-the-test"


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[str]:
    with servers.etcd(tmp_path / "etcd") as address:
        yield address


def ask(address: str, method: str, question: Any, token: str = "") -> Any:
    """What etcd answers to a request of its operator."""
    headers = {"Authorization": token} if token else {}
    request = Request(f"http://{address}/v3/{method}", json.dumps(question).encode(), headers)
    with urlopen(request) as answer:
        return json.load(answer)


async def require_works(url: str, options: StoreOptions | None = None) -> None:
    store = open_store(url, options)
    try:
        version = await store.create("a", b"1")
        await store.compare_and_set("a", b"2", version)
        found = await store.read("a")
        assert found is not None
        assert found.value == b"2"
        await store.delete(["a"])
    finally:
        await store.aclose()


async def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.etcd(tmp_path / "etcd", tls=True) as address:
        options = StoreOptions(endpoint=f"https://{address}")
        with pytest.raises(OutcomeUnknown, match=r"(?i)certificate"):
            await require_works(f"etcd://{address}", options)
        authority = tmp_path / "etcd" / "fixtures" / "client" / "cert.pem"
        monkeypatch.setenv("ETCDCTL_CACERT", str(authority))
        await require_works(f"etcd://{address}")
        async with open_log(f"etcd://{address}/log") as log:
            assert await log.append("k", 1) == 0


def test_certificates_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDCTL_CACERT", str(tmp_path / "none.pem"))
    with pytest.raises(Refused, match=r"none\.pem cannot be read"):
        open_store("etcd://127.0.0.1:1")


def make_user(address: str) -> None:
    """Let nobody in but the user `root`."""
    ask(address, "auth/user/add", {"name": "root", "password": PASSWORD})
    ask(address, "auth/user/grant", {"user": "root", "role": "root"})
    ask(address, "auth/enable", {})


async def test_users(etcd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="knows no users"):
        await require_works(f"etcd://root:{PASSWORD}@{etcd}")
    make_user(etcd)
    with pytest.raises(Refused, match="ETCDCTL_USER"):
        await require_works(f"etcd://{etcd}")
    with pytest.raises(Refused, match="check user and password") as refused:
        await require_works(f"etcd://root:wrong-{PASSWORD}@{etcd}")
    assert PASSWORD not in str(refused.value)
    await require_works(f"etcd://root:{PASSWORD}@{etcd}")
    await require_works(f"etcd://{etcd}", StoreOptions(access_key="root", secret_key=PASSWORD))
    monkeypatch.setenv("ETCDCTL_USER", f"root:{PASSWORD}")
    await require_works(f"etcd://{etcd}")
    monkeypatch.setenv("ETCDCTL_USER", "root")
    monkeypatch.setenv("ETCDCTL_PASSWORD", PASSWORD)
    await require_works(f"etcd://{etcd}")


async def test_a_token_that_expired_is_renewed(etcd: str) -> None:
    make_user(etcd)
    store: Any = open_store(f"etcd://root:{PASSWORD}@{etcd}")
    version = await store.create("a", b"1")
    store._token = "none"
    await store.compare_and_set("a", b"2", version)
    await store.aclose()


async def test_a_compaction_of_etcd_loses_nothing(etcd: str) -> None:
    url = f"etcd://{etcd}/log"
    async with open_log(url) as log:
        for number in range(10):
            assert await log.append("k", number) == number
            revision = ask(etcd, "kv/range", {"key": "AA=="})["header"]["revision"]
            ask(etcd, "kv/compaction", {"revision": revision, "physical": True})
    assert [record.value for record in await whole_log(url)][:10] == [*range(10)]


async def fill(store: Store) -> None:
    for number in range(20):
        await store.write(f"a{number}", b"x" * 500_000)


async def test_a_full_database_says_what_to_do(tmp_path: Path) -> None:
    quota = ["--quota-backend-bytes", str(1 << 20)]
    with servers.etcd(tmp_path / "etcd", *quota) as address:
        store = open_store(f"etcd://{address}")
        with pytest.raises(Refused, match="its database is full: compact and defragment it"):
            await fill(store)
        with pytest.raises(Definite, match="its database is full"):
            await initialise(store)
        await store.aclose()


def test_kill_9_of_etcd_under_appends_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """etcd is killed three times while two processes append, and starts again on the same data."""
    address = f"127.0.0.1:{servers.free_port()}"
    url = f"etcd://{address}/log"
    producers: list[Killed] = []
    for _ in range(4):
        with servers.etcd(tmp_path / "etcd", address=address):  # its end is a kill -9
            if not producers:
                producers = [Killed(url, "", name) for name in "ab"]
            for producer in producers:
                producer.wait_for(len(producer.acknowledged) + 25)
    with servers.etcd(tmp_path / "etcd", address=address):
        for producer in producers:
            producer.kill()
        acknowledged = [record for producer in producers for record in producer.acknowledged]
        assert len(acknowledged) >= 200
        require_kept(acknowledged, anyio.run(whole_log, url))
        anyio.run(require_whole, url)


AHEAD = """\
import time
real = time.time
time.time = lambda: real() + 62 * 60
from leaderless.cli import main
main()
"""


async def test_a_vacuum_on_a_machine_whose_clock_is_ahead_keeps_every_value(etcd: str) -> None:
    """(1) A value's object is written. (2) By a clock 62 minutes ahead it is an orphan, and old."""
    url = f"etcd://{etcd}/log"
    command = [sys.executable, "-c", AHEAD, "vacuum", "--store", url, "--json"]
    deleted: list[int] = []
    store: Any = place_of(url, None, StoreOptions())
    written = store.write

    async def write(key: str, value: bytes) -> Version:
        version: Version = await written(key, value)
        if key.startswith("data/") and not deleted:
            done = await anyio.run_process(command)
            deleted.append(json.loads(done.stdout)["deleted"])
        return version

    store.write = write
    await ensure_log(store)
    log = Log(store, bounds_of(store, 60.0, 5.0))
    async with running(log.host):
        await log.append("k", 0)
        await log.append("k", "x" * 20_000)
    await store.aclose()
    assert deleted == [1]
    assert [record.value for record in await whole_log(url)] == [0, "x" * 20_000]
    await require_whole(url)
