"""What object stores answer that is not simply yes or no (`leaderless.store.objects`)."""

import json
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import anyio
import pytest

from leaderless import open_log
from leaderless.errors import Definite
from leaderless.hosting.place import ensure_log, initialise
from leaderless.store.calls import own_keys
from leaderless.store.objects import ObjectStore, open_bucket
from leaderless.store.options import StoreOptions
from leaderless.store.port import Conflict, OutcomeUnknown, Refused, Store
from leaderless.store.probe import PROBES
from leaderless.store.urls import open_store
from leaderless.upkeep.fsck import check
from tests import servers
from tests.around import value_at
from tests.killed import Killed
from tests.process.test_log_on_stores import appending, require_kept, require_whole, whole_log
from tests.proxy import Fate, Proxy, proxy, wants_bare
from tests.tables import small_log

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
        assert await value_at(store, "a") == b"2"
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
    with proxy(mock, wants_bare) as server:
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

    def ceph(method: str, path: str, headers: dict[str, str]) -> Fate:
        return 403 if method in ("DELETE", "POST") else wants_bare(method, path, headers)

    with proxy(mock, ceph) as server:
        store = open_store(f"s3://{servers.BUCKET}/may-not-delete", servers.s3_options(server.url))
        await store.compare_and_set("committed/0", b"2", await store.create("committed/0", b"1"))
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
    with pytest.raises(Definite, match="the bucket does not exist; make it first") as raised:
        await ensure_log(store)
    assert "".join(traceback.format_exception(raised.value)).count("Traceback") == 1


