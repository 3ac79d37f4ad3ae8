"""The core's registers on a store (`leaderless.store.registers`) and on lin-kv, and JSON as values."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import orjson
import pytest
import trio
import trio.testing

from leaderless import open_log
from leaderless.api.command import COMMANDS
from leaderless.cli import main
from leaderless.core.messages import (
    Cas,
    Get,
    Mismatch,
    Missing,
    Ok,
    Outcome,
    Put,
    StoreOp,
    Unknown,
)
from leaderless.errors import Broken, Definite, Indefinite, LogError, Unfit, Unreachable
from leaderless.store.calls import patiently
from leaderless.store.memory import MemoryStore
from leaderless.store.port import Conflict, Found, OutcomeUnknown, Refused, StoreError, Version
from leaderless.store.registers import Registers, ValueTwice
from leaderless.store.values import Json, json_of
from leaderless.store.wrapped import WRITES
from leaderless.wire.bodies import outcome_of
from tests.around import ANY_NUMBER, READS, Fate, Fated, renames

pytestmark = pytest.mark.anyio


class ByContent(MemoryStore):
    """A store whose versions are made of the contents, as ETags may be."""

    async def read(self, key: str) -> Found | None:
        found = await super().read(key)
        return found and found._replace(version=found.value.hex())

    async def write(self, key: str, value: bytes) -> Version:
        await super().write(key, value)
        return value.hex()

    async def compare_and_set(self, key: str, value: bytes, version: Version) -> Version:
        found = await self.read(key)
        if found is None or found.version != version:
            raise Conflict(key)
        return await self.write(key, value)


async def outcomes(registers: Registers, *ops: StoreOp) -> list[Outcome]:
    return [await registers.carry_out(op) for op in ops]


def same(found: Sequence[Outcome], expected: Sequence[Outcome]) -> bool:
    """To Python `Missing()` equals `Mismatch()`."""
    return repr(found) == repr(expected)


async def test_the_version_of_what_was_written_or_read_is_remembered() -> None:
    store = Fated(None, read := Fate(READS))
    registers = Registers(store)
    ops: list[StoreOp] = [Cas("a", None, [1], create=True), Cas("a", [1], [2]), Cas("a", [2], [3])]
    assert same(await outcomes(registers, *ops), [Ok()] * 3)
    assert not read.happened
    other = Registers(store)
    assert same(await outcomes(other, Cas("a", None, [9], create=True)), [Mismatch()])
    assert not read.happened  # what others have made is no missing register
    assert same(await outcomes(other, Get("a"), Cas("a", [3], [4])), [Ok([3]), Ok()])
    assert read.met.total() == 1


async def test_a_value_that_was_learnt_elsewhere_is_compared_after_a_read() -> None:
    store = MemoryStore()
    await outcomes(Registers(store), Put("a", {"x": 1, "y": 2}))
    ops: list[StoreOp] = [Cas("a", {"x": 1}, 0), Cas("a", {"y": 2, "x": 1}, 3), Get("a")]
    assert same(await outcomes(Registers(store), *ops), [Mismatch(), Ok(), Ok(3)])


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(OutcomeUnknown("lost"), Unknown()), (Refused("forbidden"), Unknown(1.0, refused=True))],
)
async def test_an_answer_that_is_not_clear_is_unknown(error: StoreError, outcome: Outcome) -> None:
    store = Fated(None, Fate(READS, ends=error, applied=False))
    registers = Registers(store)
    assert same(await outcomes(registers, Get("a")), [outcome])
    assert registers.trouble == f"a: {error}"
    store.fates.clear()
    await registers.carry_out(Get("a"))
    assert registers.trouble == ""


# ---------------------------------------------------------------- damaged answers


def shows(body: bytes) -> Fate:
    """The next read shows this in place of what is there, with the version that is."""
    return Fate(READS, ends=lambda found: found._replace(value=body), times=1)


NO_JSON = [b"", b'{"a": [1, 2', b"\xff\xff\xff", b"<html>a proxy</html>"]


@pytest.mark.parametrize("body", NO_JSON)
async def test_what_does_not_parse_is_no_answer(body: bytes) -> None:
    store = Fated(None, shows(body))
    await store.write("a", b'{"a":[1,2,3]}')
    registers = Registers(store)
    assert same(await outcomes(registers, Get("a")), [Unknown(damaged=True)])
    assert registers.trouble.startswith("a: 'a' makes no sense (JSONDecodeError")
    assert repr(body[:20])[:-1] in registers.trouble
    assert same(await outcomes(registers, Get("a")), [Ok({"a": [1, 2, 3]})])
    assert registers.trouble == ""


async def test_a_version_that_came_with_a_damaged_value_is_not_remembered() -> None:
    """(1) One knows 1. (2) Another sets 2. (3) A read shows damage with the version of 2. (4) 1 is compared."""
    store = Fated()
    one, other = Registers(store), Registers(store)
    await outcomes(one, Cas("a", None, 1, create=True))
    await outcomes(other, Cas("a", 1, 2))
    store.fates = [shows(b"{")]
    assert same(await outcomes(one, Get("a"), Cas("a", 1, 3), Get("a")), [
        Unknown(damaged=True), Mismatch(), Ok(2),
    ])  # fmt: skip
    assert same(await outcomes(one, Cas("a", 2, 3)), [Ok()])


async def test_a_file_that_makes_no_sense_is_no_answer_either() -> None:
    """Such as a run in Parquet whose footer came damaged (`leaderless.table.registers`)."""

    class OfFiles(Registers):
        async def perform(self, op: StoreOp) -> Outcome:
            raise Broken("run/0-1.parquet is no Parquet file")

    registers = OfFiles(MemoryStore())
    assert same(await outcomes(registers, Get("run/0-1")), [Unknown()])
    assert registers.trouble == "run/0-1: run/0-1.parquet is no Parquet file"


# ---------------------------------------------------------------- stores that show what they do not take


async def test_a_version_that_is_shown_and_never_taken_is_named() -> None:
    store = renames()
    await outcomes(Registers(store), Put("a", 1))
    registers = Registers(store)
    seen = [
        repr(each) for _ in range(4) for each in await outcomes(registers, Get("a"), Cas("a", 1, 2))
    ]
    expected: list[Outcome] = [Ok(1), Mismatch()] * 3
    assert seen == [repr(each) for each in [*expected, Ok(1), Unknown(1.0)]]
    assert "the store shows version 'W/1', and takes no update of it" in registers.trouble
    await registers.carry_out(Get("a"))
    assert registers.trouble  # a read says nothing about updates


async def test_conflicts_with_other_writers_name_nothing() -> None:
    """Each round another writer is first; so are the writes of one process that meet."""
    store = MemoryStore()
    one, other = Registers(store), Registers(store)
    await outcomes(one, Put("a", 0))
    for number in range(10):
        assert same(await outcomes(one, Get("a")), [Ok(number)])
        assert same(await outcomes(other, Cas("a", number, number + 1)), [Ok()])
        for _ in range(5):
            assert same(await outcomes(one, Cas("a", number, -number - 1)), [Mismatch()])
    assert one.trouble == ""


async def test_a_register_that_holds_a_value_twice_is_noticed() -> None:
    registers = Registers(ByContent())
    await outcomes(registers, Cas("a", None, 1, create=True), Cas("a", 1, 2))
    with pytest.raises(ValueTwice, match="a holds a value for the second time"):
        await registers.carry_out(Cas("a", 2, 1))


async def test_own_effects_seen_before_the_answer_are_no_second_time() -> None:
    """(1) 2 is set; its answer waits. (2) A read shows 2. (3) Others set 3; a read shows it. (4) The answer"""

    async def meanwhile() -> None:
        await registers.carry_out(Get("a"))
        await outcomes(Registers(store), Cas("a", 2, 3))
        await registers.carry_out(Get("a"))

    store = MemoryStore()
    registers = Registers(Fated(store, Fate(["compare_and_set"], after=meanwhile, times=1)))
    await outcomes(registers, Cas("a", None, 1, create=True))
    assert same(await outcomes(registers, Cas("a", 1, 2), Cas("a", 3, 4)), [Ok(), Ok()])


# ---------------------------------------------------------------- lin-kv


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"type": "read_ok", "value": [1]}, Ok([1])),
        ({"type": "write_ok"}, Ok()),
        ({"type": "cas_ok"}, Ok()),
        ({"type": "error", "code": 20}, Missing()),
        ({"type": "error", "code": 22}, Mismatch()),
        *(({"type": "error", "code": code}, Unknown()) for code in (0, 1, 11, 13, 14, 21, 1000)),
        *(({"type": "error", "code": code}, Unknown(spent=1.0)) for code in (10, 12)),
        ({"type": "error"}, Unknown()),
        ({"type": "error", "code": "22"}, Unknown()),
        ({"type": "read_ok"}, Unknown()),
        ({"type": "nonsense"}, Unknown()),
    ],
)
def test_outcome_of(body: dict[str, Any], outcome: Any) -> None:
    assert repr(outcome_of(body)) == repr(outcome)  # to Python, `Missing()` equals `Mismatch()`


# ---------------------------------------------------------------- JSON as values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1e19", 1e19),
        ('{"a": [1.5e30, "123456789012345678901234567890", null]}', None),
        ('"é"'.encode(), "é"),
    ],
)
def test_what_can_be_kept_is_the_value_of_its_text(text: bytes | str, value: Json) -> None:
    wanted = {"a": [1.5e30, "123456789012345678901234567890", None]} if value is None else value
    assert json_of(text) == wanted
    assert type(json_of(text)) is type(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "18446744073709551616",
        '{"a": [1, -9223372036854775809]}',
        b'[18446744073709551616, "1"]',
        rb'["a\\", 18446744073709551616, "\""]',  # where it stands in no string, whatever is escaped
        "9" * 300,
    ],
)
def test_an_integer_beyond_64_bits_is_refused(text: bytes | str) -> None:
    with pytest.raises(Unfit, match="integer beyond 64 bits"):
        json_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "NaN",
        "1e400",
        '"\\ud800"',
        '"\ud800"',
        b'"\xff"',
        "[" * 1000 + "9" * 20 + "]" * 1000,
        "[" * 2000 + "]" * 2000,
    ],
)
def test_what_is_no_json_or_nobody_can_keep_is_refused(text: bytes | str) -> None:
    with pytest.raises(Unfit, match="no JSON that can be kept"):
        json_of(text)


# ---------------------------------------------------------------- how long calls go on


@pytest.fixture
def anyio_backend() -> Any:
    return "trio", {"clock": clock()}


def clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Fated:
    """A store of a server that is down: each call fails at once."""
    down = Fate(applied=False, ends=OutcomeUnknown("connection refused"))
    store = Fated(None, down, Fate(WRITES))
    monkeypatch.setattr("leaderless.hosting.place.open_store", lambda _url, _options: store)
    return store


# ---------------------------------------------------------------- calls


async def refuses_the_connection() -> None:
    raise OutcomeUnknown("connection refused")


@pytest.mark.parametrize("patience_s", [0.05, 3, 4, 30])
@pytest.mark.parametrize("operation", [anyio.sleep_forever, refuses_the_connection])
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


# ---------------------------------------------------------------- a log


async def test_a_look_waits_for_a_server_that_comes_back(store: Fated) -> None:
    down = store.fates[0]

    async def comes_back() -> None:
        await anyio.sleep(20)
        down.times = 0

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(comes_back)
        async with open_log("memory:") as log:
            await log.append("k", 1)
        down.times = ANY_NUMBER
        tasks.start_soon(comes_back)
        async with open_log("memory:", create=False) as log:
            assert len(await log.read("k")) == 1


# ---------------------------------------------------------------- commands


ARGUMENTS: dict[str, Sequence[str]] = {
    "produce": ("k", "1"), "read": ("k",), "tail": ("k",), "consume": ("k",), "ack": ("k", "0"),
    "trim": ("k", "0"), "redrive": ("g",), "close": ("k",), "table": ("delta",),
}  # fmt: skip
WRITES_FIRST = {"init", "bench"}


@pytest.mark.parametrize("patience", ["3", "4"])
@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"produce-batch", "conformance", "copy"}))
def test_every_command_has_the_patience_that_it_is_given(
    name: str,
    patience: str,
    store: Fated,
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
    assert name in WRITES_FIRST or not store.fates[1].happened
