"""What may happen in an exploration, and how often: of nodes, of programs on a bucket, or of both there.

Each option is declared once, as in `simulation.scenario`: the command line, the kept schedule and the sentence
that says what a search covered follow from it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import click

from bench.flags import NATURAL, Flag, declared, flags_of
from leaderless.core.shape import Shape
from leaderless.core.strategies import STRATEGIES
from leaderless.core.strategy import Options
from runs.house import MAELSTROM
from simulation.logs import LEADERLESS, LOGS, PUBLISHED, REPAIRED
from simulation.nodes import LINEARIZABLE

CLIENTS_MAX = 10
SMALL_TAIL = 1  # entries of a tail that is full, when compaction is explored
LONG_TAIL = 256
COMMAND = f"{MAELSTROM} explore"
NODES, PROGRAMS = "nodes", "programs"
CONSUMER, COMPACTOR = "consumer", "compactor"  # programs; a producer is `p` and its number


@dataclass(frozen=True, slots=True)
class Allows(Flag):
    """What makes a setting large; `noun`: what it allows, of a count one; `of`: nodes or programs alone."""

    kind: click.ParamType[Any] | None = NATURAL
    noun: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What may happen to nodes, or to `programs` on a bucket, beside `nodes` there if there are any.

    Message `n` is sent through node `n` modulo the number of nodes. On a bucket the first messages are sent
    through the nodes, each through one, and each of the others by a program of its own.
    `nodes`: by default 2, and 0 beside programs. `polls`: by default 1 of nodes, and 0 of programs.
    """

    strategy: Annotated[
        str,
        Flag(
            "How the log is kept; S3-Queue's are logs of programs.",
            click.Choice([*sorted(STRATEGIES), PUBLISHED, REPAIRED]),
            words=("--strategy", "--log"),
        ),
    ] = LEADERLESS
    programs: Annotated[
        bool, Flag("Explore programs on an object store in place of nodes.", click.BOOL)
    ] = False
    nodes: Annotated[
        int,
        Allows("Nodes; with --programs beside them, on the same object store.", noun="node"),
    ] = -1
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
    ] = -1
    commits: Annotated[
        int,
        Allows(
            "Commits, each by a client of its own; another client lists them.",
            noun="commit",
            of=NODES,
        ),
    ] = 0
    fence: Annotated[
        int,
        Allows("How often the log is fenced and opened again, through n0.", noun="fence", of=NODES),
    ] = 0
    crashes: Annotated[
        int,
        Allows("How many nodes may be killed and started again, or programs die.", noun="crash"),
    ] = 0
    lost: Annotated[
        int, Allows("How many messages, requests or answers may be lost.", noun="lost message")
    ] = 0
    late: Annotated[
        int,
        Allows(
            "How often time may pass to the next timer, or for a store timeout, while something else"
            " could happen.",
            noun="late message",
        ),
    ] = 0
    partitions: Annotated[
        int, Allows("How often a node may be cut off from the others.", noun="partition", of=NODES)
    ] = 0
    duplicates: Annotated[
        int,
        Allows(
            "How many messages may arrive twice; of programs those to each other.",
            noun="doubled message",
        ),
    ] = 0
    compaction: Annotated[
        bool,
        Allows(
            "Seal each entry, and compact each two segments.",
            click.BOOL,
            noun="compaction",
            of=NODES,
        ),
    ] = False
    hand_over: Annotated[
        bool,
        Allows(
            "Hand each batch to the node that committed last, whatever that costs; without nodes"
            " programs do so.",
            click.BOOL,
            noun="a hand-over of each batch",
        ),
    ] = False
    deferred: Annotated[
        bool,
        Allows(
            "Let committed offsets wait in memory for a batch.",
            click.BOOL,
            noun="deferred commits",
            of=NODES,
        ),
    ] = False
    compactions: Annotated[
        int,
        Allows("Compactions by one program, one after the other.", noun="compaction", of=PROGRAMS),
    ] = 0
    files: Annotated[
        bool,
        Allows(
            "Keep old records in Parquet files, which compactions merge.",
            click.BOOL,
            noun="Parquet files",
            of=PROGRAMS,
        ),
    ] = False
    conditions: Annotated[
        bool,
        Allows(
            "Send three of four messages on conditions.",
            click.BOOL,
            noun="conditions",
            of=PROGRAMS,
        ),
    ] = False
    delayed: Annotated[
        int,
        Allows(
            "How many requests of programs may be carried out long after they timed out.",
            noun="delayed request",
            of=PROGRAMS,
        ),
    ] = 0
    repeats: Annotated[
        bool,
        Allows(
            "The client library of programs repeats conditional writes.",
            click.BOOL,
            noun="repeats by the client library",
            of=PROGRAMS,
        ),
    ] = False

    def __post_init__(self) -> None:
        for name, usual in (("nodes", 2), ("polls", 1)):
            if getattr(self, name) < 0:
                object.__setattr__(self, name, 0 if self.programs else usual)

    @property
    def of(self) -> str:
        """Which processes: nodes or programs."""
        return PROGRAMS if self.programs else NODES

    @property
    def names(self) -> list[str]:
        """The processes: nodes, then programs that have something to do."""
        if not self.programs:
            return self.node_names
        producers = [f"p{number}" for number in range(self.nodes, self.sends)]
        consumer = [CONSUMER] if self.polls else []
        return [*self.node_names, *producers, *consumer, *([COMPACTOR] if self.compactions else [])]

    @property
    def node_names(self) -> list[str]:
        """On `lin-kv`, or beside the programs: n0, n1, ..."""
        return [f"n{number}" for number in range(self.nodes)]

    @property
    def talks(self) -> bool:
        """Whether programs hand over to each other. Nodes beside them do so among themselves."""
        return self.programs and self.hand_over and not self.nodes

    @property
    def options(self) -> Options:
        """The options of each node: linearizable polls."""
        shape = Shape().for_nodes(self.nodes)
        if self.compaction:
            shape = replace(shape, seal_entries=SMALL_TAIL, segments_per_run=2, page_children=2)
        return LINEARIZABLE._replace(shape=shape, durable_commits=not self.deferred)

    @property
    def shape(self) -> dict[str, Any]:
        """What the log of programs has otherwise than that of other programs."""
        seal_entries = SMALL_TAIL if self.compactions else LONG_TAIL
        runs = "parquet" if self.files else "json"
        return {"seal_entries": seal_entries, "segments_per_run": 2, "runs": runs}

    # ------------------------------------------------------------ what is said of it

    @property
    def held_to(self) -> str:
        """The model, if the strategy has one."""
        return "HeadLog" if self.strategy == LEADERLESS else ""

    @property
    def problem(self) -> str | None:
        """Why it cannot be explored, in words."""
        allowed, given = declared(Setting, Allows), self.as_object()
        others = [each for each in given if each in allowed and not self._allows(allowed[each])]
        word = flags_of(Setting)[others[0]].words[0] if others else ""
        is_ours = self.strategy == LEADERLESS
        refused = (
            (self.programs and word, f"{word} is an option of nodes: leave --programs out"),
            (word, f"{word} is an option of programs: give --programs, too"),
            (
                self.strategy not in (LOGS if self.programs else STRATEGIES),
                f"{self.strategy} is no log of {self.of}",
            ),
            (not self.names, "nothing happens: give --nodes, --sends, --polls or --compactions"),
            (
                not self.programs and self.sends + self.commits + 3 >= CLIENTS_MAX,
                f"at most {CLIENTS_MAX - 4} sends and commits: more have more schedules than can be explored",
            ),
            (
                not is_ours and (self.hand_over or self.deferred or self.fence or self.files),
                "--hand-over, --deferred, --fence and --files are of the strategy leaderless",
            ),
            (
                self.programs and self.nodes and not is_ours,
                f"nodes and programs share a log of the strategy leaderless: {self.strategy} has no --nodes",
            ),
            (
                is_ours and self.repeats,
                "--repeats is of S3-Queue: our log forbids a library that repeats conditional writes",
            ),
        )
        return next((told for is_refused, told in refused if is_refused), None)

    @property
    def covered(self) -> str:
        """What may happen, in words: `2 nodes, 2 sends, 1 poll`."""
        return ", ".join(counted(value, noun) for _, value, noun in self._allowed() if value)

    @property
    def left_out(self) -> str:
        """What never happens, because its budget is 0 or its switch is off."""
        nothing = [(value, noun) for _, value, noun in self._allowed() if not value]
        return ", ".join(noun if value is False else plural(noun) for value, noun in nothing)

    def smaller(self) -> Iterator["Setting"]:
        """Settings in which one thing less may happen."""
        for name, value, _ in self._allowed():
            if value:
                less: dict[str, Any] = {name: False if value is True else value - 1}
                setting = replace(self, **less)
                if not setting.problem:
                    yield setting

    def as_object(self) -> dict[str, Any]:
        """What differs from the defaults, by name."""
        default = asdict(Setting(programs=self.programs)) | {"programs": False}
        return {name: value for name, value in asdict(self).items() if value != default[name]}

    def command(self) -> str:
        """The command that explores it."""
        always = ("strategy", "sends") if self.programs else ("strategy", "nodes", "sends", "polls")
        return f"{COMMAND} {self._options([*always, *self.as_object()])}"

    @property
    def brief(self) -> str:
        """The options of its command that are not the defaults, but for the log."""
        return self._options(
            each for each in self.as_object() if each not in ("strategy", "programs")
        )

    def _allowed(self) -> list[tuple[str, int, str]]:
        """The options that make it large: name, value, noun."""
        return [
            (name, getattr(self, name), allowed.noun)
            for name, allowed in declared(Setting, Allows).items()
            if self._allows(allowed)
        ]

    def _allows(self, allowed: Allows) -> bool:
        return allowed.of in ("", self.of)

    def _options(self, names: Iterable[str]) -> str:
        flags = flags_of(Setting)
        given = [(flags[name].words[0], getattr(self, name)) for name in dict.fromkeys(names)]
        return " ".join(word if value is True else f"{word} {value}" for word, value in given)


def counted(value: int, noun: str) -> str:
    """A number of things in words: `2 crashes`. A switch is the noun alone."""
    if value is True:
        return noun
    return f"{value} {noun if value == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """More than one."""
    return f"{noun}es" if noun.endswith("sh") else f"{noun}s"
