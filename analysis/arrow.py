"""Python functions on Arrow tables in executors, without PySpark's warning about pandas."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def arrow_batch(rows: Iterable[Mapping[str, Any]], schema: StructType) -> pa.RecordBatch:
    """`rows` for Spark, with numbers as exact as they are (pandas makes floats of those beside nulls)."""
    return pa.RecordBatch.from_pylist(list(rows), schema=to_arrow_schema(schema))


def map_groups(
    groups: GroupedData, function: Callable[[pa.Table], pa.Table], schema: StructType
) -> DataFrame:
    """`groups.applyInArrow`: each group, whole, through `function`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        # PySpark inspects type hints, and fails on those of a `partial`. A lambda has none.
        return groups.applyInArrow(lambda table: function(table), schema)  # noqa: PLW0108
