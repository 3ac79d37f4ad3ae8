"""The data source `leaderless` in a real Spark session: frames and streams, to a log and from it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import StructType

from leaderless import LogSync, open_log_sync
from leaderless.core.messages import Json
from leaderless.errors import LogError, Unfit
from leaderless.spark import LeaderlessDataSource, read_log
from leaderless.store.options import StoreOptions
from leaderless.store.sqlite import SqliteStore
from leaderless.store.urls import open_store
from tests import roles
from tests.servers import spark_options
from tests.tables import small_log

pytestmark = pytest.mark.spark
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
SECRET = "hush-hush-hush"
BATCHES = 21


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(LeaderlessDataSource)
    return spark


async def fill(path: Path, first: int, last: int) -> None:
    """Append batches of records `[slot, place]` to three keys, and compact."""
    async with small_log(SqliteStore(path)) as log:
        for slot in range(first, last):
            records: list[tuple[str, Json]] = [
                (f"k{(slot + place) % 3}", [slot, place]) for place in range(4)
            ]
            await log.append_named("filling", slot, records)
        await log.compact()
        if first == 0:
            await log.append("other", b"\xff")
            await log.append("other", "x" * 20_000)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 86 records, most of them in files."""
    path = tmp_path_factory.mktemp("log") / "log.db"
    anyio.run(fill, path, 0, BATCHES)
    return path


@pytest.fixture(scope="module")
def table(session: SparkSession, path: Path) -> Callable[..., DataFrame]:
    def load(**options: Any) -> DataFrame:
        return (
            session.read.format("leaderless")
            .option("url", f"sqlite:///{path}")
            .options(**options)
            .load()
        )

    return load


@pytest.fixture(scope="module")
def every(session: SparkSession, table: Callable[..., DataFrame]) -> tuple[list[Row], DataFrame]:
    """All records of the log, and a frame of them that does not come from the log."""
    rows = table().orderBy("key", "offset").collect()
    return rows, session.createDataFrame(rows, table().schema)


def values_of(log: LogSync, key: str, end: int) -> list[Any]:
    values: list[Any] = []
    while len(values) < end:
        values += [each.value for each in log.read(key, len(values))]
    return values


def test_a_table_has_every_record(every: tuple[list[Row], DataFrame]) -> None:
    rows, _ = every
    slots = [(row.slot, row.seq) for row in rows if row.key != "other"]
    assert len(rows) == 4 * BATCHES + 2
    assert all(slot == seq for slot, seq in slots)
    values = [json.loads(row.value) for row in rows if row.key != "other"]
    assert sorted(values) == [[slot, place] for slot in range(BATCHES) for place in range(4)]
    binary, large = rows[-2:]
    assert (binary.value, bytes(binary.bytes), binary.offset) == (None, b"\xff", 0)
    assert (json.loads(large.value), large.bytes, large.offset) == ("x" * 20_000, None, 1)
    assert all(row.appended_at for row in rows if row.slot < BATCHES - 1)


CONDITIONS: list[tuple[str, Callable[[Row], bool]]] = [
    ("true", lambda row: True),
    ("key = 'k1' and offset >= 5", lambda row: row.key == "k1" and row.offset >= 5),
    ("slot > 17 and value like '[19%'", lambda row: row.slot == 19),
    ("key in ('k0', 'other')", lambda row: row.key in ("k0", "other")),
    ("true", lambda row: True),
]


@pytest.mark.parametrize("by_files", [False, True], ids=["source", "read_log"])
def test_one_frame_answers_each_question_as_if_it_was_the_first(
    session: SparkSession,
    path: Path,
    every: tuple[list[Row], DataFrame],
    by_files: bool,
) -> None:
    """Whatever was asked of the frame before, and with whatever it is combined."""
    url = f"sqlite:///{path}"
    session.conf.set(PUSHDOWN, "true")
    try:
        frame = read_log(session, url) if by_files else session.read.format("leaderless").load(url)
        for condition, holds in CONDITIONS:
            assert frame.where(condition).count() == sum(map(holds, every[0])), condition
        assert sorted(map(str, both(frame).collect())) == sorted(map(str, both(every[1]).collect()))
        assert frame.count() == len(every[0])
    finally:
        session.conf.unset(PUSHDOWN)


