"""A log from a stranger: whatever one register holds, each command is right or says a sentence.

No file outside the folder of the log is touched, and no register makes a command fail in any other way.
"""

import io
import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import anyio
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaderless.cli import main
from leaderless.core.headlog.commits import Committed
from leaderless.core.messages import Cas, Get, Mismatch, Missing, Ok, Outcome, Put, StoreOp, Unknown
from leaderless.core.shape import Runs
from leaderless.spark.staging import Epoch, decide
from leaderless.store.memory import MemoryStore
from leaderless.store.port import OutcomeUnknown, Store
from leaderless.store.registers import Registers
from leaderless.store.sqlite import SqliteStore
from leaderless.table.retention import Policy
from leaderless.upkeep.staged import Plan
from tests import around
from tests.epochs import Encoded, stage
from tests.tables import compact, small_log

SENTINEL = "outside.parquet"
FORGED: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, True, -1, 0, 1, 7, 2**31, 2**63, -1.5, "", "x", "run/0-1", "é", [], {}, [[]], [1, 2],
        {"deleted": True},
        {"$data": ["../x", 1, "json"]}, f"../{SENTINEL}", f"OUTSIDE/{SENTINEL}", [[f"OUTSIDE/{SENTINEL}", 0]],
        [[f"../{SENTINEL}", 0]], f"merged/../../{SENTINEL}",
    ]
)  # fmt: skip
FOREIGN = (
    "data/", "data/2026/report.csv", "segment/README", "run/a-b", "page/x", "committed/", "sink/",
    "sink/a/b/c/d", "group/", "group/README", "group/g/cursor/..", "claim/x",
)  # fmt: skip
COMMANDS = (
    "fsck", "vacuum --retention 600", "status", "keys", "read a", "read large", "groups", "files", "compact",
    "retain --bytes 0", "retain --processed", "consume a --group g", "ack a 1 --group g",
    "produce a 1", "unfence", "fence", "init",
)  # fmt: skip


async def _fill(file: Path, runs: Runs) -> None:
    """A log that has every kind of register."""
    store = SqliteStore(file)
    async with small_log(store, runs, timeout_s=5.0) as log:
        for number in range(28):
            await log.append("ab"[number % 2], number)
            if number == 12:
                await log.append("large", "x" * 20_000)
                await log.append("bytes", b"x")
                await compact(log)
                if runs == "parquet":
                    await log.retain(Policy(bytes=0))
        await compact(log)
        for number in range(3):
            await log.append("c", number)
        await log.append("large", "x" * 20_000)
        await log.append_named("loader", 3, [("a", 7)])
        await log.commit("g", {"a": 0})
        async with log.consumer("members", ["b"]) as consumer:
            await consumer.ack(await anext(consumer))
        await log.ends(5.0)  # a claim of who was cut off is waited for
    epochs = [Epoch("q", number) for number in range(2)]
    for epoch in epochs:
        parts = await stage(store, f"{epoch.folder}/0-0", [Encoded("a", b"1", True)])
    await decide(store, epochs[1], Plan(tuple(parts), 100))
    await store.write("committed/0", orjson.dumps(Committed(3, {"a": 1}).value))
    for name in FOREIGN:
        await store.write(name, b"theirs")
    await store.aclose()


@pytest.fixture(scope="module", params=["json", "parquet"])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    anyio.run(_fill, folder / "log.db", request.param)
    return folder


def _objects(file: Path) -> dict[str, bytes]:
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute("SELECT key, value FROM objects"))


def _registers(log: Path) -> dict[str, Any]:
    """The objects of a log that are JSON."""
    registers = {}
    for name, text in _objects(log / "log.db").items():
        with suppress(orjson.JSONDecodeError):
            registers[name] = orjson.loads(text)
    return registers


def _change(file: Path, statement: str, names: Sequence[str], *values: object) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executemany(statement, [(*values, name) for name in names])


