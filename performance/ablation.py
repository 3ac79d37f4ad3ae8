"""Find out what each number of the policy buys: docs/performance/ablation.md.

    python -m performance.ablation [--fields rest_every,hedge_s_min] [--rows kills] [--docs docs/performance]

Each number of the node gets another value, mostly as if its mechanism were not there, in the row that shows it,
on the virtual clock. Runs of the same seed are pairs. `--rows`: other rows than the number's own.

A number has the name of its field in `Pace`; one of `Limits` or `Options` stands behind `limits.` or
`options.`. A constant of the core has its own name, in capitals.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from importlib import import_module
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, NamedTuple
from unittest.mock import patch

import click

from bench.flags import names_of
from leaderless.core.pace import Pace
from leaderless.core.strategy import Options
from performance.age import line
from performance.harness import A_PATH, command_lines, program, show_table, write_page
from performance.virtual import PARTS, VirtualRun, measure
from runs.figures import number_of
from simulation.oracle import Violation
from simulation.scenario import Scenario

Changes = Mapping[str, float]  # name of a number -> its value
RunResult = Mapping[str, float | None] | str  # figures of a run, or what went wrong, in words

NEVER = 1e9  # longer than any run, more than any count
SHORT_S = Pace().error_pause_s
_UNIT = "tests/unit/test_"
_TOLD = "tests/datadriven/"
# Each number, another value of it, and the row that shows what the default buys.
ROW_OF: Mapping[str, tuple[float, str]] = {
    "message_worth_s": (0.0, "2 nodes"),
    "linger_s_max": (0.0, "2 nodes"),
    "hedge_s_min": (0.3, "kills"),
    "rest_every": (2, "5 nodes far cut"),
    "store_timeout_s": (0.25, "store refuses all"),
    "lost_deviations": (0.001, "far store"),
    "error_pause_s": (0.1, "store refuses some"),
    "error_pause_max_s": (SHORT_S, "store refuses all"),
    "store_attempts": (1, "far store"),
    "error_patience_s": (SHORT_S, "cas refused"),
    "limits.lanes": (1, "5 nodes"),
    "limits.poll_messages": (1, "2 nodes"),
    "options.freshness_s": (0.0, "2 nodes"),
    "options.combine": (False, "16 nodes"),
    "MEMORY_S": (0.1, "5 nodes far cut"),
    "CONFLICT_ROUND_TRIPS": (0, "5 nodes cut"),
    "READ_AHEAD_CALLS": (1, "5 nodes cut"),
    "REST_EVERY_CONTENDED": (8, "5 nodes cut"),
    "IN_STEP": (inf, "5 nodes far cut"),
    "READS_AT_ONCE": (1, "little memory"),
    "PUSH_PERIOD_S": (0.0, "leader"),
}
# What no row shows, because it bounds a size or ends what would go on for ever: the test that shows it.
HELD: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("hedge_s_max", "probe_s_max", "gathers", "greeting_s"),
            *("ATTEMPTS_S", "ANSWERS_S", "COMMITTERS_MAX", "PEERS_ASKED"),
        ),
        f"{_TOLD}estimates/policy.txt::A crowd of programs",
    ),
    **dict.fromkeys(
        ("turn_commits", "SATURATED", "RIVALS", "CROWD_TURNS", "CONTENDERS"),
        "tests/simulation/test_turns.py"
        "::test_a_crowd_needs_a_third_of_the_requests_at_nearly_the_same_rate",
    ),
    "GATHERS_MAX": f"{_UNIT}policy.py"
    "::test_a_commit_waits_while_the_peers_of_the_last_one_come_back_and_no_longer",
    "limits.ahead_bytes": f"{_UNIT}reading.py::test_a_reader_in_order_fetches_each_byte_once_and_ahead",
    "commit_every_s": f"{_UNIT}clouds.py::test_a_lone_process_is_never_refused_and_fills_each_commit",
    "limits.batch_bytes": f"{_UNIT}bounds.py::test_no_register_outgrows_its_bound",
    "limits.commits_idle_s": f"{_TOLD}leaderless_commits.txt"
    "::Deferred offsets outlive a log that is fenced for long, and a store that is silent",
    "limits.committed_keys": f"{_TOLD}leaderless_commits.txt"
    "::What is too much for the register moves into the log",
    "limits.memory_bytes": "tests/process/test_peak_memory.py::test_a_node_takes_no_more_than_it_may",
    "FAR_S": f"{_UNIT}timeouts.py::test_a_round_trip_above_the_store_timeout_is_no_obstacle",
    "ISOLATED_AFTER": f"{_TOLD}estimates/policy.txt"
    "::After unknown outcomes batches go alone until a row got through",
    "FAILURES_MAX": f"{_TOLD}processes/claims.txt::A task that fails too often is dead",
    "REVIVED_AFTER_LEASES": "tests/property/test_compaction.py::test_a_worker_may_crash_after_every_call",
    "SECTIONS": f"{_UNIT}headlog_memory.py::test_eviction_while_serving",
    "LATE_CALLS_REMEMBERED": f"{_UNIT}timeouts.py::test_a_round_trip_above_the_store_timeout_is_no_obstacle",
}


# ------------------------------------------------------------ rows


def _three(what: str, seconds: float, **changes: Any) -> VirtualRun:
    same: dict[str, Any] = {"nodes": 3, "clients": 2, "rate": 100.0, "latency_ms": 3}
    return VirtualRun("2-nodes", seconds, (), same | changes, what)


_SHORT: dict[str, Any] = {"seal_entries": 16, "segments_per_run": 2}
_REFUSES: dict[str, Any] = {"refusal_code": 11}  # temporarily unavailable
_FAR: dict[str, Any] = {"rate": 10.0, "latency_ms": 300, "store_timeout_ms": 300.0}
ROWS = {
    "2 nodes": PARTS["2-nodes"]._replace(time_limit_s=4.0),
    "16 nodes": PARTS["16-nodes"]._replace(time_limit_s=0.5),
    "5 nodes": VirtualRun("5-nodes-calm", 10.0, named="5 nodes, 2n, rate 1000, latency 10 ms"),
    "5 nodes cut": PARTS["5-nodes-partitions"]._replace(time_limit_s=16.0),
    "5 nodes far cut": PARTS["5-nodes-100ms-partitions"]._replace(time_limit_s=40.0),
    "store refuses some": _three("the store refuses a tenth of all requests", 20.0, **_REFUSES),
    "store refuses all": _three(
        "the store refuses everything for 3 of 10 s", 10.0, refusing_s=3.0, **_REFUSES
    ),
    "cas refused": _three(
        "strategy cas; the store refuses everything for 3 of 10 s",
        10.0,
        strategy="cas",
        refusing_s=3.0,
        **_REFUSES,
    ),
    "far store": VirtualRun(
        "2-nodes",
        40.0,
        (),
        _FAR,
        "2 nodes, 2n, rate 10, latency 300 ms; a call takes twice the store timeout",
    ),
    "kills": _three("kills; short runs", 20.0, nemesis=("kill",), nemesis_interval_s=2.0, **_SHORT),
    "little memory": _three("old messages are read back", 10.0, memory_kib=4, **_SHORT),
    "leader": VirtualRun(
        "2-nodes", 4.0, (), {"strategy": "leader"}, "2 nodes, 2n, strategy leader"
    ),
}


# ------------------------------------------------------------ runs with other numbers


def varied(options: Options, changes: Changes) -> Options:
    """These options with the numbers that `changes` has. Raises `ValueError` for a bad relation."""
    of: dict[str, dict[str, Any]] = {"pace": {}, "limits": {}, "options": {}}
    for name, value in changes.items():
        section, _, own = name.rpartition(".")
        if not name.isupper():
            of[section or "pace"][own] = value
    pace, limits = replace(options.pace, **of["pace"]), replace(options.limits, **of["limits"])
    return options._replace(pace=pace, limits=limits, **of["options"])


@contextmanager
def constants(changes: Changes) -> Iterator[None]:
    """Within it, constants of the core have the values that `changes` has."""
    with ExitStack() as stack:
        for name in filter(str.isupper, changes):
            for module in _with_constant(name):
                stack.enter_context(patch.object(module, name, changes[name]))
        yield


def _with_constant(name: str) -> list[Any]:
    """All modules of the core that have it, or import it."""
    for module in ("machine", "strategies.leaderless", "strategies.leader"):  # and what they import
        import_module(f"leaderless.core.{module}")
    core = [sys.modules[each] for each in [*sys.modules] if each.startswith("leaderless.core")]
    return [module for module in core if name in vars(module)]


def default_of(name: str) -> float:
    """The default of a number. Raises `IndexError` for a constant that the core does not have."""
    holder = _with_constant(name)[0] if name.isupper() else section_of(Options(), name)
    return float(getattr(holder, name.rpartition(".")[2]))


def section_of(options: Options, name: str) -> Any:
    """The part of the options that has this number."""
    return {"options": options, "limits": options.limits}.get(name.rpartition(".")[0], options.pace)


@dataclass(frozen=True)
class Varied(Scenario):
    """A scenario whose nodes have other numbers."""

    changes: Changes = field(default_factory=dict)

    @property
    def node_options(self) -> Options:
        """Replace the numbers that change in the options of each node."""
        return varied(super().node_options, self.changes)


def varying(scenario: Scenario, changes: Changes) -> Varied:
    """Copy a scenario, with other numbers for its nodes."""
    return Varied(
        **{each.name: getattr(scenario, each.name) for each in fields(Scenario)}, changes=changes
    )


# ------------------------------------------------------------ effects

NOTICED = log(1.05)  # what moves no figure by 5 % does not pay
ERRORS = 3  # so many standard errors are still chance
LEAST = 0.5  # a latency below 0.5 ms, and no failure at all, are no base of a ratio
# The figures by which a row is judged: 1 where less is better, -1 where more is.
JUDGED = {
    "server_messages_per_op": 1, "send_p50_ms": 1, "send_p99_ms": 1, "send_max_ms": 1,
    "poll_p99_ms": 1, "throughput_ops_per_s": -1, "failed": 1,
}  # fmt: skip
OTHERS = {"send_max_ms": "longest send, ms", "failed": "failed in 1000"}


class Effect(NamedTuple):
    """What a change does to a figure. `worse`: the logarithm of a ratio; above 0 the change is worse."""

    worse: float
    told: str


def result_of(row: str, changes: Changes, seed: int) -> RunResult:
    """The figures of a run of a row, or what it breaks."""
    try:
        with constants(changes):
            found = measure(varying(ROWS[row].scenario(seed=seed), changes))
    except Violation as violation:
        return f"broken: {violation.name}"
    except RecursionError:
        return "broken: RecursionError"
    return found | {"failed": 1000 * (1 - (found["ok_fraction"] or 0.0))}


def effects(before: Sequence[RunResult], after: Sequence[RunResult]) -> list[Effect]:
    """What moves by more than 5 % and more than chance does, the largest first; runs of a seed are pairs.

    Raises `ValueError` if the row breaks as it is.
    """
    if broken := [each for each in before if isinstance(each, str)]:
        raise ValueError(f"as it is: {broken[0]}")
    if broken := [each for each in after if isinstance(each, str)]:
        return [Effect(NEVER, f"{broken[0]} in {len(broken)} of {len(after)} runs")]
    found = []
    for figure, sign in JUDGED.items():
        old, new = ([float(each[figure] or 0.0) for each in runs] for runs in (before, after))  # type: ignore[index]
        pairs = [log(max(LEAST, b) / max(LEAST, a)) for a, b in zip(old, new, strict=True)]
        moved = fmean(pairs)
        if abs(moved) > NOTICED + ERRORS * stdev(pairs) / sqrt(len(pairs)):
            title = OTHERS[figure] if figure in OTHERS else number_of(figure).heading
            told = f"{title} {median(old):.3g} → {median(new):.3g} ({exp(moved) - 1:+.0%})"
            found.append(Effect(sign * moved, told))
    return sorted(found, key=lambda each: -abs(each.worse))


# ------------------------------------------------------------ the page

TITLES = ("number", "default", "other value", "row", "what it worsens", "what it betters")
ABOUT = f"""\
{{command}}

