"""A log on real stores: processes that are killed, answers that are lost, stores that cannot hold a log."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import orjson
import pytest

from leaderless import Record, open_log, open_log_sync
from leaderless.cli import main
from leaderless.store.urls import open_store
from leaderless.table.manifest import read_manifest
from leaderless.upkeep.fsck import check
from tests import servers
from tests.killed import Killed
from tests.proxy import Fate, half, proxy, wants_bare, without
from tests.tables import Model, append, compact, content_of, messages, require_readable, small_log

pytestmark = pytest.mark.anyio
SECRET = "secret-of-the-test"
BUCKET = f"s3://{servers.BUCKET}"


def keys(endpoint: str) -> dict[str, Any]:
    options = servers.s3_options(endpoint)
    return {
        "endpoint": endpoint,
        "access_key": options.access_key,
        "secret_key": options.secret_key,
        "region": options.region,
    }


# ---------------------------------------------------------------- processes


def appending(url: str, endpoint: str, name: str) -> Killed:
    """A process of `tests.appending`."""
    return Killed(sys.executable, "-m", "tests.appending", url, endpoint, name)


def killed_in_turn(url: str, endpoint: str = "", names: Sequence[str] = "abc") -> list[Record]:
    """What three processes acknowledged, each of which was killed while the next one appended too."""
    processes: list[Killed] = []
    for name in names:
        processes.append(appending(url, endpoint, name))
        processes[-1].wait_for(20)
        if len(processes) > 1:
            processes[-2].kill()
    processes[-1].kill()
    return [record for process in processes for record in process.acknowledged]


async def whole_log(url: str, **options: Any) -> list[Record]:
    """Every record; the log is checked on the way."""
    async with open_log(url, **options) as log:
        records: list[Record] = []
        for key, end in (await log.keys()).items():
            at = 0
            while at < end:
                records += (found := await log.read(key, at, 1000))
                at = found[-1].offset + 1
        assert await log.append("k0", f"after {len(records)}") == (await log.keys())["k0"] - 1
    return records


async def require_whole(url: str, options: Any = None) -> None:
    store = open_store(url, options)
    assert (await check(store)).findings == []
    await store.aclose()


def test_kill_9_loses_and_doubles_nothing_in_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    acknowledged: list[Record] = []
    for life in range(2):
        acknowledged += killed_in_turn(url, names=[f"{life}{name}" for name in "abc"])
        require_kept(acknowledged, anyio.run(whole_log, url))
        anyio.run(require_whole, url)


@pytest.mark.slow  # etcd must be installed
def test_kill_9_loses_and_doubles_nothing_in_etcd(tmp_path: Path) -> None:
    with servers.etcd(tmp_path / "etcd") as address:
        url = f"etcd://{address}/log"
        require_kept(killed_in_turn(url), anyio.run(whole_log, url))
        anyio.run(require_whole, url)


async def test_kill_9_loses_and_doubles_nothing_in_a_bucket(endpoint: str) -> None:
    url = f"{BUCKET}/log"
    acknowledged = await anyio.to_thread.run_sync(killed_in_turn, url, endpoint)
    require_kept(acknowledged, await whole_log(url, **keys(endpoint)))
    await require_whole(url, servers.s3_options(endpoint))


def test_a_copy_to_a_bucket_and_back_goes_on_after_kill_9(mock: str, tmp_path: Path) -> None:
    source, back = f"sqlite:///{tmp_path}/source.db", f"sqlite:///{tmp_path}/back.db"
    with open_log_sync(source) as log:
        for number in range(5):
            log.append_many(
                f"k{number % 2}", [f"{number}.{each}{'x' * 90}" for each in range(4000)]
            )
    heads = 0

    def fate(method: str, path: str, _headers: dict[str, str]) -> Fate:
        nonlocal heads
        heads += method == "PUT" and path.partition("?")[0].endswith("/head")
        if heads == 2:
            process.kill()
        return "ok"

    command = [sys.executable, "-m", "leaderless", "copy", source, f"{BUCKET}/copy"]
    with proxy(mock, fate) as server:
        process = subprocess.Popen(command, env=os.environ | servers.environment_of(server.url))
        assert process.wait(60) == -signal.SIGKILL
    for some in (command, [*command[:4], f"{BUCKET}/copy", back]):
        known = os.environ | servers.environment_of(mock)
        assert b"fsck found nothing" in subprocess.check_output(some, env=known)
    found = anyio.run(whole_log, back)
    assert len(found) == 20_000
    assert found == anyio.run(whole_log, source)


def require_kept(acknowledged: list[Record], records: list[Record]) -> None:
    assert {*acknowledged} <= {*records}
    values = [record.value for record in records]
    assert len({*map(str, values)}) == len(values)  # none twice
    for key in ("k0", "k1"):
        offsets = [record.offset for record in records if record.key == key]
        assert offsets == list(range(len(offsets)))


# ---------------------------------------------------------------- lost answers


@pytest.mark.parametrize("status", [409, 500, 503])
async def test_a_store_that_throttles_delays_and_loses_nothing(endpoint: str, status: int) -> None:
    requests = 0

    def fate(method: str, _path: str, _headers: dict[str, str]) -> Fate:
        nonlocal requests
        requests += 1
        return status if requests % 3 == 0 and (status != 409 or method == "PUT") else "ok"

    with proxy(endpoint, fate) as server:
        async with open_log(f"{BUCKET}/log", **keys(server.url)) as log:
            assert [await log.append("k", number) for number in range(5)] == list(range(5))
            assert await log.append("k", "x" * 20_000) == 5
            assert len(await log.read("k")) == 6


async def test_a_log_of_files_in_a_bucket(mock: str) -> None:
    """It is compacted, merged, read in ranges, checked, and vacuumed."""
    url = f"{BUCKET}/orders"
    store, model = open_store(url, servers.options_of(url, mock)), Model()
    async with small_log(store, timeout_s=2.0) as log:
        for number in range(24):
            await append(log, model, "ab"[number % 2], {"amount": number}, "x" * 20_000)
        await compact(log)
    assert (await read_manifest(store))[0].files
    async with small_log(store, timeout_s=2.0) as log:
        await require_readable(log, model)
        assert (await log.vacuum()).deleted == 0
    assert (await check(store)).findings == []
    content = await content_of(store)
    amounts = {key: values[::2] for key, values in messages(model).items()}
    assert {key: found[::2] for key, found in content.items()} == amounts
    await store.aclose()


# ---------------------------------------------------------------- init


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("ACCESS_KEY_ID", "test"),
        ("SECRET_ACCESS_KEY", SECRET),
        ("REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)


Said = tuple[int, dict[str, Any]]


def init(capsys: pytest.CaptureFixture[str], endpoint: str, bucket: str = servers.BUCKET) -> Said:
    """What `leaderless init` says."""
    arguments = [
        "--store",
        f"s3://{bucket}/log",
        "--endpoint",
        endpoint,
        "--patience",
        "5",
        "--json",
    ]
    status = main(["init", *arguments])
    output = capsys.readouterr()
    assert SECRET not in output.out + output.err
    return status, orjson.loads(output.out)


@pytest.mark.usefixtures("environment")
def test_init_finds_how_etags_are_sent(capsys: pytest.CaptureFixture[str], mock: str) -> None:
    assert init(capsys, mock)[1]["etags"] == "quoted"
    with proxy(mock, wants_bare) as server:
        status, said = init(capsys, server.url)
    assert (status, said["etags"], said["created"]) == (0, "bare", False)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("meant", "fate", "text"),
    [
        # Not on Ceph's gateway: its signatures cover the header that is dropped here.
        ("if-none-match", "dropped", "ignores If-None-Match"),
        ("if-match", "dropped", "ignores If-Match"),
        ("if-none-match", 412, "never lets an object be created"),
        ("if-match", 412, "never lets a conditional update through"),
        ("PUT", without("etag"), "does not answer as it should"),
        ("GET", without("etag"), "does not answer as it should"),
        ("GET", half, "does not answer as it should"),
        ("", "stale", "it is not strongly consistent, and cannot hold a log"),
        ("", 403, "Check the access key"),
        ("", 401, "Check the access key"),
        ("", 503, "does not answer as it should"),
        ("", "call lost", "does not answer as it should"),
    ],
)
def test_init_says_what_a_store_lacks(
    capsys: pytest.CaptureFixture[str], mock: str, meant: str, fate: Any, text: str
) -> None:
    def meets(method: str, _path: str, headers: dict[str, str]) -> Fate:
        return fate if meant in ("", method) or meant in headers else "ok"

    drops = meant if fate == "dropped" else ""
    with proxy(mock, (lambda *_: "ok") if drops else meets, drops) as server:
        status, said = init(capsys, server.url)
    assert status == 1
    assert text in said["error"]


@pytest.mark.usefixtures("environment")
def test_init_without_a_bucket_or_a_server(
    capsys: pytest.CaptureFixture[str], endpoint: str
) -> None:
    error = init(capsys, endpoint, "nowhere")[1]["error"]
    assert "bucket does not exist; make it first (`aws s3 mb s3://nowhere`" in error
    status, said = init(capsys, f"http://127.0.0.1:{servers.free_port()}")
    assert (status, said["may_have_happened"]) == (1, False)
    assert "Connection refused" in said["error"]
