"""Which store a URL names (`leaderless.store.urls`), and names of users as segments of keys (`.names`)."""

import os
import re
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from itertools import cycle
from pathlib import Path

import obstore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore import exceptions

from leaderless.api.log import Log
from leaderless.errors import Unfit
from leaderless.hosting.place import ensure_log, initialise
from leaderless.spark.epochs import commit
from leaderless.spark.staging import Epoch
from leaderless.store import urls
from leaderless.store.files import FolderFiles, files_of
from leaderless.store.memory import MemoryStore
from leaderless.store.names import SEGMENT_BYTES_MAX, is_own, name_of, path_segment
from leaderless.store.options import StoreOptions, without_secrets
from leaderless.store.port import OutcomeUnknown, Refused, Store, StoreError, all_of
from leaderless.store.urls import open_store
from leaderless.store.wrapped import Within
from leaderless.upkeep.fsck import check
from tests.around import READS, Fate, Fated
from tests.tables import LATER_S, small_log

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("", "names no store"),
        ("ftp://host", "names no store"),
        ("sqlite:", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///no/such/folder/file.db", "make the folder"),
        ("s3://", "write s3://BUCKET/PREFIX"),
        ("s3://key:secret@bucket", "without keys"),
        ("s3://bucket/a/../b", "is no prefix"),
        ("s3://bucket/a//b", "is no prefix"),
        ("etcd://", "write etcd://HOST:PORT"),
        ("etcd://host:x", "is no URL"),
        ("etcd://user:se#cret@host/x", "no '#'"),
        ("etcd://user:secret/@host/x", "is no URL"),
        ("s3://[bucket", "is no URL"),
        ("s3://bu cket/x", "write s3://BUCKET/PREFIX"),
        ("s3://bucket/x#1", "no '#'"),
        ("s3://bucket/x?a=1", "no '\\?'"),
        ("s3://bucket/x\n", "no control character"),
        *(
            (f"sqlite:///orders.db{end}", "must not end in")
            for end in ("-journal", "-WAL", "-shm", "-files")
        ),
        ("sqlite:///orders.db?mode=ro", "no '\\?'"),
        ("sqlite:///orders.db#1", "no '#'"),
    ],
)
def test_what_names_no_store_is_refused(url: str, text: str) -> None:
    with pytest.raises(Refused, match=text) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("s4://b/p", "s3://b/p"), ("gcs://b", "gs://b"), ("azure://c", "az://c"), ("etc://h", "etcd://h"),
        ("sqlite3:///x.db", "sqlite:///x.db"), ("orders.db", "sqlite:///orders.db"), ("ftp://h", None),
    ],
)  # fmt: skip
def test_what_names_no_store_is_told_in_one_line(url: str, meant: str | None) -> None:
    with pytest.raises(Refused) as refused:
        open_store(url)
    said = str(refused.value)
    assert said.isprintable()
    assert f"Did you mean {meant}? " in said if meant else "Did you mean" not in said
    assert "These do: memory:NAME, sqlite:///FILE, s3://BUCKET/PREFIX, " in said


@pytest.mark.parametrize(
    ("url", "given", "endpoint"),
    [
        ("s3://b", None, "http://here:1"),
        ("s3://b", "http://there:2", "http://there:2"),
        ("az://b", None, "http://azure:4"),
        ("gs://b", None, None),
        ("etcd://h:2379", None, None),
    ],
)
def test_an_endpoint_is_given_or_else_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, url: str, given: str | None, endpoint: str | None
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://here:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other:3")
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", "http://azure:4")
    reached: list[StoreOptions] = []

    def opener(_url: str, options: StoreOptions) -> Store:
        reached.append(options)
        return MemoryStore()

    monkeypatch.setitem(urls._OPENERS, url.partition(":")[0], opener)
    open_store(url, StoreOptions(endpoint=given, region="r"))
    assert reached == [StoreOptions(endpoint=endpoint, region="r")]


