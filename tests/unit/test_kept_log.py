"""Nodes and the library on one log: a node follows the format that is there, or makes it, or refuses it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from leaderless.api.log import Log
from leaderless.core.shape import Runs, Shape
from leaderless.errors import OtherFormat
from leaderless.hosting.place import ensure_log, initialise
from leaderless.runtime.command_line import parse_options
from leaderless.runtime.settings import Settings
from leaderless.store.format import shape_in
from leaderless.store.memory import MemoryStore
from leaderless.store.names import FORMAT
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from leaderless.store.values import Value
from leaderless.store.wrapped import Within
from leaderless.table.manifest import read_manifest
from leaderless.table.snapshot import file_refs
from leaderless.upkeep.fsck import check
from tests.around import Fate, Fated
from tests.store_nodes import INIT, Body, Client, node_on, send
from tests.tables import content_of, small_log, values_of_keys

pytestmark = pytest.mark.anyio

MESSAGES: list[object] = [
    1,
    {"$json": 1},
    {"$bytes": "AAA="},
    {"$data": ["x", 1, "json"]},
    {"a": 1},
]


def settings_of(*arguments: str) -> Settings:
    """Of a node that seals and compacts after a few messages, and soon forgets what it has read."""
    settings = parse_options(["--store", "sqlite:////unused", *arguments])
    limits = replace(settings.options.limits, memory_bytes=1)
    shape = Shape(seal_entries=2, segments_per_run=2, page_children=2)
    options = settings.options._replace(limits=limits, shape=shape, freshness_s=0.0)
    return settings._replace(options=options)


async def answer_to_init(store: Store, *arguments: str) -> Body:
    async with node_on(store, settings=settings_of(*arguments)) as client:
        client.tell(INIT)
        [answer] = await client.hears(1)
        return answer


class Talk:
    """Requests to a node, one after the other; `sent` are the messages that it acknowledged."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked = 0
        self.sent: list[object] = []

    async def ask(self, body: Body) -> Body:
        self._asked += 1
        self._client.tell(body | {"msg_id": self._asked})
        [answer] = await self._client.hears(1)
        return answer

    async def send(self, messages: Sequence[object]) -> None:
        for message in messages:
            assert (await self.ask(send(0, message)))["type"] == "send_ok"
            self.sent.append(message)

    async def poll(self) -> list[object]:
        """All messages of the key, whatever fits into one answer."""
        found: list[object] = []
        while True:
            polled = await self.ask({"type": "poll", "offsets": {"k": len(found)}})
            pairs = polled["msgs"].get("k", [])
            assert [at for at, _ in pairs] == [*range(len(found), len(found) + len(pairs))]
            if not pairs:
                return found
            found += [message for _, message in pairs]


async def values_in(log: Log) -> list[object]:
    """All values of the key, by the library."""
    return (await values_of_keys(log)).get("k", [])


async def _send_until_compacted(talk: Talk, store: Store, files: int) -> None:
    """Send until so many files of runs are there: nodes compact beside their work."""
    while len(await file_refs(store)) < files:
        await talk.send([len(talk.sent)])


