"""`leaderless bench`, and the store that counts (`leaderless.library.bench`, `leaderless.store.counted`)."""

import json
from random import Random

import pytest

from leaderless.cli import main
from leaderless.errors import LogError
from leaderless.library.bench import Load, bench
from leaderless.store.counted import READ_USD, WRITE_USD, Counted, dollars
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, all_of
from simulation.objects.bucket import Bucket
from simulation.objects.client import Faults, Network, VirtualStore
from simulation.objects.loop import VirtualEventLoop, run_virtual

pytestmark = pytest.mark.anyio


def test_it_appends_reads_and_leaves_nothing() -> None:
    async def run(loop: VirtualEventLoop) -> None:
        store = VirtualStore(
            Bucket(loop.time), "p", Network(20.0), Faults({}, Random(1)), Random(2)
        )
        appended, read = await bench(store, Load(tasks=4, seconds=2.0, value_bytes=100))
        assert appended.failed == 0
        assert read.records_read == appended.appends + 1  # the first one warms up
        assert 20 <= appended.p50_ms <= appended.p99_ms <= 100
        assert appended.requests_an_append < 1
        assert [each async for each in all_of(store)] == []

    run_virtual(run)


def test_what_fails_is_counted() -> None:
    class Fails(VirtualStore):
        left = 5

        async def compare_and_set(self, key: str, value: bytes, version: str) -> str:
            self.left -= 1
            if self.left < 0:
                raise OutcomeUnknown("no answer")
            return await super().compare_and_set(key, value, version)

    async def run(loop: VirtualEventLoop) -> None:
        store = Fails(Bucket(loop.time), "p", Network(20.0), Faults({}, Random(1)), Random(2))
        appended, read = await bench(store, Load(tasks=2, seconds=1.0, patience_s=5.0))
        assert appended.failed == 2
        assert read.records_read == appended.appends + 1

    run_virtual(run)


async def test_a_store_that_lets_nobody_in_is_an_error() -> None:
    class Silent(MemoryStore):
        async def create(self, key: str, value: bytes) -> str:
            raise OutcomeUnknown("no answer")

    with pytest.raises(LogError):
        await bench(Silent(), Load(seconds=0.1, patience_s=0.2))


async def test_a_store_counts_its_requests_and_bytes() -> None:
    store = Counted(MemoryStore())
    version = await store.create("a", b"123")
    await store.compare_and_set("a", b"12", version)
    await store.write("b", b"1")
    await store.read("a")
    await store.read("none")
    await store.list_objects()
    await store.delete(["a", "b"])
    assert store.requests == {"put": 3, "get": 2, "list": 1, "delete": 1}
    assert (store.bytes_written, store.bytes_read) == (6, 2)
    assert dollars(store.requests) == pytest.approx(4 * WRITE_USD + 2 * READ_USD)
    store.clear()
    assert store.requests.total() == 0


def test_a_million_puts_cost_five_dollars() -> None:
    assert dollars({"put": 1_000_000}) == pytest.approx(5.0)
    assert dollars({"get": 1_000_000}) == pytest.approx(0.4)


@pytest.mark.lawless  # it deletes the log that it made
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "--store", "memory:test-bench", "--seconds", "0.05", "--tasks", "2", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["appends"] > 0
    assert {"appends_a_second", "requests_an_append", "p50_ms", "p99_ms", "usd_a_million"} <= set(
        told
    )
