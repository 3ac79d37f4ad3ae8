"""Make a page of docs/performance, or a part of it, from the runs of a sweep.

    python -m performance.pages strategies [results/comparison] [--docs docs/performance]
    python -m performance.pages scaling [results/scaling] [--docs docs/performance]
    python -m performance.pages stores-under-faults [results/stores MORE...] [--docs docs/performance]

`strategies`: medians over repetitions, beside figures that were published, and aims. `scaling`: how messages,
latency and CPU grow; one thing grows at a time, and docs/images/performance-<what>.svg shows it.
`stores-under-faults`: how runs on real stores end, and what they cost. On a server that is there already,
such as Ceph's gateway, the same sweep has another folder:

    ./maelstrom sweep bench/sweep/stores.toml --name ceph --set store-server=s3://logs --set name=Ceph

The runs are in bench/sweep/comparison.toml and bench/sweep/scaling.toml, under the names of the
configurations. An aim is a bound on a figure of `leaderless` (the median over repetitions), absolute or
relative to the same figure of another strategy or of another configuration in the same run.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import click

from bench.sweep.making import MACHINE_FILE
from performance.age import line
from performance.harness import A_PATH, command_lines, program, table_lines, write_page
from runs import sweeps
from runs.facts import grouped
from runs.figures import number_of
from runs.sweeps import CRASHED, Cell, Row, Summary

# ---------------------------------------------------------------- configurations

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

_NODES = "5 nodes, 2n, rate 1000, latency 10 ms"
SLOPES = (
    Slope("nodes", "Nodes (2 clients each, rate 1000, latency 10 ms)", "nodes", "nodes"),
    Slope("clients", "Clients per node (5 nodes, rate 1000, latency 10 ms)", "clients per node", "concurrency"),
    Slope("keys", f"Keys at a time ({_NODES})", "keys at a time", "keys"),
    Slope(
        "messages", "Messages per key (5 nodes, 2n, one key, rate 10 000, no latency)",
        "messages of the longest key", "max-writes-per-key", "longest_key_messages",
    ),
)  # fmt: skip


# ---------------------------------------------------------------- measured

SHOWN = (
    *("server_messages_per_op", "throughput_ops_per_s", "send_p50_ms", "send_p99_ms"),
    "poll_p99_ms",
)
REAL = "real tool (measured elsewhere)"
WORST = ("valid", "strict_valid", "ok_fraction")  # the worst run counts, not the median
_MARKS = {True: "✔ met", False: "✘ missed", None: "?"}
_VERDICTS = {"valid": "valid", "strict_valid": "valid by --strict"}
ROWS_OF_VERDICTS = {"valid": "verdict", "strict_valid": "verdict by `--strict`"}
_WORDS = {1.0: "valid", 0.0: "**invalid**", None: "–"}

Found = Mapping[tuple[str, str], Cell]  # the runs of each case and strategy


# ------------------------------------------------------------ the runs of a sweep, and their spread


def rows_of(folder: Path) -> list[Row]:
    """The runs of a sweep."""
    if rows := [*sweeps.read(folder).values()]:
        return rows
    raise click.UsageError(f"{folder} is no folder of a sweep: run ./maelstrom sweep first.")


def found_in(rows: Iterable[Row], case: Callable[[Mapping[str, Any]], str | None]) -> Found:
    """Runs by case and strategy, as first run: `case` names the case of a cell, or leaves it out."""
    named = ((case(row.cell), row) for row in rows)
    groups = grouped(((name, row.cell["strategy"]), row) for name, row in named if name is not None)
    return {key: Cell(group) for key, group in groups.items()}


def strategies_of(found: Found) -> list[str]:
    """The columns: strategies in the order in which they were first run."""
    return list(dict.fromkeys(strategy for _, strategy in found))


def summary(cell: Cell | None, figure: str) -> Summary | None:
    """Median, lowest and highest of a figure over the runs that have it.

    A verdict counts as its worst: one invalid run of three is invalid (`middle` is then the minimum). A run
    that left no figures at all counts as invalid and for nothing else.
    """
    if cell is None:
        return None
    lost = [0.0 for row in cell.rows if not row.figures] if figure == "valid" else []
    whole = Summary.of([*cell.values(figure), *lost])
    return whole._replace(middle=whole.low) if whole and figure in WORST else whole


def title_of(figure: str) -> str:
    """Its name for people."""
    return number_of(figure).heading


def text(summary: Summary | None, figure: str) -> str:
    """The median of a figure, with lowest and highest where they differ."""
    if summary is None:
        return "–"
    middle, low, high = summary.text(number_of(figure).decimals)
    return middle if low == high else f"{middle} ({low}–{high})"


def verdict_words(cell: Cell | None, verdict: str) -> str:
    """In words, as `valid` or `strict_valid` has it."""
    worst = summary(cell, verdict)
    return _WORDS[worst and float(bool(worst.middle))]


def machine(folder: Path) -> dict[str, Any]:
    """What the sweep of a folder wrote of its machine, its command and the code."""
    found: dict[str, Any] = json.loads((folder / MACHINE_FILE).read_text())
    return found


def provenance(folder: Path) -> str:
    """How the figures were made: the command, the code, the machine and its load, as Markdown."""
    made = machine(folder)
    text = (
        f"On {made['started'][:10]}, commit {made['commit']}; {made['cores']} cores of {made['cpu']},"
        f" Linux {made['kernel']}, Python {made['python']}; load average at the start {made['load']:.1f}."
        " Nodes, clients, network and services share these cores."
    )
    return command_lines(made["command"]) + "\n\n" + textwrap.fill(text, 100)


# ------------------------------------------------------------ strategies


class Verdict(NamedTuple):
    """An aim and its outcome; `met` is None when it was not measured."""

    sentence: str
    measured: str
    met: bool | None


def judge(bound: Bound, case: str, found: Found) -> Verdict:
    """The outcome of an aim of a configuration."""
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
    title = title_of(bound.figure) + (f" of `{bound.of}`" if bound.of != SUBJECT else "")
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
            yield [title_of(figure), *(text(each, figure) for each in figures), *last]
    for verdict, title in ROWS_OF_VERDICTS.items():
        if any(summary(cell, verdict) for cell in cells):
            yield [title, *(verdict_words(cell, verdict) for cell in cells), *[""] * bool(real)]


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
    for (name, strategy), cell in found.items():
        if name == case:
            for trouble, count in Counter(map(_trouble, cell.rows)).items():
                if trouble:
                    yield f"`{strategy}`, {count} of {len(cell.rows)} runs: {trouble}."


def _trouble(row: Row) -> str:
    if row.verdict == CRASHED:
        return f"exit status {row.exit_status}"
    return ", ".join(f"`{each}`" for each in row.anomalies)


def strategies_page(folder: Path, _: Path) -> Iterator[str]:
    """All configurations that were measured."""
    runs = rows_of(folder)
    found = found_in(runs, lambda cell: cell.get("name"))
    yield provenance(folder)
    yield f"{len(runs)} runs. Medians over repetitions, lowest and highest in brackets; the worst verdict."
    yield markdown(CONFIGURATIONS, strategies_of(found), found)


# ------------------------------------------------------------ scaling


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
    """A slope on the page: one row a point and strategy, with the verdict of a wrong run."""
    titles = [slope.label, *map(title_of, _OF_SLOPES)]
    rows = (
        [
            ", ".join((f"{at:.0f}", *([f"`{strategy}`"] if strategies[1:] else ()), *wrong)),
            *(text(summary(cell, name), name) for name in _OF_SLOPES),
        ]
        for strategy in strategies
        for at, cell in points(slope, strategy, found)
        for wrong in [{verdict_words(cell, "valid")} - {"valid", "–"}]
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


# ------------------------------------------------------------ stores under faults


_OF_STORES = ("throughput_ops_per_s", "ok_fraction", "send_p99_ms")
_ABOUT = """\
A minute of clients and 10 s of recovery, on 3 nodes. *Valid*: no anomaly, and every node handed out every
acknowledged message; *not strict*: some node did not.
[What the faults do](../bench/stores-under-the-bench.md)."""


def stores_page(folder: Path, _: Path) -> Iterator[str]:
    """A table for each store."""

    def row(cell: Cell) -> list[str]:
        faults = str(cell.axes["faults"])
        worst = [_worst(cell, figure) for figure in _VERDICTS]
        verdict = worst[0] if worst[0] in worst[1:] else f"{worst[0]}, **not strict**"
        numbers = (text(cell.summary(name), name) for name in _OF_STORES)
        return ["all" if faults.count(",") > 2 else faults, verdict, *numbers]

    yield provenance(folder)
    by_store = grouped(
        (str(cell.axes.get("name", cell.axes["store-server"])), cell)
        for cell in sweeps.cells(rows_of(folder))
    )
    titles = ["fault", "verdict", *map(title_of, _OF_STORES)]
    for store, cells in by_store.items():
        yield f"## {store}\n\n" + "\n".join(table_lines(titles, (row(cell) for cell in cells)))


def _worst(cell: Cell, verdict: str) -> str:
    """The worst verdict of a cell's runs, in words; a run that left no figures is invalid by both."""
    found = [row.figures.get(verdict, 0.0) for row in cell.rows]
    return _WORDS[None if None in found else min(each for each in found if each is not None)]


