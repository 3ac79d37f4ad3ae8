"""What a setting says, as a system: of nodes beside `lin-kv`, or of programs beside a bucket."""

from collections.abc import Callable
from functools import partial

from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.explored import Explored
from simulation.exploration.processes import Processes
from simulation.exploration.setting import Setting
from simulation.nodes import StrategyMaker


def systems_of(
    setting: Setting, make: StrategyMaker | None = None, *, keep: bool = False
) -> Callable[[], Explored]:
    """Makes systems for one search, which share what processes have done before.

    `make`: strategies of nodes; `keep`: keep the journal of messages.
    """
    kind = ExploredBucket if setting.programs else ExploredCluster
    return partial(kind, Processes(setting, make), keep=keep)
