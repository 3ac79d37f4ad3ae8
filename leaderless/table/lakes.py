"""The files of a log as a table of Delta Lake or Apache Iceberg, by metadata alone: no row is copied.

    delta     the log of the table is `merged/_delta_log`, so its files are the merged ones
    iceberg   a catalog of pyiceberg, whose table names merged files and runs by their location

One commit makes the table's list of files that of the log, whatever it was. So a run that was cut off, or whose
answer was lost, is made good by the next one. The table is read before the log: where two run at once, the
one with the older list finds that its table has changed, and changes nothing.

A file that a merge or a retention took out of the log stays for an hour (`leaderless.table.upkeep`), and is
in the table until the next run. A reader of an older version of the table is told that its file is missing.
Both formats can hide rows of a file by further files alone, so a file with trimmed records is refused.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from leaderless.errors import Definite, Indefinite, LogError, Unfit
from leaderless.store.calls import in_thread
from leaderless.store.files import Files, files_of
from leaderless.store.format import shape_in
from leaderless.store.options import install
from leaderless.store.port import Store
from leaderless.table.manifest import read_manifest
from leaderless.table.parquet import Reader
from leaderless.table.retention import read_starts
from leaderless.table.schema import COLUMNS
from leaderless.table.snapshot import FileRef, file_refs, reader_of
from leaderless.table.upkeep import FOLDER

NAME = "leaderless"  # of a table of Delta
PLACE = "leaderless.files"  # a property of a table of Iceberg: where the log has its merged files
# No `VACUUM` of Delta deletes a file of the log that was merged after the last run.
KEEPS = {"delta.deletedFileRetentionDuration": "interval 36500 days"}
# No maintenance of Iceberg deletes a file of the log, no commit is tried again on a table that another run has
# changed, and files have no statistics of some columns.
PROPERTIES = {"gc.enabled": "false", "commit.retry.num-retries": "0"} | {
    f"write.metadata.metrics.column.{name}": "none"
    for name in ("value", "bytes", "headers.key", "headers.value")
}


class Synced(NamedTuple):
    """A table as a run left it: where it is, how many files it has, how many came and went."""

    table: str
    files: int
    added: int
    removed: int


async def sync_delta(
    store: Store, endpoint: str | None = None, region: str | None = None
) -> Synced:
    """Make the Delta table in the folder of the merged files, or make it what the log is now.

    `endpoint`, `region`: of S3, beside what deltalake finds in the environment. Raises `Unfit` for a file with
    trimmed records, and for a store that no other program reaches; `Definite`; `Indefinite`: the table may have
    been changed or not.
    """
    given = {"aws_endpoint_url": endpoint, "aws_region": region}
    options = {name: value for name, value in given.items() if value} | {"aws_allow_http": "true"}
    place = (await _files_in(store)).location(FOLDER)
    with _told("delta", place, changes=False):
        table = await in_thread(partial(_delta_in, place, options))
        before = pa.table(table.get_add_actions())["path"].to_pylist()
    if table.metadata().name != NAME:
        raise Unfit(f"{place} has a Delta table of another program: move its _delta_log away")
    shown = {file.path.removeprefix(f"{FOLDER}/"): file for file in await _shown(store, FOLDER)}
    new = {name: reader_of(store, file) for name, file in shown.items() if name not in before}
    gone = [name for name in before if name not in shown]
    with _told("delta", place, changes=True):
        if new or gone:
            await in_thread(partial(_commit, table, new, gone))
    return Synced(place, len(shown), len(new), len(gone))


def _delta_in(place: str, options: dict[str, str]) -> Any:
    """The Delta table at a place, which is made when it is missing."""
    from deltalake import DeltaTable

    known: Any = {"name": NAME, "configuration": KEEPS, "storage_options": options}
    return DeltaTable.create(place, COLUMNS, "ignore", **known)


def _commit(table: Any, new: Mapping[str, Reader], gone: Iterable[str]) -> None:
    """Commit one change of a Delta table, unless another commit was first."""
    from deltalake.transaction import AddAction, CommitProperties, RemoveAction

    at = int(time.time() * 1000)
    actions: list[Any] = [RemoveAction(name, True, at) for name in gone]
    for name, reader in new.items():
        told = orjson.dumps(_statistics(reader)).decode()
        actions.append(AddAction(name, reader.size, {}, at, True, told))
    # After a retry it would add files to what another run has changed meanwhile.
    once = CommitProperties(max_commit_retries=0)
    table.create_write_transaction(actions, "append", COLUMNS, commit_properties=once)


def _statistics(reader: Reader) -> dict[str, object]:
    """What Delta asks of a file, so that a query can pass over it."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    groups = [(each.keys, each.offsets, each.slots) for each in reader.groups()]
    for name, *spans in zip(("key", "offset", "slot"), *groups, strict=True):
        least[name], most[name] = min(low for low, _ in spans), max(high for _, high in spans)
    if (newest := reader.newest()) < inf:
        most["appended_at"] = datetime.fromtimestamp(newest, UTC).isoformat(timespec="microseconds")
    return {"numRecords": reader.rows, "minValues": least, "maxValues": most}


