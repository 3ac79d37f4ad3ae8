"""The commands about the files of a log: which they are, and tables of other programs that name them."""

from argparse import Namespace
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from leaderless.api.command import Result, command, store_of
from leaderless.arguments import argument
from leaderless.errors import Unfit

if TYPE_CHECKING:
    from leaderless.store.port import Store


@command(nullcontext, "show the Parquet files that hold the log now")
async def _files(_: Namespace, options: Namespace) -> Result | None:
    from leaderless.api.output import note, show_text
    from leaderless.hosting.place import require_log, require_pyarrow
    from leaderless.store.calls import reached

    async with store_of(options) as store:
        await reached(partial(require_log, store), options.patience, reads=True)
        require_pyarrow("leaderless files")
        from leaderless.table.snapshot import locations

        found = await locations(store)
    if options.json:
        return {"files": found}
    for location in found:
        show_text(location)
    if not found:
        note("no files yet: the newest records are in none")
    return None


@command(
    store_of,
    "show the log's files as a table of Delta Lake or Iceberg; no row is copied",
    argument("format", choices=("delta", "iceberg"), help="delta: beside the merged files"),
    argument(
        "name",
        nargs="?",
        metavar="CATALOG.NAMESPACE.TABLE",
        help="of Iceberg; the configuration of pyiceberg says what the catalog is",
    ),
    example="delta",
)
async def _table(store: "Store", options: Namespace) -> Result:
    from leaderless.hosting.place import require_log, require_pyarrow
    from leaderless.store.calls import reached

    await reached(partial(require_log, store), options.patience, reads=True)
    require_pyarrow("leaderless table")
    from leaderless.table.lakes import sync_delta, sync_iceberg

    if (options.name is None) is (options.format == "iceberg"):
        raise Unfit("name: iceberg needs CATALOG.NAMESPACE.TABLE, and delta has none")
    if options.name:
        return (await sync_iceberg(store, options.name))._asdict()
    return (await sync_delta(store, options.endpoint, options.region))._asdict()
