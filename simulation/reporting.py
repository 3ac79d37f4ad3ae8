"""Leaves the files of a simulated run in a folder, and reports the smallest scenario that fails."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from bench.failure import RunFailure
from bench.run import RunResult
from bench.verdict import kept
from bench.verdict.checkers import judge
from runs.collection import collected_quietly
from runs.files import HISTORY, JOURNAL, OPTIONS
from runs.store import utc_now
from simulation.bucket_world import world_of
from simulation.judge import Report, judged, simulate
from simulation.scenario import Scenario
from simulation.shrink import USUAL, Effort, smallest, subject
from simulation.story import Story, brief, story_of, text_of


def simulate_into(run_dir: Path, scenario: Scenario, console: Console) -> Report:
    """As `simulate`, and leave history, journal, results and pictures in `run_dir`."""
    run_dir.mkdir(parents=True, exist_ok=True)
    options = replace(scenario.bench_options, store=str(run_dir.parent))
    test = kept.describe_test(options, utc_now())
    test |= {"engine": "simulation", "scenario": asdict(scenario)}
    with collected_quietly():
        world = world_of(
            scenario,
            history=(run_dir / HISTORY).open("wb"),
            journal=(run_dir / JOURNAL).open("wb"),
        )
        report = judged(world)
    test["history_origin_ns"] = world.recorder.origin_ns
    kept.write_json(run_dir / OPTIONS, test)
    broken = RunFailure("\n".join(f"{each.name}: {each.text}" for each in report.failures))
    failure = broken if report.ended_early else None
    outcome = RunResult(report.history, world.network, failure, world.recorder.origin_ns)
    kept.write_results(run_dir, judge(outcome, options, world.workload))
    if report.history:
        kept.draw(console, run_dir, report.history, test)
    return report


def report_smallest(
    scenario: Scenario, picture: Path, console: Console, effort: Effort = USUAL
) -> Report:
    """Shrink a failing scenario. Print its command, anomaly and story; draw messages into `picture`."""
    report = simulate(scenario)
    console.print(f"shrinking seed {scenario.seed}: {report.operations} operations")
    small = smallest(
        report, log=lambda line: console.print(f"  {line}", markup=False), effort=effort
    )
    failure = next(each for each in small.failures if each.name == subject(report))
    console.print(f"\n✘ {failure.name}", style="bold red", markup=False)
    console.print(f"  {failure.text}\n", markup=False)
    with collected_quietly():
        world = world_of(small.scenario, keep=True)
        story = story_of(world, judged(world), failure.name)
    show(text_of(story), console)
    draw(picture, story, f"{small.scenario.strategy}: {failure.name}")
    console.print(f"\nDecided by {_decisive(story)}", markup=False)
    console.print(f"picture: {picture}", markup=False)
    console.print(f"\n{small.operations} operations", markup=False)
    console.print(f"replay: {small.scenario.command()}", markup=False)
    return small


def show(lines: Iterable[str], console: Console) -> None:
    """Print a story; its decisive message stands out."""
    for line in lines:
        console.print(line, markup=False, style="bold red" if line.startswith(">>") else None)


def draw(picture: Path, story: Story, title: str) -> None:
    """Draw a story's messages as a Lamport diagram."""
    from runs.plots.lamport import Bold, lamport_svg  # takes long to import

    decisive = {} if story.decisive is None else {story.decisive: None}
    drawing = lamport_svg(story.events, title, Bold("the message that decides", decisive))
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(drawing, encoding="utf-8")


def _decisive(story: Story) -> str:
    for event in story.events:
        message = event["message"]
        if message["id"] == story.decisive:
            what = f"message {message['id']}, {message['src']} to {message['dest']}"
            return f"{what}: {brief(message['body'])}"
    return "no message: something did not come, or came too late."
