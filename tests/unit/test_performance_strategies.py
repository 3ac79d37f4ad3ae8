"""Medians, spread, and which aims they meet."""

from typing import Any

from performance import strategies
from performance.configurations import CONFIGURATIONS, Bound, Configuration
from performance.sweep_records import found_in, summary, verdict_words
from runs.sweeps import Row, Summary

AIMS = (
    Bound("server_messages_per_op", "at most", 1.0),
    Bound("throughput_ops_per_s", "above", 1.0, ("strategy", "cas")),
    Bound("send_p99_ms", "at most", 3.0, ("configuration", "calm")),
    Bound("strict_valid", "at least", 1.0),
)
ROUGH = Configuration("rough", "Rough seas", "nobody sailed here", AIMS)


def record(
    case: str, strategy: str, verdict: Any = "valid", anomalies: Any = (), **figures: Any
) -> Row:
    cell = {"name": case, "strategy": strategy}
    return Row("", cell, verdict=verdict, exit_status=255, anomalies=[*anomalies], figures=figures)


def found(*records: Any) -> Any:
    return found_in(records, lambda cell: cell["name"])


def outcomes(*records: Any) -> Any:
    return [verdict.met for verdict in strategies.judge(ROUGH, found(*records))]


def test_a_figure_is_its_median_with_lowest_and_highest() -> None:
    records = [record("a", "cas", send_p50_ms=value) for value in (9.0, 1.0, 2.0)]
    cell = found(*records)["a", "cas"]
    assert summary(cell, "send_p50_ms") == Summary(2.0, 1.0, 9.0)
    assert summary(cell, "send_p99_ms") is None


def test_figures_that_a_run_lacks_do_not_count() -> None:
    records = [record("a", "cas", worst_lag_s=None), record("a", "cas", worst_lag_s=3.0)]
    assert summary(found(*records)["a", "cas"], "worst_lag_s") == Summary(3.0, 3.0, 3.0)


def test_one_invalid_run_and_one_lost_operation_show_whatever_the_others_did() -> None:
    records = [record("a", "cas", valid=1.0, ok_fraction=1.0) for _ in range(4)]
    records.append(record("a", "cas", valid=0.0, ok_fraction=0.9))
    cell = found(*records)["a", "cas"]
    shown = [summary(cell, name) for name in ("valid", "ok_fraction")]
    assert [each and each.middle for each in shown] == [0.0, 0.9]


def test_a_run_that_left_nothing_is_invalid() -> None:
    records = [record("a", "cas", valid=1.0), record("a", "cas")]
    assert verdict_words(found(*records)["a", "cas"], "valid") == "**invalid**"


def test_aims_absolute_against_a_strategy_and_against_a_configuration() -> None:
    calm = record("calm", "leaderless", send_p99_ms=10.0)
    cas = record("rough", "cas", throughput_ops_per_s=100.0)
    good = {"server_messages_per_op": 1.0, "throughput_ops_per_s": 101.0}
    good |= {"send_p99_ms": 30.0, "strict_valid": 1.0}
    bad = {"server_messages_per_op": 1.01, "throughput_ops_per_s": 100.0}
    bad |= {"send_p99_ms": 30.1, "strict_valid": 0.0}
    assert outcomes(calm, cas, record("rough", "leaderless", **good)) == [True] * 4
    assert outcomes(calm, cas, record("rough", "leaderless", **bad)) == [False] * 4


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert outcomes() == [None] * 4
    alone = record("rough", "leaderless", throughput_ops_per_s=1.0, send_p99_ms=1.0)
    assert outcomes(alone) == [None] * 4


def test_the_table_in_markdown() -> None:
    measured = record(
        "rough", "leaderless", server_messages_per_op=0.5, strict_valid=1.0, valid=1.0
    )
    again = record("rough", "leaderless", server_messages_per_op=0.75)
    text = strategies.markdown([ROUGH], ["leaderless", "cas"], found(measured, again))
    assert "## Rough seas" in text
    assert "|  | `leaderless` | `cas` |" in text
    assert "| server messages/op | 0.62 (0.50–0.75) | – |" in text
    assert "| verdict by `--strict` | valid | – |" in text
    assert "- Known: nobody sailed here." in text
    assert "- Aim: server messages/op at most 1. 0.62: **✔ met**" in text
    assert "- Aim: ops/s above that of `cas`. not measured: **?**" in text


def test_what_was_not_run_has_no_table() -> None:
    assert strategies.markdown(CONFIGURATIONS, ["cas"], found()) == ""


def test_what_was_wrong_is_told_by_strategy_and_kind() -> None:
    records = [
        record("rough", "cas", anomalies=["unseen", "lost-write"]),
        record("rough", "cas"),
        record("rough", "leader", "crashed"),
        record("rough", "cas", anomalies=["unseen", "lost-write"]),
        record("calm", "leaderless", anomalies=["G1a"]),
    ]
    assert [*strategies.troubles("rough", found(*records))] == [
        "`cas`, 2 of 3 runs: `unseen`, `lost-write`.",
        "`leader`, 1 of 1 runs: exit status 255.",
    ]


def test_figures_of_the_real_tool_stand_beside() -> None:
    real = {"send_p50_ms": "5 to 6", "poll_p99_ms": "11"}
    both = Configuration("both", "On both", "", (), real)
    measured = record("both", "leaderless", send_p50_ms=6.5)
    text = strategies.markdown([both], ["leaderless"], found(measured))
    assert "|  | `leaderless` | real tool (measured elsewhere) |" in text
    assert "| send p50, ms | 6.5 | 5 to 6 |" in text
    assert "| poll p99, ms | – | 11 |" in text


def test_an_aim_of_another_strategy_names_it() -> None:
    of_cas = Configuration("one", "One", "", (Bound("send_p50_ms", "at most", 3.0, of="cas"),))
    [verdict] = strategies.judge(of_cas, found(record("one", "cas", send_p50_ms=2.0)))
    assert verdict == ("send p50, ms of `cas` at most 3", "2.0", True)
