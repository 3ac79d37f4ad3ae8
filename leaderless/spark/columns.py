"""The columns of the table that Spark sees, and how a log's rows become them.

They are those of the files (`leaderless.table.schema`), but `message`: a value that stands in an object of its
own is read, and appears in `value` or `bytes`.
"""

from collections.abc import Sequence

import orjson
import pyarrow as pa

from leaderless.errors import Broken
from leaderless.hosting.data import Data
from leaderless.spark.predicate import Predicate
from leaderless.store.port import Store
from leaderless.store.values import Reference
from leaderless.table.schema import COLUMNS, reference_of

SCHEMA = pa.schema([pa.field(each.name, each.type) for each in COLUMNS if each.name != "message"])
CONTENT = ("value", "bytes")


def needed(columns: pa.Schema, predicate: Predicate) -> list[str]:
    """The columns of a file that these columns and a predicate need."""
    wanted = {*map(str.lower, columns.names), *predicate.columns}
    if wanted & {*CONTENT}:
        wanted |= {"message"}
    return [each.name for each in COLUMNS if each.name in wanted]


async def shown(store: Store, table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The columns `columns` of a table of files. Reads the objects of large values."""
    names = [name.lower() for name in columns.names]
    if {*names} & {*CONTENT} and table["message"].null_count < table.num_rows:
        table = await _with_values(store, table, names)
    table = table.select(names)
    return table.rename_columns(columns.names).cast(columns) if names else table


async def _with_values(store: Store, table: pa.Table, names: Sequence[str]) -> pa.Table:
    messages = table["message"].to_pylist()
    places = [place for place, message in enumerate(messages) if message is not None]
    references = [_reference(messages[place]) for place in places]
    data = Data(store, 0, 0)
    large = [each.message for each in references if each]
    values = iter(await data.values(large))
    columns = {name: table[name].to_pylist() for name in names if name in CONTENT}
    for place, reference in zip(places, references, strict=True):
        value = next(values) if reference else orjson.loads(messages[place])
        column = "bytes" if isinstance(value, bytes) else "value"
        if column in columns:
            is_bytes = isinstance(value, bytes)
            columns[column][place] = value if is_bytes else orjson.dumps(value).decode()
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, SCHEMA.field(name), pa.array(column, SCHEMA.field(name).type))
    return table


def _reference(message: str) -> Reference | None:
    """Where a value is; None for a message that is none of the library's, which is shown as it is."""
    try:
        return reference_of(message)
    except Broken:
        return None
