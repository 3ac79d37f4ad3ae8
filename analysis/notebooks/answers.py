"""The answers that notebooks open with: for each workload sentences or a grid, and a picture.

They are computed from the frames shown below them. Programs are compared within a workload, under equal
conditions. One that has an invalid run there is marked, and never ranked first. What a lake does not hold is
said, not left out.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pandas as pd

from analysis.comparison import LESS, MORE, TOO_FEW
from analysis.notebooks import tables
from analysis.notebooks.tables import Tables
from analysis.rows import CALM
from runs.plots.groups import compare, latency_curves, messages_per_operation
from runs.plots.picture import Picture
from runs.plots.run import under_faults
from runs.plots.style import strategies as in_order

OWN = "leaderless"
NONE_CALM = "**No run without faults is in this lake, so there is no calm {} to tell.**"
_COLUMNS_MAX = 4  # of kinds of faults that have room beside each other
_STANDINGS = {"better": "**better**", "worse": "*worse*"}
Shown = Iterator[str | Picture]


@dataclass(frozen=True)
class Programs:
    """The programs of a workload: how many runs each has, and which of them have an invalid one."""

    runs: dict[str, int]
    invalid: frozenset[str] = frozenset()

    @property
    def baseline(self) -> str:
        """The project's own strategy, or else the program with most runs; a valid one if there is any."""
        ranked = sorted(self.runs, key=lambda name: (name != OWN, -self.runs[name], name))
        return min(ranked, key=self.invalid.__contains__)

    def named(self, name: str) -> str:
        """The program's name, marked if it has an invalid run."""
        return f"`{name}`" + " (invalid)" * (name in self.invalid)

    def ranked(self, values: dict[str, float]) -> list[str]:
        """Those with the lowest values first, and those with an invalid run last."""
        return sorted(values, key=lambda name: (name in self.invalid, values[name]))


def programs_of(runs: pd.DataFrame) -> dict[str, Programs]:
    """By workload, from `tables.runs`."""
    return {
        str(workload): Programs(
            {str(name): int(count) for name, count in rows.groupby("program").runs.sum().items()},
            frozenset(rows[rows.invalid > 0].program),
        )
        for workload, rows in runs.groupby("workload")
    }


def latency(lake: Tables) -> Shown:
    """What a client waits for, calm."""
    calm = lake.alike("faults = 'none'")
    quantiles, curves, runs = tables.latencies(calm), tables.curves(calm), tables.runs(calm)
    known = programs_of(tables.runs(lake))
    for workload, rows in _by_workload(quantiles):
        yield waited(workload, rows, _rows(runs, workload=workload), known[workload])
        yield latency_curves(_rows(curves, workload=workload), by="program")
    if quantiles.empty:
        yield NONE_CALM.format("latency")


def waited(workload: str, quantiles: pd.DataFrame, runs: pd.DataFrame, known: Programs) -> str:
    """Of `tables.latencies` and `tables.runs` of a workload, all under equal conditions."""
    own = _subject(quantiles, known)
    kinds = quantiles.groupby("f").operation_count.sum().sort_values(ascending=False).index
    kinds = sorted(kinds, key=lambda f: f != "send")  # what moves a log on comes first
    halves = [
        f"half of the operations `{row.f}` take at most {_ms(row.latency_ns_p50)}"
        f" and 99 % at most {_ms(row.latency_ns_p99)}"
        for f in kinds
        for row in _rows(quantiles, program=own, f=f).head(1).itertuples()
    ]
    medians = _rows(quantiles, f=kinds[0]).set_index("program").latency_ns_p50.to_dict()
    order = ", ".join(f"{known.named(name)} {_ms(medians[name])}" for name in known.ranked(medians))
    return (
        f"**{workload}: with {known.named(own)} and no faults, {', and '.join(halves)}.** The median of"
        f" `{kinds[0]}`{_under(runs)}, quickest first: {order}."
    )


def _under(runs: pd.DataFrame) -> str:
    """The conditions of these runs, as far as they are known."""
    units = {
        "node_count": "nodes",
        "concurrency": "clients",
        "rate_hz": "operations a second",
        "latency_ms": "ms a hop",
    }
    known = [
        f"{runs[name].iloc[0]:g} {unit}" for name, unit in units.items() if runs[name].notna().all()
    ]
    return f" ({', '.join(known)})" if known else ""


def messages(lake: Tables) -> Shown:
    """How many messages between servers an operation costs, and what for."""
    causes, known = tables.messages(lake.alike("faults = 'none'")), programs_of(tables.runs(lake))
    for workload, rows in _by_workload(causes):
        yield sent(workload, rows, known[workload])
        yield messages_per_operation(rows.rename(columns={"of": "cause"}), "cause", by="program")
    if causes.empty:
        yield NONE_CALM.format("cost")


