"""A lake of nodes that nobody here wrote: each notebook answers its question in sentences that are true.

`gossip.py` is valid; `flood.py` is quicker and invalid. `theirs.py` keeps a log with holes. `txn.py` met a
fault before any operation, `mute.py` acknowledged nothing.
"""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analysis.notebooks import answers, tables
from analysis.notebooks.tables import NAMES, Tables
from analysis.rows import BY_CAUSE, BY_TYPE
from analysis.schemas import struct, whole
from runs.traffic import CAUSES, OTHER

MS, S = 10**6, 10**9
REPETITIONS = 6
Rows = dict[str, list[dict[str, Any]]]


def add(lake: Rows, workload: str, program: str, faults: str = "none", valid: str = "true") -> Any:
    """A run without anything else in it; what adds rows of it to another table."""
    number = len(lake["runs"])
    of = {"run_id": f"run-{number:02}", "workload": workload, "program": program, "faults": faults}

    def more(table: str, **row: Any) -> None:
        lake[table].append(of | row)

    more("runs", valid=valid, node_count=3, concurrency=6, rate_hz=100.0)
    return more


def acknowledged(more: Any, f: str, latency_ns: int, fault: str = "calm", **row: Any) -> None:
    row = {"invoked_ns": 0, "completed_ns": latency_ns, "outcome": "ok"} | row
    more("operations", f=f, phase="main", fault=fault, latency_ns=latency_ns, process=0, **row)


def broadcasts(
    lake: Rows, program: str, ms: float, messages: float, recovery_ms: float | None
) -> None:
    for number in range(REPETITIONS):
        wrong = program == "flood.py" and number == 0
        more = add(lake, "broadcast", program, valid="false" if wrong else "true")
        acknowledged(more, "broadcast", round((ms + number / 10) * MS))
        acknowledged(more, "read", MS)
        more("figures", figure="broadcast_p50_ms", value=ms + number / 10)
        more("figures", figure="ok_fraction_main", value=1.0)
        for cause in CAUSES:
            value = messages if cause == OTHER else 0.0
            more("figures", figure=BY_CAUSE, of=cause, value=value)
        more("figures", figure=BY_TYPE, of="node-node gossip", value=messages * 0.75)
        more("figures", figure=BY_TYPE, of="node-node gossip_ok", value=messages * 0.25)
    stormy = add(lake, "broadcast", program, "partition")
    acknowledged(stormy, "broadcast", round(ms * MS), "partition")
    acknowledged(stormy, "broadcast", S, "partition", outcome="info")
    stormy(
        "faults",
        kind="partition",
        started_ns=0,
        ended_ns=S,
        watched_ms=1000.0,
        recovery_ms=recovery_ms,
    )


def nullable(name: str) -> StructType:
    """The columns of a table, each of which may be left out."""
    return struct(**{each.name: each.dataType for each in whole(name)})


@pytest.fixture
def strangers(spark: SparkSession) -> Tables:
    """The lake; `frame` marks what is invalid in it."""
    lake: Rows = {name: [] for name in NAMES}
    broadcasts(lake, "gossip.py", 10, 4, None)
    broadcasts(lake, "flood.py", 2, 8, 0.0)
    log = add(lake, "kafka", "theirs.py")
    acknowledged(log, "send", 2 * MS, completed_value_json='[["send","k",[0,1]]]')
    acknowledged(log, "send", 3 * MS, completed_value_json='[["send","k",[9,2]]]')
    acknowledged(log, "poll", 5 * MS, completed_value_json='[["poll",{"k":[[0,1],[9,2]]}]]')
    acknowledged(add(lake, "txn-list-append", "txn.py", "kill"), "txn", MS)
    acknowledged(add(lake, "echo", "mute.py"), "echo", S, outcome="info")
    frames = {
        name: spark.createDataFrame(
            pa.Table.from_pylist(rows, to_arrow_schema(nullable(name)))
        ).cache()
        for name, rows in lake.items()
    }
    return Tables(**frames, invalid=frozenset([("broadcast", "flood.py")]))


ANSWERS = {
    answers.latency: [
        "**broadcast: with `gossip.py` and no faults, half of the operations `broadcast` take at"
        " most 10.2 ms and 99 % at most 10.5 ms, and half of the operations `read` take at most"
        " 1 ms and 99 % at most 1 ms.** The median of `broadcast` (3 nodes, 6 clients, 100"
        " operations a second, runs of each: 6), quickest first: `gossip.py` 10.2 ms; not"
        " ranked: `flood.py` (invalid) 2.2 ms. Whether that is more than noise is for the"
        " notebook `programs`.",
        "**kafka: with `theirs.py` and no faults, half of the operations `send` take at most 2"
        " ms and 99 % at most 3 ms, and half of the operations `poll` take at most 5 ms and 99 %"
        " at most 5 ms.** This lake has no other program to compare (3 nodes, 6 clients, 100"
        " operations a second, runs of each: 1).",
        "**echo, txn-list-append: no operation was acknowledged in a run without faults.**",
    ],
    answers.messages: [
        "**broadcast: with `gossip.py` an operation costs 4.00 messages between servers, 75% of"
        " them of the type *node-node gossip*.** The others, not ranked: `flood.py` (invalid)"
        " 8.00.",
        "**echo, kafka, txn-list-append: no message of a run without faults was recorded.**",
    ],
    answers.faults: [
        "**broadcast: of the operations that met a fault, `gossip.py` acknowledged: partition"
        " 50.0%.** After 0 of 1 fault in 1 run latencies were back near calm before the next"
        " fault. Sooner, but not ranked: `flood.py` (invalid) after partition (at once, against"
        " not seen).",
        "**echo, kafka, txn-list-append: no operation met a fault.**",
    ],
    answers.programs: [
        "**broadcast: how `gossip.py` stands against each other program, as far as 6 runs of it"
        " can tell.** A difference is told in 1 of 1 comparison; of those told at most 5% are"
        " expected to be none (p is corrected by the procedure of Benjamini and Hochberg). *Same*"
        " means that none can be told. In brackets: against a program with an invalid run, which"
        " is not ranked.\n\n| | `flood.py` (invalid) |\n|---|---|\n| broadcast p50, ms | (worse) |\n|"
        " ok, of main | same |",
        "**echo, kafka, txn-list-append: there are no two programs without faults to compare.**",
    ],
}


@pytest.mark.slow
@pytest.mark.spark
def test_notebooks_open_with_sentences_that_are_true(strangers: Tables) -> None:
    for answer, sentences in ANSWERS.items():
        assert [each for each in answer(strangers) if isinstance(each, str)] == sentences
    kafka = strangers.where("faults = 'none' AND workload = 'kafka'")
    assert answers.prefetch(tables.order(kafka)) == (
        "**No message came to stand behind a reader, with `theirs.py`.** Holes alone do no harm:"
        " nothing is ever put into the 8 of `theirs.py`. This lake has no run of `prefetch`,"
        " which reserves offsets ahead."
    )
