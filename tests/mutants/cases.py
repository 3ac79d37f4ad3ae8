"""Everything that is known to be wrong: mutants of the core, weak strategies, faulty nodes."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple

from simulation.hosts import MakeNode
from simulation.life import BUCKET
from tests.mutants.faulty import FAULTY, node_of, world_of
from tests.mutants.kill import Kill, kill, kill_by_test
from tests.mutants.mutant import Mutant, mutants_of

ROOMS = {
    room: mutants_of(room)
    for room in ("node", "store", "table", "hosting", "groups", "upkeep", "api")
}
NODE = ROOMS["node"]
EQUIVALENT = NODE["equivalent"]  # no test can find them
MUTANTS = {each.name: each for room in ROOMS.values() for its in room.values() for each in its}


class Case(NamedTuple):
    """Something wrong: `rule` is what it breaks, `world` the options in which that shows soonest."""

    name: str
    rule: str
    world: Mapping[str, Any]
    mutant: Mutant | None = None
    node: MakeNode | None = None

    @property
    def test(self) -> str:
        """The test that finds it, where seeds do not."""
        return self.mutant.test if self.mutant else ""

    def kill(self, seeds: Iterable[int]) -> Kill | None:
        """Look for it in these seeds, or by its test."""
        if self.test:
            return kill_by_test(self.name, self.test)
        alive: AbstractContextManager[None] = self.mutant.alive() if self.mutant else nullcontext()
        return kill(alive, self.world, seeds, self.node)


WEAK = [
    Case("prefetch", "offsets are shown in their order", {"strategy": "prefetch", "nemesis": ()}),
    Case(
        "leader, killed",
        "what was acknowledged outlives its node",
        {"strategy": "leader", "nemesis": ("kill",)},
    ),
    Case(
        "leader, partitioned",
        "a lost push is repeated",
        {"strategy": "leader", "nemesis": ("partition",)},
    ),
]


def _of(mutant: Mutant) -> Case:
    world = MappingProxyType({"strategy": "leaderless", "mixed": False, **mutant.world})
    return Case(mutant.name, mutant.rule, world, mutant)


CROWD: dict[str, Any] = {"crowds": 1, "nodes": 5, "rate": 60.0}
# What programs beside a bucket show, and the options in which that shows soonest.
BY_PROGRAMS: dict[str, dict[str, Any]] = {
    "index-put": {
        "seal_entries": 2,
        "compactions": 10,
        "store_late_s": 3.0,
        "store_timeout_ms": 300.0,
        "time_limit_s": 8.0,
    },
    # Nodes beside programs: those that join are told of more peers than those that stay.
    "offset-registers-of-the-nodes": {
        "mixed": True,
        "nodes": 5,
        "auditors": 3,
        "commits": "durable",
        "nemesis": ("kill", "membership"),
        "nemesis_interval_s": 0.3,
        "time_limit_s": 8.0,
    },
    "ack-before-commit": {},
    "unknown-is-success": {},
    "blind-put": {},
    "offsets-per-batch": {},
    "entries-reversed": {},
    "epoch-kept": {},
    "switch-of-unknown-outcome": {},
    "seal-skipped": {},
    "delete-before-listing": {},
    "page-without-a-child": {},
    "page-before-it-is-written": {},
    "claim-in-the-old-epoch": {},
    "index-epoch-kept": {},
    "segments-never-deleted": {},
    "answer-is-commit": CROWD,
    "new-id-after-hand-over": CROWD,
    "dedup-skipped": CROWD,
    "name-used-twice": CROWD,
}


def _by_programs(name: str, world: Mapping[str, Any]) -> Case:
    world = MappingProxyType({**world, "store": BUCKET})
    return _of(MUTANTS[name]._replace(world=world, test=""))._replace(name=f"{name}, programs")


def _of_script(script: str, wrong: str) -> Case:
    return Case(script, wrong, world_of(script), node=node_of(script))


OF_PROGRAMS = "Mutants of values, files, sinks and groups"
SECTIONS: dict[str, list[Case]] = {
    "Mutants of the leaderless log": [_of(each) for each in NODE["log"]],
    "Mutants that need a harder world": [_of(each) for each in NODE["harder"]],
    "Processes that go by what is their own": [_of(each) for each in NODE["own"]],
    "Behaviours of the first design": [_of(each) for each in NODE["first_design"]],
    "Found by a test": [_of(each) for room in ROOMS.values() for each in room["by_test"]],
    "Strategies that are weak": WEAK,
    "Faulty nodes (`tests/nodes`)": [_of_script(*each) for each in FAULTY.items()],
    OF_PROGRAMS: [_of(each) for room in ROOMS.values() for each in room.get("bucket", ())],
    "Mutants beside a bucket": [_by_programs(*each) for each in BY_PROGRAMS.items()],
}
CASES = {case.name: case for cases in SECTIONS.values() for case in cases}


def look_for(work: tuple[str, int]) -> tuple[str, Kill | None]:
    """One case, in whatever process."""
    name, seeds = work
    return name, CASES[name].kill(range(seeds))
