"""Keeps the files of a simulated run in a folder like that of any other run."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench import judge
from bench.failure import RunFailure
from bench.run import Outcome
from bench.store import utc_now
from runs.journal import FILE_NAME
from simulation.files import Ledger
from simulation.garbage import collected_quietly
from simulation.judge import Report, judged
from simulation.scenario import Scenario
from simulation.world import World


def simulate_into(run_dir: Path, scenario: Scenario, console: Console) -> Report:
    """As `simulate`, and leave history, journal, results and pictures in `run_dir`."""
    run_dir.mkdir(parents=True, exist_ok=True)
    options = replace(scenario.bench_options, store=str(run_dir.parent))
    test = judge.describe_test(options, utc_now())
    test |= {"engine": "simulation", "scenario": scenario.options()}
    with collected_quietly():
        world = World(
            scenario,
            history_file=Ledger((run_dir / "history.jsonl").open("wb")),
            journal_file=Ledger((run_dir / FILE_NAME).open("wb")),
        )
        report = judged(world)
    test["history_origin_ns"] = world.recorder.origin_ns
    judge.write_json(run_dir / "test.json", test)
    broken = RunFailure("\n".join(f"{each.name}: {each.text}" for each in report.failures))
    failure = broken if report.failures else None
    outcome = Outcome(report.history, world.network, failure, world.recorder.origin_ns)
    judge.write(run_dir, outcome, judge.judge(outcome, options, world.workload))
    if report.history:
        judge.draw(console, run_dir, report.history, test)
    return report
