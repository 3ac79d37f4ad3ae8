"""The options and acts of one run on a virtual bucket; each option that is not given is drawn from the seed.

Every option has a stream of randomness of its own, so giving one leaves the others as they were; and every act
and fault has a number, so that the shrinker can leave it out. Most runs lack each single fault
(`simulation.scenario` tells why).
"""

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import click

from bench.flags import (
    COUNT,
    NATURAL,
    NOT_NEGATIVE,
    NUMBERS,
    POSITIVE,
    Flag,
    declared,
    flags_of,
    names_of,
)
from leaderless.core.shape import Shape
from simulation.objects.client import FATES, Network
from simulation.objects.lives import Life, life_of
from simulation.scenario import Draw, as_words, one_of

LEADERLESS, PUBLISHED, REPAIRED = "leaderless", "s3-queue", "s3-queue-repaired"
LOGS = (LEADERLESS, PUBLISHED, REPAIRED)
SPREADS = ("constant", "uniform", "exponential", "heavy")
ODDS = (0.01, 0.05, 0.2)  # of a fate, in a run that has it
KINDS = {"send": 8.0, "poll": 8.0, "compact": 1.0}
MIXED_KINDS = {"commit": 2.0, "list": 2.0, "vacuum": 0.5}
DISTURBANCES = ("kill", "pause", "vacuum")  # of a process, and by an operator


FAULTS = (*FATES, "kill", "pause")


def _draw_faults(random: Random) -> tuple[str, ...]:
    if random.random() < 1 / 4:
        return ()
    return tuple(fault for fault in FAULTS if random.random() < 0.35)


@dataclass(frozen=True, slots=True)
class Scenario:
    """The options of one run.

    `processes` on one bucket, each with `workers` that do `operations` together, spread over `time_limit_s`.
    `repeats`: the client library repeats conditional writes; for our log too, which forbids it.
    `value_bytes`: of each message. `omit` and `omit_faults`: acts, and faults of requests, left out by
    number.
    """

    seed: int
    log: Annotated[str, Flag("Which log.", click.Choice(LOGS)), one_of(*LOGS)] = LEADERLESS
    processes: Annotated[int, Flag("Processes on the bucket.", COUNT), one_of(1, 2, 3, 4)] = 1
    workers: Annotated[int, Flag("Clients of each process.", COUNT), one_of(1, 2, 4)] = 1
    operations: Annotated[int, Flag("Acts of a run.", NATURAL), one_of(20, 60, 120)] = 60
    time_limit_s: Annotated[
        float, Flag("How long the acts are spread.", POSITIVE), one_of(2.0, 10.0)
    ] = 10.0
    key_count: Annotated[int, Flag("Keys, or topics.", COUNT), one_of(1, 2, 4)] = 1
    value_bytes: Annotated[int, Flag("Bytes of a message.", NATURAL), one_of(0, 100)] = 0
    latency_ms: Annotated[
        float, Flag("Of a request and its answer.", NOT_NEGATIVE), one_of(5.0, 20.0, 50.0)
    ] = 20.0
    latency_dist: Annotated[
        str, Flag("Its distribution.", click.Choice(SPREADS)), one_of(*SPREADS)
    ] = "constant"
    faults: Annotated[
        tuple[str, ...],
        Flag("Faults of requests and processes.", names_of(FAULTS)),
        Draw(_draw_faults),
    ] = ()
    odds: Annotated[float, Flag("Of each fault of requests.", NOT_NEGATIVE), one_of(*ODDS)] = 0.05
    repeats: Annotated[
        bool, Flag("The client library repeats conditional writes."), one_of(True, False)
    ] = False
    seal_entries: Annotated[
        int, Flag("Entries of a segment of our log.", COUNT), one_of(2, 4, 256)
    ] = 256
    mixed: Annotated[
        bool,
        Flag("Processes are nodes and programs, and each life of one has limits of its own."),
        Draw(lambda random: random.random() < 0.8),
    ] = False
    old_format: Annotated[
        bool,
        Flag("The log was made by the older release, and may be upgraded."),
        Draw(lambda random: random.random() < 0.2),
    ] = False
    ahead_s: Annotated[
        float,
        Flag(
            "How far the clock of who vacuums is ahead, on a store without times; 0: it has them."
        ),
        one_of(0.0, 0.0, 3_720.0),
    ] = 0.0
    omit: Annotated[tuple[int, ...], Flag("Acts left out, by number.", NUMBERS)] = ()
    omit_faults: Annotated[tuple[int, ...], Flag("Faults left out, by number.", NUMBERS)] = ()

    @classmethod
    def draw(cls, seed: int, given: Mapping[str, Any] | None = None) -> "Scenario":
        """A scenario: what is not `given` is drawn. With given `seal_entries` all processes are alike."""
        drawn = {name: draw.draw(Random(f"{seed}/objects/{name}")) for name, draw in _DRAWS.items()}
        chosen = drawn | dict(given or {})
        if chosen["log"] != LEADERLESS:
            chosen |= {"mixed": False, "old_format": False}
        if given and "seal_entries" in given:
            chosen["mixed"] = given.get("mixed", False)
        if not chosen["mixed"]:
            chosen["ahead_s"] = given.get("ahead_s", 0.0) if given else 0.0
        return cls(seed, **chosen)

    def life(self, name: str, shape: Shape) -> Life:
        """What a start of a process is; `shape`: the one that a program gives to a log that it makes."""
        if self.mixed:
            return life_of(name, Random(f"{self.seed}/objects/lives/{name}"), shape)
        return Life(0, replace(shape, seal_entries=self.seal_entries, segments_per_run=2))

    @property
    def network(self) -> Network:
        """How requests fare in the main phase."""
        odds = {fate: self.odds for fate in FATES if fate in self.faults}
        return Network(self.latency_ms, self.latency_dist, odds=odds)

    @property
    def keys(self) -> list[str]:
        """The keys of the log; topics, where it has one log a topic."""
        return [str(number) for number in range(self.key_count)]

    def acts(self) -> list["Act"]:
        """What is done in the main phase, in order of time; those that are left out are not there."""
        random = Random(f"{self.seed}/objects/acts")
        kinds, weights = self._kinds()
        times = sorted(random.random() * self.time_limit_s for _ in range(self.operations))
        acts = [
            Act(
                number,
                at_s,
                random.choices(kinds, weights)[0],
                random.randrange(self.processes),
                random.randrange(self.workers),
                random.choice(self.keys),
                PAUSES_S[random.randrange(len(PAUSES_S))],
            )
            for number, at_s in enumerate(times)
        ]
        return [act for act in acts if act.number not in self.omit]

    def _kinds(self) -> tuple[list[str], list[float]]:
        kinds = KINDS | (MIXED_KINDS if self.mixed else {})
        kinds |= {"upgrade": 0.3} if self.old_format else {}
        kinds |= {name: 0.6 for name in ("kill", "pause") if name in self.faults}
        return [*kinds], [*kinds.values()]

    def options(self) -> dict[str, Any]:
        """All options by name, without the seed."""
        return {name: value for name, value in asdict(self).items() if name != "seed"}

    def command(self) -> str:
        """What runs it again, in a shell."""
        return command_of(self.seed, self.options())


