"""How long calls of a store go on, and what they raise (`leaderless.store.calls`), on a clock that jumps."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import orjson
import pytest
import trio
import trio.testing

from leaderless import open_log
from leaderless.api.commands import COMMANDS
from leaderless.cli import main
from leaderless.errors import Broken, Definite, Indefinite, LogError, Unreachable
from leaderless.store.calls import patiently, read_value
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Refused
from tests.around import UPDATES, Around, Call, Kind

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> Any:
    return "trio", {"clock": clock()}


def clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


class Down(Around):
    """A store of a server that can be down: then each call fails at once. `writes`: how many were tried."""

    up = False
    writes = 0

    async def around(self, kind: Kind, key: str, call: Call) -> Any:
        self.writes += kind in ("write", *UPDATES)
        if not self.up:
            raise OutcomeUnknown("connection refused")
        return await call()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Down:
    store = Down()
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


# ---------------------------------------------------------------- calls


async def hangs() -> None:
    await anyio.sleep_forever()


async def refuses_the_connection() -> None:
    raise OutcomeUnknown("connection refused")


@pytest.mark.parametrize("patience_s", [0.05, 3, 4, 30])
@pytest.mark.parametrize("operation", [hangs, refuses_the_connection])
@pytest.mark.parametrize(("reads", "kind"), [(True, Unreachable), (False, Indefinite)])
async def test_patience_is_what_it_says(
    patience_s: float, operation: Callable[[], Any], reads: bool, kind: type[LogError]
) -> None:
    began = anyio.current_time()
    with pytest.raises(kind, match=f"within {patience_s:g} s"):
        await patiently(operation, patience_s, reads=reads)
    assert anyio.current_time() - began == pytest.approx(patience_s)


async def test_what_a_store_refuses_is_not_tried_again() -> None:
    async def refused() -> None:
        raise Refused("no such bucket")

    began = anyio.current_time()
    with pytest.raises(Definite, match="no such bucket"):
        await patiently(refused)
    assert anyio.current_time() == began


async def test_what_never_makes_sense_is_told_soon() -> None:
    store = MemoryStore()
    await store.write("k", b"{")
    began = anyio.current_time()
    with pytest.raises(Broken, match="makes no sense"):
        await read_value(store, "k", lambda value: value)
    assert anyio.current_time() - began < 1


# ---------------------------------------------------------------- a log


async def test_what_only_looks_may_not_have_happened(store: Down) -> None:
    store.up = True
    async with open_log("memory:", patience_s=3) as log:
        await log.append("k", 1)
        store.up, tried = False, store.writes
        looks: list[Callable[[], Any]] = [
            lambda: log.read("k"), log.keys, log.status, lambda: anext(aiter(log.tail(["k"]))),
            lambda: log.has_named("w", 1), lambda: log.committed("g", ["k"]), log.cursors.groups,
            lambda: log.commit("g", {"k": 0}),
        ]  # fmt: skip
        await anyio.sleep(1)  # the view is older than the look
        for look in looks:
            began = anyio.current_time()
            with pytest.raises(Unreachable, match="connection refused") as raised:
                await look()
            assert "may have happened" not in str(raised.value)
            assert anyio.current_time() - began == pytest.approx(3)
        assert store.writes == tried
        began = anyio.current_time()
        with pytest.raises(Indefinite):
            await log.append("k", 2)
        assert anyio.current_time() - began <= 3


async def test_a_look_waits_for_a_server_that_comes_back(store: Down) -> None:
    async def comes_back() -> None:
        await anyio.sleep(20)
        store.up = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(comes_back)
        async with open_log("memory:") as log:
            await log.append("k", 1)
        store.up = False
        tasks.start_soon(comes_back)
        async with open_log("memory:", create=False) as log:
            assert len(await log.read("k")) == 1


# ---------------------------------------------------------------- commands


ARGUMENTS: dict[str, Sequence[str]] = {
    "produce": ("k", "1"), "read": ("k",), "tail": ("k",), "consume": ("k",), "ack": ("k", "0"),
}  # fmt: skip
WRITES_FIRST = {"init", "bench"}


@pytest.mark.parametrize("patience", ["3", "4"])
@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"produce-batch"}))
def test_every_command_has_the_patience_that_it_is_given(
    name: str,
    patience: str,
    store: Down,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    took: list[float] = []

    def run(operation: Any, options: Any) -> Any:
        async def timed() -> Any:
            began = anyio.current_time()
            try:
                return await operation(options)
            finally:
                took.append(anyio.current_time() - began)

        return trio.run(timed, clock=clock())

    monkeypatch.setattr(anyio, "run", run)
    assert main([name, *ARGUMENTS.get(name, ()), "--patience", patience, "--json"]) == 1
    said = orjson.loads(capsys.readouterr().out)
    assert said["may_have_happened"] is (name in WRITES_FIRST)
    assert "connection refused" in said["error"]
    assert took == [pytest.approx(float(patience), rel=0.1)]
    assert name in WRITES_FIRST or not store.writes