@pytest.fixture(params=["memory", "sqlite"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    """One that stays open when a node lets go of it."""
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "log.db")
    close = made.aclose
    monkeypatch.setattr(made, "aclose", partial(anyio.sleep, 0))
    yield made
    await close()


async def test_a_node_compacts_into_files_that_everybody_reads(store: Store) -> None:
    async with node_on(store, settings=settings_of("--runs", "parquet")) as client:
        talk = Talk(client)
        await talk.ask(INIT)
        await talk.send(MESSAGES)
        await talk.ask({"type": "commit_offsets", "offsets": {"k": 3}})
        await _send_until_compacted(talk, store, 3)
        assert await talk.poll() == talk.sent
    assert (await shape_in(store)).runs == "parquet"
    refs = await file_refs(store)
    assert {ref.kind for ref in refs} == {"parquet"}
    async with small_log(store) as log:
        assert await values_in(log) == talk.sent
        await log.append("k", "from the library")
    async with node_on(store, settings=settings_of()) as client:  # it follows what is there
        again = Talk(client)
        await again.ask(INIT)
        assert await again.poll() == [*talk.sent, "from the library"]
        committed = await again.ask({"type": "list_committed_offsets", "keys": ["k"]})
        assert committed["offsets"] == {"k": 3}
    assert (await check(store)).findings == []
    assert (await content_of(store))["k"][1] == {"$json": {"$json": 1}}


@pytest.mark.slow
async def test_a_node_merges_files_beside_its_work() -> None:
    store = MemoryStore()
    async with node_on(store, settings=settings_of("--runs", "parquet")) as client:
        talk = Talk(client)
        await talk.ask(INIT)
        while not (await read_manifest(store))[0].files:
            await talk.send([len(talk.sent)])
        assert await talk.poll() == talk.sent
    assert (await check(store)).findings == []


@pytest.mark.parametrize("runs", ["json", "parquet"])
async def test_a_node_goes_on_with_a_log_of_the_library(store: Store, runs: Runs) -> None:
    values: list[Value] = ["a", {"$json": 1}, b"\x00", {"b": 2}]
    async with small_log(store, runs) as log:
        for value in values:
            await log.append("k", value)
        await log.compact()
        async with node_on(store, settings=settings_of()) as client:
            talk = Talk(client)
            await talk.ask(INIT)
            assert await talk.poll() == ["a", {"$json": 1}, {"$bytes": "AA=="}, {"b": 2}]
            await talk.send(MESSAGES)
            await _send_until_compacted(talk, store, 2)
        assert await values_in(log) == [*values, *talk.sent]
    assert {ref.kind for ref in await file_refs(store)} == {runs}


async def test_a_node_and_a_program_that_append_in_turn_lose_nothing(store: Store) -> None:
    """Each would found a log with another shape: when it sealed by its own, two of ten were gone."""
    settings = settings_of()
    options = settings.options._replace(shape=Shape(seal_entries=9))
    settings = settings._replace(options=options)
    async with small_log(store, "json") as log, node_on(store, settings=settings) as client:
        talk = Talk(client)
        await talk.ask(INIT)
        for number in range(0, 40, 2):
            await log.append("k", number)
            await talk.send([number + 1])
        assert await talk.poll() == await values_in(log) == [*range(40)]
    assert (await check(store)).findings == []


# The kind of the log that is there (None: a node makes it), how a node is started, and what it says to `init`.
REFUSALS: list[tuple[Runs | None, str, str]] = [
    ("json", "--runs parquet", "has runs of json, not parquet"),
    ("parquet", "--runs json", "has runs of parquet, not json"),
    (None, "--runs parquet", "has runs of json, not parquet"),
    ("json", "--strategy cas", "holds a log of the strategy leaderless"),
]


@pytest.mark.parametrize(("there", "words", "text"), REFUSALS)
async def test_a_node_refuses_a_log_of_another_kind(
    store: Store, there: Runs | None, words: str, text: str
) -> None:
    if there:
        await initialise(store, there)
    else:
        assert (await answer_to_init(store))["type"] == "init_ok"
    before = [each.key for each in await store.list_objects()]
    answer = await answer_to_init(store, *words.split())
    assert answer["type"] == "error"
    assert text in answer["text"]
    assert [each.key for each in await store.list_objects()] == before


async def test_a_store_without_files_takes_no_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr(store, "files", None)
    assert "has no files" in (await answer_to_init(store, "--runs", "parquet"))["text"]
    assert (await answer_to_init(store))["type"] == "init_ok"


async def test_a_log_of_another_strategy_has_no_format() -> None:
    store = MemoryStore()
    assert (await answer_to_init(store, "--strategy", "cas"))["type"] == "init_ok"
    assert await store.read(FORMAT) is None


@pytest.mark.lawless
@pytest.mark.parametrize("strategy", ["leaderless", "cas", "prefetch", "prefetch-sealed"])
async def test_no_program_makes_a_log_over_one_of_nodes_that_has_no_format(strategy: str) -> None:
    store = MemoryStore()
    async with node_on(store, settings=settings_of("--strategy", strategy)) as client:
        talk = Talk(client)
        await talk.ask(INIT)
        await talk.send([1])
    await store.delete([FORMAT])
    before = [each.key for each in await store.list_objects()]
    with pytest.raises(OtherFormat, match="a prefix or a topic of its own"):
        await ensure_log(store)
    assert [each.key for each in await store.list_objects()] == before
    assert (await ensure_log(Within(store, "topic/new"))).new


async def test_a_log_that_another_process_makes_meanwhile_is_no_log_without_a_format() -> None:
    """(1) One finds no `format`. (2) Another makes the log and appends. (3) The first finds a head."""

    store = MemoryStore()

    async def another() -> None:
        async with small_log(store, "json") as log:
            await log.append("k", 1)

    made = await ensure_log(Fated(store, Fate(["list_objects"], before=another, times=1)))
    assert (made.new, made.shape.runs) == (False, "json")


async def test_a_file_that_makes_no_sense_is_an_error_and_not_the_end_of_a_node(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    settings = settings_of("--runs", "parquet", "--client-patience", "0.5")
    async with node_on(store, settings=settings) as client:
        talk = Talk(client)
        await talk.ask(INIT)
        await _send_until_compacted(talk, store, 1)
    for ref in await file_refs(store):
        store.files.delete([ref.path])
        store.files.put(ref.path, b"nothing" * 100)
    async with node_on(store, settings=settings) as client:
        talk = Talk(client)
        await talk.ask(INIT)
        answer = await talk.ask({"type": "poll", "offsets": {"k": 0}})
        assert answer["type"] == "error"
        assert (await talk.ask({"type": "status"}))["type"] == "status_ok"
    assert "is no Parquet file" in caplog.text or "run/" in caplog.text
