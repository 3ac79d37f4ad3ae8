"""The options and acts of one run on a virtual bucket; each option that is not given is drawn from the seed.

Every act and fault has a number, so that the shrinker can leave it out (`simulation.options` tells the rest).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Annotated, Any, ClassVar, NamedTuple

import click

from bench.flags import COUNT, NATURAL, NOT_NEGATIVE, NUMBERS, POSITIVE, Flag, flags_of, names_of
from leaderless.core.shape import Shape
from simulation.objects.client import FATES, Network
from simulation.objects.lives import Life, life_of
from simulation.options import AnyScenario, Effort, chance, one_of, some_of

LEADERLESS, PUBLISHED, REPAIRED = "leaderless", "s3-queue", "s3-queue-repaired"
LOGS = (LEADERLESS, PUBLISHED, REPAIRED)
SPREADS = ("constant", "uniform", "exponential", "heavy")
ODDS = (0.01, 0.05, 0.2)  # of a fate, in a run that has it
KINDS = {"send": 8.0, "poll": 8.0, "compact": 1.0}
MIXED_KINDS = {"commit": 2.0, "list": 2.0, "vacuum": 0.5}
DISTURBANCES = ("kill", "pause", "vacuum")  # of a process, and by an operator


FAULTS = (*FATES, "kill", "pause")


@dataclass(frozen=True, slots=True)
class Scenario(AnyScenario):
    """The options of one run.

    `processes` on one bucket, each with `workers` that do `operations` together, spread over `time_limit_s`.
    `repeats`: the client library repeats conditional writes; for our log too, which forbids it.
    `value_bytes`: of each message. `omit` and `omit_faults`: acts, and faults of requests, left out by
    number.
    """

    EFFORT: ClassVar[Effort] = Effort(seeds_per_step=40, seeds_at_the_end=200)
    WORDS: ClassVar[tuple[str, ...]] = (*AnyScenario.WORDS, "--programs")

    log: Annotated[str, Flag("Which log.", click.Choice(LOGS)), one_of(*LOGS, lower=None)] = (
        LEADERLESS
    )
    processes: Annotated[
        int, Flag("Processes on the bucket.", COUNT), one_of(1, 2, 3, 4, lower=(1, 2, 3))
    ] = 1
    workers: Annotated[
        int, Flag("Clients of each process.", COUNT), one_of(1, 2, 4, lower=(1, 2))
    ] = 1
    operations: Annotated[
        int, Flag("Acts of a run.", NATURAL), one_of(20, 60, 120, lower=(20, 60))
    ] = 60
    time_limit_s: Annotated[
        float, Flag("How long the acts are spread.", POSITIVE), one_of(2.0, 10.0, lower=None)
    ] = 10.0
    key_count: Annotated[int, Flag("Keys, or topics.", COUNT), one_of(1, 2, 4, lower=(1, 2))] = 1
    value_bytes: Annotated[int, Flag("Bytes of a message.", NATURAL), one_of(0, 100)] = 0
    latency_ms: Annotated[
        float,
        Flag("Of a request and its answer.", NOT_NEGATIVE),
        one_of(5.0, 20.0, 50.0, lower=(5.0, 20.0)),
    ] = 20.0
    latency_dist: Annotated[
        str, Flag("Its distribution.", click.Choice(SPREADS)), one_of(*SPREADS)
    ] = "constant"
    faults: Annotated[
        tuple[str, ...],
        Flag("Faults of requests and processes.", names_of(FAULTS)),
        some_of(FAULTS, none=1 / 4, each=0.35),
    ] = ()
    odds: Annotated[
        float, Flag("Of each fault of requests.", NOT_NEGATIVE), one_of(*ODDS, lower=None)
    ] = 0.05
    repeats: Annotated[
        bool, Flag("The client library repeats conditional writes."), one_of(True, False)
    ] = False
    seal_entries: Annotated[
        int, Flag("Entries of a segment of our log.", COUNT), one_of(2, 4, 256)
    ] = 256
    mixed: Annotated[
        bool,
        Flag("Processes are nodes and programs, and each life of one has limits of its own."),
        chance(0.8),
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
        given = given or {}
        chosen = cls.drawn(f"{seed}/objects", given)
        if chosen["log"] != LEADERLESS:
            chosen["mixed"] = False
        if "seal_entries" in given:
            chosen["mixed"] = given.get("mixed", False)
        if not chosen["mixed"]:
            chosen["ahead_s"] = given.get("ahead_s", 0.0)
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
        kinds |= {name: 0.6 for name in ("kill", "pause") if name in self.faults}
        return [*kinds], [*kinds.values()]

    @property
    def kind(self) -> str:
        """Which log."""
        return self.log

    @property
    def in_short(self) -> str:
        """What a shrinker makes smaller."""
        faults = ",".join(self.faults) or "none"
        return (
            f"{len(self.acts())} acts, {self.processes} processes, {self.workers} workers each,"
            f" faults {faults}"
        )


RETENTION_S = 1000.0  # of a vacuum
PAUSES_S = (0.5, 3.0, 3.0, 1.5 * RETENTION_S)


class Act(NamedTuple):
    """Something that happens in the main phase.

    `kind`: send, poll, compact, commit or list, of a worker; kill (it starts again) or pause, of its
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
