"""Count the instructions that a message costs a node: a figure that no other load of the machine changes.

    python -m performance.instructions [--requests 2000] [--strategy cas]

A session, without its process, gets the traffic of `performance.calls`, which is recorded first and then played
under valgrind. The limit parses and answers the same lines, and does nothing else. A message is a line in or
out.
Each program runs twice, with a quarter of the turns and with all of them: the difference has no start in it.
"""

import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click
import orjson

from leaderless.core.strategies import DEFAULT, STRATEGIES
from leaderless.runtime.session import Session
from performance import ROOT, show_table
from performance.calls import Counted, machine_of
from performance.node_throughput import requests_of

VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
TITLES = ("strategy", "in flight", "node", "limit", "node / limit")


class Turn(NamedTuple):
    """What the node's loop reads at once, the time in seconds, and how many lines it writes then."""

    lines: list[bytes]
    now: float
    written: int


class _Recorded(Counted):
    """Keeps its turns."""

    def __init__(self, strategy: str) -> None:
        self.turns: list[Turn] = []
        super().__init__(strategy)

    def turn(self, lines: list[bytes]) -> list[bytes]:
        written = super().turn(lines)
        self.turns.append(Turn(lines, self.now, len(written)))
        return written


def play_node(strategy: str, turns: list[Turn]) -> None:
    """Give a new session what was read in these turns."""
    session = Session(partial(machine_of, strategy), "counted")
    for lines, now, _ in turns:
        session.receive_all(lines, now)
        session.take()


def play_limit(strategy: str, turns: list[Turn]) -> None:  # noqa: ARG001 - as `play_node`
    """Parse the same lines, and answer each."""
    for lines, _, _ in turns:
        out = []
        for message in map(orjson.loads, lines):
            body = message["body"]
            reply = {**body, "in_reply_to": body.get("msg_id")}
            answer = {"src": message["dest"], "dest": message["src"], "body": reply}
            out.append(orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))
        b"".join(out)


PLAYS = {"node": play_node, "limit": play_limit}


def instructions_a_message(strategy: str, in_flight: int, requests: int) -> dict[str, float]:
    """Of the node and of the limit."""
    recorded = _Recorded(strategy)
    recorded.drive(requests_of(requests), in_flight)
    turns = recorded.turns
    first = len(turns) // 4
    lines = sum(len(turn.lines) for turn in turns[first:])
    messages = {"node": lines + sum(turn.written for turn in turns[first:]), "limit": 2 * lines}
    with TemporaryDirectory() as folder:
        path = Path(folder, "turns")
        path.write_bytes(pickle.dumps(turns))
        return {
            what: (
                _counted(what, strategy, path, len(turns)) - _counted(what, strategy, path, first)
            )
            / messages[what]
            for what in PLAYS
        }


def _counted(what: str, strategy: str, path: Path, turns: int) -> int:
    """The instructions of a program that plays so many turns."""
    play = ["play", what, strategy, str(path), str(turns)]
    ran = subprocess.run(
        [*VALGRIND, sys.executable, "-m", "performance.instructions", *play],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"I +refs: +([\d,]+)", ran.stderr)
    assert found, ran.stderr
    return int(found[1].replace(",", ""))


@click.group(help=(__doc__ or "").partition("\n")[0], invoke_without_command=True)
@click.option("--requests", default=2_000, show_default=True)
@click.option(
    "--strategy", type=click.Choice(sorted(STRATEGIES)), multiple=True, default=["cas", DEFAULT]
)
@click.pass_context
def main(context: click.Context, requests: int, strategy: tuple[str, ...]) -> None:
    if context.invoked_subcommand:
        return
    if not shutil.which("valgrind"):
        raise click.ClickException("valgrind is not installed (apt install valgrind)")

    def rows() -> Iterator[tuple[str, ...]]:
        for name in strategy:
            for in_flight in (64, 1):
                counts = instructions_a_message(name, in_flight, requests)
                node, limit = counts["node"], counts["limit"]
                yield name, str(in_flight), f"{node:,.0f}", f"{limit:,.0f}", f"{node / limit:.2f}"

    show_table(TITLES, rows())


@main.command(hidden=True)
@click.argument("what", type=click.Choice([*PLAYS]))
@click.argument("strategy")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.argument("turns", type=int)
def play(what: str, strategy: str, path: Path, turns: int) -> None:
    """Play recorded turns."""
    PLAYS[what](strategy, pickle.loads(path.read_bytes())[:turns])


if __name__ == "__main__":
    main()
