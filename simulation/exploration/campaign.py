"""A search in parts, over the cores, that goes on where it was stopped.

With one process there is one part. With more, the search is split near its beginning, and each part merges
its own states alone. So the number of events then depends on `jobs`; that of distinct states and ends does
not. Each part is searched in slices, and after each slice its progress is in the file.
"""

import pickle
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from bench.system import handled
from runs.collection import collected_quietly
from simulation.exploration.search import Counts, Failed, Search, System, parts_of
from simulation.exploration.systems import AnySetting, systems_of
from simulation.nodes import StrategyMaker
from simulation.pool import spread

SLICE_S = 10.0  # of CPU, after which progress is kept
PARTS_A_JOB = 16


class OtherSearch(Exception):
    """The file keeps the progress of another search."""


@dataclass
class Campaign:
    """What is searched, and how far it is; picklable. `cpu_s` is CPU time of all processes."""

    setting: AnySetting
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
        total = Counts()
        for part in self.parts:
            total.add(part.counts)
        return total

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
            draft = file.with_name(file.name + ".part")
            draft.write_bytes(pickle.dumps(self, protocol=5))
            draft.replace(file)

    def resumed(self, file: Path | None) -> "Campaign":
        """The campaign as the file has it, if there is one. Raises `OtherSearch`."""
        if not file or not file.exists():
            return self
        kept = pickle.loads(file.read_bytes())
        if not isinstance(kept, Campaign) or kept.plan != self.plan:
            raise OtherSearch(f"{file} keeps another search; name another file, or delete it")
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
    end_s = None if cpu_s_max is None else campaign.cpu_s + cpu_s_max
    with collected_quietly():
        if jobs > 1:
            _run_spread(campaign, jobs, end_s, file, report)
        else:
            _run_here(campaign, end_s, file, report, make)
    campaign.save(file)


def explored(
    setting: AnySetting,
    make: StrategyMaker | None = None,
    cpu_s_max: float | None = None,
    seed: int | None = None,
) -> Campaign:
    """The whole search of a setting in this process."""
    campaign = Campaign(setting, Search(seed=seed))
    run(campaign, cpu_s_max=cpu_s_max, make=make)
    return campaign


def _run_here(
    campaign: Campaign,
    end_s: float | None,
    file: Path | None,
    report: Callable[[Campaign], object],
    make: StrategyMaker | None,
) -> None:
    campaign.parts = campaign.parts or [replace(campaign.search)]
    systems = systems_of(campaign.setting, make)
    interrupted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        interrupted.append(number)

    with handled(signal.SIGINT, note):
        for part in campaign.parts:
            while not part.done and not interrupted and not _over(campaign, end_s):
                _advance(campaign, part, systems, interrupted, end_s)
                campaign.save(file)
                report(campaign)
    if interrupted:
        raise KeyboardInterrupt


def _advance(
    campaign: Campaign,
    part: Search,
    systems: Callable[[], System],
    interrupted: list[int],
    end_s: float | None,
) -> None:
    began_s = time.process_time()
    slice_s = SLICE_S if end_s is None else min(SLICE_S, end_s - campaign.cpu_s)
    part.run(
        systems,
        lambda: bool(interrupted) or time.process_time() - began_s > slice_s,
    )
    campaign.cpu_s += time.process_time() - began_s


def _over(campaign: Campaign, end_s: float | None) -> bool:
    return end_s is not None and campaign.cpu_s >= end_s


def _run_spread(
    campaign: Campaign,
    jobs: int,
    end_s: float | None,
    file: Path | None,
    report: Callable[[Campaign], object],
) -> None:
    if not campaign.parts:
        systems = systems_of(campaign.setting)
        campaign.parts = parts_of(replace(campaign.search), systems, PARTS_A_JOB * jobs)
    while not campaign.done and not campaign.failed and not _over(campaign, end_s):
        todo = [(place, part) for place, part in enumerate(campaign.parts) if not part.done]
        results = spread(partial(_slice, campaign.setting), todo, min(jobs, len(todo)))
        for place, part, cpu_s in results:
            campaign.parts[place] = part
            campaign.cpu_s += cpu_s
            campaign.save(file)
            report(campaign)
            if _over(campaign, end_s):
                break
        results.close()


def _slice(setting: AnySetting, work: tuple[int, Search]) -> tuple[int, Search, float]:
    """A slice of one part, in whatever process."""
    place, part = work
    began_s = time.process_time()
    systems = systems_of(setting)
    with collected_quietly():
        part.run(systems, lambda: time.process_time() - began_s > SLICE_S)
    return place, part, time.process_time() - began_s
