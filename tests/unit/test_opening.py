"""Opening a log (`leaderless.api.log`): its lives, its end, its twin without a loop; and SQLite."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from enum import IntEnum, StrEnum
from inspect import signature
from math import inf
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import orjson
import pytest

import leaderless
from leaderless import Record, open_log, open_log_sync
from leaderless.api.log import Log
from leaderless.api.tail import TURN, Tail
from leaderless.core.shape import Shape
from leaderless.errors import (
    Definite,
    NotInitialised,
    OtherFormat,
    Unfit,
)
from leaderless.hosting.reads import Looked
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Found, Listed, OutcomeUnknown, Refused
from leaderless.store.sqlite import SqliteStore
from tests.around import value_at
from tests.full_disk import room

pytestmark = pytest.mark.anyio


def values(records: Sequence[Record]) -> list[Any]:
    """The values alone."""
    return [record.value for record in records]


async def test_topics_are_apart(url: str) -> None:
    topics = ["a/b", "a%2Fb", "a=2Fb", "..", "", "A", "a"]
    for place, topic in enumerate(topics):
        async with open_log(url, topic) as log:
            await log.append("k", place)
    for place, topic in enumerate(topics):
        async with open_log(url, topic, create=False) as log:
            assert values(await log.read("k")) == [place]


async def test_what_callers_do_with_their_values_changes_no_record(url: str) -> None:
    event = {"n": [0]}
    async with open_log(url) as log:
        for n in range(3):
            event["n"][0] = n
            await log.append("k", event)
            await log.append_named("w", n, [("k", event)])
        event["n"][0] = 3
        for record in await log.read("k"):
            record.value["n"][0] = 4
        await log.append("j", 0)  # what is not sealed is written anew
    async with open_log(url) as log:
        assert values(await log.read("k")) == [{"n": [n]} for n in (0, 0, 1, 1, 2, 2)]


OLD = r" has format {}, and this version knows 5: read its records with .* that made it .*0\.1.*new log$"


@pytest.mark.parametrize(
    ("format_", "said"),
    [
        *(({"format": n, "made_by": "0.1", "shape": Shape().value}, OLD.format(n)) for n in (1, 2)),
        ({"format": 6, "shape": {}}, " has format 6, and this version knows 5: .*"),
        ({"format": 4, "shape": {"more": 1}}, " has format 4 with an unknown shape"),
    ],
)
async def test_a_log_of_another_format_is_refused_and_stays(
    url: str, format_: Any, said: str
) -> None:
    store, text = MemoryStore.named(url.removeprefix("memory:")), orjson.dumps(format_)
    await store.write("format", text)
    for create in (True, False):
        with pytest.raises(OtherFormat, match=said):
            async with open_log(url, create=create):
                pass
    [listed], found = await store.list_objects(), await store.read("format")
    assert (listed.key, found and found.value) == ("format", text)


@pytest.mark.lawless
@pytest.mark.parametrize("format_", [[], {}, "x", {"format": 4}, {"format": "1"}])
async def test_what_is_no_log_is_refused(url: str, format_: Any) -> None:
    await MemoryStore.named(url.removeprefix("memory:")).write("format", orjson.dumps(format_))
    with pytest.raises(OtherFormat, match="holds no log that this program knows"):
        async with open_log(url):
            pass


async def test_an_error_of_the_block_leaves_as_it_is(url: str) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_log(url):
            raise KeyError("mine")


# ---------------------------------------------------------------- the twin for programs without a loop


def test_the_sync_log_is_the_same(url: str) -> None:
    with open_log_sync(url, "topic") as log:
        assert log.append("k", 1) == 0
        assert log.append_many("k", [2, 3]) == [1, 2]
        assert values(log.read("k", 1)) == [2, 3]
        assert next(log.tail(["k"], 2)).value == 3
        log.commit("g", {"k": 1})
        assert log.committed("g", ["k"]) == {"k": 1}
        assert (log.fence(), log.unfence()) == (1, 2)
        assert log.keys() == log.status().keys == {"k": 3}
        assert (log.compact(), log.vacuum().deleted) == (0, 0)
        assert "memory" in repr(log)
        with pytest.raises(Unfit):
            log.append("k", (1,))
        with log.consumer("g", ["k"]) as consumer:
            assert next(consumer).value == 3
            assert consumer.keys == ["k"]
        assert log.close("k") == 3
        assert values([*log.tail(["k"], 1)]) == [2, 3]
        letters: Any = "k"
        with pytest.raises(Unfit, match="keys must be a list"), log.consumer("g", letters):
            pass
    with pytest.raises(Definite, match="did nothing"):
        log.append("k", 4)
    with pytest.raises(NotInitialised), open_log_sync(url, "none", create=False):
        pass


def test_every_method_has_a_sync_twin() -> None:
    """With the same parameters and defaults; and so has `open_log`."""
    methods = {name for name, value in vars(Log).items() if not isinstance(value, property)}
    pairs = [
        (getattr(Log, name), getattr(leaderless.LogSync, name))
        for name in methods
        if not name.startswith("_")
    ]
    for one, twin in [*pairs, (open_log, open_log_sync)]:
        assert signature(one).parameters == signature(twin).parameters, one.__name__


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = leaderless.nothing


# ---------------------------------------------------------------- SQLite


def make(path: Path, busy_s: float = 10.0) -> None:
    """Make a store in the file at `path`, as the first write does."""
    anyio.run(SqliteStore(path, busy_s).write, "k", b"1")


def test_who_only_reads_makes_no_file_and_sees_it_when_another_has_made_it(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)

    async def look() -> tuple[object, list[Listed]]:
        return await store.read("k"), await store.list_objects()

    assert anyio.run(look) == (None, [])
    assert [*tmp_path.iterdir()] == []
    path.touch()
    assert anyio.run(look) == (None, [])
    assert path.stat().st_size == 0
    make(path)
    found, listed = anyio.run(look)
    assert isinstance(found, Found)
    assert (found.value, [each.key for each in listed]) == (b"1", ["k"])
    anyio.run(store.aclose)


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.db").symlink_to(tmp_path / "nowhere" / "log.db")
    with pytest.raises(Refused, match=r"make the folder .*nowhere first"):
        make(tmp_path / "log.db")
    with pytest.raises(Refused, match="cannot be used as a store: unable to open"):
        make(tmp_path)
    with pytest.raises(Refused, match=r"cannot be used as a store: .*too long"):
        make(tmp_path / ("x" * 300))


@pytest.mark.parametrize("before", range(8))
def test_another_process_makes_the_database_between_two_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """It is made whole before statement `before` of the one that opens it, unless that is in a transaction."""
    path = tmp_path / "log.db"
    connect, left = sqlite3.connect, [before]

    class Overtaken(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            left[0] -= 1
            if left[0] == -1 and not self.in_transaction:
                monkeypatch.setattr(sqlite3, "connect", connect)
                make(path)
            return super().execute(*arguments)

    def overtaken(*arguments: Any, **named: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=Overtaken, **named)

    monkeypatch.setattr(sqlite3, "connect", overtaken)
    make(path)


def test_another_process_writes_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses at once to change the journal of a file that another process writes."""
    path, connect = tmp_path / "log.db", sqlite3.connect
    other = connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    refused = []

    class Beside(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            try:
                return super().execute(*arguments)
            except sqlite3.OperationalError as error:
                refused.append(error.sqlite_errorname)
                other.execute("ROLLBACK")
                raise

    def beside(*arguments: Any, **named: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=Beside, **named)

    monkeypatch.setattr(sqlite3, "connect", beside)
    make(path)
    assert refused == ["SQLITE_BUSY"]


def test_a_file_that_stays_locked_may_be_free_later(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OutcomeUnknown, match="locked"):
        make(path, busy_s=0.01)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.mark.anyio
async def test_an_endless_query_ends_after_a_while_and_when_the_store_is_closed(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "log.db", busy_s=0.01)
    await store.write("k", b"1")
    with pytest.raises(OutcomeUnknown, match="interrupted"):
        await store._query(ENDLESS)
    store._busy_s = inf
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store._query, ENDLESS)
        while not store._read_lock.locked():
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()  # as Ctrl-C does
    await store.aclose()


