"""What may happen in an explored cluster: its nodes, the requests of its clients, and how often each fault.

Each option is declared once, as in `simulation.scenario`: the command line and the kept schedule follow from
it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import click

from bench.flags import COUNT, NATURAL, Flag, flags_of
from leaderless.core.shape import Shape
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Options
from simulation.exploration.settings import changed, command_of, differences
from simulation.nodes import LINEARIZABLE

CLIENTS_MAX = 10
SMALL_TAIL = 1  # entries of a tail that is full, when compaction is explored
FAULTS = ("crashes", "lost", "late", "partitions", "duplicates")
REQUESTS = ("before", "sends", "polls", "commits", "fence")


@dataclass(frozen=True, slots=True)
class Setting:
    """The options of an exploration. Message `n` is sent through node `n` modulo the number of nodes."""

    strategy: Annotated[
        str, Flag("How the nodes keep the log.", click.Choice(sorted(STRATEGIES)))
    ] = "leaderless"
    nodes: Annotated[int, Flag("Nodes.", COUNT)] = 2
    before: Annotated[
        int, Flag("Messages that are sent one by one before the exploration begins.", NATURAL)
    ] = 0
    sends: Annotated[int, Flag("Messages that are sent, each by a client of its own.", NATURAL)] = 2
    polls: Annotated[
        int, Flag("Polls of one consumer, one after the other, through the last node.", NATURAL)
    ] = 1
    commits: Annotated[
        int,
        Flag("Commits, each by a client of its own; another client lists them.", NATURAL),
    ] = 0
    fence: Annotated[
        int, Flag("How often the log is fenced and opened again, through n0.", NATURAL)
    ] = 0
    crashes: Annotated[int, Flag("How many nodes may be killed and started again.", NATURAL)] = 0
    lost: Annotated[int, Flag("How many messages may be lost.", NATURAL)] = 0
    late: Annotated[
        int,
        Flag(
            "How often time may pass to the next timer, or for a store timeout, while something else"
            " could happen.",
            NATURAL,
        ),
    ] = 0
    partitions: Annotated[
        int, Flag("How often a node may be cut off from the others.", NATURAL)
    ] = 0
    duplicates: Annotated[int, Flag("How many messages may arrive twice.", NATURAL)] = 0
    compaction: Annotated[
        bool, Flag("Seal each entry, and compact each two segments.", click.BOOL)
    ] = False
    hand_over: Annotated[
        bool,
        Flag("Hand each batch to the node that committed last, whatever that costs.", click.BOOL),
    ] = False
    deferred: Annotated[
        bool, Flag("Let committed offsets wait in memory for a batch.", click.BOOL)
    ] = False

    @property
    def names(self) -> list[str]:
        """The nodes."""
        return [f"n{number}" for number in range(self.nodes)]

    @property
    def options(self) -> Options:
        """The options of each node: linearizable polls."""
        shape = Shape().for_nodes(self.nodes)
        if self.compaction:
            shape = replace(shape, seal_entries=SMALL_TAIL, segments_per_run=2, page_children=2)
        return LINEARIZABLE._replace(shape=shape, durable_commits=not self.deferred)

    @property
    def size(self) -> int:
        """How much may happen: the measure by which a failing setting is made smaller."""
        counted = sum(int(getattr(self, name)) for name in (*FAULTS, *REQUESTS))
        return counted + self.nodes + self.compaction + self.hand_over + self.deferred

    def smaller(self) -> Iterator["Setting"]:
        """Settings in which one thing less may happen."""
        if self.nodes > 1:
            yield changed(self, "nodes", self.nodes - 1)
        for name in (*FAULTS, *REQUESTS):
            if (value := getattr(self, name)) > 0:
                yield changed(self, name, value - 1)
        for name in ("compaction", "hand_over", "deferred"):
            if getattr(self, name):
                yield changed(self, name, False)

    def as_object(self) -> dict[str, Any]:
        """What differs from the defaults, by name."""
        return differences(self)

    @property
    def problem(self) -> str | None:
        """Why it cannot be explored, in words."""
        if self.sends + self.commits + 3 >= CLIENTS_MAX:
            return f"at most {CLIENTS_MAX - 4} sends and commits: more have more schedules than can be explored"
        if self.strategy != "leaderless" and (self.hand_over or self.deferred or self.fence):
            return "--hand-over, --deferred and --fence are of the strategy leaderless"
        return None

    def command(self) -> str:
        """The command that explores it."""
        return command_of("explore", self, FLAGS, always=("strategy", "nodes", "sends", "polls"))


FLAGS = flags_of(Setting)