# ------------------------------------------------------------ pages


NODE = ("leaderless/core", "leaderless/runtime", "leaderless/wire")


class Page(NamedTuple):
    """A page of the runs in `results/<sweep>`; all of `headings` are on it, or it stays as it is.

    `make` has its parts, from the folder of a sweep and that for pictures.
    """

    title: str
    sweep: str
    make: Callable[[Path, Path], Iterator[str]]
    about: Sequence[str] = ()
    headings: Sequence[str] = ()
    measured: Sequence[str] = NODE


PAGES = {
    "strategies": Page(
        "Strategies, side by side", "comparison", strategies_page,
        headings=[each.title for each in CONFIGURATIONS],
    ),
    "scaling": Page("How cost grows", "scaling", scaling_page),
    "stores-under-faults": Page(
        "Real stores under faults", "stores", stores_page, [_ABOUT],
        measured=(*NODE, "leaderless/store"),
    ),
}  # fmt: skip


@program(__doc__)
@click.argument("name", type=click.Choice([*PAGES]))
@click.argument("folders", type=A_PATH, nargs=-1)
@click.option("--docs", type=A_PATH)
def main(name: str, folders: tuple[Path, ...], *, docs: Path | None) -> None:
    page = PAGES[name]
    parts: list[str] = []
    made = folders or (Path("results", page.sweep),)
    for folder in made:
        parts += page.make(folder, docs.parent / "images" if docs else folder)
    content = "\n\n".join(parts)
    click.echo(content)
    if docs and all(f"## {heading}\n" in content for heading in page.headings):
        measured = line(page.measured, [machine(folder)["commit"] for folder in made])
        write_page(docs / f"{name}.md", page.title, measured, "\n\n".join([*page.about, *parts]))
    elif docs:
        click.echo(f"{docs} stays as it is: it shows all configurations or none")


if __name__ == "__main__":
    main()