FULL = 100  # bytes that a file may have


@pytest.mark.anyio
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "beside another process"])
async def test_a_full_disk_stops_no_reader(tmp_path: Path, shared: bool) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    async with open_log(url) as log:
        await log.append("k", 1)
        await log.commit("g", {"k": 0})
    async with AsyncExitStack() as stack:
        if shared:
            other = await stack.enter_async_context(open_log(url))
            await other.append("k", 2)
        with room(FULL):
            async with open_log(url, patience_s=1.0) as log:
                assert len(await log.read("k")) == 1 + shared
                assert await log.keys() == {"k": 1 + shared}
                assert (await log.status()).state == "open"
                assert await log.committed("g", ["k"]) == {"k": 0}
                assert (await anext(log.tail(["k"], "earliest"))).value == 1


@pytest.mark.anyio
async def test_who_reads_on_a_full_disk_writes_when_there_is_room_again(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    store = SqliteStore(path)
    await store.write("k", b"1")
    await store.aclose()
    with room(FULL):
        store = SqliteStore(path)
        with pytest.raises(OutcomeUnknown):
            await store.write("k", b"2")
        assert await value_at(store, "k") == b"1"
    await store.write("k", b"3")
    assert await value_at(SqliteStore(path), "k") == b"3"  # another process is not kept out
    await store.aclose()
    for call in (store.read("k"), store.write("k", b"4")):
        with pytest.raises(Refused, match="closed"):
            await call


# ---------------------------------------------------------------- values and offsets

LARGE = "x" * 50_000
Number = IntEnum("Number", "ONE")
Name = StrEnum("Name", "one")


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, 2**63, 1.5, "", "ü\0\n", [], {}, [1, [2, {"a": None}]], {"a": {"b": 1}},
        b"", b"\0\xff", {"$bytes": "AA=="}, {"$data": ["x", 1, "json"]}, {"$json": {"$json": 1}}, {"$": 1},
        LARGE, LARGE.encode(), [LARGE, 1],
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
async def test_a_value_comes_back_as_it_was(log: Log, value: Any) -> None:
    assert await log.append("k", value) == 0
    [record] = await log.read("k")
    assert repr(record[:3]) == repr(("k", 0, value))


@pytest.mark.parametrize(
    "value",
    [
        2**64, float("nan"), float("inf"), (1, 2), {1, 2}, {1: 2}, object(), "\ud800", bytearray(b"x"),
        {"a": (1,)}, 1j, Number.ONE, [Name.one], {Name.one: 1},
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
async def test_a_value_that_would_not_come_back_is_refused(log: Log, value: Any) -> None:
    with pytest.raises(Unfit, match="bytes or JSON"):
        await log.append("k", value)
    assert await log.read("k") == []


async def test_a_message_has_up_to_200_levels(log: Log) -> None:
    value: Any = 1
    for _ in range(199):
        value = [value]
    taken: list[Any] = [[value], {"a": value}]  # what begins with "$" is escaped, by a level more
    assert await log.append_many("k", taken) == [0, 1]
    for deeper in ([[value]], {"a": [value]}, {"$a": value}):
        with pytest.raises(Unfit, match="of more than 200 levels"):
            await log.append("k", deeper)
    assert values(await log.read("k")) == taken


@pytest.mark.parametrize("key", ["", "a/b", "a%2Fb", "../x", "ü", "\0", "x" * 1024])
async def test_any_text_is_a_key(log: Log, key: str) -> None:
    await log.append("other", 0)
    await log.append(key, 1)
    assert await log.read(key) == [Record(key, 0, 1)]
    await log.append(key[:100], 1)
    await log.commit(key[:100], {key[:100]: 0})
    assert await log.committed(key[:100], [key[:100], "other"]) == {key[:100]: 0}


@pytest.mark.parametrize("key", ["x" * 1025, "\ud800", 1, None, Name.one])
async def test_what_is_no_key_is_refused(log: Log, key: Any) -> None:
    with pytest.raises(Unfit, match="a key"):
        await log.append(key, 1)
    assert await log.append("k", 1) == 0  # the log goes on
    with pytest.raises(Unfit, match=r"a key (?!of 1025 bytes, of)"):
        await log.close(key[:1024] if type(key) is str else key)


async def test_waiting_appends_have_bounded_bytes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log._room, "_total", 100)
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(log.append, "k", f"{number} {'x' * 50}")
    assert await log.keys() == {"k": 20}


# ---------------------------------------------------------------- the iterator of a tail


class Slow:
    """A log of which each answer has one record of one key."""

    def __init__(self, ends: dict[str, int]) -> None:
        self.ends = ends

    async def keys(self) -> dict[str, int]:
        return dict(self.ends)

    async def look(self, offsets: Mapping[str, int], limit: int) -> Looked:
        await anyio.sleep(1.0)
        ready = [(key, at) for key, at in offsets.items() if at < self.ends[key]]
        return Looked({key: [Record(key, at, None)] for key, at in ready[:1]}, {})


@pytest.mark.virtual_time
async def test_a_new_record_of_any_key_comes_in_its_turn() -> None:
    log = Slow({"long": 1000, "b": 0, "c": 0})
    tail = Tail(log, ["long", "b", "c"], "earliest", 0.2, limit=100)
    for round_number in range(20):
        for key in "bc":
            log.ends[key] += 1
        found = {(await anext(tail))[:2] for _ in range(2 * TURN)}
        assert found >= {("b", round_number), ("c", round_number)}
