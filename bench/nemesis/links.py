"""`loss`, `duplicate` and `slow`: what becomes of messages between servers (`bench.weather`)."""

from collections.abc import Sequence
from functools import partial
from random import Random

from bench.nemesis.fault import Done, Plan
from bench.nemesis.targets import choose_targets
from bench.net import Network
from bench.weather import Spell, Weather
from runs.keyword import Keyword, keywords

# fault -> what its level is called, and the levels that are drawn.
LEVELS: dict[str, tuple[str, tuple[float, ...]]] = {
    "loss": ("share", (0.05, 0.2, 0.5)),
    "duplicate": ("share", (0.1, 0.5, 1.0)),
    "slow": ("factor", (3, 10, 30)),
}


class Links:
    """A `Fault` on the links of some nodes; `name` says which of the three."""

    possible = True

    def __init__(
        self, name: str, network: Network, weather: Weather, nodes: Sequence[str], targets: str
    ) -> None:
        self.name = name
        self._network = network
        self._weather = weather
        self._nodes = nodes
        self._targets = targets

    def plan(self, random: Random) -> Plan:
        word, nodes = choose_targets(self._targets, self._nodes, random)
        what, levels = LEVELS[self.name]
        level = random.choice(levels)
        intent = {Keyword("targets"): Keyword(word), Keyword(what): level}
        return Plan(intent, partial(self._begin, nodes, level))

    def end(self, done: Done) -> None:
        self._weather.spells.pop(self.name, None)
        self._network.weather = self._weather if self._weather.spells else None
        done(Keyword("reliable"))

    def _begin(self, nodes: Sequence[str], level: float, done: Done) -> None:
        self._weather.spells[self.name] = Spell(frozenset(nodes), level)
        self._network.weather = self._weather
        done(keywords(nodes=list(nodes)) | {Keyword(LEVELS[self.name][0]): level})
