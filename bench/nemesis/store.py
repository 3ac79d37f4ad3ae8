"""`store`: the `lin-kv` service is late, or its answers get lost (`bench.services.trouble`)."""

from collections.abc import Sequence
from functools import partial
from random import Random

from bench.nemesis.fault import Done, Plan
from bench.nemesis.targets import choose_targets
from bench.services.trouble import MODES, Plight, Trouble
from runs.keyword import Keyword, keywords

SHARES = (0.1, 0.3, 1.0)


class Store:
    """A `Fault` that troubles the requests of some nodes."""

    name = "store"
    possible = True

    def __init__(self, trouble: Trouble, nodes: Sequence[str], targets: str) -> None:
        self._trouble = trouble
        self._nodes = nodes
        self._targets = targets

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self._targets, self._nodes, random)
        plight = Plight(frozenset(nodes), random.choice(MODES), random.choice(SHARES))
        intent = keywords(targets=Keyword(word), mode=Keyword(plight.mode), share=plight.share)
        return Plan(intent, partial(self._begin, nodes, plight))

    def end(self, done: Done) -> None:
        self._trouble.plight = None
        done(Keyword("prompt"))

    def _begin(self, nodes: Sequence[str], plight: Plight, done: Done) -> None:
        self._trouble.plight = plight
        done(keywords(nodes=list(nodes), mode=Keyword(plight.mode), share=plight.share))
