"""The checker as a Spark job judges every history as the bench's checker does, and shows the same cases.

Where a result shows some of many cases, the choice may be another one of the same measure.

All histories go through one job: starting it is most of its cost, and judging many runs at once is what it
is for.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from analysis.checker import from_histories, judge, printed
from analysis.checker.cycles import merged
from analysis.checker.schemas import decode, encode
from analysis.errors import AnalysisError
from bench.commands.check import check as bench_check
from runs import edn
from runs.history import Op, edn_line, keywords, read_history
from tests.checker.history_language import history
from tests.checker.random_histories import broken_log, mutated_histories
from tests.stores import EXPECTED, STORES
from workloads.digraph import EMPTY_GRAPH
from workloads.interface import so_far
from workloads.kafka.checker import AT_THE_END, check, error_count
from workloads.kafka.checker.cases import CYCLES, SHOWN
from workloads.kafka.checker.compose import verdict
from workloads.kafka.checker.observed import scalar

pytestmark = [  # the first test waits for the job
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

REAL = sorted(STORES.glob("*/history.edn"))
RANDOM = 25
MALFORMED = """
0 send x=1@-1
0 send x=2@1
0 send y=1@0
1 poll x=1@0,2@1 y=1@0
2 poll y=1@-7
"""
Results = Mapping[str, Mapping[Any, Any]]


@pytest.fixture(scope="module")
def random_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Malformed offsets, and correct logs with anything done to them or with broken polls; always the same."""
    folder = tmp_path_factory.mktemp("random")
    found = [history(MALFORMED), *(broken_log(seed, 10 + seed) for seed in range(RANDOM))]

    @settings(
        max_examples=RANDOM,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutated_histories())
    def collect(ops: list[Op]) -> None:
        found.append(ops)

    collect()
    for number, ops in enumerate(found):
        with (folder / f"{number}.edn").open("w") as file:
            file.writelines(f"{edn_line(op)}\n" for op in ops)
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def results(spark: SparkSession, judged: list[Path], random_files: list[Path]) -> Results:
    """What Spark says of all histories."""
    return judge(spark, from_histories(spark, [*judged, *REAL, *random_files]))


def same(results: Results, file: Path) -> bool:
    """Whether Spark's result is that of the bench, but for the choice of witnesses."""
    return essence(results[str(file)]) == essence(check(read_history(file), {}))


def essence(result: Mapping[Any, Any]) -> dict[str, Any]:
    """A result with all cases of a type where it shows all; else with the measures of those it shows."""
    found: dict[str, Any] = {str(each): result[each] for each in result["error-types"]}
    for anomaly, error in found.items():
        if anomaly in SHOWN and isinstance(error["errs"], tuple):
            found[anomaly] = error["count"], sorted(map(SHOWN[anomaly].measure, error["errs"]))
            if error["count"] > SHOWN[anomaly].count or anomaly in CYCLES:
                continue
        if anomaly not in ("unseen", EMPTY_GRAPH):
            found[anomaly] = sorted(map(edn.dumps, error["errs"]))
    return {**result, **found, "worst-realtime-lag": worst_lag(result)}


