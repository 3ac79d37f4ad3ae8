"""What is planted is there, and nothing else is wrong."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.synthesise import ANOMALIES, Layout, Synthetic, synthesise, write
from analysis.synthesise.planting import KeyHistory, Send
from runs.history import completions, read_history
from tests.analysis.conftest import SYNTHETIC_LAYOUT as LAYOUT
from workloads.kafka.checker import check
from workloads.kafka.checker.compose import local_cases
from workloads.kafka.checker.logs import logs
from workloads.kafka.checker.observed import Facts

pytestmark = pytest.mark.timeout(900)  # the first test waits for the history


@pytest.mark.spark
@pytest.mark.slow
def test_a_history_in_which_nothing_is_planted_is_valid(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(synthesise(spark, LAYOUT, {}), tmp_path / "history.jsonl")
    history = read_history(tmp_path / "history.jsonl")
    assert len(history) >= 2 * LAYOUT.operations
    assert len(completions(history)) == len(history) // 2, "every process does one thing at a time"
    result = check(history, {})
    assert (result["valid?"], result["error-types"]) == (True, ())


@pytest.mark.spark
def test_what_is_planted_is_found_where_it_was_planted(broken: Synthetic, tmp_path: Path) -> None:
    write(broken, tmp_path / "history.edn")
    history = read_history(tmp_path / "history.edn")
    result = check(history, {})
    facts = Facts(history)
    found = set(_in_result(result))
    for anomaly, cases in local_cases(facts, logs(facts)).items():
        found |= {(anomaly, case["key"]) for case in cases}
    assert {each["type"] for each in broken.planted} == set(ANOMALIES)
    assert [each for each in broken.planted if (each["type"], each["key"]) not in found] == []


def _in_result(result: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Anomalies that the result alone tells, with their keys: what nobody saw, and cycles."""
    for key in result["unseen"]["unseen"]:
        yield "unseen", key
    for anomaly in ("G1c", "G1c-realtime"):
        for case in result[anomaly]["errs"]:
            yield from ((anomaly, step["key"]) for step in case["steps"] if "key" in step)


@pytest.mark.spark
@pytest.mark.slow
def test_the_same_seed_makes_the_same_history(spark: SparkSession, broken: Synthetic) -> None:
    again = synthesise(spark, LAYOUT, dict.fromkeys(ANOMALIES, 1))
    assert again.planted == broken.planted
    assert again.operations.exceptAll(broken.operations).isEmpty()
    other = synthesise(spark, Layout(8_000, 40, 5, seed=2), {})
    assert not other.operations.exceptAll(broken.operations).isEmpty()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sizes", "planted", "said"),
    [
        ((8_000, 40, 5), "lost-writes", "no anomaly lost-writes; there are lost-write"),
        ((500, 64, 5), "lost-write", "ask for more --operations"),
        ((100, 1, 2), "lost-write", "--processes"),
        ((0, 1, 5), "lost-write", "--operations and --keys"),
    ],
)
def test_what_cannot_be_made_is_refused(
    spark: SparkSession, sizes: tuple[int, int, int], planted: str, said: str
) -> None:
    with pytest.raises(AnalysisError, match=said):
        synthesise(spark, Layout(*sizes), {planted: 1})


@pytest.mark.parametrize("anomaly", ANOMALIES)
def test_every_anomaly_changes_its_key(anomaly: str) -> None:
    sends = [Send(number, number % 3, number) for number in range(64)]
    before, after = KeyHistory("k", sends), KeyHistory("k", sends)
    assert ANOMALIES[anomaly](after) is not False
    assert (before.runs, before.contents) != (after.runs, after.contents)