def both(frame: DataFrame) -> DataFrame:
    """A frame with itself, in one query: filtered in two ways, and joined."""
    some, others = frame.where("key = 'k1'"), frame.where("key = 'k0' and offset < 3")
    joined = frame.join(others.select("slot"), "slot").select("key", "offset", "slot")
    return some.union(others).union(frame).select("key", "offset", "slot").union(joined)


TWO_FILTERS = """
from pyspark.sql.datasource import DataSource, DataSourceReader


class Reader(DataSourceReader):
    wanted = None

    def pushFilters(self, filters):
        self.wanted = next((each.value for each in filters if hasattr(each, "value")), None)
        return [each for each in filters if not hasattr(each, "value")]

    def read(self, partition):
        return iter([(key,) for key in ("eu", "us") if self.wanted in (None, key)])


class Two(DataSource):
    def schema(self):
        return "key string"

    def reader(self, schema):
        return Reader()


spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
spark.dataSource.register(Two)
two = spark.read.format("Two").load()
counts = two.count(), two.where("key = 'eu'").count(), two.count()
"""  # a source that takes filters, in a program of its own


def test_spark_still_keeps_the_filters_of_a_frame(session: SparkSession) -> None:
    """If this fails, Spark has mended it, and the source may take filters again."""
    names: dict[str, Any] = {"spark": session, "__name__": "__main__"}
    try:
        exec(TWO_FILTERS, names)
    finally:
        session.conf.unset(PUSHDOWN)
    assert names["counts"] == (2, 1, 1)  # the last must be 2


def test_options_choose_keys_version_and_columns(
    session: SparkSession, path: Path, table: Callable[..., DataFrame]
) -> None:
    assert {row.key for row in table(keys="k0,other").select("key").collect()} == {"k0", "other"}
    for found in (
        table(keys="k1,other", startOffset=1, endOffset=5),
        read_log(session, f"sqlite:///{path}", keys="k1,other", startOffset=1, endOffset=5),
    ):
        places = sorted((row.key, row.offset) for row in found.collect())
        assert places == [*(("k1", offset) for offset in range(1, 5)), ("other", 1)]
    assert table(asOfVersion=7).count() == 28
    reader = session.read.format("leaderless").schema("offset long, key string")
    narrow = reader.load(f"sqlite:///{path}")
    assert narrow.columns == ["offset", "key"]
    [highest] = narrow.where("key = 'k2'").agg(F.max("offset")).collect()
    assert highest[0] == 27


def test_a_log_read_by_sparks_own_reader_is_the_same(
    session: SparkSession, path: Path, every: tuple[list[Row], DataFrame]
) -> None:
    url = f"sqlite:///{path}"
    found = read_log(session, url)
    assert found.schema == every[1].schema
    assert sorted(map(str, found.collect())) == sorted(map(str, every[0]))
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "parquet" in plan
    assert "leaderless" in plan
    condition = "key in ('k1', 'other') and offset > 2"
    wanted = every[1].where(condition).select("offset", "value").collect()
    assert sorted(found.where(condition).select("offset", "value").collect()) == sorted(wanted)
    assert {row.key for row in read_log(session, url, keys="k0,other").collect()} == {"k0", "other"}
    assert read_log(session, url, asofversion=7).count() == 28


