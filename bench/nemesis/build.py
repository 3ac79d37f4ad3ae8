"""The faults that a run was asked for."""

from collections.abc import Callable

from bench.cluster import Cluster
from bench.nemesis.fault import Fault
from bench.nemesis.names import FAULTS
from bench.nemesis.partition import Partition
from bench.nemesis.processes import Kill, Pause
from bench.net import Network
from bench.options import TestOptions


def make_faults(options: TestOptions, network: Network, cluster: Cluster) -> list[Fault]:
    """In the order of `FAULTS`, which is the order in which they are ended together."""
    nodes, targets = options.nodes, options.nemesis_targets
    makers: dict[str, Callable[[], Fault]] = {
        "partition": lambda: Partition(network, nodes, options.partition_shapes),
        "kill": lambda: Kill(cluster, targets),
        "pause": lambda: Pause(cluster, targets),
    }
    return [makers[name]() for name in FAULTS if name in options.nemesis]
