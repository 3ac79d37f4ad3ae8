"""Count the Python calls of a message and of a lone operation: no other load of the machine changes them.

    python -m performance.calls [--requests 4000] [--strategy cas] [--trail]

A session, without its process, gets the traffic of `performance.node_throughput`, from 64 clients and from one
that waits for each answer. A message is a line in or out. A call is what Python enters as a frame, so each time
that a generator goes on counts, and so do those of `NamedTuple`. Calls of C functions do not count.

A *trail* has the calls of one operation in their order. The operation comes alone, after seconds without any.
A `send` goes from the line that is read to the line that is written, with the call of the store and its answer.
An `append` of a program, on a virtual clock, goes until the memory store is called to write the head. Other
tasks of its host count, too, until then. Upkeep does not run.

Figures of a trail are the files of `leaderless/` that it enters, its calls, and its moves. A move is a call in
another file than the call before. The code that Python makes for `NamedTuple` and dataclasses has one file,
"<string>". It counts for moves, but not as a file; so do files of the standard library. An `append` passes over
all that is not in `leaderless/`, such as anyio, asyncio and "<string>".

A figure above its bound in `BOUNDS` ends the command with status 1. `--trail` prints the steps of each trail:
a file, and the functions of it that are entered before the next move.
"""

import gc
import sys
from asyncio import sleep
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, groupby, pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import click

import leaderless
from leaderless.api.log import Log
from leaderless.core.headlog.records import HEAD
from leaderless.core.machine import Machine
from leaderless.core.strategies import DEFAULT, STRATEGIES
from leaderless.core.strategy import Clock, Context, Identity, Options
from leaderless.hosting.host import running
from leaderless.hosting.place import bounds_of
from leaderless.hosting.surroundings import Surroundings
from leaderless.runtime.session import Session
from leaderless.store.memory import MemoryStore
from performance.harness import program, show_table
from performance.node_throughput import INIT, Driven, line, requests_of
from simulation.loop import VirtualEventLoop, run_virtual

TURN_S = 0.0005  # between two turns of the node's loop
TITLES = "strategy", "in flight", "messages", "calls a message"
TRAIL_TITLES = "trail", "files", "bound", "calls", "bound", "moves", "bound"
OPERATIONS, PAUSE_S = 30, 1.0  # before a lone operation: so many others, so far apart
REST_S = 5.5  # after them; their deadlines are at full seconds, so none comes with the operation
PACKAGE = f"{Path(leaderless.__file__).parent}/"

Trail = list[CodeType]


class Length(NamedTuple):
    """How long a trail is: the module says what counts."""

    files: int
    calls: int
    moves: int


BOUNDS = {
    "send, leaderless": Length(files=19, calls=156, moves=108),
    "send, cas": Length(files=9, calls=67, moves=50),
    "append": Length(files=24, calls=137, moves=69),
}


