"""What is searched, and a search in parts, over the cores, that goes on where it was stopped.

With one process there is one part. With more, the search is split near its beginning, and each part merges
its own states alone. So the number of events then depends on `jobs`; that of distinct states and ends does
not. Each part is searched in slices, and after each slice its progress is in the file.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field, replace
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
from simulation.exploration.search import Counts, Failed, Search, System, parts_of
from simulation.exploration.setting import Setting
from simulation.nodes import StrategyMaker
from simulation.pool import spread

SLICE_S = 10.0  # of CPU, after which progress is kept
PARTS_A_JOB = 16


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


@dataclass
class Campaign:
    """What is searched, and how far it is. `cpu_s` is CPU time of all processes."""

    setting: Setting
    search: Search
    parts: list[Search] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def failed(self) -> Failed | None:
        """The first failure in the order of the parts."""
        return next((part.failed for part in self.parts if part.failed), None)

    @property
    def done(self) -> bool:
        """Whether every part was searched, or one fails."""
        return bool(self.parts) and all(part.done for part in self.parts)

    @property
    def fraction(self) -> float:
        """The share that is done, if all branches were of equal size."""
        return sum(part.fraction for part in self.parts) / max(1, len(self.parts))

    @property
    def counts(self) -> Counts:
        """Of all parts."""
        names = Counts.__slots__
        return Counts(*(sum(getattr(part.counts, name) for part in self.parts) for name in names))

    @property
    def states(self) -> int:
        """How many distinct states were reached."""
        return len(set().union(*(part.states for part in self.parts)))

    @property
    def ends(self) -> int:
        """How many distinct ends were reached and judged."""
        return len(set().union(*(part.ends for part in self.parts)))

    @property
    def plan(self) -> tuple[object, ...]:
        """What tells one search from another."""
        search = self.search
        return self.setting, search.sleeping, search.merging, search.delays, search.seed

    def save(self, file: Path | None) -> None:
        """Keep the progress, all of it or none."""
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            kept = orjson.dumps(plain([self.plan, self.parts, self.cpu_s]))
            write_whole(file, [kept.decode()])

    def resumed(self, file: Path | None) -> "Campaign":
        """The campaign as the file has it, if there is one. Raises `OtherSearch`."""
        if not file or not file.exists():
            return self
        try:
            plan, parts, cpu_s = orjson.loads(file.read_bytes())
            if plan != plain(self.plan):
                raise ValueError("it is of other options")
            kept = replace(self, parts=typed(list[Search], parts), cpu_s=typed(float, cpu_s))
            new = systems_of(self.setting)
            for part in kept.parts:
                part.require_possible(new)
        except (TypeError, ValueError) as error:
            raise OtherSearch(
                f"{file} keeps no progress of this search: {error}. Name another file, or delete it"
            ) from None
        return kept


def run(
    campaign: Campaign,
    *,
    jobs: int = 1,
    cpu_s_max: float | None = None,
    file: Path | None = None,
    report: Callable[[Campaign], object] = lambda _: None,
    make: StrategyMaker | None = None,
) -> None:
    """Search until all is done, something fails, Ctrl-C, or about `cpu_s_max` seconds of CPU of this call.

    `report` is called after each slice. With `make`, which processes cannot share, `jobs` must be 1.
    """
    end_s = inf if cpu_s_max is None else campaign.cpu_s + cpu_s_max
    with collected_quietly():
        slices = _spread(campaign, jobs, end_s) if jobs > 1 else _here(campaign, make, end_s)
        try:
            for _ in slices:
                campaign.save(file)
                report(campaign)
        finally:
            campaign.save(file)


def explored(
    setting: Setting,
    make: StrategyMaker | None = None,
    cpu_s_max: float | None = None,
    seed: int | None = None,
    delays: int | None = None,
) -> Campaign:
    """The whole search of a setting in this process, or all of it within a bound on delays."""
    campaign = Campaign(setting, Search(seed=seed, delays=delays))
    run(campaign, cpu_s_max=cpu_s_max, make=make)
    return campaign


def _here(campaign: Campaign, make: StrategyMaker | None, end_s: float) -> Iterator[None]:
    """Search in this process, slice by slice; Ctrl-C ends the slice first."""
    campaign.parts = campaign.parts or [replace(campaign.search)]
    systems = systems_of(campaign.setting, make)
    interrupted: list[bool] = []
    with handled(signal.SIGINT, lambda *_: interrupted.append(True)):
        for part in campaign.parts:
            while not part.done and not interrupted and campaign.cpu_s < end_s:
                slice_s = min(SLICE_S, end_s - campaign.cpu_s)
                campaign.cpu_s += _sliced(part, systems, slice_s, interrupted)
                yield
    if interrupted:
        raise KeyboardInterrupt


def _spread(campaign: Campaign, jobs: int, end_s: float) -> Iterator[None]:
    """Search in processes, slice by slice."""
    if not campaign.parts:
        systems = systems_of(campaign.setting)
        campaign.parts = parts_of(replace(campaign.search), systems, PARTS_A_JOB * jobs)
    while not campaign.done and not campaign.failed and campaign.cpu_s < end_s:
        todo = [(place, part) for place, part in enumerate(campaign.parts) if not part.done]
        results = spread(partial(_slice, campaign.setting), todo, min(jobs, len(todo)))
        for place, part, cpu_s in results:
            campaign.parts[place] = part
            campaign.cpu_s += cpu_s
            yield
            if campaign.cpu_s >= end_s:
                break
        results.close()


def _slice(setting: Setting, work: tuple[int, Search]) -> tuple[int, Search, float]:
    """A slice of one part, in whatever process."""
    place, part = work
    with collected_quietly():
        return place, part, _sliced(part, systems_of(setting), SLICE_S)


def _sliced(part: Search, systems: Callable[[], System], slice_s: float, stop: Sized = ()) -> float:
    """Search for so many seconds of CPU, or until something is in `stop`; returns the seconds."""
    began_s = time.process_time()
    part.run(systems, lambda: bool(stop) or time.process_time() - began_s > slice_s)
    return time.process_time() - began_s
