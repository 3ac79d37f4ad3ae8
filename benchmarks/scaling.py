"""How messages, latency and CPU grow with nodes, clients, keys and messages per key: `make bench-scaling`.

    python -m benchmarks.scaling [--time-limit 6] [--repetitions 1] [--only nodes] [--resume latest]

One thing grows at a time (benchmarks/slopes.py). Draws docs/images/performance-<what>.svg, one for each.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from bench.artifacts import style
from benchmarks import series, table
from benchmarks.configurations import SUBJECT
from benchmarks.measure import ROOT, Job
from benchmarks.series import Series
from benchmarks.series_command import measure_all, series_command
from benchmarks.slopes import SLOPES, Slope
from benchmarks.table import Summaries, Summary

STORE = ROOT / "results" / "bench-scaling"
_BY_NAME = {slope.name: slope for slope in SLOPES}
_PANELS = (
    (
        "messages an operation",
        (("servers", "server_messages_per_op"), ("all", "all_messages_per_op")),
    ),
    ("send latency (ms)", (("p50", "send_p50_ms"), ("p99", "send_p99_ms"))),
    ("CPU of all nodes (µs an operation)", (("", "node_cpu_us_per_op"),)),
)
_SHOWN = (
    "throughput_ops_per_s",
    "server_messages_per_op",
    "all_messages_per_op",
    "send_p50_ms",
    "send_p99_ms",
    "poll_p99_ms",
    "node_cpu_us_per_op",
)


def plan(
    slopes: Sequence[Slope], strategies: Sequence[str], repetitions: int, time_limit_s: int
) -> list[Job]:
    """Every run in its order: all slopes once, then the next repetition."""
    return [
        Job(
            case=slope.case(value),
            strategy=strategy,
            repetition=repetition,
            flags=slope.flags(value),
            time_limit_s=time_limit_s * slope.stretch(value),
        )
        for repetition in range(1, repetitions + 1)
        for slope in slopes
        for value in slope.values
        for strategy in strategies
    ]


Points = list[tuple[float, dict[str, Summary]]]


def points(slope: Slope, strategy: str, summaries: Summaries) -> Points:
    """What was measured of a slope: x and the figures there."""
    found = []
    for value in slope.values:
        figures = summaries.get((slope.case(value), strategy), {})
        if "server_messages_per_op" in figures:
            at = figures[slope.measured_x].middle if slope.measured_x else float(value)
            found.append((at, figures))
    return found


def draw(slope: Slope, strategies: Sequence[str], summaries: Summaries, path: Path) -> None:
    """Three panels over the same axis: messages, latency, CPU. A band shows lowest to highest."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    figure.suptitle(slope.title, x=0.01, ha="left", fontsize=12, color=style.INK, weight="bold")
    panels: list[Axes] = list(figure.subplots(1, len(_PANELS)))
    for axes, (title, lines) in zip(panels, _PANELS, strict=True):
        colours = iter(style.SERIES_COLOURS * 2)
        for strategy in strategies:
            prefix = f"{strategy} " if len(strategies) > 1 else ""
            measured = points(slope, strategy, summaries)
            for name, figure_name in lines:
                _line(axes, measured, figure_name, f"{prefix}{name}".strip(), next(colours))
        _finish(axes, title, slope)
    # A fixed salt: the same figures give the same file.
    with rc_context({"svg.hashsalt": slope.name}):
        figure.savefig(path, metadata={"Date": None})


def _line(axes: Axes, measured: Points, figure: str, label: str, colour: str) -> None:
    shown = [(x, figures[figure]) for x, figures in measured if figure in figures]
    if not shown:
        return
    xs = [x for x, _ in shown]
    axes.plot(xs, [each.middle for _, each in shown], marker="o", ms=4, color=colour, label=label)
    lows, highs = [each.low for _, each in shown], [each.high for _, each in shown]
    axes.fill_between(xs, lows, highs, color=colour, alpha=0.15, lw=0)


def _finish(axes: Axes, title: str, slope: Slope) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=style.INK)
    axes.set_xlabel(slope.axis, color=style.INK)
    axes.set_xscale("log")
    if slope.measured_x is None:
        axes.set_xticks(slope.values, [f"{value:,}".replace(",", " ") for value in slope.values])
        axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.grid(color=style.GRID, lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=style.MUTED, labelsize=9, length=3)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(style.MUTED)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False, fontsize=9)


def rows(slope: Slope, strategies: Sequence[str], summaries: Summaries) -> list[list[str]]:
    """One row a point and strategy."""
    lines = []
    for strategy in strategies:
        for at, figures in points(slope, strategy, summaries):
            numbers = [table.cell(figures.get(name), table.TITLES[name]) for name in _SHOWN]
            verdict = table.verdict_words(figures, "valid")
            first = f"{at:.0f}" if len(strategies) == 1 else f"{at:.0f}, `{strategy}`"
            lines.append([first, *numbers, verdict])
    return lines


def section(slope: Slope, strategies: Sequence[str], summaries: Summaries) -> str:
    """The generated part of a slope in docs/performance.md."""
    titles = [slope.axis, *(table.TITLES[name].title for name in _SHOWN), "verdict"]
    lines = table.markdown_table(titles, rows(slope, strategies, summaries))
    return f"![{slope.title}](images/performance-{slope.name}.svg)\n\n{lines}"


@series_command(
    STORE,
    names=list(_BY_NAME),
    repetitions=1,
    time_limit=6,
    strategies=SUBJECT,
    docs_help="Put the tables into this document, between its markers, and the plots into images/ beside it.",
)
def main(run: Series, docs: Path | None, console: Console) -> None:
    """Measure the slopes and draw them."""
    slopes = [_BY_NAME[name] for name in run.plan["only"]]
    jobs = plan(slopes, run.plan["strategies"], run.plan["repetitions"], run.plan["time_limit"])
    finished = measure_all(run, jobs, console)
    for slope in slopes:
        _publish(slope, run, docs)
    if docs and run.records():
        series.replace_section(docs, "bench-scaling", _how(run))
    console.print(f"Figures and plots: {run.folder}", highlight=False, soft_wrap=True)
    sys.exit(0 if finished else series.EXIT_INTERRUPTED)


def _publish(slope: Slope, run: Series, docs: Path | None) -> None:
    """Draw a slope that has been measured, and put it into the document."""
    summaries, strategies = table.summarise(run.records()), run.plan["strategies"]
    if not any(points(slope, strategy, summaries) for strategy in strategies):
        return
    images = docs.parent / "images" if docs else run.folder
    images.mkdir(exist_ok=True)
    draw(slope, strategies, summaries, images / f"performance-{slope.name}.svg")
    if docs:
        text = section(slope, strategies, summaries)
        series.replace_section(docs, f"bench-scaling {slope.name}", text)


def _how(run: Series) -> str:
    settings = run.plan
    repeated = f"{settings['repetitions']} x {settings['time_limit']} s a point"
    return f"{series.provenance(settings, 'make bench-scaling')} {repeated}."


if __name__ == "__main__":
    main()
