"""What object stores answer that is not simply yes or no (`leaderless.store.objects`)."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from leaderless.errors import Definite
from leaderless.hosting.fsck import check
from leaderless.hosting.place import ensure_log
from leaderless.store.calls import own_keys
from leaderless.store.objects import ObjectStore, open_bucket
from leaderless.store.options import StoreOptions
from leaderless.store.port import Conflict, OutcomeUnknown, Refused
from leaderless.store.probe import PROBES
from leaderless.store.urls import open_store
from tests import servers
from tests.proxy import Fate, Proxy, proxy
from tests.vacuuming import log_on

pytestmark = pytest.mark.anyio


def store_at(endpoint: str, bucket: str = servers.BUCKET) -> ObjectStore:
    return open_bucket("s3", bucket, servers.s3_options(endpoint))


@contextmanager
def writes_meet(endpoint: str, *fates: Fate) -> Iterator[Proxy]:
    """A proxy that deals `fates` to the first writes, and passes on all else."""
    left = [*fates]

    def fate(method: str, _path: str, _headers: dict[str, str]) -> Fate:
        return left.pop(0) if left and method == "PUT" else "ok"

    with proxy(endpoint, fate) as server:
        yield server


async def test_a_lost_answer_is_unknown_and_nothing_is_tried_again(mock: str) -> None:
    """(1) The write is applied. (2) Its answer is lost. A second try would get 412 from the first's success."""
    with writes_meet(mock, "ok", "answer lost") as server:
        store = store_at(server.url)
        version = await store.create("a", b"1")
        with pytest.raises(OutcomeUnknown):
            await store.compare_and_set("a", b"2", version)
        found = await store.read("a")
    assert found is not None
    assert found.value == b"2"
    assert [method for method, _ in server.requests] == ["PUT", "PUT", "GET"]


@pytest.mark.parametrize(
    ("fate", "kind"),
    [
        ("call lost", OutcomeUnknown),
        # 409: a conditional write met another under way; 503: throttled.
        *((status, OutcomeUnknown) for status in (409, 429, 500, 502, 503, 504)),
        # What the server never does.
        *((status, Refused) for status in (400, 401, 403, 405, 413, 501)),
    ],
)
async def test_trouble_of_the_server_is_unknown_or_refused(
    endpoint: str, fate: Fate, kind: type[Exception]
) -> None:
    with writes_meet(endpoint, "ok", fate, fate) as server:
        store = store_at(server.url)
        version = await store.create("a", b"1")
        for update in (store.compare_and_set("a", b"2", version), store.create("b", b"1")):
            with pytest.raises(kind) as raised:
                await update
            assert "secret-of-the-test" not in str(raised.value)
        assert await store.read("b") is None


async def test_a_conflict_without_a_condition_is_no_clear_answer(mock: str) -> None:
    with proxy(mock, lambda *_: 412) as server:
        store = store_at(server.url)
        for request in (
            store.read("a"),
            store.write("a", b""),
            store.delete(["a"]),
            store.list_objects(),
        ):
            with pytest.raises(OutcomeUnknown):
                await request


async def test_a_server_that_wants_etags_without_quotes_is_understood(mock: str) -> None:
    """Ceph's gateway: 412 always to a quoted ETag, the standard form."""

    def ceph(_method: str, _path: str, headers: dict[str, str]) -> Fate:
        return 412 if headers.get("if-match", "").startswith('"') else "ok"

    with proxy(mock, ceph) as server:
        store = store_at(server.url)
        version = stale = await store.create("a", b"1")
        for number in range(2, 5):
            version = await store.compare_and_set("a", b"%d" % number, version)
        assert store.quotes.bare
        with pytest.raises(Conflict):
            await store.compare_and_set("a", b"5", stale)
        writes = [path for method, path in server.requests if method == "PUT"]
    # One that was refused, and what it took to find out, once.
    assert len(writes) == 1 + 3 + 1 + 1 + 7


async def test_who_may_not_delete_learns_how_etags_are_sent_too(mock: str) -> None:
    """The object that was tried stays, below the prefix, where no folder of a log lists it."""

    def ceph(method: str, _path: str, headers: dict[str, str]) -> Fate:
        refused: Fate = 403 if method in ("DELETE", "POST") else "ok"
        return 412 if headers.get("if-match", "").startswith('"') else refused

    with proxy(mock, ceph) as server:
        url = f"s3://{servers.BUCKET}/may-not-delete"
        store = open_store(url, servers.s3_options(server.url))
        version = await store.create("committed/0", b"1")
        await store.compare_and_set("committed/0", b"2", version)
        assert await own_keys(store, "committed") == ["committed/0"]
        assert len(await own_keys(store, PROBES)) == 1


async def test_a_conflict_is_looked_at_only_until_the_way_is_sure(mock: str) -> None:
    with writes_meet(mock) as server:
        store = store_at(server.url)
        stale = await store.create("a", b"1")
        await store.compare_and_set("a", b"2", stale)
        for _ in range(3):
            with pytest.raises(Conflict):
                await store.compare_and_set("a", b"3", stale)
        assert [method for method, _ in server.requests] == ["PUT"] * 5


async def test_a_missing_bucket_is_no_missing_object(endpoint: str) -> None:
    store = store_at(endpoint, "nowhere")
    for call in (store.read("a"), store.create("a", b"1"), store.list_objects()):
        with pytest.raises(Refused, match="bucket does not exist"):
            await call


async def test_no_server_is_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="error sending request"):
        await store_at(f"http://127.0.0.1:{servers.free_port()}").read("a")


async def test_a_server_that_is_silent_is_unknown() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        options = StoreOptions(f"http://127.0.0.1:{port}", "k", "s", "us-east-1", timeout_s=0.2)
        with pytest.raises(OutcomeUnknown):
            await open_bucket("s3", "logs", options).read("a")


def test_secrets_are_not_shown(endpoint: str) -> None:
    options = servers.s3_options(endpoint)
    store = open_store("s3://logs/x", options)
    for shown in (repr(options), repr(store), store.url):
        assert "secret" not in shown


async def test_marks_of_folders_that_a_console_made_disturb_no_log(endpoint: str) -> None:
    client = servers._client(endpoint)
    for mark in ("", "data/", "sink/", "group/", "group/a/", "segment/"):
        client.put_object(Bucket=servers.BUCKET, Key=f"marked/{mark}", Body=b"")
    store = open_store(f"s3://{servers.BUCKET}/marked", servers.s3_options(endpoint))
    assert (await ensure_log(store)).new
    async with log_on(store) as log:
        await log.commit("a-b", {"k": 0})
        await log.commit("a", {"k": 0})
        assert {*await log.cursors.groups()} == {"a", "a-b"}
        await log.vacuum()
    assert (await check(store)).findings == []


async def test_a_program_that_does_not_catch_it_shows_one_traceback(endpoint: str) -> None:
    store = store_at(endpoint, "no-such-bucket")
    with pytest.raises(Definite, match="the bucket does not exist; make it first") as raised:
        await ensure_log(store)
    assert "".join(traceback.format_exception(raised.value)).count("Traceback") == 1
