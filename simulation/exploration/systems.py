"""What a setting says, as a system: of nodes, or of processes on a bucket."""

from collections.abc import Callable

from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.copies import Nodes
from simulation.exploration.schedule import ExploredCluster
from simulation.exploration.search import System
from simulation.exploration.setting import Setting
from simulation.nodes import StrategyMaker


def systems_of(setting: Setting, make: StrategyMaker | None = None) -> Callable[[], System]:
    """Makes systems for one search; they may share what nodes have done before. `make`: strategies of nodes."""
    if setting.programs:
        return lambda: ExploredBucket(setting)
    nodes = Nodes(setting, make)
    return lambda: ExploredCluster(nodes)


def new_system(setting: Setting, make: StrategyMaker | None = None) -> System:
    """One system, which shares nothing."""
    if setting.programs:
        return ExploredBucket(setting)
    return ExploredCluster(Nodes(setting, make))
