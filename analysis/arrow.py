"""Python functions on Arrow tables in executors, without PySpark's warning about pandas."""

import warnings
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.types import StructType


def map_parts(
    frame: DataFrame,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """`frame.mapInArrow`: the batches of each part through `function`, one after the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, schema)


def map_groups(
    groups: GroupedData, function: Callable[[pa.Table], pa.Table], schema: StructType | str
) -> DataFrame:
    """`groups.applyInArrow`: each group, whole, through `function`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        # PySpark inspects type hints, and fails on those of a `partial`. A lambda has none.
        return groups.applyInArrow(lambda table: function(table), schema)  # noqa: PLW0108