async def test_a_role_of_the_machine_has_the_keys(
    mock: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As the metadata of a machine at Amazon (IMDSv2), and the agent of a container, give them."""
    token = tmp_path / "token"
    token.write_text("token-of-the-pod")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with cloud() as (asked, url):
        with monkeypatch.context() as machine:
            machine.setenv("AWS_METADATA_ENDPOINT", url)
            machine_store = open_store(f"s3://{servers.BUCKET}", StoreOptions(mock))
        with monkeypatch.context() as container:
            container.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{url}/of-the-pod")
            container.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
            container_store = open_store(f"s3://{servers.BUCKET}", StoreOptions(mock))
        await machine_store.write("of-a-machine", b"1")
        await container_store.write("of-a-container", b"1")
    role = "/latest/meta-data/iam/security-credentials/"
    assert asked == ["/latest/api/token", role, f"{role}a-role", "/of-the-pod"]


@contextmanager
def cloud() -> Iterator[tuple[list[str], str]]:
    """A server that gives the keys of a role; what it is asked for, and its URL."""
    asked: list[str] = []
    keys = {"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "c", "Code": "Success"}
    keys |= {"Expiration": "2099-01-01T00:00:00Z", "LastUpdated": "2026-01-01T00:00:00Z"}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b"a-role" if self.path.endswith("/") else json.dumps(keys).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever).start()
        yield asked, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_a_server_that_is_silent_is_unknown() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        options = StoreOptions(f"http://127.0.0.1:{port}", "k", "s", "us-east-1", timeout_s=0.2)
        with pytest.raises(OutcomeUnknown):
            await open_bucket("s3", "logs", options).read("a")


async def test_marks_of_folders_that_a_console_made_disturb_no_log(endpoint: str) -> None:
    client = servers._client(endpoint)
    for mark in ("", "data/", "sink/", "group/", "group/a/", "segment/"):
        client.put_object(Bucket=servers.BUCKET, Key=f"marked/{mark}", Body=b"")
    store = open_store(f"s3://{servers.BUCKET}/marked", servers.s3_options(endpoint))
    assert (await ensure_log(store)).new
    async with small_log(store, "json", timeout_s=5.0) as log:
        await log.append("k", 0)
        await log.commit("a-b", {"k": 0})
        await log.commit("a", {"k": 0})
        assert {*await log.cursors.groups()} == {"a", "a-b"}
        await log.vacuum()
    assert (await check(store)).findings == []


# ---------------------------------------------------------------- etcd

PASSWORD = "secret-of-the-test"


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[str]:
    with servers.etcd(tmp_path / "etcd") as address:
        yield address


def ask(address: str, method: str, question: Any, token: str = "") -> Any:
    """What etcd answers to a request of its operator."""
    headers = {"Authorization": token} if token else {}
    with urlopen(
        Request(f"http://{address}/v3/{method}", json.dumps(question).encode(), headers)
    ) as answer:
        return json.load(answer)


async def require_works(url: str, options: StoreOptions | None = None) -> None:
    store = open_store(url, options)
    try:
        await store.compare_and_set("a", b"2", await store.create("a", b"1"))
        assert await value_at(store, "a") == b"2"
        await store.delete(["a"])
    finally:
        await store.aclose()


@pytest.mark.slow  # etcd must be installed
async def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.etcd(tmp_path / "etcd", tls=True) as address:
        options = StoreOptions(endpoint=f"https://{address}")
        with pytest.raises(OutcomeUnknown, match=r"(?i)certificate"):
            await require_works(f"etcd://{address}", options)
        monkeypatch.setenv(
            "ETCDCTL_CACERT", str(tmp_path / "etcd" / "fixtures" / "client" / "cert.pem")
        )
        await require_works(f"etcd://{address}")
        async with open_log(f"etcd://{address}/log") as log:
            assert await log.append("k", 1) == 0


@pytest.mark.slow  # etcd must be installed
def test_certificates_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDCTL_CACERT", str(tmp_path / "none.pem"))
    with pytest.raises(Refused, match=r"none\.pem cannot be read"):
        open_store("etcd://127.0.0.1:1")


def make_user(address: str) -> None:
    """Let nobody in but the user `root`."""
    ask(address, "auth/user/add", {"name": "root", "password": PASSWORD})
    ask(address, "auth/user/grant", {"user": "root", "role": "root"})
    ask(address, "auth/enable", {})


@pytest.mark.slow  # etcd must be installed
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


@pytest.mark.slow  # etcd must be installed
async def test_a_token_that_expired_is_renewed(etcd: str) -> None:
    make_user(etcd)
    store: Any = open_store(f"etcd://root:{PASSWORD}@{etcd}")
    version = await store.create("a", b"1")
    store._token = "none"
    await store.compare_and_set("a", b"2", version)
    await store.aclose()


@pytest.mark.slow  # etcd must be installed
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


@pytest.mark.slow  # etcd must be installed
async def test_a_full_database_says_what_to_do(tmp_path: Path) -> None:
    quota = ["--quota-backend-bytes", str(1 << 20)]
    with servers.etcd(tmp_path / "etcd", *quota) as address:
        store = open_store(f"etcd://{address}")
        with pytest.raises(Refused, match="its database is full: compact and defragment it"):
            await fill(store)
        with pytest.raises(Definite, match="its database is full"):
            await initialise(store)
        await store.aclose()


@pytest.mark.slow  # etcd must be installed
def test_kill_9_of_etcd_under_appends_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """etcd is killed three times while two processes append, and starts again on the same data."""
    address = f"127.0.0.1:{servers.free_port()}"
    url = f"etcd://{address}/log"
    producers: list[Killed] = []
    for _ in range(4):
        with servers.etcd(tmp_path / "etcd", address=address):  # its end is a kill -9
            if not producers:
                producers = [appending(url, "", name) for name in "ab"]
            for producer in producers:
                producer.wait_for(len(producer.acknowledged) + 25)
    with servers.etcd(tmp_path / "etcd", address=address):
        for producer in producers:
            producer.kill()
        acknowledged = [record for producer in producers for record in producer.acknowledged]
        assert len(acknowledged) >= 200
        require_kept(acknowledged, anyio.run(whole_log, url))
        anyio.run(require_whole, url)
