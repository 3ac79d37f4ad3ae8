"""Medians, spread, and which aims they meet."""

from io import StringIO

from rich.console import Console
from rich.markdown import Markdown

from performance import strategies
from performance.configurations import CONFIGURATIONS, Bound, Configuration, OnRealTool
from performance.sweep_records import Summary, summarise, verdict_words

AIMS = (
    Bound("server_messages_per_op", "at most", 1.0),
    Bound("throughput_ops_per_s", "above", 1.0, ("strategy", "cas")),
    Bound("send_p99_ms", "at most", 3.0, ("configuration", "calm")),
    Bound("strict_valid", "at least", 1.0),
)
ROUGH = Configuration("rough", "Rough seas", "nobody sailed here", AIMS)


def record(case, strategy, error=None, anomalies=(), **figures):
    told = {"error": error, "anomalies": anomalies, "figures": figures}
    return {"case": case, "strategy": strategy} | told


def outcomes(*records):
    return [verdict.met for verdict in strategies.judge(ROUGH, summarise(records))]


def test_a_figure_is_its_median_with_lowest_and_highest():
    records = [record("a", "cas", send_p50_ms=value) for value in (9.0, 1.0, 2.0)]
    assert summarise(records) == {("a", "cas"): {"send_p50_ms": Summary(2.0, 1.0, 9.0)}}


def test_figures_that_a_run_lacks_do_not_count():
    records = [record("a", "cas", worst_lag_s=None), record("a", "cas", worst_lag_s=3.0)]
    assert summarise(records)["a", "cas"]["worst_lag_s"].middle == 3.0


def test_one_invalid_run_and_one_lost_operation_show_whatever_the_others_did():
    records = [record("a", "cas", valid=1.0, ok_fraction=1.0) for _ in range(4)]
    records.append(record("a", "cas", valid=0.0, ok_fraction=0.9))
    figures = summarise(records)["a", "cas"]
    assert (figures["valid"].middle, figures["ok_fraction"].middle) == (0.0, 0.9)


def test_a_run_that_left_nothing_is_invalid():
    records = [record("a", "cas", valid=1.0), record("a", "cas")]
    figures = summarise(records)["a", "cas"]
    assert verdict_words(figures, "valid") == "**invalid**"


def test_aims_absolute_against_a_strategy_and_against_a_configuration():
    calm = record("calm", "leaderless", send_p99_ms=10.0)
    cas = record("rough", "cas", throughput_ops_per_s=100.0)
    good = {"server_messages_per_op": 1.0, "throughput_ops_per_s": 101.0}
    good |= {"send_p99_ms": 30.0, "strict_valid": 1.0}
    bad = {"server_messages_per_op": 1.01, "throughput_ops_per_s": 100.0}
    bad |= {"send_p99_ms": 30.1, "strict_valid": 0.0}
    assert outcomes(calm, cas, record("rough", "leaderless", **good)) == [True] * 4
    assert outcomes(calm, cas, record("rough", "leaderless", **bad)) == [False] * 4


def test_what_was_not_measured_is_neither_met_nor_missed():
    assert outcomes() == [None] * 4
    alone = record("rough", "leaderless", throughput_ops_per_s=1.0, send_p99_ms=1.0)
    assert outcomes(alone) == [None] * 4


def test_the_table_in_markdown():
    measured = record(
        "rough", "leaderless", server_messages_per_op=0.5, strict_valid=1.0, valid=1.0
    )
    again = record("rough", "leaderless", server_messages_per_op=0.75)
    text = strategies.markdown([ROUGH], ["leaderless", "cas"], [measured, again])
    assert "## Rough seas" in text
    assert "|  | `leaderless` | `cas` |" in text
    assert "| server messages/op | 0.62 (0.50–0.75) | – |" in text
    assert "| verdict by `--strict` | valid | – |" in text
    assert "- Known: nobody sailed here." in text
    assert "- Aim: server messages/op at most 1. 0.62: **✔ met**" in text
    assert "- Aim: ops/s above that of `cas`. not measured: **?**" in text


def test_what_was_not_run_has_no_table():
    assert strategies.markdown(CONFIGURATIONS, ["cas"], []) == ""


def test_the_table_on_a_terminal_says_the_same():
    console = Console(width=100, record=True, file=StringIO())
    records = [record("rough", "leaderless", error="[gone]", server_messages_per_op=2.0)]
    console.print(Markdown(strategies.markdown([ROUGH], ["leaderless"], records)))
    text = console.export_text()
    assert "server messages/op" in text
    assert "server messages/op at most 1. 2.00: ✘ missed" in text
    assert "1 of 1 runs: [gone]" in text


def test_what_was_wrong_is_told_by_strategy_and_kind():
    records = [
        record("rough", "cas", anomalies=["unseen", "lost-write"]),
        record("rough", "cas"),
        record("rough", "leader", error="given up after 180 s"),
        record("rough", "cas", anomalies=["unseen", "lost-write"]),
        record("calm", "leaderless", anomalies=["G1a"]),
    ]
    assert strategies.troubles("rough", records) == [
        "`cas`, 2 of 3 runs: `unseen`, `lost-write`.",
        "`leader`, 1 of 1 runs: given up after 180 s.",
    ]


def test_figures_of_the_real_tool_stand_beside_and_those_far_away_are_named():
    real = (
        OnRealTool("send_p50_ms", 5.0, 6.0),
        OnRealTool.once("poll_p50_ms", 0.5),
        OnRealTool.once("poll_p99_ms", 11.0),
    )
    both = Configuration("both", "On both", "", (), real)
    measured = record("both", "leaderless", send_p50_ms=6.5, poll_p50_ms=0.3)
    text = strategies.markdown([both], ["leaderless"], [measured])
    assert "|  | `leaderless` | real tool (measured elsewhere) |" in text
    assert "| send p50, ms | 6.5 | 5.0 to 6.0 |" in text
    assert "| poll p99, ms | – | 11.0 |" in text
    assert strategies.unlike_the_real_tool(both, summarise([measured])) == [
        "poll p50, ms 0.3, there 0.5"
    ]
