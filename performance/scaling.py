"""How messages, latency and CPU grow: one thing grows at a time, in the runs of bench/sweep/scaling.toml."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
from runs.sweeps import Cell


class Slope(NamedTuple):
    """A plot of the matrices called `name`, over `axis` of their cells; `label` is below it.

    `measured_x`, if any, is the figure to draw against instead: the value that a run reached, not
    the one that it was allowed.
    """

    name: str
    title: str
    label: str
    axis: str
    measured_x: str | None = None


SLOPES = (
    Slope("nodes", "Nodes (2 clients each, rate 1000, latency 10 ms)", "nodes", "nodes"),
    Slope("clients", "Clients per node (5 nodes, rate 1000, latency 10 ms)", "clients per node", "concurrency"),
    Slope("keys", "Keys at a time (5 nodes, 2n, rate 1000, latency 10 ms)", "keys at a time", "keys"),
    Slope(
        "messages", "Messages per key (5 nodes, 2n, one key, rate 10 000, no latency)",
        "messages of the longest key", "max-writes-per-key", "longest_key_messages",
    ),
)  # fmt: skip

_SERVERS = "server_messages_per_op"
_PANELS = (
    ("messages an operation", (("servers", _SERVERS), ("all", "all_messages_per_op"))),
    ("send latency (ms)", (("p50", "send_p50_ms"), ("p99", "send_p99_ms"))),
    ("CPU of all nodes (µs an operation)", (("", "node_cpu_us_per_op"),)),
)
_OF_SLOPES = ("throughput_ops_per_s", _SERVERS, "send_p50_ms", "node_cpu_us_per_op")


def case(axes: Mapping[str, Any]) -> str | None:
    """The name of a cell's point: its slope and where it is on it; of `2n` clients the 2."""
    at = {slope.name: slope.axis for slope in SLOPES}.get(str(axes.get("name")))
    return at and f"{axes['name']}={str(axes[at]).removesuffix('n')}"


def points(slope: Slope, strategy: str, found: Found) -> list[tuple[float, Cell]]:
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
    from runs.plots.groups import growth  # no other page needs matplotlib

    at = {each: points(slope, each, found) for each in strategies}

    panels = {
        title: {
            f"{each} {name}".strip() if len(strategies) > 1 else name: [
                (x, value) for x, cell in at[each] if (value := summary(cell, figure))
            ]
            for each in strategies
            for name, figure in lines
        }
        for title, lines in _PANELS
    }
    xs = sorted({x for each in at.values() for x, _ in each})
    picture = growth(slope.title, panels, slope.label, None if slope.measured_x else xs)
    path.write_text(picture.svg_document(), encoding="utf-8")


def section(slope: Slope, strategies: Sequence[str], found: Found) -> str:
    """A slope on the page: its picture, and of each strategy the ends and what is wrong."""
    titles = [slope.label, *(number_of(name).heading for name in _OF_SLOPES)]
    rows = (
        [
            ", ".join((f"{at:.0f}", *([f"`{strategy}`"] if strategies[1:] else ()), *wrong)),
            *(text(summary(cell, name), name) for name in _OF_SLOPES),
        ]
        for strategy in strategies
        for own in [points(slope, strategy, found)]
        for at, cell in own
        for wrong in [{verdict_words(cell, "valid")} - {"valid", "–"}]
        if wrong or at in (own[0][0], own[-1][0])
    )
    picture = f"![{slope.title}](../images/performance-{slope.name}.svg)"
    lines = "\n".join(table_lines(titles, rows))
    return f"## {slope.name.capitalize()}\n\n{picture}\n\n{lines}\n"


def scaling_page(folder: Path, images: Path) -> Iterator[str]:
    """All slopes that were measured, and their pictures."""
    found = found_in(rows_of(folder), case)
    strategies = strategies_of(found)
    images.mkdir(exist_ok=True)
    yield provenance(folder)
    for slope in SLOPES:
        if any(points(slope, strategy, found) for strategy in strategies):
            draw(slope, strategies, found, images / f"performance-{slope.name}.svg")
            yield section(slope, strategies, found)
