"""What a setting says, as a system: of nodes, or of processes on a bucket."""

from collections.abc import Callable

from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.copies import CopiedCluster, Nodes
from simulation.exploration.search import System
from simulation.exploration.setting import AnySetting, BucketSetting
from simulation.nodes import StrategyMaker


def systems_of(setting: AnySetting, make: StrategyMaker | None = None) -> Callable[[], System]:
    """Makes systems for one search; they may share what nodes have done before. `make`: strategies of nodes."""
    if isinstance(setting, BucketSetting):
        return lambda: ExploredBucket(setting)
    nodes = Nodes(setting, make)
    return lambda: CopiedCluster(nodes)


def new_system(setting: AnySetting, make: StrategyMaker | None = None) -> System:
    """One system, which shares nothing."""
    if isinstance(setting, BucketSetting):
        return ExploredBucket(setting)
    return ExploredCluster(setting, make)
