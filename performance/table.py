"""Compute medians, spread and the aims that were met from records of runs, and their tables. Pure."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from rich.markup import escape
from rich.table import Table

from performance.configurations import SUBJECT, Bound, Configuration


class Summary(NamedTuple):
    """A figure over the repetitions of one configuration and strategy."""

    middle: float
    low: float
    high: float


class Column(NamedTuple):
    """The title of a figure and its decimals."""

    figure: str
    title: str
    decimals: int


class Verdict(NamedTuple):
    """An aim and its outcome; `met` is None when it was not measured."""

    sentence: str
    measured: str
    met: bool | None


Summaries = dict[tuple[str, str], dict[str, Summary]]  # (case, strategy) -> figure -> summary
Records = Sequence[Mapping[str, Any]]
COLUMNS = (
    Column("server_messages_per_op", "server messages/op", 2),
    Column("all_messages_per_op", "all messages/op", 2),
    Column("throughput_ops_per_s", "ops/s", 0),
    Column("send_p50_ms", "send p50, ms", 1),
    Column("send_p99_ms", "send p99, ms", 1),
    Column("poll_p50_ms", "poll p50, ms", 1),
    Column("poll_p99_ms", "poll p99, ms", 1),
    Column("worst_lag_s", "worst lag, s", 3),
    Column("ok_fraction", "ok, of sends and polls", 6),
    Column("ok_fraction_of_all", "ok, of all", 4),
    Column("node_cpu_us_per_op", "node CPU, µs/op", 0),
)
TITLES = {column.figure: column for column in COLUMNS}
_VERDICTS = {"valid": "valid", "strict_valid": "valid by --strict"}


def summarise(records: Iterable[Mapping[str, Any]]) -> Summaries:
    """Median, lowest and highest of each figure, for each case and strategy.

    A verdict counts as its worst: one invalid run of three is invalid (`middle` is then the minimum). A run
    that left no figures at all counts as invalid and for nothing else.
    """
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in records:
        figures = record["figures"] or {"valid": 0.0}
        collected = values.setdefault((record["case"], record["strategy"]), {})
        for name, value in figures.items():
            if value is not None:
                collected.setdefault(name, []).append(value)
    return {
        key: {name: _summary(name, each) for name, each in collected.items()}
        for key, collected in values.items()
    }


def _summary(name: str, values: Sequence[float]) -> Summary:
    middle = min(values) if name in _VERDICTS or name == "ok_fraction" else median(values)
    return Summary(middle, min(values), max(values))


def judge(configuration: Configuration, summaries: Summaries) -> list[Verdict]:
    """The outcome of each aim of a configuration."""
    return [_judge(bound, configuration.name, summaries) for bound in configuration.aims]


def _judge(bound: Bound, case: str, summaries: Summaries) -> Verdict:
    measured = summaries.get((case, SUBJECT), {}).get(bound.figure)
    other = _other(bound, case, summaries)
    if measured is None or other is None:
        return Verdict(_sentence(bound, None), "not measured", None)
    limit = bound.limit * other
    met = {
        "at most": measured.middle <= limit,
        "at least": measured.middle >= limit,
        "above": measured.middle > limit,
    }[bound.relation]
    return Verdict(_sentence(bound, limit), _number(measured.middle, bound.figure), met)


def _other(bound: Bound, case: str, summaries: Summaries) -> float | None:
    """The factor of the limit."""
    if bound.than is None:
        return 1.0
    kind, name = bound.than
    key = (case, name) if kind == "strategy" else (name, SUBJECT)
    found = summaries.get(key, {}).get(bound.figure)
    return found.middle if found else None


def _sentence(bound: Bound, limit: float | None) -> str:
    if bound.figure in _VERDICTS:
        return _VERDICTS[bound.figure]
    title = TITLES[bound.figure].title
    if bound.than is None:
        return f"{title} {bound.relation} {bound.limit:g}"
    times = "" if bound.limit == 1 else f"{bound.limit:g} x "
    value = "" if limit is None else f" ({_number(limit, bound.figure)})"
    return f"{title} {bound.relation} {times}that of `{bound.than[1]}`{value}"


def _number(value: float, figure: str) -> str:
    if figure in _VERDICTS:
        return "yes" if value else "no"
    return f"{value:.{TITLES[figure].decimals}f}"


def cell(summary: Summary | None, column: Column) -> str:
    """The median, with lowest and highest where they differ."""
    if summary is None:
        return "–"
    middle, low, high = (f"{value:.{column.decimals}f}" for value in summary)
    return middle if low == high else f"{middle} ({low}–{high})"


def verdict_words(figures: Mapping[str, Summary], verdict: str) -> str:
    """In words, as `valid` or `strict_valid` has it."""
    if verdict not in figures:
        return "–"
    return "valid" if figures[verdict].middle else "**invalid**"


def rows(strategies: Sequence[str], case: str, summaries: Summaries) -> list[list[str]]:
    """One row a figure, one column a strategy; a strict verdict only where it was asked for."""
    found = [summaries.get((case, name), {}) for name in strategies]
    numbers = [[c.title, *(cell(each.get(c.figure), c) for each in found)] for c in COLUMNS]
    verdicts = [
        [title, *(verdict_words(each, verdict) for each in found)]
        for verdict, title in (("valid", "verdict"), ("strict_valid", "verdict by `--strict`"))
        if any(verdict in each for each in found)
    ]
    return [*numbers, *verdicts]


def markdown(
    configurations: Sequence[Configuration], strategies: Sequence[str], records: Records
) -> str:
    """For each measured configuration a table, published figures, its aims, and the anomalies."""
    summaries = summarise(records)
    parts = []
    for configuration in measured(configurations, summaries):
        parts.append(f"## {configuration.title}\n")
        titles = ["", *(f"`{name}`" for name in strategies)]
        parts.append(markdown_table(titles, rows(strategies, configuration.name, summaries)))
        parts.append("\n".join(_notes(configuration, summaries, records)) + "\n")
    return "\n".join(parts)


def measured(configurations: Sequence[Configuration], summaries: Summaries) -> list[Configuration]:
    """The configurations of which there is at least one run."""
    cases = {case for case, _ in summaries}
    return [each for each in configurations if each.name in cases]


def markdown_table(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of text, all but the first column to the right."""
    ruler = ["---", *["---:"] * (len(titles) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (titles, ruler, *lines)) + "\n"


def _notes(configuration: Configuration, summaries: Summaries, records: Records) -> list[str]:
    marks = {True: "✔ met", False: "✘ missed", None: "?"}
    known = [f"- Known: {configuration.known}."] if configuration.known else []
    aims = [
        f"- Aim: {each.sentence}. {each.measured}: **{marks[each.met]}**"
        for each in judge(configuration, summaries)
    ]
    notes = [*known, *aims, *(f"- {each}" for each in troubles(configuration.name, records))]
    return [textwrap.fill(note, 118, subsequent_indent="  ") for note in notes]


def troubles(case: str, records: Records) -> list[str]:
    """The anomalies in runs of a case, a sentence for each strategy and set of types."""
    counts: Counter[tuple[str, str]] = Counter()
    runs: Counter[str] = Counter()
    for record in records:
        if record["case"] == case:
            runs[record["strategy"]] += 1
            trouble = record["error"] or ", ".join(f"`{each}`" for each in record["anomalies"])
            counts[record["strategy"], trouble] += bool(trouble)
    return [
        f"`{strategy}`, {count} of {runs[strategy]} runs: {trouble}."
        for (strategy, trouble), count in counts.items()
        if count
    ]


def rich_table(configuration: Configuration, strategies: Sequence[str], records: Records) -> Table:
    """The same for a terminal."""
    summaries = summarise(records)
    marks = {True: "[green]✔[/]", False: "[red]✘[/]", None: "?"}
    aims = [f"{marks[v.met]} {v.sentence}: {v.measured}" for v in judge(configuration, summaries)]
    table = Table(
        title=configuration.title,
        title_justify="left",
        caption="\n".join([*aims, *map(escape, troubles(configuration.name, records))]),
        caption_justify="left",
    )
    table.add_column()
    for name in strategies:
        table.add_column(name, justify="right")
    for row in rows(strategies, configuration.name, summaries):
        table.add_row(*(text.replace("`", "").replace("**", "") for text in row))
    return table