def fields(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each part of a JSON value."""
    yield path
    names = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for name in names:
        yield from fields(value[name], (*path, name))


def forged(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another part at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = forged(value[path[0]], path[1:], new)
    return copy


def said_by(url: str, command: str, patience_s: float = 30.0) -> tuple[int, str]:
    """The exit status of a command, and all that it said; it is as patient with its store as a test can be."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["--store", url, "--patience", f"{patience_s}", "--json", *command.split()])
    return status, out.getvalue() + err.getvalue()


def require_right_or_told(file: Path, command: str) -> str:
    """What a command says of a log in a file; it is right, or says an error in one sentence."""
    status, said = said_by(f"sqlite:///{file}", command, 0.3)  # what is forged stays so
    assert "Traceback" not in said
    assert (status, '"error"' in said) in ((0, False), (1, True)), said
    return said


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes no sense is read again, at once."""
    monkeypatch.setattr("leaderless.store.calls.PAUSE_S", 0.0)


def _require_told(log: Path, name: str, value: Any, commands: Sequence[str]) -> None:
    """Each command on a copy of the log, whose object `name` holds `value`, is right or says an error."""
    with TemporaryDirectory() as place:
        outside, copy = Path(place, SENTINEL), Path(place, "in")
        shutil.copytree(log, copy)
        outside.write_bytes(b"somebody's")
        text = orjson.dumps(value).replace(b"OUTSIDE", place.encode())
        _change(copy / "log.db", "UPDATE objects SET value = ? WHERE key = ?", [name], text)
        for command in commands:
            require_right_or_told(copy / "log.db", command)
        assert outside.read_bytes() == b"somebody's"
        assert {*_objects(copy / "log.db")} >= {*FOREIGN}


@pytest.mark.parametrize("log", ["parquet"], indirect=True)
@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("table", ("replaced",), [[f"OUTSIDE/{SENTINEL}", 0]]),
        ("table", ("replaced",), [[f"../../{SENTINEL}", 0]]),
        ("table", ("start", 2), f"OUTSIDE/{SENTINEL}"),
        ("table", ("files", 0, 0), f"../../{SENTINEL}"),
        ("compacted", ("listed", 0, 5), 1 << 40),
        ("format", ("shape", "seal_bytes"), 1 << 63),
        ("format", ("shape", "offset_registers"), 1 << 63),
    ],
    ids=str,
)
def test_what_a_stranger_may_send(
    log: Path, name: str, path: tuple[Any, ...], value: object
) -> None:
    value = forged(_registers(log)[name], path, value)
    _require_told(log, name, value, ["fsck", "vacuum --retention 600", "files", "read a"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.data())
def test_a_forged_register_is_told_and_nothing_outside_is_touched(
    log: Path, data: st.DataObject
) -> None:
    registers = _registers(log)
    folder = data.draw(st.sampled_from(sorted({name.partition("/")[0] for name in registers})))
    name = data.draw(st.sampled_from(sorted(filter(re.compile(rf"{folder}\b").match, registers))))
    path = data.draw(st.sampled_from([*fields(registers[name])]))
    value = forged(registers[name], path, data.draw(FORGED))
    commands = data.draw(st.lists(st.sampled_from(COMMANDS), min_size=2, max_size=3))
    _require_told(log, name, value, commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_others_keep_in_the_place_of_a_log_disturbs_no_command(
    log: Path, command: str, tmp_path: Path
) -> None:
    """It is as on the same log alone."""
    for name in ("alone", "shared"):
        shutil.copytree(log, tmp_path / name)
    _change(tmp_path / "alone" / "log.db", "DELETE FROM objects WHERE key = ?", FOREIGN)
    (alone, _), (shared, said) = (
        said_by(f"sqlite:///{tmp_path}/{name}/log.db", command) for name in ("alone", "shared")
    )
    assert shared == alone, said
    assert {*_objects(tmp_path / "shared" / "log.db")} >= {*FOREIGN}


def test_names_of_another_release_in_every_register_change_no_answer(
    log: Path, tmp_path: Path
) -> None:
    told: dict[str, list[tuple[int, str]]] = {}
    for name in ("as it was", "with more"):
        file = shutil.copytree(log, tmp_path / name) / "log.db"
        for key, value in _registers(log).items() if name == "with more" else ():
            if isinstance(value, dict):
                text = orjson.dumps(value | {"future": {"by": 7}})
                _change(file, "UPDATE objects SET value = ? WHERE key = ?", [key], text)
        for command in ("produce k 1", "produce k 1", "produce k 1", *COMMANDS[:-1]):
            status, said = said_by(f"sqlite:///{file}", command)
            said = re.sub(r'"by":"[^"]*"|"(lag_s|bytes)":[\d.]+', "", said.replace(name, ""))
            told.setdefault(name, []).append((status, said))
    assert told["with more"] == told["as it was"]


# ---------------------------------------------------------------- damaged answers, and lost ones

Fate = Literal["ok", "half", "empty", "garbage", "no ETag", "call lost", "answer lost"]
FATES: tuple[Fate, ...] = (
    "ok", "ok", "ok", "half", "empty", "garbage", "no ETag", "call lost", "answer lost",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),  # which of two processes
        st.sampled_from(["get", "put", "create", "set", "set"]),
        st.lists(st.sampled_from(FATES), max_size=2),  # of its calls
    ),
    max_size=40,
)


UNVERSIONED = {"no ETag": {"ends": OutcomeUnknown("no ETag")}}


def truth(store: MemoryStore) -> Any:
    kept = store._objects.get("a")
    return orjson.loads(kept[0].value) if kept else None


class Process:
    """One process: what it knows of the register, and what it asks next."""

    def __init__(self, store: Store) -> None:
        self.registers = Registers(store)
        self.knows: Any = None

    def op(self, kind: str, new: Any) -> StoreOp:
        match kind:
            case "get":
                return Get("a")
            case "put":
                return Put("a", new)
            case "create":
                return Cas("a", None, new, create=True)
        return Cas("a", self.knows, new)


def require_true(op: StoreOp, outcome: Outcome, before: Any, after: Any) -> None:
    """An outcome is what happened, or says that it does not know."""
    match op, outcome:
        case (_, Unknown()):
            wanted = None if isinstance(op, Get) else getattr(op, "new", getattr(op, "value", None))
            assert after in (before, wanted)
        case Get(), Ok(value):
            assert value == before == after
        case Put(_, new), Ok():
            assert after == new
        case Cas(_, old, new), Ok():
            assert (before, after) == (old, new)
        case Cas(_, old), Mismatch():
            assert before == after != old
        case _, Missing():
            assert before is after is None
        case _:
            raise AssertionError(f"{op}: {outcome}")


@given(STEPS)
def test_an_outcome_is_never_wrong(steps: list[tuple[int, str, list[Fate]]]) -> None:
    async def play() -> None:
        memory = MemoryStore()
        store = around.Fated(memory)
        processes = [Process(store), Process(store)]
        for number, (who, kind, fates) in enumerate(steps, 1):
            process = processes[who]
            before = truth(memory)
            op = process.op(kind, {"number": number})
            store.fates = [
                around.Fate(passes=at, times=1, **(around.FATES | UNVERSIONED)[name])
                for at, name in enumerate(fates)
            ]
            outcome = await process.registers.carry_out(op)
            require_true(op, outcome, before, truth(memory))
            if isinstance(op, Get) and isinstance(outcome, Ok):
                process.knows = outcome.value
            elif isinstance(outcome, Ok):
                process.knows = {"number": number}

    anyio.run(play)
