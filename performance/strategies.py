"""Compare the strategies by the runs of bench/sweep/comparison.toml: docs/performance/strategies.md.

    python -m performance.strategies [results/comparison] [--docs docs/performance]

Medians over repetitions, beside figures that were published and aims (performance/configurations.py).
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import click

from performance import sweep_records as sweep
from performance.configurations import CONFIGURATIONS, SUBJECT, Bound, Configuration
from performance.harness import APage, program, table_lines, write_page
from performance.sweep_records import Found, summary, text, verdict_words
from runs.figures import number_of
from runs.sweeps import CRASHED, Row

SHOWN = (
    *("server_messages_per_op", "throughput_ops_per_s", "send_p50_ms", "send_p99_ms"),
    *("poll_p99_ms", "node_cpu_us_per_op"),
)
REAL = "real tool (measured elsewhere)"
_MARKS = {True: "✔ met", False: "✘ missed", None: "?"}
_VERDICTS = {"valid": "valid", "strict_valid": "valid by --strict"}
_ROWS_OF_VERDICTS = {"valid": "verdict", "strict_valid": "verdict by `--strict`"}


class Verdict(NamedTuple):
    """An aim and its outcome; `met` is None when it was not measured."""

    sentence: str
    measured: str
    met: bool | None


def judge(configuration: Configuration, found: Found) -> list[Verdict]:
    """The outcome of each aim of a configuration."""
    return [_judge(bound, configuration.name, found) for bound in configuration.aims]


def _judge(bound: Bound, case: str, found: Found) -> Verdict:
    ours, other = summary(found.get((case, bound.of)), bound.figure), 1.0
    if bound.than is not None:
        kind, name = bound.than
        key = (case, name) if kind == "strategy" else (name, bound.of)
        theirs = summary(found.get(key), bound.figure)
        ours, other = theirs and ours, theirs.middle if theirs else 0.0
    if ours is None:
        return Verdict(_sentence(bound, None), "not measured", None)
    limit = bound.limit * other
    met = {
        "at most": ours.middle <= limit,
        "at least": ours.middle >= limit,
        "above": ours.middle > limit,
    }[bound.relation]
    return Verdict(_sentence(bound, limit), _number(ours.middle, bound.figure), met)


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
    for verdict, title in _ROWS_OF_VERDICTS.items():
        if any(summary(cell, verdict) for cell in cells):
            yield [title, *(verdict_words(cell, verdict) for cell in cells), *[""] * bool(real)]


def markdown(
    configurations: Sequence[Configuration],
    strategies: Sequence[str],
    found: Found,
    shown: Sequence[str] = SHOWN,
) -> str:
    """For each measured configuration a table, published figures, its aims, and the anomalies."""
    parts = []
    for each in measured(configurations, found):
        titles = ["", *(f"`{name}`" for name in strategies), *[REAL] * bool(each.real)]
        table = table_lines(titles, rows(strategies, each, found, shown))
        notes = (textwrap.fill(note, 118, subsequent_indent="  ") for note in _notes(each, found))
        parts.append("\n".join([f"## {each.title}\n", *table, "", *notes]).rstrip("\n"))
    return "\n\n".join(parts)


def measured(configurations: Sequence[Configuration], found: Found) -> list[Configuration]:
    """The configurations of which there is at least one run."""
    cases = {case for case, _ in found}
    return [each for each in configurations if each.name in cases]


def _notes(configuration: Configuration, found: Found) -> Iterator[str]:
    if configuration.known:
        yield f"- Known: {configuration.known}."
    for each in judge(configuration, found):
        yield f"- Aim: {each.sentence}. {each.measured}: **{_MARKS[each.met]}**"
    yield from (f"- {each}" for each in troubles(configuration.name, found))


def troubles(case: str, found: Found) -> Iterator[str]:
    """The anomalies in runs of a case, a sentence for each strategy and set of types."""
    for (name, strategy), cell in found.items():
        if name == case:
            for trouble, count in Counter(map(_trouble, cell.rows)).items():
                if trouble:
                    yield f"`{strategy}`, {count} of {len(cell.rows)} runs: {trouble}."


def _trouble(row: Row) -> str:
    if row.verdict == CRASHED:
        return f"exit status {row.exit_status}"
    return ", ".join(f"`{each}`" for each in row.anomalies)


@program
def main(
    folder: Annotated[Path, click.Path(path_type=Path)] = Path("results/comparison"),
    *,
    docs: APage = None,
) -> None:
    runs = sweep.rows_of(folder)
    found = sweep.found_in(runs, lambda cell: cell.get("name"))
    tables = markdown(CONFIGURATIONS, sweep.strategies_of(found), found)
    click.echo(tables)
    if docs and len(measured(CONFIGURATIONS, found)) < len(CONFIGURATIONS):
        click.echo(f"{docs} stays as it is: it shows all configurations or none")
    elif docs:
        how = f"{len(runs)} runs. Medians over repetitions, lowest and highest in brackets; the worst verdict."
        text = f"{sweep.provenance(folder)}\n\n{how}\n\n{tables}"
        write_page(docs / "strategies.md", "Strategies, side by side", text)


if __name__ == "__main__":
    main()
