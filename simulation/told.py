"""Prints a failing seed made small: its command, its anomaly, its diagram and the message that decided it."""

from pathlib import Path

from rich.console import Console

from plots.lamport import lamport_svg
from simulation.flags import whole_command_of
from simulation.garbage import collected_quietly
from simulation.judge import Report, judged, simulate
from simulation.scenario import Scenario
from simulation.smaller import smallest
from simulation.story import Story, brief, story_of, text_of
from simulation.world import World


def tell_smallest(scenario: Scenario, picture: Path, console: Console) -> Report:
    """Shrink a failing scenario and tell of the result; the diagram goes to `picture`."""
    report = simulate(scenario)
    console.print(f"shrinking seed {scenario.seed}: {report.operations} operations")
    small = smallest(report, told=lambda line: console.print(f"  {line}", markup=False))
    with collected_quietly():
        world = World(small.scenario, keep=True)
        small = judged(world)
        story = story_of(world, small)
    failure = small.failures[0]
    console.print(f"\n✘ {failure.name}", style="bold red", markup=False)
    console.print(f"  {failure.text}\n", markup=False)
    for line in text_of(story):
        style = "bold red" if line.startswith(">>") else None
        console.print(line, markup=False, style=style)
    picture.parent.mkdir(parents=True, exist_ok=True)
    title = f"{small.scenario.strategy}: {failure.name}"
    picture.write_text(lamport_svg(story.events, title, story.decisive), encoding="utf-8")
    console.print(f"\nDecided by {_decisive(story)}", markup=False)
    console.print(f"{small.operations} operations: {picture}", markup=False)
    console.print(f"replay: {whole_command_of(small.scenario)}", markup=False)
    return small


def _decisive(story: Story) -> str:
    for event in story.events:
        message = event["message"]
        if message["id"] == story.decisive:
            what = f"message {message['id']}, {message['src']} to {message['dest']}"
            return f"{what}: {brief(message['body'])}"
    return "no message: something did not come, or came too late."