async def sync_iceberg(store: Store, name: str) -> Synced:
    """Make the Iceberg table `CATALOG.NAMESPACE.TABLE`, or make it what the log is now.

    pyiceberg's configuration says what the catalog is. Raises as `sync_delta`.
    """
    files = await _files_in(store)
    place = files.location(FOLDER)
    with _told("iceberg", name, changes=False):
        table = await in_thread(partial(_iceberg_in, name, place))
        if (other := table.properties.get(PLACE)) != place:
            raise Unfit(
                f"{name} is the table of {other or 'another program'}, not of {place}: take another name"
            )
        before = {task.file.file_path: task.file for task in table.scan().plan_files()}
    shown = {files.location(file.path): file for file in await _shown(store)}
    new = [location for location in shown if location not in before]
    gone = [file for location, file in before.items() if location not in shown]
    with _told("iceberg", name, changes=True):
        if new or gone:
            await in_thread(partial(_change, table, new, gone))
    return Synced(table.location(), len(shown), len(new), len(gone))


def _iceberg_in(name: str, place: str) -> Any:
    """The table of this name, which is made when it is missing, of the log with files at a place."""
    from pyiceberg.catalog import load_catalog

    catalog_name, *identifier = name.split(".")
    catalog = load_catalog(catalog_name)
    catalog.create_namespace_if_not_exists((*identifier[:-1],))
    return catalog.create_table_if_not_exists(
        (*identifier,), COLUMNS, properties=PROPERTIES | {PLACE: place}
    )


def _change(table: Any, new: Sequence[str], gone: Sequence[Any]) -> None:
    """Commit one change of an Iceberg table, unless another commit was first."""
    from pyiceberg.io.pyarrow import parquet_files_to_data_files
    from pyiceberg.table import TableProperties

    with table.transaction() as change:
        mapping = table.schema().name_mapping.model_dump_json()  # files have no ids of fields
        change.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
        with change.update_snapshot().overwrite() as files:
            for file in gone:
                files.delete_data_file(file)
            for file in parquet_files_to_data_files(table.io, change.table_metadata, iter(new)):
                files.append_data_file(file)


async def _files_in(store: Store) -> Files:
    """The files of a log. Raises `Unfit` where it has none that another program finds."""
    files = files_of(store)
    if files is None or not (await shape_in(store)).sliced or store.url.startswith("memory:"):
        raise Unfit(f"the log at {store.url} has no Parquet files that another program can read")
    return files


async def _shown(store: Store, folder: str = "") -> list[FileRef]:
    """The Parquet files of the log in a folder, or all. Raises `Unfit` for one with a trimmed record."""
    listed = [
        file for file in await file_refs(store) if file.path.startswith(folder) and file.rows != 0
    ]
    manifest, _ = await read_manifest(store)  # later: a trim meanwhile counts
    if manifest.trimmed:
        starts = await in_thread(partial(read_starts, await _files_in(store), manifest))
        for file in listed:
            if found := await in_thread(partial(_trimmed, reader_of(store, file), starts)):
                raise Unfit(
                    f"{file.path} has key {found[0]!r} from offset {found[1]} on, below its trim at "
                    f"{starts[found[0]]}, and no table can hide that. The table stays as it was until "
                    "`leaderless retain` has deleted the file"
                )
    return listed


def _trimmed(reader: Reader, starts: Mapping[str, int]) -> tuple[str, int] | None:
    """A key with records below its start in a file, and the first of them."""
    for group in reader.groups():
        if any(group.may_hold(key, 0) and group.offsets[0] < at for key, at in starts.items()):
            rows = reader.read([group.place], ["key", "offset"])
            for key, offset in zip(*(each.to_pylist() for each in rows.columns), strict=True):
                if offset < starts.get(key, 0):
                    return key, offset
    return None


@contextmanager
def _told(extra: str, table: str, *, changes: bool) -> Iterator[None]:
    """Raise errors of a log for what a library says of a table, which the block may have changed."""
    try:
        yield
    except LogError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise Definite(f"it needs the package {package}: {install(extra)}") from error
    except Exception as error:
        if changes:
            text = "may have been changed or not, or another run was first: run it again"
            raise Indefinite(f"the table {table} {text} ({error})") from error
        raise Definite(f"the table {table} cannot be made or read: {error}") from error
