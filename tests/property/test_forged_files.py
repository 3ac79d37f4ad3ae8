"""Files from a stranger: SQLite, what is beside it, and Parquet. Each command is right or says a sentence."""

import os
import shutil
import sqlite3
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import anyio
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderless.errors import LogError
from leaderless.store.files import MemoryFiles
from leaderless.store.port import StoreError
from leaderless.store.sqlite import SqliteStore
from leaderless.table.parquet import SPANS, Reader
from leaderless.table.runs import directory_of
from leaderless.table.schema import COLUMNS, FORMAT_NAME, RUN_NAME, rows_in
from tests.property.test_forged_registers import no_pause, require_right_or_told
from tests.tables import compact, small_log

__all__ = ["no_pause"]  # a fixture

VICTIM = b"SQLite format 3\0, and somebody's"
ORPHAN = "{}-files/merged/0-1-0123456789abcdef.parquet"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
VIEW = "ALTER TABLE objects RENAME TO kept; CREATE VIEW objects AS"
COPY = "ALTER TABLE objects RENAME TO kept; CREATE TABLE objects"


async def _fill(file: Path) -> None:
    """A log with a merged file, two runs, and segments."""
    store = SqliteStore(file)
    async with small_log(store, "parquet", timeout_s=5.0) as log:
        for values in (range(18), range(9), range(6)):
            for number in values:
                await log.append("ab"[number % 2], number)
            await (compact(log) if len(values) > 9 else log.compact())
        await log.append("a", b"x")
    await store.aclose()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forged")
    anyio.run(_fill, folder / "log.db")
    return folder


@pytest.fixture
def log(made: Path, tmp_path: Path) -> Path:
    """The log, in a folder of its own."""
    shutil.copytree(made, tmp_path / "in")
    return tmp_path / "in" / "log.db"


# ---------------------------------------------------------------- what SQLite does for a stranger