def worst_lag(result: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The worst lag, and when and of whom it was; not the key, of which there may be several."""
    lag = result["worst-realtime-lag"]
    return (lag["lag"], lag["time"], lag["process"]) if lag["lag"] else (0.0,)


def test_agrees_with_the_judged_histories(results: Results, judged: list[Path]) -> None:
    assert len(EXPECTED) == 90
    for file, expected in zip(judged, EXPECTED, strict=True):
        result = results[str(file)]
        assert result["valid?"] == expected["valid"], file.name
        assert sorted(result["bad-error-types"]) == sorted(expected["bad"]), file.name
        counts = {each: error_count(each, result[each]) for each in result["error-types"]}
        assert counts == expected["errors"], file.name
        assert round(result["worst-realtime-lag"]["lag"] * 1e9) == expected["lag"], file.name
        assert same(results, file), file.name


def test_agrees_with_the_real_tools_stores(results: Results) -> None:
    assert len(REAL) == 5
    for file in REAL:
        real = edn.loads((file.with_name("results.edn")).read_text())["workload"]
        assert essence(edn.loads(edn.dumps(results[str(file)]))) == essence(real), file


def test_agrees_with_the_bench_on_random_histories(
    results: Results, random_files: list[Path]
) -> None:
    # A key that the SQL passes over wrongly would lack its cases here.
    assert [file.name for file in random_files if not same(results, file)] == []
    found = {str(each) for file in random_files for each in results[str(file)]["error-types"]}
    assert len(found) >= 6, "random histories that are not broken prove little"


def test_prints_what_maelstrom_check_prints(
    results: Results, judged: list[Path], random_files: list[Path]
) -> None:
    files = [judged[2], REAL[0], *random_files[:3]]
    chosen = {str(file): results[str(file)] for file in files}
    output = CliRunner().invoke(bench_check, ["--json", *chosen]).stdout
    lines = zip(printed.json_lines(chosen), output.splitlines(), strict=True)
    for ours, benchs in (map(json.loads, pair) for pair in lines):
        assert list(ours.pop("workload")) == list(benchs.pop("workload"))  # compared below
        assert ours == benchs
    output = CliRunner().invoke(bench_check, ["--edn", *chosen]).stdout
    ours = edn.loads_all("\n".join(printed.edn_texts(chosen)))
    for mine, theirs in zip(ours, edn.loads_all(output), strict=True):
        assert list(mine) == list(theirs)
        assert mine["file"] == theirs["file"]
        assert essence(mine["workload"]) == essence(theirs["workload"])


def test_tells_a_verdict_in_a_line_and_its_anomalies_below() -> None:
    error = keywords(count=2, errs=())
    told = {
        "x.edn": verdict({"G0": error, "duplicate": error}, {}, ()),
        "y.edn": verdict({}, {}, ()),
        "stopped early.edn": so_far(
            verdict({"unseen": keywords(unseen={"1": 2})}, {}, ()), AT_THE_END
        ),
    }
    assert [*printed.plain_lines(told)] == [
        "✘ INVALID x.edn",
        "    2 G0 (allowed)",
        "    2 duplicate",
        "✔ VALID y.edn",
        "? UNKNOWN stopped early.edn",
        "    2 unseen (so far)",
    ]


def test_writes_the_anomalies_it_found(
    spark: SparkSession, results: Results, judged: list[Path], tmp_path: Path
) -> None:
    name = str(judged[2])
    printed.write_anomalies(spark, {name: results[name]}, tmp_path / "found")
    rows = spark.read.parquet(str(tmp_path / "found")).collect()
    counts = {row.type: row["count"] for row in rows}
    assert {row.run_id for row in rows} == {name}
    assert counts == EXPECTED[2]["errors"]
    assert {row.type for row in rows if row.invalidating} == set(EXPECTED[2]["bad"])


def test_a_file_that_is_no_history_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    broken = tmp_path / "history.edn"
    broken.write_text("{:type :ok, :f :poll, :process 0, :value [[:poll {\n")
    with pytest.raises(AnalysisError, match=r"history\.edn is no history: .*never closed"):
        from_histories(spark, [broken])
    with pytest.raises(AnalysisError, match="is no file"):
        from_histories(spark, [tmp_path / "missing.edn"])


@pytest.mark.parametrize(
    "value", [7, "7", "", -1, 10**30, None, 1.0, True, [1], {"a": 1}, '"', "#x"]
)
def test_scalars_survive_as_text(value: Any) -> None:
    assert decode(encode(scalar(value))) == scalar(value)


def test_scalars_are_equal_as_text_only_if_they_are_equal() -> None:
    values = [1, 1.0, True, "1", "true", "1.0", [1], {"a": 1}, None, '{"a" 1}', "#1"]
    assert len({encode(scalar(value)) for value in values}) == len(values)


def test_stretches_are_unions_of_edges_that_overlap() -> None:
    edges = [(0, 5, 9), (0, 1, 3), (0, 3, 4), (1, 2, 8), (0, 8, 12)]
    assert merged(edges) == [(0, 1, 4), (0, 5, 12), (1, 2, 8)]