On the virtual clock, where a node takes 0.1 ms for a line and nothing else costs time.

Each number gets another value, mostly as if its mechanism were not there. The default buys the figure that then
worsens most, and costs the one that betters most: by 5 % more than {ERRORS} standard errors of
pairs of the same seed. Medians of {{seeds}} seeds; ratios are geometric means."""


def value_text(value: float) -> str:
    """Write a value for the page; what never comes is ∞."""
    return "∞" if value >= NEVER else f"{value:g}"


def table(names: Sequence[str], rows: Sequence[str], seeds: int) -> Iterator[list[str]]:
    """A line for each number and row."""
    with ProcessPoolExecutor() as pool:

        @cache
        def runs(row: str, name: str = "") -> list[RunResult]:
            changes = {name: ROW_OF[name][0]} if name else {}
            return [*pool.map(partial(result_of, row, changes), range(1, 1 + seeds))]

        for name, row in ((each, row) for each in names for row in rows or [ROW_OF[each][1]]):
            found = effects(runs(row), runs(row, name))
            sides = ([each.told for each in found if sign * each.worse > 0] for sign in (1, -1))
            values = (value_text(default_of(name)), value_text(ROW_OF[name][0]))
            yield [f"`{name}`", *values, row, *((*side, "–")[0] for side in sides)]


@program(__doc__)
@click.option(
    "--fields", type=names_of(tuple(ROW_OF)), default=",".join(ROW_OF), show_default=False
)
@click.option("--rows", type=names_of(tuple(ROWS)), default="")
@click.option("--seeds", type=click.IntRange(2), default=4)  # one pair has no spread
@click.option("--docs", type=A_PATH)
def main(
    *,
    fields: tuple[str, ...],
    rows: tuple[str, ...],
    seeds: int,
    docs: Path | None,
) -> None:
    lines = show_table(TITLES, table(fields, rows, seeds))
    if docs:
        command = (
            f".venv/bin/python -m performance.ablation --seeds {seeds} --docs docs/performance"
        )
        about = ABOUT.format(command=command_lines(command), seeds=seeds)
        what = [f"- {name}: {row.title}; {row.time_limit_s:g} s" for name, row in ROWS.items()]
        none = [each for each in lines if each.endswith("| – | – |")]
        sections = [
            [about],
            [each for each in lines if each not in none],
            [f"No effect in their rows: {', '.join(each.split()[1] for each in none)}."],
            [
                "Tests show what the other numbers are for: `HELD` in `performance/ablation.py` names them."
            ],
            [
                "The rows; those that name no nodes have 3 nodes, 2n, rate 100, latency 3 ms:",
                "",
                *what,
            ],
        ]
        write_page(
            docs / "ablation.md",
            "Which numbers of the policy pay",
            line(["leaderless/core"]),
            "\n\n".join(map("\n".join, sections)),
        )


if __name__ == "__main__":
    main()
