"""The command `leaderless`: `leaderless node` runs a node, and the others work on a log in a store.

A sub-command is a row of `COMMANDS`. The row's function imports the sub-command only when it runs,
so one that needs more packages costs the others nothing. A sub-command reads its own arguments and
returns the exit status of the process.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from leaderless import __version__
from leaderless.library.common_arguments import EXIT_STATUSES, add_common

EXAMPLES = """\
examples:
  leaderless init --store sqlite:///orders.db
  leaderless --store sqlite:///orders.db produce eu '{"item": 7}'
  leaderless --store sqlite:///orders.db read eu
  leaderless --store sqlite:///orders.db --json tail eu --offset 0"""


class Command(NamedTuple):
    """A sub-command: one line of help, and the function that runs it on its arguments."""

    summary: str
    run: Callable[[Sequence[str]], int]


def _node(arguments: Sequence[str]) -> int:
    from leaderless.runtime.lean import import_anyio

    import_anyio(arguments)
    from leaderless.runtime.main import main as run_node

    return run_node(arguments, program="leaderless node")


SUMMARIES = {
    "init": "make a log, after a look whether the store can hold one",
    "produce": "append one value",
    "produce-batch": "append the values of JSON lines at consecutive offsets",
    "read": "show records of a key",
    "tail": "show records as they come",
    "keys": "list the keys",
    "consume": "show the record that a group processes next; its cursor stays",
    "ack": "acknowledge the record that a group has processed",
    "groups": "list groups of consumers and where they are",
    "fence": "close the log for appends",
    "unfence": "open a fenced log again",
    "compact": "put sealed segments into runs now",
    "vacuum": "delete objects of values that no record refers to",
    "retain": "delete the oldest files of the log",
    "files": "show the Parquet files that hold the log now",
    "status": "show how the log is",
    "fsck": "check every invariant of the log, and name what is broken",
    "bench": "measure appends and reads, their requests and their price, on a log of its own",
}


def _operation(name: str) -> Command:
    def run(arguments: Sequence[str]) -> int:
        from leaderless.library.commands import main as run_operation

        return run_operation(name, SUMMARIES[name], arguments)

    return Command(SUMMARIES[name], run)


COMMANDS = {
    "node": Command("run a node that speaks Maelstrom's protocol on stdin and stdout", _node),
    **{name: _operation(name) for name in SUMMARIES},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command.

    Args:
        arguments: the name of the sub-command and its arguments; `None`: those of the process.

    Returns:
        The exit status of the sub-command.

    Raises:
        SystemExit: `--help` or `--version` was given (0), or the arguments are wrong (2).
    """
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    before = given[: len(given) - len(options.arguments) - 1]
    return COMMANDS[options.command].run([*before, *options.arguments])


def _parser() -> argparse.ArgumentParser:
    rows = [f"  {name:15}{command.summary}" for name, command in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="leaderless",
        usage="%(prog)s [--version] [options] COMMAND [arguments] [options]",
        description="A Kafka-style log without a leader.",
        epilog="\n".join(["commands:", *rows, "", EXAMPLES, "", EXIT_STATUSES]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"leaderless {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of those below")
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="its arguments; leaderless COMMAND --help shows them",
    )
    add_common(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
