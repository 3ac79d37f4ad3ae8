"""Runs a scenario on a virtual bucket, and says what was wrong, by name.

The anomalies are those of the kafka checker. `Progress`: after all faults the log cannot be read to its end, or
the run does not end. For our log also what breaks a law (`leaderless.hosting.laws`), and what
`leaderless.hosting.fsck` finds in the bucket.
"""

import time

from leaderless.hosting import fsck
from runs.collection import collected_quietly
from simulation.judge import CPU_S_MAX, Failure, Report, anomalies, ended_by, named
from simulation.objects.client import Network
from simulation.objects.loop import VirtualEventLoop, run_virtual
from simulation.objects.run import World
from simulation.objects.scenario import LEADERLESS, Scenario


def simulate(scenario: Scenario, cpu_s_max: float = CPU_S_MAX) -> Report:
    """Run a scenario and judge it; never raises for what a log does."""
    began_s = time.process_time()
    at_last: list[Failure] = []
    worlds: list[World] = []

    async def main(loop: VirtualEventLoop) -> None:
        worlds.append(World(scenario, loop))
        await worlds[0].execute()
        at_last.extend(await checked(worlds[0]))

    with collected_quietly():
        ended = [*ended_by(lambda: run_virtual(main), cpu_s_max)]
    [world] = worlds
    history = world.history.ops
    return Report(
        scenario=scenario,
        failures=[*lawless(world), *anomalies(history), *ended, *at_last],
        digest=world.digest,
        virtual_s=world.loop.now_s,
        cpu_s=time.process_time() - began_s,
        operations=sum(op.type == "invoke" for op in history),
        acts=scenario.operations,
        fault_acts=world.faults.acts.count,
        history=history,
        ended_early=bool(ended),
        journal=world.bucket.journal,
    )


def lawless(world: World) -> list[Failure]:
    """The first change of the bucket that broke a law, and the first step that is none of the model's.

    Then the first answer that broke a promise.
    """
    found = (world.laws.broken, world.model.settled(), world.broken)
    return [named(str(broken)) for broken in found if broken]


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
