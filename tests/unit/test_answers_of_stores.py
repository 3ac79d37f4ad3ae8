"""What answers of etcd and of buckets mean that make no sense: nothing is known (`leaderless.store.port`)."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, InvalidPathError, PreconditionError
from obstore.store import MemoryStore

from leaderless.store.bucket import BucketFiles, classified, modified_in
from leaderless.store.etags import version_of
from leaderless.store.etcd import EtcdStore
from leaderless.store.files import FolderFiles, Gone
from leaderless.store.options import StoreOptions
from leaderless.store.port import Conflict, Found, OutcomeUnknown, Refused, StoreError

pytestmark = pytest.mark.anyio

# ---------------------------------------------------------------- etcd


def etcd_that_says(answer: Any, monkeypatch: pytest.MonkeyPatch) -> EtcdStore:
    """A store in an etcd that gives one answer to everything."""

    def client(_place: str, _options: StoreOptions) -> httpx.AsyncClient:
        body = answer if isinstance(answer, bytes) else orjson.dumps(answer)
        transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=body))
        return httpx.AsyncClient(transport=transport, base_url="http://etcd")

    monkeypatch.setattr("leaderless.store.etcd._client", client)
    return EtcdStore(urlsplit("etcd://etcd"), StoreOptions())


HEADER = {"cluster_id": "7", "member_id": "8", "revision": "5", "raft_term": "2"}
A, B = "YQ==", "Yg=="  # the keys a and b
NO_ANSWERS: list[Any] = [b"", b'{"header":', b"null", {}, [], {"header": 1}, {"header": {}}]


def shown(**kv: Any) -> Any:
    """An answer with one object."""
    return {"header": HEADER, "kvs": [{"key": A, "mod_revision": "3", "value": A} | kv]}


@pytest.mark.parametrize(
    "answer",
    [
        *NO_ANSWERS,
        {"header": HEADER, "kvs": {}, "count": "1"} | {"kvs": 7},
        {"header": HEADER, "kvs": [7]},
        shown(key=B),
        shown(mod_revision=3),
        shown(mod_revision="0"),
        shown(value="no base64 !"),
        shown(value="YWE"),
        {"header": HEADER, "kvs": [{"key": A}]},
    ],
    ids=str,
)
async def test_an_answer_of_etcd_to_a_read_makes_sense_or_is_none(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OutcomeUnknown):
        await etcd_that_says(answer, monkeypatch).read("a")


@pytest.mark.parametrize(
    "answer",
    [*NO_ANSWERS, {"header": HEADER | {"revision": None}}, {"header": HEADER, "succeeded": "yes"}],
    ids=str,
)
async def test_an_answer_of_etcd_to_a_write_makes_sense_or_is_none(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above all it is no conflict: the write may have happened."""
    store = etcd_that_says(answer, monkeypatch)
    for write in (store.create("a", b"1"), store.compare_and_set("a", b"1", "3")):
        with pytest.raises(OutcomeUnknown):
            await write
    if answer != {"header": HEADER, "succeeded": "yes"}:
        with pytest.raises(OutcomeUnknown):
            await store.write("a", b"1")


@pytest.mark.parametrize(
    "answer", [*NO_ANSWERS, shown(key=B), shown(key="/w=="), shown(key=7)], ids=str
)
async def test_an_answer_of_etcd_to_a_listing_makes_sense_or_is_none(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = etcd_that_says(answer, monkeypatch)
    for listing in (store.list_objects("a"), store.list_objects("", "b")):
        with pytest.raises(OutcomeUnknown):
            await listing


async def test_what_etcd_says_when_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await etcd_that_says(shown(), monkeypatch).read("a") == Found(b"a", "3")
    nothing = etcd_that_says({"header": HEADER}, monkeypatch)
    assert await nothing.read("a") is None
    assert await nothing.list_objects() == []
    assert await nothing.write("a", b"") == "5"
    with pytest.raises(Conflict):
        await nothing.create("a", b"")
    done = etcd_that_says({"header": HEADER, "succeeded": True}, monkeypatch)
    assert await done.create("a", b"") == "5"


async def test_a_request_to_etcd_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try of a write whose answer was lost would look like a conflict."""
    asked: list[str] = []

    def lost(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        raise httpx.ReadError("reset", request=request)

    def client(_place: str, _options: StoreOptions) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(lost), base_url="http://etcd")

    monkeypatch.setattr("leaderless.store.etcd._client", client)
    store = EtcdStore(urlsplit("etcd://etcd"), StoreOptions())
    with pytest.raises(OutcomeUnknown):
        await store.create("a", b"1")
    with pytest.raises(OutcomeUnknown):
        await store.compare_and_set("a", b"1", "3")
    assert asked == ["/v3/kv/txn"] * 2


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
        (GenericError("status code: 404 <Code>NoSuchBucket</Code>"), Refused),
        (ValueError('Could not parse path: Path "a//b" contained empty path segment'), Refused),
        (InvalidPathError('Encountered object with invalid path: Path "p/a//b"'), Refused),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), Refused),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_errors_of_obstore_mean(error: Exception, kind: type[StoreError]) -> None:
    assert type(classified("s3://bucket", error)) is kind


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
        BucketFiles("s3://bucket", MemoryStore()).read_range("a", 0, 5)
    file = FolderFiles(tmp_path)
    file.put("a", b"12345")
    assert file.read_range("a", 1, 4) == b"2345"
    with pytest.raises(OutcomeUnknown, match="4 bytes came, not 5"):
        file.read_range("a", 1, 5)
    with pytest.raises(Gone):
        file.read_range("b", 1, 5)