@pytest.mark.parametrize("url", ["s3://b/x", "az://b/x", "etcd://h/x"])
@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        ("http://user:secret@host:1", "'host:1' must have no user and no password"),
        ("http://user:sec/r@secret@host:1", "'host:1' must have no user and no password"),
        ("http://user:the secret@host", "'host' must have no user and no password"),
        ("user:secret@host", "'host' must have no user and no password"),
        ("ftp://host", "not 'ftp://host'"),
        ("http://host:secret", "host or port"),
        ("http://host:99999", "host or port"),
        ("http://[::1", "host or port"),
        ("http://", "names no host"),
        ("http://a b", "names no host"),
    ],
)
def test_an_endpoint_that_cannot_be_is_refused_without_its_secrets(
    url: str, endpoint: str, text: str
) -> None:
    with pytest.raises(Refused, match=text) as refused:
        open_store(url, StoreOptions(endpoint=endpoint))
    if "@" in endpoint:
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["endpoint", "region", "access_key", "secret_key"])
def test_an_option_with_a_line_break_is_refused(name: str) -> None:
    """obstore panics when it puts one into a header, and a panic is no `Exception`."""
    with pytest.raises(Refused, match=f"{name} has a control character") as refused:
        open_store("s3://b", StoreOptions(**{name: "secret\n"}))  # type: ignore[arg-type]
    assert "secret\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "name"), [(f"{s}://b", n) for s in urls.SENT for n in urls.SENT[s]]
)
def test_a_variable_with_a_line_break_is_refused(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str
) -> None:
    monkeypatch.setenv(name, "secret\n")
    with pytest.raises(Refused, match=f"{name} has a control character"):
        open_store(url)


class PanicException(BaseException):
    """As obstore's."""


@pytest.mark.parametrize("call", ["get", "head"])
async def test_a_panic_of_obstore_is_an_unknown_outcome_without_secrets(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def panic(*_arguments: object, **_options: object) -> None:
        raise PanicException("no URI: http://user:secret@host/b/k")

    monkeypatch.setattr(obstore, call, panic)
    store = open_store("s3://b", StoreOptions(access_key="a", secret_key="b"))
    with pytest.raises(OutcomeUnknown, match="no URI: http://host/b/k"):  # noqa: PT012
        if call == "get":
            await store.read("k")
        files = files_of(store)
        assert files
        files.size("k")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:a/b:c@d@host/x", "http://host/x"),
        ("GET http://u:secret@host/x and http://u@h", "GET http://host/x and http://h"),
        ("etcd://user:secret@host:2379/p", "etcd://host:2379/p"),
        ("s3://bucket/p", "s3://bucket/p"),
        ("sqlite:///a@b", "sqlite:///a@b"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_a_prefix_is_part_of_the_url() -> None:
    assert open_store("s3://bucket/a/b/").url == "s3://bucket/a/b"


@pytest.mark.parametrize(
    ("package", "url", "extra"), [("obstore", "s3://b", "s3"), ("httpx", "etcd://h", "etcd")]
)
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str, url: str, extra: str
) -> None:
    module = {"s3": "leaderless.store.objects", "etcd": "leaderless.store.etcd"}[extra]
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Refused, match=rf"pip install '\.\[{extra}\]' in a checkout"):
        open_store(url)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "other.db"
    text.write_text("no database, but long enough to be looked at" * 10)
    with sqlite3.connect(database) as other:
        other.execute("CREATE TABLE objects (x)")
    other.close()
    with pytest.raises(Refused, match="not a database"):
        open_store(f"sqlite:///{text}")
    with pytest.raises(Refused, match="of another program"):
        open_store(f"sqlite:///{database}")
    with sqlite3.connect(database) as untouched:
        assert untouched.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    untouched.close()


# ---------------------------------------------------------------- names


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders-1.eu_x", "orders-1.eu_x"), ("", "="), (".", "=2E"), ("..", "=2E."), ("a/b", "a=2Fb"),
        ("a%2Fb", "a=252Fb"), ("a=2Fb", "a=3D2Fb"), ("ü", "=C3=BC"), ("a b", "a=20b"), ("\0", "=00"),
    ],
)  # fmt: skip
def test_a_name_is_one_segment(name: str, segment: str) -> None:
    assert path_segment(name) == segment
    assert name_of(segment) == name


@given(NAMES)
def test_a_segment_tells_its_name_and_climbs_nowhere(name: str) -> None:
    segment = path_segment(name)
    assert name_of(segment) == name
    assert re.fullmatch(r"[\w.=-]+", segment, re.ASCII)
    assert segment not in (".", "..")


@pytest.mark.parametrize("name", ["x" * (SEGMENT_BYTES_MAX + 1), "ü" * 200, "\ud800"])
def test_a_name_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"takes .* bytes|must be text"):
        path_segment(name)


@pytest.mark.parametrize("segment", ["", "..", "a=2fb", "a=41", "=2", "=ZZ", "a/b", "=FF"])
def test_what_is_no_segment_has_no_name(segment: str) -> None:
    with pytest.raises(ValueError, match="is no escaped name"):
        name_of(segment)


# ---------------------------------------------------------------- keys of a bucket


