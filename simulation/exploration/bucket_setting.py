"""What may happen in an explored bucket: the log, the clients' operations, and how often each fault."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import click

from bench.flags import NATURAL, Flag, flags_of
from simulation.exploration.settings import changed, command_of, differences
from simulation.objects.scenario import LEADERLESS, LOGS, Scenario

SMALL_TAIL = 1  # entries of a tail that is full, when our log is compacted
LONG_TAIL = 256
FAULTS = ("crashes", "lost", "delayed", "late")
OPERATIONS = ("before", "sends", "polls", "compactions")


@dataclass(frozen=True, slots=True)
class BucketSetting:
    """The options of an exploration. Every message has a producer of its own, which is a process of its own."""

    log: Annotated[str, Flag("Which log.", click.Choice(LOGS))] = LEADERLESS
    before: Annotated[
        int, Flag("Messages that are sent one by one before the exploration begins.", NATURAL)
    ] = 0
    sends: Annotated[int, Flag("Messages, each sent by a process of its own.", NATURAL)] = 2
    polls: Annotated[int, Flag("Polls of one consumer, one after the other.", NATURAL)] = 0
    compactions: Annotated[
        int, Flag("Compactions by one process, one after the other.", NATURAL)
    ] = 0
    crashes: Annotated[int, Flag("How many processes may die during an operation.", NATURAL)] = 0
    lost: Annotated[int, Flag("How many requests or answers may be lost.", NATURAL)] = 0
    delayed: Annotated[
        int, Flag("How many requests may be carried out long after they timed out.", NATURAL)
    ] = 0
    late: Annotated[
        int,
        Flag(
            "How often time may pass to the next timer, while a request could be carried out.",
            NATURAL,
        ),
    ] = 0
    repeats: Annotated[bool, Flag("The client library repeats conditional writes.", click.BOOL)] = (
        False
    )

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
    def problem(self) -> str | None:
        """Why it cannot be explored, in words."""
        if not self.acting:
            return "nothing happens: give --sends, --polls or --compactions"
        if self.repeats and self.log == LEADERLESS:
            return "--repeats is of S3-Queue: our log forbids a library that repeats conditional writes"
        return None

    @property
    def size(self) -> int:
        """How much may happen: the measure by which a failing setting is made smaller."""
        return sum(int(getattr(self, name)) for name in (*FAULTS, *OPERATIONS, "repeats"))

    def smaller(self) -> Iterator["BucketSetting"]:
        """Settings in which one thing less may happen."""
        for name in (*FAULTS, *OPERATIONS):
            if (value := getattr(self, name)) > 0:
                less = changed(self, name, value - 1)
                if not less.problem:
                    yield less
        if self.repeats:
            yield changed(self, "repeats", False)

    def as_object(self) -> dict[str, Any]:
        """What differs from the defaults, by name."""
        return differences(self)

    def command(self) -> str:
        """The command that explores it."""
        return command_of("explore-objects", self, FLAGS, always=("log", "sends"))


FLAGS = flags_of(BucketSetting)
