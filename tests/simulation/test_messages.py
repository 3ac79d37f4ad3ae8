"""How many messages between nodes and the store an operation costs: the same figure in every run of a seed."""

import pytest

from leaderless.core.pace import Pace
from leaderless.core.strategy import Options
from runs.collection import collected_quietly
from runs.history import NEMESIS
from simulation.judge import judged
from simulation.scenario import Scenario
from simulation.world import World

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize(("commits", "most"), [("deferred", 1.05), ("durable", 1.55)])
def test_messages_an_operation(commits: str, most: float) -> None:
    """Two nodes with two clients each at 1000 operations a second; the first design needed 1.04 to 1.08."""
    scenario = Scenario(
        1,
        nodes=2,
        clients=2,
        rate=1_000.0,
        latency_ms=0,
        time_limit_s=2.0,
        recovery_time_s=1.0,
        commits=commits,
    )
    with collected_quietly():
        world = World(scenario)
        world.execute()
    asked = [op for op in world.recorder.ops if op.type == "invoke" and op.process != NEMESIS]
    assert len(asked) > 1_500
    assert world.network.servers.sent / len(asked) <= most


@pytest.mark.parametrize(("nodes", "worth_s"), [(1, 0.0), (16, 0.0), (16, 1e-9), (16, 1e6)])
def test_any_price_is_safe(nodes: int, worth_s: float) -> None:
    """A price of 0 once ended in a `RecursionError`, with 16 nodes."""

    class Priced(Scenario):
        def options_of(self, node: str, life: int) -> Options:
            options = super().options_of(node, life)
            return options._replace(pace=Pace(message_worth_s=worth_s))

    scenario = Priced(
        1,
        nodes=nodes,
        clients=2,
        rate=2_000.0,
        latency_ms=1,
        time_limit_s=1.0,
        recovery_time_s=2.0,
        nemesis=("partition",),
        nemesis_interval_s=0.3,
    )
    assert not judged(World(scenario)).failures
