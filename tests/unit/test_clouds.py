"""Stores as far away as those of clouds (`leaderless.store.clouds`), on a clock that jumps."""

from random import Random

import anyio
import pytest

import leaderless.cli  # noqa: F401 - it knows all commands
from leaderless.api.bench import Load, bench
from leaderless.api.command import COMMANDS
from leaderless.api.log import Log
from leaderless.errors import LogError
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of, initialise
from leaderless.store.clouds import CLOUDS, GOOGLE, Distant, Paced, like
from leaderless.store.files import files_of
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Store
from leaderless.store.urls import open_store
from leaderless.store.wrapped import Wrapped
from simulation.loop import VirtualEventLoop, run_virtual

PUBLISHED = {
    "s3": (14.7, 15.3),
    "s3-express": (68.6, 75.3),
    "azure": (9.2, 10.2),
    "gcs": (0.8, 1.4),
}
WRITES = 50


@pytest.mark.parametrize("name", CLOUDS)
def test_one_object_takes_as_many_writes_a_second_as_was_published(name: str) -> None:
    async def main(loop: VirtualEventLoop) -> float:
        store = like(MemoryStore(), CLOUDS[name])
        version = await store.create("k", b"0")
        began = loop.time()
        for number in range(WRITES):
            version = await store.compare_and_set("k", b"%d" % number, version)
        return WRITES / (loop.time() - began)

    least, most = PUBLISHED[name]
    assert least <= run_virtual(main) <= most


def test_google_refuses_a_second_write_of_one_object_and_takes_one_of_another() -> None:
    async def main(_loop: VirtualEventLoop) -> None:
        inner = MemoryStore()
        store = Distant(inner, GOOGLE)
        of_another_process = Distant(inner, GOOGLE, shared=True)
        await store.write("a", b"1")
        await store.write("b", b"1")
        for each in (store, of_another_process):
            with pytest.raises(OutcomeUnknown, match="429"):
                await each.write("b", b"2")
        await of_another_process.write("c", b"1")
        assert (await store.read("b")) is not None
        await anyio.sleep(GOOGLE.every_s)
        await store.write("b", b"3")

    run_virtual(main)


class Refusals(Wrapped):
    """Counts the requests that were refused."""

    number = 0

    async def _asked(self, _kind, _key, call, /):  # type: ignore[no-untyped-def]
        try:
            return await call()
        except OutcomeUnknown:
            self.number += 1
            raise


@pytest.mark.lawless  # it deletes the log that it made
def test_a_lone_process_is_never_refused_and_fills_each_commit() -> None:
    async def main(_loop: VirtualEventLoop) -> None:
        refusals = Refusals(Distant(MemoryStore(), GOOGLE, Random(1)))
        appended, read = await bench(Paced(refusals, GOOGLE.every_s, Random(2)), Load(16, 60.0))
        assert refusals.number == appended.failed == 0
        assert read.records_read == appended.appends + 1
        assert appended.appends_a_second > 16 * 0.75
        assert appended.p99_ms < 1000 * (1.3 * GOOGLE.every_s + 2 * GOOGLE.most_s)

    run_virtual(main)


def test_two_processes_both_get_their_turn() -> None:
    """Each appends one message after the other to one log; what is refused is tried again later."""
    counts: list[list[int]] = [[], []]

    async def producer(store: Store, seed: int) -> None:
        paced = Paced(store, GOOGLE.every_s, Random(seed))
        log = Log(paced, bounds_of(paced, 60.0, 5.0))
        async with running(log.host):
            with anyio.move_on_after(300.0):
                while True:
                    try:
                        counts[seed].append(await log.append("k", seed))
                    except LogError:
                        counts[seed].append(-1)

    async def main(_loop: VirtualEventLoop) -> None:
        store = Distant(MemoryStore(), GOOGLE, Random(7))
        await initialise(store)
        async with anyio.create_task_group() as tasks:
            for seed in range(2):
                tasks.start_soon(producer, store, seed)
        done = [sum(offset >= 0 for offset in each) for each in counts]
        assert min(done) > 0.25 * max(done), done
        assert sum(done) > 0.5 * 300, done

    run_virtual(main)


def test_a_store_of_google_is_paced_and_its_log_may_have_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    store = open_store("gs://bucket")
    assert isinstance(store, Paced)
    assert files_of(store) is not None


def test_the_bench_knows_every_cloud() -> None:
    choices = [
        given["choices"] for words, given in COMMANDS["bench"].arguments if words == ("--cloud",)
    ]
    assert choices == [tuple(CLOUDS)]
