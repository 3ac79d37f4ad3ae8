"""A log as a table of Delta Lake or Iceberg, read back by their own libraries (optional), and by DuckDB."""

import re
import sys
from functools import partial
from importlib import import_module
from pathlib import Path

import duckdb
import pytest

from leaderless.api.log import Log
from leaderless.cli import main
from leaderless.errors import Indefinite, Unfit
from leaderless.store.port import Store
from leaderless.store.sqlite import SqliteStore
from leaderless.table import lakes
from leaderless.table.manifest import read_manifest
from leaderless.table.retention import Policy
from leaderless.table.snapshot import FileRef, file_refs, table_in
from tests.tables import compact, small_log

pytestmark = pytest.mark.anyio
COLUMNS = ["key", "offset", "value"]


class Lake:
    """A log in a folder, and its table in one of the formats; `name`: of that, the folder's."""

    def __init__(self, kind: str, folder: Path, name: str = "") -> None:
        self.store = SqliteStore(folder / "log.db")
        self.is_delta = kind == "delta"
        self.name = name or folder.name  # all tests have the catalog of the first one
        sync_iceberg = partial(lakes.sync_iceberg, name=f"default.logs.{self.name}")
        self.sync = partial(lakes.sync_delta if self.is_delta else sync_iceberg, self.store)

    async def rows(self, version: int | None = None) -> list[tuple[object, ...]]:
        """What DuckDB reads from the files that the table names: as its library, and as in the log."""
        if self.is_delta:
            place = self.store.files.location("merged")
            table = import_module("deltalake").DeltaTable(place, version)
            assert (
                table.vacuum(dry_run=False) == []
            )  # whatever is no more, or not yet, in the table
            names, found = table.file_uris(), table.to_pyarrow_table()
        else:
            catalog = import_module("pyiceberg.catalog").load_catalog("default")
            scan = catalog.load_table(f"logs.{self.name}").scan()
            names, found = [each.file.file_path for each in scan.plan_files()], scan.to_arrow()
        asked = f'SELECT key, "offset", value FROM read_parquet({names})'
        rows = duckdb.execute(asked).fetchall() if names else []
        assert sorted(zip(*(found[name].to_pylist() for name in COLUMNS), strict=True)) == sorted(
            rows
        )
        wanted = [
            ref for ref in await file_refs(self.store) if ref.path[0] == "m" or not self.is_delta
        ]
        tables = [await table_in(self.store, ref) for ref in wanted]
        assert sum(each.num_rows for each in tables) == len({*rows}) == len(rows)
        return rows


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[request.param])
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__WAREHOUSE", str(tmp_path / "warehouse"))
    return Lake(request.param, tmp_path)


async def append_numbers(log: Log, keys: str, count: int) -> None:
    for number in range(count):
        await log.append(keys[number % len(keys)], number)
    await compact(log)


async def test_it_follows_merges_retention_and_trims(lake: Lake, tmp_path: Path) -> None:
    async with small_log(lake.store) as log:
        for keys in ("abc", "bcd"):
            await append_numbers(log, keys, 24)
            done = await lake.sync()
            assert (done.added > 0, done.removed > 0) == (True, keys == "bcd")
            assert await lake.rows()
            assert (await lake.sync())[2:] == (0, 0)
        await log.trim("d", 1)
        with pytest.raises(Unfit, match=r"has key 'd' from offset 0 on, below its trim at 1"):
            await lake.sync()
        assert (await log.retain(Policy(bytes=0))).files
    assert (await lake.sync()).removed > 0
    manifest, _ = await read_manifest(lake.store)
    lake.store.files.delete([each.path for each in manifest.replaced])  # as after an hour
    assert await lake.rows() == []
    if lake.is_delta:
        with pytest.raises(Exception, match="not found"):  # never fewer rows
            await lake.rows(version=1)
    else:
        (folder := tmp_path / "other").mkdir()
        other = Lake("iceberg", folder, lake.name)
        async with small_log(other.store):
            with pytest.raises(Unfit, match=rf"the table of .*, not of {folder}.*: take another"):
                await other.sync()


async def test_of_two_runs_at_once_the_one_with_the_older_list_changes_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = lakes._shown

    async def slow(store: Store, folder: str = "") -> list[FileRef]:
        found = await listed(store, folder)
        monkeypatch.setattr(lakes, "_shown", listed)
        await append_numbers(log, "b", 16)
        await lake.sync()
        return found

    async with small_log(lake.store) as log:
        for _ in ("the table is made", "it is changed"):
            await append_numbers(log, "a", 16)
            monkeypatch.setattr(lakes, "_shown", slow)
            with pytest.raises(Indefinite, match="run it again"):
                await lake.sync()
            assert await lake.rows()


def test_the_command_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ["--store", f"sqlite:///{tmp_path}/log.db"]
    for made in (["--runs", "parquet"], ["--topic", "json"]):
        main(["init", *made, *store])
    for package in ("deltalake", "pyiceberg.catalog"):
        monkeypatch.setitem(sys.modules, package, None)
    for arguments, said in (
        (["delta", "a.b.c"], "delta has none"),
        (["iceberg"], "iceberg needs CATALOG.NAMESPACE.TABLE"),
        (["delta"], r"needs the package deltalake: pip install '\.\[delta\]'"),
        (["iceberg", "a.b.c"], r"needs the package pyiceberg: pip install '\.\[iceberg\]'"),
        (["delta", "--topic", "json"], "no Parquet files that another program can read"),
    ):
        assert main(["table", *arguments, *store]) == 1
        assert re.search(said, capsys.readouterr().err)