def sent(workload: str, causes: pd.DataFrame, known: Programs) -> str:
    """Of `tables.messages` of a workload, by cause."""
    own = _subject(causes, known)
    totals = causes.groupby("program").messages_per_operation.sum().to_dict()
    largest = _rows(causes, program=own).sort_values("messages_per_operation").iloc[-1]
    what_for = f", {largest.messages_per_operation / totals[own]:.0%} of them for *{largest.of}*"
    others = ", ".join(
        f"{known.named(name)} {totals[name]:.2f}" for name in known.ranked(totals) if name != own
    )
    return (
        f"**{workload}: with {known.named(own)} an operation costs {totals[own]:.2f} messages between"
        f" servers{what_for if totals[own] else ''}.** "
        + (f"The others: {others}." if others else "This lake has no other program.")
    )


def faults(lake: Tables) -> Shown:
    """What faults cost, and for how long."""
    stormy, known = lake.alike("faults <> 'none'"), programs_of(tables.runs(lake))
    served, recoveries = tables.served(stormy), tables.recoveries(stormy)
    operations, injected = tables.single_runs(stormy)
    for workload, rows in _by_workload(served[served.fault != CALM]):
        recovered, done, shades = (
            _rows(each, workload=workload) for each in (recoveries, operations, injected)
        )
        done = done[done.faults.isin(sorted(set(done.faults))[:_COLUMNS_MAX])]
        yield suffered(workload, rows, recovered, known[workload])
        yield under_faults(done, shades, by="program", weather="faults")
    if served.empty:
        yield "**No run with faults is in this lake, so nothing can be said of them.**"


def suffered(workload: str, met: pd.DataFrame, recoveries: pd.DataFrame, known: Programs) -> str:
    """Of `tables.served`, as far as operations met faults, and `tables.recoveries` of a workload."""
    own = _subject(met, known)
    words = [
        f"{kind} {rows.ok_count.sum() / rows.invoked_count.sum():.1%}"
        for kind, rows in _rows(met, program=own).groupby("fault")
    ]
    told = f"{known.named(own)} acknowledged: {', '.join(words)}"
    first = f"{workload}: of the operations that met a fault, {told}."
    watched = recoveries[recoveries.watched_ns > 0]
    if _rows(watched, program=own).empty:
        return f"**{first}** No fault ended before its run did, so there is no recovery to tell."
    told = f"{_recovered(_rows(watched, program=own))} {_sooner(watched, own, known)}"
    return f"**{first}** {told.rstrip()}"


def _recovered(watched: pd.DataFrame) -> str:
    done, runs = watched.recovery_ns.notna().sum(), watched.run_id.nunique()
    return (
        f"After {done} of {len(watched)} faults in {runs} run{'s' * (runs != 1)} latencies were back near calm"
        f" before the next fault, in the median {_after(_median_ns(watched))}."
    )


def _sooner(watched: pd.DataFrame, own: str, known: Programs) -> str:
    """Where another program recovered sooner; a recovery that was not seen counts as the longest."""
    medians = {pair: _median_ns(rows) for pair, rows in watched.groupby(["kind", "program"])}
    told = [
        f"{known.named(other)} after {kind} ({_after(median)}, against {_after(medians[kind, own])})"
        for (kind, other), median in medians.items()
        if other != own and (kind, own) in medians and median < medians[kind, own]
    ]
    if told:
        return f"Sooner, in the median: {'; '.join(told)}."
    others = set(watched.program) - {own}
    return f"No other program recovered sooner than `{own}`." if others else ""