def test_half_of_the_keys_says_which_variables_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "known")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    with pytest.raises(Refused, match="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        open_store("s3://b")


METADATA = "Error performing PUT http://169.254.169.254/latest/api/token: operation timed out"


@pytest.mark.parametrize(("calls", "kind"), [([None], Refused), ([b"1", None], OutcomeUnknown)])
async def test_without_keys_a_store_is_refused_but_a_role_may_have_them_again(
    monkeypatch: pytest.MonkeyPatch, calls: list[bytes | None], kind: type[StoreError]
) -> None:
    store = open_store("s3://b", StoreOptions(access_key="a", secret_key="b"))

    def put(*_arguments: object, **_named: object) -> dict[str, object]:
        if calls.pop(0) is None:
            raise exceptions.GenericError(METADATA)
        return {"e_tag": '"1"', "version": None}

    monkeypatch.setattr(obstore, "put", put)
    for _ in calls[1:]:
        await store.write("k", b"1")
    with pytest.raises(kind, match="Set AWS_ACCESS_KEY_ID") as refused:
        await store.write("k", b"1")
    assert "169.254" not in str(refused.value)


# ---------------------------------------------------------------- what a log touches

TOKEN, HEX = f"{0:016x}", f"{0:024x}"
FILES = [f"merged/0-1-{TOKEN}.parquet", f"starts/{TOKEN}.json", "run/0-1.parquet"]
OWN = [
    "head", "format", "compacted", "table", "clock", "claim/table", "segment/0", "run/10-12",
    "page/1/0-3/0-of-1", "page/1/0-3/1-of-2", "committed/0", f"data/17-4-{HEX}", f"probe/{TOKEN}",
    "group/g/cursor/=", "group/=2E/cursor/k", "group/g/members",
    f"sink/q/{7:020}/plan", f"sink/q/{7:020}/000003-0-17-{HEX}/000000",
    f"merged/unfinished-{TOKEN}", *FILES,
]  # fmt: skip
NEARLY = [
    "heads", "segment/", "segment/00", "segment/-1", "segment/0/x", "segment/0\n", "segment/٣", "run/0",
    "run/0-1-2", "page/1/0-3", "page/1/0-3/1-of-", "data/17", f"data/17-{HEX}", f"data/17-4-{HEX}.csv",
    f"data/17-4-{HEX}/x", f"x/data/17-4-{HEX}", f"data/17-4-{0:025x}", "data/2026-11-report",
    "merged/theirs.csv", f"merged/0-1-{TOKEN}.csv",
    "group/g/cursor/..", "group/g/cursor/=2f", "group//cursor/k", "group/g/cursor/a/b", "group/g/cursor/é",
    f"sink/q/{7:019}/plan", f"sink/q/{7:020}/plans", f"sink/q/{7:020}/0-0/0", f"starts/{TOKEN}.jsonl",
    "topic/a/head",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "own"), [*((name, True) for name in OWN), *((name, False) for name in NEARLY)]
)
def test_a_name_that_is_nearly_one(name: str, own: bool) -> None:
    assert is_own(name) is own


# ------------------------------------------------------------ what others keep there


@pytest.mark.lawless
async def test_a_vacuum_leaves_another_log_and_files_of_others(tmp_path: Path) -> None:
    store = MemoryStore()
    inner = Within(store, "data")  # as an older release let it be made
    theirs = ["data/2026/report.csv", "merged/theirs.csv", "starts/x.json", "sink/a/b"]
    await initialise(inner, "json")
    async with small_log(inner, "json", timeout_s=1.0) as log:
        await log.append("k", "x" * 20_000)
    async with small_log(store, timeout_s=1.0) as log:
        await log.append("k", 1)
        for name in theirs:
            await store.write(name, b"theirs")
            store.files.put(name, b"theirs")
        before = [each.key async for each in all_of(store)]
        store.ahead_s = LATER_S
        vacuumed = await log.vacuum(600)
    assert (vacuumed.deleted, vacuumed.files, vacuumed.staged) == (0, 0, 0)
    assert [each.key async for each in all_of(store)] == sorted({*before, "clock"})
    assert [store.files.size(name) for name in theirs] == [6] * len(theirs)
    report = await check(store)
    assert (report.findings, report.orphans) == ([], 0)
    others = {f"data/{each.key}" async for each in all_of(inner)}
    assert report.foreign == len({*theirs, *others})
    assert report.foreign_example == "data/2026/report.csv"


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("", "data", "memory:/data is inside the log at memory:"),
        ("p", "p/q/r", "memory:/p/q/r is inside the log at memory:/p;"),
        ("p/data", "p", "memory:/p has the log at memory:/p/data inside it"),
        ("log", "", "memory: has the log at memory:/log inside it"),
        ("", "topic/a", ""),
        ("topic/a", "", ""),
        ("topic/a", "topic/b", ""),
        ("p", "p2", ""),
        ("p2", "p", ""),
    ],
)
async def test_a_log_is_made_apart_from_others(old: str, new: str, refused: str) -> None:
    store = MemoryStore("")
    await ensure_log(Within(store, old) if old else store)
    place = Within(store, new) if new else store
    if refused:
        with pytest.raises(Unfit, match=refused):
            await ensure_log(place)
    else:
        assert (await ensure_log(place)).new