class Counted(Driven):
    """A session whose calls are kept; `now` is its time in seconds."""

    def __init__(self, strategy: str) -> None:
        super().__init__()

        def machine(identity: Identity) -> Machine:
            clock = Clock()
            return Machine(STRATEGIES[strategy](Context(identity, clock, Options())), clock=clock)

        self._session = Session(machine, "counted")
        self.now = 0.0
        self.calls: Trail = []
        self.ask(INIT)

    def turn(self, lines: list[bytes]) -> list[bytes]:
        """What the node's loop does with what it has read: the lines that it writes."""
        self.now += TURN_S
        sys.setprofile(self._count)
        self._session.receive_all(lines, self.now)
        sent = self._session.take()
        sys.setprofile(None)
        written = sent.splitlines()
        self.messages += len(lines) + len(written)
        return written

    def _count(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self.calls.append(frame.f_code)


def calls_a_message(strategy: str, in_flight: int, requests: int) -> tuple[float, int]:
    """The calls that a message takes, and of how many messages that is the mean."""
    counted = Counted(strategy)
    counted.drive(requests_of(requests // 10), in_flight)  # warm up
    counted.calls.clear()
    counted.messages = 0
    counted.drive(requests_of(requests), in_flight)
    return len(counted.calls) / counted.messages, counted.messages


def _trail_of_send(strategy: str) -> Trail:
    """The trail of a lone `send` to a node that is alone."""
    counted = Counted(strategy)

    def send(number: int) -> None:
        body = {"type": "send", "key": "0", "msg": number, "msg_id": number}
        counted.drive(iter([line("c0", body)]), 1)

    for number in range(OPERATIONS):
        counted.now += PAUSE_S
        send(number)
    counted.now += REST_S
    counted.calls.clear()
    send(OPERATIONS)
    return counted.calls


def _trail_of_append() -> Trail:
    """The trail of a lone `Log.append` to a log in memory."""
    trail: Trail = []
    write = MemoryStore.compare_and_set.__code__

    def follow(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            trail.append(frame.f_code)
            if frame.f_code is write and frame.f_locals["key"] == HEAD:
                sys.setprofile(None)

    async def main(loop: VirtualEventLoop) -> None:
        store = MemoryStore()
        around = Surroundings(loop.time, lambda: "counted")
        log = Log(store, bounds_of(store, patience_s=30.0, store_timeout_s=5.0), around)
        async with running(log.host):
            for number in range(OPERATIONS):
                await sleep(PAUSE_S)
                await log.append("0", number)
            await sleep(REST_S)
            sys.setprofile(follow)
            await log.append("0", OPERATIONS)
            sys.setprofile(None)  # if it wrote its head in another way

    run_virtual(main)
    return trail


_WALKS: dict[str, Callable[[], Trail]] = {
    "send, leaderless": partial(_trail_of_send, "leaderless"),
    "send, cas": partial(_trail_of_send, "cas"),
    "append": _trail_of_append,
}


def trail_of(name: str) -> Trail:
    """The trail of a name in `BOUNDS`. Garbage waits meanwhile: to collect it may call anything."""
    gc.disable()
    try:
        return _WALKS[name]()
    finally:
        gc.enable()


def figures_of(trail: Trail) -> Length:
    """How long a trail is; see the module."""
    files = [code.co_filename for code in trail]
    moves = sum(before != after for before, after in pairwise(files))
    return Length(sum(file.startswith(PACKAGE) for file in {*files}), len(trail), moves)


def passed(name: str, figures: Length) -> list[str]:
    """What to say of each figure of this trail that is above its bound."""
    rows = zip(Length._fields, figures, BOUNDS[name], strict=True)
    text = "{}: {} {}, and the bound is {}"
    return [text.format(name, now, what, most) for what, now, most in rows if now > most]


def steps_of(trail: Trail) -> Iterator[str]:
    """A line for each file that a trail moves to, with the functions that it enters there."""
    for file, codes in groupby(trail, lambda code: code.co_filename):
        is_ours = file.startswith(PACKAGE)
        shown = file.removeprefix(PACKAGE) if is_ours else "/".join(Path(file).parts[-2:])
        yield f"{shown}: {' '.join(code.co_qualname for code in codes)}"


@program(__doc__)
@click.option("--requests", default=4_000)
@click.option(
    "--strategy", type=click.Choice(sorted(STRATEGIES)), multiple=True, default=("cas", DEFAULT)
)
@click.option("--trail", is_flag=True)
def main(*, requests: int, strategy: tuple[str, ...], trail: bool) -> None:
    def rows() -> Iterator[tuple[str, ...]]:
        for name in strategy:
            for in_flight in (64, 1):
                calls, messages = calls_a_message(name, in_flight, requests)
                yield name, str(in_flight), str(messages), f"{calls:.1f}"

    show_table(TITLES, rows())
    click.echo()
    trails = {name: trail_of(name) for name in BOUNDS}
    found = {name: figures_of(each) for name, each in trails.items()}
    beside = {name: zip(figures, BOUNDS[name], strict=True) for name, figures in found.items()}
    show_table(TRAIL_TITLES, ((name, *map(str, chain(*pairs))) for name, pairs in beside.items()))
    for name, steps in trails.items() if trail else ():
        click.echo("\n".join(("", f"{name}:", *steps_of(steps))))
    if above := [text for name, figures in found.items() for text in passed(name, figures)]:
        raise click.ClickException("\n".join(above))


if __name__ == "__main__":
    main()
