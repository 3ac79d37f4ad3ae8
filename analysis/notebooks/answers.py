"""The answers that notebooks open with: two sentences or a grid, computed from the figures shown below them.

Every function takes small frames of `analysis.notebooks.tables` and returns Markdown. What a lake does
not hold is said, not left out.
"""

from collections.abc import Sequence
from statistics import median

import pandas as pd

from analysis.metrics.comparison import LESS, MORE, TOO_FEW
from analysis.metrics.windows import CALM
from runs.plots.style import strategies as strategies_of

OWN = "leaderless"
_NONE = "none"
_STANDINGS = {"better": "**better**", "worse": "*worse*"}


def latency(quantiles: pd.DataFrame, runs: pd.DataFrame) -> str:
    """Of `tables.latencies` by f: what a client waits for, calm, with the project's own strategy.

    `runs` are those of `tables.runs`, all under equal conditions.
    """
    calm = _rows(quantiles, weather=_NONE)
    own = _subject(calm)
    if own is None:
        return "**No run without faults is in this lake, so there is no calm latency to tell.**"
    send, poll = (_rows(calm, strategy=own, f=f) for f in ("send", "poll"))
    first = f"With `{own}` and no faults, {_half(send, 'sends')}, and {_half(poll, 'polls')}."
    medians = _rows(calm, f="send").sort_values("latency_ns_p50")
    order = ", ".join(f"`{row.strategy}` {_ms(row.latency_ns_p50)}" for row in medians.itertuples())
    return f"**{first}** The median of a send{_under(runs)}, quickest first: {order}."


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


def _half(rows: pd.DataFrame, name: str) -> str:
    if rows.empty:
        return f"there were no {name}"
    row = rows.iloc[0]
    return (
        f"half of the {name} take at most {_ms(row.latency_ns_p50)}"
        f" and 99 % at most {_ms(row.latency_ns_p99)}"
    )


def messages(causes: pd.DataFrame) -> str:
    """Of `tables.causes`: how many messages between servers an operation costs, and what for."""
    calm = _rows(causes, weather=_NONE)
    own = _subject(calm)
    if own is None:
        return "**No run without faults is in this lake, so there is no calm cost to tell.**"
    totals = calm.groupby("strategy").messages_per_operation.sum().sort_values()
    of_own = _rows(calm, strategy=own).sort_values("messages_per_operation", ascending=False)
    largest = of_own.iloc[0]
    others = ", ".join(f"`{name}` {total:.2f}" for name, total in totals.items() if name != own)
    share = largest.messages_per_operation / totals[own]
    return (
        f"**With `{own}` an operation costs {totals[own]:.2f} messages between servers,"
        f" {share:.0%} of them for *{largest.cause}*.** "
        + (f"The others: {others}." if others else "This lake has no other strategy.")
    )


def faults(served: pd.DataFrame, recoveries: pd.DataFrame) -> str:
    """Of `tables.served` and `tables.recoveries`: what faults cost, and for how long."""
    met = served[(served.fault != CALM) & (served.weather != _NONE)]
    own = _subject(met)
    if own is None:
        return "**No run with faults is in this lake, so nothing can be said of them.**"
    words = [
        f"{kind} {rows.ok_count.sum() / rows.invoked_count.sum():.1%}"
        for kind, rows in _rows(met, strategy=own).groupby("fault")
    ]
    first = f"Of the operations that met a fault, `{own}` acknowledged: {', '.join(words)}."
    watched = recoveries[recoveries.watched_ns > 0]
    if _rows(watched, strategy=own).empty:
        return f"**{first}** No fault ended before its run did, so there is no recovery to tell."
    return f"**{first}** {_recovered(_rows(watched, strategy=own))} {_sooner(watched, own)}"


def _recovered(watched: pd.DataFrame) -> str:
    done, runs = watched.recovery_ns.notna().sum(), watched.run_id.nunique()
    return (
        f"After {done} of {len(watched)} faults in {runs} run{'s' * (runs != 1)} latencies were back near calm"
        f" before the next fault, in the median {_after(_median_ns(watched))}."
    )


def _sooner(watched: pd.DataFrame, own: str) -> str:
    """Where another strategy recovered sooner; a recovery that was not seen counts as the longest."""
    medians = {pair: _median_ns(rows) for pair, rows in watched.groupby(["kind", "strategy"])}
    told = [
        f"`{other}` after {kind} ({_after(median)}, against {_after(medians[kind, own])})"
        for (kind, other), median in medians.items()
        if other != own and (kind, own) in medians and median < medians[kind, own]
    ]
    if told:
        return f"Sooner, in the median: {'; '.join(told)}."
    return f"No other strategy recovered sooner than `{own}`."


