"""What happened in a simulated run, counted: to see that a test tests what it is for."""

from collections import Counter

import orjson

from runs.collection import collected_quietly
from simulation.judge import Report, judged
from simulation.nodes import StrategyMaker
from simulation.scenario import Scenario
from simulation.world import World


def counted(scenario: Scenario, make: StrategyMaker | None = None) -> tuple[Report, Counter[str]]:
    """A run's report, and how many messages of each type were sent and operations of the nemesis done."""
    with collected_quietly():
        world = World(scenario, make, keep=True)
        report = judged(world)
    counts = Counter(op.f for op in report.history if op.process == "nemesis")
    for line in world.journal_file.content.splitlines():
        event = orjson.loads(line)
        if event["type"] == "send":
            body = event["message"]["body"]
            counts[f"error {body['code']}" if body["type"] == "error" else body["type"]] += 1
    return report, counts
