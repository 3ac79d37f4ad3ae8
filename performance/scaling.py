"""Show how messages, latency and CPU grow, by the runs of sweeps/scaling.toml.

    python -m performance.scaling [results/scaling] [--docs docs/performance]

One thing grows at a time (performance/configurations.py). Writes docs/performance/scaling.md, and draws
docs/images/performance-<what>.svg for each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from performance import sweep_records as of_sweep
from performance import table_lines
from performance.configurations import SLOPES, Slope
from performance.sweep_records import Summaries, strategies_of, summarise
from plots.groups import Line, growth
from runs.sweeps import FIGURES, Summary

_SERVERS = "server_messages_per_op"
_PANELS = (
    ("messages an operation", (("servers", _SERVERS), ("all", "all_messages_per_op"))),
    ("send latency (ms)", (("p50", "send_p50_ms"), ("p99", "send_p99_ms"))),
    ("CPU of all nodes (µs an operation)", (("", "node_cpu_us_per_op"),)),
)
_SHOWN = (
    *("throughput_ops_per_s", _SERVERS, "all_messages_per_op"),
    *("send_p50_ms", "send_p99_ms", "poll_p99_ms", "node_cpu_us_per_op"),
)


Points = list[tuple[float, dict[str, Summary]]]


def case(cell: Mapping[str, Any]) -> str | None:
    """The name of a cell's point: its slope and where it is on it."""
    for slope in SLOPES:
        if slope.name == cell.get("name"):
            return f"{slope.name}={_number(cell[slope.axis])}"
    return None


def points(slope: Slope, strategy: str, summaries: Summaries) -> Points:
    """What was measured of a slope: x and the figures there."""
    found = []
    for (name, of), figures in summaries.items():
        which, _, value = name.partition("=")
        if (which, of) == (slope.name, strategy) and _SERVERS in figures:
            at = figures[slope.measured_x].middle if slope.measured_x else float(value)
            found.append((at, figures))
    return sorted(found, key=lambda point: point[0])


def _number(value: Any) -> str:
    """Of `2n` clients the 2."""
    return str(value).removesuffix("n")


def draw(slope: Slope, strategies: Sequence[str], summaries: Summaries, path: Path) -> None:
    """Three panels over the same axis: messages, latency, CPU. A band shows lowest to highest."""
    measured = {each: points(slope, each, summaries) for each in strategies}
    panels = {
        title: [
            Line(_label(strategies, strategy, name), _values(measured[strategy], figure))
            for strategy in strategies
            for name, figure in lines
        ]
        for title, lines in _PANELS
    }
    xs = sorted({x for found in measured.values() for x, _ in found})
    picture = growth(slope.title, panels, slope.label, None if slope.measured_x else xs)
    path.write_text(picture.svg_document(), encoding="utf-8")


def _label(strategies: Sequence[str], strategy: str, name: str) -> str:
    return f"{strategy} {name}".strip() if len(strategies) > 1 else name


def _values(measured: Points, figure: str) -> list[tuple[float, Summary]]:
    return [(x, figures[figure]) for x, figures in measured if figure in figures]


def rows(slope: Slope, strategies: Sequence[str], summaries: Summaries) -> list[list[str]]:
    """One row a point and strategy."""
    lines = []
    for strategy in strategies:
        for at, figures in points(slope, strategy, summaries):
            numbers = [of_sweep.cell(figures.get(name), FIGURES[name]) for name in _SHOWN]
            verdict = of_sweep.verdict_words(figures, "valid")
            first = f"{at:.0f}" if len(strategies) == 1 else f"{at:.0f}, `{strategy}`"
            lines.append([first, *numbers, verdict])
    return lines


def section(slope: Slope, strategies: Sequence[str], summaries: Summaries) -> str:
    titles = [slope.label, *(FIGURES[name].title for name in _SHOWN), "verdict"]
    lines = "\n".join(table_lines(titles, rows(slope, strategies, summaries)))
    picture = f"![{slope.title}](../images/performance-{slope.name}.svg)"
    return f"## {slope.name.capitalize()}\n\n{picture}\n\n{lines}\n"


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path), default=Path("results/scaling"))
@click.option("--docs", type=click.Path(path_type=Path), help="The folder to write the page into.")
def main(folder: Path, docs: Path | None) -> None:
    records = of_sweep.records(folder, case)
    summaries, strategies = summarise(records), strategies_of(records)
    images = docs.parent / "images" if docs else folder
    images.mkdir(exist_ok=True)
    sections = [of_sweep.provenance(folder)]
    for slope in SLOPES:
        if any(points(slope, strategy, summaries) for strategy in strategies):
            draw(slope, strategies, summaries, images / f"performance-{slope.name}.svg")
            sections.append(section(slope, strategies, summaries))
    if docs:
        of_sweep.write_page(docs / "scaling.md", "How cost grows", "\n\n".join(sections))
    click.echo(f"Plots: {images}")


if __name__ == "__main__":
    main()
