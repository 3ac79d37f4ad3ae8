"""Show how messages, latency and CPU grow, by the runs of bench/sweep/scaling.toml.

    python -m performance.scaling [results/scaling] [--docs docs/performance]

One thing grows at a time (performance/configurations.py). Writes docs/performance/scaling.md, and draws
docs/images/performance-<what>.svg for each.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click

from performance import sweep_records as sweep
from performance.configurations import SLOPES, Slope
from performance.harness import APage, program, table_lines, write_page
from performance.sweep_records import Found, summary, text, verdict_words
from runs.figures import number_of
from runs.plots.groups import Line, growth
from runs.sweeps import Cell

_SERVERS = "server_messages_per_op"
_PANELS = (
    ("messages an operation", (("servers", _SERVERS), ("all", "all_messages_per_op"))),
    ("send latency (ms)", (("p50", "send_p50_ms"), ("p99", "send_p99_ms"))),
    ("CPU of all nodes (µs an operation)", (("", "node_cpu_us_per_op"),)),
)
_SHOWN = (
    *("throughput_ops_per_s", _SERVERS),
    *("send_p50_ms", "send_p99_ms", "node_cpu_us_per_op"),
)
Points = list[tuple[float, Cell]]


def case(axes: Mapping[str, Any]) -> str | None:
    """The name of a cell's point: its slope and where it is on it; of `2n` clients the 2."""
    at = {slope.name: slope.axis for slope in SLOPES}.get(str(axes.get("name")))
    return at and f"{axes['name']}={str(axes[at]).removesuffix('n')}"


def points(slope: Slope, strategy: str, found: Found) -> Points:
    """What was measured of a slope: x and the runs there."""
    points = []
    for (name, of), cell in found.items():
        which, _, value = name.partition("=")
        if (which, of) == (slope.name, strategy) and summary(cell, _SERVERS):
            at = summary(cell, slope.measured_x) if slope.measured_x else None
            points.append((at.middle if at else float(value), cell))
    return sorted(points, key=lambda point: point[0])


def draw(slope: Slope, strategies: Sequence[str], found: Found, path: Path) -> None:
    """Three panels over the same axis: messages, latency, CPU. A band shows lowest to highest."""
    measured = {each: points(slope, each, found) for each in strategies}

    def line(strategy: str, name: str, figure: str) -> Line:
        label = f"{strategy} {name}".strip() if len(strategies) > 1 else name
        values = ((x, summary(cell, figure)) for x, cell in measured[strategy])
        return Line(label, [(x, value) for x, value in values if value])

    panels = {
        title: [line(each, name, figure) for each in strategies for name, figure in lines]
        for title, lines in _PANELS
    }
    xs = sorted({x for each in measured.values() for x, _ in each})
    picture = growth(slope.title, panels, slope.label, None if slope.measured_x else xs)
    path.write_text(picture.svg_document(), encoding="utf-8")


def rows(slope: Slope, strategies: Sequence[str], found: Found) -> Iterator[list[str]]:
    """One row a point and strategy."""
    for strategy in strategies:
        for at, cell in points(slope, strategy, found):
            numbers = [text(summary(cell, name), name) for name in _SHOWN]
            first = f"{at:.0f}" if len(strategies) == 1 else f"{at:.0f}, `{strategy}`"
            yield [first, *numbers, verdict_words(cell, "valid")]


def section(slope: Slope, strategies: Sequence[str], found: Found) -> str:
    """A slope on the page."""
    titles = [slope.label, *(number_of(name).heading for name in _SHOWN), "verdict"]
    lines = "\n".join(table_lines(titles, rows(slope, strategies, found)))
    picture = f"![{slope.title}](../images/performance-{slope.name}.svg)"
    return f"## {slope.name.capitalize()}\n\n{picture}\n\n{lines}\n"


@program
def main(
    folder: Annotated[Path, click.Path(path_type=Path)] = Path("results/scaling"),
    *,
    docs: APage = None,
) -> None:
    found = sweep.found_in(sweep.rows_of(folder), case)
    strategies = sweep.strategies_of(found)
    images = docs.parent / "images" if docs else folder
    images.mkdir(exist_ok=True)
    sections = [sweep.provenance(folder)]
    for slope in SLOPES:
        if any(points(slope, strategy, found) for strategy in strategies):
            draw(slope, strategies, found, images / f"performance-{slope.name}.svg")
            sections.append(section(slope, strategies, found))
    if docs:
        write_page(docs / "scaling.md", "How cost grows", "\n\n".join(sections))
    click.echo(f"Plots: {images}")


if __name__ == "__main__":
    main()
