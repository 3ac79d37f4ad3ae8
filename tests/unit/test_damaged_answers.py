"""What answers that make no sense do to a log: nothing, or an error that says what came."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import chain, cycle
from pathlib import Path
from socket import gaierror
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import orjson
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, InvalidPathError, PreconditionError
from obstore.store import MemoryStore as ObjectsInMemory

from leaderless import open_log
from leaderless.errors import Broken
from leaderless.store.bucket import BucketFiles, cause_of, classified, modified_in
from leaderless.store.etags import version_of
from leaderless.store.etcd import EtcdStore
from leaderless.store.files import FolderFiles, Gone
from leaderless.store.memory import MemoryStore
from leaderless.store.objects import open_bucket
from leaderless.store.options import StoreOptions
from leaderless.store.port import (
    Conflict,
    Found,
    Listed,
    OutcomeUnknown,
    Refused,
    Store,
    StoreError,
    Version,
    require_page,
)
from leaderless.store.probe import probe
from leaderless.store.wrapped import WRITES
from leaderless.upkeep.fsck import check
from tests import around
from tests.around import READS, Fate, Fated, Overwrites, cut_off, renames, wrong

pytestmark = pytest.mark.anyio
DAMAGES = around.DAMAGES | {
    "of another object": lambda _: b'{"format":4,"made_by":"another"}',
    "of another kind": lambda _: b"[]",
    "of endless depth": lambda _: b"[" * 2_000 + b"]" * 2_000,
}
SHORT: Any = {"patience_s": 1.0, "store_timeout_s": 0.2}


@pytest.fixture
def damaged(monkeypatch: pytest.MonkeyPatch) -> Fated:
    store = Fated()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


TURNS = cycle(chain(*((bytes, bytes, each) for each in DAMAGES.values())))
DAMAGED = around.damaged(lambda body: next(TURNS)(body))  # noqa: PLW0108 - another each time
ANSWERS = cycle([None, None, Conflict("412")])
EACH_THIRD = {
    "read is damaged": Fate(READS, "(?!format)", DAMAGED),
    # Something sends a write again when its answer is late: the second try meets the first one. `init` refuses
    # such a store where it sees it; it may be so only now and then.
    "write conflicts with itself": Fate(WRITES, ends=lambda version: next(ANSWERS) or version),
}


@pytest.mark.parametrize("each", EACH_THIRD)
async def test_odd_answers_lose_and_double_nothing(damaged: Fated, each: str) -> None:
    """Two processes append in turn, so that each must read what the other one wrote."""
    async with open_log("memory:", peers=None) as one, open_log("memory:", peers=None) as other:
        damaged.fates = [EACH_THIRD[each]]
        for number in range(20):
            assert await one.append("k", 2 * number) == 2 * number
            assert await other.append("k", 2 * number + 1) == 2 * number + 1
        async with open_log("memory:") as third:
            records = await third.read("k", limit=100)
        damaged.fates.clear()
    assert [record.value for record in records] == [*range(40)]
    assert EACH_THIRD[each].met.total() > 40
    assert (await check(damaged)).findings == []


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_log_whose_head_stays_damaged_says_what_came(damaged: Fated, damage: str) -> None:
    async with open_log("memory:", **SHORT) as log:
        await log.append("k", 1)
    async with open_log("memory:", **SHORT) as log:
        damaged.fates = [Fate(READS, "head", around.damaged(DAMAGES[damage]))]
        for call in (log.append("k", 2), log.read("k")):
            with pytest.raises(
                Broken,
                match=r"^RegistersReadable: 'head' could not be read: it (is damaged|holds no)",
            ):
                await call
        damaged.fates.clear()
        assert await log.append("k", 3) in (1, 2)


# ---------------------------------------------------------------- listings


@pytest.mark.parametrize(
    ("keys", "folder", "after", "sound"),
    [
        (["b/1"], "a", "", False),
        (["a/1", "b/1"], "a", "", False),
        (["a/2", "a/1"], "a", "", False),
        (["a/1", "a/1"], "a", "", False),
        (["a/1"], "a", "a/1", False),
        (["ab"], "a", "", False),
        (["a"], "", "b", False),
        (["a", "b/1"], "", "", True),
        (["a/2", "a/3"], "a", "a/1", True),
        ([], "a", "", True),
    ],
)
def test_a_listing_of_something_else_is_no_answer(
    keys: Sequence[str], folder: str, after: str, sound: bool
) -> None:
    page = [Listed(key, None, None) for key in keys]
    other = pytest.raises(OutcomeUnknown, match="is no answer to a listing of")
    with nullcontext() if sound else other:
        assert require_page(page, folder, after) == page


# ---------------------------------------------------------------- what answers of etcd and of buckets mean

# ---------------------------------------------------------------- etcd


def etcd_that_says(answer: Any, monkeypatch: pytest.MonkeyPatch) -> EtcdStore:
    """A store in an etcd that gives one answer to everything, or what a function makes of a request."""
    body = (
        answer if isinstance(answer, bytes) else b"" if callable(answer) else orjson.dumps(answer)
    )
    says = answer if callable(answer) else lambda _request: httpx.Response(200, content=body)

    def client(_place: str, _options: StoreOptions) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(says), base_url="http://etcd")

    monkeypatch.setattr("leaderless.store.etcd._client", client)
    return EtcdStore(urlsplit("etcd://etcd"), StoreOptions())


HEADER = {"cluster_id": "7", "member_id": "8", "revision": "5", "raft_term": "2"}
A, B = "YQ==", "Yg=="  # the keys a and b
NO_ANSWERS: list[Any] = [b"", b'{"header":', b"null", {}, [], {"header": 1}, {"header": {}}]


def shown(**kv: Any) -> Any:
    """An answer with one object."""
    return {"header": HEADER, "kvs": [{"key": A, "mod_revision": "3", "value": A} | kv]}


CALLS: dict[str, Callable[[EtcdStore], Awaitable[object]]] = {
    "read": lambda store: store.read("a"),
    "create": lambda store: store.create("a", b"1"),
    "set": lambda store: store.compare_and_set("a", b"1", "3"),
    "write": lambda store: store.write("a", b"1"),
    "list a": lambda store: store.list_objects("a"),
    "list": lambda store: store.list_objects("", "b"),
}
UNCLEAR = {"header": HEADER, "succeeded": "yes"}
# Calls, and what is no answer to them. Above all it is no conflict: a write may have happened.
NONSENSE: list[tuple[str, list[Any]]] = [
    (
        "read",
        [
            {"header": HEADER, "kvs": {}, "count": "1"} | {"kvs": 7},
            {"header": HEADER, "kvs": [7]},
            shown(key=B),
            shown(mod_revision=3),
            shown(mod_revision="0"),
            shown(value="no base64 !"),
            shown(value="YWE"),
            {"header": HEADER, "kvs": [{"key": A}]},
        ],
    ),
    *((call, [{"header": HEADER | {"revision": None}}, UNCLEAR]) for call in ("create", "set")),
    ("write", [{"header": HEADER | {"revision": None}}]),
    *((call, [shown(key=B), shown(key="/w=="), shown(key=7)]) for call in ("list a", "list")),
]


@pytest.mark.parametrize(
    ("call", "answer"),
    [(call, answer) for call, answers in NONSENSE for answer in (*NO_ANSWERS, *answers)],
    ids=str,
)
async def test_an_answer_of_etcd_makes_sense_or_is_none(
    call: str, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OutcomeUnknown):
        await CALLS[call](etcd_that_says(answer, monkeypatch))


async def test_what_etcd_says_when_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await etcd_that_says(shown(), monkeypatch).read("a") == Found(b"a", "3")
    nothing = etcd_that_says({"header": HEADER}, monkeypatch)
    assert await nothing.read("a") is None
    assert await nothing.list_objects() == []
    assert await nothing.write("a", b"") == "5"
    with pytest.raises(Conflict):
        await nothing.create("a", b"")
    assert (
        await etcd_that_says({"header": HEADER, "succeeded": True}, monkeypatch).create("a", b"")
        == "5"
    )


async def test_a_request_to_etcd_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try of a write whose answer was lost would look like a conflict."""
    asked: list[str] = []

    def lost(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        raise httpx.ReadError("reset", request=request)

    store = etcd_that_says(lost, monkeypatch)
    for call in ("create", "set"):
        with pytest.raises(OutcomeUnknown):
            await CALLS[call](store)
    assert asked == ["/v3/kv/txn"] * 2


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("cause", "said", "kind"),
    [
        (ConnectionRefusedError(111, "Connect call failed"), "Connection refused", Refused),
        (gaierror(-2, "Name or service not known"), "Name or service not known", Refused),
        (gaierror(-3, "Temporary failure"), "Temporary failure", OutcomeUnknown),
    ],
)
async def test_an_address_where_nobody_ever_was_is_wrong_after_a_while(
    cause: OSError, said: str, kind: type[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server may be starting. One that was reached will be there again."""
    never, before = etcd_that_says(shown(), monkeypatch), etcd_that_says(shown(), monkeypatch)
    await before.read("a")

    async def post(*_: object, **__: object) -> None:
        raise httpx.ConnectError("All connection attempts failed") from cause

    monkeypatch.setattr("httpx.AsyncClient.post", post)
    for store, kinds in ((never, (OutcomeUnknown, kind)), (before, (OutcomeUnknown,) * 2)):
        for expected in kinds:
            with pytest.raises(expected, match=f"^{said}: etcd://"):
                await store.read("a")
            await anyio.sleep(3)


async def test_a_token_of_etcd_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETCDCTL_USER", "root:secret")
    for answer in (*NO_ANSWERS, {"header": HEADER}, {"header": HEADER, "token": ["x"]}):
        with pytest.raises(OutcomeUnknown) as unknown:
            await etcd_that_says(answer, monkeypatch).read("a")
        assert "secret" not in str(unknown.value)


# ---------------------------------------------------------------- obstore


@pytest.mark.parametrize("meta", [{}, {"e_tag": None}, {"e_tag": ""}, {"e_tag": '""'}], ids=str)
def test_an_answer_without_an_etag_is_no_refusal(meta: Any) -> None:
    """The write took effect."""
    with pytest.raises(OutcomeUnknown, match="no ETag"):
        version_of(meta)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("an answer that cannot be parsed"), OutcomeUnknown),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), OutcomeUnknown),
        (GenericError("Got invalid list response: unexpected `Event::Eof`"), OutcomeUnknown),
        (GenericError("response error, status code: 409 Conflict"), OutcomeUnknown),
        (AlreadyExistsError("status code: 409 Conflict"), OutcomeUnknown),
        (PreconditionError("status code: 409 Conflict"), OutcomeUnknown),
        (GenericError("status code: 500 Internal Server Error"), OutcomeUnknown),
        (GenericError("status code: 503 Slow Down"), OutcomeUnknown),
        (GenericError("status code: 400 <Code>RequestTimeout</Code>"), OutcomeUnknown),
        (PreconditionError("status code: 412 Precondition Failed"), Conflict),
        (AlreadyExistsError("status code: 412 Precondition Failed"), Conflict),
        (AlreadyExistsError("status code: 409 <Code>BlobAlreadyExists</Code>"), Conflict),
        (GenericError("status code: 400 <Code>InvalidArgument</Code>"), Refused),
        (GenericError("status code: 403 Forbidden"), Refused),
        (GenericError("DeleteObjects request failed: (code: AccessDenied)"), Refused),
        (GenericError("status code: 404 <Code>NoSuchBucket</Code>"), Refused),
        (ValueError('Could not parse path: Path "a//b" contained empty path segment'), Refused),
        (InvalidPathError('Encountered object with invalid path: Path "p/a//b"'), Refused),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), Refused),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_errors_of_obstore_mean(error: Exception, kind: type[StoreError]) -> None:
    assert type(classified("s3://bucket", error)) is kind


def test_why_obstore_made_no_connection() -> None:
    dump = """HTTP error: error sending request
Debug source: HttpError { kind: Connect, source: ConnectError("dns error", Custom { kind: Uncategorized,
error: "failed to lookup address information: Name or service not known", }) }"""
    assert cause_of(GenericError(dump)) == "Name or service not known"
    assert cause_of(GenericError(dump.replace("kind: Connect", "kind: Timeout"))) == ""


async def test_a_plain_404_is_a_conflict_of_an_update_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def put(*_: object, **__: object) -> None:
        raise FileNotFoundError("Object at location data/1 not found: status code: 404 Not Found")

    monkeypatch.setattr("obstore.put", put)
    store = open_bucket("s3", "bucket", StoreOptions("http://host", "key", "secret", "region"))
    store.quotes = store.quotes._replace(sure=True)
    for write in (store.write("data/1", b"1"), store.create("segment/1", b"1")):
        with pytest.raises(Refused, match=r"404 Not Found\. A bucket has no such answer"):
            await write
    with pytest.raises(Conflict):
        await store.compare_and_set("head", b"1", '"1"')


def test_a_time_that_an_answer_does_not_have_is_unknown() -> None:
    """obstore says 1970; vacuum would take the object for old."""
    for seconds, known in ((0, None), (1_800_000_000, 1.8e9)):
        meta: Any = {"last_modified": datetime.fromtimestamp(seconds, UTC)}
        assert modified_in(meta) == known


@pytest.mark.parametrize("length", [3, 6, 0])
def test_a_range_of_another_length_is_no_answer(
    length: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("obstore.get_range", lambda *_, **__: b"x" * length)
    with pytest.raises(OutcomeUnknown, match=f"{length} bytes came, not 5"):
        BucketFiles("s3://bucket", ObjectsInMemory()).read_range("a", 0, 5)
    file = FolderFiles(tmp_path)
    file.put("a", b"12345")
    assert file.read_range("a", 1, 4) == b"2345"
    with pytest.raises(OutcomeUnknown, match="4 bytes came, not 5"):
        file.read_range("a", 1, 5)
    with pytest.raises(Gone):
        file.read_range("b", 1, 5)


# ---------------------------------------------------------------- what `leaderless init` finds out


class Stale(MemoryStore):
    """A read shows the state before the last change."""

    async def read(self, key: str) -> Found | None:
        shown = self._before.get(key)
        self._before[key] = await super().read(key)
        return shown

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, Found | None] = {}


class StaleAfterUpdates(Stale):
    """A read right after a creation shows it, one after an update does not."""

    async def create(self, key: str, value: bytes) -> Version:
        version = await super().create(key, value)
        self._before[key] = Found(value, version)
        return version


class OverwritesVersions(MemoryStore):
    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        return await self.write(key, value)


class NotModified(MemoryStore):
    """Something on the way has the first state of each object, and answers 304 for it for ever."""

    async def read_again(self, key: str, known: Found) -> Found | None:
        return known


def weak(version: Version) -> Version:
    return f"W/{version}"


def each(**fields: Any) -> Callable[[list[Listed]], list[Listed]]:
    return lambda page: [listed._replace(**fields) for listed in page]


@pytest.mark.parametrize(
    ("store", "text"),
    [
        (Stale(), "shows an old state after a write: it is not strongly consistent"),
        (StaleAfterUpdates(), "shows an old state after an update: it is not strongly consistent"),
        (wrong(delete=""), "shows an object after it was deleted"),
        (wrong(list_objects=lambda _: []), "does not list what was written before"),
        (Overwrites(), "overwrites what exists: it ignores If-None-Match"),
        (OverwritesVersions(), "overwrites a newer version: it ignores If-Match"),
        (wrong(compare_and_set=Conflict("always")), "never lets a conditional update through"),
        (wrong(create=Conflict("always")), "never lets an object be created"),
        (renames(), "takes no update of the version that its reads show, 'W/"),
        (
            wrong(create=weak, compare_and_set=weak),  # so does the answer of a write
            "takes no update of the version that its writes give, 'W/",
        ),
        # The first answer gets lost, and the second try meets what the first one made.
        (wrong(create=Conflict), "reports a conflict for a write that took effect"),
        (wrong(compare_and_set=Conflict), "reports a conflict for a write that took effect"),
        (NotModified(), r'answers "not modified" \(304\) for an object that was updated'),
        (wrong(list_objects=each(size=1_000)), "lists 1000 bytes, and a read gives"),
        (wrong(list_objects=each(modified=1e9)), "gives a listing and a read different times"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_each_law_that_a_store_breaks_is_named(store: Store, text: str) -> None:
    with pytest.raises(Refused, match=text):
        await probe(store)


async def test_a_store_that_keeps_the_laws_is_left_as_it_was() -> None:
    store = MemoryStore()
    await probe(store)
    assert await store.list_objects() == []


async def test_an_answer_that_nobody_wrote_is_no_verdict() -> None:
    with pytest.raises(OutcomeUnknown, match="a read has what nobody wrote"):
        await probe(Fated(None, Fate(READS, ends=cut_off)))
