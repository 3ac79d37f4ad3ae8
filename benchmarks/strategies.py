"""All strategies on all configurations, paired, on the embedded bench: `make bench`.

    python -m benchmarks.strategies [--repetitions 3] [--time-limit 20] [--only 2-nodes] [--resume latest]

Within a repetition every configuration is run with each strategy in turn, on the same seed; the turn begins
with another strategy each time, so that none always has the quietest moment. Figures of each run are added to
results/bench/<time>/runs.jsonl as they come; the table is of medians over repetitions.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import series, table
from benchmarks.configurations import CONFIGURATIONS, STRATEGIES, Configuration
from benchmarks.measure import ROOT, Job
from benchmarks.series import Series
from benchmarks.series_command import measure_all, series_command

STORE = ROOT / "results" / "bench"
_BY_NAME = {each.name: each for each in CONFIGURATIONS}


def plan(
    configurations: Sequence[Configuration],
    strategies: Sequence[str],
    repetitions: int,
    time_limit_s: int,
) -> list[Job]:
    """Every run in its order: a whole table first, then the next repetition of it."""
    return [
        Job(
            case=configuration.name,
            strategy=strategy,
            repetition=repetition,
            flags=configuration.flags,
            time_limit_s=time_limit_s,
            recovery_s=configuration.recovery_s,
            strict=configuration.strict,
        )
        for repetition in range(1, repetitions + 1)
        for configuration in configurations
        for strategy in _turned(strategies, repetition - 1)
    ]


def _turned(strategies: Sequence[str], by: int) -> list[str]:
    by %= len(strategies)
    return [*strategies[by:], *strategies[:by]]


def section(run: Series, strategies: Sequence[str]) -> str:
    """The generated part of docs/performance.md."""
    settings, records = run.plan, run.records()
    command = (
        f"make bench REPETITIONS={settings['repetitions']} TIME_LIMIT={settings['time_limit']}"
    )
    how = (
        f"{series.provenance(settings, command)}\n\n{len(records)} runs of {settings['time_limit']} s;"
        f" medians of up to {settings['repetitions']} repetitions, lowest and highest in brackets; the"
        " worst verdict and the lowest fraction of sends and polls that were ok.\n"
    )
    return how + "\n" + table.markdown(CONFIGURATIONS, strategies, records)


@series_command(
    STORE,
    names=list(_BY_NAME),
    repetitions=3,
    time_limit=20,
    strategies=",".join(STRATEGIES),
    docs_help="Put the table into this document, between its markers.",
)
def main(run: Series, docs: Path | None, console: Console) -> None:
    """Run the strategies against each other and show the table."""
    chosen = run.plan["strategies"]
    configurations = [_BY_NAME[name] for name in run.plan["only"]]
    jobs = plan(configurations, chosen, run.plan["repetitions"], run.plan["time_limit"])
    finished = measure_all(run, jobs, console)
    if run.records():
        _show(run, chosen, docs, console)
    sys.exit(0 if finished else series.EXIT_INTERRUPTED)


def _show(run: Series, strategies: Sequence[str], docs: Path | None, console: Console) -> None:
    records = run.records()
    for configuration in table.measured(CONFIGURATIONS, table.summarise(records)):
        console.print(table.rich_table(configuration, strategies, records))
    text = section(run, strategies)
    (run.folder / "table.md").write_text(text)
    if docs and len(run.plan["only"]) < len(CONFIGURATIONS):
        console.print(f"{docs} stays as it is: it shows all configurations or none")
    elif docs:
        series.replace_section(docs, "bench", text)
    console.print(f"Figures and table: {run.folder}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