def _median_ns(watched: pd.DataFrame) -> float:
    """That of an odd number of faults, or the later of the two in the middle."""
    ranked = sorted(watched.recovery_ns.astype(float).fillna(float("inf")))
    return float(ranked[len(ranked) // 2])


def _after(recovery_ns: float) -> str:
    if recovery_ns == float("inf"):
        return "not seen"
    return f"{recovery_ns / 1e9:.2g} s after the fault" if recovery_ns else "at once"


def sql(values: Sequence[tuple[str, str, Sequence[float]]], invalid: Collection[str]) -> str:
    """Of `tables.by_program`: what the first query of the notebook found, in ms; `invalid` programs last."""
    medians = sorted(
        (program in invalid, median(each), name) for name, program, each in values if each
    )
    if not medians:
        return "**No run without faults is in this lake, so the query finds nothing.**"
    order = "; ".join(
        f"{name}{' (invalid)' * is_invalid}: {value:.3g} ms" for is_invalid, value, name in medians
    )
    return (
        "**With SQL: `open_lake()` opens the tables, and each row says its run, workload and program.** This"
        " query asks how long 99 % of the operations of each run took at most; in the median of the runs:"
        f" {order}."
    )


def invalid(lake: Tables) -> set[str]:
    """The programs with an invalid run."""
    return {name for each in programs_of(tables.runs(lake)).values() for name in each.invalid}


def log(records: pd.DataFrame) -> str:
    """Of `tables.frame`: the records of each key of a log."""
    if records.empty:
        return "**No operation is in this lake, so its log is empty.**"
    keys, count = len(records), int(records.records.sum())
    return (
        f"**A log is a table that Spark opens by its URL: this one has {count} records of {keys} keys.** Spark"
        " wrote them, too, each exactly once; below are the latencies that the records tell."
    )


def programs(lake: Tables) -> Shown:
    """Which program is better, and whether that is more than noise."""
    calm = lake.alike("faults = 'none'")
    figures, known = tables.figures(calm), programs_of(tables.runs(lake))
    against = baselines(lake)
    compared, means = tables.compared(figures, against), tables.mean_figures(figures)
    for workload, rows in _by_workload(compared):
        yield stands(workload, rows, known[workload])
        of_workload = standings(_rows(means, workload=workload), rows, against[workload])
        yield compare(of_workload, against[workload], by="program")
    if compared.empty:
        yield "**There are no two programs of one workload without faults in this lake to compare.**"


def baselines(lake: Tables) -> dict[str, str]:
    """The program of each workload that the others are compared with."""
    known = programs_of(tables.runs(lake.alike("faults = 'none'")))
    return {workload: each.baseline for workload, each in known.items()}


def stands(workload: str, compared: pd.DataFrame, known: Programs) -> str:
    """Of `tables.compared` of a workload: a grid of where the baseline is better, worse or the same."""
    baseline, runs = compared.baseline.iloc[0], compared.baseline_runs.iloc[0]
    own = known.named(baseline)
    if (compared.verdict == TOO_FEW).all():
        return (
            f"**{workload}: this lake has too few runs to tell programs apart (of {own}: {runs}).**"
            " Four runs of each without faults are the fewest with which a difference can be told."
        )
    return (
        f"**{workload}: how {own} stands against each other program, as far as {runs} runs of it can tell.**"
        " *Same* means that no difference can be told from noise.\n\n"
        f"{_grid(compared, known)}"
    )


def _grid(compared: pd.DataFrame, known: Programs) -> str:
    """A row for each figure and a column for each other program, as Markdown."""
    others = in_order(compared.other)
    words = {(row.figure, row.other): _word(row) for row in compared.itertuples()}
    lines = [f"| | {' | '.join(map(known.named, others))} |", "|---" * (len(others) + 1) + "|"]
    lines += [
        f"| {name} | {' | '.join(words.get((name, other), '–') for other in others)} |"
        for name in dict.fromkeys(compared.figure)
    ]
    return "\n".join(lines)


def _word(row: Any) -> str:
    """How the baseline stands."""
    if row.verdict == TOO_FEW:
        return "too few runs"
    if row.verdict not in (LESS, MORE):
        return "same"
    return _STANDINGS["worse" if row.verdict == row.better else "better"]


def standings(means: pd.DataFrame, compared: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """Of `tables.mean_figures` and `tables.compared`: rows for the picture, with each program's standing.

    `standing` is baseline, better or worse; None: no difference told. `enough_runs`: whether there were
    enough of them to tell any.
    """
    of = {(row.figure, row.other): row.verdict for row in compared.itertuples()}
    rows = means.to_dict("records")
    for row in rows:
        verdict = of.get((row["figure"], row["program"]))
        row["enough_runs"] = verdict != TOO_FEW
        row["standing"] = "baseline" if row["program"] == baseline else None
        if verdict in (LESS, MORE):
            row["standing"] = "better" if verdict == row["better"] else "worse"
    return pd.DataFrame(rows)


def prefetch(order: pd.DataFrame) -> str:
    """Of `tables.order`: whether holes or the order is what breaks a log."""
    late, sound = order[order.late_count > 0], order[order.late_count == 0]
    if "prefetch" not in set(order.program):
        return "**No run of `prefetch` is in this lake, so there is no failure to look at.**"
    shown = "; ".join(
        f"`{row.program}`: {row.late_count} of {row.message_count}" for row in late.itertuples()
    )
    first = (
        f"Messages came to stand behind readers, who never see them ({shown})."
        if shown
        else "In these runs no message came to stand behind a reader."
    )
    with_holes = " and ".join(
        f"the {row.hole_count} of `{row.program}`" for row in sound.itertuples() if row.hole_count
    )
    in_order_shown = ", ".join(f"`{name}`" for name in in_order(sound.program)) or "nowhere here"
    second = (
        f"Holes are not the reason: {with_holes} did no harm, for nothing is ever put into them."
        if with_holes
        else f"Where offsets are shown in order there are none: {in_order_shown}."
    )
    return f"**{first}** {second}"


def _subject(rows: pd.DataFrame, known: Programs) -> str:
    """Whom a sentence is about: the baseline of those that have rows."""
    there = {name: count for name, count in known.runs.items() if name in set(rows.program)}
    return Programs(there, known.invalid).baseline


def _by_workload(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    return ((str(workload), rows) for workload, rows in frame.groupby("workload"))


def _rows(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows that have these values in these columns."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"
