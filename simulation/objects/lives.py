"""What each life of a process on a virtual bucket is, in a mixed scenario: drawn from the seed and its name.

A process is a program or a node, and may come back as the other one: with limits, pace, peers, and a shape for
new logs of its own.
"""

from dataclasses import replace
from random import Random
from typing import NamedTuple

from leaderless.core.limits import Limits
from leaderless.core.pace import Pace
from leaderless.core.shape import Shape
from leaderless.core.strategy import Options

STRANGERS = ("x0", "x1", "x2", "x3", "x4", "x5", "x6")  # nodes that others believe in
OPERATOR = "operator"  # who vacuums
NODES = (1, 2, 3, 5, 8)


class Life(NamedTuple):
    """`nodes`: how many nodes it believes in, itself among them; 0: it is a program.

    `shape`: of a log that it makes. `lanes`, `batch_bytes`, `worth_s`, `freshness_s`: its limits and pace;
    `batch_bytes` 0: those of all processes.
    """

    nodes: int
    shape: Shape
    lanes: int = 1
    batch_bytes: int = 0
    worth_s: float = 0.0
    freshness_s: float = 0.0

    def limits(self, limits: Limits) -> Limits:
        """Limits of a process, where this life has others."""
        if not self.batch_bytes:
            return limits
        return replace(limits, lanes=self.lanes, batch_bytes=self.batch_bytes)

    def options(self, shape: Shape, patience_s: float) -> Options:
        """Those of a node on a log of this shape."""
        pace = Pace(message_worth_s=self.worth_s)
        limits = self.limits(Limits(client_patience_s=patience_s))
        return Options(self.freshness_s, limits=limits.fitted(shape), pace=pace, shape=shape)

    def peers(self, name: str, processes: int) -> tuple[str, ...]:
        """The nodes that it believes in: itself, processes of the run, and strangers."""
        others = [f"p{number}" for number in range(processes) if f"p{number}" != name]
        return (name, *[*others, *STRANGERS][: self.nodes - 1])


def life_of(name: str, random: Random, base: Shape) -> Life:
    """The life of this name; an operator's is a program."""
    nodes = random.choice(NODES) if random.random() < 0.5 and name != OPERATOR else 0
    shape = replace(
        base,
        seal_entries=random.choice((2, 4, 256)),
        seal_bytes=random.choice((256, 8_192, 65_536)),
        segments_per_run=random.choice((2, 4)),
        page_children=random.choice((2, 4)),
        page_bytes=random.choice((64, 1_024)),
        offset_registers=random.choice((1, 2, 3)),
    )
    lanes, batch_bytes = random.choice((1, 2, 4)), random.choice((512, 1 << 15, 1 << 17))
    worth_s, freshness_s = random.choice((0.001, 0.005, 0.4)), random.choice((0.0, 0.09))
    return Life(nodes, shape, lanes, batch_bytes, worth_s, freshness_s)