def journal(named: str = "") -> bytes:
    """A journal that SQLite plays back: of no page, with the name of a super-journal, if one is given."""
    mark, name = bytes.fromhex("d9d505f920a163d7"), named.encode()
    header = (mark + struct.pack(">5I", 0, 7, 1 << 20, 512, 4096)).ljust(512, b"\0")
    page = struct.pack(">I", (1 << 30) // 4096 + 1)
    return header + (page + name + struct.pack(">2I", len(name), sum(name)) + mark if name else b"")


LINKS = [
    f"{end} {kind}" for end in ("-journal", "-wal", "-shm") for kind in ("symlink", "hardlink")
]


def put_beside(file: Path, victim: Path, name: str) -> None:
    """Put something of a stranger beside a log that leads to the file of a victim."""
    match name.split():
        case ["names"]:
            Path(f"{file}-journal").write_bytes(journal(f"{victim}"))
        case ["another-log"]:
            victim.rename(f"{file}-journal")
        case ["files"]:
            Path(f"{file}-files").rename(f"{victim}-files")
            Path(f"{file}-files").symlink_to(f"{victim}-files")
            victim.rename(ORPHAN.format(victim))
            os.utime(ORPHAN.format(victim), (1, 1))
        case [end, kind]:
            getattr(Path(f"{file}{end}"), f"{kind}_to")(victim)


@pytest.mark.parametrize("name", ["names", "another-log", "files", *LINKS])
def test_what_stands_beside_a_log_harms_no_other_file(log: Path, name: str) -> None:
    victim = log.parent.parent / "victim"
    victim.write_bytes(VICTIM)
    put_beside(log, victim, name)
    for command in ("produce a 1", "retain --bytes 0", "vacuum --retention 600", "read b"):
        said = require_right_or_told(log, command)
        assert name == "files" or '"error"' in said
    places = {"another-log": f"{log}-journal", "files": ORPHAN.format(victim)}
    assert Path(places.get(name, victim)).read_bytes() == VICTIM


def test_a_journal_of_an_interrupted_program_is_played_back(log: Path) -> None:
    Path(f"{log}-journal").write_bytes(journal())
    assert '"offset":10' in require_right_or_told(log, "read b --offset 10")
    assert not Path(f"{log}-journal").exists()


DATABASES = {
    "a number for a value": "UPDATE objects SET value = 7 WHERE key = 'head'",
    "texts for values": "UPDATE objects SET value = CAST(value AS TEXT)",
    "a text for a version": "UPDATE objects SET version = 'x'",
    "a text for a time": "UPDATE objects SET modified = 'x'",
    "a value too large": f"UPDATE objects SET value = zeroblob({(1 << 26) + 1}) WHERE key = 'head'",
    "a key that is no text": "UPDATE objects SET key = CAST(x'646174612fff' AS TEXT) WHERE key = 'segment/0'",
    "no count": "DELETE FROM writes",
    "two counts": "INSERT INTO writes VALUES (99999)",
    "a text for a count": "UPDATE writes SET count = 'x'",
    "a count too low": "UPDATE writes SET count = 0",
    "a count too high": f"UPDATE writes SET count = {2**63 - 1}",
    "an endless view": f"{VIEW} {ENDLESS} 'k' || i AS key, x'' AS value, i AS version, 0.5 AS modified FROM n",
    "a view of zeros": f"{VIEW} SELECT key, zeroblob(500000000) AS value, version, modified FROM kept",
    "a view of counts": f"ALTER TABLE writes RENAME TO kept; CREATE VIEW writes AS {ENDLESS} i AS count FROM n",
    "a trigger": "CREATE TRIGGER t AFTER UPDATE ON writes BEGIN DELETE FROM objects; END",
    "an index that computes": "CREATE INDEX i ON objects (length(hex(value)))",
    "a computed column": f"{COPY} (key TEXT PRIMARY KEY, value BLOB, version INTEGER, modified REAL AS (0.5))",
    "no primary key": f"{COPY} (key TEXT, value BLOB, version INTEGER, modified REAL)",
    "no tables": "DROP TABLE objects; DROP TABLE writes",
}  # fmt: skip


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_of_a_stranger_is_told(log: Path, name: str) -> None:
    with closing(sqlite3.connect(log, isolation_level=None)) as connection:
        connection.executescript(DATABASES[name])
    said = [
        require_right_or_told(log, command)
        for command in ("read b", "produce a 1", "vacuum --retention 600")
    ]
    assert any('"error"' in each for each in said), said


# ---------------------------------------------------------------- Parquet

Change = Callable[[pa.Table], pa.Table]


def written(content: bytes, change: Change, names: dict[bytes, bytes], **options: Any) -> bytes:
    """A file with other rows, metadata or encodings."""
    file = pq.ParquetFile(pa.BufferReader(content))
    known = {name: file.metadata.metadata[name] for name in (FORMAT_NAME, RUN_NAME)} | names
    target = pa.BufferOutputStream()
    table = change(file.read().replace_schema_metadata(None)).replace_schema_metadata(known)
    pq.write_table(table, target, **({"compression": "zstd", "use_dictionary": False} | options))
    return bytes(target.getvalue())


def rows(change: Change = lambda table: table, **options: Any) -> Callable[[bytes], bytes]:
    return lambda content: written(content, change, {}, **options)


def run(value: object) -> Callable[[bytes], bytes]:
    """A file that says this of its run."""
    packed = b64encode(value if isinstance(value, bytes) else zlib.compress(orjson.dumps(value)))
    return lambda content: written(content, lambda table: table, {RUN_NAME: packed})


def column(name: str, value: object, kind: pa.DataType | None = None) -> Callable[[bytes], bytes]:
    """A file with one value in all rows of a column."""
    kind = kind or COLUMNS.field(name).type

    def change(table: pa.Table) -> pa.Table:
        array = (
            value
            if isinstance(value, pa.Array)
            else pa.array([value], pa.int64() if kind == TIME else kind)
        )
        array = array.cast(kind).take(pa.array([0] * table.num_rows))
        return table.set_column(COLUMNS.get_field_index(name), name, array)

    return rows(change)


def large(table: pa.Table) -> pa.Table:
    return table.take(pa.array([0] * 70)).set_column(2, "value", pa.array(["x" * (1 << 20)] * 70))


TIME = COLUMNS.field("appended_at").type
NO_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(struct.pack("<2i", 0, 1)), pa.py_buffer(b"\xff")]
)
WRONG: dict[str, Callable[[bytes], bytes]] = {
    "no zlib": run(b"x"), "no end": run(zlib.compress(b"[1, 2, 3]")[:-4]), "no JSON": run(zlib.compress(b"{")),
    "list": run([1]), "empty": run({}), "below 0": run(dict.fromkeys(SPANS, -1)),
    "texts": run(dict.fromkeys(SPANS, "")), "a bomb": run(zlib.compress(b"x" * (1 << 25))),
    "of others": run(dict.fromkeys(SPANS, 7)),
    "no column": rows(lambda table: table.drop_columns(["value"])),
    "a name": rows(lambda table: table.rename_columns([name.upper() for name in table.column_names])),
    "no statistics": rows(write_statistics=False),
    "backwards": rows(lambda table: table.take(pa.array([*range(table.num_rows)][::-1]))),
    "twice": rows(lambda table: pa.concat_tables([table, table])),
    "no rows": rows(lambda table: table.slice(0, 0)),
    "many rows": rows(lambda table: table.take(pa.array([0] * 1_100_000)), row_group_size=2_000_000),
    "prefixes": rows(column_encoding={"value": "DELTA_BYTE_ARRAY"}),
    "headers": rows(use_dictionary=True),
    "large pages": rows(large), "large dictionary": rows(large, use_dictionary=True),
    "key": column("key", 1, pa.int64()), "no key": column("key", None), "key no text": column("key", NO_TEXT),
    "offset": column("offset", "1", pa.string()), "no offset": column("offset", None),
    "offset below": column("offset", -1), "offset above": column("offset", 2**63 - 1),
    "slot": column("slot", 2**62), "no slot": column("slot", None), "no seq": column("seq", None),
    "no value": column("value", None), "value": column("value", "{"), "two": column("value", "1,2"),
    "value no text": column("value", NO_TEXT), "deep": column("value", "[" * 2000),
    "both": column("bytes", b"x"),
    "value a list": column("value", [1], pa.list_(pa.int64())), "writer": column("writer", 1, pa.int64()),
    "nothing": lambda _: b"", "no footer": lambda content: content[:-8] + b"\xff\xff\xff\x7fPAR1",
    "half": lambda content: content[: len(content) // 2], "zeros": lambda content: bytes(len(content)),
}  # fmt: skip
RIGHT = {
    "dictionaries": rows(use_dictionary=[name for name in COLUMNS.names if name != "headers"]),
    "pages of another form": rows(data_page_version="2.0", compression="gzip"),
    "lengths": rows(column_encoding={"value": "DELTA_LENGTH_BYTE_ARRAY"}),
}
COMMANDS = ("fsck", "read a", "compact", "produce a 1", "retain --age 1", "retain --bytes 0")


@pytest.mark.parametrize("name", [*WRONG, *RIGHT])
def test_parquet_of_a_stranger_is_read_or_told(log: Path, name: str) -> None:
    """All files of the log are so."""
    for file in Path(f"{log}-files").rglob("*.parquet"):
        file.write_bytes((WRONG | RIGHT)[name](file.read_bytes()))
    with closing(sqlite3.connect(log)) as connection, connection:
        [(text,)] = connection.execute("SELECT value FROM objects WHERE key = 'table'")
        table = orjson.loads(text)
        for merged in table["files"]:
            merged[7] = Path(f"{log}-files", merged[0]).stat().st_size
        connection.execute(
            "UPDATE objects SET value = ? WHERE key = 'table'", [orjson.dumps(table)]
        )
    said = {command: require_right_or_told(log, command) for command in COMMANDS}
    assert ('"error"' in said["fsck"]) == (name in WRONG), said["fsck"]
    assert all(f'"object":"{folder}/' in said["fsck"] for folder in ("run", "merged")) == (
        name in WRONG
    )


@pytest.fixture(scope="module")
def files(made: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(Path(f"{made}/log.db-files").rglob("*.parquet"))]


@given(st.data())
def test_a_damaged_file_is_read_or_told(files: list[bytes], data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from(files)))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    memory = MemoryFiles()
    memory.put("run", bytes(content))
    try:
        reader = Reader(memory, "run")
    except (LogError, StoreError):
        return
    for look in (
        reader.groups,
        reader.newest,
        lambda: [*rows_in(reader.read())],
        lambda: [*reader.pieces(4)],
        lambda: directory_of(reader),
        lambda: reader.has(0, "message"),
    ):
        with suppress(LogError, StoreError):
            look()
