"""The answers that notebooks open with: two sentences each, computed from the figures shown below them.

Every function takes small frames of `analysis.notebooks.tables` and returns Markdown. What a lake does
not hold is said, not left out.
"""

import pandas as pd

from analysis.metrics.comparison import LESS, MORE, TOO_FEW
from analysis.metrics.windows import CALM
from plots.style import strategies as strategies_of

OWN = "leaderless"
_NONE = "none"


def latency(quantiles: pd.DataFrame) -> str:
    """Of `tables.latencies` by f: what a client waits for, calm, with the project's own strategy."""
    calm = _rows(quantiles, weather=_NONE)
    own = _subject(calm)
    if own is None:
        return "**No run without faults is in this lake, so there is no calm latency to tell.**"
    send, poll = (_rows(calm, strategy=own, f=f) for f in ("send", "poll"))
    first = f"With `{own}` and no faults, {_half(send, 'sends')}, and {_half(poll, 'polls')}."
    medians = _rows(calm, f="send").sort_values("latency_ns_p50")
    order = ", ".join(f"`{row.strategy}` {_ms(row.latency_ns_p50)}" for row in medians.itertuples())
    return f"**{first}** The median of a send, quickest first: {order}."


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
    watched = _rows(recoveries[recoveries.watched_ns > 0], strategy=own)
    done = watched.recovery_ns.dropna().astype(float)
    if watched.empty:
        return f"**{first}** No fault ended before its run did, so there is no recovery to tell."
    second = f"After {len(done)} of {len(watched)} faults latencies were back near calm"
    median_s = done.median() / 1e9
    when = f"{median_s:.2g} s after its end" if median_s else "in the first window after its end"
    median = f", in the median {when}" if len(done) else ""
    return f"**{first}** {second} before the next one began{median}."


def strategies(compared: pd.DataFrame, better: dict[str, str]) -> str:
    """Of `tables.compared`: where the baseline wins and loses, and what cannot be told."""
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
    wins, losses = told[~other_is_better], told[other_is_better]
    return (
        f"**`{baseline}` is better {_against(wins)}, and worse {_against(losses)}.** "
        f"Of {len(compared)} differences {len(compared) - len(told)} cannot be told from noise"
        " with so many runs."
    )


def _against(rows: pd.DataFrame) -> str:
    figures = rows.groupby("other", sort=False).figure.agg(", ".join)
    named = "; ".join(f"than `{other}` in {names}" for other, names in figures.items())
    return named or "in nothing that can be told"


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
