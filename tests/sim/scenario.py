"""What happens in a simulated world, drawn from one seed."""

from random import Random
from typing import NamedTuple

ACTS = ("kill", "partition", "fence")


class Scenario(NamedTuple):
    """The options of one run; `replace` any of them to look at something in particular.

    `rate`: operations a second of all clients; `hop_ms`: mean delay of a message. `loss`, `duplicate`,
    `late`: probability that a message never arrives, arrives twice, or takes up to `LATE_S`, more than the
    store's timeout. `acts`: what else happens, each about every `interval_s`. The last four are the node's
    options and limits, the limits small enough to be met.
    """

    seed: int
    nodes: int = 3
    clients_per_node: int = 2
    rate: float = 100.0
    fault_s: float = 5.0
    hop_ms: float = 2.0
    loss: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    acts: tuple[str, ...] = ()
    interval_s: float = 1.0
    freshness_s: float = 0.0
    combine: bool = True
    seal_entries: int = 8
    segments_per_run: int = 3

    @staticmethod
    def draw(seed: int) -> "Scenario":
        """The scenario of a seed; every kind of fault is absent from some."""
        random = Random(f"scenario {seed}")
        return Scenario(
            seed=seed,
            nodes=random.randint(1, 5),
            clients_per_node=random.randint(1, 4),
            rate=random.choice([30.0, 100.0, 300.0]),
            fault_s=random.choice([2.0, 4.0]),
            hop_ms=random.choice([0.3, 3.0, 20.0]),
            loss=random.choice([0.0, 0.01, 0.1]),
            duplicate=random.choice([0.0, 0.1]),
            late=random.choice([0.0, 0.02, 0.1]),
            acts=tuple(act for act in ACTS if random.random() < 0.5),
            interval_s=random.choice([0.3, 1.0]),
            freshness_s=random.choice([0.0, 0.09]),
            combine=random.random() < 0.8,
            seal_entries=random.choice([3, 16, 256]),
            segments_per_run=random.choice([2, 4]),
        )
