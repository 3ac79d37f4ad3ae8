"""The answers that notebooks open with: for each workload sentences or a grid, and a picture.

They are computed from the frames shown below them. Programs are compared within a workload, under equal
conditions. One that has an invalid run there is marked, and never ranked. What a lake does not hold is said,
not left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import pandas as pd

from analysis.comparison import CONFIDENCE, LESS, MORE, TOO_FEW
from analysis.notebooks import tables
from analysis.notebooks.tables import Tables
from analysis.rows import BY_TYPE, CALM
from runs.facts import grouped
from runs.plots.groups import compare, latency_curves, messages_per_operation
from runs.plots.picture import Picture
from runs.plots.run import under_faults
from runs.plots.style import INVALID
from runs.plots.style import strategies as in_order
from runs.traffic import OTHER

OWN, RESERVING = "leaderless", "prefetch"
_COLUMNS_MAX = 4  # of kinds of faults that have room beside each other
_STANDINGS = {"better": "**better**", "worse": "*worse*"}
Answer = Iterator[str | Picture]

# ---------------------------------------------------------------- programs, by their names in frames


def plain(name: str) -> str:
    """Take the mark of an invalid run from a name."""
    return name.removesuffix(INVALID)


def named(name: str) -> str:
    """Write a name as code, with its mark behind."""
    return f"`{plain(name)}`{name[len(plain(name)) :]}"


def baseline(runs: Mapping[str, int]) -> str:
    """Whom others are compared with, of programs with so many runs; a valid one if there is any.

    The project's own strategy, or else the program with most runs.
    """
    return min(runs, key=lambda name: (name != plain(name), plain(name) != OWN, -runs[name], name))


def ranking(values: Mapping[str, float], first: str, write: Callable[[float], str]) -> str:
    """The valid programs, lowest first, which `first` says; then, told apart, those with an invalid run."""
    told = grouped(
        (first if name == plain(name) else "not ranked", f"{named(name)} {write(values[name])}")
        for name in sorted(values, key=lambda name: (name != plain(name), values[name], name))
    )
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in told.items())


def _subject(rows: pd.DataFrame, runs: pd.DataFrame) -> str:
    """Whom a sentence is about: the baseline of those that have rows."""
    return baseline(runs[runs.program.isin(rows.program)].groupby("program").runs.sum().to_dict())


# ---------------------------------------------------------------- answers


def latency(lake: Tables) -> Answer:
    """What a client waits for, calm."""
    calm = lake.alike("faults = 'none'")
    quantiles, curves, runs = tables.latencies(calm), tables.curves(calm), tables.runs(calm)
    for workload, rows in _by_workload(quantiles):
        yield waited(workload, rows, _rows(runs, workload=workload))
        yield latency_curves(_rows(curves, workload=workload), by="program")
    yield from _silent(lake, quantiles, "no operation was acknowledged in a run without faults")


def waited(workload: str, quantiles: pd.DataFrame, runs: pd.DataFrame) -> str:
    """Of `tables.latencies` and `tables.runs` of a workload, all under equal conditions."""
    own = _subject(quantiles, runs)
    kinds = quantiles.groupby("f").operation_count.sum().sort_values(ascending=False).index
    kinds = sorted(kinds, key=lambda f: f != "send")  # what moves a log on comes first
    halves = [
        f"half of the operations `{row.f}` take at most {_ms(row.latency_ns_p50)}"
        f" and 99 % at most {_ms(row.latency_ns_p99)}"
        for f in kinds
        for row in _rows(quantiles, program=own, f=f).head(1).itertuples()
    ]
    first = f"**{workload}: with {named(own)} and no faults, {', and '.join(halves)}.**"
    medians = _rows(quantiles, f=kinds[0]).set_index("program").latency_ns_p50.to_dict()
    if len(medians) == 1:
        return f"{first} This lake has no other program to compare{_under(runs)}."
    return (
        f"{first} The median of `{kinds[0]}`{_under(runs)}, {ranking(medians, 'quickest first', _ms)}."
        " Whether that is more than noise is for the notebook `programs`."
    )


def _under(runs: pd.DataFrame) -> str:
    """The conditions of these runs, as far as they are known, and how many there are of a program."""
    units = {
        "node_count": "nodes",
        "concurrency": "clients",
        "rate_hz": "operations a second",
        "latency_ms": "ms a hop",
    }
    known = [
        f"{runs[name].iloc[0]:g} {unit}" for name, unit in units.items() if runs[name].notna().all()
    ]
    of_each = runs.groupby("program").runs.sum()
    counts = " to ".join(dict.fromkeys((f"{of_each.min()}", f"{of_each.max()}")))
    return f" ({', '.join([*known, f'runs of each: {counts}'])})"


def messages(lake: Tables) -> Answer:
    """How many messages between servers an operation costs, and what for."""
    calm = lake.alike("faults = 'none'")
    causes, types, runs = tables.messages(calm), tables.messages(calm, BY_TYPE), tables.runs(calm)
    for workload, of_types in _by_workload(types):
        of_workload, of_causes = (_rows(each, workload=workload) for each in (runs, causes))
        # Causes are known of a log whose nodes use a store or the messages of ours, types of all.
        is_known = (
            len(of_causes) and _largest(of_causes, _subject(of_causes, of_workload)).of != OTHER
        )
        part = "cause" if is_known else "type"
        rows = (of_causes if is_known else of_types).rename(columns={"of": part})
        yield sent(workload, rows, part, of_workload)
        yield messages_per_operation(rows, part, by="program")
    yield from _silent(lake, types, "no message of a run without faults was recorded")


def sent(workload: str, rows: pd.DataFrame, part: str, runs: pd.DataFrame) -> str:
    """Of `tables.messages` of a workload, by cause or type: `part`, a column."""
    own = _subject(rows, runs)
    totals = rows.groupby("program").messages_per_operation.sum().to_dict()
    largest = _largest(rows, own)
    share = largest.messages_per_operation / totals[own] if totals[own] else 0
    what_for = f", {share:.0%} of them of the {part} *{largest[part]}*" if share else ""
    others = {name: total for name, total in totals.items() if name != own}
    return (
        f"**{workload}: with {named(own)} an operation costs {totals[own]:.2f} messages between"
        f" servers{what_for}.** "
        + (
            f"The others, {ranking(others, 'fewest first', '{:.2f}'.format)}."
            if others
            else "This lake has no other program to compare."
        )
    )


def _largest(rows: pd.DataFrame, own: str) -> Any:
    """Choose the row of this program that has most messages."""
    return _rows(rows, program=own).sort_values("messages_per_operation").iloc[-1]


def faults(lake: Tables) -> Answer:
    """What faults cost, and for how long."""
    stormy = lake.alike("faults <> 'none'")
    served, recoveries, runs = tables.served(stormy), tables.recoveries(stormy), tables.runs(stormy)
    operations, injected = tables.single_runs(stormy)
    counted = pd.concat([tables.counts(stormy), tables.counts(lake.alike("faults = 'none'"))])
    met = served[served.fault != CALM]
    for workload, rows in _by_workload(met):
        recovered, done, shades, of_workload = (
            _rows(each, workload=workload) for each in (recoveries, operations, injected, runs)
        )
        done = done[done.faults.isin(sorted(set(done.faults))[:_COLUMNS_MAX])]
        told = suffered(workload, rows, recovered, of_workload)
        yield f"{told}{spread(_rows(counted, workload=workload), _subject(rows, of_workload))}"
        yield under_faults(done, shades, by="program", weather="faults")
    yield from _silent(lake, met, "no operation met a fault")


def suffered(workload: str, met: pd.DataFrame, recoveries: pd.DataFrame, runs: pd.DataFrame) -> str:
    """Of `tables.served`, as far as operations met faults, `recoveries` and `runs` of a workload."""
    own = _subject(met, runs)
    words = [
        f"{kind} {rows.ok_count.sum() / rows.invoked_count.sum():.1%}"
        for kind, rows in _rows(met, program=own).groupby("fault")
    ]
    told = f"{named(own)} acknowledged: {', '.join(words)}"
    first = f"{workload}: of the operations that met a fault, {told}."
    watched = recoveries[recoveries.watched_ns > 0]
    if _rows(watched, program=own).empty:
        return f"**{first}** No fault ended long enough before the next one, or the end, to watch a recovery."
    told = f"{_recovered(_rows(watched, program=own))} {_sooner(watched, own)}"
    return f"**{first}** {told.rstrip()}"


def spread(counted: pd.DataFrame, own: str) -> str:
    """Of `tables.counts` of a workload: when elements had spread, with faults and without; "" without any."""
    middle, latest = (
        _rows(counted, program=own, counted=tables.STABLE[name]).set_index("faults")[column]
        for name, column in (("stable_median_ms", "mean"), ("stable_most_ms", "most"))
    )
    told = [
        f"{'without faults' if kind == 'none' else f'under {kind}'} after {middle[kind]:.0f} ms in the median"
        f" and {latest[kind]:.0f} ms at the latest"
        for kind in latest.index
    ]
    return f" An element was in every read {', '.join(told)}." if told else ""


def _recovered(watched: pd.DataFrame) -> str:
    done, count, runs = watched.recovery_ns.notna().sum(), len(watched), watched.run_id.nunique()
    middle = _median_ns(watched)
    when = "" if middle == NOT_SEEN else f", in the median {_after(middle)}"
    return (
        f"After {done} of {count} fault{'s' * (count != 1)} in {runs} run{'s' * (runs != 1)} latencies were"
        f" back near calm before the next fault{when}."
    )


def _sooner(watched: pd.DataFrame, own: str) -> str:
    """Where another program recovered sooner; a recovery that was not seen counts as the longest."""
    medians = {pair: _median_ns(rows) for pair, rows in watched.groupby(["kind", "program"])}
    others = [pair for pair in medians if pair[1] != own and (pair[0], own) in medians]
    sooner = [(kind, other) for kind, other in others if medians[kind, other] < medians[kind, own]]
    told = grouped(
        (
            "Sooner, in the median" if other == plain(other) else "Sooner, but not ranked",
            f"{named(other)} after {kind} ({_after(medians[kind, other])},"
            f" against {_after(medians[kind, own])})",
        )
        for kind, other in sorted(sooner, key=lambda pair: pair[1] != plain(pair[1]))
    )
    if told:
        return " ".join(f"{words}: {'; '.join(names)}." for words, names in told.items())
    return (
        f"No other program recovered sooner than {named(own)} from the same faults."
        if others
        else ""
    )


NOT_SEEN = float("inf")


def _median_ns(watched: pd.DataFrame) -> float:
    """That of an odd number of faults, or the later of the two in the middle."""
    ranked = sorted(watched.recovery_ns.astype(float).fillna(NOT_SEEN))
    return float(ranked[len(ranked) // 2])


def _after(recovery_ns: float) -> str:
    if recovery_ns == NOT_SEEN:
        return "not seen"
    return f"{recovery_ns / 1e9:.2g} s after the fault" if recovery_ns else "at once"


def sql(values: Sequence[tuple[str, str, Sequence[float]]]) -> str:
    """Of `tables.by_program`: what the first query of the notebook found, in ms."""
    if not values:
        return (
            "**No operation was acknowledged in a run without faults, so the query finds nothing.**"
        )
    medians = sorted(
        (median(each), name) for name, program, each in values if program == plain(program)
    )
    ends = " to ".join(
        f"{value:.3g} ms ({name})" for value, name in dict.fromkeys((*medians[:1], *medians[-1:]))
    )
    found = f"in the median of the runs {ends}." if ends else "no program here has only valid runs."
    unranked = " Programs with an invalid run are only shown below." * (len(medians) < len(values))
    return (
        "**With SQL: `open_lake()` opens the tables, and each row says its run, workload and program.** This"
        f" query asks how long 99 % of the operations of each run took at most: {found}{unranked}"
    )


def log(records: pd.DataFrame) -> str:
    """Of `Tables.frame`: the records of each key of a log."""
    if records.empty:
        return "**No operation of a run without faults is in this lake, so its log is empty.**"
    keys, count = len(records), int(records.records.sum())
    return (
        f"**A log is a table that Spark opens by its URL: this one has {count} records of {keys}"
        f" key{'s' * (keys != 1)}.** Spark wrote them, too, each exactly once; below are the latencies that the"
        " records tell."
    )


def programs(lake: Tables) -> Answer:
    """Which program is better, and whether that is more than noise."""
    calm = lake.alike("faults = 'none'")
    compared, means = tables.compared(calm, baselines(lake)), tables.mean_figures(calm)
    for workload, rows in _by_workload(compared):
        yield stands(workload, rows)
        of_workload = standings(_rows(means, workload=workload), rows)
        yield compare(of_workload, rows.baseline.iloc[0], by="program")
    yield from _silent(lake, compared, "there are no two programs without faults to compare")


def baselines(lake: Tables) -> dict[str, str]:
    """The program of each workload that the others are compared with, by its name in the lake."""
    runs = tables.runs(lake.alike("faults = 'none'"))
    return {workload: plain(_subject(rows, rows)) for workload, rows in _by_workload(runs)}


def stands(workload: str, compared: pd.DataFrame) -> str:
    """Of `tables.compared` of a workload: a grid of where the baseline is better, worse or the same."""
    own, runs = named(compared.baseline.iloc[0]), compared.baseline_runs.iloc[0]
    if (compared.verdict == TOO_FEW).all():
        return (
            f"**{workload}: this lake has too few runs to tell programs apart (of {own}: {runs}).**"
            " Four runs of each without faults are enough to tell a difference that is large."
        )
    told, count = compared.verdict.isin([LESS, MORE]).sum(), int(compared.comparisons.count())
    words = [
        f"**{workload}: how {own} stands against each other program, as far as {runs} runs of it can tell.**",
        f"A difference is told in {told} of {count} comparison{'s' * (count != 1)}; of those told at most"
        f" {1 - CONFIDENCE:.0%} are expected to be none (p is corrected by the procedure of Benjamini and"
        " Hochberg).",
        "*Same* means that none can be told.",
        *(
            ["In brackets: against a program with an invalid run, which is not ranked."]
            if any(other != plain(other) for other in compared.other)
            else []
        ),
    ]
    return f"{' '.join(words)}\n\n{_grid(compared)}"


def _grid(compared: pd.DataFrame) -> str:
    """A row for each figure and a column for each other program, as Markdown."""
    others = in_order(compared.other)
    words = {(row.figure, row.other): _word(row) for row in compared.itertuples()}
    lines = [
        *(f"| | {' | '.join(map(named, others))} |", "|---" * (len(others) + 1) + "|"),
        *(
            f"| {name} | {' | '.join(words.get((name, other), '–') for other in others)} |"
            for name in dict.fromkeys(compared.figure)
        ),
    ]
    return "\n".join(lines)


def _word(row: Any) -> str:
    """Say whether the baseline is better or worse than the other, in bold or in brackets."""
    if row.verdict == TOO_FEW:
        return "too few runs"
    if row.verdict not in (LESS, MORE):
        return "same"
    word = "worse" if row.verdict == row.better else "better"
    return _STANDINGS[word] if row.other == plain(row.other) else f"({word})"


def standings(means: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """Of `tables.mean_figures` and `tables.compared`: rows for the picture, with each program's standing.

    `standing` is baseline, better, worse or not ranked (it has an invalid run); None: no difference told.
    `enough_runs`: whether there were enough of them to tell any.
    """
    of = {(row.figure, row.other): row.verdict for row in compared.itertuples()}
    own, rows = compared.baseline.iloc[0], means.to_dict("records")
    for row in rows:
        verdict = of.get((row["figure"], row["program"]))
        row["enough_runs"] = verdict != TOO_FEW
        row["standing"] = "baseline" if row["program"] == own else None
        if verdict in (LESS, MORE):
            word = "better" if verdict == row["better"] else "worse"
            row["standing"] = word if row["program"] == plain(row["program"]) else "not ranked"
    return pd.DataFrame(rows)


def prefetch(order: pd.DataFrame) -> str:
    """Of `tables.order`: whether holes or the order is what breaks a log."""
    late, sound = order[order.late_count > 0], order[order.late_count == 0]
    if order.empty:
        return "**No run of kafka without faults is in this lake, so there are no offsets to look at.**"
    shown = "; ".join(
        f"{named(row.program)}: {row.late_count} of {row.message_count}"
        for row in late.itertuples()
    )
    names = ", ".join(named(name) for name in in_order(sound.program))
    told = [
        f"**Messages came to stand behind readers, who never see them ({shown}).**"
        if shown
        else f"**No message came to stand behind a reader, with {names}.**"
    ]
    with_holes = " and ".join(
        f"the {row.hole_count} of {named(row.program)}"
        for row in sound.itertuples()
        if row.hole_count
    )
    if with_holes:
        reason = "are not the reason" if shown else "alone do no harm"
        told.append(f"Holes {reason}: nothing is ever put into {with_holes}.")
    elif shown and names:
        told.append(f"There are none with {names}.")
    if RESERVING not in set(map(plain, order.program)):
        told.append(f"This lake has no run of `{RESERVING}`, which reserves offsets ahead.")
    return " ".join(told)


# ---------------------------------------------------------------- frames


def _silent(lake: Tables, told: pd.DataFrame, why: str) -> Iterator[str]:
    """The workloads of a lake of which nothing was told, and why."""
    there = set(tables.runs(lake).workload)
    if not there:
        yield "**No run is in this lake.**"
    elif missing := sorted(there.difference(told.workload)):
        yield f"**{', '.join(missing)}: {why}.**"


def _by_workload(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    return ((str(workload), rows) for workload, rows in frame.groupby("workload"))


def _rows(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    """The rows that have these values in these columns."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return frame


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"