def _median_ns(watched: pd.DataFrame) -> float:
    """That of an odd number of faults, or the later of the two in the middle."""
    ranked = sorted(watched.recovery_ns.astype(float).fillna(float("inf")))
    return float(ranked[len(ranked) // 2])


def _after(recovery_ns: float) -> str:
    if recovery_ns == float("inf"):
        return "not seen"
    seconds = recovery_ns / 1e9
    return f"{seconds:.2g} s after the fault" if seconds else "in the first window after the fault"


def sql(values: Sequence[tuple[str, str, Sequence[float]]]) -> str:
    """Of `tables.by_strategy`: what the first query of the notebook found, in ms."""
    medians = sorted((median(each), name) for name, _, each in values if each)
    if not medians:
        return "**No run without faults is in this lake, so the query finds nothing.**"
    order = ", ".join(f"`{name}` {value:.3g} ms" for value, name in medians)
    return (
        "**With SQL: `open_lake()` opens the tables, and Spark SQL joins them by `run_id`.** This query asks"
        f" how long 99 % of the sends of each run took at most; in the median of the runs: {order}."
    )


def log(records: pd.DataFrame) -> str:
    """Of `tables.frame`: the records of each key of a log."""
    if records.empty:
        return "**No operation is in this lake, so its log is empty.**"
    keys, count = len(records), int(records.records.sum())
    return (
        f"**A log is a table that Spark opens by its URL: this one has {count} records of {keys} keys.** Spark"
        " wrote them, too, each exactly once; below are the latencies of sends that the records tell."
    )


def strategies(compared: pd.DataFrame, better: dict[str, str]) -> str:
    """Of `tables.compared`: a grid of where the baseline is better, worse or the same."""
    if compared.empty:
        return "**There are no two strategies without faults in this lake to compare.**"
    told = compared[compared.verdict.isin([LESS, MORE])]
    baseline, runs = compared.baseline.iloc[0], compared.baseline_runs.iloc[0]
    if (compared.verdict == TOO_FEW).all():
        return (
            f"**This lake has too few runs to tell strategies apart (of `{baseline}`: {runs}).**"
            " Four runs of each without faults are the fewest with which a difference can be told."
        )
    other_is_better = told.verdict == told.figure.map(better)
    standing = (~other_is_better).map({True: "better", False: "worse"})
    return (
        f"**How `{baseline}` stands against each other strategy, as far as {runs} runs of it can tell.**"
        " *Same* means that no difference can be told from noise.\n\n"
        f"{_grid(compared.assign(standing=standing), better)}"
    )


def _grid(compared: pd.DataFrame, figures: dict[str, str]) -> str:
    """A row for each figure and a column for each other strategy, as Markdown."""
    others = strategies_of(compared.other)
    words = {
        (row.figure, row.other): _STANDINGS.get(row.standing, row.standing)
        if row.verdict != TOO_FEW
        else "too few runs"
        for row in compared.fillna({"standing": "same"}).itertuples()
    }
    there = set(compared.figure)
    names = [name for name in figures if name in there]
    names += sorted(there - set(names))
    lines = [
        f"| | {' | '.join(f'`{other}`' for other in others)} |",
        "|---" * (len(others) + 1) + "|",
    ]
    lines += [
        f"| {name} | {' | '.join(words.get((name, other), '–') for other in others)} |"
        for name in names
    ]
    return "\n".join(lines)


def prefetch(order: pd.DataFrame) -> str:
    """Of `tables.order`: whether holes or the order is what breaks a log."""
    late, sound = order[order.late_count > 0], order[order.late_count == 0]
    if "prefetch" not in set(order.strategy):
        return "**No run of `prefetch` is in this lake, so there is no failure to look at.**"
    shown = "; ".join(
        f"`{row.strategy}`: {row.late_count} of {row.message_count}" for row in late.itertuples()
    )
    first = (
        f"Messages came to stand behind readers, who never see them ({shown})."
        if shown
        else "In these runs no message came to stand behind a reader."
    )
    with_holes = " and ".join(
        f"the {row.hole_count} of `{row.strategy}`" for row in sound.itertuples() if row.hole_count
    )
    second = (
        f"Holes are not the reason: {with_holes} did no harm, for nothing is ever put into them."
        if with_holes
        else f"Where offsets are shown in order there are none: {_listed(sound)}."
    )
    return f"**{first}** {second}"


def _listed(rows: pd.DataFrame) -> str:
    return ", ".join(f"`{name}`" for name in strategies_of(rows.strategy)) or "nowhere here"


def _subject(rows: pd.DataFrame) -> str | None:
    """Whom a sentence is about: the project's own strategy, or the first there is."""
    there = strategies_of(rows.strategy)
    return there[0] if there else None


def _rows(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows that have these values in these columns."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"