RETENTION_S = 1000.0  # of a vacuum
PAUSES_S = (0.5, 3.0, 3.0, 1.5 * RETENTION_S)


class Act(NamedTuple):
    """Something that happens in the main phase.

    `kind`: send, poll, compact, commit, list or upgrade, of a worker; kill (it starts again) or pause, of its
    process; vacuum, by an operator. `pause_s`: how long.
    """

    number: int
    at_s: float
    kind: str
    process: int
    worker: int
    key: str
    pause_s: float


FLAGS: dict[str, Flag] = flags_of(Scenario)
_DRAWS = declared(Scenario, Draw)

# To which values a failing scenario may be reduced, the lowest first.
LOWER: dict[str, tuple[Any, ...]] = {
    "processes": (1, 2, 3),
    "workers": (1, 2),
    "operations": (20, 60),
    "key_count": (1, 2),
    "value_bytes": (0,),
    "latency_ms": (5.0, 20.0),
    "latency_dist": ("constant",),
    "repeats": (False,),
    "seal_entries": (256,),
    "old_format": (False,),
    "ahead_s": (0.0,),
    "mixed": (False,),
}


def simpler(scenario: Scenario) -> list[Scenario]:
    """Scenarios with one option simpler, the boldest first."""
    faults = scenario.faults
    less: list[tuple[str, ...]] = [()] if len(faults) > 1 else []
    less += [tuple(each for each in faults if each != one) for one in faults]
    found = [replace(scenario, faults=each) for each in less]
    for name, values in LOWER.items():
        now = getattr(scenario, name)
        lower = values[: values.index(now)] if now in values else values
        found += [replace(scenario, **{name: value}) for value in lower]
    return found


def command_of(seed: int, options: Mapping[str, Any]) -> str:
    """The command that runs a seed with these options."""
    words = as_words(options, FLAGS)
    return shlex.join(["./maelstrom", "simulate-objects", "--seed", str(seed), *words])


class Regression(NamedTuple):
    """A scenario that shows a weakness, the anomaly that it shows, and its story."""

    story: str
    anomaly: str
    scenario: Scenario


def regressions() -> list[Regression]:
    """All scenarios of `regressions.toml`, in the order of the file; nothing in them is drawn."""
    file = Path(__file__).with_name("regressions.toml")
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["regression"]
    return [_regression(dict(table)) for table in tables]


def _regression(table: dict[str, Any]) -> Regression:
    story, anomaly = str(table.pop("story")), str(table.pop("anomaly"))
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
    }
    return Regression(story, anomaly, Scenario(**options))
