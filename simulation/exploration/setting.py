"""What may happen in an exploration, and how often: of nodes, or of programs on a bucket.

Each option is declared once, as in `simulation.scenario`: the command line, the kept schedule and the sentence
that says what a search covered follow from it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import click

from bench.flags import COUNT, NATURAL, Flag, declared, flags_of
from leaderless.core.shape import Shape
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Options
from simulation.nodes import LINEARIZABLE
from simulation.objects.scenario import LEADERLESS, LOGS, Scenario

CLIENTS_MAX = 10
SMALL_TAIL = 1  # entries of a tail that is full, when compaction is explored
LONG_TAIL = 256


@dataclass(frozen=True, slots=True)
class Allows(Flag):
    """An option that makes a setting large; `noun`: what it allows, of a count one."""

    kind: click.ParamType[Any] | None = NATURAL
    noun: str = ""


@dataclass(frozen=True, slots=True)
class Bounded:
    """What may happen, and how often.

    `KIND` is the option that says which log. `ALWAYS` names the options that its command shows even where they
    are the defaults, and `WORDS` are the first words of it.
    """

    KIND: ClassVar[str]
    ALWAYS: ClassVar[tuple[str, ...]]
    WORDS: ClassVar[tuple[str, ...]] = ("./maelstrom", "explore")

    @property
    def kind(self) -> str:
        """Which log."""
        return str(getattr(self, self.KIND))

    @property
    def held_to(self) -> str:
        """What every step is held to, if there is such a thing."""
        return ""

    @property
    def covered(self) -> str:
        """What may happen, in words: `2 nodes, 2 sends, 1 poll`."""
        return ", ".join(counted(value, noun) for _, value, noun in self._allowed() if value)

    @property
    def left_out(self) -> str:
        """What never happens, because its budget is 0 or its switch is off."""
        nothing = [(value, noun) for _, value, noun in self._allowed() if not value]
        return ", ".join(noun if value is False else plural(noun) for value, noun in nothing)

    @property
    def problem(self) -> str | None:
        """Why it cannot be explored, in words."""
        return None

    @property
    def size(self) -> int:
        """How much may happen: the measure by which a failing setting is made smaller."""
        return sum(value for _, value, _ in self._allowed())

    def smaller(self) -> Iterator[Self]:
        """Settings in which one thing less may happen."""
        for name, value, _ in self._allowed():
            if value:
                less: dict[str, Any] = {name: False if value is True else value - 1}
                setting = replace(self, **less)
                if not setting.problem:
                    yield setting

    def as_object(self) -> dict[str, Any]:
        """What differs from the defaults, by name."""
        default = asdict(type(self)())
        return {name: value for name, value in asdict(self).items() if value != default[name]}

    def command(self) -> str:
        """The command that explores it."""
        return " ".join([*self.WORDS, self._options([*self.ALWAYS, *self.as_object()])])

    @property
    def brief(self) -> str:
        """The options of its command that are not the defaults, but for the log."""
        return self._options(name for name in self.as_object() if name != self.KIND)

    def _allowed(self) -> list[tuple[str, int, str]]:
        """The options that make it large: name, value, noun."""
        allowed = declared(type(self), Allows)
        return [(name, getattr(self, name), allows.noun) for name, allows in allowed.items()]

    def _options(self, names: Iterable[str]) -> str:
        flags = flags_of(type(self))
        given = [(flags[name].words[0], getattr(self, name)) for name in dict.fromkeys(names)]
        return " ".join(word if value is True else f"{word} {value}" for word, value in given)


@dataclass(frozen=True, slots=True)
class Setting(Bounded):
    """What may happen to nodes. Message `n` is sent through node `n` modulo the number of nodes."""

    KIND: ClassVar[str] = "strategy"
    ALWAYS: ClassVar[tuple[str, ...]] = ("strategy", "nodes", "sends", "polls")

    strategy: Annotated[
        str, Flag("How the nodes keep the log.", click.Choice(sorted(STRATEGIES)))
    ] = "leaderless"
    nodes: Annotated[int, Allows("Nodes.", COUNT, noun="node")] = 2
    before: Annotated[
        int,
        Allows(
            "Messages that are sent one by one before the exploration begins.",
            noun="earlier message",
        ),
    ] = 0
    sends: Annotated[
        int, Allows("Messages that are sent, each by a client of its own.", noun="send")
    ] = 2
    polls: Annotated[
        int,
        Allows("Polls of one consumer, one after the other, through the last node.", noun="poll"),
    ] = 1
    commits: Annotated[
        int,
        Allows("Commits, each by a client of its own; another client lists them.", noun="commit"),
    ] = 0
    fence: Annotated[
        int, Allows("How often the log is fenced and opened again, through n0.", noun="fence")
    ] = 0
    crashes: Annotated[
        int, Allows("How many nodes may be killed and started again.", noun="crash")
    ] = 0
    lost: Annotated[int, Allows("How many messages may be lost.", noun="lost message")] = 0
    late: Annotated[
        int,
        Allows(
            "How often time may pass to the next timer, or for a store timeout, while something else"
            " could happen.",
            noun="late message",
        ),
    ] = 0
    partitions: Annotated[
        int, Allows("How often a node may be cut off from the others.", noun="partition")
    ] = 0
    duplicates: Annotated[
        int, Allows("How many messages may arrive twice.", noun="doubled message")
    ] = 0
    compaction: Annotated[
        bool,
        Allows("Seal each entry, and compact each two segments.", click.BOOL, noun="compaction"),
    ] = False
    hand_over: Annotated[
        bool,
        Allows(
            "Hand each batch to the node that committed last, whatever that costs.",
            click.BOOL,
            noun="a hand-over of each batch",
        ),
    ] = False
    deferred: Annotated[
        bool,
        Allows(
            "Let committed offsets wait in memory for a batch.", click.BOOL, noun="deferred commits"
        ),
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
    def held_to(self) -> str:
        """The model, if the strategy has one."""
        return "HeadLog" if self.strategy == "leaderless" else ""

    @property
    def problem(self) -> str | None:
        """Why it cannot be explored, in words."""
        if not self.nodes:
            return "there is always a node"
        if self.sends + self.commits + 3 >= CLIENTS_MAX:
            return f"at most {CLIENTS_MAX - 4} sends and commits: more have more schedules than can be explored"
        if self.strategy != "leaderless" and (self.hand_over or self.deferred or self.fence):
            return "--hand-over, --deferred and --fence are of the strategy leaderless"
        return None


@dataclass(frozen=True, slots=True)
class BucketSetting(Bounded):
    """What may happen to programs on a bucket. Every message has a producer, a process of its own."""

    KIND: ClassVar[str] = "log"
    ALWAYS: ClassVar[tuple[str, ...]] = ("log", "sends")
    WORDS: ClassVar[tuple[str, ...]] = (*Bounded.WORDS, "--programs")

    log: Annotated[str, Flag("Which log.", click.Choice(LOGS))] = LEADERLESS
    before: Annotated[
        int,
        Allows(
            "Messages that are sent one by one before the exploration begins.",
            noun="earlier message",
        ),
    ] = 0
    sends: Annotated[int, Allows("Messages, each sent by a process of its own.", noun="send")] = 2
    polls: Annotated[int, Allows("Polls of one consumer, one after the other.", noun="poll")] = 0
    compactions: Annotated[
        int, Allows("Compactions by one process, one after the other.", noun="compaction")
    ] = 0
    crashes: Annotated[
        int, Allows("How many processes may die during an operation.", noun="crash")
    ] = 0
    lost: Annotated[
        int, Allows("How many requests or answers may be lost.", noun="lost request")
    ] = 0
    delayed: Annotated[
        int,
        Allows(
            "How many requests may be carried out long after they timed out.",
            noun="delayed request",
        ),
    ] = 0
    late: Annotated[
        int,
        Allows(
            "How often time may pass to the next timer, while a request could be carried out.",
            noun="early timer",
        ),
    ] = 0
    repeats: Annotated[
        bool,
        Allows(
            "The client library repeats conditional writes.",
            click.BOOL,
            noun="repeats by the client library",
        ),
    ] = False

    @property
    def scenario(self) -> Scenario:
        """The same for the simulator: the log and its options."""
        return Scenario(
            seed=0,
            log=self.log,
            processes=len(self.clients),
            repeats=self.repeats,
            seal_entries=SMALL_TAIL if self.compactions else LONG_TAIL,
        )

    @property
    def clients(self) -> list[str]:
        """The processes: producers, the consumer, the compactor, and who looks at the end."""
        return [*self.acting, "before", "last"]

    @property
    def acting(self) -> list[str]:
        """The processes whose requests are explored."""
        producers = [f"p{number}" for number in range(self.sends)]
        consumer = ["consumer"] if self.polls else []
        return [*producers, *consumer, *(["compactor"] if self.compactions else [])]

    @property
    def held_to(self) -> str:
        """The model, if the log has one."""
        return "HeadLog" if self.log == LEADERLESS else ""

    @property
    def problem(self) -> str | None:
        """Why it cannot be explored, in words."""
        if not self.acting:
            return "nothing happens: give --sends, --polls or --compactions"
        if self.repeats and self.log == LEADERLESS:
            return "--repeats is of S3-Queue: our log forbids a library that repeats conditional writes"
        return None


AnySetting: TypeAlias = Setting | BucketSetting


def counted(value: int, noun: str) -> str:
    """A number of things in words: `2 crashes`. A switch is the noun alone."""
    if value is True:
        return noun
    return f"{value} {noun if value == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """More than one."""
    return f"{noun}es" if noun.endswith("sh") else f"{noun}s"