async def test_who_may_read_only_below_a_prefix_makes_a_log_there() -> None:
    refused = Fate(READS, "(?!mine/)", Refused("403"), applied=False)
    assert (await ensure_log(Within(Fated(None, refused), "mine"))).new


# ------------------------------------------------------------ one answer that is lost


USES: dict[str, Callable[[Store, Log], Awaitable[object]]] = {
    "vacuum": lambda _, log: log.vacuum(600),
    "fsck": lambda store, _: check(store),
    "a sink's commit": lambda store, log: commit(log, store, Epoch("q", 1), []),
    "groups": lambda _, log: log.cursors.groups(),
    "committed": lambda _, log: log.committed_by_nodes(),
    "init": lambda store, _: ensure_log(Within(store, "topic/a")),
}


@pytest.mark.parametrize("use", USES)
async def test_a_listing_without_an_answer_is_asked_again(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)
    answers = cycle([OutcomeUnknown("no answer"), None])
    asked = Fate(["list_objects"], ends=lambda page: next(answers) or page)
    store = Fated(None, asked)
    async with small_log(store, "json", timeout_s=1.0) as log:
        await log.append("k", 1)
        await USES[use](store, log)
    assert asked.met.total() > 1


# ------------------------------------------------------------ files


async def test_no_file_outside_the_folder_is_touched(tmp_path: Path) -> None:
    outside, files = tmp_path / "outside", FolderFiles(tmp_path / "log.db-files")
    outside.mkdir()
    (outside / "0-1.parquet").write_bytes(b"theirs")
    files.put("merged/a.parquet", b"ours")
    (tmp_path / "log.db-files" / "run").symlink_to(outside)
    (tmp_path / "log.db-files" / "merged" / "link.parquet").symlink_to(outside / "0-1.parquet")
    paths = [f"{outside}/0-1.parquet", "../outside/0-1.parquet", "merged/../../outside/0-1.parquet"]
    for path in [*paths, "run/0-1.parquet", "", ".", "merged//a.parquet"]:
        for call in (
            lambda path=path: files.put(path, b"ours"),
            lambda path=path: files.size(path),
            lambda path=path: files.read_range(path, 0, 1),
            lambda path=path: files.delete([path]),
        ):
            with pytest.raises(Refused, match="nothing outside is touched"):
                call()
    with pytest.raises(Refused):
        [*files.list_files("run")]
    with pytest.raises(OutcomeUnknown):
        files.read_range("merged/link.parquet", 0, 1)
    linked = FolderFiles(tmp_path / "other.db-files")
    (tmp_path / "other.db-files").symlink_to(tmp_path / "log.db-files")
    uses: list[Callable[[], object]] = [
        lambda: linked.put("merged/b.parquet", b"theirs"),
        lambda: linked.read_range("merged/a.parquet", 0, 1),
        lambda: linked.delete(["merged/a.parquet"]),
        lambda: [*linked.list_files("merged")],
    ]
    for use in uses:
        with pytest.raises(Refused, match="It is a link: put the folder itself there"):
            use()
    os.mkfifo(tmp_path / "log.db-files" / "merged" / "pipe.parquet")
    with pytest.raises(OutcomeUnknown):
        files.read_range("merged/pipe.parquet", 0, 1)
    files.delete(
        ["merged/link.parquet", "merged/pipe.parquet"]
    )  # the link goes, and not what it shows
    assert (outside / "0-1.parquet").read_bytes() == b"theirs"
    assert [each.key for each in files.list_files("merged")] == ["merged/a.parquet"]


def test_all_new_folders_of_a_file_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.fstat(number).st_ino))
    FolderFiles(tmp_path / "log.db-files").put("topic/a/run/0-1.parquet", b"ours")
    new = [
        "",
        "log.db-files",
        "log.db-files/topic",
        "log.db-files/topic/a",
        "log.db-files/topic/a/run",
    ]
    assert {(tmp_path / folder).stat().st_ino for folder in new} <= synced
