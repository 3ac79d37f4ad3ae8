"""What is searched, and a search in slices, after each of which its progress can be told."""

import time
from collections.abc import Callable
from functools import partial
from math import inf

from runs.collection import collected_quietly
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.explored import Explored
from simulation.exploration.processes import Processes
from simulation.exploration.search import Search
from simulation.exploration.setting import Setting
from simulation.nodes import StrategyMaker

SLICE_S = 10.0  # of CPU, after which progress is told


def systems_of(
    setting: Setting, make: StrategyMaker | None = None, *, keep: bool = False
) -> Callable[[], Explored]:
    """Makes systems for one search, which share what processes have done before.

    `make`: strategies of nodes; `keep`: keep the journal of messages.
    """
    kind = ExploredBucket if setting.programs else ExploredCluster
    return partial(kind, Processes(setting, make), keep=keep)


def run(
    setting: Setting,
    search: Search,
    *,
    cpu_s_max: float | None = None,
    report: Callable[[], object] = lambda: None,
    make: StrategyMaker | None = None,
) -> None:
    """Search until all is done, something fails, or about `cpu_s_max` seconds of CPU of this call.

    `report` is called after each slice.
    """
    end_s = inf if cpu_s_max is None else search.cpu_s + cpu_s_max
    systems = systems_of(setting, make)
    with collected_quietly():
        while not (search.done or search.cpu_s >= end_s):
            began_s = time.process_time()
            until_s = began_s + min(SLICE_S, end_s - search.cpu_s)
            search.run(systems, lambda until_s=until_s: time.process_time() > until_s)  # type: ignore[misc]
            search.cpu_s += time.process_time() - began_s
            report()


def explored(
    setting: Setting,
    make: StrategyMaker | None = None,
    cpu_s_max: float | None = None,
    seed: int | None = None,
    delays: int | None = None,
) -> Search:
    """The whole search of a setting, or all of it within a bound on delays."""
    search = Search(seed=seed, delays=delays)
    run(setting, search, cpu_s_max=cpu_s_max, make=make)
    return search
