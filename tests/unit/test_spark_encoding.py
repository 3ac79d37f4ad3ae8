"""Rows of a frame as keys and values of a log (`leaderless.spark.encoding`), and the options; without Spark."""

import gc
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest

from leaderless.errors import Unfit
from leaderless.spark.encoding import SCHEMA, require_columns, rows_of, values_by_key
from leaderless.spark.settings import count_in, place_in
from leaderless.table.pieces import RARELY, rare_collections


def encoded(values: Any, kind: pa.DataType, *, plain_text: bool = False) -> list[Any]:
    keys = pa.array(["k"] * len(values))
    batch = pa.record_batch([keys, pa.array(values, kind)], names=["key", "value"])
    return values_by_key(rows_of(batch, plain_text=plain_text)).get("k", [])


TEXTS = ['{"a": [1.5, null]}', "1", ' "],[" ', None]
PARSED: list[Any] = [{"a": [1.5, None]}, 1, "],[", None]
DEEP = "[" * 200 + "]" * 200  # as deep as a value may be


@pytest.mark.parametrize(
    ("values", "kind", "plain_text", "expected"),
    [
        (["x", "é", None], pa.string(), True, ["x", "é", None]),  # of which Arrow makes JSON
        (TEXTS, pa.string(), True, TEXTS),
        (TEXTS, pa.string(), False, PARSED),
        (TEXTS, pa.large_string(), False, PARSED),
        ([DEEP, "1"], pa.string(), False, [orjson.loads(DEEP), 1]),
        ([b"\0\xff", b"", None], pa.binary(), False, [b"\0\xff", b"", None]),
        ([1, None], pa.int64(), False, [1, None]),
        ([[1.5], []], pa.list_(pa.float64()), False, [[1.5], []]),
        ([True], pa.bool_(), False, [True]),
    ],
)
def test_values_are_bytes_or_their_json_or_with_the_option_text(
    values: list[Any], kind: pa.DataType, plain_text: bool, expected: list[Any]
) -> None:
    assert encoded(values, kind, plain_text=plain_text) == expected


def test_a_struct_is_its_json() -> None:
    kind = pa.struct(
        {
            "id": pa.int64(),
            "on": pa.date32(),
            "at": pa.timestamp("us", tz="UTC"),
            "price": pa.decimal128(10, 2),
            "raw": pa.binary(),
            "tags": pa.map_(pa.string(), pa.list_(pa.int32())),
        }
    )
    row = {
        "id": 2**62,
        "on": date(2026, 1, 2),
        "at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
        "price": Decimal("1.10"),
        "raw": b"\xff",
        "tags": [("x", [1, 2])],
    }
    nothing = dict.fromkeys(row) | {"tags": []}
    assert encoded([row, nothing, None], kind) == [
        {
            "id": 2**62,
            "on": "2026-01-02",
            "at": "2026-01-02T03:04:05.000006+00:00",
            "price": "1.10",
            "raw": "/w==",
            "tags": {"x": [1, 2]},
        },
        dict.fromkeys(row) | {"tags": {}},
        None,
    ]


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        (["{"], pa.string(), r"'k'.*values=text"),
        (["1,2", "[3", "4]"], pa.string(), r"'k'.*no JSON"),  # together a list of three
        (["1", "", "2"], pa.string(), r"'k'.*no JSON"),
        (["1", "[" * 201 + "]" * 201], pa.string(), r"'k'.*200 levels"),
        ([float("nan")], pa.float64(), "'k'.*no number"),
        ([{"x": float("inf")}], pa.struct({"x": pa.float64()}), "'k'.*no number"),
    ],
)
def test_what_is_no_json_is_refused(values: list[Any], kind: pa.DataType, text: str) -> None:
    with pytest.raises(Unfit, match=text):
        encoded(values, kind)


def test_a_row_without_a_key_is_refused() -> None:
    batch = pa.record_batch(
        [pa.array([None], pa.string()), pa.array(["1"])], names=["key", "value"]
    )
    with pytest.raises(Unfit, match="no key"):
        rows_of(batch, plain_text=False)


@pytest.mark.parametrize(
    "types",
    [{"key": "bigint", "value": "string"}, {"key": "string"}, {"key": "string", "v": "string"}],
)
def test_a_frame_has_a_key_and_a_value(types: dict[str, str]) -> None:
    require_columns(["value", "key"], {"key": "string", "value": "binary"})
    with pytest.raises(Unfit, match="takes the columns"):
        require_columns([*types], types)


def test_a_place_comes_from_options_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"url": "s3://b/l", "topic": "t", "accessKey": "hush", "secretKey": "hush"}
    place = place_in(options)
    assert (place.url, place.topic, place.access.secret_key) == ("s3://b/l", "t", "hush")
    assert "hush" not in repr(place)
    assert place_in({"path": "memory:x"}).url == "memory:x"
    monkeypatch.setenv("LEADERLESS_STORE", "memory:y")
    assert place_in({}).url == "memory:y"
    monkeypatch.delenv("LEADERLESS_STORE")
    with pytest.raises(Unfit, match="which log"):
        place_in({})


def test_a_count_is_a_number() -> None:
    assert count_in({}, "n") is None
    assert count_in({"n": "12"}, "n") == 12
    with pytest.raises(Unfit, match="a number from 0 up"):
        count_in({"n": "-1"}, "n")


LIBRARY = """
import sys, leaderless, leaderless.cli, leaderless.api.log, leaderless.spark, leaderless.spark.epochs
print('pyspark' in sys.modules)
"""
CLIENT = """
import sys
sys.modules |= dict.fromkeys(["py4j", "pyspark.core", "pyspark.sql.classic"])  # pyspark-client has none
from leaderless.spark import LeaderlessDataSource, read_log
print(LeaderlessDataSource({}).schema().names[0], read_log.__name__)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "said"), [(LIBRARY, "False"), (CLIENT, "key read_log")], ids=["library", "client"]
)
def test_the_library_does_not_import_spark_and_the_source_no_java(program: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == said


def test_collections_are_rare_within_the_block_alone() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == RARELY
    with pytest.raises(Unfit), rare_collections():
        raise Unfit
    assert gc.get_threshold() == before != RARELY


def test_blocks_have_the_values_of_rows_by_key_in_their_order() -> None:
    values: list[Any] = ["é", b"\xff\x00", {"a": [1, None]}, b"[1]", 7]
    texts = [each if isinstance(each, bytes) else orjson.dumps(each) for each in values]
    are_json = [not isinstance(each, bytes) for each in values]
    some = pa.table([["kéy", "kéy", "b", "b", "kéy"], texts, are_json], schema=SCHEMA)
    found = values_by_key(pa.concat_tables([some, some.slice(0, 1)]))
    assert found == {"kéy": [*values[:2], 7, "é"], "b": values[2:4]}
    assert values_by_key(SCHEMA.empty_table()) == {}
