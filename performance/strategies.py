"""Strategies side by side: the configurations, aims, and a table of each.

The runs are in bench/sweep/comparison.toml, under the names of the configurations. An aim is a bound on a
figure of `leaderless` (the median over repetitions), absolute or relative to the same figure of another
strategy or of another configuration in the same run.
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from performance.harness import table_lines
from performance.measured import (
    Found,
    found_in,
    provenance,
    rows_of,
    strategies_of,
    summary,
    text,
    verdict_words,
)
from runs.figures import number_of
from runs.sweeps import CRASHED, Row

SUBJECT = "leaderless"


class Bound(NamedTuple):
    """An aim: `figure` of `of` is "at most" ("at least", "above") `limit`, or so many times that of `than`.

    `than`: the same figure of another ("strategy", name) or ("configuration", name) of the same run.
    """

    figure: str
    relation: str
    limit: float
    than: tuple[str, str] | None = None
    of: str = SUBJECT


class Configuration(NamedTuple):
    """A part of the table: `known` as others measured or modelled it.

    `real` was measured with the real tool, on a quiet machine of two cores. Its operations a second are all
    operations of clients, divided by the time limit.
    """

    name: str
    title: str
    known: str
    aims: tuple[Bound, ...]
    real: Mapping[str, str] = MappingProxyType({})


_OPS, _MESSAGES, _P50, _P99, _POLL_P99 = (
    "throughput_ops_per_s", "server_messages_per_op", "send_p50_ms", "send_p99_ms", "poll_p99_ms",
)  # fmt: skip
_CALM = ("configuration", "5-nodes-calm")
_VALID = Bound("valid", "at least", 1.0)

CONFIGURATIONS = (
    Configuration(
        "2-nodes", "2 nodes, 2n, rate 1000",
        "durable published solutions 5.5 to 7.9 server messages an operation (best 4.4); a fixed leader in"
        " memory 0.77",
        (Bound(_MESSAGES, "at most", 1.0), Bound(_P50, "at most", 5.0)),
        {_OPS: "750", _P50: "5.4 to 5.6"},
    ),
    Configuration(
        "16-nodes", "16 nodes, 2n, rate 10 000",
        "published strong leader 5.05 (7.23 in all)",
        (
            Bound(_MESSAGES, "at most", 1.2),
            Bound(_OPS, "above", 1.0, ("strategy", "leader")),
            Bound(_OPS, "above", 1.0, ("strategy", "cas")),
        ),
        {_OPS: "1250 to 1650", _P50: "10 to 14"},
    ),
    Configuration(
        "5-nodes-20n", "5 nodes, 20n, rate 10 000", "model: 0.3 to 0.5",
        (Bound(_MESSAGES, "at most", 0.8),),
    ),
    Configuration(
        "16-nodes-10ms", "16 nodes, 2n, rate 10 000, latency 10 ms exponential",
        "model: plain cas 14, collapsing; combining 1.0",
        (Bound(_MESSAGES, "at most", 1.1), Bound(_P99, "at most", 150.0)),
    ),
    Configuration(
        "3-nodes-100ms", "3 nodes, 2n, rate 10, latency 100 ms constant", "floor: 2 hops, 200 ms",
        (Bound(_P50, "at most", 220.0),),
    ),
    Configuration(
        "5-nodes-calm", "5 nodes, 2n, rate 1000, latency 10 ms (the calm counterpart of the next)", "", (),
    ),
    Configuration(
        "5-nodes-partitions", "5 nodes, 2n, rate 1000, latency 10 ms, partitions every 2 s", "",
        (
            _VALID, Bound("strict_valid", "at least", 1.0), Bound("ok_fraction", "at least", 1.0),
            Bound(_P99, "at most", 3.0, _CALM), Bound(_POLL_P99, "at most", 3.0, _CALM),
        ),
        {_OPS: "219", _MESSAGES: "1.84", _P50: "72", _P99: "442", _POLL_P99: "11"},
    ),
    Configuration(
        "5-nodes-100ms", "5 nodes, 4n, rate 200, latency 100 ms exponential", "", (_VALID,),
        {_OPS: "43", _P50: "729", _P99: "1759", _POLL_P99: "892"},
    ),
    Configuration(
        "5-nodes-100ms-partitions",
        "5 nodes, 4n, rate 200, latency 100 ms exponential, partitions every 3 s", "", (_VALID,),
    ),
)  # fmt: skip

SHOWN = (
    *("server_messages_per_op", "throughput_ops_per_s", "send_p50_ms", "send_p99_ms"),
    "poll_p99_ms",
)
REAL = "real tool (measured elsewhere)"
_MARKS = {True: "✔ met", False: "✘ missed", None: "?"}
_VERDICTS = {"valid": "valid", "strict_valid": "valid by --strict"}
ROWS_OF_VERDICTS = {"valid": "verdict", "strict_valid": "verdict by `--strict`"}


class AimOutcome(NamedTuple):
    """An aim and its outcome; `met` is None when it was not measured."""

    sentence: str
    measured: str
    met: bool | None


def judge(bound: Bound, case: str, found: Found) -> AimOutcome:
    """The outcome of an aim of a configuration."""
    ours, other = summary(found.get((case, bound.of)), bound.figure), 1.0
    if bound.than is not None:
        kind, name = bound.than
        key = (case, name) if kind == "strategy" else (name, bound.of)
        theirs = summary(found.get(key), bound.figure)
        ours, other = theirs and ours, theirs.middle if theirs else 0.0
    if ours is None:
        return AimOutcome(_sentence(bound, None), "not measured", None)
    limit = bound.limit * other
    met = {
        "at most": ours.middle <= limit,
        "at least": ours.middle >= limit,
        "above": ours.middle > limit,
    }[bound.relation]
    return AimOutcome(_sentence(bound, limit), _number(ours.middle, bound.figure), met)


def _sentence(bound: Bound, limit: float | None) -> str:
    if bound.figure in _VERDICTS:
        return _VERDICTS[bound.figure]
    title = number_of(bound.figure).heading + (f" of `{bound.of}`" if bound.of != SUBJECT else "")
    if bound.than is None:
        return f"{title} {bound.relation} {bound.limit:g}"
    times = "" if bound.limit == 1 else f"{bound.limit:.2g} x "
    value = "" if limit is None else f" ({_number(limit, bound.figure)})"
    return f"{title} {bound.relation} {times}that of `{bound.than[1]}`{value}"


def _number(value: float, figure: str) -> str:
    if figure in _VERDICTS:
        return "yes" if value else "no"
    return f"{value:.{number_of(figure).decimals}f}"


def rows(
    strategies: Sequence[str], configuration: Configuration, found: Found, shown: Sequence[str]
) -> Iterator[list[str]]:
    """One row a figure that was measured, one column a strategy; a strict verdict only where it was asked for.

    The last column has the figures of the real tool, if there are any.
    """
    cells = [found.get((configuration.name, name)) for name in strategies]
    real = configuration.real
    for figure in shown:
        figures = [summary(cell, figure) for cell in cells]
        if figure in real or any(figures):
            last = [real.get(figure, "")] if real else []
            yield [number_of(figure).heading, *(text(each, figure) for each in figures), *last]
    yield from (
        [title, *(verdict_words(cell, verdict) for cell in cells), *[""] * bool(real)]
        for verdict, title in ROWS_OF_VERDICTS.items()
        if any(summary(cell, verdict) for cell in cells)
    )


def markdown(
    configurations: Sequence[Configuration],
    strategies: Sequence[str],
    found: Found,
    shown: Sequence[str] = SHOWN,
) -> str:
    """For each measured configuration a table, published figures, its aims, and the anomalies."""
    parts, cases = [], {case for case, _ in found}
    for each in (each for each in configurations if each.name in cases):
        titles = ["", *(f"`{name}`" for name in strategies), *[REAL] * bool(each.real)]
        table = table_lines(titles, rows(strategies, each, found, shown))
        notes = (textwrap.fill(note, 118, subsequent_indent="  ") for note in _notes(each, found))
        parts.append("\n".join([f"## {each.title}\n", *table, "", *notes]).rstrip("\n"))
    return "\n\n".join(parts)


def _notes(configuration: Configuration, found: Found) -> Iterator[str]:
    if configuration.known:
        yield f"- Known: {configuration.known}."
    for bound in configuration.aims:
        each = judge(bound, configuration.name, found)
        yield f"- Aim: {each.sentence}. {each.measured}: **{_MARKS[each.met]}**"
    yield from (f"- {each}" for each in troubles(configuration.name, found))


def troubles(case: str, found: Found) -> Iterator[str]:
    """The anomalies in runs of a case, a sentence for each strategy and set of types."""
    return (
        f"`{strategy}`, {count} of {len(cell.rows)} runs: {trouble}."
        for (name, strategy), cell in found.items()
        if name == case
        for trouble, count in Counter(filter(None, map(_trouble, cell.rows))).items()
    )


def _trouble(row: Row) -> str:
    if row.verdict == CRASHED:
        return f"exit status {row.exit_status}"
    return ", ".join(f"`{each}`" for each in row.anomalies)


def strategies_page(folder: Path, _: Path) -> Iterator[str]:
    """Yield where the figures come from, and the tables of all configurations that were measured."""
    runs = rows_of(folder)
    found = found_in(runs, lambda cell: cell.get("name"))
    yield provenance(folder)
    yield f"{len(runs)} runs. Medians over repetitions, lowest and highest in brackets; the worst verdict."
    yield markdown(CONFIGURATIONS, strategies_of(found), found)
