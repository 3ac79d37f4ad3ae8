"""Ablations: the table of numbers, the rows, and what counts as an effect.

What a message and a lone operation cost, counted in Python calls: no load changes that.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from leaderless.core.pace import Pace
from leaderless.core.strategy import Options
from leaderless.store.memory import MemoryStore
from performance import ablation, calls
from performance.ablation import (
    HELD,
    ROW_OF,
    ROWS,
    Changes,
    RunResult,
    constants,
    default_of,
    effects,
    varied,
    varying,
)
from performance.calls import BOUNDS, calls_a_message, figures_of, passed, trail_of
from performance.harness import ROOT

SAME = {
    "send_p50_ms": 10.0, "send_p99_ms": 20.0, "send_max_ms": 30.0, "server_messages_per_op": 2.0,
    "throughput_ops_per_s": 100.0, "poll_p99_ms": 4.0, "failed": 0.0,
}  # fmt: skip
NUMBERS = {*ROW_OF, *HELD}
NUMBER = re.compile(r"^([A-Z_]+) = [0-9]", re.MULTILINE)
# Sizes of what is in memory, formats, how often a look is made that changes nothing; of slices in Parquet.
NO_CHOICE = {
    "ENTRY_BYTES",
    "INT_BYTES",
    "TIME_BYTES",
    "SEND_BYTES",
    "OFFSET_BYTES",
    "NAMES_BYTES",
    "CALL",
}
NO_CHOICE |= {"LOG_FORMAT", "MESSAGE_BYTES_MIN", "LOOK_S"}
NO_CHOICE |= {"COUNT_END", "DEPTH_MAX", "KEY_BYTES_MAX", "_WRITTEN_DEPTH"}  # of the format
NO_CHOICE |= {"SLICED_READS_AT_ONCE", "READERS_REMEMBERED", "SIZES_KEPT"}


def test_every_number_of_the_pace_has_another_value_or_a_test() -> None:
    assert {each.name for each in fields(Pace)} <= NUMBERS


@pytest.mark.parametrize("name", HELD)
def test_each_number_that_a_test_holds_is_there(name: str) -> None:
    assert default_of(name) >= 0


@pytest.mark.parametrize("name", ROW_OF)
def test_each_other_value_is_one_that_a_node_takes(name: str) -> None:
    changes = {name: ROW_OF[name][0]}
    assert changes[name] != default_of(name)
    if name.isupper():
        with constants(changes):
            assert default_of(name) == changes[name]
        assert changes[name] != default_of(name)
    else:
        assert varied(Options(), changes) != Options()


def test_every_constant_of_the_core_is_ablated_or_no_choice() -> None:
    """Those of strategies for comparison are not looked at."""
    found: set[str] = set()
    for file in (ROOT / "leaderless" / "core").rglob("*.py"):
        if file.name not in ("prefetch.py", "prefetch_sealed.py"):
            found |= set(NUMBER.findall(file.read_text(encoding="utf-8")))
    assert found - NUMBERS == NO_CHOICE


@pytest.mark.parametrize("name", HELD)
def test_what_is_said_to_be_held_by_a_test_is_in_its_file(name: str) -> None:
    """A function, or a heading of a transcript."""
    file, _, test = HELD[name].partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {test}(" in text or f"\n# {test}\n" in text


def test_every_number_has_a_row_that_there_is() -> None:
    assert {row for _, row in ROW_OF.values()} == {*ROWS}


@pytest.mark.parametrize("row", ROWS)
def test_the_nodes_of_a_run_have_its_changes(row: str) -> None:
    plain = ROWS[row].scenario(seed=3)
    scenario = varying(plain, {"rest_every": 3, "limits.lanes": 2})
    options = scenario.node_options
    assert (options.pace.rest_every, options.limits.lanes) == (3, 2)
    assert options.limits.memory_bytes == plain.node_options.limits.memory_bytes
    assert scenario.seed == 3


SMALL = SAME | {"send_p50_ms": 10.4, "throughput_ops_per_s": 104.0, "poll_p99_ms": 3.9}
SLOW = SAME | {"send_p50_ms": 11.0, "throughput_ops_per_s": 106.0}


def p99(*values: float) -> list[RunResult]:
    return [SAME | {"send_p99_ms": value} for value in values]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        # A move of 5 percent is an effect, and a smaller one is none.
        ([SAME, SAME], [SMALL, SMALL], []),
        ([SAME, SAME], [SLOW, SLOW], ["send p50, ms 10 → 11 (+10%)", "ops/s 100 → 106 (+6%)"]),
        # Nor is one within what chance does.
        ([SAME, SAME], p99(24, 60), []),
        ([SAME, SAME], p99(24, 24.2), ["send p99, ms 20 → 24.1 (+20%)"]),
        # Runs of the same seed are pairs.
        (p99(10, 30, 20, 90), p99(12, 36, 24, 108), ["send p99, ms 25 → 30 (+20%)"]),
        # A run that breaks an invariant is the only effect.
        ([SAME, SAME], ["broken: Progress", SAME], ["broken: Progress in 1 of 2 runs"]),
    ],
)
def test_an_effect_is_told(
    before: list[RunResult], after: list[RunResult], told: list[str]
) -> None:
    assert [each.told for each in effects(before, after)] == told


def test_more_operations_are_better() -> None:
    worse, better = effects([SAME, SAME], [SLOW, SLOW])
    assert worse.worse > 0 > better.worse


def test_an_invariant_that_is_broken_as_it_is_ends_the_comparison() -> None:
    with pytest.raises(ValueError, match="as it is: broken: Progress"):
        effects(["broken: Progress", SAME], [SAME, SAME])


def test_a_page_names_each_number_and_has_a_line_where_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def result_of(_row: str, changes: Changes, _seed: int) -> RunResult:
        return SAME | {"send_p50_ms": 20.0} if "rest_every" in changes else SAME

    monkeypatch.setattr(ablation, "result_of", result_of)
    monkeypatch.setattr(ablation, "ProcessPoolExecutor", ThreadPoolExecutor)
    ran = CliRunner().invoke(ablation.main, ["--seeds", "2", "--docs", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    page = (tmp_path / "ablation.md").read_text()
    line = "| `rest_every` | 8 | 2 | 5 nodes far cut | send p50, ms 10 → 20 (+100%) | – |"
    assert line in page
    assert "HELD" in page
    assert page.count("\n| `") == 1
    assert all(f"`{name}`" in page for name in ROW_OF)


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("strategy", "in_flight", "most"),
    [("cas", 64, 16), ("cas", 1, 19), ("leaderless", 64, 21), ("leaderless", 1, 55)],
)
def test_a_message_takes_few_calls(strategy: str, in_flight: int, most: int) -> None:
    calls, messages = calls_a_message(strategy, in_flight, 1_000)
    assert messages > 1_000
    assert calls < most


@pytest.mark.parametrize("name", BOUNDS)
def test_no_figure_of_a_trail_passes_its_bound(name: str) -> None:
    trail = trail_of(name)
    assert trail_of(name) == trail
    above = passed(name, figures_of(trail))
    assert not above, "\n".join(above)


def test_the_trail_of_an_append_ends_where_the_store_writes() -> None:
    *before, last = trail_of("append")
    assert last is MemoryStore.compare_and_set.__code__
    assert last not in before


def test_a_passed_bound_is_named_and_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = figures_of(trail_of("send, cas"))
    monkeypatch.setitem(BOUNDS, "send, cas", measured._replace(calls=measured.calls - 1))
    text = f"send, cas: {measured.calls} calls, and the bound is {measured.calls - 1}"
    assert passed("send, cas", measured) == [text]
    ran = CliRunner().invoke(calls.main, ["--requests", "100", "--trail"])
    assert ran.exit_code == 1
    assert text in ran.output
    assert "\nruntime/session.py: " in ran.output