@pytest.mark.slow
def test_a_frame_of_a_log_keeps_its_version_while_the_log_grows_and_is_compacted(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "key=1 [a]"  # no pattern, and no column of a partition, to Spark's reader
    folder.mkdir()
    url = f"sqlite:///{folder / 'log.db'}"
    anyio.run(fill, folder / "log.db", 0, 10)
    frame = read_log(session, url, secretKey=SECRET)
    first = sorted(map(str, frame.collect()))
    anyio.run(fill, folder / "log.db", 10, 40)
    assert sorted(map(str, frame.drop("appended_at").collect())) == sorted(
        map(str, read_log(session, url, asOfVersion=12).drop("appended_at").collect())
    )
    assert len(first) == frame.count() == 42
    assert read_log(session, url).count() == 162
    assert SECRET not in frame._jdf.queryExecution().toString()
    whole = read_log(session, url)
    assert "Parquet" in whole._jdf.queryExecution().toString()
    for each in folder.rglob("*.parquet"):
        each.unlink()
    session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Py4JJavaError, match="FILE_NOT_EXIST"):
            whole.count()
    finally:
        session.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_a_frame_is_written_once_under_its_name(session: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    value = F.struct("id", F.lit("é").alias("text"))
    frame = session.range(1000).select(
        F.format_string("k%d", F.col("id") % 7).alias("key"), value.alias("value")
    )
    for partitions in (2, 3):  # repeated, and spread in another way
        frame.repartition(partitions).write.format("leaderless").mode("append").option(
            "name", "nightly"
        ).save(url)
    frame.limit(1).write.format("leaderless").mode("append").save(url)
    with open_log_sync(url, create=False) as log:
        found = [value for key, end in log.keys().items() for value in values_of(log, key, end)]
        assert anyio.run(SqliteStore(tmp_path / "log.db").list_objects, "sink") == []
    wanted = [{"id": number, "text": "é"} for number in [*range(1000), 0]]
    assert sorted(found, key=lambda each: each["id"]) == sorted(wanted, key=lambda each: each["id"])


def lag_of(progress: Any) -> int:
    """How many batches of the log a stream has not read, by its progress."""
    [source] = progress["sources"]
    latest, end = (json.loads(source[name])["slot"] for name in ("latestOffset", "endOffset"))
    return int(latest - end)


@pytest.mark.slow
def test_a_stream_copies_each_record_once_over_restarts(
    session: SparkSession, tmp_path: Path
) -> None:
    """Two runs of one query, from its checkpoint; the log grows and is compacted between them."""
    path, url = tmp_path / "log.db", f"sqlite:///{tmp_path / 'log.db'}"
    plans: list[str] = []
    for first in (0, 10):
        anyio.run(fill, path, first, first + 10)
        source = session.readStream.format("leaderless").option("url", url)
        records = source.options(maxRecordsPerBatch=17, secretKey=SECRET).load()
        copied = records.where("key != 'other'").selectExpr("key", "struct(offset, value) as value")
        sink = copied.writeStream.format("leaderless").option("url", url).option("topic", "copy")
        sink = sink.option("secretKey", SECRET).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination()
        plans += [query._jsq.explainInternal(True), str(query.recentProgress)]
        assert all(0 < progress["numInputRows"] <= 19 for progress in query.recentProgress)
        lags = [lag_of(progress) for progress in query.recentProgress]
        assert lags == sorted(lags, reverse=True)
        assert lags[0] > lags[-1] == 0
    with open_log_sync(url, create=False) as log, open_log_sync(url, "copy", create=False) as copy:
        for key, end in copy.keys().items():
            values = values_of(copy, key, end)
            assert [value["offset"] for value in values] == [*range(log.keys()[key])]
            assert [json.loads(value["value"]) for value in values] == values_of(log, key, end)
        assert sum(copy.keys().values()) == 80
    assert len(plans) == 4
    assert not any(SECRET in plan for plan in plans)


def test_credentials_are_in_no_plan(table: Callable[..., DataFrame]) -> None:
    frame = table(secretKey=SECRET, accessKey=SECRET)
    plan = frame.where("key = 'k1'")._jdf.queryExecution().toString()
    assert "leaderless" in plan
    assert SECRET not in plan
    assert frame.count() > 0


@pytest.mark.parametrize(
    ("option", "meant"),
    [("startingOffsets", "start"), ("maxFilesPerTrigger", "maxRecordsPerBatch")],
)
def test_an_option_of_another_stream_is_told_with_the_name_that_is_meant(
    session: SparkSession, path: Path, option: str, meant: str
) -> None:
    stream = session.readStream.format("leaderless").option(option, "1")
    with pytest.raises(PySparkException, match=f"'{option.lower()}' is no option.*'{meant}' is"):
        stream.load(f"sqlite:///{path}")


def test_an_option_that_is_none_is_told(session: SparkSession, path: Path) -> None:
    with pytest.raises(Unfit, match="'maxRecordsPerBatch' is no option here"):
        read_log(session, f"sqlite:///{path}", maxRecordsPerBatch=3)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"asOfVersion": "99"}, "no version 99"),
        ({"asOfVersion": "x"}, "a number from 0 up"),
        ({"topic": "none"}, "there is no log"),
        ({"startingOffsets": "earliest"}, "'startingoffsets' is no option here"),
        ({"maxRecordsPerBatch": 9}, "'maxrecordsperbatch' is no option here"),
        ({"kyes": "k1"}, "'kyes' is no option here: 'keys' is meant"),
    ],
)
def test_a_wrong_option_is_told(path: Path, options: dict[str, Any], text: str) -> None:
    # Spark does not ask the source for its columns where a user gives some.
    source = LeaderlessDataSource(CaseInsensitiveDict(options | {"path": f"sqlite:///{path}"}))
    with pytest.raises(LogError, match=text):
        source.reader(StructType()).partitions()


