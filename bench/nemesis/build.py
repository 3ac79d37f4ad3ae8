"""The faults that a run was asked for."""

from collections.abc import Callable
from random import Random

from bench.cluster import Cluster
from bench.loop import Loop
from bench.nemesis.fault import Fault
from bench.nemesis.fence import Fence
from bench.nemesis.links import LEVELS, Links
from bench.nemesis.partition import Partition
from bench.nemesis.processes import Kill, Pause
from bench.nemesis.store import Store
from bench.net import Network
from bench.options import TestOptions
from bench.services.trouble import Trouble
from bench.weather import Weather
from runs.faults.names import FAULTS


def make_faults(
    options: TestOptions,
    *,
    loop: Loop,
    network: Network,
    cluster: Cluster,
    trouble: Trouble,
    random: Callable[[str], Random],
) -> list[Fault]:
    """In the order of `FAULTS`, which is the order in which they are ended together."""
    nodes, targets = options.nodes, options.nemesis_targets
    weather = Weather(nodes, options.latency_ms > 0, random("weather"))
    faults: list[Fault] = [
        Partition(network, nodes, options.partition_shapes),
        Kill(cluster, targets),
        Pause(cluster, targets),
        *(Links(name, network, weather, nodes, targets) for name in LEVELS),
        Store(trouble, nodes, targets),
        Fence(cluster, network, loop),
    ]
    assert tuple(fault.name for fault in faults) == FAULTS
    return [fault for fault in faults if fault.name in options.nemesis]
