"""A log as a frame whose files Spark reads by itself: the fast way to a table. See `direct`."""

from functools import partial, reduce

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.functions import col
from pyspark.sql.types import StringType, StructField, StructType

from leaderless.spark.direct import ScanPlan, plan_of
from leaderless.spark.predicate import ALL, Predicate
from leaderless.spark.reading import look
from leaderless.spark.settings import READ, count_in, place_in, predicate_in, require_known
from leaderless.spark.source import COLUMNS, TYPES

OPTIONS = (*READ, "asOfVersion")
# A file that is missing must end the query, whatever the session says: half a table would be no answer.
STRICT = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}


def read_log(spark: SparkSession, url: str, **options: str | int) -> DataFrame:
    """One version of a log as a frame, with the columns of the data source.

    The version is fixed by this call: each action on the frame sees the same records. Spark's own reader reads
    the log's Parquet files if they are on a local disk, as those of a `sqlite:` store are. This call writes the
    end of the log, which is in no file, into a temporary one. The data source reads what is left: files that
    are elsewhere, large values, an end that compaction has not reached. Then it must be registered
    (`spark.dataSource.register(LeaderlessDataSource)`).

    Args:
        spark: the session.
        url: the store.
        options: those of the data source for tables: topic, endpoint, region, accessKey, secretKey, keys,
            startOffset, endOffset, asOfVersion.
    Raises:
        Unfit: an option is wrong, or there is no such version.
        LogError: there is no log, or the store says no.
    """
    require_known(options, OPTIONS)
    asked = CaseInsensitiveDict({name: str(value) for name, value in options.items()}, url=url)
    predicate = predicate_in(asked)
    make = partial(plan_of, as_of=count_in(asked, "asOfVersion"), predicate=predicate)
    plan = look(place_in(asked), make)
    source = spark.read.format("leaderless").options(**asked)
    parts = [_in_files(spark, plan, predicate)] if plan.files else []
    if plan.end < plan.version or not parts:
        parts.append(_slots(source, plan.end, plan.version))
    if plan.has_large:
        parts.append(_slots(source.option("large", "true"), plan.start, plan.sealed))
    return reduce(DataFrame.unionAll, parts)


def _slots(source: DataFrameReader, first: int, end: int) -> DataFrame:
    """What the data source has of slots `first` to `end` - 1."""
    return source.option("sinceVersion", first).option("asOfVersion", end).load()


def _in_files(spark: SparkSession, plan: ScanPlan, predicate: Predicate) -> DataFrame:
    """The records of files that have their values."""
    schema = StructType([*COLUMNS, StructField("message", StringType())])
    paths = [f"file://{path}" for path in plan.files]
    frame = spark.read.schema(schema).options(**STRICT).parquet(*paths)
    if plan.has_large:
        frame = frame.where(col("message").isNull())
    if plan.divided:
        frame = frame.where(col("slot") < plan.end)
    if predicate.keys is not None:
        frame = frame.where(col("key").isin(sorted(predicate.keys)))
    if predicate.offset != ALL:
        frame = frame.where(col("offset").between(*predicate.offset))
    return frame.select(*TYPES)