def test_names_of_columns_have_any_case_and_none_counts(session: SparkSession, path: Path) -> None:
    def load(schema: Any) -> DataFrame:
        return session.read.format("leaderless").schema(schema).load(f"sqlite:///{path}")

    found = load("KEY string not null, Slot long").where("key = 'other'").collect()
    assert [row.KEY for row in found] == ["other", "other"]
    assert load(StructType()).count() == 4 * BATCHES + 2
    with pytest.raises(PySparkException, match="no column Slot int; it has key string"):
        load("Slot int").count()


def test_a_table_of_the_catalogue_is_refused_and_a_view_is_read(
    session: SparkSession, path: Path
) -> None:
    """Spark reads a table without the options that it was created with."""
    source = f"USING leaderless OPTIONS (url 'sqlite:///{path}')"
    with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
        session.sql(f"CREATE TABLE log_table {source}")
    session.sql(f"CREATE TEMPORARY VIEW log_view {source}")
    session.sql(f"CREATE TABLE log_columns (key string) {source}")  # it asks the source nothing
    try:
        assert session.table("log_view").where("key = 'other'").count() == 2
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
            session.table("log_columns").count()
    finally:
        session.sql("DROP TABLE log_columns")
        session.catalog.dropTempView("log_view")


def test_what_a_log_cannot_take_is_told(session: SparkSession, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'log.db'}"
    frame = session.createDataFrame([("k", "{")], "key string, value string")
    huge = session.createDataFrame([("k", '{"a": 18446744073709551616}')], frame.schema)
    for written, mode, text in [
        (frame, "append", "values=text"),
        (huge, "append", "beyond 64 bits"),
        (frame, "overwrite", "not overwritten"),
        (frame.withColumn("more", F.lit(1)), "append", "takes the columns"),
    ]:
        with pytest.raises(PySparkException, match=text):
            written.write.format("leaderless").mode(mode).save(url)


async def fill_as(role: StoreOptions) -> None:
    """A log at `roles.URL` of 8 records, in files, in segments, one as an object of its own."""
    async with small_log(open_store(roles.URL, role), timeout_s=5) as log:
        for number in range(6):
            await log.append("eu", number)
        await log.compact()
        await log.append_many("eu", [6, "x" * 20_000])


def test_a_key_that_may_only_read_feeds_spark(session: SparkSession, tmp_path: Path) -> None:
    """With the reader's policy of docs/log/permissions.md: a frame, the fast way, and a stream."""
    with roles.roles() as allowed:
        anyio.run(fill_as, allowed["operator"])
        options: dict[str, Any] = spark_options(allowed["reader"])
        source = session.read.format("leaderless").options(**options)
        for frame in (source.load(roles.URL), read_log(session, roles.URL, **options)):
            assert sorted(row.offset for row in frame.collect()) == [*range(8)]
        stream = session.readStream.format("leaderless").options(**options).load(roles.URL)
        copied = stream.select("offset").writeStream.format("memory").queryName("copied")
        copied.option("checkpointLocation", str(tmp_path)).trigger(
            availableNow=True
        ).start().awaitTermination()
        assert sorted(row.offset for row in session.table("copied").collect()) == [*range(8)]


def programs_of(page: str) -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / "log" / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_programs_of_the_page_run_as_printed(session: SparkSession, tmp_path: Path) -> None:
    names: dict[str, Any] = {"spark": session, "checkpoint": str(tmp_path / "checkpoint")}
    programs = programs_of("table-in-spark.md")
    for program in programs:
        exec(program.replace("s3://my-bucket/orders", f"sqlite:///{tmp_path / 'log.db'}"), names)
    assert len(programs) == 5
    assert (names["latest"], names["end"]) == (1, 1)
    assert [tuple(row) for row in names["late"].collect()] == [(0, "7")]
    assert names["table"].count() == 2  # it was filtered before
    assert names["before"].count() == len(names["newest"]) == 2
    with open_log_sync(names["url"], "items", create=False) as log:
        assert [each.value for each in log.read("us")] == [{"offset": 0, "item": "9"}]
