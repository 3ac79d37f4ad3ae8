"""Runs a scenario on a virtual bucket, and says what was wrong, by name.

The anomalies are those of the kafka checker. `Progress`: after all faults the log cannot be read to its end, or
the run does not end. For our log also what breaks a law (`leaderless.library.laws`), and what
`leaderless.library.fsck` finds in the bucket.
"""

import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field

from leaderless.library import fsck
from runs.collection import collected_quietly
from runs.history import Op
from simulation.judge import HARMLESS, Failure, Stuck, cpu_limited, named
from simulation.objects.bucket import Request, Usage
from simulation.objects.client import Network
from simulation.objects.loop import Deadlock, VirtualEventLoop, run_virtual
from simulation.objects.run import World
from simulation.objects.scenario import LEADERLESS, Scenario
from workloads.kafka import judge as kafka_judge

CPU_S_MAX = 60.0


@dataclass(slots=True)
class Report:
    """What a run showed; `faults`: how many faults of requests were drawn; `journal`: all requests."""

    scenario: Scenario
    failures: list[Failure]
    digest: str
    virtual_s: float
    cpu_s: float
    faults: int
    usage: Usage
    history: list[Op] = field(default_factory=list)
    journal: list[Request] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of what is wrong, the first first."""
        return [failure.name for failure in self.failures]

    @property
    def acts(self) -> int:
        """How many acts were drawn."""
        return self.scenario.operations

    @property
    def fault_acts(self) -> int:
        """How many faults of requests were drawn."""
        return self.faults

    @property
    def operations(self) -> int:
        """How many operations clients began."""
        return sum(op.type == "invoke" for op in self.history)


def simulate(scenario: Scenario, cpu_s_max: float = CPU_S_MAX) -> Report:
    """Run a scenario and judge it; never raises for what a log does."""
    began_s = time.process_time()
    failures: list[Failure] = []
    worlds: list[World] = []

    async def main(loop: VirtualEventLoop) -> None:
        worlds.append(World(scenario, loop))
        await worlds[0].execute()
        failures.extend(await checked(worlds[0]))

    try:
        with collected_quietly(), cpu_limited(cpu_s_max):
            run_virtual(main)
    except (Stuck, Deadlock) as stuck:
        failures.append(Failure("Progress", f"the run does not end: {stuck}"))
    except Exception as crash:
        failures.append(Failure("crash", f"{crash!r}\n{traceback.format_exc(limit=-6)}"))
    [world] = worlds
    return Report(
        scenario=scenario,
        failures=[*lawless(world), *anomalies(world), *failures],
        digest=world.digest,
        virtual_s=world.loop.now_s,
        cpu_s=time.process_time() - began_s,
        faults=world.faults.count,
        usage=world.bucket.usage,
        history=world.history.ops,
        journal=world.bucket.journal,
    )


def lawless(world: World) -> list[Failure]:
    """The first change of the bucket that broke a law, and the first wrong list of committed offsets."""
    found = [named(str(world.laws.broken))] if world.laws.broken else []
    return found + ([world.commits.broken] if world.commits.broken else [])


async def checked(world: World) -> list[Failure]:
    """What is wrong with the log as it stands at the end."""
    if world.unread:
        return [Failure("Progress", f"the log cannot be read to its end: {world.unread}")]
    if world.scenario.log != LEADERLESS:
        return []
    report = await fsck.check(world.store("fsck", Network(latency_ms=0)))
    return [
        Failure(finding.invariant, f"{finding.object}: {finding.text}")
        for finding in report.findings
    ]


def anomalies(world: World) -> Iterator[Failure]:
    """What the kafka checker holds against the history."""
    judge = kafka_judge()
    history = world.history.ops
    result = judge.check(history, {})
    for finding in judge.explain(result, history):
        if finding.invalidating and finding.type not in HARMLESS:
            yield Failure(finding.type, finding.sentence)
