"""Compare the strategies by the runs of sweeps/comparison.toml: docs/performance/strategies.md.

    python -m performance.strategies [results/comparison] [--docs docs/performance]

Medians over repetitions, beside figures that were published and aims (performance/configurations.py).
"""

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.markdown import Markdown

from performance import sweep_records as of_sweep
from performance import table_lines
from performance.configurations import (
    CONFIGURATIONS,
    SUBJECT,
    Bound,
    Configuration,
    OnRealTool,
)
from performance.sweep_records import (
    Records,
    Summaries,
    cell,
    strategies_of,
    summarise,
    verdict_words,
)
from runs.sweeps import FIGURES

LEFT_OUT = ("ok_fraction_of_all",)  # a client's `crash` never succeeds, whatever the node does


class Verdict(NamedTuple):
    """An aim and its outcome; `met` is None when it was not measured."""

    sentence: str
    measured: str
    met: bool | None


REAL = "real tool (measured elsewhere)"
NEAR = 0.1  # a figure that differs by a larger share from the real tool's is named

_VERDICTS = {"valid": "valid", "strict_valid": "valid by --strict"}


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
    title = FIGURES[bound.figure].title
    if bound.than is None:
        return f"{title} {bound.relation} {bound.limit:g}"
    times = "" if bound.limit == 1 else f"{bound.limit:g} x "
    value = "" if limit is None else f" ({_number(limit, bound.figure)})"
    return f"{title} {bound.relation} {times}that of `{bound.than[1]}`{value}"


def _number(value: float, figure: str) -> str:
    if figure in _VERDICTS:
        return "yes" if value else "no"
    return f"{value:.{FIGURES[figure].decimals}f}"


def rows(
    strategies: Sequence[str], configuration: Configuration, summaries: Summaries
) -> list[list[str]]:
    """One row a figure, one column a strategy; a strict verdict only where it was asked for.

    The last column has the figures of the real tool, if there are any.
    """
    found = [summaries.get((configuration.name, name), {}) for name in strategies]
    real = {each.figure: _range(each) for each in configuration.real}
    numbers = [
        [
            column.title,
            *(cell(each.get(figure), column) for each in found),
            *([real.get(figure, "")] if real else []),
        ]
        for figure, column in FIGURES.items()
        if figure not in LEFT_OUT
    ]
    verdicts = [
        [title, *(verdict_words(each, verdict) for each in found), *([""] if real else [])]
        for verdict, title in (("valid", "verdict"), ("strict_valid", "verdict by `--strict`"))
        if any(verdict in each for each in found)
    ]
    return [*numbers, *verdicts]


def _range(each: OnRealTool) -> str:
    low, high = _number(each.low, each.figure), _number(each.high, each.figure)
    return low if low == high else f"{low} to {high}"


def unlike_the_real_tool(configuration: Configuration, summaries: Summaries) -> list[str]:
    """The figures of `leaderless` that lie more than a tenth outside of what the real tool showed."""
    measured = summaries.get((configuration.name, SUBJECT), {})
    found = []
    for each in configuration.real:
        summary = measured.get(each.figure)
        if summary and not each.low * (1 - NEAR) <= summary.middle <= each.high * (1 + NEAR):
            ours = _number(summary.middle, each.figure)
            found.append(f"{FIGURES[each.figure].title} {ours}, there {_range(each)}")
    return found


def markdown(
    configurations: Sequence[Configuration], strategies: Sequence[str], records: Records
) -> str:
    """For each measured configuration a table, published figures, its aims, and the anomalies."""
    summaries = summarise(records)
    parts = []
    for configuration in measured(configurations, summaries):
        parts.append(f"## {configuration.title}\n")
        real = [REAL] if configuration.real else []
        titles = ["", *(f"`{name}`" for name in strategies), *real]
        figures = rows(strategies, configuration, summaries)
        parts.append("\n".join(table_lines(titles, figures)) + "\n")
        parts.append("\n".join(_notes(configuration, summaries, records)) + "\n")
    return "\n".join(parts)


def measured(configurations: Sequence[Configuration], summaries: Summaries) -> list[Configuration]:
    """The configurations of which there is at least one run."""
    cases = {case for case, _ in summaries}
    return [each for each in configurations if each.name in cases]


def _notes(configuration: Configuration, summaries: Summaries, records: Records) -> list[str]:
    marks = {True: "✔ met", False: "✘ missed", None: "?"}
    known = [f"- Known: {configuration.known}."] if configuration.known else []
    aims = [
        f"- Aim: {each.sentence}. {each.measured}: **{marks[each.met]}**"
        for each in judge(configuration, summaries)
    ]
    unlike = unlike_the_real_tool(configuration, summaries)
    real = [f"- More than a tenth from the real tool ([why](../bench.md)): {'; '.join(unlike)}."]
    notes = [
        *known,
        *aims,
        *(real if unlike else []),
        *(f"- {each}" for each in troubles(configuration.name, records)),
    ]
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


def section(folder: Path, records: Records) -> str:
    how = (
        f"{of_sweep.provenance(folder)}\n\n{len(records)} runs. Medians over repetitions, lowest and highest in"
        " brackets;\nthe worst verdict and the lowest fraction of sends and polls that were ok.\n"
    )
    return how + "\n" + markdown(CONFIGURATIONS, strategies_of(records), records)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results/comparison"))
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
def main(folder: Path, docs: Path | None) -> None:
    console = Console()
    records = of_sweep.records(folder, lambda cell: cell.get("name"))
    shown = measured(CONFIGURATIONS, summarise(records))
    console.print(Markdown(markdown(CONFIGURATIONS, strategies_of(records), records)))
    if docs and len(shown) < len(CONFIGURATIONS):
        console.print(f"{docs} stays as it is: it shows all configurations or none")
    elif docs:
        of_sweep.write_page(
            docs / "strategies.md", "Strategies, side by side", section(folder, records)
        )


if __name__ == "__main__":
    main()
