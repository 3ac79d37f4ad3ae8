"""What is searched, and a search in slices that goes on where it was stopped.

After each slice the progress of the search is in the file, if there is one.
"""

import signal
import time
from collections.abc import Callable, Sized
from functools import partial
from math import inf
from pathlib import Path

import orjson

from bench.system import handled
from runs.collection import collected_quietly
from runs.writing import write_whole
from simulation.exploration.bucket import ExploredBucket
from simulation.exploration.cluster import ExploredCluster
from simulation.exploration.explored import Explored
from simulation.exploration.plain import plain, typed
from simulation.exploration.processes import Processes
from simulation.exploration.search import Search, System
from simulation.exploration.setting import Setting
from simulation.nodes import StrategyMaker

SLICE_S = 10.0  # of CPU, after which progress is kept


class OtherSearch(Exception):
    """The file keeps the progress of another search, or of none."""


def systems_of(
    setting: Setting, make: StrategyMaker | None = None, *, keep: bool = False
) -> Callable[[], Explored]:
    """Makes systems for one search, which share what processes have done before.

    `make`: strategies of nodes; `keep`: keep the journal of messages.
    """
    kind = ExploredBucket if setting.programs else ExploredCluster
    return partial(kind, Processes(setting, make), keep=keep)


def save(file: Path, setting: Setting, search: Search) -> None:
    """Keep the progress, all of it or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, [orjson.dumps(plain([_plan(setting, search), search])).decode()])


def resumed(file: Path, setting: Setting, search: Search) -> Search:
    """The search as the file has it, if there is one. Raises `OtherSearch`."""
    if not file.exists():
        return search
    try:
        plan, progress = orjson.loads(file.read_bytes())
        if plan != plain(_plan(setting, search)):
            raise ValueError("it is of other options")
        kept: Search = typed(Search, progress)
        kept.require_possible(systems_of(setting))
    except (TypeError, ValueError) as error:
        raise OtherSearch(
            f"{file} keeps no progress of this search: {error}. Name another file, or delete it"
        ) from None
    return kept


def _plan(setting: Setting, search: Search) -> tuple[object, ...]:
    """What tells one search from another."""
    return setting, search.merging, search.delays, search.seed


def run(
    setting: Setting,
    search: Search,
    *,
    cpu_s_max: float | None = None,
    report: Callable[[], object] = lambda: None,
    make: StrategyMaker | None = None,
) -> None:
    """Search until all is done, something fails, Ctrl-C, or about `cpu_s_max` seconds of CPU of this call.

    `report` is called after each slice, which Ctrl-C ends first.
    """
    end_s = inf if cpu_s_max is None else search.cpu_s + cpu_s_max
    systems = systems_of(setting, make)
    interrupted: list[bool] = []
    with collected_quietly(), handled(signal.SIGINT, lambda *_: interrupted.append(True)):
        while not (search.done or interrupted or search.cpu_s >= end_s):
            _slice(search, systems, min(SLICE_S, end_s - search.cpu_s), interrupted)
            report()
    if interrupted:
        raise KeyboardInterrupt


def _slice(
    search: Search, systems: Callable[[], System], slice_s: float, interrupted: Sized
) -> None:
    """Search for so many seconds of CPU, unless it is interrupted."""
    began_s = time.process_time()
    search.run(systems, lambda: bool(interrupted) or time.process_time() - began_s > slice_s)
    search.cpu_s += time.process_time() - began_s


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
