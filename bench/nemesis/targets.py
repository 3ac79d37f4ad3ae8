"""Which nodes a fault takes: `--nemesis-targets`."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

Choose = Callable[[Sequence[str], Random], list[str]]


def _sample(size: Callable[[int], int]) -> Choose:
    """Nodes by number, in their own order; at least one."""

    def choose(nodes: Sequence[str], random: Random) -> list[str]:
        chosen = set(random.sample(nodes, max(1, size(len(nodes)))))
        return [node for node in nodes if node in chosen]

    return choose


def _subset(nodes: Sequence[str], random: Random) -> list[str]:
    return _sample(lambda count: random.randint(1, count))(nodes, random)


TARGETS: Mapping[str, Choose] = {
    "one": _sample(lambda _: 1),
    "minority": _sample(lambda count: (count - 1) // 2),
    "majority": _sample(lambda count: count // 2 + 1),
    "all": lambda nodes, _: list(nodes),
    "random": _subset,
}
MIXED = "mixed"  # any of them, drawn anew each time
TARGET_WORDS = (*TARGETS, MIXED)


def choose_targets(word: str, nodes: Sequence[str], random: Random) -> tuple[str, list[str]]:
    """The word that was meant (`mixed` becomes one of the others), and the nodes."""
    meant = random.choice(list(TARGETS)) if word == MIXED else word
    return meant, TARGETS[meant](nodes, random)
